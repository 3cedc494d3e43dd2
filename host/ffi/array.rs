//! The C structs `ArrowArray` and `ArrowDeviceArray`.

use std::ffi::c_void;
use std::ptr::null_mut;

/// An array's lengths, buffers and children, as the C data interface lays them out.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowArray {
    pub(crate) length: i64,
    pub(crate) null_count: i64,
    pub(crate) offset: i64,
    pub(crate) n_buffers: i64,
    pub(crate) n_children: i64,
    pub(crate) buffers: *mut *const c_void,
    pub(crate) children: *mut *mut ArrowArray,
    pub(crate) dictionary: *mut ArrowArray,
    pub(crate) release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    pub(crate) private_data: *mut c_void,
}

// SAFETY: the struct is read through `&`, never written; that its memory may be read and released on any
// thread is part of what the interface asks of producers.
unsafe impl Send for ArrowArray {}
// SAFETY: as above.
unsafe impl Sync for ArrowArray {}

impl ArrowArray {
    /// Creates a released array, as a place for a producer to fill.
    pub fn empty() -> ArrowArray {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }

    /// Moves the array out, leaving a released one.
    pub fn take(&mut self) -> ArrowArray {
        std::mem::replace(self, ArrowArray::empty())
    }

    /// Whether the array has been released or moved out; in a stream, this marks the end.
    pub fn is_released(&self) -> bool {
        self.release.is_none()
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: not released yet, and not usable after this.
            unsafe { release(self) };
        }
    }
}

/// An array together with the device that holds its buffers.
#[repr(C)]
#[derive(Debug)]
pub struct ArrowDeviceArray {
    pub(crate) array: ArrowArray,
    pub(crate) device_id: i64,
    pub(crate) device_type: i32,
    /// Points to an event handle that lives until `array` is released; null where the data is ready.
    pub(crate) sync_event: *mut c_void,
    /// Zero in the structs that this crate makes. Known producers leave garbage here, so it is never read.
    pub(crate) reserved: [i64; 3],
}

// SAFETY: as for `ArrowArray`; the event, too, may be used on any thread.
unsafe impl Send for ArrowDeviceArray {}
// SAFETY: as above.
unsafe impl Sync for ArrowDeviceArray {}

const _: () = {
    assert!(std::mem::offset_of!(ArrowDeviceArray, device_id) == 80);
    assert!(std::mem::offset_of!(ArrowDeviceArray, device_type) == 88);
    assert!(std::mem::offset_of!(ArrowDeviceArray, sync_event) == 96);
    assert!(std::mem::offset_of!(ArrowDeviceArray, reserved) == 104);
};

impl ArrowDeviceArray {
    /// Creates a released array, as a place for a producer to fill.
    pub fn empty() -> ArrowDeviceArray {
        ArrowDeviceArray {
            array: ArrowArray::empty(),
            device_id: -1,
            device_type: 0,
            sync_event: null_mut(),
            reserved: [0; 3],
        }
    }

    /// Moves the array out, leaving a released one.
    pub fn take(&mut self) -> ArrowDeviceArray {
        std::mem::replace(self, ArrowDeviceArray::empty())
    }

    /// Whether the array has been released or moved out; in a stream, this marks the end.
    pub fn is_released(&self) -> bool {
        self.array.is_released()
    }

    /// The ABI's number for the kind of memory; see
    /// [`DeviceType::from_abi`](crate::ffi::DeviceType::from_abi).
    pub fn device_type(&self) -> i32 {
        self.device_type
    }

    /// The index of the device among those of its type; -1 or ignored for the CPU.
    pub fn device_id(&self) -> i64 {
        self.device_id
    }
}
