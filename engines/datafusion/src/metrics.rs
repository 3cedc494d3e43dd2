//! The metrics of our operators, as `EXPLAIN ANALYZE` shows them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use bowstring::Stream;
use bowstring::device::Mark;
use datafusion::arrow::array::RecordBatch;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, Time,
};

use crate::spill::SpilledRows;

/// The counters of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Counters {
    /// The rows emitted, and the time that the host computes.
    pub baseline: BaselineMetrics,
    /// The rows received from the input.
    pub rows_in: Count,
    /// Rows and bytes that were uploaded to a device.
    pub rows_up: Count,
    pub bytes_up: Count,
    /// Rows and bytes that were downloaded from it.
    pub rows_down: Count,
    pub bytes_down: Count,
    /// The number of kernel launches.
    pub launches: Count,
    /// The time during which the device had work.
    pub device_time: Time,
    /// The time during which the host only waited for the device.
    pub device_wait: Time,
}

impl Counters {
    /// Creates a partition's counters; device counters appear only if there is a device.
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

impl Counters {
    /// Counts a batch that was downloaded.
    pub fn down(&self, batch: &RecordBatch) {
        self.rows_down.add(batch.num_rows());
        self.bytes_down.add(batch.get_array_memory_size());
    }
}

/// The session's memory for uploads, and the place of rows that wait because the device may not keep them.
pub(crate) struct HostMemory {
    pub reservation: MemoryReservation,
    pub spill: Arc<SpilledRows>,
}

impl HostMemory {
    /// Gives back the memory of uploads, which have ended.
    pub fn uploaded(&self) {
        self.reservation.free();
    }
}

/// Measures how long a partition's stream had work: the time between pairs of marks, with overlapping pieces
/// of work counted once. Delays of the host between the launches of one piece are included.
pub(crate) struct Busy {
    stream: Stream,
    counters: Counters,
    /// The begin and end marks of each piece of work, oldest first.
    spans: VecDeque<(Mark, Mark)>,
    /// The end of the time counted so far.
    until: Option<Instant>,
    launches: u64,
}

impl Busy {
    pub fn new(stream: &Stream, counters: &Counters) -> Busy {
        let (stream, counters) = (stream.clone(), counters.clone());
        Busy { stream, counters, spans: VecDeque::new(), until: None, launches: 0 }
    }

    /// Records that all of a piece of work is on the stream; it began after the mark `from`.
    pub fn queued(&mut self, from: Mark) -> bowstring::Result<()> {
        self.spans.push_back((from, self.stream.mark()?));
        self.count();
        Ok(())
    }

    /// Waits for the stream, then counts the rest: no more work follows.
    pub fn end(&mut self) -> bowstring::Result<()> {
        self.stream.synchronise()?;
        self.count();
        Ok(())
    }

    /// Counts the launches since the last call, and the pieces of work that have passed.
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
