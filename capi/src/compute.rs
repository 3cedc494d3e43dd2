//! The operations on arrays and batches.

use std::mem::MaybeUninit;
use std::ptr::copy_nonoverlapping;
use std::sync::Arc;

use bowstring::compute::{self, CastOptions, OutOfBounds, Selection, TakeOptions};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{DeviceArray, DeviceBatch, Result, exchange};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, free, give, guard, handles, invalid, put};

/// A mask that is prepared once. It filters any number of arrays and batches, and any number of threads may
/// use it at once; their work goes to its stream in the order of the calls.
pub struct BowstringSelection(Selection);

/// Options for taking rows. Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields
/// that differ from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringTakeOptions {
    /// The size of the caller's struct in bytes, `sizeof(struct BowstringTakeOptions)`.
    pub size: usize,
    /// 0 (the default): an index out of bounds fails with `BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS`. 1: it gives
    /// a null row.
    pub out_of_bounds_is_null: i32,
}

/// Options for casts. Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields that
/// differ from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringCastOptions {
    /// The size of the caller's struct in bytes, `sizeof(struct BowstringCastOptions)`.
    pub size: usize,
    /// 0 (the default): a value that does not fit becomes null. 1: it fails with `BOWSTRING_STATUS_CAST`.
    pub strict: i32,
}

/// The largest size accepted for any version's options, in bytes.
const MOST: usize = 4096;

/// Reads the caller's options; `None` for NULL. `size` is the first field of all option structs, and 0 is the
/// default of every other field. A caller that was compiled for an earlier version passes a smaller struct;
/// the fields that it lacks are 0. One that was compiled for a later version passes a larger struct; the
/// fields that this version does not know must be 0.
///
/// # Safety
///
/// `pointer` is NULL or points to options that are as large as they say. A `T` of zeros is valid.
pub(crate) unsafe fn options<T: Copy>(pointer: *const T) -> Result<Option<T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise: there is at least the size.
    let size = unsafe { pointer.cast::<usize>().read() };
    // A struct of any version is as large as a number of `size_t`s, because its first field is one.
    if !(size_of::<usize>()..=MOST).contains(&size) || !size.is_multiple_of(align_of::<usize>()) {
        return Err(invalid(format!("options of {size} bytes, not {}", size_of::<T>())));
    }
    // SAFETY: the caller's promise: there are `size` bytes.
    let all = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    let (known, later) = all.split_at(size.min(size_of::<T>()));
    if later.iter().any(|byte| *byte != 0) {
        return Err(invalid("options that this version does not know"));
    }
    let mut options = MaybeUninit::<T>::zeroed();
    // SAFETY: a `T` has room for the bytes. The caller's promise: they and the zeros after them are a `T`.
    unsafe {
        copy_nonoverlapping(known.as_ptr(), options.as_mut_ptr().cast(), known.len());
        Ok(Some(options.assume_init()))
    }
}

/// Returns the rows of `values` for which `mask`, an array of booleans of equal length, is true. A null in
/// the mask drops the row. A shorter mask is `BOWSTRING_STATUS_INVALID`; arrow-rs drops the rows beyond its
/// end instead. On a GPU this synchronises once, because the number of kept rows depends on the data.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_filter(
    values: *const BowstringArray,
    mask: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, mask) = (borrow(values, "values")?, borrow(mask, "mask")?);
        let kept = compute::filter(&values.array, &mask.array, &borrow(stream, "stream")?.0).wait()?;
        give(values.with(kept), out)
    })
}

/// Filters the rows of every column by `mask`; otherwise like `bowstring_filter`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_filter_batch(
    batch: *const BowstringBatch,
    mask: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, mask) = (borrow(batch, "batch")?, borrow(mask, "mask")?);
        let kept = compute::filter(&batch.0, &mask.array, &borrow(stream, "stream")?.0).wait()?;
        give(BowstringBatch::new(kept), out)
    })
}

/// Prepares a mask, an array of booleans, for many arrays on one stream. On a GPU this synchronises once.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_selection_new(
    mask: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringSelection,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let selection = Selection::of_mask(&borrow(mask, "mask")?.array, &borrow(stream, "stream")?.0);
        give(BowstringSelection(selection.wait()?), out)
    })
}

/// Returns the number of rows that the selection keeps.
///
/// # Safety
///
/// `selection` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_selection_length(
    selection: *const BowstringSelection,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(borrow(selection, "selection")?.0.len() as u64, out) })
}

/// Returns the rows of `values` that the selection keeps. `values` must be as long as the mask. The work runs
/// on the selection's stream. On a GPU this synchronises once for text, lists and the like, for booleans, and
/// for all arrays that may have nulls (lists of runs take more). Numbers that have no validity bitmap do not
/// synchronise.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_selection_filter(
    selection: *const BowstringSelection,
    values: *const BowstringArray,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let values = borrow(values, "values")?;
        let kept = borrow(selection, "selection")?.0.filter(&values.array).wait()?;
        give(values.with(kept), out)
    })
}

/// Filters the rows of every column; otherwise like `bowstring_selection_filter`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_selection_filter_batch(
    selection: *const BowstringSelection,
    batch: *const BowstringBatch,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let kept = borrow(selection, "selection")?.0.filter(&borrow(batch, "batch")?.0).wait()?;
        give(BowstringBatch::new(kept), out)
    })
}

/// Frees a selection. NULL is ignored.
///
/// # Safety
///
/// `selection` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_selection_free(selection: *mut BowstringSelection) {
    // SAFETY: the caller's promise.
    unsafe { free(selection) }
}

