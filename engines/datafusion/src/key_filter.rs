//! The two nodes that a join's keys put into plans: one collects them on its left side, the other drops rows
//! without a partner on its right side.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};

use crate::expression::translate;
use crate::inputs::Inputs;
use crate::join_keys::{Collector, JoinKeys};
use crate::key_streams::{Collecting, Condition, Filter, FilterCounters, Filtering};
use crate::streams::stream_of_batches;

/// The use that a node makes of the keys of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Adds those of each column to the keys of its join.
    Collects,
    /// Drops the rows of which a column has none of its join's.
    Filters,
}

/// Columns, and the keys of a join for each.
type Keyed = Vec<(usize, Arc<JoinKeys>)>;

/// A node that passes its input's rows on, and collects or needs the keys of joins.
pub(crate) struct KeyFilterExec {
    input: Arc<dyn ExecutionPlan>,
    keyed: Keyed,
    role: Role,
    /// The condition of the filter above. Rows that have a key are tested before they are copied.
    condition: Option<Arc<dyn PhysicalExpr>>,
    /// Whether the node does nothing, since it may be executed again with other rows.
    idle: bool,
    metrics: ExecutionPlanMetricsSet,
}

impl KeyFilterExec {
    /// A node above an input; in place of it if that is such a node.
    pub fn over(
        role: Role,
        input: Arc<dyn ExecutionPlan>,
        column: usize,
        keys: &Arc<JoinKeys>,
    ) -> Arc<dyn ExecutionPlan> {
        let below = input.downcast_ref::<KeyFilterExec>().filter(|below| below.role == role);
        let mut made = match below {
            Some(below) => below.over_input(below.input.clone()),
            None => KeyFilterExec {
                input,
                keyed: vec![],
                role,
                condition: None,
                idle: false,
                metrics: ExecutionPlanMetricsSet::new(),
            },
        };
        made.keyed.push((column, keys.clone()));
        Arc::new(made)
    }

    /// The same node over another input, which has not run.
    fn over_input(&self, input: Arc<dyn ExecutionPlan>) -> KeyFilterExec {
        let KeyFilterExec { keyed, role, condition, idle, .. } = self;
        let (keyed, condition) = (keyed.clone(), condition.clone());
        let metrics = ExecutionPlanMetricsSet::new();
        KeyFilterExec { input, keyed, role: *role, condition, idle: *idle, metrics }
    }

    /// The same filter of a plan, which also tests what the filter above it does, if it is one of ours and no
    /// row can fail the test.
    pub fn testing(
        plan: Arc<dyn ExecutionPlan>,
        condition: &Arc<dyn PhysicalExpr>,
    ) -> Arc<dyn ExecutionPlan> {
        let safe = || {
            let made = translate(condition, &mut Inputs::of(&plan.schema()));
            made.is_some_and(|made| !made.can_fail)
        };
        match plan.downcast_ref::<KeyFilterExec>() {
            Some(filter) if filter.filters() && safe() => Arc::new(KeyFilterExec {
                condition: Some(condition.clone()),
                ..filter.over_input(filter.input.clone())
            }),
            _ => plan,
        }
    }

    /// Whether the node drops rows.
    pub fn filters(&self) -> bool {
        self.role == Role::Filters
    }

    fn collector(
        &self,
        partition: usize,
        context: &Arc<TaskContext>,
        (column, keys): &(usize, Arc<JoinKeys>),
    ) -> (usize, Collector) {
        let consumer = MemoryConsumer::new(format!("KeyFilterExec[{partition}]"));
        let memory = consumer.register(context.memory_pool());
        let partitions = self.input.output_partitioning().partition_count();
        // The join's own table needs memory as well.
        let most_bytes = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / (8 * partitions.max(1)),
            _ => usize::MAX,
        };
        (*column, keys.of(context).open(partition, partitions, memory, most_bytes))
    }
}

impl fmt::Debug for KeyFilterExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.keyed.iter().map(|(column, _)| column).collect();
        write!(f, "KeyFilterExec({:?}, columns {columns:?}, {:?})", self.role, self.input)
    }
}

impl DisplayAs for KeyFilterExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.input.schema();
        let part = |(column, keys): &(usize, Arc<JoinKeys>)| {
            let name = schema.field(*column).name();
            match self.role {
                Role::Collects => format!("{name}@{column} as keys {}", keys.join),
                Role::Filters => format!("{name}@{column} in keys {}", keys.join),
            }
        };
        let mut parts = self.keyed.iter().map(part).collect::<Vec<_>>().join(", ");
        if let Some(condition) = &self.condition {
            parts += &format!(", then {condition}");
        }
        let role = if self.filters() { "filter" } else { "collect" };
        match kind {
            DisplayFormatType::TreeRender => write!(f, "{role}=[{parts}]"),
            _ => write!(f, "KeyFilterExec: {role}=[{parts}]"),
        }
    }
}

impl ExecutionPlan for KeyFilterExec {
    fn name(&self) -> &str {
        "KeyFilterExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.condition.as_ref().map_or(Ok(TreeNodeRecursion::Continue), f)
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = <[_; 1]>::try_from(children).or_else(|children: Vec<_>| {
            datafusion::common::internal_err!("{} children for one", children.len())
        })?;
        Ok(Arc::new(self.over_input(input)))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(KeyFilterExec { idle: true, ..self.over_input(self.input.clone()) }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        if self.idle {
            return Ok(input);
        }
        if self.role == Role::Collects {
            let collectors = self.keyed.iter().map(|one| self.collector(partition, &context, one));
            return Ok(stream_of_batches(self.schema(), Collecting::new(input, collectors.collect())));
        }
        let filtering = Filtering::new(
            input,
            self.keyed.iter().map(|(column, keys)| Filter::new(*column, keys.of(&context))).collect(),
            self.condition.as_ref().map(Condition::new).transpose()?,
            (context.session_config().batch_size(), self.input.boundedness().is_unbounded()),
            FilterCounters {
                baseline: BaselineMetrics::new(&self.metrics, partition),
                rows_in: MetricBuilder::new(&self.metrics).counter("input_rows", partition),
            },
        );
        Ok(stream_of_batches(self.schema(), filtering))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let [input] = inputs else {
            return datafusion::common::internal_err!("statistics of {} inputs", inputs.len());
        };
        Ok(match self.role {
            Role::Collects => input.clone(),
            Role::Filters => Arc::new(Arc::unwrap_or_clone(input.clone()).to_inexact()),
        })
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        match self.role {
            Role::Collects => CardinalityEffect::Equal,
            Role::Filters => CardinalityEffect::LowerEqual,
        }
    }
}
