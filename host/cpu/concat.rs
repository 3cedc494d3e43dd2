//! Concatenation on the host, with arrow-select, except for values of a fixed width, which all threads copy,
//! and for views: their data buffers are shared, and a list of buffers that several arrays have is kept once.

use arrow_schema::{ArrowError, DataType};

use super::building::Building;
use super::concat_bytes::of_concat;
use super::concat_dictionaries::{Used, overflow};
use super::concat_fixed::fixed;
use super::selection::Selection;
use crate::array::DeviceArray;
use crate::device::{HostPool, interrupt};
use crate::{Error, Result, exchange};

/// The size in bytes from which arrow-select works on a separate thread.
const LONG: usize = 16 << 20;

/// Concatenates arrays of one type, after reserving the memory that arrow-select may need.
pub(crate) fn concat(arrays: &[DeviceArray], pool: &HostPool) -> Result<DeviceArray> {
    if let Some(joined) = fixed(arrays, pool)? {
        return Ok(joined);
    }
    if let Some(joined) = views(arrays, pool)? {
        return Ok(joined);
    }
    let theirs = arrays.iter().map(exchange::to_arrow).collect::<Result<Vec<_>>>()?;
    let bytes = of_concat(arrays);
    let reserved = pool.reserve(bytes)?;
    let (joined, reserved) = interrupt::apart(bytes >= LONG, move || {
        let theirs: Vec<&dyn arrow_array::Array> = theirs.iter().map(|array| &**array).collect();
        let joined = exchange::guarded("concat", || match arrow_select::concat::concat(&theirs) {
            Err(ArrowError::DictionaryKeyOverflowError) => Ok(None),
            Err(error) => Err(Error::Arrow { operation: "concat", problem: error.to_string() }),
            Ok(joined) => Ok(Some(joined)),
        })?;
        Ok((joined, reserved))
    })?;
    let Some(joined) = joined else { return dictionaries(arrays, pool) };
    exchange::counted(exchange::from_arrow(&joined)?, &arrays.iter().collect::<Vec<_>>(), reserved)
}

/// Concatenates dictionaries by merging equal values and leaving out unused ones.
fn dictionaries(arrays: &[DeviceArray], pool: &HostPool) -> Result<DeviceArray> {
    let used = Used::of(arrays, pool)?;
    let all = concat(&used.values, pool)?;
    used.merged(&all, arrays.first().ok_or_else(overflow)?.data_type(), pool)
}

/// Concatenates views; `None` if the arrays are none, or have no rows.
fn views(arrays: &[DeviceArray], pool: &HostPool) -> Result<Option<DeviceArray>> {
    let rows = arrays.iter().fold(0, |rows: usize, array| rows.saturating_add(array.len()));
    let data_type = arrays.first().map(DeviceArray::data_type);
    let Some(of @ (DataType::Utf8View | DataType::BinaryView)) = data_type.filter(|_| rows > 0) else {
        return Ok(None);
    };
    let Some(mut joined) = Building::new(of, rows) else { return Ok(None) };
    let mut at = 0;
    for array in arrays {
        // Checks the views, unless they are known to be valid.
        exchange::to_arrow(array)?;
        joined.append(array, &Selection::all(array.len(), pool)?, at, pool)?;
        at += array.len();
    }
    joined.finish(rows).map(Some)
}