/// Translates the caller's options; NULL means the defaults.
pub(crate) unsafe fn take_options(pointer: *const BowstringTakeOptions) -> Result<TakeOptions> {
    // SAFETY: the caller's promise.
    let options = unsafe { options(pointer) }?;
    let null = options.is_some_and(|options| options.out_of_bounds_is_null != 0);
    Ok(TakeOptions { out_of_bounds: if null { OutOfBounds::Null } else { OutOfBounds::Error } })
}

/// Returns the rows of `values` at `indices`, an array of any integer type. A null index gives a null row. A
/// negative index is out of bounds; it does not count from the end. Indices into an array of type Null are
/// checked too, which arrow-rs does not do. `options` may be NULL. Synchronises only for types whose size a
/// GPU must find out first. On a GPU an index out of bounds is reported by the first call that waits for the
/// result (bowstring_array_wait); until then it gives a null row.
///
/// # Safety
///
/// Handles and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_take(
    values: *const BowstringArray,
    indices: *const BowstringArray,
    options: *const BowstringTakeOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, indices) = (borrow(values, "values")?, borrow(indices, "indices")?);
        let stream = &borrow(stream, "stream")?.0;
        let taken = compute::take(&values.array, &indices.array, &take_options(options)?, stream).wait()?;
        give(values.with(taken), out)
    })
}

/// Takes the rows of every column at `indices`; otherwise like `bowstring_take`. If an index may be null, or
/// become null because it is out of bounds, the fields of the result are nullable.
///
/// # Safety
///
/// Handles and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_take_batch(
    batch: *const BowstringBatch,
    indices: *const BowstringArray,
    options: *const BowstringTakeOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, indices) = (borrow(batch, "batch")?, borrow(indices, "indices")?);
        let stream = &borrow(stream, "stream")?.0;
        let taken = compute::take(&batch.0, &indices.array, &take_options(options)?, stream).wait()?;
        give(BowstringBatch::new(taken), out)
    })
}

/// Translates the caller's options; NULL means the defaults.
pub(crate) unsafe fn cast_options(pointer: *const BowstringCastOptions) -> Result<CastOptions<'static>> {
    // SAFETY: the caller's promise.
    let options = unsafe { options(pointer) }?;
    let strict = options.is_some_and(|options| options.strict != 0);
    Ok(CastOptions { safe: !strict, ..CastOptions::default() })
}

/// Casts the values to the type that `to` describes. The result has the name of `values` and the metadata of
/// `to`, which names the extension type if it is one. `to` is only read. `options` may be NULL. On a GPU a
/// failure of a strict cast is reported by the first call that waits for the result (bowstring_array_wait).
///
/// Synchronises only if a GPU needs to know something that depends on the data: for views, for bytes cast to
/// text, for values and lists cast to text, and for the items of lists in a cast that may fail.
///
/// # Safety
///
/// Handles, schema and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_cast(
    values: *const BowstringArray,
    to: *const FFI_ArrowSchema,
    options: *const BowstringCastOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        let to = exchange::import_field(borrow(to, "to")?)?;
        let options = cast_options(options)?;
        give(values.cast(compute::cast(&values.array, to.data_type(), &options, &stream.0).wait()?, &to), out)
    })
}

/// Casts every column to the type of the field of `to` at the same position. `to` must have as many fields as
/// the batch has columns; the result has its names. Otherwise like `bowstring_cast`. Nulls under a field of
/// `to` that is not nullable are `BOWSTRING_STATUS_INVALID`. On a GPU a value that does not fit in a strict
/// cast, or a null that has not been counted, is reported by the first call that waits for the column.
///
/// # Safety
///
/// Handles, schema and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_cast_batch(
    batch: *const BowstringBatch,
    to: *const FFI_ArrowSchema,
    options: *const BowstringCastOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        let to = Arc::new(exchange::import_schema(borrow(to, "to")?)?);
        let casted = compute::cast(&batch.0, &to, &cast_options(options)?, &stream.0).wait()?;
        give(BowstringBatch::new(casted), out)
    })
}

/// Concatenates `count` arrays of one type in their order. The result has the name and the metadata of the
/// first, and is nullable if any of them is. On a GPU this synchronises once for each level of text, lists or
/// runs.
///
/// # Safety
///
/// Handles must be NULL or live, `arrays` NULL or point to `count` of them, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_concat(
    arrays: *const *const BowstringArray,
    count: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let arrays: Vec<&BowstringArray> = handles(arrays, count, "arrays")?;
        let parts: Vec<&DeviceArray> = arrays.iter().map(|one| &one.array).collect();
        let joined = compute::concat(&parts, &borrow(stream, "stream")?.0).wait()?;
        // Without arrays, there was an error.
        let mut joined = arrays[0].part(joined);
        joined.field = joined.field.with_nullable(arrays.iter().any(|one| one.field.is_nullable()));
        give(joined, out)
    })
}

/// Concatenates `count` batches in their order. They must have columns of the same names and types. A column
/// of the result is nullable if it is in any batch. The columns synchronise together; otherwise like
/// `bowstring_concat`.
///
/// # Safety
///
/// Handles must be NULL or live, `batches` NULL or point to `count` of them, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_concat_batch(
    batches: *const *const BowstringBatch,
    count: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let batches: Vec<&BowstringBatch> = handles(batches, count, "batches")?;
        let parts: Vec<&DeviceBatch> = batches.iter().map(|one| &one.0).collect();
        give(BowstringBatch::new(compute::concat(&parts, &borrow(stream, "stream")?.0).wait()?), out)
    })
}
