//! Null tests and null counts.
//!
//! Most types keep their nulls in the validity bitmap. In a Null array every row is null, a dictionary's
//! nulls may be among its values, and those of unions and run-end encoded arrays are in their children.
//! "Logical" nulls include all of these.

use arrow_schema::DataType;

use super::{Columns, engine, reach, reach_all};
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
            counted.push(match valid_rows("logical_null_count", values, stream)? {
                Some(Valid::All) => Some(0),
                Some(Valid::None) => Some(values.len()),
                Some(Valid::These(valid)) => {
                    own.push(with_own_bits(valid)?);
                    None
                }
                None => {
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

/// Returns a boolean array that is true for each logical null, or a batch of such arrays under the names of
/// the columns. The results have no nulls. Does not synchronise.
pub fn is_null<C: Columns>(values: &C, stream: &Stream) -> Pending<C> {
    Pending::known(tested("is_null", values, true, stream))
}

/// Returns a boolean array that is true for each row that is not a logical null, or a batch of such arrays
/// under the names of the columns. The results have no nulls. If a bitmap already contains the answer, it is
/// shared, not copied. Does not synchronise.
pub fn is_not_null<C: Columns>(values: &C, stream: &Stream) -> Pending<C> {
    Pending::known(tested("is_not_null", values, false, stream))
}

fn tested<C: Columns>(operation: &'static str, values: &C, null: bool, stream: &Stream) -> Result<C> {
    let _current = stream.enter()?;
    reach_all(operation, values.arrays(), stream)?;
    let engine = engine(stream);
    values.each(values.boolean_frame(), values.rows(), |values| {
        let values = &*engine.admit(values, stream)?;
        let rows = valid_rows(operation, values, stream)?;
        if let (None, Some(bits), true) = (&rows, values.possible_nulls(), null) {
            return engine.inverted(values, bits, stream);
        }
        let all_null = match settled(values, rows)? {
            Valid::These(valid) if null => return engine.inverted(&valid, &bits_of(&valid), stream),
            Valid::These(valid) => return Ok(valid),
            Valid::None => true,
            Valid::All => false,
        };
        engine.filled(operation, all_null == null, values.len(), stream)
    })
}

/// Finds out which rows are valid. Shares the array's own bitmap if that tells.
pub(super) fn valid(operation: &'static str, values: &DeviceArray, stream: &Stream) -> Result<Valid> {
    settled(values, valid_rows(operation, values, stream)?)
}

/// Finds out which rows are valid, from what is known of them besides the array's own bitmap.
fn settled(values: &DeviceArray, rows: Option<Valid>) -> Result<Valid> {
    Ok(match (rows, values.possible_nulls()) {
        (Some(valid), _) => valid,
        (None, None) => Valid::All,
        (None, Some(bits)) => {
            let mut parts = Parts::new(DataType::Boolean, values.len());
            (parts.offset, parts.buffers) = (bits.offset, vec![bits.buffer.clone()]);
            (parts.place, parts.ready) = (values.place(), values.ready().cloned());
            Valid::These(DeviceArray::made(parts, true)?)
        }
    })
}

/// Finds out which rows are valid; `None` if the array's own bitmap tells.
fn valid_rows(operation: &'static str, values: &DeviceArray, stream: &Stream) -> Result<Option<Valid>> {
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
