//! Orders, and their first rows. DataFusion's sort with a limit keeps the first rows of all batches; below
//! it, on a device, ours returns the first rows of each upload, so that only these come down.

use std::sync::Arc;

use bowstring::compute::{SortColumn, SortOptions, sort_by};
use bowstring::{DeviceBatch, Stream};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalSortExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::types::is_flat;

/// The column and the direction of a key; `None` if devices do not sort by it.
pub(crate) fn sort_column(key: &PhysicalSortExpr, schema: &Schema) -> Option<(usize, SortOptions)> {
    let column = key.expr.downcast_ref::<Column>()?.index();
    let options = SortOptions { descending: key.options.descending, nulls_first: key.options.nulls_first };
    let data_type = schema.field(column).data_type();
    let sorts = is_flat(data_type) && !matches!(data_type, DataType::Interval(_));
    sorts.then_some((column, options))
}

/// An order by columns.
#[derive(Clone, Debug)]
pub(crate) struct Order(Vec<(usize, SortOptions)>);

impl Order {
    /// The order of a sort; `None` if devices do not sort by its keys.
    pub fn of(sort: &SortExec) -> Option<Order> {
        let schema = sort.input().schema();
        let by = sort.expr().iter().map(|key| sort_column(key, &schema));
        by.collect::<Option<_>>().map(Order)
    }

    /// The numbers of the columns, and their directions.
    pub fn columns(&self) -> &[(usize, SortOptions)] {
        &self.0
    }

    /// The rows of a batch in this order, or the first of them. Rows with equal keys stay in their order.
    pub async fn sorted(
        &self,
        batch: &DeviceBatch,
        limit: Option<usize>,
        stream: &Stream,
    ) -> bowstring::Result<DeviceBatch> {
        let by = self.0.iter().map(|(column, options)| SortColumn::new(&batch.columns()[*column], *options));
        let by: Vec<_> = by.collect();
        let sorted = sort_by(batch, &by, limit, stream);
        sorted.await
    }

    /// The order as text, for `EXPLAIN`.
    pub fn text(&self, schema: &Schema) -> String {
        let by = self.0.iter().map(|(column, options)| {
            let direction = if options.descending { "DESC" } else { "ASC" };
            let nulls = if options.nulls_first { "FIRST" } else { "LAST" };
            format!("{}@{column} {direction} NULLS {nulls}", schema.field(*column).name())
        });
        by.collect::<Vec<_>>().join(", ")
    }
}

/// An order, and how many of its first rows are needed.
#[derive(Clone, Debug)]
pub(crate) struct Top {
    order: Order,
    rows: usize,
}

impl Top {
    /// The order and the limit of a sort; `None` if it has no limit, or if devices do not sort by its keys.
    pub fn of(sort: &SortExec) -> Option<Top> {
        Some(Top { order: Order::of(sort)?, rows: sort.fetch()? })
    }

    /// The first rows of a batch, in any order if there are no others.
    pub async fn first(&self, batch: DeviceBatch, stream: &Stream) -> bowstring::Result<DeviceBatch> {
        match batch.len() <= self.rows {
            true => Ok(batch),
            false => self.order.sorted(&batch, Some(self.rows), stream).await,
        }
    }

    /// The order as text, for `EXPLAIN`.
    pub fn text(&self, schema: &Schema) -> String {
        format!("top={} by [{}]", self.rows, self.order.text(schema))
    }
}

/// A projection that returns all columns: the chain of a sort that reads its input directly.
pub(crate) fn all_columns(input: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let columns = schema.fields().iter().enumerate().map(|(number, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), number)),
        alias: field.name().clone(),
    });
    Ok(Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), input.clone())?))
}
