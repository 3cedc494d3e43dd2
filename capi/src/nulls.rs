//! The operations about nulls: counts, tests, replacing and dropping them.

use bowstring::compute::{self, Scalar};
use bowstring::{DeviceArray, Pending, Stream};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, give, guard, invalid, put};

/// Writes to `out`, for each column, the number of rows that are null by its validity bitmap. `out` must have
/// room for `columns` numbers, and `columns` must be the number of columns of the batch. On a GPU this
/// synchronises once for all columns, or not at all if all counts are known.
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

/// Returns the number of rows that are null by the validity bitmap. On a GPU this synchronises once, unless
/// the count is known.
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

/// Returns the number of rows that are null by their value: dictionaries, runs and unions are looked through.
/// On a GPU this synchronises once, unless the count is known.
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

/// Runs an operation from one array to another; `under` makes the result's field.
unsafe fn each_row(
    operation: fn(&DeviceArray, &Stream) -> Pending<DeviceArray>,
    under: fn(&BowstringArray, DeviceArray) -> BowstringArray,
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

/// Returns an array of booleans without nulls: whether each row is null. Does not synchronise.
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

/// Returns an array of booleans without nulls: whether each row is valid. Does not synchronise.
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

/// Replaces the nulls in `values` by the only row of `scalar`. `scalar` must have the type of `values` and be
/// in memory that the host can read. If its row is null, the values stay as they are. Does not synchronise if
/// the type is Boolean or has a fixed width of 1, 2, 4, 8, 16 or 32 bytes. Other types synchronise once for
/// each level of text, lists or runs, and as `bowstring_take` does.
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

/// Returns the rows that are not null. On a GPU this synchronises once, like every filter.
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
