//! Small steps on arrays of which other operations consist.

use std::sync::Arc;

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Field, Schema};

use crate::array::Bitmap;
use crate::compute::engine;
use crate::compute::evaluated::Evaluated;
use crate::engine::{GroupFold, Groups};
use crate::exchange::from_arrow;
use crate::expr::{Expr, Options};
use crate::rules::folded_type;
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

/// Returns Booleans, of which none is null, with null in the place of false.
pub(super) fn null_unless_true(counts: &DeviceArray) -> Result<DeviceArray> {
    let mut parts = counts.clone().into_parts();
    parts.validity = Some(Bitmap { buffer: counts.buffers()[0].clone(), offset: counts.offset() });
    parts.null_count = None;
    DeviceArray::try_new(parts)
}

/// An array without rows.
pub(super) fn empty(of: &DataType, stream: &Stream) -> Result<DeviceArray> {
    stream.upload(&from_arrow(&new_empty_array(of))?)
}

/// Folds the values of groups, of which there may be none.
pub(super) async fn fold_groups(
    folds: &[GroupFold],
    groups: &Groups,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    if folds.is_empty() {
        return Ok(vec![]);
    }
    if groups.is_empty() {
        let type_of = |one: &GroupFold| {
            let of = one.values.as_ref().map_or(&DataType::Null, DeviceArray::data_type);
            folded_type(one.fold, of, one.wraps).unwrap_or_else(|| of.clone())
        };
        return folds.iter().map(|one| empty(&type_of(one), stream)).collect();
    }
    engine(stream).fold_groups(folds, groups, stream)?.await
}
