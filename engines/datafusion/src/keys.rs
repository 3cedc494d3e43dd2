//! Translates keys of groups and joins. Keys that are equal for DataFusion are equal for us: zeros become one
//! zero, and other floats are told apart by their bits.

use std::sync::Arc;

use bowstring::expr::Expr;
use datafusion::physical_plan::PhysicalExpr;

use crate::comparison::{one_zero, zeros};
use crate::expression::translate;
use crate::inputs::Inputs;
use crate::made::{column_of, has_type};
use crate::rows::{Output, Rows};
use crate::types::is_flat;

/// A key as an expression of ours, and whether any row of it can fail.
pub(crate) fn as_key(key: &Arc<dyn PhysicalExpr>, inputs: &mut Inputs) -> Option<(Expr, bool)> {
    let data_type = key.data_type(inputs.theirs()).ok()?;
    let made = translate(key, inputs)?;
    if !is_flat(&data_type) || made.makes_nan || !has_type(&made.expr, &data_type, inputs) {
        return None;
    }
    let expr = match zeros(&data_type) {
        Some((low, high)) => one_zero(&made.expr, &low, &high),
        None => made.expr,
    };
    Some((expr, made.can_fail))
}

/// Keys as columns, computed only if they have to be.
pub(crate) fn columns_of(keys: &[Arc<dyn PhysicalExpr>], inputs: &mut Inputs) -> Option<Rows> {
    let (mut outputs, mut computed) = (vec![], vec![]);
    for key in keys {
        let (made, _) = as_key(key, inputs)?;
        let has_zeros = zeros(&key.data_type(inputs.theirs()).ok()?).is_some();
        outputs.push(match column_of(key) {
            Some(column) if !has_zeros => Output::Kept(inputs.place(column)?),
            _ => {
                computed.push(made);
                Output::Computed(computed.len() - 1)
            }
        });
    }
    Rows::new(inputs, &computed, outputs)
}
