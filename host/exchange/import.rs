//! C structs in. The one place that trusts a stranger, and this is what it trusts: that pointers which are not null
//! point to what the interface says is there, as long as the struct's lengths say; that nobody writes to it; and that
//! the memory may be read, and the struct released, on any thread. Everything that can be checked without reading
//! device memory is checked: counts, signs, overflows, nulls, types, and on the host the ends of offsets. What else stands
//! in buffers is believed until somebody validates it (`validate.rs`); the documentation of [`import_array`] says by whom.
//!
//! An import takes the struct over (the source is marked released) and gives it to an owner that all buffers share;
//! dropping the owner is the release, so it happens once, whatever becomes of the import.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::nodes::Nodes;
use crate::array::{Array, Batch, Owner, Place};
use crate::device::Device;
use crate::ffi::{ArrowArray, ArrowDeviceArray, DeviceType, FFI_ArrowSchema, check_schema};
use crate::{Error, Result};

/// Imports a device array and its field, copying nothing and waiting for nothing.
///
/// Buffers need be neither aligned nor padded. Kernels read aligned blocks of 16 bytes that hold something wanted, and of such
/// a block all of it: where a producer has not padded its buffers, as Arrow recommends, a tool that knows memory to the byte
/// (compute-sanitizer's memcheck) reports reads of up to 15 bytes beyond them. They cannot fault, and no result depends on them.
///
/// # What is looked at
///
/// Import looks at all that the structs say: counts, signs, lengths against lengths, null pointers, types, sums that overflow;
/// and, where the host may read the memory now, at where offsets and run ends start and end. On a device these ends are
/// looked at when the array is used. What else stands in the buffers is believed, and so is the null count. Operations check
/// what they follow, and pass on what they only move: nothing here reads or writes memory that the structs did not describe,
/// but whoever gets a result gets what was wrong with it, too. An operation that has nothing to do (a filter that keeps all
/// rows, a cast to the same type) passes on everything.
///
/// | what is wrong | `filter` | `take` | `drop_nulls` | `concat` | `cast` that follows it | logical nulls |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | offsets between the first and the last | error or right | error | error | error | error | passed on |
/// | views | passed on | passed on | passed on | error; GPU: error or passed on | error; GPU: error or right | passed on |
/// | list views | passed on | passed on | passed on | error | error | passed on |
/// | dictionary keys | passed on | passed on | error or passed on | error; GPU: passed on | error | error or passed on |
/// | run ends before the last | right; GPU: error or right | right | error or right; GPU: error or passed on or right | error; GPU: error or passed on or right | error; GPU: right | error or passed on; GPU: passed on |
/// | type ids of sparse unions | passed on | passed on | error or passed on | error; GPU: passed on | - | error or passed on |
/// | type ids and offsets of dense unions | passed on | error | error or passed on | error | - | error or passed on |
/// | text that is not UTF-8 | passed on | passed on | passed on | error; GPU: passed on | error or right; GPU: error or passed on or right | passed on |
/// | null counts | right | right | passed on or right | right; GPU: passed on or right | passed on or right; GPU: passed on | passed on |
///
/// "error": it is reported, at once or when the result is waited for. "passed on": the result is as wrong. "right": the result
/// is valid, because what was wrong is not needed for it. Numbers, times and decimals may be any bytes. Validate a stranger's
/// data before it goes on to a consumer that believes what it gets: by [`validate_on`](super::validate_on) or
/// [`validate_batch`](super::validate_batch), a stream by
/// [`validate_batches`](crate::compute::batches::validate_batches). [`to_arrow`](super::to_arrow) looks by itself.
///
/// ```
/// # use bowstring::{Batch, Device, Result, exchange, ffi::{ArrowDeviceArray, FFI_ArrowSchema}};
/// /// An import that believes no contents either.
/// unsafe fn import_validated(array: &mut ArrowDeviceArray, schema: &FFI_ArrowSchema, device: &Device) -> Result<Batch> {
///     // SAFETY: the caller's promise.
///     let batch = unsafe { exchange::import_batch(array, schema, device) }?;
///     exchange::validate_batch(&batch, &device.stream()?)?;
///     Ok(batch)
/// }
/// ```
///
/// # Who owns what
///
/// The array is moved out of `array`, and released exactly once: when the last part of it is dropped, or before this
/// returns an error. Only where the array is on a device other than `device` (the CPU goes with all) is it left alone.
///
/// # Safety
///
/// Both structs must be what the Arrow C device data interface says, as far as this cannot be checked: pointers that
/// are not null must point to what they should, for as long as lengths and offsets say, unchanging until released; and
/// `sync_event` to an event of the device's runtime. Using and releasing it on any thread must be fine.
pub unsafe fn import_array(
    array: &mut ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
    device: &Device,
) -> Result<(Field, Array)> {
    let place = served(array.device_type, array.device_id, device)?;
    let taken = array.take();
    // SAFETY: the caller's promise.
    unsafe {
        check_schema(schema)?;
        let field = Field::try_from(schema).map_err(unparsable)?;
        let array = import_typed(taken, field.data_type(), place, device)?;
        Ok((field, array))
    }
}

