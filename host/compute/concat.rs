//! The `concat` operation: appends arrays to each other.

use std::borrow::Cow;

use super::admit_all;
use crate::array::rows_of;
use crate::device::interrupt;
use crate::{DeviceArray, Error, Pending, Result, Stream, cpu, exchange, gpu, pass};

/// The size in bytes from which arrow-select works on a separate thread.
const LONG: usize = 16 << 20;

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
    let admitted = admit_all("concat", arrays.iter().copied(), stream)?;
    if others.is_empty() {
        return Ok(Pending::known(Ok((*first).clone())));
    }
    if stream.as_gpu().is_none() {
        return Ok(Pending::known(by_arrow(arrays, admitted, stream)));
    }
    let (joined, arrays) =
        (gpu::concat(arrays, stream)?, arrays.iter().copied().cloned().collect::<Vec<_>>());
    let on = stream.clone();
    Ok(Pending::begin(stream, async move {
        match joined.await? {
            Some(joined) => Ok(joined),
            None => merged(&arrays, &on).await,
        }
    }))
}

/// Concatenates in host memory: only arrow-select merges equal values of dictionaries.
async fn merged(arrays: &[DeviceArray], stream: &Stream) -> Result<DeviceArray> {
    let here = arrays.iter().map(|array| stream.download_later(array)).collect::<Result<_>>()?;
    let here = pass::all(here).await?;
    pass::readable(&here).await;
    stream.upload(&concat(&here.iter().collect::<Vec<_>>(), &Stream::cpu()).wait()?)
}

/// Concatenates on the CPU with arrow-select, after reserving the memory that it may need.
fn by_arrow(
    arrays: &[&DeviceArray],
    admitted: Vec<Cow<'_, DeviceArray>>,
    stream: &Stream,
) -> Result<DeviceArray> {
    let theirs = admitted.iter().map(|array| exchange::to_arrow(array)).collect::<Result<Vec<_>>>()?;
    let admitted: Vec<DeviceArray> = admitted.into_iter().map(|array| array.into_owned()).collect();
    let bytes = cpu::concat_bytes::of_concat(&admitted);
    let reserved = stream.device().host_pool().reserve(bytes)?;
    let (joined, reserved) = interrupt::apart(bytes >= LONG, move || {
        let theirs: Vec<&dyn arrow_array::Array> = theirs.iter().map(|array| &**array).collect();
        let joined = exchange::guarded("concat", || {
            let joined = arrow_select::concat::concat(&theirs);
            joined.map_err(|error| Error::Arrow { operation: "concat", problem: error.to_string() })
        })?;
        Ok((joined, reserved))
    })?;
    exchange::counted(exchange::from_arrow(&joined)?, arrays, reserved)
}
