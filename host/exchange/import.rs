//! Imports C structs. This is the one place that trusts an external producer. It trusts that non-null
//! pointers point to what the interface defines, for as long as the struct's lengths say; that the memory
//! does not change; and that the memory may be read, and the struct released, on any thread. Import checks
//! everything that it can check without reading device memory: counts, signs, overflows, nulls, types, and in
//! host memory the ends of offsets. It believes all other buffer contents until a caller validates them
//! (`validate.rs`). The documentation of [`import_array`] says which operations check what.
//!
//! An import moves the struct out (the source is marked released) and gives it to an owner that all buffers
//! share. Dropping the owner releases the struct, so this happens exactly once, even if the import fails.

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::nodes::Nodes;
use crate::array::{DeviceArray, DeviceBatch, Owner, Place, children, well_formed};
use crate::device::Device;
use crate::ffi::{ArrowArray, ArrowDeviceArray, DeviceType, FFI_ArrowSchema, check_schema};
use crate::{Error, Result};

/// Imports a device array and its field. Copies nothing and does not wait for the producer's event.
///
/// Buffers need be neither aligned nor padded. Kernels read whole aligned blocks of 16 bytes if any byte of
/// the block is wanted. If a producer has not padded its buffers, as Arrow recommends, a tool that tracks
/// memory by the byte (compute-sanitizer's memcheck) reports reads of up to 15 bytes beyond them. These reads
/// cannot fault, and no result depends on them.
///
/// # What import checks
///
/// Import checks everything that the structs state: counts, signs, lengths against lengths, null pointers,
/// types, sums that overflow. If the host can read the memory at the time of the call, import also checks the
/// first and last offsets and run ends. On a device these are checked when the array is used. Import believes
/// all other buffer contents, and the null count. Operations check the values that they follow, and pass on
/// the values that they only move. No operation reads or writes memory that the structs did not describe, but
/// a result may be as malformed as its input. An operation that has nothing to do (a filter that keeps all
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
/// "error": the problem is reported, at once or when the result is waited for. "passed on": the result is as
/// wrong as the input. "right": the result is valid, because it does not depend on the malformed part.
/// Numbers, times and decimals may be any bytes. Validate data from an untrusted producer before you hand it
/// to a consumer that does not: with [`validate_on`](super::validate_on) or
/// [`validate_batch`](super::validate_batch), and a stream with
/// [`validate_batches`](crate::compute::batches::validate_batches). [`to_arrow`](super::to_arrow) validates
/// by itself.
///
/// ```
/// # use bowstring::{DeviceBatch, Device, Result, exchange, ffi::{ArrowDeviceArray, FFI_ArrowSchema}};
/// /// An import that believes no contents either.
/// unsafe fn import_validated(
///     array: &mut ArrowDeviceArray,
///     schema: &FFI_ArrowSchema,
///     device: &Device,
/// ) -> Result<DeviceBatch> {
///     // SAFETY: the caller's promise.
///     let batch = unsafe { exchange::import_batch(array, schema, device) }?;
///     exchange::validate_batch(&batch, &device.stream()?)?;
///     Ok(batch)
/// }
/// ```
///
/// # Ownership
///
/// The array is moved out of `array`, and released exactly once: when the last part of it is dropped, or
/// before this function returns an error. If the array is on a device other than `device`, it is left in
/// `array`. Arrays on the CPU are accepted with every device.
///
/// # Safety
///
/// Both structs must be what the Arrow C device data interface says, as far as this cannot be checked:
/// pointers that are not null must point to what they should, for as long as lengths and offsets say,
/// unchanging until released; and `sync_event` to an event of the device's runtime. Using and releasing the
/// array on any thread must be fine.
pub unsafe fn import_array(
    array: &mut ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
    device: &Device,
) -> Result<(Field, DeviceArray)> {
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

/// Imports a schema: its fields' names, types and metadata.
///
/// # Safety
///
/// Its pointers that are not null must point to what the Arrow C data interface says.
pub unsafe fn import_schema(schema: &FFI_ArrowSchema) -> Result<Schema> {
    // SAFETY: the caller's promise.
    unsafe { check_schema(schema) }?;
    schema_of(schema)
}

/// Imports a schema as a single field; otherwise like [`import_schema`].
///
/// # Safety
///
/// The requirements of [`import_schema`] apply.
pub unsafe fn import_field(schema: &FFI_ArrowSchema) -> Result<Field> {
    // SAFETY: the caller's promise.
    unsafe { check_schema(schema) }?;
    field_of(schema)
}

/// Imports a device array of structs as a batch; otherwise like [`import_array`].
///
/// # Safety
///
/// The requirements of [`import_array`] apply.
pub unsafe fn import_batch(
    array: &mut ArrowDeviceArray,
    schema: &FFI_ArrowSchema,
    device: &Device,
) -> Result<DeviceBatch> {
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

/// Imports an array in host memory and its field; otherwise like [`import_array`].
///
/// # Safety
///
/// The requirements of [`import_array`] apply.
pub unsafe fn import_host_array(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<(Field, DeviceArray)> {
    // SAFETY: the caller's promise.
    unsafe { import_array(&mut on_the_host(array), schema, &Device::cpu()) }
}

/// Imports an array of structs in host memory as a batch; otherwise like [`import_array`].
///
/// # Safety
///
/// The requirements of [`import_array`] apply.
pub unsafe fn import_host_batch(array: ArrowArray, schema: &FFI_ArrowSchema) -> Result<DeviceBatch> {
    // SAFETY: the caller's promise.
    unsafe { import_batch(&mut on_the_host(array), schema, &Device::cpu()) }
}

/// Converts a checked schema, whose types must be Arrow's.
pub(super) fn schema_of(schema: &FFI_ArrowSchema) -> Result<Schema> {
    let schema = Schema::try_from(schema).map_err(unparsable)?;
    schema.fields().iter().try_for_each(|field| all_well_formed(field.data_type()))?;
    Ok(schema)
}

/// Converts a checked schema to a single field; otherwise like [`schema_of`].
pub(super) fn field_of(schema: &FFI_ArrowSchema) -> Result<Field> {
    let field = Field::try_from(schema).map_err(unparsable)?;
    all_well_formed(field.data_type())?;
    Ok(field)
}

/// Checks a type and those inside of it. The import of an array checks each of its nodes, but a schema may
/// come without an array: that of a stream without batches.
fn all_well_formed(data_type: &DataType) -> Result<()> {
    well_formed(data_type).map_err(|problem| Error::out_of_spec("schema", problem))?;
    if let DataType::Dictionary(_, values) = data_type {
        all_well_formed(values)?;
    }
    children(data_type).into_iter().try_for_each(all_well_formed)
}

/// Wraps a plain array as a device array on the CPU.
pub(super) fn on_the_host(array: ArrowArray) -> ArrowDeviceArray {
    ArrowDeviceArray { array, device_type: DeviceType::Cpu as i32, ..ArrowDeviceArray::empty() }
}

/// Converts a struct array into a batch. The struct itself must have no nulls.
pub(super) fn batch(schema: SchemaRef, rows: &DeviceArray) -> Result<DeviceBatch> {
    if rows.known_null_count() != Some(0) {
        return Err(Error::out_of_spec("array.null_count", "a batch's rows must be known not to be null"));
    }
    let columns = (0..rows.children().len()).map(|i| rows.child_rows(i)).collect::<Result<_>>()?;
    DeviceBatch::try_new(schema, columns, rows.len())
}

pub(super) fn unparsable(error: arrow_schema::ArrowError) -> Error {
    Error::out_of_spec("schema", error.to_string())
}

/// The place that a device type and number denote, or an error if `device` cannot use that memory.
pub(super) fn served(device_type: i32, device_id: i64, device: &Device) -> Result<Place> {
    let own = device.place();
    let theirs = match DeviceType::from_abi(device_type) {
        Some(DeviceType::Cpu) => return Ok(Place::CPU),
        Some(theirs) if theirs.device() == own.device_type => theirs,
        _ => {
            return Err(Error::Unsupported {
                operation: "import",
                what: format!("memory of device type {device_type}").into(),
                device: own.device_type,
            });
        }
    };
    if theirs.is_numbered() && device_id != own.device_id {
        return Err(Error::invalid("import", format!("an array of device {device_id} for {own}")));
    }
    Ok(Place { device_type: theirs, device_id: own.device_id })
}

/// Imports an array whose type is known. `place` is the result of [`served`].
///
/// # Safety
///
/// The requirements of [`import_array`] apply.
pub(super) unsafe fn import_typed(
    array: ArrowDeviceArray,
    data_type: &DataType,
    place: Place,
    device: &Device,
) -> Result<DeviceArray> {
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
