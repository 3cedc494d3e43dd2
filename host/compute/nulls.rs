//! Null tests and null counts.
//!
//! Most types keep their nulls in the validity bitmap. In a Null array every row is null, a dictionary's
//! nulls may be among its values, and those of unions and run-end encoded arrays are in their children.
//! "Logical" nulls include all of these.

use arrow_schema::DataType;

use super::{Columns, engine, filter, reach, reach_all};
use crate::array::{Bitmap, Parts};
use crate::engine::Valid;
use crate::{DeviceArray, Pending, Result, Stream};

/// Counts the nulls in an array's own validity bitmap, or in those of all columns of a batch in one launch.
/// If a count on a device is not known, the first [`wait`](Pending::wait) synchronises, once.
pub fn null_count<C: Columns>(values: &C, stream: &Stream) -> Pending<C::Counts> {
    Pending::begun(|| Ok(counts(values.arrays(), stream)?.map(C::counts)))
}

fn counts(arrays: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<usize>>> {
    let _current = stream.enter()?;
    reach_all("null_count", arrays, stream)?;
    engine(stream).null_counts(arrays, stream)
}

/// Counts the logical nulls of an array, or of each column of a batch. If a count is not known, the first
/// [`wait`](Pending::wait) synchronises.
pub fn logical_null_count<C: Columns>(values: &C, stream: &Stream) -> Pending<C::Counts> {
    Pending::begun(|| {
        let (mut own, mut counted) = (vec![], vec![]);
        for values in values.arrays() {
            reach("logical_null_count", values, stream)?;
            match valid_rows("logical_null_count", values, stream)? {
                Some(Valid::All) => counted.push(Some(0)),
                Some(Valid::None) => counted.push(Some(values.len())),
                Some(Valid::These(valid)) => {
                    counted.push(None);
                    own.push(with_own_bits(valid)?);
                }
                None => {
                    counted.push(None);
                    own.push(values.clone());
                }
            }
        }
        Ok(counts(&own, stream)?.map(|own| {
            let mut own = own.into_iter();
            let all = counted.into_iter().map(|known| known.or_else(|| own.next()).unwrap_or(0));
            C::counts(all.collect())
        }))
    })
}

/// Returns a boolean array that is true for each logical null. The result has no nulls. Does not synchronise.
pub fn is_null(values: &DeviceArray, stream: &Stream) -> Pending<DeviceArray> {
    Pending::known(is_null_now(values, stream))
}

fn is_null_now(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let _current = stream.enter()?;
    reach("is_null", values, stream)?;
    let engine = engine(stream);
    let values = &*engine.admit(values)?;
    match (valid_rows("is_null", values, stream)?, values.validity()) {
        (None, Some(bits)) => engine.inverted(values, bits, stream),
        (Some(Valid::These(valid)), _) => engine.inverted(&valid, &bits_of(&valid), stream),
        (valid, _) => engine.filled("is_null", matches!(valid, Some(Valid::None)), values.len(), stream),
    }
}

/// Returns a boolean array that is true for each row that is not a logical null. The result has no nulls. If
/// a bitmap already contains the answer, it is shared, not copied. Does not synchronise.
pub fn is_not_null(values: &DeviceArray, stream: &Stream) -> Pending<DeviceArray> {
    Pending::known(is_not_null_now(values, stream))
}

fn is_not_null_now(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let _current = stream.enter()?;
    reach("is_not_null", values, stream)?;
    let engine = engine(stream);
    let values = &*engine.admit(values)?;
    match (valid_rows("is_not_null", values, stream)?, values.validity()) {
        (Some(Valid::These(valid)), _) => Ok(valid),
        (None, Some(bits)) => {
            let mut parts = Parts::new(DataType::Boolean, values.len());
            (parts.offset, parts.buffers) = (bits.offset, vec![bits.buffer.clone()]);
            (parts.place, parts.ready) = (values.place(), values.ready().cloned());
            DeviceArray::made(parts, true)
        }
        (valid, _) => engine.filled("is_not_null", !matches!(valid, Some(Valid::None)), values.len(), stream),
    }
}

/// Removes the rows that are logical nulls. Synchronises as [`filter`] does, if the array may have nulls.
pub fn drop_nulls(values: &DeviceArray, stream: &Stream) -> Pending<DeviceArray> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        reach("drop_nulls", values, stream)?;
        Ok(match valid_rows("drop_nulls", values, stream)? {
            Some(Valid::All) => Pending::known(Ok(values.clone())),
            Some(Valid::None) => Pending::known(values.slice(0, 0)),
            None if values.known_null_count() == Some(0) => Pending::known(Ok(values.clone())),
            _ => filter(values, &is_not_null_now(values, stream)?, stream),
        })
    })
}

/// Finds out which rows are valid; `None` if the array's own bitmap tells.
pub(super) fn valid_rows(
    operation: &'static str,
    values: &DeviceArray,
    stream: &Stream,
) -> Result<Option<Valid>> {
    match values.data_type() {
        DataType::Null => Ok(Some(Valid::None)),
        // Only the keys can be null if the values cannot.
        DataType::Dictionary(..) if values.dictionary().is_some_and(never_null) => Ok(None),
        DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            engine(stream).logical_validity(operation, values, stream).map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether the array is known to have no logical nulls, without reading it.
fn never_null(values: &DeviceArray) -> bool {
    let nested = matches!(
        values.data_type(),
        DataType::Null | DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..)
    );
    !nested && values.known_null_count() == Some(0)
}

/// The values of a boolean array as a bitmap.
pub(super) fn bits_of(booleans: &DeviceArray) -> Bitmap {
    Bitmap { buffer: booleans.buffers()[0].clone(), offset: booleans.offset() }
}

/// A boolean array that uses its values as its validity bitmap.
fn with_own_bits(valid: DeviceArray) -> Result<DeviceArray> {
    DeviceArray::try_new(Parts { validity: Some(bits_of(&valid)), null_count: None, ..valid.into_parts() })
}
