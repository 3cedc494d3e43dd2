//! Contents read through: on request, on the way in, and batch by batch as a stream brings them.

use bowstring::compute::batches;
use bowstring::exchange;
use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::{BowstringDevice, BowstringStream};
use crate::status::{BowstringStatus, borrow, give, guard, missing};
use crate::stream::{BowstringArrays, BowstringBatches};

/// Reads all of an array and says whether it is valid Arrow data in every part: offsets in order and in range, views inside
/// their buffers, text in UTF-8, keys and type ids inside what they index, run ends ascending, null counts true. What is not
/// is BOWSTRING_STATUS_OUT_OF_SPEC, and bowstring_last_error says where. An array that the host cannot read is downloaded on
/// `stream` for it, whole. Synchronises.
///
/// Import looks at all that the structs say, and at where offsets and run ends start and end: on a device, when the array is
/// used. What else stands in the buffers, and the null count, it believes. Operations check what they follow and pass on what
/// they only move: call this function before a stranger's data goes on to a consumer that believes what it gets.
/// "error": reported at once or by who waits for the result; "passed on": the result is as wrong; "right": the result is
/// valid, because what was wrong is not needed for it.
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
/// An operation that has nothing to do, such as a filter that keeps all rows, passes on everything. Numbers, times and
/// decimals may be any bytes.
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

/// The same for every column of a batch; and a column whose field is not nullable has no nulls.
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

/// As `bowstring_array_import`, for producers whose contents are not to be believed: what `bowstring_array_validate` refuses
/// is not imported, and has been released. Synchronises.
///
/// # Safety
///
/// See `bowstring_array_import`; `stream` must be NULL or a live handle.
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

/// As `bowstring_batch_import`, with contents as by `bowstring_batch_validate`; otherwise as
/// `bowstring_array_import_validated`.
///
/// # Safety
///
/// See `bowstring_array_import_validated`.
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

/// Each batch as it is, once it was found valid, as by `bowstring_batch_validate`; one that is not ends the stream.
/// `batches` is taken: its handle is left empty, and still to be freed; on failure it stays as it was. Nothing is read now.
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

/// Each array as it is, once it was found valid, as by `bowstring_array_validate`; otherwise as `bowstring_batches_validate`.
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
