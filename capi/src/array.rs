//! Arrays over the Arrow C device data interface.

use std::collections::HashMap;

use arrow_schema::Field;
use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{DeviceArray, exchange};

use crate::device::{BowstringDevice, BowstringStream};
use crate::status::{BowstringStatus, borrow, free, give, guard, missing, put, write_out};

/// An array, with the name, nullability and metadata of its field.
pub struct BowstringArray {
    pub(crate) array: DeviceArray,
    pub(crate) field: Field,
}

impl BowstringArray {
    /// Rows of this array, any of which may be null. The result keeps the name and the metadata, and is
    /// nullable.
    pub(crate) fn with(&self, array: DeviceArray) -> BowstringArray {
        let mut result = self.part(array);
        result.field = result.field.with_nullable(true);
        result
    }

    /// Other values, one for each row of this array. The result keeps the name but not the metadata, which
    /// describes the old values.
    pub(crate) fn others(&self, array: DeviceArray) -> BowstringArray {
        let mut result = self.with(array);
        result.field = result.field.with_metadata(HashMap::<String, String>::new());
        result
    }

    /// The values cast to the type of `to`. The result keeps the name, and has the metadata of `to`.
    pub(crate) fn cast(&self, array: DeviceArray, to: &Field) -> BowstringArray {
        let mut result = self.with(array);
        result.field = result.field.with_metadata(to.metadata().clone());
        result
    }

    /// Rows of this array. The result keeps the field.
    pub(crate) fn part(&self, array: DeviceArray) -> BowstringArray {
        BowstringArray { field: self.field.clone().with_data_type(array.data_type().clone()), array }
    }
}

/// Imports an array of `device`. Copies nothing and does not synchronise. This takes `array`: its `release`
/// becomes NULL, and the library releases the array when nothing uses it any more, and on failure too. Only
/// `BOWSTRING_STATUS_INVALID` and `BOWSTRING_STATUS_UNSUPPORTED` may leave `array` unchanged: its `release`
/// is then not NULL, and the caller must release it. `schema` is only read and stays the caller's.
///
/// Any `device` may import host memory (`ARROW_DEVICE_CPU`). The library checks what the structs state and
/// believes the contents of the buffers; bowstring_array_validate has the details.
/// bowstring_array_import_validated checks the contents too.
///
/// # Safety
///
/// The structs must follow the Arrow C device data interface. Any thread may release the array.
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

/// Exports an array and its schema. The handle stays valid. Both structs are overwritten, so they must be
/// uninitialised or released; the caller releases them. Either may be NULL if it is not wanted. `null_count`
/// is -1 if only a device knows it.
///
/// The consumer must wait for `sync_event` unless it is NULL. Synchronises only if the array is a copy to
/// host memory that has not finished, because host memory has no event to pass on.
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

/// Returns the number of rows.
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

/// Returns the device that the array is on: its `ArrowDeviceType`, and its number, which is -1 for the CPU.
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

/// Returns `length` rows of an array, starting at row `offset`. Copies nothing.
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

/// Blocks until the array may be read. Returns the error if the data made the operation fail, such as an
/// index out of bounds or a value that did not fit in a strict cast.
///
/// # Safety
///
/// `array` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_wait(array: *const BowstringArray) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { borrow(array, "array")?.array.wait() })
}

/// Returns the array on the device of `stream`. Copies an array that is in host memory; one that is on the
/// device already is shared. Waits for work that still writes the host memory, and, if it uploads more
/// than 256 MiB, until the device has copied the first of them.
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

/// Returns the array in host memory. Copies an array that is on the device of `stream`; one that is in host
/// memory already is shared. Synchronises once if only the device knows an extent, of an imported array's
/// text or views. Waits for all bytes if there are more than 256 MiB. Exporting the copy waits for it.
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

/// Frees an array handle. Memory that other handles or consumers use stays valid. NULL is ignored.
///
/// # Safety
///
/// `array` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_free(array: *mut BowstringArray) {
    // SAFETY: the caller's promise.
    unsafe { free(array) }
}
