//! A translated chain: the operations, bound to the columns that they read.

use arrow_schema::SchemaRef;
use bowstring::DeviceBatch;
use bowstring::compute::{BoundQuery, Query};
use bowstring::expr::Expr;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef as TheirSchema};
use datafusion::error::Result;
use datafusion::physical_plan::aggregates::{AccumulatorItem, AggregateMode, finalize_aggregation};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::sync::Arc;

use crate::aggregate::States;
use crate::arguments::Arguments;
use crate::chain::Chain;
use crate::config::DeviceOptions;
use crate::error::refused;
use crate::expression::translate;
use crate::inputs::Inputs;
use crate::made::{Made, column_of, has_type, options as meaning};
use crate::masked::Masked;
use crate::rows::{Output, Rows};
use crate::types::has_fixed_width;

/// The operations of a chain on batches of its input.
#[derive(Debug)]
pub(crate) struct Program {
    /// The condition, unless the work applies it itself.
    pub condition: Option<Condition>,
    /// The same condition split in two, if text is tested or moved in host memory.
    pub masked: Option<Masked>,
    pub work: Work,
    /// The number of rows after which a partition ends.
    pub fetch: Option<usize>,
    /// The number of rows in an output batch, if a filter specifies it.
    pub batch_rows: Option<usize>,
    /// The facts that the cost rule uses.
    pub shape: Shape,
}

/// The condition that selects rows.
#[derive(Debug)]
pub(crate) struct Condition {
    /// Bound to the columns that it tests only.
    pub tested: Tested,
    /// Bound to the columns of the work, which come first, and those that it tests.
    pub whole: Tested,
}

/// A condition bound to some columns of the input.
#[derive(Debug)]
pub(crate) struct Tested {
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    pub predicate: BoundQuery,
}

/// The work on the rows that pass.
#[derive(Debug)]
pub(crate) enum Work {
    Rows(Box<Rows>),
    Aggregate(Box<Aggregated>),
}

/// An aggregation to one row, or to one for each group.
#[derive(Debug)]
pub(crate) struct Aggregated {
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    /// The aggregates; the condition is part of them, or is applied before.
    pub aggregates: BoundQuery,
    /// The same values without the sums, for runs whose sums overflow.
    pub arguments: Arguments,
    pub states: States,
    pub mode: AggregateMode,
    /// If the rows are reduced to one: its schema, and the expressions that are computed from it.
    pub row: (TheirSchema, Option<Vec<Arc<dyn PhysicalExpr>>>),
    /// If the groups are finished: their conversion to DataFusion's types.
    pub finished: Option<BoundQuery>,
}

impl Aggregated {
    /// Drops the columns that only the condition reads; they come last.
    pub fn without_condition(&self, kept: &DeviceBatch) -> bowstring::Result<DeviceBatch> {
        let columns = kept.columns()[..self.columns.len()].to_vec();
        DeviceBatch::try_new(self.schema.clone(), columns, kept.len())
    }

    /// Makes the one row of which the accumulators have the states.
    pub fn one_row(&self, accumulators: &mut [AccumulatorItem], schema: &TheirSchema) -> Result<RecordBatch> {
        let (of, returned) = &self.row;
        let columns = finalize_aggregation(accumulators, &self.mode)?;
        let row = RecordBatch::try_new(of.clone(), columns).map_err(refused)?;
        let Some(returned) = returned else { return Ok(row) };
        let columns = returned.iter().map(|expr| expr.evaluate(&row)?.into_array(1));
        RecordBatch::try_new(schema.clone(), columns.collect::<Result<_>>()?).map_err(refused)
    }
}

/// The facts about a program that decide its cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub filters: bool,
    pub aggregates: bool,
    /// Whether the aggregates have keys.
    pub groups: bool,
    /// Whether only the first rows of an order are returned.
    pub top: bool,
    /// The number of computed columns.
    pub computed: usize,
    /// Whether a computed value contains a cast or a text test.
    pub extra_passes: bool,
    /// Whether the condition contains a cast or a text test.
    pub condition_extra_passes: bool,
    /// The number of moved columns that are not of fixed width.
    pub other_moved: usize,
    /// Whether text is left to DataFusion's kernels.
    pub masked: bool,
}

