//! Conversions to and from arrow-rs. Both sides describe an array in the same way (one offset for the
//! buffers, a separate one for the validity bitmap), so each direction walks over the parts and shares every
//! buffer.
//!
//! arrow-rs believes what an array says about itself: its input must be valid in every byte, and aligned.
//! [`to_arrow`] therefore validates an array, once. Three kinds of arrays are marked valid: those that it
//! found valid, those that came from arrow-rs, and those that an operation made from such arrays.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_data::{ArrayData, ArrayDataBuilder};
use arrow_schema::{ArrowError, DataType, IntervalUnit};

use super::{contents, guarded, read_ends};
use crate::array::{Bitmap, Buffer, DeviceArray, DeviceBatch, Parts, Slot};
use crate::device::{Device, interrupt};
use crate::{Error, Result};

/// The size in bytes from which arrow-rs validates an array on a separate thread.
const LONG: usize = 16 << 20;

/// Converts an arrow-rs array into a [`DeviceArray`] on the CPU that shares its memory.
pub fn from_arrow(array: &dyn arrow_array::Array) -> Result<DeviceArray> {
    from_arrow_data(&array.to_data())
}

/// Converts arrow-rs array data into a [`DeviceArray`] on the CPU that shares its memory.
pub fn from_arrow_data(data: &ArrayData) -> Result<DeviceArray> {
    let mut parts = Parts::new(data.data_type().clone(), data.len());
    parts.offset = data.offset();
    parts.buffers = data.buffers().iter().map(from_arrow_buffer).collect();
    if let Some(nulls) = data.nulls() {
        parts.validity = Some(Bitmap { buffer: from_arrow_buffer(nulls.buffer()), offset: nulls.offset() });
        parts.null_count = Some(nulls.null_count());
    }
    let mut children: Vec<DeviceArray> =
        data.child_data().iter().map(from_arrow_data).collect::<Result<_>>()?;
    if let DataType::Dictionary(..) = parts.data_type {
        parts.dictionary = children.pop();
    }
    parts.children = children;
    let array = DeviceArray::try_new(parts)?;
    // arrow-rs only makes valid arrays, except for callers who promised validity.
    array.set_known_valid();
    Ok(array)
}

/// Converts a host array into an arrow-rs array that shares its memory. Validates the array first, unless it
/// is known to be valid; invalid Arrow data is [`Error::OutOfSpec`]. Copies buffers that are misaligned for
/// arrow-rs. Waits for the array's event.
pub fn to_arrow(array: &DeviceArray) -> Result<ArrayRef> {
    let data = to_arrow_data(array)?;
    guarded("to_arrow", || Ok(make_array(data)))
}

/// Converts a host array into arrow-rs array data; otherwise like [`to_arrow`].
pub fn to_arrow_data(array: &DeviceArray) -> Result<ArrayData> {
    let array = &*readable("to_arrow", array)?;
    let data = share(array)?;
    if !array.known_valid() {
        look_through(array, &data)?;
        mark(array, &contents::true_counts(array, &data));
    }
    Ok(data)
}

/// Validates an array in host memory even if it is known to be valid. Every part must be valid, and every
/// null count correct.
pub(super) fn read_through(operation: &'static str, array: &DeviceArray) -> Result<()> {
    let array = &*readable(operation, array)?;
    let data = share(array)?;
    look_through(array, &data)?;
    let counts = contents::true_counts(array, &data);
    mark(array, &counts);
    counts
}

/// Checks that no part of an array in host memory has nulls under a field that is not nullable.
pub(crate) fn lacks_nulls(array: &DeviceArray) -> Result<()> {
    let data = share(array)?;
    let _reserved = Device::cpu().host_pool().reserve(contents::spread(array))?;
    guarded("cast", || contents::each_part(array, &data, &contents::no_nulls_where_forbidden))
}

/// Validates an array with arrow-rs, after reserving the memory that arrow-rs allocates for it.
fn look_through(array: &DeviceArray, data: &ArrayData) -> Result<()> {
    let reserved = Device::cpu().host_pool().reserve(contents::spread(array))?;
    let (array, data) = (array.clone(), data.clone());
    interrupt::apart(data.get_array_memory_size() >= LONG, move || {
        let _reserved = reserved;
        guarded("validate", || contents::check(&array, &data))
    })
}

/// Marks an array as valid, unless a null count is wrong. Operations believe null counts, so a wrong one
/// would let rows pass whose contents were never checked.
fn mark(array: &DeviceArray, true_counts: &Result<()>) {
    if true_counts.is_ok() {
        array.set_known_valid();
    }
}

/// The array with its extents known, once the host may read it.
fn readable<'a>(operation: &'static str, array: &'a DeviceArray) -> Result<Cow<'a, DeviceArray>> {
    let device = array.place().device_type;
    if !device.host_accessible() {
        return Err(Error::Unsupported { operation, what: array.data_type().into(), device });
    }
    array.wait()?;
    read_ends(array)
}

/// Converts an arrow-rs batch into a [`DeviceBatch`] on the CPU that shares its memory.
pub fn batch_from_arrow(batch: &RecordBatch) -> Result<DeviceBatch> {
    let columns = batch.columns().iter().map(|column| from_arrow(column)).collect::<Result<_>>()?;
    DeviceBatch::try_new(batch.schema(), columns, batch.num_rows())
}

/// Converts a host batch into an arrow-rs batch; each column is converted by [`to_arrow`].
pub fn batch_to_arrow(batch: &DeviceBatch) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(to_arrow).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.len()));
    RecordBatch::try_new_with_options(batch.schema().clone(), columns, &options).map_err(refused)
}

