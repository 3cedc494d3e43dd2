//! Narrows what the scan of a join's right side reads: to the bounds of the left keys, which DataFusion has
//! pushed into the scan as a filter whose values come later.

use std::any::Any;
use std::sync::Arc;

use arrow_schema::{Field, Schema};
use bowstring::compute::Query;
use bowstring::expr::{max, min, nth};
use bowstring::{DeviceArray, DeviceBatch, Stream};
use datafusion::common::{NullEquality, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr, lit};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan as _, PhysicalExpr};

use crate::bridge::array_out;
use crate::error::external;
use crate::made::options;
use crate::streams::arrived;

/// The filter of a right side, and the keys there.
#[derive(Clone, Debug)]
pub(crate) struct Narrowed {
    filter: Arc<DynamicFilterPhysicalExpr>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
}

impl Narrowed {
    /// The filter that a join has pushed into its right side; `None` if there is none, or if right rows
    /// outside the bounds matter.
    pub fn of(join: &HashJoinExec) -> Option<Narrowed> {
        let filter: Arc<dyn Any + Send + Sync> = join.dynamic_expressions_produced().into_iter().next()?;
        let filter = filter.downcast::<DynamicFilterPhysicalExpr>().ok()?;
        let plain = join.null_equality() == NullEquality::NullEqualsNothing && !join.null_aware;
        let shared = *join.partition_mode() == PartitionMode::CollectLeft;
        let keys = join.on().iter().map(|(_, right)| right.clone()).collect();
        (plain && shared).then_some(Narrowed { filter, keys })
    }

    /// Sets the filter to the bounds of all left keys. If they are not known, it lets all rows pass.
    pub async fn to(&self, left: Option<&[DeviceArray]>, stream: &Stream) -> Result<()> {
        let mut all: Option<Arc<dyn PhysicalExpr>> = None;
        for (key, values) in self.keys.iter().zip(left.unwrap_or_default()) {
            let Some([low, high]) = bounds(values, stream).await? else { continue };
            let within = match low.is_null() {
                // No left row has a key, so none has a partner.
                true => lit(false),
                false => and(
                    Arc::new(BinaryExpr::new(key.clone(), Operator::GtEq, lit(low))),
                    Arc::new(BinaryExpr::new(key.clone(), Operator::LtEq, lit(high))),
                ),
            };
            all = Some(match all {
                None => within,
                Some(others) => and(others, within),
            });
        }
        if let Some(all) = all {
            self.filter.update(all)?;
        }
        self.filter.mark_complete();
        Ok(())
    }
}

fn and(left: Arc<dyn PhysicalExpr>, right: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(left, Operator::And, right))
}

/// The least and the greatest value of a column; `None` if its values have no such order. Floats have
/// several.
async fn bounds(of: &DeviceArray, stream: &Stream) -> Result<Option<[ScalarValue; 2]>> {
    if of.data_type().is_floating() {
        return Ok(None);
    }
    let field = Field::new("key", of.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let query = Query::new().aggregate(&[min(nth(0)), max(nth(0))]);
    let Ok(query) = query.bind(&schema, &options()) else { return Ok(None) };
    let batch = DeviceBatch::try_new(schema, vec![of.clone()], of.len()).map_err(external)?;
    let row = query.run(&batch, stream).await.map_err(external)?;
    let row = arrived(stream.download_later(&row).map_err(external)?).await.map_err(external)?;
    let value = |column: usize| ScalarValue::try_from_array(&array_out(&row.columns()[column])?, 0);
    Ok(Some([value(0)?, value(1)?]))
}
