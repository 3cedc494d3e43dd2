//! Streams of batches and of arrays, over the Arrow C (device) stream interface.
//!
//! A handle holds an iterator until an export takes it, or an operation that makes a new handle of it. One
//! thread at a time uses the iterator; see [`Turns`].

use std::ptr::null_mut;

use arrow_schema::Field;
use bowstring::array::Batches;
use bowstring::exchange::{self, Turns};
use bowstring::ffi::{ArrowArrayStream, ArrowDeviceArrayStream, DeviceType, FFI_ArrowSchema};
use bowstring::{DeviceArray, Error, Result};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::BowstringDevice;
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put, write_out};

/// An iterator of arrays, the field that they share, and the kind of memory they are in.
pub(crate) struct Source {
    pub field: Field,
    pub device_type: DeviceType,
    pub items: Box<dyn Iterator<Item = Result<DeviceArray>> + Send>,
}

/// A stream of batches with one schema. A batch is read only when it is requested.
pub struct BowstringBatches(Turns<Option<Batches>>);

/// A stream of arrays with one type, such as the masks for a stream of batches.
pub struct BowstringArrays(Turns<Option<Source>>);

fn given_away() -> Error {
    invalid("the stream was given away already")
}

impl BowstringBatches {
    pub(crate) fn new(batches: Batches) -> BowstringBatches {
        BowstringBatches(Turns::new(Some(batches)))
    }

    /// Uses the iterator; an error if it has been taken.
    pub(crate) fn with<R>(&self, body: impl FnOnce(&mut Batches) -> Result<R>) -> Result<R> {
        self.0.with(|held| body(held.as_mut().ok_or_else(given_away)?))
    }

    pub(crate) fn take(&self) -> Result<Batches> {
        self.0.with(|held| held.take().ok_or_else(given_away))
    }
}

impl BowstringArrays {
    pub(crate) fn new(
        field: Field,
        device_type: DeviceType,
        items: impl Iterator<Item = Result<DeviceArray>> + Send + 'static,
    ) -> BowstringArrays {
        BowstringArrays(Turns::new(Some(Source { field, device_type, items: Box::new(items) })))
    }

    /// Uses the iterator; an error if it has been taken.
    pub(crate) fn with<R>(&self, body: impl FnOnce(&mut Source) -> Result<R>) -> Result<R> {
        self.0.with(|held| body(held.as_mut().ok_or_else(given_away)?))
    }

    pub(crate) fn take(&self) -> Result<Source> {
        self.0.with(|held| held.take().ok_or_else(given_away))
    }
}

/// The kind of memory of a device stream; an error if the library does not support it.
fn device_type(stream: &ArrowDeviceArrayStream) -> Result<DeviceType> {
    DeviceType::from_abi(stream.device_type())
        .ok_or_else(|| invalid(format!("no device type {} is served", stream.device_type())))
}

/// Imports a device stream of struct arrays as batches of `device`. This takes `stream`: its `release`
/// becomes NULL, and the library releases it when it has ended, or when the handle, or the handle made from
/// it, is freed. A failure releases it too, except for `BOWSTRING_STATUS_INVALID` and
/// `BOWSTRING_STATUS_UNSUPPORTED`, which leave it unchanged. This call reads only the schema. Does not
/// synchronise.
///
/// # Safety
///
/// The struct must follow the Arrow C device stream interface. Any thread may use and release it, one at a
/// time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_import(
    device: *const BowstringDevice,
    stream: *mut ArrowDeviceArrayStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let stream = stream.as_mut().ok_or_else(|| missing("stream"))?;
        borrow(out, "out")?;
        device_type(stream)?;
        give(BowstringBatches::new(exchange::import_batches(stream, &device.0)?), out)
    })
}

/// Imports a stream of struct arrays in host memory as batches of the CPU; otherwise like
/// `bowstring_batches_import`.
///
/// # Safety
///
/// The requirements of `bowstring_batches_import` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_import_host(
    stream: *mut ArrowArrayStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let stream = stream.as_mut().ok_or_else(|| missing("stream"))?;
        borrow(out, "out")?;
        give(BowstringBatches::new(exchange::import_host_batches(stream.take())?), out)
    })
}

/// Returns the schema of all batches. The struct is overwritten, so it must be uninitialised or released; the
/// caller releases it.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_schema(
    batches: *const BowstringBatches,
    out: *mut FFI_ArrowSchema,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let schema = borrow(batches, "batches")?.with(|batches| Ok(batches.schema().clone()))?;
        let schema = FFI_ArrowSchema::try_from(schema.as_ref());
        borrow(out, "out")?;
        write_out(schema.map_err(|error| invalid(error.to_string()))?, out);
        Ok(())
    })
}

