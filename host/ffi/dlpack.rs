//! DLPack: dense tensors as array libraries hand them to each other, with and without a version.

use std::ffi::c_void;
use std::ptr::NonNull;

/// Where a tensor is; the numbers are those of the Arrow device interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// Which kind of memory.
    pub device_type: i32,
    /// Which device; 0 for the CPU.
    pub device_id: i32,
}

/// What the elements of a tensor are.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// See the constants.
    pub code: u8,
    /// How many bits a lane has.
    pub bits: u8,
    /// How many lanes an element has.
    pub lanes: u16,
}

impl DLDataType {
    /// Signed integers.
    pub const INT: u8 = 0;
    /// Unsigned integers.
    pub const UINT: u8 = 1;
    /// IEEE floats.
    pub const FLOAT: u8 = 2;
    /// Booleans, a byte each.
    pub const BOOL: u8 = 6;
}

/// A tensor without an owner.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// Where its memory is.
    pub data: *mut c_void,
    /// On which device.
    pub device: DLDevice,
    /// How many dimensions.
    pub ndim: i32,
    /// What its elements are.
    pub dtype: DLDataType,
    /// The size of each dimension.
    pub shape: *mut i64,
    /// The distance of neighbours in each dimension, in elements; null where they are dense and in C order.
    pub strides: *mut i64,
    /// Where, from `data`, the first element is.
    pub byte_offset: u64,
}

/// A tensor and how to delete it: the older form.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    pub(crate) dl_tensor: DLTensor,
    pub(crate) manager_ctx: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A version of the interface. Another major number means another layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Of the layout.
    pub major: u32,
    /// Of what the numbers mean.
    pub minor: u32,
}

/// A tensor and how to delete it: the newer form.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensorVersioned {
    pub(crate) version: DLPackVersion,
    pub(crate) manager_ctx: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut DLManagedTensorVersioned)>,
    pub(crate) flags: u64,
    pub(crate) dl_tensor: DLTensor,
}

impl DLManagedTensorVersioned {
    /// The tensor must not be written to.
    pub const READ_ONLY: u64 = 1;
    /// The tensor is a copy of what was asked for.
    pub const IS_COPIED: u64 = 2;

    /// The flags of the tensor.
    pub fn flags(&self) -> u64 {
        self.flags
    }
}

const _: () = {
    assert!(size_of::<DLTensor>() == 48);
    assert!(size_of::<DLManagedTensor>() == 64);
    assert!(size_of::<DLManagedTensorVersioned>() == 80);
    assert!(std::mem::offset_of!(DLManagedTensorVersioned, dl_tensor) == 32);
};

/// What the two forms have in common.
///
/// # Safety
///
/// `delete` must free the tensor that it is called for, and no more.
pub unsafe trait ManagedTensor: Sized + 'static {
    /// The tensor itself.
    fn tensor(&self) -> &DLTensor;

    /// The tensor itself, for who owns it.
    fn tensor_mut(&mut self) -> &mut DLTensor;

    /// Its version; the older form has none.
    fn version(&self) -> Option<DLPackVersion>;

    /// Says what may be done with it; the older form cannot say.
    fn set_flags(&mut self, flags: u64);

    /// One of these in its own box, which frees `kept` with it. The tensor must be fit to be used as long as `kept`
    /// lives.
    fn boxed(tensor: DLTensor, flags: u64, kept: Box<dyn Send + Sync>) -> NonNull<Self>;

    /// Calls the deleter, if there is one.
    ///
    /// # Safety
    ///
    /// Nobody may use the tensor after this.
    unsafe fn delete(this: NonNull<Self>);
}

/// What `manager_ctx` of our tensors points to.
type Kept = Box<dyn Send + Sync>;

fn context(kept: Kept) -> *mut c_void {
    Box::into_raw(Box::new(kept)).cast()
}

/// # Safety
///
/// The pointer must come from [`context`], and not have been here before.
unsafe fn drop_context(context: *mut c_void) {
    // SAFETY: the caller's promise.
    let kept = unsafe { Box::from_raw(context.cast::<Kept>()) };
    // There is nobody to tell of a panic, and no way for it to go on.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(kept)));
}

unsafe extern "C" fn delete_ours(tensor: *mut DLManagedTensor) {
    if !tensor.is_null() {
        // SAFETY: the interface asks for a tensor of ours, which `boxed` has put into a box, once.
        unsafe { drop_context(Box::from_raw(tensor).manager_ctx) };
    }
}

