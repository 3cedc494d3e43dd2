//! The `concat` operation: appends arrays to each other.

use super::{engine, reach};
use crate::array::rows_of;
use crate::{DeviceArray, Error, Pending, Result, Stream};

/// Concatenates arrays of one type, such as the chunks of a foreign stream, in their order. On the CPU,
/// arrays that are not known to be valid are validated first.
///
/// On a GPU this synchronises once for each level of text, lists, or run-end encoded arrays in lists, to
/// learn how much of their data the rows refer to. Offsets, keys and views that are out of bounds are an
/// error for the first caller that waits for the result. If the key type of a dictionary cannot index all
/// values, the values are deduplicated in host memory.
///
/// Copies all contents, except for the data that views point into and a dictionary that all arrays share. A
/// single array is returned without a copy.
pub fn concat(arrays: &[&DeviceArray], stream: &Stream) -> Pending<DeviceArray> {
    Pending::begun(|| begin(arrays, stream))
}

fn begin(arrays: &[&DeviceArray], stream: &Stream) -> Result<Pending<DeviceArray>> {
    let _current = stream.enter()?;
    let invalid = |problem: String| Err(Error::invalid("concat", problem));
    let Some((first, others)) = arrays.split_first() else { return invalid("no arrays".to_owned()) };
    if let Some(other) = others.iter().find(|other| other.data_type() != first.data_type()) {
        return invalid(format!("{} after {}", other.data_type(), first.data_type()));
    }
    rows_of("concat", arrays.iter().map(|array| array.len()))?;
    arrays.iter().try_for_each(|array| reach("concat", array, stream))?;
    if others.is_empty() {
        return Ok(Pending::known(Ok((*first).clone())));
    }
    engine(stream).concat(arrays, engine(&Stream::cpu()), stream)
}
