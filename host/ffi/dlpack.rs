//! DLPack structs: array libraries exchange dense tensors through them. Both the versioned and the
//! unversioned form are supported.

use std::ffi::c_void;
use std::ptr::NonNull;

/// The device that holds a tensor. The numbers are those of the Arrow C device interface.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDevice {
    /// The kind of memory, numbered as in [`DeviceType`](crate::ffi::DeviceType).
    pub device_type: i32,
    /// The index of the device among those of its type; 0 for the CPU.
    pub device_id: i32,
}

/// The element type of a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLDataType {
    /// The type class; the constants of this type name the known ones.
    pub code: u8,
    /// The number of bits per lane.
    pub bits: u8,
    /// The number of lanes per element; 1 for scalars.
    pub lanes: u16,
}

impl DLDataType {
    /// The code for signed integers.
    pub const INT: u8 = 0;
    /// The code for unsigned integers.
    pub const UINT: u8 = 1;
    /// The code for IEEE 754 floats.
    pub const FLOAT: u8 = 2;
    /// The code for booleans of one byte each.
    pub const BOOL: u8 = 6;
}

/// A tensor that does not own its memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DLTensor {
    /// The address of the memory, to which `byte_offset` is added.
    pub data: *mut c_void,
    /// The device that holds the memory.
    pub device: DLDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The type of the elements.
    pub dtype: DLDataType,
    /// The size of each dimension; points to `ndim` numbers.
    pub shape: *mut i64,
    /// The distance between neighbours in each dimension, in elements. Null means dense and in C order.
    pub strides: *mut i64,
    /// The distance of the first element from `data`, in bytes.
    pub byte_offset: u64,
}

/// A tensor with its deleter: the older, unversioned form.
#[repr(C)]
#[derive(Debug)]
pub struct DLManagedTensor {
    pub(crate) dl_tensor: DLTensor,
    pub(crate) manager_ctx: *mut c_void,
    pub(crate) deleter: Option<unsafe extern "C" fn(*mut DLManagedTensor)>,
}

/// A version of the interface. A different major number means a different layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DLPackVersion {
    /// Changes when the layout of the structs changes.
    pub major: u32,
    /// Changes when the meaning of codes or flags is extended.
    pub minor: u32,
}

/// A tensor with its deleter: the newer, versioned form.
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
    /// Flag: the tensor must not be written to.
    pub const READ_ONLY: u64 = 1;
    /// Flag: the producer copied the tensor for this exchange.
    pub const IS_COPIED: u64 = 2;

    /// The tensor's flags: [`READ_ONLY`](Self::READ_ONLY), [`IS_COPIED`](Self::IS_COPIED), or others that the
    /// producer set.
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

/// The common interface of the versioned and the unversioned form.
///
/// # Safety
///
/// `delete` must free the tensor that it is called for, and no more.
pub unsafe trait ManagedTensor: Sized + 'static {
    /// Borrows the tensor inside the managed struct.
    fn tensor(&self) -> &DLTensor;

    /// Mutably borrows the tensor, for its owner.
    fn tensor_mut(&mut self) -> &mut DLTensor;

    /// The version of the interface; `None` for the unversioned form.
    fn version(&self) -> Option<DLPackVersion>;

    /// Sets the flags of the tensor. The unversioned form has none and ignores this.
    fn set_flags(&mut self, flags: u64);

    /// Boxes a tensor of this form. Deleting it drops `kept`. The tensor must be usable for as long as `kept`
    /// lives.
    fn boxed(tensor: DLTensor, flags: u64, kept: Box<dyn Send + Sync>) -> NonNull<Self>;

    /// Calls the deleter, if the tensor has one.
    ///
    /// # Safety
    ///
    /// The tensor must not be used after this call.
    unsafe fn delete(this: NonNull<Self>);
}

/// The target of `manager_ctx` in the tensors that this crate makes.
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
    // A panic must not unwind into C, and this function cannot report it.
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

/// Owns a tensor and deletes it on drop.
#[derive(Debug)]
pub struct Owned<T: ManagedTensor>(NonNull<T>);

// SAFETY: the interface lets a tensor be used, and deleted, on any thread.
unsafe impl<T: ManagedTensor> Send for Owned<T> {}
// SAFETY: the tensor is only read through `&`.
unsafe impl<T: ManagedTensor> Sync for Owned<T> {}

impl<T: ManagedTensor> Owned<T> {
    /// Takes ownership of a tensor.
    ///
    /// # Safety
    ///
    /// It must be what DLPack says, as far as that cannot be checked: pointers that are not null must point
    /// to what they should, its memory must be as long as shape and strides say and not change until it is
    /// deleted, and deleting it on any thread must be fine. No other code may delete it.
    pub unsafe fn from_raw(tensor: NonNull<T>) -> Owned<T> {
        Owned(tensor)
    }

    /// Releases ownership of the tensor. The caller becomes responsible for calling its deleter.
    pub fn into_raw(self) -> NonNull<T> {
        std::mem::ManuallyDrop::new(self).0
    }

    /// Borrows the managed struct: the tensor and its owner's fields.
    pub fn managed(&self) -> &T {
        // SAFETY: `from_raw` was promised a tensor that is alive until deleted.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ManagedTensor> Owned<T> {
    /// Relabels the elements without touching memory: bytes (0 or 1) become booleans if `wanted`, otherwise
    /// booleans become bytes. Tensors of other types are returned unchanged.
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

    /// Marks the tensor as a copy that has no other user, so that the consumer may write to it.
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
