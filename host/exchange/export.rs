//! Exports C structs. Every struct of a tree, including children and dictionaries, owns its part of the
//! memory by itself, so a consumer may move any of them out and release them in any order.
//!
//! A C struct has one offset for all its buffers, while a [`DeviceArray`] has a separate offset for
//! validity: see [`Shift`].

use std::borrow::Cow;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_schema::{DataType, Field, UnionMode};

use super::arrow::{count_nulls, moved_bits};
use super::extents;
use crate::array::{Buffer, DeviceArray, DeviceBatch, Owner, Parts, Place, Ready, Slot};
use crate::device::{Reader, joined, let_go};
use crate::ffi::{ArrowArray, ArrowDeviceArray, FFI_ArrowSchema};
use crate::{Error, Result};

/// Exports an array with the name, nullability and metadata of a field. Copies nothing, except that a
/// validity bitmap in host memory is copied if its bits are not aligned with the values.
///
/// The event that the array waits for becomes `sync_event`. If the array waits for several events,
/// `sync_event` is one that completes after all of them. `null_count` is exact if it is known or the host can
/// count; otherwise it is -1, which not all consumers accept. For such consumers, count nulls on the device
/// first. A consumer may release device memory while its own work still reads it: see
/// [`Device::set_export_fence`](crate::Device::set_export_fence). Synchronises only if a copy to host memory
/// is still in progress, because host arrays have no event.
pub fn export_array(array: &DeviceArray, field: &Field) -> Result<(ArrowDeviceArray, FFI_ArrowSchema)> {
    check_type(array, field)?;
    let schema = FFI_ArrowSchema::try_from(field).map_err(unwritable)?;
    Ok((device_array(array)?, schema))
}

/// Exports a batch as a struct array with offset 0 and no nulls; otherwise like [`export_array`].
pub fn export_batch(batch: &DeviceBatch) -> Result<(ArrowDeviceArray, FFI_ArrowSchema)> {
    let schema = FFI_ArrowSchema::try_from(batch.schema().as_ref()).map_err(unwritable)?;
    Ok((device_array(&rows(batch, Place::CPU)?)?, schema))
}

/// Exports an array in host memory once it is ready; otherwise like [`export_array`].
pub fn export_host_array(array: &DeviceArray, field: &Field) -> Result<(ArrowArray, FFI_ArrowSchema)> {
    check_type(array, field)?;
    let schema = FFI_ArrowSchema::try_from(field).map_err(unwritable)?;
    Ok((host_array(array)?, schema))
}

/// Exports a batch in host memory once it is ready; otherwise like [`export_batch`].
pub fn export_host_batch(batch: &DeviceBatch) -> Result<(ArrowArray, FFI_ArrowSchema)> {
    let schema = FFI_ArrowSchema::try_from(batch.schema().as_ref()).map_err(unwritable)?;
    Ok((host_array(&host_rows(batch)?)?, schema))
}

pub(super) fn unwritable(error: arrow_schema::ArrowError) -> Error {
    Error::Arrow { operation: "export", problem: error.to_string() }
}

fn check_type(array: &DeviceArray, field: &Field) -> Result<()> {
    if array.data_type() == field.data_type() {
        return Ok(());
    }
    Err(Error::invalid("export", format!("{} under a field of {}", array.data_type(), field.data_type())))
}

/// Converts a batch into a struct array for the host: there, if it reads all columns.
pub(super) fn host_rows(batch: &DeviceBatch) -> Result<DeviceArray> {
    match batch.columns().iter().all(|column| Place::CPU.reaches(column.place())) {
        true => rows_at(batch, Place::CPU),
        false => rows(batch, Place::CPU),
    }
}

/// Converts a batch into a struct array: where the column is that reaches all others, or, without columns, at
/// a place.
pub(super) fn rows(batch: &DeviceBatch, without_columns: Place) -> Result<DeviceArray> {
    let places = || batch.columns().iter().map(DeviceArray::place);
    let first = places().next().unwrap_or(without_columns);
    let reaches_all = |place: &Place| places().all(|other| place.reaches(other));
    // Pinned and managed memory do not reach each other, and their device reaches both. Without columns, the
    // first place reaches all.
    let device = Place { device_type: first.device_type.device(), ..first };
    let Some(place) = places().chain([first, device]).find(reaches_all) else {
        let other = places().find(|other| *other != first).unwrap_or(first);
        return Err(Error::invalid("export", format!("columns on {first} and {other}")));
    };
    rows_at(batch, place)
}