impl Program {
    /// Translates a whole chain over an input; `None` if any part of it has no counterpart.
    pub fn translate(
        chain: &Chain,
        input: &Arc<dyn ExecutionPlan>,
        on_the_host: bool,
        options: &DeviceOptions,
    ) -> Option<Program> {
        let schema = input.schema();
        let mut shape = Shape { filters: !chain.conditions.is_empty(), ..Shape::default() };
        let mut inputs = Inputs::of(&schema);
        let mut conditional = false;
        let work = match &chain.aggregate {
            Some(aggregate) => {
                let states = States::translate(aggregate, &mut inputs)?;
                if !states.reads_columns && !shape.filters {
                    return None;
                }
                (shape.aggregates, shape.computed) = (true, states.aggregations.len());
                shape.groups = !states.keys.is_empty();
                let finishes = shape.groups && aggregate.mode != AggregateMode::Partial;
                // On the CPU, groups have a first step of their own, and DataFusion's last one.
                if (shape.groups || chain.merges) && on_the_host {
                    return None;
                }
                // The condition is part of the aggregate only if no row can fail: a row that it excludes
                // could fail in a cast executed earlier.
                conditional = shape.filters && !states.can_fail;
                let within = if conditional { condition(chain, &mut inputs)? } else { None };
                let (predicate, schema) = (within.as_ref().map(|made| &made.expr), inputs.schema());
                let query = predicate.into_iter().fold(Query::new(), Query::filter);
                let query = query.group_by(&states.keys).group_limit(options.device_bytes);
                let query = match &aggregate.sets {
                    Some(sets) => query.grouping_sets(sets.iter().cloned()),
                    None => query,
                };
                let query = query.aggregate(if finishes { &states.results } else { &states.aggregations });
                let aggregates = query.bind(&schema, &meaning()).ok()?;
                let finished = match finishes {
                    true => {
                        let set = aggregate.sets.as_ref().map(|_| aggregate.schema.field(states.keys.len()));
                        let set = set.map(|field| field.data_type());
                        Some(states.finished(&aggregates.schema(), set)?)
                    }
                    false => None,
                };
                let bound = |made: &Made| Query::new().filter(&made.expr).bind(&schema, &meaning());
                let values: Vec<&Expr> = match shape.groups {
                    false => states.arguments.iter().collect(),
                    true => states.keys.iter().chain(&states.of_one_row).collect(),
                };
                let arguments = Arguments {
                    condition: within.as_ref().map(bound).transpose().ok()?,
                    values: Query::new().select(values).bind(&schema, &meaning()).ok()?,
                };
                let (columns, mode) = (inputs.used().to_vec(), aggregate.mode);
                let row = (aggregate.schema.clone(), aggregate.row.clone());
                Work::Aggregate(Box::new(Aggregated {
                    columns,
                    schema,
                    aggregates,
                    arguments,
                    states,
                    mode,
                    row,
                    finished,
                }))
            }
            None => Work::Rows(Box::new(rows(chain, &mut inputs, &mut shape)?)),
        };
        let mut tested = |mut inputs: Inputs| {
            let made = condition(chain, &mut inputs)??;
            // A device tests the rows of many batches, also those after which the partition ends.
            if chain.fetch.is_some() && made.can_fail && !on_the_host {
                return None;
            }
            shape.condition_extra_passes = made.extra_pass;
            let predicate = Query::new().filter(&made.expr).bind(&inputs.schema(), &meaning()).ok()?;
            Some(Tested { columns: inputs.used().to_vec(), schema: inputs.schema(), predicate })
        };
        let condition = match shape.filters {
            true => {
                let condition = Condition { tested: tested(Inputs::of(&schema))?, whole: tested(inputs)? };
                (!conditional).then_some(condition)
            }
            false => None,
        };
        let texts = shape.condition_extra_passes || shape.other_moved > 0;
        let masked = match shape.filters && !shape.aggregates && texts && on_the_host {
            true => Masked::of(&chain.conditions, &schema),
            false => None,
        };
        shape.masked = masked.is_some();
        let (fetch, batch_rows) = (chain.fetch, chain.batch_rows);
        Some(Program { condition, masked, work, fetch, batch_rows, shape })
    }
}

/// Combines all conditions. Only the first may fail: DataFusion tests the others on the remaining rows only.
fn condition(chain: &Chain, inputs: &mut Inputs) -> Option<Option<Made>> {
    let mut all: Option<Made> = None;
    for expr in &chain.conditions {
        let made = translate(expr, inputs)?;
        all = Some(match all {
            None => made,
            Some(_) if made.can_fail => return None,
            Some(before) => Made {
                expr: before.expr & made.expr,
                can_fail: before.can_fail,
                makes_nan: false,
                finite: true,
                extra_pass: before.extra_pass || made.extra_pass,
            },
        });
    }
    match &all {
        Some(made) if !has_type(&made.expr, &DataType::Boolean, inputs) => None,
        _ => Some(all),
    }
}

fn rows(chain: &Chain, inputs: &mut Inputs, shape: &mut Shape) -> Option<Rows> {
    let theirs = inputs.theirs().clone();
    let (mut outputs, mut computed): (Vec<Output>, Vec<Expr>) = (vec![], vec![]);
    for expr in &chain.row {
        let made = translate(expr, inputs)?;
        let data_type = expr.data_type(&theirs).ok()?;
        if let Some(column) = column_of(expr) {
            outputs.push(Output::Kept(inputs.place(column)?));
            let fixed = has_fixed_width(&data_type);
            shape.other_moved += usize::from(!fixed);
            continue;
        }
        // A filter that ends after some rows hides what fails in later ones.
        if chain.fetch.is_some() && made.can_fail {
            return None;
        }
        // The use of a NaN from arithmetic is unknown: the plan may sort or group by it.
        if made.makes_nan || !has_type(&made.expr, &data_type, inputs) {
            return None;
        }
        shape.extra_passes |= made.extra_pass;
        outputs.push(Output::Computed(computed.len()));
        computed.push(made.expr);
    }
    shape.computed = computed.len();
    Rows::new(inputs, &computed, outputs)
}
