//! Imports and exports dense tensors over DLPack.

use std::ptr::NonNull;

use arrow_schema::Field;
use bowstring::compute::tensors;
use bowstring::ffi::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor, Owned};

use crate::array::BowstringArray;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, give, guard, missing, put};

/// # Safety
///
/// The requirements of the functions that call it apply.
unsafe fn import<T: ManagedTensor>(
    tensor: *mut T,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the callers' promise.
    guard(|| unsafe {
        let tensor = NonNull::new(tensor).ok_or_else(|| missing("tensor"))?;
        let stream = borrow(stream, "stream")?;
        borrow(out, "out")?;
        let array = tensors::import_tensor(Owned::from_raw(tensor), &stream.0)?;
        let field = Field::new("", array.data_type().clone(), true);
        give(BowstringArray { array, field }, out)
    })
}

/// # Safety
///
/// The requirements of the functions that call it apply.
unsafe fn export<T: ManagedTensor>(
    array: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut T,
) -> BowstringStatus {
    // SAFETY: the callers' promise.
    guard(|| unsafe {
        let array = &borrow(array, "array")?.array;
        let stream = &borrow(stream, "stream")?.0;
        borrow(out, "out")?;
        let tensor: Owned<T> = tensors::export_tensor(array, stream, Some(stream))?;
        put(tensor.into_raw().as_ptr(), out)
    })
}

/// Imports an unversioned DLPack tensor, which must be dense, contain numbers or booleans, and be ready for
/// work on `stream`. Its memory is shared; only booleans, which DLPack stores as bytes, are copied. The
/// outermost dimension becomes the rows, and further dimensions become fixed-size lists.
///
/// This takes `tensor`: the library calls its deleter when nothing uses the tensor any more, and on failure
/// too, except if an argument is NULL. Does not synchronise.
///
/// # Safety
///
/// The tensor must follow DLPack. Nothing else may use or delete it, and any thread may delete it. `stream`
/// must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_dlpack(
    tensor: *mut DLManagedTensor,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { import(tensor, stream, out) }
}

/// Imports a versioned DLPack tensor; otherwise like `bowstring_array_import_dlpack`.
///
/// # Safety
///
/// The requirements of `bowstring_array_import_dlpack` apply.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_dlpack_versioned(
    tensor: *mut DLManagedTensorVersioned,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { import(tensor, stream, out) }
}

/// Exports an array of numbers or booleans, or of fixed-size lists of them, without nulls as an unversioned
/// DLPack tensor. The memory is shared, and the consumer must not write to it; only booleans are copied, to
/// bytes. The tensor is ready for work on `stream`, a stream of the array's device; on the CPU it is ready at
/// once.
///
/// The caller owns the tensor and calls its deleter when its own work has passed. Synchronises if a null
/// count on a device is not known.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_export_dlpack(
    array: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut DLManagedTensor,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { export(array, stream, out) }
}

/// Exports an array as a versioned DLPack tensor, whose flags say whether it is read-only or a copy;
/// otherwise like `bowstring_array_export_dlpack`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_export_dlpack_versioned(
    array: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut DLManagedTensorVersioned,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { export(array, stream, out) }
}
