//! Arrays over the Arrow C device data interface.

use std::collections::HashMap;

use arrow_schema::Field;
use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{Array, exchange};

use crate::device::{BowstringDevice, BowstringStream};
use crate::status::{BowstringStatus, borrow, free, give, guard, missing, put, write_out};

/// An array, with the name, nullability and metadata it came with.
pub struct BowstringArray {
    pub(crate) array: Array,
    pub(crate) field: Field,
}

impl BowstringArray {
    /// Rows of this array, any of which may be null: the name goes along, and what the metadata says of the values.
    pub(crate) fn with(&self, array: Array) -> BowstringArray {
        let mut result = self.part(array);
        result.field = result.field.with_nullable(true);
        result
    }

    /// Other values, one for each row of this array: the name goes along, and nothing that was said of the old values.
    pub(crate) fn others(&self, array: Array) -> BowstringArray {
        let mut result = self.with(array);
        result.field = result.field.with_metadata(HashMap::<String, String>::new());
        result
    }

    /// The values as what `to` says, its metadata included.
    pub(crate) fn cast(&self, array: Array, to: &Field) -> BowstringArray {
        let mut result = self.with(array);
        result.field = result.field.with_metadata(to.metadata().clone());
        result
    }

    /// Rows of this array, under its field.
    pub(crate) fn part(&self, array: Array) -> BowstringArray {
        BowstringArray { field: self.field.clone().with_data_type(array.data_type().clone()), array }
    }
}

/// Imports an array of `device`, copying and waiting for nothing. `array` is moved from (its `release` becomes NULL)
/// and released once nothing uses it any more, also on failure; only `BOWSTRING_STATUS_INVALID` and
/// `BOWSTRING_STATUS_UNSUPPORTED` may leave it as it was: look at `release`. `schema` is only read and stays the
/// caller's. Host memory (`ARROW_DEVICE_CPU`) goes with any device. What the structs say is checked; what stands in the
/// buffers is believed (bowstring_array_validate has the details): bowstring_array_import_validated looks at that too.
///
/// # Safety
///
/// The structs must follow the Arrow C device data interface; releasing on any thread must be fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import(
    device: *const BowstringDevice,
    array: *mut ArrowDeviceArray,
    schema: *const FFI_ArrowSchema,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let array = array.as_mut().ok_or_else(|| missing("array"))?;
        let schema = borrow(schema, "schema")?;
        borrow(out, "out")?;
        let (field, array) = exchange::import_array(array, schema, &device.0)?;
        give(BowstringArray { array, field }, out)
    })
}

/// Exports an array and its schema; the handle stays valid. Both structs must be uninitialised or released ones: they
/// are overwritten. Consumers must wait for `sync_event` unless it is NULL. Either struct may be NULL: not wanted.
/// `null_count` is -1 where only a device knows it. Synchronises only where a copy to host memory, which has no event to
/// give along, is still on its way.
///
/// # Safety
///
/// `array` must be NULL or a live handle, the structs NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_export(
    array: *const BowstringArray,
    out_array: *mut ArrowDeviceArray,
    out_schema: *mut FFI_ArrowSchema,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let array = borrow(array, "array")?;
        let (exported, schema) = exchange::export_array(&array.array, &array.field)?;
        write_out(exported, out_array);
        write_out(schema, out_schema);
        Ok(())
    })
}

/// How many rows.
///
/// # Safety
///
/// `array` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_length(
    array: *const BowstringArray,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(borrow(array, "array")?.array.len() as u64, out) })
}

/// Which device the array is on: an `ArrowDeviceType`, and a number, which is -1 for the CPU.
///
/// # Safety
///
/// `array` must be NULL or a live handle, both results NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_device(
    array: *const BowstringArray,
    device_type: *mut i32,
    device_id: *mut i64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let place = borrow(array, "array")?.array.place();
        borrow(device_type, "device_type")?;
        put(place.device_id, device_id)?;
        put(place.device_type as i32, device_type)
    })
}

/// Rows `offset .. offset + length` of an array, copying nothing.
///
/// # Safety
///
/// `array` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_slice(
    array: *const BowstringArray,
    offset: u64,
    length: u64,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let array = borrow(array, "array")?;
        give(array.part(array.array.slice(offset as usize, length as usize)?), out)
    })
}

/// Blocks until the array may be read. Where it cannot be because of its data (an index out of bounds, a value that a
/// strict cast found not to fit), this says so.
///
/// # Safety
///
/// `array` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_wait(array: *const BowstringArray) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { borrow(array, "array")?.array.wait() })
}

/// The array on the device of `stream`: a copy of one in host memory; what is on the device already is not copied. Does not
/// synchronise.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_device(
    array: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (array, stream) = (borrow(array, "array")?, &borrow(stream, "stream")?.0);
        give(array.part(stream.upload(&array.array)?), out)
    })
}

/// The array in host memory: a copy of one on the device of `stream`; what is in host memory already is not copied.
/// Synchronises only where a foreign string's extent is not known; exporting the copy waits for it.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_to_host(
    array: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (array, stream) = (borrow(array, "array")?, &borrow(stream, "stream")?.0);
        give(array.part(stream.download(&array.array)?), out)
    })
}

/// Frees an array handle; memory that others still use lives on.
///
/// # Safety
///
/// `array` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_free(array: *mut BowstringArray) {
    // SAFETY: the caller's promise.
    unsafe { free(array) }
}
