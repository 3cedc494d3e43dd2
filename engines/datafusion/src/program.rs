//! A chain translated: what runs, bound to the columns that it reads.

use arrow_schema::SchemaRef;
use bowstring::compute::{Aggregates, Predicate, Projection};
use bowstring::expr::Expr;
use datafusion::arrow::datatypes::DataType;
use datafusion::physical_plan::aggregates::AggregateMode;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use std::sync::Arc;

use crate::aggregate::States;
use crate::arguments::Arguments;
use crate::chain::Chain;
use crate::expression::{Made, has_type, is_text, options, translate};
use crate::inputs::Inputs;
use crate::masked::Masked;

/// What a chain does to batches of its input.
#[derive(Debug)]
pub(crate) struct Program {
    /// The condition, where it is not part of the work.
    pub condition: Option<Condition>,
    /// The same in two parts, where text is tested or moved in host memory.
    pub masked: Option<Masked>,
    pub work: Work,
    /// Rows after which a partition ends.
    pub fetch: Option<usize>,
    /// Rows of a batch that leaves, where a filter says so.
    pub batch_rows: Option<usize>,
    /// What the cost rule asks.
    pub shape: Shape,
}

/// Which rows are kept.
#[derive(Debug)]
pub(crate) struct Condition {
    /// Over the columns that it tests alone.
    pub tested: Tested,
    /// Over the columns that the work is given, which come first, and those that it tests.
    pub whole: Tested,
}

/// A condition over some columns of the input.
#[derive(Debug)]
pub(crate) struct Tested {
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    pub predicate: Predicate,
}

/// What is made of the rows that are kept.
#[derive(Debug)]
pub(crate) enum Work {
    Rows(Rows),
    Aggregate(Box<Aggregated>),
}

/// Rows of columns that are as they were, or computed.
#[derive(Debug)]
pub(crate) struct Rows {
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    /// Over `columns`; none where nothing is computed.
    pub projection: Option<Projection>,
    pub outputs: Vec<Output>,
}

/// A column that leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// One of `columns`.
    Kept(usize),
    /// One of the projection's.
    Computed(usize),
}

/// One row of all rows.
#[derive(Debug)]
pub(crate) struct Aggregated {
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    /// The condition is part of it, or comes before it.
    pub aggregates: Aggregates,
    /// The same, without summing.
    pub arguments: Arguments,
    pub states: States,
    pub mode: AggregateMode,
}

/// What a program is made of, as far as its cost goes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shape {
    pub filters: bool,
    pub aggregates: bool,
    /// Columns that are computed.
    pub computed: usize,
    /// Casts, and tests of text, among all that is computed.
    pub extra_passes: bool,
    /// The same in the condition.
    pub condition_extra_passes: bool,
    /// Columns that are moved and are not of fixed width.
    pub other_moved: usize,
    /// Text is left to DataFusion's kernels.
    pub masked: bool,
}

impl Program {
    /// A chain over an input of this schema, whole; `None` where any part of it has no counterpart.
    pub fn translate(chain: &Chain, input: &Arc<dyn ExecutionPlan>, on_the_host: bool) -> Option<Program> {
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
                // Part of the aggregate where no row can fail: one that is left out could, in a cast that goes before.
                conditional = shape.filters && !states.can_fail;
                let within = if conditional { condition(chain, &mut inputs)? } else { None };
                let (predicate, schema) = (within.as_ref().map(|made| &made.expr), inputs.schema());
                let aggregates =
                    Aggregates::bind(&states.aggregations, predicate, &schema, &options()).ok()?;
                let bound = |made: &Made| Predicate::bind(&made.expr, &schema, &options());
                let arguments = Arguments {
                    condition: within.as_ref().map(bound).transpose().ok()?,
                    values: Projection::bind(&states.arguments, &schema, &options()).ok()?,
                };
                let (columns, mode) = (inputs.used().to_vec(), aggregate.mode);
                Work::Aggregate(Box::new(Aggregated { columns, schema, aggregates, arguments, states, mode }))
            }
            None => Work::Rows(rows(chain, &mut inputs, &mut shape)?),
        };
        let mut tested = |mut inputs: Inputs| {
            let made = condition(chain, &mut inputs)??;
            shape.condition_extra_passes = made.extra_pass;
            let predicate = Predicate::bind(&made.expr, &inputs.schema(), &options()).ok()?;
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

/// All conditions as one. What can fail may only come first: DataFusion asks the others of the rows that are left.
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
            let fixed = data_type.is_primitive() || data_type == DataType::Boolean;
            shape.other_moved += usize::from(!fixed);
            continue;
        }
        // Where a NaN that arithmetic made goes to is not known: it may be sorted, or grouped by.
        if made.makes_nan || is_text(&data_type) || !has_type(&made.expr, &data_type, inputs) {
            return None;
        }
        shape.extra_passes |= made.extra_pass;
        outputs.push(Output::Computed(computed.len()));
        computed.push(made.expr);
    }
    shape.computed = computed.len();
    let schema = inputs.schema();
    let projection = match computed.is_empty() {
        true => None,
        false => Some(Projection::bind(&computed, &schema, &options()).ok()?),
    };
    Some(Rows { columns: inputs.used().to_vec(), schema, projection, outputs })
}

fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<datafusion::physical_expr::expressions::Column>().map(|column| column.index())
}