/// Returns the next batch, or NULL at the end. After a failure the stream has ended, and the next call
/// returns NULL. The operations that the stream consists of run on the calling thread, and synchronise if
/// they do by themselves. Other threads that use the handle meanwhile wait. A producer that uses the handle
/// while it is asked for a batch gets `BOWSTRING_STATUS_INVALID`.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_next(
    batches: *const BowstringBatches,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        borrow(out, "out")?;
        match batches.with(|batches| batches.next().transpose())? {
            Some(batch) => give(BowstringBatch::new(batch), out),
            None => put(null_mut(), out),
        }
    })
}

/// Exports the batches as a device stream. This takes `batches`: the handle is left empty, and the caller
/// must still free it. The struct is overwritten, so it must be uninitialised or released. The consumer reads
/// one batch at a time, on its own thread. Errors while it reads are reported by the stream's
/// `get_last_error`.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_export(
    batches: *const BowstringBatches,
    out: *mut ArrowDeviceArrayStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        borrow(out, "out")?;
        write_out(exchange::export_batches(batches.take()?), out);
        Ok(())
    })
}

/// Exports the batches as a stream in host memory, without devices; otherwise like
/// `bowstring_batches_export`.
///
/// # Safety
///
/// `batches` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_export_host(
    batches: *const BowstringBatches,
    out: *mut ArrowArrayStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches = borrow(batches, "batches")?;
        borrow(out, "out")?;
        write_out(exchange::export_host_batches(batches.take()?), out);
        Ok(())
    })
}

/// Frees a handle, and releases the stream if the handle still holds it. NULL is ignored.
///
/// # Safety
///
/// `batches` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_free(batches: *mut BowstringBatches) {
    // SAFETY: the caller's promise.
    unsafe { free(batches) }
}

/// Imports a device stream of arrays, such as masks or indices; otherwise like `bowstring_batches_import`.
///
/// # Safety
///
/// The requirements of `bowstring_batches_import` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_arrays_import(
    device: *const BowstringDevice,
    stream: *mut ArrowDeviceArrayStream,
    out: *mut *mut BowstringArrays,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let stream = stream.as_mut().ok_or_else(|| missing("stream"))?;
        borrow(out, "out")?;
        let kind = device_type(stream)?;
        let reader = exchange::import_stream(stream, &device.0)?;
        give(BowstringArrays::new(reader.field().clone(), kind, reader), out)
    })
}

/// Imports a stream of arrays in host memory; otherwise like `bowstring_batches_import_host`.
///
/// # Safety
///
/// The requirements of `bowstring_batches_import` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_arrays_import_host(
    stream: *mut ArrowArrayStream,
    out: *mut *mut BowstringArrays,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let stream = stream.as_mut().ok_or_else(|| missing("stream"))?;
        borrow(out, "out")?;
        let reader = exchange::import_host_stream(stream.take())?;
        give(BowstringArrays::new(reader.field().clone(), DeviceType::Cpu, reader), out)
    })
}

/// Returns the next array, or NULL at the end; otherwise like `bowstring_batches_next`.
///
/// # Safety
///
/// `arrays` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_arrays_next(
    arrays: *const BowstringArrays,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let arrays = borrow(arrays, "arrays")?;
        borrow(out, "out")?;
        match arrays.with(|source| Ok((source.items.next().transpose()?, source.field.clone())))? {
            (Some(array), field) => give(BowstringArray { array, field }, out),
            (None, _) => put(null_mut(), out),
        }
    })
}

/// Exports the arrays as a device stream; otherwise like `bowstring_batches_export`.
///
/// # Safety
///
/// `arrays` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_arrays_export(
    arrays: *const BowstringArrays,
    out: *mut ArrowDeviceArrayStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let arrays = borrow(arrays, "arrays")?;
        borrow(out, "out")?;
        let source = arrays.take()?;
        write_out(exchange::export_stream(source.field, source.device_type, source.items), out);
        Ok(())
    })
}

/// Frees a handle, and releases the stream if the handle still holds it. NULL is ignored.
///
/// # Safety
///
/// `arrays` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_arrays_free(arrays: *mut BowstringArrays) {
    // SAFETY: the caller's promise.
    unsafe { free(arrays) }
}
