//! What an operator of ours counts, as `EXPLAIN ANALYZE` shows it.

use std::collections::VecDeque;
use std::time::Instant;

use bowstring::Stream;
use bowstring::device::Mark;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, Time,
};

/// The counters of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    /// Rows that leave, and the time that the host computes.
    pub baseline: BaselineMetrics,
    /// Rows that come in.
    pub rows_in: Count,
    /// Rows and bytes that were uploaded to a device.
    pub rows_up: Count,
    pub bytes_up: Count,
    /// Rows and bytes that were downloaded from it.
    pub rows_down: Count,
    pub bytes_down: Count,
    /// Kernels that were launched.
    pub launches: Count,
    /// For how long the device had something to do.
    pub device_time: Time,
    /// For how long the host had nothing to do but to wait for it.
    pub device_wait: Time,
}

impl Counters {
    /// Those of a partition. A device's are there where there is a device.
    pub fn new(metrics: &ExecutionPlanMetricsSet, partition: usize, on_device: bool) -> Counters {
        let count = |name: &'static str| match on_device {
            true => MetricBuilder::new(metrics).counter(name, partition),
            false => Count::new(),
        };
        let time = |name: &'static str| match on_device {
            true => MetricBuilder::new(metrics).subset_time(name, partition),
            false => Time::new(),
        };
        Counters {
            baseline: BaselineMetrics::new(metrics, partition),
            rows_in: MetricBuilder::new(metrics).counter("input_rows", partition),
            rows_up: count("rows_up"),
            bytes_up: count("bytes_up"),
            rows_down: count("rows_down"),
            bytes_down: count("bytes_down"),
            launches: count("launches"),
            device_time: time("device_time"),
            device_wait: time("device_wait"),
        }
    }
}

/// What the stream of a partition had to do, and for how long: the time that lies between marks, counted once where several pieces of
/// work were under way. Where the host was late with the next launch of one, that is in it.
pub(crate) struct Busy {
    stream: Stream,
    counters: Counters,
    /// From where to where, the first first.
    spans: VecDeque<(Mark, Mark)>,
    /// What is counted already.
    until: Option<Instant>,
    launches: u64,
}

impl Busy {
    pub fn new(stream: &Stream, counters: &Counters) -> Busy {
        let (stream, counters) = (stream.clone(), counters.clone());
        Busy { stream, counters, spans: VecDeque::new(), until: None, launches: 0 }
    }

    /// All of a piece of work is on the stream; it began behind this mark.
    pub fn queued(&mut self, from: Mark) -> bowstring::Result<()> {
        self.spans.push_back((from, self.stream.mark()?));
        self.count();
        Ok(())
    }

    /// Nothing more comes, and all of it has passed: what is not counted yet is.
    pub fn end(&mut self) -> bowstring::Result<()> {
        self.stream.synchronise()?;
        self.count();
        Ok(())
    }

    /// Counts what was launched, and what has passed.
    pub fn count(&mut self) {
        let launches = self.stream.launches();
        self.counters.launches.add((launches - self.launches) as usize);
        self.launches = launches;
        while let Some((from, to)) = self.spans.front()
            && let (Some(from), Some(to)) = (from.reached(), to.reached())
        {
            let from = self.until.map_or(from, |until| until.max(from));
            self.counters.device_time.add_duration(to.saturating_duration_since(from));
            self.until = Some(to);
            self.spans.pop_front();
        }
    }
}
