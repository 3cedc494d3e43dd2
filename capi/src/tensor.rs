//! Dense tensors, over DLPack.

use std::ptr::NonNull;

use arrow_schema::Field;
use bowstring::compute::tensors;
use bowstring::ffi::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor, Owned};

use crate::array::BowstringArray;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, give, guard, missing, put};

/// # Safety
///
/// As for the functions that call it.
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
/// As for the functions that call it.
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

/// Takes over a tensor without a version, dense and of numbers, that is ready for work on `stream`; its memory is shared.
/// Only booleans, which are bytes there, are copied. Its rows are the outermost dimension; further ones become lists of a
/// fixed size. Its deleter is called once nothing uses it any more, also on failure, but not where an argument is NULL.
/// Does not synchronise.
///
/// # Safety
///
/// The tensor must be what DLPack says, used and deleted by nobody else; deleting it on any thread must be fine. `stream`
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

/// Takes over a tensor with a version; otherwise as `bowstring_array_import_dlpack`.
///
/// # Safety
///
/// As for `bowstring_array_import_dlpack`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_array_import_dlpack_versioned(
    tensor: *mut DLManagedTensorVersioned,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { import(tensor, stream, out) }
}

/// Makes a tensor without a version of numbers, or of fixed-size lists of them, without nulls. Its memory is shared, and not
/// to be written to; only booleans are copied, to bytes. It is ready for work on `stream`, of the array's device; on the CPU
/// it is ready. Whoever gets it calls its deleter, once its own work has passed. Synchronises where a device's null count is
/// not known.
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

/// Makes a tensor with a version, whose flags say that it is read-only, or a copy; otherwise as
/// `bowstring_array_export_dlpack`.
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
