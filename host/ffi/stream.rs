//! The C structs `ArrowArrayStream` and `ArrowDeviceArrayStream`.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use super::{ArrowArray, ArrowDeviceArray, FFI_ArrowSchema};

/// A pull stream of arrays in host memory, as the C stream interface lays it out.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArrayStream {
    pub(crate) get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut FFI_ArrowSchema) -> c_int>,
    pub(crate) get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    pub(crate) private_data: *mut c_void,
}

/// A pull stream of arrays in one kind of device memory.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArrayStream {
    pub(crate) device_type: i32,
    pub(crate) get_schema:
        Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut FFI_ArrowSchema) -> c_int>,
    pub(crate) get_next:
        Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream, *mut ArrowDeviceArray) -> c_int>,
    pub(crate) get_last_error: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream) -> *const c_char>,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowDeviceArrayStream)>,
    pub(crate) private_data: *mut c_void,
}

// SAFETY: a stream may be moved to another thread between calls, which take it by `&mut`.
unsafe impl Send for ArrowArrayStream {}
// SAFETY: as above.
unsafe impl Send for ArrowDeviceArrayStream {}

impl ArrowArrayStream {
    /// Creates a released stream, as a place for a producer to fill.
    pub fn empty() -> ArrowArrayStream {
        ArrowArrayStream {
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: null_mut(),
        }
    }

    /// Moves the stream out, leaving a released one.
    pub fn take(&mut self) -> ArrowArrayStream {
        std::mem::replace(self, ArrowArrayStream::empty())
    }

    /// Whether the stream has been released or moved out.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

impl ArrowDeviceArrayStream {
    /// Creates a released stream, as a place for a producer to fill.
    pub fn empty() -> ArrowDeviceArrayStream {
        ArrowDeviceArrayStream {
            device_type: 0,
            get_schema: None,
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: null_mut(),
        }
    }

    /// Moves the stream out, leaving a released one.
    pub fn take(&mut self) -> ArrowDeviceArrayStream {
        std::mem::replace(self, ArrowDeviceArrayStream::empty())
    }

    /// Whether the stream has been released or moved out.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }

    /// The ABI's number for the kind of memory that holds all its arrays.
    pub fn device_type(&self) -> i32 {
        self.device_type
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not released yet, and not usable after this.
            unsafe { release(self) };
        }
    }
}

impl Drop for ArrowDeviceArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not released yet, and not usable after this.
            unsafe { release(self) };
        }
    }
}
