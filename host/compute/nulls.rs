//! Which rows are null, and how many.
//!
//! The validity bitmap tells, but for types that keep their nulls elsewhere: a Null array has nothing but nulls, a
//! dictionary's may be among its values, those of unions and runs in their children. "Logical" means all of these.

use arrow_array::BooleanArray;
use arrow_schema::DataType;

use super::{Columns, admit, admit_all, filter};
use crate::array::{Bitmap, Parts};
use crate::device::interrupt;
use crate::ffi::DeviceType;
use crate::gpu::structure::logical::{self, valid};
use crate::{Array, Pending, Result, Stream, cpu, exchange, gpu};

/// Rows from which arrow-rs looks for nulls in a thread of its own.
const LONG: usize = 1 << 20;

/// How many rows are null by the array's own validity bitmap; of a batch, in each column: counted together, in one launch.
/// The first [`wait`](Pending::wait) synchronises, once, where an array on a device does not know.
pub fn null_count<C: Columns>(values: &C, stream: &Stream) -> Pending<C::Counts> {
    Pending::begun(|| Ok(counts(values.arrays(), stream)?.map(C::counts)))
}

/// How many rows of each array are null; those that do not know are counted.
fn counts(arrays: &[Array], stream: &Stream) -> Result<Pending<Vec<usize>>> {
    let _current = stream.enter()?;
    let known =
        |values: &Array| if values.validity().is_none() { Some(0) } else { values.known_null_count() };
    if stream.as_gpu().is_none() {
        // One by one, without the lists that a launch is planned with: of a small batch they would take most of the time.
        let count = |values: &Array| {
            let values = &*admit("null_count", values, stream)?;
            let counted = || {
                let valid = |bits: &Bitmap| cpu::nulls::count_valid(bits, values.len());
                values.len() - values.validity().map_or(values.len(), valid)
            };
            Ok(known(values).unwrap_or_else(counted))
        };
        return Ok(Pending::known(arrays.iter().map(count).collect()));
    }
    let arrays = admit_all("null_count", arrays, stream)?;
    let counts: Vec<Option<usize>> = arrays.iter().map(|values| known(values)).collect();
    let unknown: Vec<(&Array, &Bitmap)> = arrays
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

/// How many rows are null, wherever the type keeps its nulls; of a batch, in each column. The first
/// [`wait`](Pending::wait) synchronises where that is not known.
pub fn logical_null_count<C: Columns>(values: &C, stream: &Stream) -> Pending<C::Counts> {
    Pending::begun(|| {
        let (mut own, mut counted) = (vec![], vec![]);
        for values in values.arrays() {
            let admitted = &*admit("logical_null_count", values, stream)?;
            counted.push(match valid_rows("logical_null_count", admitted, stream)? {
                Valid::All => Some(0),
                Valid::None => Some(values.len()),
                Valid::These(bits) => Some(values.len() - cpu::nulls::count_valid(&bits, values.len())),
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

/// Which rows are null, wherever the type keeps its nulls: booleans without nulls. Does not synchronise.
pub fn is_null(values: &Array, stream: &Stream) -> Pending<Array> {
    Pending::known(is_null_now(values, stream))
}

fn is_null_now(values: &Array, stream: &Stream) -> Result<Array> {
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

/// Which rows are not null, wherever the type keeps its nulls: booleans without nulls. Where a bitmap says so already it
/// is shared, not copied. Does not synchronise.
pub fn is_not_null(values: &Array, stream: &Stream) -> Pending<Array> {
    Pending::known(is_not_null_now(values, stream))
}

fn is_not_null_now(values: &Array, stream: &Stream) -> Result<Array> {
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
            return Array::made(parts, true);
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

/// The rows that are not null, wherever the type keeps its nulls. Synchronises as [`filter`] does, where there may be nulls.
pub fn drop_nulls(values: &Array, stream: &Stream) -> Pending<Array> {
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

/// What tells which rows are valid.
pub(super) enum Valid {
    /// All are.
    All,
    /// None is.
    None,
    /// The array's own bitmap, where it has one; else all are.
    Own,
    /// This bitmap, put together from the array's children.
    These(Bitmap),
    /// The same, on a device: booleans without nulls.
    There(Array),
}

pub(super) fn valid_rows(operation: &'static str, values: &Array, stream: &Stream) -> Result<Valid> {
    match values.data_type() {
        DataType::Null => Ok(Valid::None),
        // Values that cannot be null leave the keys.
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
                _ => Ok(match valid(operation, values, gpu::take_one, stream)? {
                    logical::Valid::All => Valid::All,
                    logical::Valid::None => Valid::None,
                    logical::Valid::These(these) => Valid::There(these),
                }),
            }
        }
        _ => Ok(Valid::Own),
    }
}

/// Whether that no row is null can be told from the outside.
fn never_null(values: &Array) -> bool {
    let nested = matches!(
        values.data_type(),
        DataType::Null | DataType::Dictionary(..) | DataType::Union(..) | DataType::RunEndEncoded(..)
    );
    !nested && values.known_null_count() == Some(0)
}

/// Bits of the CPU as an array.
#[inline]
fn booleans(bits: Bitmap, len: usize) -> Result<Array> {
    Array::made(bits_as_parts(bits, len), true)
}

#[inline]
fn bits_as_parts(bits: Bitmap, len: usize) -> Parts {
    let mut parts = Parts::new(DataType::Boolean, len);
    parts.offset = bits.offset;
    parts.buffers = vec![bits.buffer];
    parts
}

/// The bits of booleans.
pub(super) fn bits_of(booleans: &Array) -> Bitmap {
    Bitmap { buffer: booleans.buffers()[0].clone(), offset: booleans.offset() }
}

/// Booleans whose own bitmap is what they say.
fn with_own_bits(valid: Array) -> Result<Array> {
    Array::try_new(Parts { validity: Some(bits_of(&valid)), null_count: None, ..valid.into_parts() })
}
