//! The operations mapped over streams of batches.

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

/// Each batch with the rows where the next of `masks` is true. Both are taken: their handles are left empty, and still
/// to be freed; on failure they stay as they were. Nothing is read now. When a batch is asked for, one is filtered on
/// `stream`, as by `bowstring_filter_batch`; on a GPU up to two more are begun. Masks that end first are an error.
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

/// Each batch with the rows where its column number `mask` is true; otherwise as `bowstring_batches_filter`.
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

/// Each batch's rows at the next of `indices`, as by `bowstring_take_batch`, under a schema all of whose fields are nullable;
/// otherwise as `bowstring_batches_filter`.
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

/// Each batch with its columns cast to the types of `to`, a schema of as many fields, and under its names; otherwise as
/// `bowstring_batches_filter`. `to` is only read.
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

/// Each batch copied to the device of `stream`, as by `bowstring_batch_to_device`; otherwise as
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

/// Each batch copied to host memory, as by `bowstring_batch_to_host`; otherwise as `bowstring_batches_filter`.
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
