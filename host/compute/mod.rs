//! L5: the operations: check the arguments, choose the device's way, launch.
//!
//! Every operation takes its arrays and, last, the [`crate::Stream`] it runs on. Arrays that the stream's device
//! cannot reach are [`crate::Error::Invalid`].

pub mod batches;
mod cast;
mod device;
mod filter;
mod nulls;
mod selection;
mod take;

pub use cast::{CastOptions, DurationFormat, FormatOptions, can_cast, cast};
pub use filter::{filter, filter_batch, filter_batch_later, filter_later};
pub use nulls::{drop_nulls, is_not_null, is_null, logical_null_count, null_count};
pub use selection::Selection;
pub use take::{OutOfBounds, TakeOptions, take, take_batch};

use crate::array::Place;
use crate::{Array, Error, Result, Stream};

/// Whether a stream may work on these arrays: its device, or the host, must reach them. The host itself is about to read,
/// so it waits until they are ready.
fn admit(operation: &'static str, arrays: &[&Array], stream: &Stream) -> Result<()> {
    let here = stream.device().place();
    for array in arrays {
        let there = array.place();
        if !here.reaches(there) {
            return Err(Error::invalid(operation, format!("an array on {there} and a stream on {here}")));
        }
        if here == Place::CPU {
            array.wait()?;
            if has_unknown_extent(array) {
                let problem = "a buffer of unknown extent: download the array on its device's stream".into();
                return Err(Error::Invalid { operation, problem });
            }
        }
    }
    Ok(())
}

/// Whether the host cannot tell where a buffer ends: an array that its device was still writing when it was imported.
fn has_unknown_extent(array: &Array) -> bool {
    let buffers = array.buffers().iter().chain(array.validity().map(|bits| &bits.buffer));
    buffers.into_iter().any(|buffer| buffer.bytes().is_none())
        || array.children().iter().chain(array.dictionary()).any(has_unknown_extent)
}
