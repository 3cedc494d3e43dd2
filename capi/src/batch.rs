//! Batches over the Arrow C device data interface, and what was said of them besides their schemas.

use std::ffi::c_char;

use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{Array, Batch, exchange};

use crate::array::BowstringArray;
use crate::device::{BowstringDevice, BowstringStream};
use crate::metadata::{EncodedMetadata, pairs};
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put, write_out};

/// Arrays of equal length with names: a record batch.
pub struct BowstringBatch(pub(crate) Batch, pub(crate) EncodedMetadata);

impl BowstringBatch {
    pub(crate) fn new(batch: Batch) -> BowstringBatch {
        BowstringBatch(batch, EncodedMetadata::default())
    }
}

/// Imports a struct array as a batch; otherwise as `bowstring_array_import`.
///
/// # Safety
///
/// See `bowstring_array_import`.
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

/// Exports a batch as a struct array; otherwise as `bowstring_array_export`.
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

/// How many rows.
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

/// A column of a batch as an array, copying nothing.
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

/// Blocks until the batch may be read. Where it cannot be because of its data (an index out of bounds, a value that a
/// strict cast found not to fit), this says so.
///
/// # Safety
///
/// `batch` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_wait(batch: *const BowstringBatch) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { borrow(batch, "batch")?.0.columns().iter().try_for_each(Array::wait) })
}

/// The batch on the device of `stream`: a copy of one in host memory; what is on the device already is not copied. Does not
/// synchronise.
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

/// The batch in host memory: a copy of one on the device of `stream`; what is in host memory already is not copied.
/// Synchronises only where a foreign string's extent is not known; exporting the copy waits for it.
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

/// Frees a batch handle; memory that others still use lives on.
///
/// # Safety
///
/// `batch` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batch_free(batch: *mut BowstringBatch) {
    // SAFETY: the caller's promise.
    unsafe { free(batch) }
}

/// What was said of a batch besides its schema, by the producer of an asynchronous stream or by
/// `bowstring_batch_with_metadata`: pairs in the encoding of ArrowSchema.metadata, or NULL where nothing was. It is the
/// handle's, and valid until that is freed. Operations on batches give it on with their results.
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
        put(said.of(batch.metadata()), out)
    })
}

/// The batch, copying nothing, with `metadata` said of it, which is copied: pairs in the encoding of ArrowSchema.metadata, or
/// NULL for none. Who consumes it in an asynchronous stream is told.
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