/// Reads a schema: its fields' names, types and metadata.
///
/// # Safety
///
/// Its pointers that are not null must point to what the Arrow C data interface says.
pub unsafe fn import_schema(schema: &FFI_ArrowSchema) -> Result<Schema> {
    // SAFETY: the caller's promise.
    unsafe { check_schema(schema) }?;
    Schema::try_from(schema).map_err(unparsable)
}

/// Reads a schema as a single field; otherwise as [`import_schema`].
///
/// # Safety
///
/// See [`import_schema`].
pub unsafe fn import_field(schema: &FFI_ArrowSchema) -> Result<Field> {
    // SAFETY: the caller's promise.
    unsafe { check_schema(schema) }?;
    Field::try_from(schema).map_err(unparsable)
}

/// Imports a device array of structs as a batch; otherwise as [`import_array`].
///
/// # Safety
///
/// See [`import_array`].
pub unsafe fn import_batch(
    array: &mut ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
    device: &Device,
) -> Result<Batch> {
    let place = served(array.device_type, array.device_id, device)?;
    let taken = array.take();
    // SAFETY: the caller's promise.
    unsafe {
        check_schema(schema)?;
        let types = Schema::try_from(schema).map_err(unparsable)?;
        let array = import_typed(taken, &DataType::Struct(types.fields().clone()), place, device)?;
        batch(Arc::new(types), &array)
    }
}

/// Imports an array in host memory and its field; otherwise as [`import_array`].
///
/// # Safety
///
/// See [`import_array`].
pub unsafe fn import_host_array(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<(Field, Array)> {
    // SAFETY: the caller's promise.
    unsafe { import_array(&mut on_the_host(array), schema, &Device::cpu()) }
}

/// Imports an array of structs in host memory as a batch; otherwise as [`import_array`].
///
/// # Safety
///
/// See [`import_array`].
pub unsafe fn import_host_batch(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<Batch> {
    // SAFETY: the caller's promise.
    unsafe { import_batch(&mut on_the_host(array), schema, &Device::cpu()) }
}

/// A plain array as what it is: a device array on the CPU.
pub(super) fn on_the_host(array: ArrowArray) -> ArrowDeviceArray {
    ArrowDeviceArray { array, device_type: DeviceType::Cpu as i32, ..ArrowDeviceArray::empty() }
}

/// The batch that a struct array is.
pub(super) fn batch(schema: SchemaRef, rows: &Array) -> Result<Batch> {
    if rows.known_null_count() != Some(0) {
        return Err(Error::out_of_spec("array.null_count", "a batch's rows must be known not to be null"));
    }
    let columns = (0..rows.children().len()).map(|i| rows.child_rows(i)).collect::<Result<_>>()?;
    Batch::try_new(schema, columns, rows.len())
}

pub(super) fn unparsable(error: arrow_schema::ArrowError) -> Error {
    Error::out_of_spec("schema", error.to_string())
}

/// Where memory of this kind and device is, if `device` serves it.
pub(super) fn served(device_type: i32, device_id: i64, device: &Device) -> Result<Place> {
    let own = device.place();
    let theirs = match DeviceType::from_abi(device_type) {
        Some(DeviceType::Cpu) => return Ok(Place::CPU),
        Some(theirs) if theirs.device() == own.device_type => theirs,
        _ => {
            return Err(Error::Unsupported {
                operation: "import",
                data_type: format!("memory of device type {device_type}"),
                device: own.device_type,
            });
        }
    };
    if theirs.is_numbered() && device_id != own.device_id {
        return Err(Error::invalid("import", format!("an array of device {device_id} for {own}")));
    }
    Ok(Place { device_type: theirs, device_id: own.device_id })
}

/// Imports an array whose type is known. `place` is what [`served`] said of it.
///
/// # Safety
///
/// See [`import_array`].
pub(super) unsafe fn import_typed(
    array: ArrowDeviceArray,
    data_type: &DataType,
    place: Place,
    device: &Device,
) -> Result<Array> {
    let mut array = array;
    let event = NonNull::new(array.sync_event);
    if event.is_some() && place == Place::CPU {
        return Err(Error::out_of_spec("array.sync_event", "not null on the CPU"));
    }
    let root = Arc::new(array.array.take());
    let owner: Owner = root.clone();
    // SAFETY: the caller promised that it points to an event of this device's runtime; the owner keeps it.
    let ready = event.map(|event| unsafe { device.import_event(event, owner.clone()) }).transpose()?;
    let host_reads = place.device_type.host_accessible() && ready.is_none();
    // SAFETY: the caller's promise.
    unsafe { Nodes { owner, place, ready, host_reads, device }.import(&root, data_type) }
}
