//! The operations.

use std::sync::Arc;

use bowstring::compute::{self, CastOptions, OutOfBounds, Scalar, Selection, TakeOptions};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Array, Pending, Result, Stream, exchange};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, put};

/// A mask prepared once, for any number of arrays and batches, and for any number of threads at once: what they filter with
/// it goes to its stream in the order in which their calls come.
pub struct BowstringSelection(Selection);

/// How to take. Zero-initialise it, set `size` to `sizeof`, then what differs from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringTakeOptions {
    /// `sizeof(struct BowstringTakeOptions)`.
    pub size: usize,
    /// 0: an index that is not a row is `BOWSTRING_STATUS_INDEX_OUT_OF_BOUNDS` (the default); 1: it gives a null row.
    pub out_of_bounds_is_null: i32,
}

/// How to cast. Zero-initialise it, set `size` to `sizeof`, then what differs from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringCastOptions {
    /// `sizeof(struct BowstringCastOptions)`.
    pub size: usize,
    /// 0: a value that does not fit becomes null (the default); 1: it is `BOWSTRING_STATUS_CAST`.
    pub strict: i32,
}

/// No options of any version are larger.
const MOST: usize = 4096;

/// The options, or nothing for NULL. `size` comes first in all of them. A caller made for a later version may know more
/// of them, all of which must be 0: not set.
///
/// # Safety
///
/// `pointer` is NULL or points to options that are as large as they say.
pub(crate) unsafe fn options<T: Copy>(pointer: *const T) -> Result<Option<T>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise: there is at least the size.
    let size = unsafe { pointer.cast::<usize>().read() };
    if !(size_of::<T>()..=MOST).contains(&size) {
        return Err(invalid(format!("options of {size} bytes, not {}", size_of::<T>())));
    }
    // SAFETY: the caller's promise: there are `size` bytes, of which `T` is the first part.
    let (options, all) = unsafe { (pointer.read(), std::slice::from_raw_parts(pointer.cast::<u8>(), size)) };
    match all[size_of::<T>()..].iter().all(|byte| *byte == 0) {
        true => Ok(Some(options)),
        false => Err(invalid("options that this version does not know")),
    }
}

/// The rows of `values` where `mask`, an array of booleans of equal length, is true; null is not. A mask that is shorter is
/// `BOWSTRING_STATUS_INVALID`, where arrow-rs would leave out the rows beyond it. On a GPU this synchronises once: how many
/// rows are kept is data.
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

/// The rows of every column where `mask` is true; as `bowstring_filter`.
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

/// Prepares a mask for use with many arrays on one stream. On a GPU this synchronises once.
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
        let selection = Selection::new(&borrow(mask, "mask")?.array, &borrow(stream, "stream")?.0)?;
        give(BowstringSelection(selection), out)
    })
}

/// How many rows it keeps.
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

/// The rows that it keeps of an array as long as its mask, on its stream. Synchronises only for types whose size a GPU has
/// to find out, such as strings and lists: once.
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

/// The rows that it keeps of every column; as `bowstring_selection_filter`.
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

/// Frees a selection.
///
/// # Safety
///
/// `selection` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_selection_free(selection: *mut BowstringSelection) {
    // SAFETY: the caller's promise.
    unsafe { free(selection) }
}

/// What the caller's options mean.
pub(crate) unsafe fn take_options(pointer: *const BowstringTakeOptions) -> Result<TakeOptions> {
    // SAFETY: the caller's promise.
    let options = unsafe { options(pointer) }?;
    let null = options.is_some_and(|options| options.out_of_bounds_is_null != 0);
    Ok(TakeOptions { out_of_bounds: if null { OutOfBounds::Null } else { OutOfBounds::Error } })
}

/// The rows of `values` at `indices`, an array of any integer type. A null index gives a null row; a negative one never
/// counts from the end. Indices into an array of type Null are checked as any others are, which arrow-rs does not do.
/// `options` may be NULL. Does not synchronise, but for types whose size a GPU has to find out. On a
/// GPU a bad index is the failure of whoever first waits for the result (bowstring_array_wait), and a null row meanwhile.
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

