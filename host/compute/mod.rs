//! L7: the public operations. They check their arguments, choose the implementation for the device, and
//! launch it.
//!
//! Every operation takes an array or a batch ([`Columns`]) and, as its last argument, the [`crate::Stream`]
//! that it runs on. It returns a [`crate::Pending`] result. Invalid arguments are detected at once, and
//! [`wait`](crate::Pending::wait) returns the error. Arrays that the stream's device cannot reach are
//! [`crate::Error::Invalid`].
//!
//! An operation that waits for a device, as listed in the table, does not block before `wait`, and not at all
//! if it is awaited. The exceptions are [`Coalescer`], a new [`Selection`], and a cast with a formatter of
//! the caller's own: they still block inside the call. On the CPU, operations run inside the call.
//!
//! | operation | waits for a device | copies |
//! | --- | --- | --- |
//! | [`filter`] | once per batch, for the number of rows | the kept rows |
//! | [`take`] | if lengths or runs depend on the data, or rows of dense unions | the rows at the indices |
//! | [`cast`] | if lengths, text, runs or dictionaries depend on the data | columns whose bits change |
//! | [`null_count`], [`logical_null_count`] | once per batch, if a count is not known | nothing |
//! | [`is_null`], [`is_not_null`] | never | bits; `is_not_null` shares them if possible |
//! | [`fill_null`] | never for fixed widths, otherwise like [`concat()`] and [`take`] | the values, if they may have nulls |
//! | [`concat()`] | if lengths or runs depend on the data | all arrays, if there are several |
//! | [`Coalescer`] | like [`filter`], [`take`] and, on a GPU, [`concat()`] | the rows, once on the CPU, twice on a GPU |
//! | [`drop_nulls`] | like [`filter`], if there may be nulls | the rows that are not null |
//! | [`filter_where`] | like [`filter`] | the rows for which an [expression](crate::expr) is true |
//! | [`evaluate`] | never, unless a cast or a test of text does | the results of the expressions |
//! | [`aggregate`] | once per batch, if it reads a column | one row |

mod aggregates;
pub mod batches;
mod cast;
mod coalesce;
mod computed;
mod concat;
mod expressions;
mod fill_null;
mod filter;
mod nullability;
mod nulls;
mod scalar;
mod selection;
mod settled;
mod take;
pub mod tensors;
mod text;

pub use crate::array::{Columns, nullable};
pub use cast::{CastOptions, DurationFormat, FormatOptions, can_cast, cast};
pub use coalesce::Coalescer;
pub use concat::concat;
pub use expressions::{Aggregates, Predicate, Projection, aggregate, evaluate, filter_where};
pub use fill_null::fill_null;
pub use filter::filter;
pub use nulls::{drop_nulls, is_not_null, is_null, logical_null_count, null_count};
pub use scalar::Scalar;
pub use selection::Selection;
pub use take::{OutOfBounds, TakeOptions, take};

use std::borrow::Cow;

use crate::array::Place;
use crate::{DeviceArray, Error, Result, Stream, exchange};

/// Checks that the stream's device can reach the array. The host reads the array next, so on the CPU this
/// waits for its event.
fn reach(operation: &'static str, array: &DeviceArray, stream: &Stream) -> Result<()> {
    let (here, there) = (stream.device().place(), array.place());
    if !here.reaches(there) {
        return Err(Error::invalid(operation, format!("an array on {there} and a stream on {here}")));
    }
    if here == Place::CPU { array.wait() } else { Ok(()) }
}

/// Checks all arrays and waits for them before threads share the work, so that no thread has to wait.
fn reach_all(operation: &'static str, arrays: &[DeviceArray], stream: &Stream) -> Result<()> {
    arrays.iter().try_for_each(|array| reach(operation, array, stream))
}

/// The array in the form in which operations use it. On the host, extents that import could not read are read
/// now, and memory shared with a device becomes plain host memory.
fn admit<'a>(
    operation: &'static str,
    array: &'a DeviceArray,
    stream: &Stream,
) -> Result<Cow<'a, DeviceArray>> {
    reach(operation, array, stream)?;
    if stream.device().place() != Place::CPU {
        return Ok(Cow::Borrowed(array));
    }
    let array = exchange::read_ends(array)?;
    Ok(if array.place() == Place::CPU { array } else { Cow::Owned(array.on_host()) })
}

/// Applies [`admit`] to several arrays.
fn admit_all<'a>(
    operation: &'static str,
    arrays: impl IntoIterator<Item = &'a DeviceArray>,
    stream: &Stream,
) -> Result<Vec<Cow<'a, DeviceArray>>> {
    arrays.into_iter().map(|array| admit(operation, array, stream)).collect()
}
