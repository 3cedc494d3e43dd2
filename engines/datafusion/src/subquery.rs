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

/// Whether an expression has a subquery that has not run.
pub(crate) fn is_pending(expr: &Arc<dyn PhysicalExpr>) -> bool {
    let none = RecordBatch::new_empty(Arc::new(Schema::empty()));
    let pending =
        |expr: &Arc<dyn PhysicalExpr>| Ok(expr.is::<ScalarSubqueryExpr>() && expr.evaluate(&none).is_err());
    expr.exists(pending).unwrap_or(true)
}

/// Whether a node has one.
pub(crate) fn has_pending(node: &dyn ExecutionPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(&mut |expr| {
        found |= is_pending(expr);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