/// Converts a batch into a struct array at a place, which reaches all columns.
fn rows_at(batch: &DeviceBatch, place: Place) -> Result<DeviceArray> {
    let mut parts = Parts::new(DataType::Struct(batch.schema().fields().clone()), batch.len());
    parts.place = place;
    parts.children = batch.columns().iter().map(|column| column.seen_from(place)).collect();
    DeviceArray::try_new(parts)
}

pub(super) fn device_array(array: &DeviceArray) -> Result<ArrowDeviceArray> {
    device_array_keeping(array, None)
}

/// Like [`device_array`], and also keeps `also` alive. The top struct owns `also`; a child that the consumer
/// moves out does not.
pub(super) fn device_array_keeping(array: &DeviceArray, also: Option<Owner>) -> Result<ArrowDeviceArray> {
    let event = pending(array)?;
    let sync_event = event.as_ref().and_then(|event| event.sync_event());
    let host_reads = array.place().device_type.host_accessible() && event.is_none();
    let array = if host_reads { extents::read(array)? } else { Cow::Borrowed(array) };
    Ok(ArrowDeviceArray {
        array: node(&array, host_reads, KeepAlive { _event: event, _also: also })?,
        device_id: array.place().device_id,
        device_type: array.place().device_type as i32,
        sync_event: sync_event.map_or(null_mut(), |event| event.as_ptr()),
        reserved: [0; 3],
    })
}

pub(super) fn host_array(array: &DeviceArray) -> Result<ArrowArray> {
    if !array.place().device_type.host_accessible() {
        return Err(Error::Unsupported {
            operation: "export to the host",
            what: array.data_type().into(),
            device: array.place().device_type,
        });
    }
    if let Some(event) = pending(array)? {
        event.wait()?;
    }
    node(&*extents::read(array)?, true, KeepAlive::default())
}

/// One event for all pending events of the array and its descendants, or `None` if all are ready.
fn pending(array: &DeviceArray) -> Result<Option<Arc<dyn Ready>>> {
    fn collect(array: &DeviceArray, into: &mut Vec<Arc<dyn Ready>>) -> Result<()> {
        if let Some(event) = array.ready()
            && !into.iter().any(|known| Arc::ptr_eq(known, event))
            && !event.is_ready()?
        {
            into.push(event.clone());
        }
        array.children().iter().chain(array.dictionary()).try_for_each(|child| collect(child, into))
    }
    let mut events = vec![];
    collect(array, &mut events)?;
    // The interface has room for one event, and only on devices.
    match array.place() {
        Place::CPU => events.iter().try_for_each(|event| event.wait()).map(|()| None),
        _ => joined(events),
    }
}

/// The way in which the offset of the buffers and that of the validity bitmap become one. Everything but
/// validity loses `skipped` rows at its front, by moving pointers and slicing children, so that `offset` rows
/// precede the first one. The validity bitmap loses whole bytes. This requires offsets that are equal modulo
/// 8 if rows cannot be cut off, or if values are single bits. Otherwise the bitmap is copied.
struct Shift {
    offset: usize,
    skipped: usize,
    validity: Option<Buffer>,
}

impl Shift {
    fn of(array: &DeviceArray) -> Result<Shift> {
        let rows = array.offset();
        let Some(bits) = array.validity() else {
            return Ok(Shift { offset: rows, skipped: 0, validity: None });
        };
        let offset = match bits.offset <= rows {
            true => Some(bits.offset),
            false => rows.checked_sub((rows + 8 - bits.offset % 8) % 8),
        };
        let by_bytes = array.layout().slots().all(|slot| slot != Slot::Bits);
        if let Some(offset) = offset.filter(|offset| by_bytes || (rows - offset).is_multiple_of(8)) {
            let validity = bits.buffer.slice((bits.offset - offset) / 8, None);
            return Ok(Shift { offset, skipped: rows - offset, validity: Some(validity) });
        }
        if !array.place().device_type.host_accessible() {
            return Err(Error::Unsupported {
                operation: "export",
                what: format!("{} with validity out of step", array.data_type()).into(),
                device: array.place().device_type,
            });
        }
        if let Some(event) = array.ready() {
            event.wait()?;
        }
        let offset = rows % 8;
        let validity = moved_bits(bits, array.len(), offset)?;
        Ok(Shift { offset, skipped: rows - offset, validity: Some(validity) })
    }
}