/// The rows of every column at `indices`; as `bowstring_take`. Where an index may be null, or become null for being out of
/// bounds, the fields of the result are nullable.
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

/// What the caller's options mean.
pub(crate) unsafe fn cast_options(pointer: *const BowstringCastOptions) -> Result<CastOptions<'static>> {
    // SAFETY: the caller's promise.
    let options = unsafe { options(pointer) }?;
    let strict = options.is_some_and(|options| options.strict != 0);
    Ok(CastOptions { safe: !strict, ..CastOptions::default() })
}

/// The values as another type: the one that `to` describes, with the metadata of `to`, which says of what extension type they
/// are, if any, and under the name of `values`. `to` is only read. `options` may be NULL. On a GPU a strict cast that fails is
/// the failure of whoever first waits for the result (bowstring_array_wait). Synchronises only where a GPU has to find out what
/// is data: the bytes behind views, bytes that are to be text, values and lists as text, the items of lists in a cast that may fail.
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

/// Every column as the type of the field of `to` in its place, a schema of as many fields, and under its names; as
/// `bowstring_cast`. Nulls under a field of `to` that is not nullable are `BOWSTRING_STATUS_INVALID`. On a GPU a value that
/// does not fit a strict cast, or a null that nobody has counted, is the failure of whoever first waits for the column.
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

/// How many rows of each column are null by its validity bitmap, counted together; `out` has room for `columns` numbers, as
/// many as the batch has columns. On a GPU this synchronises once, unless all are known.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable for `columns` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_null_count_batch(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    columns: u64,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        borrow(out, "out")?;
        if columns != batch.0.columns().len() as u64 {
            return Err(invalid(format!(
                "room for {columns} numbers, of {} columns",
                batch.0.columns().len()
            )));
        }
        let nulls = compute::null_count(&batch.0, &stream.0).wait()?;
        nulls.into_iter().enumerate().try_for_each(|(i, nulls)| put(nulls as u64, out.add(i)))
    })
}

/// How many rows are null by the validity bitmap. On a GPU this synchronises once, unless it is known.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_null_count(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let nulls =
            compute::null_count(&borrow(values, "values")?.array, &borrow(stream, "stream")?.0).wait()?;
        put(nulls as u64, out)
    })
}

/// How many rows are null when dictionaries, runs and unions are looked through. On a GPU this synchronises once, unless
/// it is known.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_logical_null_count(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let nulls =
            compute::logical_null_count(&borrow(values, "values")?.array, &borrow(stream, "stream")?.0)
                .wait()?;
        put(nulls as u64, out)
    })
}

/// An operation from one array to another, whose field `under` finds.
unsafe fn each_row(
    operation: fn(&Array, &Stream) -> Pending<Array>,
    under: fn(&BowstringArray, Array) -> BowstringArray,
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let values = borrow(values, "values")?;
        give(under(values, operation(&values.array, &borrow(stream, "stream")?.0).wait()?), out)
    })
}

/// Whether each row is null, as an array of booleans without nulls. Does not synchronise.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_is_null(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { each_row(compute::is_null, BowstringArray::others, values, stream, out) }
}

/// Whether each row is valid, as an array of booleans without nulls. Does not synchronise.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_is_not_null(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { each_row(compute::is_not_null, BowstringArray::others, values, stream, out) }
}

/// The values, and the only row of `scalar` where they are null; a null there leaves all as it is. `scalar` is in memory that the
/// host reads, and of the values' type. Does not synchronise where that is Boolean or has a fixed width of 1, 2, 4, 8, 16 or 32 bytes;
/// else once for each level of text, lists or runs, and as a take.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_fill_null(
    values: *const BowstringArray,
    scalar: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, scalar) = (borrow(values, "values")?, borrow(scalar, "scalar")?);
        let scalar = Scalar::try_new(&scalar.array)?;
        let filled = compute::fill_null(&values.array, &scalar, &borrow(stream, "stream")?.0).wait()?;
        give(values.with(filled), out)
    })
}

/// The rows that are not null. On a GPU this synchronises once, as every filter.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_drop_nulls(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { each_row(compute::drop_nulls, BowstringArray::with, values, stream, out) }
}
