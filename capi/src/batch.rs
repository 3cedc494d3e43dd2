//! Batches over the Arrow C device data interface, and their metadata.

use std::ffi::c_char;

use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{DeviceArray, DeviceBatch, exchange};

use crate::array::BowstringArray;
use crate::device::{BowstringDevice, BowstringStream};
use crate::metadata::{EncodedMetadata, pairs};
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put, write_out};

/// A record batch: named arrays of equal length.
pub struct BowstringBatch(pub(crate) DeviceBatch, pub(crate) EncodedMetadata);

impl BowstringBatch {
    pub(crate) fn new(batch: DeviceBatch) -> BowstringBatch {
        BowstringBatch(batch, EncodedMetadata::default())
    }
}

/// Imports a struct array as a batch; otherwise like `bowstring_array_import`.
///
/// # Safety
///
/// The requirements of `bowstring_array_import` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_import(
    device: *const BowstringDevice,
    array: *mut ArrowDeviceArray,
    schema: *const FFI_ArrowSchema,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let array = array.as_mut().ok_or_else(|| missing("array"))?;
        let schema = borrow(schema, "schema")?;
        borrow(out, "out")?;
        give(BowstringBatch::new(exchange::import_batch(array, schema, &device.0)?), out)
    })
}

/// Exports a batch as a struct array; otherwise like `bowstring_array_export`.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, the structs NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_export(
    batch: *const BowstringBatch,
    out_array: *mut ArrowDeviceArray,
    out_schema: *mut FFI_ArrowSchema,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (exported, schema) = exchange::export_batch(&borrow(batch, "batch")?.0)?;
        write_out(exported, out_array);
        write_out(schema, out_schema);
        Ok(())
    })
}

/// Returns the number of rows.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_length(
    batch: *const BowstringBatch,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(borrow(batch, "batch")?.0.len() as u64, out) })
}

/// Returns column `index`, which counts from 0, as an array. Copies nothing.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_column(
    batch: *const BowstringBatch,
    index: u64,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batch = &borrow(batch, "batch")?.0;
        let column = usize::try_from(index).ok().and_then(|index| batch.columns().get(index));
        let column = column.ok_or_else(|| invalid(format!("column {index} of {}", batch.columns().len())))?;
        let field = batch.schema().field(index as usize).clone();
        give(BowstringArray { array: column.clone(), field }, out)
    })
}

/// Blocks until the batch may be read. Returns the error if the data made the operation fail, such as an
/// index out of bounds or a value that did not fit in a strict cast.
///
/// # Safety
///
/// `batch` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_wait(batch: *const BowstringBatch) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { borrow(batch, "batch")?.0.columns().iter().try_for_each(DeviceArray::wait) })
}

/// Returns the batch on the device of `stream`. Copies columns that are in host memory; those that are on the
/// device already are shared. Waits for work that still writes the host memory, and, if it uploads more
/// than 256 MiB, until the device has copied the first of them.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_to_device(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, &borrow(stream, "stream")?.0);
        give(BowstringBatch::new(stream.upload(&batch.0)?), out)
    })
}

/// Returns the batch in host memory. Copies columns that are on the device of `stream`; those that are in
/// host memory already are shared. Synchronises once if only the device knows an extent, of an imported
/// array's text or views. Waits for all bytes if there are more than 256 MiB. Exporting the copy waits for
/// it.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_to_host(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, &borrow(stream, "stream")?.0);
        give(BowstringBatch::new(stream.download(&batch.0)?), out)
    })
}

/// Frees a batch handle. Memory that other handles or consumers use stays valid. NULL is ignored.
///
/// # Safety
///
/// `batch` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_free(batch: *mut BowstringBatch) {
    // SAFETY: the caller's promise.
    unsafe { free(batch) }
}

/// Returns the batch's own metadata, which its schema does not contain: pairs in the encoding of
/// ArrowSchema.metadata, or NULL if there is none. It comes from the producer of an asynchronous stream, or
/// from `bowstring_batch_with_metadata`. Operations that select, order or convert the rows of one batch copy
/// it to their results. The handle owns it, and it is valid until the handle is freed.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_metadata(
    batch: *const BowstringBatch,
    out: *mut *const c_char,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let BowstringBatch(batch, said) = borrow(batch, "batch")?;
        put(said.of(batch.metadata())?, out)
    })
}

/// Returns the batch with other metadata; copies no column. `metadata` has pairs in the encoding of
/// ArrowSchema.metadata, which are copied, or is NULL for none. An asynchronous stream passes the metadata to
/// its consumer.
///
/// # Safety
///
/// `batch` must be NULL or a live handle, `metadata` NULL or metadata, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_with_metadata(
    batch: *const BowstringBatch,
    metadata: *const c_char,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batch = borrow(batch, "batch")?.0.clone();
        give(BowstringBatch::new(batch.with_metadata(pairs(metadata)?.into())), out)
    })
}
