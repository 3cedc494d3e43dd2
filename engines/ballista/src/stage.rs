//! A stage with our operators that reports its work as if it had none.

use std::fmt;
use std::sync::Arc;

use ballista_core::serde::protobuf::{
    RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport,
};
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::MetricsSet;

use crate::metrics::MetricsMap;

/// Wraps another engine's stage and puts its metrics where the scheduler expects them.
#[derive(Debug)]
pub(crate) struct DeviceStage {
    inner: Arc<dyn QueryStageExecutor>,
    metrics: MetricsMap,
}

impl DeviceStage {
    pub(crate) fn new(inner: Arc<dyn QueryStageExecutor>, metrics: MetricsMap) -> Self {
        Self { inner, metrics }
    }
}

#[async_trait::async_trait]
impl QueryStageExecutor for DeviceStage {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        self.inner.execute_query_stage(task, context).await
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.metrics.as_planned(self.inner.collect_plan_metrics())
    }

    // The rule replaces none of the operators that these methods look for, and they look through ours to find
    // them.
    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.inner.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.inner.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}

impl fmt::Display for DeviceStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
