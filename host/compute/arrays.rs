//! Small steps on arrays of which other operations consist.

use std::sync::Arc;

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Field, Schema};

use crate::array::Bitmap;
use crate::compute::evaluated::Evaluated;
use crate::exchange::from_arrow;
use crate::expr::{Expr, Options};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// Computes one column of others, which it knows by their numbers.
pub(super) async fn computed(of: Expr, columns: Vec<DeviceArray>, stream: &Stream) -> Result<DeviceArray> {
    let batch = unnamed(columns)?;
    let evaluated = Evaluated::bind(&[of], batch.schema(), &Options::default())?;
    let read = evaluated.read(&batch)?;
    Ok(evaluated.evaluate(read, stream.clone()).await?.columns()[0].clone())
}

/// A batch of columns whose names do not matter.
pub(super) fn unnamed(columns: Vec<DeviceArray>) -> Result<DeviceBatch> {
    let field =
        |(i, column): (usize, &DeviceArray)| Field::new(i.to_string(), column.data_type().clone(), true);
    let fields: Vec<Field> = columns.iter().enumerate().map(field).collect();
    let rows = columns.first().map_or(0, DeviceArray::len);
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, rows)
}

/// Returns the array with nulls where `counts`, Booleans without nulls, is false.
pub(super) fn where_true(values: &DeviceArray, counts: &DeviceArray) -> Result<DeviceArray> {
    let mut parts = values.clone().into_parts();
    parts.validity = Some(Bitmap { buffer: counts.buffers()[0].clone(), offset: counts.offset() });
    parts.null_count = None;
    DeviceArray::try_new(parts)
}

/// An array without rows.
pub(super) fn empty(of: &DataType, stream: &Stream) -> Result<DeviceArray> {
    stream.upload(&from_arrow(&new_empty_array(of))?)
}
