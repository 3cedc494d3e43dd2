//! The engine for an executor: Ballista's own, with bowstring's rule run over each plan first.
//!
//! If the rule fails in any way, the stage runs as Ballista planned it: our operators only make a query
//! faster, so they must never make it fail.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ballista_core::JobId;
use ballista_executor::execution_engine::{DefaultExecutionEngine, ExecutionEngine, QueryStageExecutor};
use bowstring_datafusion::{DeviceExec, DeviceOptions, DeviceRule};
use datafusion::common::internal_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, replace_children_if_necessary};
use datafusion::prelude::SessionConfig;

use crate::connections::Connections;
use crate::metrics::MetricsMap;
use crate::settings;
use crate::stage::DeviceStage;

/// The time for which an idle connection to another executor is kept; the stock executor's default.
const CLIENT_TTL: Duration = Duration::from_secs(30);

/// Ballista's default engine, which first runs our rule over the part of each stage's plan below its shuffle
/// writer.
pub struct DeviceExecutionEngine {
    inner: Arc<dyn ExecutionEngine>,
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
    own: DeviceOptions,
    counters: Counters,
}

/// The totals of an engine's work since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of tasks: one for each slice of a stage's partitions.
    pub tasks: u64,
    /// The number of tasks whose plan got an operator of ours.
    pub device_tasks: u64,
    /// The number of our operators in all of these plans.
    pub operators: u64,
    /// The number of tasks whose plan was left alone because the rule failed.
    pub failures: u64,
}

#[derive(Default)]
struct Counters {
    tasks: AtomicU64,
    device_tasks: AtomicU64,
    operators: AtomicU64,
    failures: AtomicU64,
}

impl DeviceExecutionEngine {
    /// Creates an engine whose tasks run as `own` says, unless their session says otherwise. Shuffles share
    /// connections as in the stock executor.
    pub fn new(own: DeviceOptions) -> Self {
        Self::with_client_ttl(own, CLIENT_TTL)
    }

    /// Like [`new`](Self::new), with connections to other executors kept for `idle`; zero keeps none.
    pub fn with_client_ttl(own: DeviceOptions, idle: Duration) -> Self {
        let inner = match idle {
            Duration::ZERO => DefaultExecutionEngine::new(),
            idle => DefaultExecutionEngine::with_client_pool(Arc::new(Connections::kept_for(idle))),
        };
        // Other stages read the partitions of a stage.
        let rule = Arc::new(DeviceRule::new().keeping_partitions());
        Self { inner: Arc::new(inner), rule, own, counters: Counters::default() }
    }

    /// Replaces Ballista's default engine by another one.
    pub fn over(self, inner: Arc<dyn ExecutionEngine>) -> Self {
        Self { inner, ..self }
    }

    /// Replaces [`DeviceRule`] by another rule.
    pub fn with_rule(self, rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>) -> Self {
        Self { rule, ..self }
    }

    /// The totals so far.
    pub fn counts(&self) -> Counts {
        let Counters { tasks, device_tasks, operators, failures } = &self.counters;
        Counts {
            tasks: tasks.load(Relaxed),
            device_tasks: device_tasks.load(Relaxed),
            operators: operators.load(Relaxed),
            failures: failures.load(Relaxed),
        }
    }

    /// Returns `plan`, a shuffle writer over the stage's work, with the rule's version of that work.
    fn rewritten(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [work] = plan.children()[..] else {
            return internal_err!("a stage's plan begins with {}, not a shuffle writer", plan.name());
        };
        // A panic here would end the loop in which the executor asks for work, and so the executor.
        let ours = catch_unwind(AssertUnwindSafe(|| self.rule.optimize(Arc::clone(work), config)))
            .unwrap_or_else(|_| internal_err!("the rule {} panicked", self.rule.name()))?;
        // The shuffle writer and the scheduler rely on both.
        if ours.schema() != work.schema() {
            return internal_err!("the rule {} changed the schema", self.rule.name());
        }
        if ours.output_partitioning().partition_count() != work.output_partitioning().partition_count() {
            return internal_err!("the rule {} changed the number of partitions", self.rule.name());
        }
        let ours = replace_children_if_necessary(Arc::clone(plan), vec![ours])?;
        // A report with another number of metrics is refused, and the query would never end.
        if MetricsMap::of(&ours).planned() != reporting(plan) {
            return internal_err!("the rule {} changed the number of operators", self.rule.name());
        }
        Ok(ours)
    }
}

impl ExecutionEngine for DeviceExecutionEngine {
    fn create_query_stage_exec(
        &self,
        job: JobId,
        stage: usize,
        task: usize,
        partitions: Vec<usize>,
        plan: Arc<dyn ExecutionPlan>,
        work_dir: &str,
        session: &SessionConfig,
    ) -> Result<Arc<dyn QueryStageExecutor>> {
        self.counters.tasks.fetch_add(1, Relaxed);
        let stock = |plan| {
            let (job, partitions) = (job.clone(), partitions.clone());
            self.inner.create_query_stage_exec(job, stage, task, partitions, plan, work_dir, session)
        };
        let config = settings::for_rule(session.options(), &self.own);
        let prepared = self.rewritten(&plan, &config).and_then(|ours| match operators(&ours) {
            0 => Ok(None),
            count => Ok(Some((count, stock(Arc::clone(&ours))?, ours))),
        });
        match prepared {
            Ok(None) => stock(plan),
            Ok(Some((count, executor, ours))) => {
                self.counters.device_tasks.fetch_add(1, Relaxed);
                self.counters.operators.fetch_add(count, Relaxed);
                let device = settings::device(&config);
                log::info!("bowstring: task {job}/{stage}/{task}: {count} operators on {device}");
                Ok(Arc::new(DeviceStage::new(executor, MetricsMap::of(&ours))))
            }
            Err(error) => {
                self.counters.failures.fetch_add(1, Relaxed);
                log::warn!("bowstring: task {job}/{stage}/{task} runs without our operators: {error}");
                stock(plan)
            }
        }
    }
}

impl fmt::Debug for DeviceExecutionEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, own, .. } = self;
        f.debug_struct("DeviceExecutionEngine")
            .field("rule", rule)
            .field("own", own)
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

/// The number of operators in a plan that report metrics.
fn reporting(plan: &Arc<dyn ExecutionPlan>) -> usize {
    usize::from(plan.metrics().is_some()) + plan.children().into_iter().map(reporting).sum::<usize>()
}

/// The number of our operators in a plan.
fn operators(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    u64::from(plan.is::<DeviceExec>()) + plan.children().into_iter().map(operators).sum::<u64>()
}
