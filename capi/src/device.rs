//! Devices, and the streams that order work on them.

use std::ffi::{c_char, c_void};

use bowstring::ffi::DeviceType;
use bowstring::{Device, Error, Kernels, Stream};

use crate::status::{BowstringStatus, borrow, free, give, guard, text};

/// A device: the place where arrays are and operations run.
pub struct BowstringDevice(pub(crate) Device);

/// A stream of a device, which runs its work in order.
pub struct BowstringStream(pub(crate) Stream);

/// Opens a device by its `ArrowDeviceType` and number. The CPU (`ARROW_DEVICE_CPU`, any number) is always
/// present. So is the emulator (`ARROW_DEVICE_EXT_DEV`), which runs the GPU kernels in host memory, slowly. A
/// device may be opened several times. Does not synchronise.
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

/// Frees a device handle. Arrays and streams of the device stay valid. The last of its handles and streams
/// waits for its work. NULL is ignored.
///
/// # Safety
///
/// `device` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_free(device: *mut BowstringDevice) {
    // SAFETY: the caller's promise.
    unsafe { free(device) }
}

/// Sets whether GPU memory that a consumer has released stays untouched until the work that the consumer had
/// put on its stream has passed. It does so by default (`kept` is 1), because a release says only that the
/// program is done, and kernels may still be reading. With 0 a consumer must release only memory that nothing
/// reads any more. Does not synchronise.
///
/// The stream is the one that the consumer named, if that is a stream of this library, or a wrapped one of
/// which a handle is still held. Otherwise it is the legacy default stream.
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

/// Bounds the unused memory that is kept for later; kept memory beyond it is freed now. Does not synchronise.
///
/// # Safety
///
/// `device` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_set_memory_kept(
    device: *const BowstringDevice,
    bytes: u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        device.0.set_memory_kept(usize::try_from(bytes).unwrap_or(usize::MAX));
        Ok(())
    })
}

/// Loads the kernels of operations, which otherwise are loaded when an operation first needs them: that takes
/// the operation 10 to 500 ms for each on CUDA, unless the driver finds in its cache on disk what it compiled
/// before. `kernels` is "filter", "take", "cast", "text" (casts from and to text), "expressions", "sort",
/// "group" or "join"; NULL means all of them. `loaded` receives the number of images that were loaded; it may
/// be NULL. Blocks, and uses as many threads as the CPU's operations. The emulator and the CPU have no
/// images.
///
/// # Safety
///
/// `device` must be NULL or a live handle, `kernels` NULL or text that ends with a zero, `loaded` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_device_prepare(
    device: *const BowstringDevice,
    kernels: *const c_char,
    loaded: *mut i64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let device = borrow(device, "device")?;
        let made = match kernels.is_null() {
            true => device.0.prepare(&Kernels::ALL)?,
            false => device.0.prepare(&[text(kernels, "kernels")?.parse()?])?,
        };
        if !loaded.is_null() {
            loaded.write(made as i64);
        }
        Ok(())
    })
}

/// Creates a stream of the device. On the CPU a stream has no effect: operations run inside the call.
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

/// Makes a handle of the caller's own stream, a `CUstream` or `hipStream_t` of the device. The library puts
/// all work of an operation on that stream and on no other. The stream must outlive the handle and the work
/// put on it; the library never destroys it. On the CPU this is `BOWSTRING_STATUS_INVALID`.
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

/// Blocks until all work put on the stream has finished.
///
/// # Safety
///
/// `stream` must be NULL or a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_synchronise(stream: *const BowstringStream) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { borrow(stream, "stream")?.0.synchronise() })
}

/// Frees a stream handle. Work already put on the stream still runs. The last of the handles and streams of a
/// device waits for its work. NULL is ignored.
///
/// # Safety
///
/// `stream` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_stream_free(stream: *mut BowstringStream) {
    // SAFETY: the caller's promise.
    unsafe { free(stream) }
}
