//! Small steps on arrays of which other operations consist.

use std::sync::Arc;

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Field, Schema};

use crate::array::{Bitmap, Slot};
use crate::compute::evaluated::Evaluated;
use crate::compute::{CastOptions, cast, check_cast, engine};
use crate::engine::{GroupFold, Groups};
use crate::exchange::from_arrow;
use crate::expr::{Expr, Options, if_else, lit, nth};
use crate::rules::{folded_type, value_type, widened_type, with_long_ends};
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Computes one column of others, which it knows by their numbers.
pub(super) async fn computed(of: Expr, columns: Vec<DeviceArray>, stream: &Stream) -> Result<DeviceArray> {
    computed_of(of, &unnamed(columns)?, stream).await
}

/// Computes one column of a batch, which may have rows but no columns.
pub(super) async fn computed_of(of: Expr, batch: &DeviceBatch, stream: &Stream) -> Result<DeviceArray> {
    let evaluated = Evaluated::bind(&[of], batch.schema(), &Options::default())?;
    let read = evaluated.read(batch)?;
    Ok(evaluated.evaluate(read, stream.clone()).await?.columns()[0].clone())
}

/// Returns the key of which two are equal as SQL has it: one zero, and one NaN. `None` if keys are no floats.
pub(super) fn sql_key(key: &Expr, of: &DataType) -> Option<Expr> {
    let plain = value_type(of);
    if !plain.is_floating() {
        return None;
    }
    let key = if plain == of { key.clone() } else { key.clone().cast(plain.clone()) };
    let float = |value: f64| lit(value).cast(plain.clone());
    // In arrow's order, the two zeros differ.
    let is_zero = key.clone().in_list([0.0, -0.0]);
    Some(if_else(is_zero, float(0.0), if_else(key.clone().is_nan(), float(f64::NAN), key)))
}

/// Returns keys as [`sql_key`] has them.
pub(super) async fn sql_keys(keys: &[DeviceArray], stream: &Stream) -> Result<Vec<DeviceArray>> {
    let mut made = Vec::with_capacity(keys.len());
    for key in keys {
        made.push(match sql_key(&nth(0), key.data_type()) {
            None => key.clone(),
            Some(expr) => computed(expr, vec![key.clone()], stream).await?,
        });
    }
    Ok(made)
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

/// The bytes of an array's buffers.
pub(super) fn bytes_of(array: &DeviceArray) -> usize {
    let buffers = array.buffers().iter().chain(array.validity().map(|bits| &bits.buffer));
    let own: usize = buffers.map(|buffer| buffer.bytes().unwrap_or(0)).sum();
    own + array.children().iter().chain(array.dictionary()).map(bytes_of).sum::<usize>()
}

/// The bytes of an array's rows. If their contents are somewhere in the buffers or children of more rows,
/// each of these is taken to have as much.
pub(super) fn bytes_in(array: &DeviceArray) -> usize {
    let slots: Vec<_> = array.layout().slots().collect();
    let fixed = slots.iter().map(|slot| slot.bytes_for(array.len())).sum::<Option<usize>>();
    let all = slots.len() == array.buffers().len() && array.children().is_empty();
    match fixed.filter(|_| all && array.dictionary().is_none()) {
        Some(bytes) => bytes + array.validity().map_or(0, |_| array.len().div_ceil(8)),
        None => share(bytes_of(array), array.len(), rows_behind(array)),
    }
}

/// The rows that an array's buffers and children have, if they say so. Those of a dictionary's keys are not
/// those of its values.
fn rows_behind(array: &DeviceArray) -> Option<usize> {
    let items = || array.children().first().map(DeviceArray::len);
    match array.data_type() {
        DataType::Struct(_) => return items(),
        DataType::FixedSizeList(_, size) => return items()?.checked_div(usize::try_from(*size).ok()?),
        // Only the last end says how many rows there are, and it is in the device's memory.
        DataType::RunEndEncoded(..) => return Some(array.offset() + array.len()),
        _ => {}
    }
    let (slot, first) = (array.layout().slots().next()?, array.buffers().first()?);
    let each = slot.bytes_for(2)?.checked_sub(slot.bytes_for(1)?)?;
    if array.dictionary().is_some() {
        return None;
    }
    let slots = first.bytes()?.checked_div(each)?;
    Some(if let Slot::Offsets(_) = slot { slots.saturating_sub(1) } else { slots })
}

/// The part of some bytes that rows have, of at least as many.
fn share(bytes: usize, rows: usize, of: Option<usize>) -> usize {
    match of {
        Some(all) if rows < all => (bytes as u128 * rows as u128 / all as u128) as usize,
        _ => bytes,
    }
}

/// Returns an array that can be concatenated with others: keys of dictionaries and ends of runs that have
/// fewer bits might not number the values, or the rows, of all. An array that the device does not cast so
/// stays as it is.
pub(super) async fn widened(array: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    cast_if_possible(array, &widened_type(array.data_type()), stream).await
}

/// As [`widened`], for the ends of runs only.
pub(super) async fn lengthened(array: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    cast_if_possible(array, &with_long_ends(array.data_type()), stream).await
}

async fn cast_if_possible(array: &DeviceArray, to: &DataType, stream: &Stream) -> Result<DeviceArray> {
    let options = CastOptions::default();
    if array.data_type() == to {
        return Ok(array.clone());
    }
    match check_cast(array.data_type(), to, &options, stream) {
        Err(Error::Unsupported { .. }) => Ok(array.clone()),
        Err(error) => Err(error),
        Ok(()) => cast(array, to, &options, stream).await,
    }
}

/// Whether a stream's device casts from one type to another one, and back.
pub(super) fn is_cast_and_back(from: &DataType, to: &DataType, stream: &Stream) -> Result<bool> {
    let casts = |from: &DataType, to: &DataType| match check_cast(from, to, &CastOptions::default(), stream) {
        Ok(()) => Ok(true),
        Err(Error::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    };
    Ok(casts(from, to)? && casts(to, from)?)
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
