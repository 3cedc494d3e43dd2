//! The first rows of an order. DataFusion's sort with a limit keeps the first rows of all batches; below it,
//! on a device, ours returns the first rows of each upload, so that only these come down.

use std::sync::Arc;

use bowstring::compute::{SortColumn, SortOptions, sort_by};
use bowstring::{DeviceBatch, Stream};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::types::is_flat;

/// An order by columns, and how many of its first rows are needed.
#[derive(Clone, Debug)]
pub(crate) struct Top {
    by: Vec<(usize, SortOptions)>,
    rows: usize,
}

impl Top {
    /// The order and the limit of a sort; `None` if it has no limit, or if devices do not sort by its keys.
    pub fn of(sort: &SortExec) -> Option<Top> {
        let schema = sort.input().schema();
        let by = sort.expr().iter().map(|key| {
            let column = key.expr.downcast_ref::<Column>()?.index();
            let options =
                SortOptions { descending: key.options.descending, nulls_first: key.options.nulls_first };
            let data_type = schema.field(column).data_type();
            let sorts = is_flat(data_type) && !matches!(data_type, DataType::Interval(_));
            sorts.then_some((column, options))
        });
        Some(Top { by: by.collect::<Option<_>>()?, rows: sort.fetch()? })
    }

    /// The first rows of a batch. Rows with equal keys stay in their order.
    pub async fn first(&self, batch: DeviceBatch, stream: &Stream) -> bowstring::Result<DeviceBatch> {
        if batch.len() <= self.rows {
            return Ok(batch);
        }
        let by = self.by.iter().map(|(column, options)| SortColumn::new(&batch.columns()[*column], *options));
        let by: Vec<_> = by.collect();
        let first = sort_by(&batch, &by, Some(self.rows), stream);
        first.await
    }

    /// The order as text, for `EXPLAIN`.
    pub fn text(&self, schema: &Schema) -> String {
        let by = self.by.iter().map(|(column, options)| {
            let direction = if options.descending { "DESC" } else { "ASC" };
            let nulls = if options.nulls_first { "FIRST" } else { "LAST" };
            format!("{}@{column} {direction} NULLS {nulls}", schema.field(*column).name())
        });
        format!("top={} by [{}]", self.rows, by.collect::<Vec<_>>().join(", "))
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