unsafe extern "C" fn delete_our_versioned(tensor: *mut DLManagedTensorVersioned) {
    if !tensor.is_null() {
        // SAFETY: as above.
        unsafe { drop_context(Box::from_raw(tensor).manager_ctx) };
    }
}

// SAFETY: `delete` calls the tensor's own deleter.
unsafe impl ManagedTensor for DLManagedTensor {
    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn tensor_mut(&mut self) -> &mut DLTensor {
        &mut self.dl_tensor
    }

    fn version(&self) -> Option<DLPackVersion> {
        None
    }

    fn set_flags(&mut self, _: u64) {}

    fn boxed(dl_tensor: DLTensor, _flags: u64, kept: Kept) -> NonNull<Self> {
        let tensor = DLManagedTensor { dl_tensor, manager_ctx: context(kept), deleter: Some(delete_ours) };
        NonNull::from(Box::leak(Box::new(tensor)))
    }

    unsafe fn delete(this: NonNull<Self>) {
        // SAFETY: the tensor is alive until here.
        if let Some(deleter) = unsafe { this.as_ref() }.deleter {
            // SAFETY: the caller's promise.
            unsafe { deleter(this.as_ptr()) };
        }
    }
}

// SAFETY: `delete` calls the tensor's own deleter.
unsafe impl ManagedTensor for DLManagedTensorVersioned {
    fn tensor(&self) -> &DLTensor {
        &self.dl_tensor
    }

    fn tensor_mut(&mut self) -> &mut DLTensor {
        &mut self.dl_tensor
    }

    fn version(&self) -> Option<DLPackVersion> {
        Some(self.version)
    }

    fn set_flags(&mut self, flags: u64) {
        self.flags = flags;
    }

    fn boxed(dl_tensor: DLTensor, flags: u64, kept: Kept) -> NonNull<Self> {
        let tensor = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: context(kept),
            deleter: Some(delete_our_versioned),
            flags,
            dl_tensor,
        };
        NonNull::from(Box::leak(Box::new(tensor)))
    }

    unsafe fn delete(this: NonNull<Self>) {
        // SAFETY: the tensor is alive until here.
        if let Some(deleter) = unsafe { this.as_ref() }.deleter {
            // SAFETY: the caller's promise.
            unsafe { deleter(this.as_ptr()) };
        }
    }
}

/// A tensor that is deleted when this is dropped.
#[derive(Debug)]
pub struct Owned<T: ManagedTensor>(NonNull<T>);

// SAFETY: the interface lets a tensor be used, and deleted, on any thread.
unsafe impl<T: ManagedTensor> Send for Owned<T> {}
// SAFETY: the tensor is only read through `&`.
unsafe impl<T: ManagedTensor> Sync for Owned<T> {}

impl<T: ManagedTensor> Owned<T> {
    /// Takes over a tensor.
    ///
    /// # Safety
    ///
    /// It must be what DLPack says, as far as that cannot be checked: pointers that are not null must point to what they
    /// should, its memory must be as long as shape and strides say and not change until it is deleted, and deleting it
    /// on any thread must be fine. Nobody else may delete it.
    pub unsafe fn from_raw(tensor: NonNull<T>) -> Owned<T> {
        Owned(tensor)
    }

    /// Gives the tensor away; whoever takes it calls its deleter.
    pub fn into_raw(self) -> NonNull<T> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// The tensor with its owner's fields.
    pub fn managed(&self) -> &T {
        // SAFETY: `from_raw` was promised a tensor that is alive until deleted.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ManagedTensor> Owned<T> {
    /// The same tensor, its booleans taken for the bytes that they are (0 or 1), or such bytes for booleans. Any other
    /// tensor as it is.
    pub fn booleans(mut self, wanted: bool) -> Self {
        // SAFETY: `from_raw` was promised a tensor that is alive until deleted, and that is ours alone.
        let dtype = &mut unsafe { self.0.as_mut() }.tensor_mut().dtype;
        let (from, to) = match wanted {
            true => (DLDataType::UINT, DLDataType::BOOL),
            false => (DLDataType::BOOL, DLDataType::UINT),
        };
        if (dtype.code, dtype.bits, dtype.lanes) == (from, 8, 1) {
            dtype.code = to;
        }
        self
    }

    /// The same tensor, said to be a copy that nobody else has, and which may be written to.
    pub fn copied(mut self) -> Self {
        // SAFETY: `from_raw` was promised a tensor that is alive until deleted, and that is ours alone.
        unsafe { self.0.as_mut() }.set_flags(DLManagedTensorVersioned::IS_COPIED);
        self
    }
}

impl<T: ManagedTensor> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: owned, and not used after this.
        unsafe { T::delete(self.0) };
    }
}
