//! Asynchronous streams of batches, over the Arrow C async device stream interface, which is experimental: the producer
//! calls the consumer's handler.

use std::ffi::c_char;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard};
use std::thread::Builder;

use bowstring::exchange::{self, AsyncBatchReader};
use bowstring::ffi::{ArrowAsyncDeviceStreamHandler, AsyncHandler, DeviceType};
use bowstring::{Error, Result};

use crate::device::BowstringDevice;
use crate::metadata::{EncodedMetadata, pairs};
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put};
use crate::stream::BowstringBatches;

/// What a producer sends, until it is waited for.
pub struct BowstringAsyncBatches(Mutex<Option<AsyncBatchReader>>, EncodedMetadata);

/// Makes a handler, for a producer of struct arrays on `device`, and what takes what it sends. As soon as the producer has
/// given the schema, `queue` batches (at least one) are asked for, and one more for each that is taken; a producer that
/// sends more is stopped, and that is BOWSTRING_STATUS_OUT_OF_SPEC behind the batches that were asked for. The handler, which
/// this library frees, is for one producer, which calls its `release` at the end; where none gets it, the caller must.
/// `handler` is untouched on failure. Does not synchronise.
///
/// # Safety
///
/// `device` must be NULL or a live handle, `handler` and `out` NULL or writable. The producer must follow the interface;
/// the arrays that it sends may be used and released on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_async_batches_new(
    device: *const BowstringDevice,
    queue: u64,
    handler: *mut *mut ArrowAsyncDeviceStreamHandler,
    out: *mut *mut BowstringAsyncBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        borrow(handler, "handler")?;
        borrow(out, "out")?;
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        let (reader, theirs) = exchange::import_async_batches(&device.0, queue);
        give(BowstringAsyncBatches(Mutex::new(Some(reader)), EncodedMetadata::default()), out)?;
        put(theirs.into_raw().as_ptr(), handler)
    })
}

/// Waits for the producer's schema, and makes batches of what it sends: asked for the next one, they wait until it has
/// come. The handle is left empty, and still to be freed. A producer that fails before its schema, or releases the handler,
/// is BOWSTRING_STATUS_PRODUCER or BOWSTRING_STATUS_OUT_OF_SPEC. So a producer on this very thread must have given the
/// schema before.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_async_batches_wait(
    batches: *const BowstringAsyncBatches,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        borrow(out, "out")?;
        give(BowstringBatches::new(batches.take()?.wait()?), out)
    })
}

/// Waits for the producer's schema, and gives what the producer said of the stream besides, its `additional_metadata`:
/// a copy in the same encoding, or NULL. It is the handle's, and valid until that is freed. To be asked before
/// `bowstring_async_batches_wait`.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_async_batches_metadata(
    batches: *const BowstringAsyncBatches,
    out: *mut *const c_char,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        borrow(out, "out")?;
        let mut held = batches.held();
        let reader = held.as_mut().ok_or_else(given_away)?;
        reader.wait_for_schema()?;
        put(batches.1.of(&reader.metadata()), out)
    })
}

fn given_away() -> Error {
    invalid("the stream was given away already")
}

impl BowstringAsyncBatches {
    fn held(&self) -> MutexGuard<'_, Option<AsyncBatchReader>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take(&self) -> Result<AsyncBatchReader> {
        self.held().take().ok_or_else(given_away)
    }
}

/// Frees a handle. A producer that sends to it is told to stop, by its `cancel`; what it sends all the same is let go of.
///
/// # Safety
///
/// `batches` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_async_batches_free(batches: *mut BowstringAsyncBatches) {
    // SAFETY: the caller's promise.
    unsafe { free(batches) }
}

/// Sends the batches to a consumer's handler, from a thread of this library's own, which reads one whenever the consumer
/// wants one, and calls the handler's `release` at the end. What goes wrong its `on_error` is told. The batches are this
/// library's no more: the handle is left empty, and still to be freed. On failure the handler is left alone, but for
/// BOWSTRING_STATUS_NO_DEVICE, where no thread could be made: it has been told and released.
///
/// A consumer that neither takes all nor cancels keeps that thread, asleep, and what it would send, for good.
///
/// What was said of each batch (bowstring_batch_metadata) is said of it again; `metadata` is said of the stream: NULL or
/// pairs in the encoding of ArrowSchema.metadata, which are copied.
///
/// The producer that the handler is given stays valid until `release` has been called, all tasks are extracted, and the
/// arrays that these gave are released.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `metadata` NULL or metadata. The handler must be NULL, or follow the interface
/// and be there until it is released; calling it on any thread must be fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_export_async(
    batches: *const BowstringBatches,
    metadata: *const c_char,
    handler: *mut ArrowAsyncDeviceStreamHandler,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        let handler = NonNull::new(handler).ok_or_else(|| missing("handler"))?;
        let metadata = pairs(metadata)?;
        let source = batches.take()?;
        let handler = AsyncHandler::from_raw(handler);
        let export = exchange::export_async_iterator(source, handler).with_metadata(&metadata);
        // Its outcome is the consumer's to hear.
        let spawned = Builder::new().name("bowstring-async".into()).spawn(|| drop(export.run()));
        spawned.map(drop).map_err(|error| Error::NoDevice {
            device: DeviceType::Cpu,
            reason: format!("no thread could be made: {error}"),
        })
    })
}
