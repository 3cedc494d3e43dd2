//! The first step of an aggregate with keys, on the CPU: DataFusion's states of groups that we number.
//!
//! The one idea: DataFusion's first step takes much of its time to find the group of each row in a hash
//! table. Keys that are integers of a short range need none ([`crate::key_range`]), nor do most rows of a few
//! groups ([`crate::recent_groups`]). The states are DataFusion's own, of any function, so they are those
//! that its last step expects.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::group_values::GroupValues;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::metrics::{Count, MetricBuilder, RecordOutput};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties as _, PhysicalExpr, SendableRecordBatchStream,
};
use futures::StreamExt;

use crate::chain::beyond;
use crate::key_range::{groups_of, has_range};
use crate::metrics::Counters;
use crate::operator::{DeviceBatches, Open, Operator, Replaced, Source, Task, replaced};
use crate::recent_groups::are_remembered;
use crate::streams::{BatchSource, parts, stream_of_batches};

/// DataFusion's first step of an aggregate.
pub(crate) struct FirstStep {
    /// DataFusion's node: a list of one.
    node: [Arc<dyn ExecutionPlan>; 1],
    steps: String,
    /// Whether keys of all types are taken.
    always: bool,
    /// The number of first nodes that the plan did not have.
    added: usize,
}

impl FirstStep {
    /// Translates a node; `None` if it is no first step of an aggregate whose groups we find faster, or does
    /// more. `always` takes other keys too, for which DataFusion is as fast.
    pub fn of(node: &Arc<dyn ExecutionPlan>, always: bool) -> Option<FirstStep> {
        let theirs = node.downcast_ref::<AggregateExec>()?;
        let (by, functions) = (theirs.group_expr(), theirs.aggr_expr());
        let keys = !by.is_empty() && (always || finds_groups(theirs));
        let first = *theirs.mode() == AggregateMode::Partial && by.is_single();
        if !first || !keys || beyond(theirs).is_some() || !functions.iter().all(has_states_of_groups) {
            return None;
        }
        let keys: Vec<_> = by.expr().iter().map(|(key, _)| key.to_string()).collect();
        let names: Vec<_> = functions.iter().map(|function| function.name()).collect();
        let steps = format!("group=[{}], aggregate=[{}], mode=Partial", keys.join(", "), names.join(", "));
        Some(FirstStep { node: [node.clone()], steps, always, added: 0 })
    }

    /// Whether an aggregate in one step may be done in two, of which this is the first. DataFusion's answer
    /// has to be the same: its least and greatest floats, variances and sets of distinct values are not, for
    /// some values. And keys other than one integer may have as many groups as rows, which both steps find.
    pub fn can_be_added(&self) -> bool {
        let exact = |function: &Arc<AggregateFunctionExpr>| {
            let floats = function.expressions().iter().any(|argument| {
                let of = argument.data_type(&self.node[0].children()[0].schema());
                of.map_or(true, |of| of.is_floating())
            });
            match function.fun().name() {
                _ if function.is_distinct() => false,
                "count" | "sum" | "avg" | "bool_and" | "bool_or" | "bit_and" | "bit_or" => true,
                "min" | "max" => !floats,
                _ => false,
            }
        };
        let theirs = self.node[0].downcast_ref::<AggregateExec>();
        theirs.is_some_and(|theirs| is_by_one_integer(theirs) && theirs.aggr_expr().iter().all(exact))
    }

    /// The same step, whose node is not one of the plan's.
    pub fn with_first_added(self) -> FirstStep {
        FirstStep { added: 1, ..self }
    }
}

fn is_by_one_integer(aggregate: &AggregateExec) -> bool {
    match aggregate.group_expr().expr() {
        [(key, _)] => key.data_type(&aggregate.input().schema()).is_ok_and(|of| has_range(&of)),
        _ => false,
    }
}

