//! Engines for tests: they count tasks, or delay them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use ballista_core::JobId;
use ballista_core::serde::protobuf::{ShuffleWritePartition, TaskColumnStats};
use ballista_executor::execution_engine::{ExecutionEngine, QueryStageExecutor};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::prelude::SessionConfig;

/// Wraps an engine so that each task waits before it begins; counts tasks when they are handed out and when
/// they are done.
pub struct Paused {
    pub inner: Arc<dyn ExecutionEngine>,
    pub pause: Duration,
    pub progress: Arc<Progress>,
}

#[derive(Debug, Default)]
pub struct Progress {
    pub given: AtomicU64,
    pub done: AtomicU64,
}

impl Paused {
    pub fn over(inner: Arc<dyn ExecutionEngine>, pause: Duration) -> (Arc<Self>, Arc<Progress>) {
        let progress = Arc::<Progress>::default();
        (Arc::new(Self { inner, pause, progress: progress.clone() }), progress)
    }
}

impl ExecutionEngine for Paused {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        config: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        self.progress.given.fetch_add(1, SeqCst);
        let inner =
            self.inner.create_query_stage_exec(job, stage, task, partitions, plan, work_dir, config)?;
        Ok(Arc::new(PausedStage { inner, pause: self.pause, progress: self.progress.clone() }))
    }
}

#[derive(Debug)]
struct PausedStage {
    inner: Arc<dyn QueryStageExecutor>,
    pause: Duration,
    progress: Arc<Progress>,
}

#[async_trait::async_trait]
impl QueryStageExecutor for PausedStage {
    async fn execute_query_stage(
        &self,
        task: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        tokio::time::sleep(self.pause).await;
        let written = self.inner.execute_query_stage(task, context).await;
        self.progress.done.fetch_add(1, SeqCst);
        written
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.inner.collect_plan_metrics()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.inner.collect_column_stats()
    }
}

impl std::fmt::Display for PausedStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}
