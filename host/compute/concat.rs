//! Arrays one after another.

use super::admit_all;
use crate::{Array, Error, Pending, Result, Stream, cpu, exchange};

/// The rows of all arrays, which are of one type, in their order: what is made of the chunks of a foreign stream. In host
/// memory only: on a GPU it is [`Unsupported`](crate::Error::Unsupported). They are read through first, where they are not
/// known to be valid.
///
/// Copies all contents, but for what views point at, and nothing where there is one array.
pub fn concat(arrays: &[&Array], stream: &Stream) -> Pending<Array> {
    Pending::known(concat_now(arrays, stream))
}

fn concat_now(arrays: &[&Array], stream: &Stream) -> Result<Array> {
    let _current = stream.enter()?;
    let invalid = |problem: String| Err(Error::invalid("concat", problem));
    let Some((first, others)) = arrays.split_first() else { return invalid("no arrays".to_owned()) };
    if stream.as_gpu().is_some() {
        let (data_type, device) = (first.data_type().to_string(), stream.device().place().device_type);
        return Err(Error::Unsupported { operation: "concat", data_type, device });
    }
    if let Some(other) = others.iter().find(|other| other.data_type() != first.data_type()) {
        return invalid(format!("{} after {}", other.data_type(), first.data_type()));
    }
    let admitted = admit_all("concat", arrays.iter().copied(), stream)?;
    if others.is_empty() {
        return Ok((*first).clone());
    }
    let theirs = admitted.iter().map(|array| exchange::to_arrow(array)).collect::<Result<Vec<_>>>()?;
    let theirs: Vec<&dyn arrow_array::Array> = theirs.iter().map(|array| &**array).collect();
    let admitted: Vec<Array> = admitted.into_iter().map(|array| array.into_owned()).collect();
    let reserved = stream.device().host_pool().reserve(cpu::concat_bytes::of_concat(&admitted))?;
    let joined = exchange::guarded("concat", || {
        let joined = arrow_select::concat::concat(&theirs);
        joined.map_err(|error| Error::Arrow { operation: "concat", problem: error.to_string() })
    })?;
    exchange::counted(exchange::from_arrow(&joined)?, arrays, reserved)
}
