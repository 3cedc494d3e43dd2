//! A filter on the CPU that shares its work with DataFusion: our operators test the fixed-width columns, and
//! text against patterns for which DataFusion's kernels run regular expressions. Its kernels test the other
//! text of the remaining rows, and move the output.
//!
//! The whole condition still has a counterpart of ours, and no row of it can fail, so the order in which its
//! parts are tested does not matter.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bowstring::Stream;
use bowstring::compute::{BoundQuery, Query};
use bowstring::expr::Expr;
use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{and, filter_record_batch, prep_null_mask_filter};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::{LikeExpr, Literal};
use datafusion::physical_expr::{conjunction, split_conjunction};
use datafusion::physical_plan::PhysicalExpr;

use crate::bridge::{array_out, batch_in};
use crate::error::{external, refused};
use crate::expression::translate;
use crate::inputs::Inputs;
use crate::made::options;

/// If at most one row in this many passes our part, the rows are moved before the rest is tested;
/// DataFusion's own conjunctions do the same.
const FEW: usize = 5;

/// A condition split in two parts.
#[derive(Debug)]
pub(crate) struct Masked {
    columns: Vec<usize>,
    schema: SchemaRef,
    /// A single column: whether our part is true.
    truth: BoundQuery,
    rest: Option<Arc<dyn PhysicalExpr>>,
}

impl Masked {
    /// Splits conditions over an input; `None` if no part is ours, or if any row can fail.
    pub fn of(
        conditions: &[Arc<dyn PhysicalExpr>],
        schema: &datafusion::arrow::datatypes::SchemaRef,
    ) -> Option<Masked> {
        let mut inputs = Inputs::of(schema);
        let (mut ours, mut rest): (Option<Expr>, Vec<Arc<dyn PhysicalExpr>>) = (None, vec![]);
        for part in conditions.iter().flat_map(split_conjunction) {
            let made = translate(part, &mut Inputs::of(schema))?;
            if made.can_fail {
                return None;
            }
            if made.extra_pass && !is_regular_expression(part) {
                rest.push(part.clone());
                continue;
            }
            let made = translate(part, &mut inputs)?.expr;
            ours = Some(match ours {
                None => made,
                Some(before) => before & made,
            });
        }
        let truth = Query::new().select([ours?]).bind(&inputs.schema(), &options()).ok()?;
        let rest = (!rest.is_empty()).then(|| conjunction(rest));
        Some(Masked { columns: inputs.used().to_vec(), schema: inputs.schema(), truth, rest })
    }

    /// Selected columns of the rows for which the whole condition is true; `None` if no row passes.
    pub fn filter(
        &self,
        batch: &RecordBatch,
        columns: &[usize],
        stream: &Stream,
    ) -> Result<Option<RecordBatch>> {
        let ours = batch_in(batch, &self.columns, &self.schema)?;
        let truth = self.truth.run(&ours, stream).wait().map_err(external)?;
        let mask = match truth.columns() {
            [truth] => without_nulls(array_out(truth)?.as_boolean()),
            _ => return datafusion::common::internal_err!("a condition of more than one column"),
        };
        let count = mask.true_count();
        if count == 0 {
            return Ok(None);
        }
        let few = count <= batch.num_rows() / FEW;
        let (batch, mask) = match &self.rest {
            None => (batch.clone(), mask),
            Some(rest) if few => {
                let few = filter_record_batch(batch, &mask).map_err(refused)?;
                let mask = truth_of(rest, &few)?;
                (few, mask)
            }
            Some(rest) => (batch.clone(), and(&mask, &truth_of(rest, batch)?).map_err(refused)?),
        };
        let batch = batch.project(columns).map_err(refused)?;
        match mask.true_count() {
            0 => Ok(None),
            all if all == batch.num_rows() => Ok(Some(batch)),
            _ => filter_record_batch(&batch, &mask).map(Some).map_err(refused),
        }
    }
}

/// Whether arrow's kernel makes a test of text a regular expression. It makes none if the pattern is one
/// fragment, perhaps after `%` or before it.
fn is_regular_expression(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let Some(like) = expr.downcast_ref::<LikeExpr>() else { return false };
    let pattern = like.pattern().downcast_ref::<Literal>().and_then(|literal| literal.value().try_as_str());
    let Some(Some(pattern)) = pattern else { return false };
    let fragment = pattern.strip_prefix('%').unwrap_or(pattern);
    let fragment = fragment.strip_suffix('%').unwrap_or(fragment);
    fragment.contains(['%', '_', '\\'])
}

pub(crate) fn truth_of(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let truth = expr.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(without_nulls(truth.as_boolean()))
}

/// Treats null as false.
fn without_nulls(mask: &BooleanArray) -> BooleanArray {
    if mask.null_count() == 0 { mask.clone() } else { prep_null_mask_filter(mask) }
}