/// Whether we find the groups of an aggregate's rows faster than DataFusion's hash table, if they are few, or
/// their keys lie close.
pub(crate) fn finds_groups(aggregate: &AggregateExec) -> bool {
    let schema = aggregate.input().schema();
    let keys = aggregate.group_expr().expr().iter();
    let types = keys.map(|(key, _)| key.data_type(&schema)).collect::<Result<Vec<_>>>();
    types.is_ok_and(|types| are_remembered(types.iter()))
}

/// Whether a function has states of groups, whatever the order of the rows.
pub(crate) fn has_states_of_groups(function: &Arc<AggregateFunctionExpr>) -> bool {
    function.groups_accumulator_supported() && function.order_bys().is_empty()
}

impl fmt::Debug for FirstStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FirstStep({})", self.steps)
    }
}

impl Operator for FirstStep {
    fn nodes(&self) -> &[Arc<dyn ExecutionPlan>] {
        &self.node
    }

    fn steps(&self) -> &str {
        &self.steps
    }

    fn translated(&self, nodes: Vec<Arc<dyn ExecutionPlan>>) -> Result<Replaced> {
        let ours = FirstStep::of(&nodes[0], self.always);
        Ok(replaced(nodes[0].clone(), ours.map(|ours| FirstStep { added: self.added, ..ours })))
    }

    fn added(&self) -> usize {
        self.added
    }

    fn stays_on_device(&self) -> bool {
        false
    }

    fn execute(&self, task: Task<'_>, open: Open<'_>) -> Result<SendableRecordBatchStream> {
        let (Some(theirs), Source::Host(input)) =
            (self.node[0].downcast_ref::<AggregateExec>(), open(0, task.partition)?)
        else {
            return internal_err!("a first step on the CPU without rows there");
        };
        let options = &task.context.session_config().options().execution;
        // The last step needs memory as well, and cannot take any of this.
        let partitions = theirs.input().output_partitioning().partition_count().max(1);
        let most_bytes = match task.context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / (4 * partitions),
            _ => usize::MAX,
        };
        let by = theirs.group_expr();
        let groups = Groups {
            keys: by.input_exprs(),
            values: groups_of(&by.group_schema(&input.schema())?, most_bytes / 2)?,
            states: theirs
                .aggr_expr()
                .iter()
                .zip(theirs.filter_expr())
                .map(States::new)
                .collect::<Result<_>>()?,
            numbers: vec![],
        };
        let stream = Grouped {
            groups,
            schema: task.schema.clone(),
            batch_rows: task.batch_rows(),
            probed: Probed {
                least: options.skip_partial_aggregation_probe_rows_threshold,
                most: options.skip_partial_aggregation_probe_ratio_threshold,
                rows: 0,
            },
            most_bytes,
            reservation: task.returned_reservation(),
            counters: Counters::new(task.metrics, task.partition, false),
            skipped: MetricBuilder::new(task.metrics).counter("skipped_aggregation_rows", task.partition),
            input: Some(input),
            skips: false,
            ready: VecDeque::new(),
        };
        Ok(stream_of_batches(task.schema.clone(), stream))
    }

    fn execute_on_device(&self, _: Task<'_>, _: Open<'_>) -> Result<DeviceBatches> {
        internal_err!("a first step on the CPU leaves nothing on a device")
    }
}

/// The states of one function.
struct States {
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    /// The function's own `FILTER` condition, if any.
    filter: Option<Arc<dyn PhysicalExpr>>,
    states: Box<dyn GroupsAccumulator>,
}

impl States {
    fn new(
        (function, filter): (&Arc<AggregateFunctionExpr>, &Option<Arc<dyn PhysicalExpr>>),
    ) -> Result<States> {
        let (arguments, filter) = (function.expressions(), filter.clone());
        Ok(States { arguments, filter, states: function.create_groups_accumulator()? })
    }

    /// The arguments of a batch, and which of its rows count.
    fn arguments(&self, batch: &RecordBatch) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
        let filter = self.filter.as_ref().map(|filter| evaluated(filter, batch)).transpose()?;
        let arguments = self.arguments.iter().map(|argument| evaluated(argument, batch));
        Ok((arguments.collect::<Result<_>>()?, filter.map(|filter| filter.as_boolean().clone())))
    }
}

