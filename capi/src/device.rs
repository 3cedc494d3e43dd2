//! Devices and streams.

use std::ffi::c_void;

use bowstring::ffi::DeviceType;
use bowstring::{Device, Error, Stream};

use crate::status::{BowstringStatus, borrow, free, give, guard};

/// Where arrays live and operations run.
pub struct BowstringDevice(pub(crate) Device);

/// An order of work on a device.
pub struct BowstringStream(pub(crate) Stream);

/// Opens a device by its `ArrowDeviceType` and number. The CPU (`ARROW_DEVICE_CPU`, any number) is always there, and so
/// is the emulator (`ARROW_DEVICE_EXT_DEV`), which runs the GPU kernels in host memory, slowly. Opening a device twice
/// is fine. Does not synchronise.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_open(
    device_type: i32,
    device_id: i64,
    out: *mut *mut BowstringDevice,
) -> BowstringStatus {
    guard(|| {
        let device_type = DeviceType::from_abi(device_type).ok_or_else(|| Error::Invalid {
            operation: "open",
            problem: format!("no device type {device_type} is served"),
        })?;
        let device = Device::open(device_type, device_id)?;
        // SAFETY: the caller's promise.
        unsafe { give(BowstringDevice(device), out) }
    })
}

/// Frees a device handle. Arrays and streams of the device live on.
///
/// # Safety
///
/// `device` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_free(device: *mut BowstringDevice) {
    // SAFETY: the caller's promise.
    unsafe { free(device) }
}

/// Sets whether exported memory of a GPU stays untouched, once its consumer has released it, until the work
/// has passed that the consumer had put on its stream: the one that it named, if that is a stream of this
/// library or a wrapped one of which a handle is still held, else the legacy default stream. It does by
/// default, where `kept` is 1: a release says only that the program is through, and kernels may still be
/// reading. With 0 a consumer must release only what nothing reads any more. Does not synchronise.
///
/// # Safety
///
/// `device` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_set_export_fence(
    device: *const BowstringDevice,
    kept: i32,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        borrow(device, "device")?.0.set_export_fence(kept != 0);
        Ok(())
    })
}

/// A new stream of the device. On the CPU a stream is a formality: operations run in the call.
///
/// # Safety
///
/// `device` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_new(
    device: *const BowstringDevice,
    out: *mut *mut BowstringStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        give(BowstringStream(device.0.stream()?), out)
    })
}

/// Uses the caller's own stream: a `CUstream` or `hipStream_t` of the device. Everything this library does for an
/// operation is put on it and nowhere else. It must outlive the handle and the work put on it; this library never
/// destroys it. On the CPU: `BOWSTRING_STATUS_INVALID`.
///
/// # Safety
///
/// `device` must be NULL or a live handle, `native` a live stream of that device, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_wrap(
    device: *const BowstringDevice,
    native: *mut c_void,
    out: *mut *mut BowstringStream,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        give(BowstringStream(device.0.wrap_stream(native)?), out)
    })
}

/// Blocks until everything put on the stream has passed.
///
/// # Safety
///
/// `stream` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_synchronise(stream: *const BowstringStream) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { borrow(stream, "stream")?.0.synchronise() })
}

/// Frees a stream handle. Work put on the stream still runs.
///
/// # Safety
///
/// `stream` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_free(stream: *mut BowstringStream) {
    // SAFETY: the caller's promise.
    unsafe { free(stream) }
}
