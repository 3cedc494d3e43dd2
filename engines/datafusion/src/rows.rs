//! Columns that are copied or computed.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bowstring::compute::{BoundQuery, Query};
use bowstring::expr::Expr;
use bowstring::{DeviceBatch, Pending, Stream};

use crate::inputs::Inputs;
use crate::made::options;

/// Columns that are copied or computed.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub columns: Vec<usize>,
    pub schema: SchemaRef,
    /// Bound to `columns`; `None` if no column is computed.
    pub projection: Option<BoundQuery>,
    pub outputs: Vec<Output>,
}

/// The source of an output column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// The index of one of `columns`.
    Kept(usize),
    /// The index of one of the projection's results.
    Computed(usize),
}

impl Rows {
    /// The columns of `inputs`, and what `computed` says of them; `None` if it cannot be bound.
    pub fn new(inputs: &Inputs, computed: &[Expr], outputs: Vec<Output>) -> Option<Rows> {
        let schema = inputs.schema();
        let projection = match computed {
            [] => None,
            computed => Some(Query::new().select(computed).bind(&schema, &options()).ok()?),
        };
        Some(Rows { columns: inputs.used().to_vec(), schema, projection, outputs })
    }

    /// Begins to compute the output columns on a device. Columns of the batch after ours are not used.
    pub fn begin(self, batch: &DeviceBatch, stream: &Stream) -> bowstring::Result<Pending<DeviceBatch>> {
        let columns = batch.columns()[..self.schema.fields().len()].to_vec();
        let batch = DeviceBatch::try_new(self.schema.clone(), columns, batch.len())?;
        Ok(match &self.projection {
            None => Pending::known(self.of(&batch, None)),
            Some(projection) => {
                projection.run(&batch, stream).map(move |computed| self.of(&batch, Some(computed)))
            }
        })
    }

    /// The output columns, of those of a batch and of computed ones.
    fn of(&self, batch: &DeviceBatch, computed: Option<DeviceBatch>) -> bowstring::Result<DeviceBatch> {
        let (mut fields, mut columns) = (vec![], vec![]);
        for output in &self.outputs {
            let (from, column) = match (*output, &computed) {
                (Output::Computed(column), Some(computed)) => (computed, column),
                (Output::Kept(column) | Output::Computed(column), _) => (batch, column),
            };
            fields.push(from.schema().field(column).clone().with_nullable(true));
            columns.push(from.columns()[column].clone());
        }
        DeviceBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns, batch.len())
    }
}