fn evaluated(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<ArrayRef> {
    expr.evaluate(batch)?.into_array(batch.num_rows())
}

/// The groups so far, with their states.
struct Groups {
    keys: Vec<Arc<dyn PhysicalExpr>>,
    values: Box<dyn GroupValues>,
    states: Vec<States>,
    /// The group of each row of a batch.
    numbers: Vec<usize>,
}

impl Groups {
    fn keys(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.keys.iter().map(|key| evaluated(key, batch)).collect()
    }

    /// Adds the rows of a batch.
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.values.intern(&self.keys(batch)?, &mut self.numbers)?;
        let groups = self.values.len();
        for one in &mut self.states {
            let (arguments, filter) = one.arguments(batch)?;
            one.states.update_batch(&arguments, &self.numbers, filter.as_ref(), groups)?;
        }
        Ok(())
    }

    /// The bytes in memory.
    fn size(&self) -> usize {
        let states: usize = self.states.iter().map(|one| one.states.size()).sum();
        states + self.values.size() + self.numbers.capacity() * size_of::<usize>()
    }

    /// Takes the states of all groups, and forgets these.
    fn taken(&mut self, schema: &SchemaRef) -> Result<RecordBatch> {
        let mut columns = self.values.emit(EmitTo::All)?;
        for one in &mut self.states {
            columns.extend(one.states.state(EmitTo::All)?);
        }
        self.values.clear_shrink(0);
        self.numbers = vec![];
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }

    /// The states of each single row of a batch.
    fn of_rows(&self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let mut columns = self.keys(batch)?;
        for one in &self.states {
            let (arguments, filter) = one.arguments(batch)?;
            columns.extend(one.states.convert_to_state(&arguments, filter.as_ref())?);
        }
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }
}

/// Tells whether a first step is worth its while: not if nearly each row is a group.
struct Probed {
    /// The rows before which nothing is said.
    least: usize,
    /// The most groups for each row.
    most: f64,
    rows: usize,
}

impl Probed {
    fn is_vain(&mut self, rows: usize, groups: usize) -> bool {
        self.rows += rows;
        self.rows >= self.least && groups as f64 / self.rows as f64 > self.most
    }
}

/// A stream of the states of a partition.
struct Grouped {
    groups: Groups,
    schema: SchemaRef,
    /// The number of rows in an output batch.
    batch_rows: usize,
    probed: Probed,
    /// The bytes of groups beyond which they leave.
    most_bytes: usize,
    reservation: MemoryReservation,
    counters: Counters,
    /// The rows that were not grouped.
    skipped: Count,
    /// `None` once all has been read.
    input: Option<SendableRecordBatchStream>,
    /// Whether rows are not grouped any more.
    skips: bool,
    ready: VecDeque<RecordBatch>,
}

impl Grouped {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.skips {
            self.skipped.add(batch.num_rows());
            self.ready.push_back(self.groups.of_rows(batch, &self.schema)?);
            return Ok(());
        }
        self.groups.add(batch)?;
        self.skips = self.probed.is_vain(batch.num_rows(), self.groups.values.len());
        // The last step merges the states of a group that leave one after the other.
        let bytes = self.groups.size();
        if self.skips || bytes > self.most_bytes || self.reservation.try_resize(bytes).is_err() {
            self.take()?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<()> {
        if !self.groups.values.is_empty() {
            let states = self.groups.taken(&self.schema)?;
            self.ready.extend(parts(&states, self.batch_rows));
        }
        self.reservation.free();
        Ok(())
    }
}

impl BatchSource<RecordBatch> for Grouped {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch.record_output(&self.counters.baseline)));
            }
            let Some(input) = &mut self.input else { return Ok(None) };
            let next = input.next().await.transpose()?;
            let timed = self.counters.baseline.elapsed_compute().clone();
            let _timer = timed.timer();
            match next {
                None => {
                    // The input's resources are not needed any more.
                    self.input = None;
                    self.take()?;
                }
                Some(batch) => {
                    self.counters.rows_in.add(batch.num_rows());
                    self.add(&batch)?;
                }
            }
        }
    }
}
