//! Asynchronous streams of batches over the Arrow C async device stream interface, which is experimental. The
//! producer calls the consumer's handler.

use std::ffi::c_char;
use std::ptr::NonNull;
use std::thread::Builder;

use bowstring::Error;
use bowstring::exchange::{self, AsyncBatchReader, Turns};
use bowstring::ffi::{ArrowAsyncDeviceStreamHandler, AsyncHandler, DeviceType};

use crate::device::BowstringDevice;
use crate::metadata::{EncodedMetadata, pairs};
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put};
use crate::stream::BowstringBatches;

/// The consumer's end of an asynchronous stream, before its schema has been waited for.
pub struct BowstringAsyncBatches(Turns<Option<AsyncBatchReader>>, EncodedMetadata);

/// Creates a handler for a producer of struct arrays on `device`, and the handle that receives what the
/// producer sends. When the producer has given the schema, the library requests `queue` batches (at least
/// one), and one more for each batch that is taken. A producer that sends more than was requested is stopped;
/// the stream then ends with BOWSTRING_STATUS_OUT_OF_SPEC, after the batches that were requested.
///
/// The handler serves one producer, which calls its `release` at the end; the library then frees it. If no
/// producer gets the handler, the caller must call `release`. `handler` is untouched on failure. Does not
/// synchronise.
///
/// # Safety
///
/// `device` must be NULL or a live handle, `handler` and `out` NULL or writable. The producer must follow the
/// interface; the arrays that it sends may be used and released on any thread.
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
        give(BowstringAsyncBatches(Turns::new(Some(reader)), EncodedMetadata::default()), out)?;
        put(theirs.into_raw().as_ptr(), handler)
    })
}

/// Blocks until the producer has given the schema, and returns the stream of its batches. Asking that stream
/// for the next batch blocks until the batch has arrived. A producer on the calling thread must therefore
/// have given the schema before.
///
/// The handle `batches` is left empty; the caller must still free it. A producer that fails before its schema
/// gives BOWSTRING_STATUS_PRODUCER or BOWSTRING_STATUS_OUT_OF_SPEC, and so does one that releases the handler
/// before it.
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
        let reader = batches.0.with(|reader| reader.take().ok_or_else(given_away))?;
        give(BowstringBatches::new(reader.wait()?), out)
    })
}

/// Blocks until the producer has given the schema, and returns the producer's `additional_metadata` for the
/// stream: a copy in the same encoding, or NULL if it has none. The handle owns the copy, which is valid
/// until the handle is freed. Call this before `bowstring_async_batches_wait`.
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
        let metadata = batches.0.with(|reader| {
            let reader = reader.as_mut().ok_or_else(given_away)?;
            reader.wait_for_schema()?;
            Ok(reader.metadata())
        })?;
        put(batches.1.of(&metadata)?, out)
    })
}

fn given_away() -> Error {
    invalid("the stream was given away already")
}

/// Frees a handle. A producer that is still sending to it is told to stop through its `cancel`; anything that
/// it sends after that is released. NULL is ignored.
///
/// # Safety
///
/// `batches` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_async_batches_free(batches: *mut BowstringAsyncBatches) {
    // SAFETY: the caller's promise.
    unsafe { free(batches) }
}

/// Sends the batches to a consumer's handler. A thread of this library reads a batch whenever the consumer
/// requests one, and calls the handler's `release` at the end. Errors go to the handler's `on_error`. The
/// handle `batches` is left empty; the caller must still free it. On failure the handler is untouched, except
/// for BOWSTRING_STATUS_NO_DEVICE, which means that no thread could be created: the handler has then been
/// told and released.
///
/// A consumer that neither takes all batches nor cancels keeps the thread asleep, and the remaining batches
/// in memory, forever.
///
/// The metadata of each batch (bowstring_batch_metadata) is sent along with it. `metadata` is the metadata of
/// the stream: NULL, or pairs in the encoding of ArrowSchema.metadata, which are copied.
///
/// The handler's producer stays valid until `release` has been called, all tasks are extracted, and the
/// arrays that they gave are released.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `metadata` NULL or metadata. The handler must be NULL, or follow
/// the interface and stay valid until it is released; any thread may call it.
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
        // The consumer hears of the outcome through its handler.
        let spawned = Builder::new().name("bowstring-async".into()).spawn(|| drop(export.run()));
        spawned.map(drop).map_err(|error| Error::NoDevice {
            device: DeviceType::Cpu,
            reason: format!("no thread could be made: {error}"),
        })
    })
}
