//! What an operator of ours counts, as `EXPLAIN ANALYZE` shows it.

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
    /// Operations that were given to it: filters, projections, aggregates.
    pub device_operations: Count,
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
        Counters {
            baseline: BaselineMetrics::new(metrics, partition),
            rows_in: MetricBuilder::new(metrics).counter("input_rows", partition),
            rows_up: count("rows_up"),
            bytes_up: count("bytes_up"),
            rows_down: count("rows_down"),
            bytes_down: count("bytes_down"),
            device_operations: count("device_operations"),
            device_wait: match on_device {
                true => MetricBuilder::new(metrics).subset_time("device_wait", partition),
                false => Time::new(),
            },
        }
    }
}
