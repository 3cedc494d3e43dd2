//! Guards calls to arrow-rs functions: their panics become errors, and their memory counts like ours.
//!
//! The one idea: the caller knows how much memory a call takes at most, and has reserved it ([`HostPool`]'s
//! `reserve`), because a failed allocation inside the call would end the process. [`guarded`] catches all
//! other failures.
//!
//! [`HostPool`]: crate::device::HostPool

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::array::{Bitmap, Buffer, DeviceArray};
use crate::device::Reserved;
use crate::{Error, Result};

/// Calls arrow-rs and turns a panic into an error.
pub(crate) fn guarded<T>(operation: &'static str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    // The call's own values are dropped by the panic; it changes none of ours.
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Error::Arrow { operation, problem: format!("arrow-rs panicked: {said}") })
    })
}

/// A result of arrow-rs whose memory counts as in use while it lives, except for memory that it shares with
/// `inputs`.
pub(crate) fn counted(
    result: DeviceArray,
    inputs: &[&DeviceArray],
    mut reserved: Reserved,
) -> Result<DeviceArray> {
    let (mut shared, mut new) = (vec![], vec![]);
    inputs.iter().for_each(|input| buffers(input, &mut |buffer| shared.push(extent(buffer))));
    shared.sort_unstable();
    let is_shared = |buffer: &Buffer| {
        let (start, end) = extent(buffer);
        // Input buffers do not overlap, except for slices of one buffer, so any buffer that begins before
        // will do.
        let before = shared.partition_point(|(first, _)| *first <= start);
        shared[..before].iter().rev().any(|(_, last)| end <= *last)
    };
    buffers(&result, &mut |buffer| {
        if !is_shared(buffer) {
            new.push((buffer.address(), allocated(buffer)));
        }
    });
    new.sort_unstable();
    new.dedup_by_key(|(address, _)| *address);
    if new.is_empty() {
        return Ok(result);
    }
    reserved.resize(new.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes)));
    let counted: Arc<Reserved> = Arc::new(reserved);
    kept(result, &|buffer| match is_shared(buffer) {
        true => buffer.clone(),
        false => buffer.kept_with(counted.clone()),
    })
}

/// Calls `see` with every buffer that has bytes.
fn buffers(array: &DeviceArray, see: &mut impl FnMut(&Buffer)) {
    let own = array.buffers().iter().chain(array.validity().map(|bits| &bits.buffer));
    own.filter(|buffer| buffer.bytes() != Some(0)).for_each(&mut *see);
    array.children().iter().chain(array.dictionary()).for_each(|part| buffers(part, see));
}

/// The addresses of a buffer's start and end.
fn extent(buffer: &Buffer) -> (usize, usize) {
    (buffer.address(), buffer.address() + buffer.bytes().unwrap_or(0))
}

/// The size of the allocation that holds a buffer, if its owner reveals it.
fn allocated(buffer: &Buffer) -> usize {
    let owner: &(dyn Any + Send + Sync) = &**buffer.owner();
    let own = owner.downcast_ref::<arrow_buffer::Buffer>().map_or(0, arrow_buffer::Buffer::capacity);
    own.max(buffer.bytes().unwrap_or(0))
}

/// The array with its buffers replaced.
fn kept(array: DeviceArray, other: &impl Fn(&Buffer) -> Buffer) -> Result<DeviceArray> {
    let valid = array.known_valid();
    let mut parts = array.into_parts();
    parts.buffers.iter_mut().for_each(|buffer| *buffer = other(buffer));
    parts.validity = parts.validity.map(|bits| Bitmap { buffer: other(&bits.buffer), ..bits });
    parts.children = parts.children.into_iter().map(|child| kept(child, other)).collect::<Result<_>>()?;
    parts.dictionary = parts.dictionary.map(|values| kept(values, other)).transpose()?;
    DeviceArray::made(parts, valid)
}
