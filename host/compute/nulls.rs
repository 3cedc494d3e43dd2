//! Null tests and null counts.
//!
//! Most types keep their nulls in the validity bitmap. In a Null array every row is null, a dictionary's
//! nulls may be among its values, and those of unions and run-end encoded arrays are in their children.
//! "Logical" nulls include all of these.

use arrow_array::BooleanArray;
use arrow_schema::DataType;

use super::{Columns, admit, admit_all, filter};
use crate::array::{Bitmap, Parts};
use crate::device::interrupt;
use crate::ffi::DeviceType;
use crate::gpu::structure::logical::{self, valid};
use crate::{DeviceArray, Pending, Result, Stream, cpu, exchange, gpu};

/// The number of rows from which arrow-rs computes logical nulls on a separate thread.
const LONG: usize = 1 << 20;

/// Counts the nulls in an array's own validity bitmap, or in those of all columns of a batch in one launch.
/// If a count on a device is not known, the first [`wait`](Pending::wait) synchronises, once.
pub fn null_count<C: Columns>(values: &C, stream: &Stream) -> Pending<C::Counts> {
    Pending::begun(|| Ok(counts(values.arrays(), stream)?.map(C::counts)))
}

/// Counts the nulls of each array; known counts are reused.
fn counts(arrays: &[DeviceArray], stream: &Stream) -> Result<Pending<Vec<usize>>> {
    let _current = stream.enter()?;
    let known =
        |values: &DeviceArray| if values.validity().is_none() { Some(0) } else { values.known_null_count() };
    if stream.as_gpu().is_none() {
        // One by one, without the lists that plan a launch: for a small batch these would take most of the
        // time.
        let count = |values: &DeviceArray| {
            let values = &*admit("null_count", values, stream)?;
            match (known(values), values.validity()) {
                (Some(known), _) => Ok(known),
                (None, None) => Ok(0),
                (None, Some(bits)) => Ok(values.len() - cpu::nulls::count_valid(bits, values.len())?),
            }
        };
        return Ok(Pending::known(arrays.iter().map(count).collect()));
    }
    let arrays = admit_all("null_count", arrays, stream)?;
    let counts: Vec<Option<usize>> = arrays.iter().map(|values| known(values)).collect();
    let unknown: Vec<(&DeviceArray, &Bitmap)> = arrays
        .iter()
        .filter(|values| known(values).is_none())
        .filter_map(|values| Some((&**values, values.validity()?)))
        .collect();
    Ok(gpu::null_counts(&unknown, stream)?.map(move |counted| {
        let mut counted = counted.into_iter();
        let of_each = counts.into_iter().map(|known| known.or_else(|| counted.next()).unwrap_or(0));
        Ok(of_each.collect())
    }))
}

/// Counts the logical nulls of an array, or of each column of a batch. If a count is not known, the first
/// [`wait`](Pending::wait) synchronises.
pub fn logical_null_count<C: Columns>(values: &C, stream: &Stream) -> Pending<C::Counts> {
    Pending::begun(|| {
        let (mut own, mut counted) = (vec![], vec![]);
        for values in values.arrays() {
            let admitted = &*admit("logical_null_count", values, stream)?;
            counted.push(match valid_rows("logical_null_count", admitted, stream)? {
                Valid::All => Some(0),
                Valid::None => Some(values.len()),
                Valid::These(bits) => Some(values.len() - cpu::nulls::count_valid(&bits, values.len())?),
                Valid::There(valid) => {
                    own.push(with_own_bits(valid)?);
                    None
                }
                Valid::Own => {
                    own.push(values.clone());
                    None
                }
            });
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
    let values = &*admit("is_null", values, stream)?;
    let valid = valid_rows("is_null", values, stream)?;
    let own = values.validity();
    if stream.as_gpu().is_some() {
        return match (valid, own) {
            (Valid::Own, Some(bits)) => gpu::is_null(values, bits, stream),
            (Valid::There(valid), _) => gpu::is_null(&valid, &bits_of(&valid), stream),
            (valid, _) => gpu::filled("is_null", matches!(valid, Valid::None), values.len(), stream),
        };
    }
    let pool = stream.device().host_pool();
    let buffer = match (&valid, own) {
        (Valid::These(bits), _) | (Valid::Own, Some(bits)) => cpu::nulls::inverted(bits, values.len(), pool)?,
        (Valid::None, _) => cpu::nulls::filled(true, values.len(), pool)?,
        (Valid::All | Valid::Own | Valid::There(_), _) => cpu::nulls::filled(false, values.len(), pool)?,
    };
    booleans(Bitmap { buffer, offset: 0 }, values.len())
}

/// Returns a boolean array that is true for each row that is not a logical null. The result has no nulls. If
/// a bitmap already contains the answer, it is shared, not copied. Does not synchronise.
pub fn is_not_null(values: &DeviceArray, stream: &Stream) -> Pending<DeviceArray> {
    Pending::known(is_not_null_now(values, stream))
}

fn is_not_null_now(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let _current = stream.enter()?;
    let values = &*admit("is_not_null", values, stream)?;
    let valid = valid_rows("is_not_null", values, stream)?;
    let own = values.validity();
    let same = match (valid, own) {
        (Valid::These(bits), _) => return booleans(bits, values.len()),
        (Valid::There(valid), _) => return Ok(valid),
        (Valid::Own, Some(bits)) => {
            let mut parts = bits_as_parts(bits.clone(), values.len());
            (parts.place, parts.ready) = (values.place(), values.ready().cloned());
            return DeviceArray::made(parts, true);
        }
        (Valid::None, _) => false,
        (Valid::All | Valid::Own, _) => true,
    };
    if stream.as_gpu().is_some() {
        return gpu::filled("is_not_null", same, values.len(), stream);
    }
    let buffer = cpu::nulls::filled(same, values.len(), stream.device().host_pool())?;
    booleans(Bitmap { buffer, offset: 0 }, values.len())
}

/// Removes the rows that are logical nulls. Synchronises as [`filter`] does, if the array may have nulls.
pub fn drop_nulls(values: &DeviceArray, stream: &Stream) -> Pending<DeviceArray> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        let values = &*admit("drop_nulls", values, stream)?;
        let valid = valid_rows("drop_nulls", values, stream)?;
        let none = matches!(valid, Valid::Own) && values.known_null_count() == Some(0);
        Ok(match valid {
            Valid::All => Pending::known(Ok(values.clone())),
            Valid::None => Pending::known(values.slice(0, 0)),
            _ if none => Pending::known(Ok(values.clone())),
            _ => filter(values, &is_not_null_now(values, stream)?, stream),
        })
    })
}

