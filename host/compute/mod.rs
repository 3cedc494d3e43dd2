//! L7: the operations: check the arguments, choose the device's way, launch.
//!
//! Every operation takes its arrays and, last, the [`crate::Stream`] it runs on. Arrays that the stream's device
//! cannot reach are [`crate::Error::Invalid`].

pub mod batches;
mod cast;
mod concat;
mod filter;
mod nullability;
mod nulls;
mod selection;
mod take;
pub mod tensors;

pub use cast::{CastOptions, DurationFormat, FormatOptions, can_cast, cast, cast_batch};
pub use concat::concat;
pub use filter::{filter, filter_batch, filter_batch_later, filter_later};
pub use nullability::nullable;
pub use nulls::{
    drop_nulls, is_not_null, is_null, logical_null_count, null_count, null_count_batch,
    null_count_batch_later,
};
pub use selection::Selection;
pub use take::{OutOfBounds, TakeOptions, take, take_batch, take_batch_later, take_later};

use std::borrow::Cow;

use crate::array::Place;
use crate::{Array, Error, Result, Stream, exchange};

/// The array as a stream may work on it: its device, or the host, must reach it. The host itself is about to read, so it
/// waits until that may be, and looks at the ends that could not be read when the array was imported.
fn admit<'a>(operation: &'static str, array: &'a Array, stream: &Stream) -> Result<Cow<'a, Array>> {
    let (here, there) = (stream.device().place(), array.place());
    if !here.reaches(there) {
        return Err(Error::invalid(operation, format!("an array on {there} and a stream on {here}")));
    }
    if here != Place::CPU {
        return Ok(Cow::Borrowed(array));
    }
    array.wait()?;
    exchange::read_ends(array)
}

/// All of these.
fn admit_all<'a>(
    operation: &'static str,
    arrays: &[&'a Array],
    stream: &Stream,
) -> Result<Vec<Cow<'a, Array>>> {
    arrays.iter().map(|array| admit(operation, array, stream)).collect()
}
