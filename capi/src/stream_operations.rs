//! The operations that transform streams of batches.

use std::sync::Arc;

use arrow_schema::DataType;
use bowstring::array::{Batches, Place};
use bowstring::compute::batches;
use bowstring::exchange;
use bowstring::ffi::FFI_ArrowSchema;

use crate::compute::{BowstringCastOptions, BowstringTakeOptions, cast_options, take_options};
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, give, guard, invalid};
use crate::stream::{BowstringArrays, BowstringBatches};

/// Filters each batch by the next array of `masks`, as `bowstring_filter_batch` does. This takes `batches`
/// and `masks`: the handles are left empty, and the caller must still free them. On failure they are
/// unchanged. This call reads nothing. When a batch is requested, one is filtered on `stream`; on a GPU up to
/// two more are begun. The stream fails if the masks end before the batches.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_filter(
    batches: *const BowstringBatches,
    masks: *const BowstringArrays,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batches, masks) = (borrow(batches, "batches")?, borrow(masks, "masks")?);
        let stream = &borrow(stream, "stream")?.0;
        borrow(out, "out")?;
        batches.with(|_| Ok(()))?;
        masks.with(|masks| match masks.field.data_type() {
            DataType::Boolean => Ok(()),
            _ => Err(invalid("the masks are not Boolean")),
        })?;
        let (masks, source) = (masks.take()?, batches.take()?);
        let kept = batches::filter_batches(source, batches::in_step(masks.items), stream);
        give(BowstringBatches::new(kept), out)
    })
}

/// Filters each batch by its own column number `mask`, which counts from 0; otherwise like
/// `bowstring_batches_filter`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_filter_by(
    batches: *const BowstringBatches,
    mask: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        let stream = &borrow(stream, "stream")?.0;
        borrow(out, "out")?;
        let fields = batches.with(|source| Ok(source.schema().fields().len()))?;
        if mask >= fields as u64 {
            return Err(invalid(format!("column {mask} of {fields}")));
        }
        let kept = batches::filter_batches(batches.take()?, batches::column(mask as usize), stream);
        give(BowstringBatches::new(kept), out)
    })
}

/// Takes rows of each batch at the next array of `indices`, as `bowstring_take_batch` does. All fields of the
/// result's schema are nullable. Otherwise like `bowstring_batches_filter`.
///
/// # Safety
///
/// Handles and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_take(
    batches: *const BowstringBatches,
    indices: *const BowstringArrays,
    options: *const BowstringTakeOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batches, indices) = (borrow(batches, "batches")?, borrow(indices, "indices")?);
        let (stream, options) = (&borrow(stream, "stream")?.0, take_options(options)?);
        borrow(out, "out")?;
        batches.with(|_| Ok(()))?;
        let (indices, source) = (indices.take()?, batches.take()?);
        let taken = batches::take_batches(source, batches::in_step(indices.items), &options, stream);
        give(BowstringBatches::new(taken), out)
    })
}

/// Casts the columns of each batch to the types of `to`, as `bowstring_cast_batch` does. `to` must have as
/// many fields as the batches have columns; the result has its names. `to` is only read. Otherwise like
/// `bowstring_batches_filter`.
///
/// # Safety
///
/// Handles, schema and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_cast(
    batches: *const BowstringBatches,
    to: *const FFI_ArrowSchema,
    options: *const BowstringCastOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        let (stream, options) = (&borrow(stream, "stream")?.0, cast_options(options)?);
        let to = exchange::import_schema(borrow(to, "to")?)?;
        borrow(out, "out")?;
        let casted = batches::cast_batches(batches.take()?, Arc::new(to), &options, stream);
        give(BowstringBatches::new(casted), out)
    })
}

/// Copies each batch to the device of `stream`, as `bowstring_batch_to_device` does; otherwise like
/// `bowstring_batches_filter`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_to_device(
    batches: *const BowstringBatches,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batches, stream) = (borrow(batches, "batches")?, borrow(stream, "stream")?.0.clone());
        borrow(out, "out")?;
        let source = batches.take()?;
        let (schema, place) = (source.schema().clone(), stream.device().place());
        let moved = source.map(move |batch| stream.upload(&batch?));
        give(BowstringBatches::new(Batches::new(schema, place, moved)), out)
    })
}

/// Copies each batch to host memory, as `bowstring_batch_to_host` does; otherwise like
/// `bowstring_batches_filter`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_to_host(
    batches: *const BowstringBatches,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batches, stream) = (borrow(batches, "batches")?, borrow(stream, "stream")?.0.clone());
        borrow(out, "out")?;
        let source = batches.take()?;
        let schema = source.schema().clone();
        let moved = source.map(move |batch| stream.download(&batch?));
        give(BowstringBatches::new(Batches::new(schema, Place::CPU, moved)), out)
    })
}
