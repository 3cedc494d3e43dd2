//! Concatenation on the host, with arrow-select.

use super::concat_bytes::of_concat;
use crate::array::DeviceArray;
use crate::device::{HostPool, interrupt};
use crate::{Error, Result, exchange};

/// The size in bytes from which arrow-select works on a separate thread.
const LONG: usize = 16 << 20;

/// Concatenates arrays of one type, after reserving the memory that arrow-select may need.
pub(crate) fn concat(arrays: &[DeviceArray], pool: &HostPool) -> Result<DeviceArray> {
    let theirs = arrays.iter().map(exchange::to_arrow).collect::<Result<Vec<_>>>()?;
    let bytes = of_concat(arrays);
    let reserved = pool.reserve(bytes)?;
    let (joined, reserved) = interrupt::apart(bytes >= LONG, move || {
        let theirs: Vec<&dyn arrow_array::Array> = theirs.iter().map(|array| &**array).collect();
        let joined = exchange::guarded("concat", || {
            let joined = arrow_select::concat::concat(&theirs);
            joined.map_err(|error| Error::Arrow { operation: "concat", problem: error.to_string() })
        })?;
        Ok((joined, reserved))
    })?;
    exchange::counted(exchange::from_arrow(&joined)?, &arrays.iter().collect::<Vec<_>>(), reserved)
}
