//! Arrays one after another.

use std::borrow::Cow;

use super::admit_all;
use crate::array::rows_of;
use crate::device::interrupt;
use crate::{Array, Error, Pending, Result, Stream, cpu, exchange, gpu};

/// Bytes from which arrow-select works in a thread of its own.
const LONG: usize = 16 << 20;

/// The rows of all arrays, which are of one type, in their order: what is made of the chunks of a foreign stream. On the CPU they
/// are read through first, where they are not known to be valid.
///
/// On a GPU this synchronises once for each level of text, lists or runs in lists, where there are some, to learn how much of them
/// rows have; offsets, keys and views that point to nothing are an error for the first caller that waits for the result. Where the
/// keys of dictionaries have no room for all values, these are made fewer in host memory.
///
/// Copies all contents, but for what views point at and a dictionary that all arrays share, and nothing where there is one array.
pub fn concat(arrays: &[&Array], stream: &Stream) -> Pending<Array> {
    Pending::known(concat_now(arrays, stream))
}

fn concat_now(arrays: &[&Array], stream: &Stream) -> Result<Array> {
    let _current = stream.enter()?;
    let invalid = |problem: String| Err(Error::invalid("concat", problem));
    let Some((first, others)) = arrays.split_first() else { return invalid("no arrays".to_owned()) };
    if let Some(other) = others.iter().find(|other| other.data_type() != first.data_type()) {
        return invalid(format!("{} after {}", other.data_type(), first.data_type()));
    }
    rows_of("concat", arrays.iter().map(|array| array.len()))?;
    let admitted = admit_all("concat", arrays.iter().copied(), stream)?;
    if others.is_empty() {
        return Ok((*first).clone());
    }
    if stream.as_gpu().is_none() {
        return by_arrow(arrays, admitted, stream);
    }
    if let Some(joined) = gpu::concat(arrays, stream)? {
        return Ok(joined);
    }
    // Only arrow-select makes equal values of dictionaries one.
    let here = arrays.iter().map(|array| stream.download(*array)).collect::<Result<Vec<_>>>()?;
    stream.upload(&concat_now(&here.iter().collect::<Vec<_>>(), &Stream::cpu())?)
}

/// On the CPU, by arrow-select: as much memory as it may need is reserved before.
fn by_arrow(arrays: &[&Array], admitted: Vec<Cow<'_, Array>>, stream: &Stream) -> Result<Array> {
    let theirs = admitted.iter().map(|array| exchange::to_arrow(array)).collect::<Result<Vec<_>>>()?;
    let admitted: Vec<Array> = admitted.into_iter().map(|array| array.into_owned()).collect();
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