/// Shares the memory, as [`from_arrow`] does.
impl TryFrom<&ArrayRef> for DeviceArray {
    type Error = Error;

    fn try_from(array: &ArrayRef) -> Result<DeviceArray> {
        from_arrow(array)
    }
}

/// Validates once and shares the memory, as [`to_arrow`] does.
impl TryFrom<&DeviceArray> for ArrayRef {
    type Error = Error;

    fn try_from(array: &DeviceArray) -> Result<ArrayRef> {
        to_arrow(array)
    }
}

/// Shares the memory, as [`batch_from_arrow`] does.
impl TryFrom<&RecordBatch> for DeviceBatch {
    type Error = Error;

    fn try_from(batch: &RecordBatch) -> Result<DeviceBatch> {
        batch_from_arrow(batch)
    }
}

/// Validates each column once, as [`batch_to_arrow`] does.
impl TryFrom<&DeviceBatch> for RecordBatch {
    type Error = Error;

    fn try_from(batch: &DeviceBatch) -> Result<RecordBatch> {
        batch_to_arrow(batch)
    }
}

fn refused(error: ArrowError) -> Error {
    Error::Arrow { operation: "to_arrow", problem: error.to_string() }
}

fn from_arrow_buffer(buffer: &arrow_buffer::Buffer) -> Buffer {
    let address = buffer.as_ptr().expose_provenance();
    // SAFETY: the owner, a handle on the same memory, keeps `len` bytes readable, and arrow-rs shares no
    // buffer that can still be written.
    unsafe { Buffer::new(address, Some(buffer.len()), Arc::new(buffer.clone())) }
}

/// Describes the array's memory to arrow-rs. The caller is responsible for the validity of its contents.
fn share(array: &DeviceArray) -> Result<ArrayData> {
    let mut buffers: Vec<_> = array.buffers().iter().map(to_arrow_buffer).collect::<Result<_>>()?;
    // Arrays of no rows may have less than one offset; arrow-rs requires a complete one or none.
    if let (0, Some(Slot::Offsets(width)), Some(offsets)) =
        (array.len(), array.layout().slots[0], buffers.first_mut())
        && offsets.len() < (array.offset() + 1) * width
    {
        *offsets = arrow_buffer::Buffer::default();
    }
    // arrow-rs checks these values for an alignment of four bytes, and then reads them as 64-bit words.
    if let (DataType::Interval(IntervalUnit::DayTime), Some(values)) =
        (array.data_type(), buffers.first_mut())
        && !values.as_ptr().cast::<i64>().is_aligned()
    {
        *values = arrow_buffer::Buffer::from(values.as_slice());
    }
    // Counted here, because arrow-rs relies on the count, and foreign counts may be wrong.
    let nulls = array.validity().map(|bits| host_bits(bits, array.len()).map(NullBuffer::new)).transpose()?;
    let children = array.children().iter().chain(array.dictionary());
    let builder = ArrayDataBuilder::new(array.data_type().clone())
        .len(array.len())
        .offset(array.offset())
        .nulls(nulls)
        .buffers(buffers)
        .child_data(children.map(share).collect::<Result<_>>()?)
        .align_buffers(true);
    // SAFETY: nothing is read here; before anything is, the callers know or make sure that all of it is
    // valid.
    unsafe { builder.skip_validation(true) }.build().map_err(refused)
}

fn host_bits(bits: &Bitmap, len: usize) -> Result<BooleanBuffer> {
    Ok(BooleanBuffer::new(to_arrow_buffer(&bits.buffer)?, bits.offset, len))
}

/// The number of null rows in a host bitmap.
pub(super) fn count_nulls(bits: &Bitmap, len: usize) -> Result<usize> {
    Ok(len - host_bits(bits, len)?.count_set_bits())
}

/// A copy of a host bitmap that starts at bit `offset`.
pub(super) fn moved_bits(bits: &Bitmap, len: usize, offset: usize) -> Result<Buffer> {
    let mut copy = BooleanBufferBuilder::new(offset + len);
    copy.append_n(offset, false);
    copy.append_buffer(&host_bits(bits, len)?);
    Ok(from_arrow_buffer(&copy.finish().into_inner()))
}

fn to_arrow_buffer(buffer: &Buffer) -> Result<arrow_buffer::Buffer> {
    let Some(bytes) = buffer.bytes() else {
        return Err(Error::invalid("to_arrow", "a buffer of unknown extent"));
    };
    let start = std::ptr::with_exposed_provenance_mut::<u8>(buffer.address());
    let (Some(start), 1..) = (NonNull::new(start), bytes) else {
        return Ok(arrow_buffer::Buffer::default());
    };
    // A buffer that came from arrow-rs is returned unwrapped: wrapping it each time would nest owners without
    // limit.
    if let Some(own) = buffer.owner().downcast_ref::<arrow_buffer::Buffer>()
        && let Some(before) = buffer.address().checked_sub(own.as_ptr().addr())
        && before + bytes <= own.len()
    {
        return Ok(own.slice_with_length(before, bytes));
    }
    let owner = Arc::new(AssertUnwindSafe(buffer.owner().clone()));
    // SAFETY: `Buffer::new` promised `bytes` readable, unchanging bytes for as long as the owner lives.
    Ok(unsafe { arrow_buffer::Buffer::from_custom_allocation(start, bytes, owner) })
}
