//! Subqueries of one value. `ScalarSubqueryExec` runs them before its input, so their values are unknown when
//! a plan is made, and known when it runs.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

/// The value of a subquery, or null if it has not run; `None` if the expression is none.
pub(crate) fn value(expr: &Arc<dyn PhysicalExpr>) -> Option<ScalarValue> {
    if !expr.is::<ScalarSubqueryExpr>() {
        return None;
    }
    let none = Arc::new(Schema::empty());
    match expr.evaluate(&RecordBatch::new_empty(none.clone())) {
        Ok(ColumnarValue::Scalar(value)) => Some(value),
        _ => ScalarValue::try_from(expr.data_type(&none).ok()?).ok(),
    }
}

/// Whether an expression has a subquery. Even if its value is known, it may be another one when the plan runs
/// again.
pub(crate) fn has_subquery(expr: &Arc<dyn PhysicalExpr>) -> bool {
    expr.exists(|expr| Ok(expr.is::<ScalarSubqueryExpr>())).unwrap_or(true)
}

/// Whether an expression has a subquery that has not run.
fn is_pending(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let pending =
        |expr: &Arc<dyn PhysicalExpr>| Ok(expr.is::<ScalarSubqueryExpr>() && expr.evaluate(&none).is_err());
    expr.exists(pending).unwrap_or(true)
}

/// Whether an expression of a node has a subquery.
pub(crate) fn node_has_subquery(node: &dyn ExecutionPlan) -> Result<bool> {
    any_expression(node, has_subquery)
}

/// Whether an expression of a node has a subquery that has not run.
pub(crate) fn node_is_pending(node: &dyn ExecutionPlan) -> Result<bool> {
    any_expression(node, is_pending)
}

fn any_expression(node: &dyn ExecutionPlan, holds: impl Fn(&Arc<dyn PhysicalExpr>) -> bool) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(&mut |expr| {
        found |= holds(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
