//! Independent tensors in both forms, which count their deletions.

use std::ffi::c_void;
use std::ptr::{NonNull, null_mut};

use bowstring::ffi::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor, Owned};

use super::foreign::Releases;

/// An independent definition of `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawTensor {
    pub data: *mut c_void,
    pub device_type: i32,
    pub device_id: i32,
    pub ndim: i32,
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// An independent definition of `DLManagedTensor`.
#[repr(C)]
pub struct RawLegacy {
    pub tensor: RawTensor,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut RawLegacy)>,
}

/// An independent definition of `DLManagedTensorVersioned`.
#[repr(C)]
pub struct RawVersioned {
    pub major: u32,
    pub minor: u32,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut RawVersioned)>,
    pub flags: u64,
    pub tensor: RawTensor,
}

struct Context {
    data: Vec<u8>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    releases: Releases,
}

impl Drop for Context {
    fn drop(&mut self) {
        self.data.fill(0xdb);
        self.releases.add();
    }
}

unsafe extern "C" fn delete_legacy(tensor: *mut RawLegacy) {
    // SAFETY: both boxed in `Tensor`, unboxed here, once.
    unsafe { drop(Box::from_raw(Box::from_raw(tensor).context.cast::<Context>())) };
}

unsafe extern "C" fn delete_versioned(tensor: *mut RawVersioned) {
    // SAFETY: as above.
    unsafe { drop(Box::from_raw(Box::from_raw(tensor).context.cast::<Context>())) };
}

/// The description of a tensor, from which either form is made.
pub struct Tensor {
    pub raw: RawTensor,
    pub major: u32,
    context: Box<Context>,
}

impl Tensor {
    /// A tensor on the CPU over these bytes, from byte `byte_offset` on.
    pub fn new(
        (code, bits): (u8, u8),
        shape: &[i64],
        strides: Option<&[i64]>,
        data: Vec<u8>,
        byte_offset: u64,
        releases: &Releases,
    ) -> Tensor {
        let mut context = Box::new(Context {
            data,
            shape: shape.to_vec(),
            strides: strides.unwrap_or_default().to_vec(),
            releases: releases.clone(),
        });
        let raw = RawTensor {
            data: context.data.as_mut_ptr().cast(),
            device_type: 1,
            device_id: 0,
            ndim: shape.len() as i32,
            code,
            bits,
            lanes: 1,
            shape: context.shape.as_mut_ptr(),
            strides: if strides.is_some() { context.strides.as_mut_ptr() } else { null_mut() },
            byte_offset,
        };
        Tensor { raw, major: 1, context }
    }

    /// Makes the older form.
    pub fn legacy(self) -> Owned<DLManagedTensor> {
        let context = Box::into_raw(self.context).cast();
        let tensor = RawLegacy { tensor: self.raw, context, deleter: Some(delete_legacy) };
        let tensor = NonNull::from(Box::leak(Box::new(tensor))).cast();
        // SAFETY: valid, or wrong in a way that import must detect.
        unsafe { Owned::from_raw(tensor) }
    }

    /// Makes the newer form.
    pub fn versioned(self) -> Owned<DLManagedTensorVersioned> {
        let context = Box::into_raw(self.context).cast();
        let tensor = RawVersioned {
            major: self.major,
            minor: 3,
            context,
            deleter: Some(delete_versioned),
            flags: 0,
            tensor: self.raw,
        };
        let tensor = NonNull::from(Box::leak(Box::new(tensor))).cast();
        // SAFETY: as above.
        unsafe { Owned::from_raw(tensor) }
    }
}

/// Reads a tensor of ours: the tensor, its shape, its strides, its bytes.
pub fn look<T: ManagedTensor>(tensor: &Owned<T>) -> (RawTensor, Vec<i64>, Vec<i64>, Vec<u8>) {
    // SAFETY: both have DLPack's layout.
    let raw = unsafe { std::ptr::from_ref(tensor.managed().tensor()).cast::<RawTensor>().read() };
    // SAFETY: DLPack asks for as many sizes and strides as there are dimensions.
    let all = |from: *mut i64| unsafe { std::slice::from_raw_parts(from, raw.ndim as usize) }.to_vec();
    let (shape, strides) = (all(raw.shape), all(raw.strides));
    let bytes = shape.iter().product::<i64>() as usize * usize::from(raw.bits) / 8;
    if bytes == 0 {
        return (raw, shape, strides, vec![]);
    }
    let start = raw.data.cast::<u8>().wrapping_add(raw.byte_offset as usize);
    // SAFETY: DLPack asks for as many bytes as the shape says.
    let bytes = unsafe { std::slice::from_raw_parts(start, bytes) }.to_vec();
    (raw, shape, strides, bytes)
}
