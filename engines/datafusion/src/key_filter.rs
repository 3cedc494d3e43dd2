//! The two nodes that a join's keys put into plans: one collects them on its left side, the other drops rows
//! without a partner on its right side.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, RecordBatch};
use datafusion::arrow::compute::BatchCoalescer;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit};
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, RecordOutput as _,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::join_keys::{Collector, Execution, JoinKeys};
use crate::key_bits::KeyBits;
use crate::streams::{BatchSource, stream_of_batches};

/// After so many rows, a filter that keeps most of them ends.
const TRIED: usize = 1 << 16;

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
        let (input, mut keyed) = match below {
            Some(below) => (below.input.clone(), below.keyed.clone()),
            None => (input, vec![]),
        };
        keyed.push((column, keys.clone()));
        Arc::new(KeyFilterExec { input, keyed, role, idle: false, metrics: ExecutionPlanMetricsSet::new() })
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
        let parts = self.keyed.iter().map(part).collect::<Vec<_>>().join(", ");
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
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
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
        let (keyed, role, idle) = (self.keyed.clone(), self.role, self.idle);
        Ok(Arc::new(KeyFilterExec { input, keyed, role, idle, metrics: ExecutionPlanMetricsSet::new() }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let (input, keyed, role) = (self.input.clone(), self.keyed.clone(), self.role);
        let metrics = ExecutionPlanMetricsSet::new();
        Ok(Arc::new(KeyFilterExec { input, keyed, role, idle: true, metrics }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        if self.idle {
            return Ok(input);
        }
        if self.role == Role::Collects {
            let collectors = self.keyed.iter().map(|one| self.collector(partition, &context, one));
            return Ok(stream_of_batches(
                self.schema(),
                Collecting { input, collectors: collectors.collect() },
            ));
        }
        let rows = context.session_config().batch_size();
        let kept = BatchCoalescer::new(self.schema(), rows).with_biggest_coalesce_batch_size(Some(rows / 2));
        let endless = self.input.boundedness().is_unbounded();
        let filtering = Filtering {
            input: Some(input),
            filters: self
                .keyed
                .iter()
                .map(|(column, keys)| Filter::new(*column, keys.of(&context)))
                .collect(),
            kept,
            gathered: 0,
            most_gathered: 1,
            endless,
            failed: None,
            ready: None,
            baseline: BaselineMetrics::new(&self.metrics, partition),
            rows_in: MetricBuilder::new(&self.metrics).counter("input_rows", partition),
        };
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

/// Passes batches on, and collects their keys.
struct Collecting {
    input: SendableRecordBatchStream,
    /// The collector of each column; none once all has been read.
    collectors: Vec<(usize, Collector)>,
}

impl BatchSource<RecordBatch> for Collecting {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        self.collectors.iter_mut().for_each(|(_, collector)| collector.start());
        let batch = self.input.next().await.transpose()?;
        match &batch {
            Some(batch) => {
                self.collectors
                    .iter_mut()
                    .for_each(|(column, collector)| collector.add(batch.column(*column)));
            }
            None => self.collectors.drain(..).for_each(|(_, collector)| collector.end()),
        }
        Ok(batch)
    }
}

/// A filter by the keys of a join, as long as that drops many rows.
struct Filter {
    column: usize,
    /// `None` if rows are not dropped any more.
    execution: Option<Arc<Execution>>,
    rows: usize,
    kept: usize,
}

impl Filter {
    fn new(column: usize, execution: Arc<Execution>) -> Filter {
        Filter { column, execution: Some(execution), rows: 0, kept: 0 }
    }

    /// The keys, if they are known.
    async fn keys(&mut self) -> Option<Arc<KeyBits>> {
        let execution = self.execution.as_ref()?;
        let known = execution.known().await;
        if known.is_none() && execution.is_lost() {
            self.execution = None;
        }
        known
    }

    /// The rows of a batch that have a key, of those that are left.
    fn kept(&mut self, batch: &RecordBatch, left: Option<BooleanArray>, keys: &KeyBits) -> BooleanArray {
        let found = keys.contain(batch.column(self.column));
        let before = left.as_ref().map_or(batch.num_rows(), BooleanArray::true_count);
        let found = match left {
            Some(left) => BooleanArray::new(left.values() & found.values(), None),
            None => found,
        };
        self.rows += before;
        self.kept += found.true_count();
        if self.rows >= TRIED && self.kept > self.rows / 2 {
            self.execution = None;
        }
        found
    }
}

/// Drops rows without a key, once the keys are known.
struct Filtering {
    /// `None` once all has been read.
    input: Option<SendableRecordBatchStream>,
    filters: Vec<Filter>,
    /// The rows that are kept, until there are enough for a batch.
    kept: BatchCoalescer,
    /// The number of batches whose rows are in `kept`, and the number after which these rows leave. It
    /// doubles each time: a `LIMIT` above gets its rows at once, and long inputs get full batches.
    gathered: usize,
    most_gathered: usize,
    /// Whether the input may pause forever, so that each batch's rows leave at once.
    endless: bool,
    /// The input's error, which follows the rows that came before it.
    failed: Option<DataFusionError>,
    /// A batch that follows those in `kept`.
    ready: Option<RecordBatch>,
    baseline: BaselineMetrics,
    rows_in: Count,
}

impl Filtering {
    async fn filter(&mut self, batch: RecordBatch) -> Result<()> {
        let mut known = vec![];
        for filter in &mut self.filters {
            known.push(filter.keys().await);
        }
        let timed = self.baseline.elapsed_compute().clone();
        let _timer = timed.timer();
        let mut kept = None;
        for (filter, keys) in self.filters.iter_mut().zip(known) {
            if let Some(keys) = keys {
                kept = Some(filter.kept(&batch, kept.take(), &keys));
            }
        }
        self.filters.retain(|filter| filter.execution.is_some());
        match kept.map(|kept| (kept.true_count(), kept)) {
            Some((0, _)) => {}
            Some((rows, kept)) if rows < batch.num_rows() => {
                self.kept.push_batch_with_filter(batch, &kept)?;
                self.gathered += 1;
                if self.gathered >= self.most_gathered {
                    self.kept.finish_buffered_batch()?;
                    self.gathered = 0;
                    self.most_gathered = if self.endless { 1 } else { self.most_gathered.saturating_mul(2) };
                }
            }
            _ => {
                // As it is, behind those before it.
                self.kept.finish_buffered_batch()?;
                self.ready = Some(batch);
            }
        }
        Ok(())
    }
}

impl BatchSource<RecordBatch> for Filtering {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch().or_else(|| self.ready.take()) {
                return Ok(Some(batch.record_output(&self.baseline)));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            match input.next().await {
                Some(Ok(batch)) => {
                    self.rows_in.add(batch.num_rows());
                    self.filter(batch).await?;
                }
                ended => {
                    self.input = None;
                    self.failed = ended.and_then(Result::err);
                    self.kept.finish_buffered_batch()?;
                }
            }
        }
    }
}