/// Host buffers of no bytes point here: some consumers reject null pointers, and some read the first offset.
static ZEROS: [u64; 8] = [0; 8];

/// Everything that a struct owns until it is released.
struct Exported {
    addresses: Box<[*const c_void]>,
    children: Box<[*mut ArrowArray]>,
    dictionary: *mut ArrowArray,
    _sizes: Box<[i64]>,
    _validity: Option<Buffer>,
    /// `None` only while `Exported` is dropped.
    array: Option<DeviceArray>,
    _kept: KeepAlive,
}

/// Additional owners that the top struct of a tree keeps alive.
#[derive(Default)]
struct KeepAlive {
    _event: Option<Arc<dyn Ready>>,
    _also: Option<Owner>,
}

impl Drop for Exported {
    fn drop(&mut self) {
        for child in self.children.iter().copied().chain([self.dictionary]).filter(|child| !child.is_null()) {
            // SAFETY: boxed in `node`; a child that the consumer has moved away is marked released, and
            // dropping it frees no more than the box.
            drop(unsafe { Box::from_raw(child) });
        }
        if let Some(array) = self.array.take() {
            let_go(array, Reader::default());
        }
    }
}

unsafe extern "C" fn release(array: *mut ArrowArray) {
    // SAFETY: the interface asks for null or a valid struct.
    let Some(array) = (unsafe { array.as_mut() }) else { return };
    if array.release.take().is_none() {
        return;
    }
    let kept = std::mem::replace(&mut array.private_data, null_mut()).cast::<Exported>();
    // SAFETY: boxed in `node`, and taken out only here, once.
    let kept = unsafe { Box::from_raw(kept) };
    // A panic must not unwind into C, and this function cannot report it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(kept)));
}

/// The array that a struct was exported from, if this library exported it: a consumer may have moved the
/// struct and hand it back. The original array knows the lengths of its buffers, which the struct does not
/// state.
pub(super) fn exported(array: &ArrowArray) -> Option<&DeviceArray> {
    kept(array).and_then(|kept| kept.array.as_ref())
}

fn kept(array: &ArrowArray) -> Option<&Exported> {
    let ours: unsafe extern "C" fn(*mut ArrowArray) = release;
    array.release.filter(|theirs| std::ptr::fn_addr_eq(*theirs, ours))?;
    // SAFETY: only `node` hands out this callback, beside what it boxed, which is there until the release.
    unsafe { array.private_data.cast::<Exported>().as_ref() }
}

/// The owner of buffer `i` of a struct, if this library exported the struct from memory that it knows. If an
/// import shared the struct instead, each export and import of an array would nest its owner once more.
pub(super) fn owner_of(array: &ArrowArray, i: usize, address: usize, bytes: Option<usize>) -> Option<Owner> {
    let kept = kept(array)?;
    let ours = kept.array.as_ref()?;
    let zeros = ZEROS.as_ptr().addr();
    if address == 0 || address == zeros && bytes.is_some_and(|bytes| bytes <= size_of_val(&ZEROS)) {
        return Some(Arc::new(()));
    }
    let buffer = match i.checked_sub(ours.layout().validity.into()) {
        None => kept._validity.as_ref(),
        Some(i) => ours.buffers().get(i),
    };
    let Some(buffer) = buffer else { return sizes_owner(ours, address) };
    let start = address.checked_sub(buffer.address())?;
    let is_inside = match buffer.bytes() {
        Some(all) => start <= all && bytes.is_none_or(|bytes| bytes <= all - start),
        None => start == 0,
    };
    is_inside.then(|| buffer.owner().clone())
}

/// The owner of the sizes of an array's data buffers, if all are in device memory of one owner.
fn sizes_owner(array: &DeviceArray, address: usize) -> Option<Owner> {
    let mut sizes = array.buffers().iter().filter_map(Buffer::extent_at);
    let first = sizes.next().filter(|first| first.address() == address)?;
    let start = |size: &Buffer| Arc::as_ptr(size.owner()).addr();
    sizes.all(|size| start(size) == start(first)).then(|| first.owner().clone())
}

/// The address on the device of the array of these buffers' sizes, if the producer stored the sizes
/// contiguously. Null pointers have no bytes, whatever their sizes.
fn sizes_on_the_device(buffers: &[Buffer]) -> Option<usize> {
    let (mut start, mut known) = (None, true);
    for (n, buffer) in buffers.iter().enumerate() {
        match buffer.extent_at() {
            Some(size) => {
                let first = size.address().checked_sub(8 * n);
                known &= first.is_some() && (start.is_none() || start == first);
                start = first;
            }
            None => known &= buffer.address() == 0,
        }
    }
    start.filter(|_| known)
}

