//! A filter of which some is DataFusion's, on the CPU: what is of fixed width is tested by us; text is tested, and whatever is kept is moved,
//! by DataFusion's own kernels, of the rows that are left.
//!
//! The whole condition has a counterpart of ours all the same, none of whose rows can fail: so the order in which its parts are asked
//! is nobody's business.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bowstring::Stream;
use bowstring::compute::Projection;
use bowstring::expr::Expr;
use datafusion::arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::{and, filter_record_batch, prep_null_mask_filter};
use datafusion::error::Result;
use datafusion::physical_expr::{conjunction, split_conjunction};
use datafusion::physical_plan::PhysicalExpr;

use crate::bridge::{array_out, batch_in};
use crate::error::{external, refused};
use crate::expression::{options, translate};
use crate::inputs::Inputs;

/// One row in so many, or fewer, are moved before the rest is asked of them; DataFusion's own conjunctions do the same.
const FEW: usize = 5;

/// A condition in two parts.
#[derive(Debug)]
pub(crate) struct Masked {
    columns: Vec<usize>,
    schema: SchemaRef,
    /// One column: whether our part is true.
    truth: Projection,
    rest: Option<Arc<dyn PhysicalExpr>>,
}

impl Masked {
    /// Conditions over an input in two parts; `None` where we have none, or where a row can fail.
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
            if made.extra_pass {
                rest.push(part.clone());
                continue;
            }
            let made = translate(part, &mut inputs)?.expr;
            ours = Some(match ours {
                None => made,
                Some(before) => before & made,
            });
        }
        let truth = Projection::bind(&[ours?], &inputs.schema(), &options()).ok()?;
        let rest = (!rest.is_empty()).then(|| conjunction(rest));
        Some(Masked { columns: inputs.used().to_vec(), schema: inputs.schema(), truth, rest })
    }

    /// Some columns of the rows of a batch where all of it is true; nothing where it is nowhere.
    pub fn filter(
        &self,
        batch: &RecordBatch,
        columns: &[usize],
        stream: &Stream,
    ) -> Result<Option<RecordBatch>> {
        let ours = batch_in(batch, &self.columns, &self.schema)?;
        let truth = self.truth.evaluate(&ours, stream).wait().map_err(external)?;
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

fn truth_of(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let truth = expr.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(without_nulls(truth.as_boolean()))
}

/// What is null is not true.
fn without_nulls(mask: &BooleanArray) -> BooleanArray {
    if mask.null_count() == 0 { mask.clone() } else { prep_null_mask_filter(mask) }
}
