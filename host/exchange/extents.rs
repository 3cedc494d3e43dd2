//! Ends that only the contents state: the last offset, the last run end, the sizes of a view's data.
//!
//! Import checks these ends if the host can read them. Memory that a device shares with the host but is still
//! writing is checked later, when the host is about to work on it: [`read`]. An export for the host to read
//! is checked once more, because rows of a slice end with an inner offset of the whole array, which import
//! does not check: [`check`].

use std::borrow::Cow;

use arrow_schema::DataType;

use crate::array::{Buffer, DeviceArray, Place, Slot};
use crate::{Error, Result};

/// The array with all ends read and checked, as import does if the host can read them. The array must be in
/// memory that the host can read, and its event must have occurred.
pub(crate) fn read(array: &DeviceArray) -> Result<Cow<'_, DeviceArray>> {
    Ok(unread(array)?.map_or(Cow::Borrowed(array), Cow::Owned))
}

/// The array with all ends known; `None` if they already were.
fn unread(array: &DeviceArray) -> Result<Option<DeviceArray>> {
    if !array.place().device_type.host_accessible() || array.known_valid() {
        return Ok(None);
    }
    let known = array.with_extents(&mut |number| {
        let width = number.bytes().unwrap_or(0);
        // SAFETY: import was promised the number, in memory that the host reads.
        Ok(if width == 0 { 0 } else { unsafe { integer(number.address(), width, 0) } })
    })?;
    // An array without an event was checked when it was imported; a plain host array only waits for copies of
    // our own.
    if array.place() != Place::CPU {
        waited_for(known.as_ref().unwrap_or(array))?;
    }
    Ok(known)
}

/// Checks the ends that import could not read.
fn waited_for(array: &DeviceArray) -> Result<()> {
    if array.ready().is_some() {
        check(array)?;
        let end = array.offset() + array.len();
        // SAFETY: import was promised run ends for the length.
        unsafe { run_ends(array.data_type(), array.children(), (array.len(), end), true) }?;
    }
    for (i, child) in array.children().iter().enumerate() {
        waited_for(child).map_err(|error| error.inside(&format!("children[{i}]")))?;
    }
    array.dictionary().map_or(Ok(()), waited_for).map_err(|error| error.inside("dictionary"))
}

/// Checks that the first and last offsets of an array in readable host memory are inside of what they point
/// into. Its extents must be known.
pub(super) fn check(array: &DeviceArray) -> Result<()> {
    let (Some(Slot::Offsets(width)), [offsets, below @ ..]) = (array.layout().slots[0], array.buffers())
    else {
        return Ok(());
    };
    if array.is_empty() {
        return Ok(());
    }
    // SAFETY: the array has offsets up to the last row's, and the host reads this memory.
    let last = unsafe { last_offset(offsets, width, array.offset(), array.offset() + array.len()) };
    let last = last.map_err(|problem| Error::out_of_spec("array.buffers[0]", problem))?;
    match (array.children(), below) {
        ([child], _) => reach(child, last),
        (_, [bytes]) if bytes.bytes().is_none_or(|bytes| bytes < last) => {
            let problem = format!("{} bytes, but offsets reach {last}", bytes.bytes().unwrap_or(0));
            Err(Error::out_of_spec("array.buffers[1]", problem))
        }
        _ => Ok(()),
    }
}

/// Checks that a list's child has the rows that offsets point to.
pub(super) fn reach(child: &DeviceArray, needed: usize) -> Result<()> {
    if needed <= child.len() {
        return Ok(());
    }
    Err(Error::out_of_spec("array.children[0]", format!("{} rows of {needed} needed", child.len())))
}

/// The end of the data that offsets refer to. Checks the first and the last offset, and returns the problem
/// as an error.
///
/// # Safety
///
/// The host reads the buffer, which holds `end + 1` offsets, or none if it is said to have no bytes.
pub(super) unsafe fn last_offset(
    offsets: &Buffer,
    width: usize,
    start: usize,
    end: usize,
) -> Result<usize, String> {
    if offsets.bytes() == Some(0) {
        return Ok(0);
    }
    // SAFETY: the caller's promise.
    let [first, last] = [start, end].map(|row| unsafe { integer(offsets.address(), width, row) });
    if first < 0 || first > last {
        return Err(format!("offsets go from {first} to {last}"));
    }
    Ok(last as usize)
}

/// Checks that run ends, if the host can read them, reach the last of `len` rows, which is the one before
/// `end`.
///
/// # Safety
///
/// If the host may look, the children's buffers hold what their lengths say.
pub(super) unsafe fn run_ends(
    data_type: &DataType,
    children: &[DeviceArray],
    (len, end): (usize, usize),
    host_reads: bool,
) -> Result<()> {
    let bad = |problem: String| Err(Error::out_of_spec("array.children[0]", problem));
    let (DataType::RunEndEncoded(field, _), [ends, _]) = (data_type, children) else {
        return Ok(());
    };
    let Some(last) = (ends.offset() + ends.len()).checked_sub(1).filter(|_| !ends.is_empty()) else {
        return if len == 0 { Ok(()) } else { bad("no run ends".into()) };
    };
    if !host_reads || len == 0 {
        return Ok(());
    }
    let width = field.data_type().primitive_width().unwrap_or(1);
    // SAFETY: a fixed-width buffer holds all rows of its array.
    let last = unsafe { integer(ends.buffers()[0].address(), width, last) };
    if last < end as i64 {
        return bad(format!("run ends reach {last} of {end} rows"));
    }
    Ok(())
}

/// Integer `i` of those at `address`, which may be misaligned.
///
/// # Safety
///
/// More than `i` integers of `width` bytes are there, readable by the host.
pub(super) unsafe fn integer(address: usize, width: usize, i: usize) -> i64 {
    let start: *const u8 = std::ptr::with_exposed_provenance(address);
    // SAFETY: the caller's promise.
    unsafe {
        match width {
            2 => start.cast::<i16>().add(i).read_unaligned().into(),
            4 => start.cast::<i32>().add(i).read_unaligned().into(),
            _ => start.cast::<i64>().add(i).read_unaligned(),
        }
    }
}