/// Exports one struct of the tree, with its children and dictionary.
fn node(array: &DeviceArray, host_reads: bool, kept: KeepAlive) -> Result<ArrowArray> {
    if host_reads && !array.known_valid() {
        extents::check(array)?;
    }
    let shift = Shift::of(array)?;
    let layout = array.layout();
    let host = array.place().device_type.host_accessible();
    let pointer = |address: usize| match address {
        0 if host => ZEROS.as_ptr().cast(),
        address => std::ptr::with_exposed_provenance(address),
    };

    let mut addresses: Vec<*const c_void> = vec![];
    if layout.validity {
        addresses.push(shift.validity.as_ref().map_or(null(), |bits| pointer(bits.address())));
    }
    for (slot, buffer) in layout.slots().zip(array.buffers()) {
        let skipped = match slot {
            Slot::Bits => shift.skipped / 8,
            Slot::Fixed(width) | Slot::Offsets(width) => shift.skipped * width,
            Slot::Views => shift.skipped * 16,
            Slot::Bytes => 0,
        };
        addresses.push(match buffer.bytes() {
            // An array of no rows need not have offsets. Consumers may read the first, and arrow-rs requires
            // it to be 0.
            _ if host && array.is_empty() && matches!(slot, Slot::Offsets(_)) => pointer(0),
            Some(0) if host => pointer(0),
            _ => pointer(buffer.address() + skipped),
        });
    }
    let variadic = array.buffers().get(layout.slots().count()..).unwrap_or_default();
    addresses.extend(variadic.iter().map(|buffer| pointer(buffer.address())));
    let known = variadic.iter().map(|buffer| buffer.bytes().map(|bytes| bytes as i64));
    let sizes: Box<[i64]> = known.collect::<Option<_>>().unwrap_or_default();
    if layout.variadic {
        addresses.push(match (sizes.is_empty(), variadic) {
            (true, []) => pointer(0),
            (true, unknown) => pointer(sizes_on_the_device(unknown).ok_or_else(|| Error::Unsupported {
                operation: "export",
                what: format!("{} with buffers of unknown sizes", array.data_type()).into(),
                device: array.place().device_type,
            })?),
            (false, _) => sizes.as_ptr().cast(),
        });
    }

    let mut children = Vec::with_capacity(array.children().len());
    for child in array.children() {
        let rows_of_child = match array.data_type() {
            DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => Some(1),
            DataType::FixedSizeList(_, size) => Some(*size as usize),
            _ => None,
        };
        let end = shift.offset + array.len();
        children.push(match rows_of_child.filter(|_| shift.skipped > 0) {
            Some(each) => {
                node(&child.slice(shift.skipped * each, end * each)?, host_reads, KeepAlive::default())?
            }
            None => node(child, host_reads, KeepAlive::default())?,
        });
    }
    let dictionary =
        array.dictionary().map(|values| node(values, host_reads, KeepAlive::default())).transpose()?;
    let null_count = match (array.data_type(), array.known_null_count(), array.validity()) {
        (DataType::Null, ..) => array.len() as i64,
        (_, Some(known), _) => known as i64,
        (_, None, Some(bits)) if host_reads => count_nulls(bits, array.len())? as i64,
        _ => -1,
    };

    let boxed = |array: ArrowArray| Box::into_raw(Box::new(array));
    let mut exported = Box::new(Exported {
        addresses: addresses.into(),
        children: children.into_iter().map(boxed).collect(),
        dictionary: dictionary.map_or(null_mut(), boxed),
        _sizes: sizes,
        _validity: shift.validity,
        array: Some(array.clone()),
        _kept: kept,
    });
    Ok(ArrowArray {
        length: array.len() as i64,
        null_count,
        // Without rows no offset applies, and the single offset in the buffer is the first.
        offset: if array.is_empty() { 0 } else { shift.offset as i64 },
        n_buffers: exported.addresses.len() as i64,
        n_children: exported.children.len() as i64,
        buffers: exported.addresses.as_mut_ptr(),
        children: exported.children.as_mut_ptr(),
        dictionary: exported.dictionary,
        release: Some(release),
        private_data: Box::into_raw(exported).cast(),
    })
}
