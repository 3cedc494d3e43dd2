//! Full validation of contents: of an array or a batch, during import, and of each batch of a stream.

use bowstring::compute::batches;
use bowstring::exchange;
use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::{BowstringDevice, BowstringStream};
use crate::status::{BowstringStatus, borrow, give, guard, missing};
use crate::stream::{BowstringArrays, BowstringBatches};

/// Validates an array in full. Checks that offsets are in order and in range, views are inside their buffers,
/// text is UTF-8, keys and type ids are in range, run ends ascend, and null counts are correct. An array that
/// is not valid is BOWSTRING_STATUS_OUT_OF_SPEC, and bowstring_last_error names the malformed part. An array
/// that the host cannot read is first downloaded in full on `stream`. Synchronises.
///
/// Import checks everything that the structs state, and the first and last offsets and run ends; on a device
/// it leaves those to the operation that uses the array. It believes all other buffer contents, and the null
/// count. Operations check the values that they follow, and pass on the values that they only move. Call this
/// function before you hand data from an untrusted producer to a consumer that does not validate it.
///
/// The table lists what each operation does with a malformed array. "error": the problem is reported, at once
/// or when the result is waited for. "passed on": the result is as wrong as the input. "right": the result is
/// valid, because it does not depend on the malformed part.
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
/// An operation that has nothing to do, such as a filter that keeps all rows, passes on everything. Numbers,
/// times and decimals may be any bytes.
///
/// # Safety
///
/// Handles must be NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_validate(
    array: *const BowstringArray,
    stream: *const BowstringStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { exchange::validate_on(&borrow(array, "array")?.array, &borrow(stream, "stream")?.0) })
}

/// Validates every column of a batch, as `bowstring_array_validate` does. Also checks that columns whose
/// field is not nullable have no nulls.
///
/// # Safety
///
/// Handles must be NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_validate(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { exchange::validate_batch(&borrow(batch, "batch")?.0, &borrow(stream, "stream")?.0) })
}

/// Imports an array from an untrusted producer: like `bowstring_array_import`, followed by
/// `bowstring_array_validate`. An array that is not valid is released. Synchronises.
///
/// # Safety
///
/// The requirements of `bowstring_array_import` apply; `stream` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_validated(
    device: *const BowstringDevice,
    array: *mut ArrowDeviceArray,
    schema: *const FFI_ArrowSchema,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let array = array.as_mut().ok_or_else(|| missing("array"))?;
        let schema = borrow(schema, "schema")?;
        let stream = borrow(stream, "stream")?;
        borrow(out, "out")?;
        let (field, array) = exchange::import_array(array, schema, &device.0)?;
        exchange::validate_on(&array, &stream.0)?;
        give(BowstringArray { array, field }, out)
    })
}

/// Imports a batch from an untrusted producer: like `bowstring_batch_import`, followed by
/// `bowstring_batch_validate`. A batch that is not valid is released. Synchronises.
///
/// # Safety
///
/// The requirements of `bowstring_array_import_validated` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_import_validated(
    device: *const BowstringDevice,
    array: *mut ArrowDeviceArray,
    schema: *const FFI_ArrowSchema,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let array = array.as_mut().ok_or_else(|| missing("array"))?;
        let schema = borrow(schema, "schema")?;
        let stream = borrow(stream, "stream")?;
        borrow(out, "out")?;
        let batch = exchange::import_batch(array, schema, &device.0)?;
        exchange::validate_batch(&batch, &stream.0)?;
        give(BowstringBatch::new(batch), out)
    })
}

/// Validates each batch, as `bowstring_batch_validate` does, and passes it on unchanged. A batch that is not
/// valid ends the stream with an error. This takes `batches`: the handle is left empty, and the caller must
/// still free it. On failure it is unchanged. This call reads no batch.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_validate(
    batches: *const BowstringBatches,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batches, stream) = (borrow(batches, "batches")?, &borrow(stream, "stream")?.0);
        borrow(out, "out")?;
        give(BowstringBatches::new(batches::validate_batches(batches.take()?, stream)), out)
    })
}

/// Validates each array, as `bowstring_array_validate` does; otherwise like `bowstring_batches_validate`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_arrays_validate(
    arrays: *const BowstringArrays,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArrays,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (arrays, stream) = (borrow(arrays, "arrays")?, &borrow(stream, "stream")?.0);
        borrow(out, "out")?;
        let source = arrays.take()?;
        let valid = batches::validate_arrays(source.items, stream);
        give(BowstringArrays::new(source.field, source.device_type, valid), out)
    })
}