/// The source of the rows' validity.
pub(super) enum Valid {
    /// No row is null.
    All,
    /// Every row is null.
    None,
    /// The array's own bitmap; without one, no row is null.
    Own,
    /// A bitmap that was computed from the array's children.
    These(Bitmap),
    /// Such a bitmap on a device, as a boolean array without nulls.
    There(DeviceArray),
}

pub(super) fn valid_rows(operation: &'static str, values: &DeviceArray, stream: &Stream) -> Result<Valid> {
    match values.data_type() {
        DataType::Null => Ok(Valid::None),
        // Only the keys can be null if the values cannot.
        DataType::Dictionary(..) if values.dictionary().is_some_and(never_null) => Ok(Valid::Own),
        DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            match stream.device().place().device_type {
                DeviceType::Cpu => {
                    let theirs = exchange::to_arrow(values)?;
                    let reserved = stream.device().host_pool().reserve(cpu::cast_bytes::of_nulls(values))?;
                    let (nulls, reserved) = interrupt::apart(values.len() >= LONG, move || {
                        Ok((exchange::guarded(operation, || Ok(theirs.logical_nulls()))?, reserved))
                    })?;
                    let Some(nulls) = nulls else { return Ok(Valid::All) };
                    let bits = exchange::from_arrow(&BooleanArray::new(nulls.into_inner(), None))?;
                    let bits = exchange::counted(bits, &[values], reserved)?;
                    Ok(Valid::These(bits_of(&bits)))
                }
                _ => Ok(match valid(operation, values, stream)? {
                    logical::Valid::All => Valid::All,
                    logical::Valid::None => Valid::None,
                    logical::Valid::These(these) => Valid::There(these),
                }),
            }
        }
        _ => Ok(Valid::Own),
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

/// Wraps a bitmap in host memory as a boolean array.
#[inline]
fn booleans(bits: Bitmap, len: usize) -> Result<DeviceArray> {
    DeviceArray::made(bits_as_parts(bits, len), true)
}

#[inline]
fn bits_as_parts(bits: Bitmap, len: usize) -> Parts {
    let mut parts = Parts::new(DataType::Boolean, len);
    parts.offset = bits.offset;
    parts.buffers = vec![bits.buffer];
    parts
}

/// The values of a boolean array as a bitmap.
pub(super) fn bits_of(booleans: &DeviceArray) -> Bitmap {
    Bitmap { buffer: booleans.buffers()[0].clone(), offset: booleans.offset() }
}

/// A boolean array that uses its values as its validity bitmap.
fn with_own_bits(valid: DeviceArray) -> Result<DeviceArray> {
    DeviceArray::try_new(Parts { validity: Some(bits_of(&valid)), null_count: None, ..valid.into_parts() })
}
