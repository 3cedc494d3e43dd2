//! The operations about nulls: counts, tests, replacing and dropping them.

use bowstring::compute::{self, DropIf, DropOptions, Scalar};
use bowstring::{DeviceArray, DeviceBatch, Pending, Result, Stream};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::compute::options;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, give, guard, invalid, items, put};

/// Options for dropping nulls. Initialise the struct with zeros, set `size` to its `sizeof`, then set the
/// fields that differ from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringDropOptions {
    /// The size of the caller's struct in bytes, `sizeof(struct BowstringDropOptions)`.
    pub size: usize,
    /// 0 (the default): a null in any column drops the row. 1: only nulls in all columns do.
    pub only_if_all: i32,
    /// The positions of the columns that decide, counted from 0; NULL (the default) for all columns.
    pub columns: *const u64,
    /// The number of these positions.
    pub count: u64,
}

/// Counts the nulls of each column into `out`, which has room for so many numbers.
unsafe fn counts(
    operation: fn(&DeviceBatch, &Stream) -> Pending<Vec<usize>>,
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
        let nulls = operation(&batch.0, &stream.0).wait()?;
        nulls.into_iter().enumerate().try_for_each(|(i, nulls)| put(nulls as u64, out.add(i)))
    })
}

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
    unsafe { counts(compute::null_count, batch, stream, columns, out) }
}

/// Writes to `out`, for each column, the number of rows that are null by their value; otherwise like
/// `bowstring_null_count_batch`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable for `columns` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_logical_null_count_batch(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    columns: u64,
    out: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { counts(compute::logical_null_count, batch, stream, columns, out) }
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

/// Tests each row of an array.
unsafe fn array_tested(
    operation: fn(&DeviceArray, &Stream) -> Pending<DeviceArray>,
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let values = borrow(values, "values")?;
        give(values.others(operation(&values.array, &borrow(stream, "stream")?.0).wait()?), out)
    })
}

/// Tests each row of each column.
unsafe fn batch_tested(
    operation: fn(&DeviceBatch, &Stream) -> Pending<DeviceBatch>,
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        give(BowstringBatch::new(operation(&batch.0, &stream.0).wait()?), out)
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
    unsafe { array_tested(compute::is_null, values, stream, out) }
}

/// Returns a batch with a column of booleans without nulls for each column: whether its rows are null. The
/// columns keep their names. Does not synchronise.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_is_null_batch(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { batch_tested(compute::is_null, batch, stream, out) }
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
    unsafe { array_tested(compute::is_not_null, values, stream, out) }
}

/// Returns a batch with a column of booleans without nulls for each column: whether its rows are valid. The
/// columns keep their names. Does not synchronise.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_is_not_null_batch(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { batch_tested(compute::is_not_null, batch, stream, out) }
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

/// Replaces the nulls of each column by the only row of the array at the same position of `scalars`;
/// otherwise like `bowstring_fill_null`. `columns` must be the number of columns of the batch. A column whose
/// scalar is NULL stays as it is. The columns synchronise together.
///
/// # Safety
///
/// Handles must be NULL or live, `scalars` NULL or point to `columns` of them, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_fill_null_batch(
    batch: *const BowstringBatch,
    scalars: *const *const BowstringArray,
    columns: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        let scalars = items(scalars, columns, "scalars")?.iter().map(|scalar| scalar.as_ref());
        let scalar =
            |scalar: Option<&BowstringArray>| scalar.map(|scalar| Scalar::try_new(&scalar.array)).transpose();
        let scalars = scalars.map(scalar).collect::<Result<Vec<_>>>()?;
        give(BowstringBatch::new(compute::fill_null(&batch.0, &scalars, &stream.0).wait()?), out)
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
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        let kept = compute::drop_nulls(&values.array, &DropOptions::default(), &stream.0).wait()?;
        give(values.with(kept), out)
    })
}

/// Returns the rows of a batch that have no nulls, or not only nulls, in all or some of its columns.
/// `options` may be NULL. On a GPU this synchronises once, like every filter.
///
/// # Safety
///
/// Handles and options must be NULL or live, the columns of the options NULL or as many as they say, `out`
/// NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_drop_nulls_batch(
    batch: *const BowstringBatch,
    options: *const BowstringDropOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        let options = drop_options(options)?;
        give(BowstringBatch::new(compute::drop_nulls(&batch.0, &options, &stream.0).wait()?), out)
    })
}

/// Translates the caller's options; NULL means the defaults.
unsafe fn drop_options(pointer: *const BowstringDropOptions) -> Result<DropOptions> {
    // SAFETY: the caller's promise.
    let Some(said) = unsafe { options(pointer) }? else { return Ok(DropOptions::default()) };
    let drop_if = if said.only_if_all != 0 { DropIf::AllNull } else { DropIf::AnyNull };
    if said.columns.is_null() {
        return Ok(DropOptions { drop_if, columns: None });
    }
    // SAFETY: the caller's promise.
    let columns = unsafe { items(said.columns, said.count, "columns") }?;
    let columns = columns.iter().map(|column| usize::try_from(*column).unwrap_or(usize::MAX));
    Ok(DropOptions { drop_if, columns: Some(columns.collect()) })
}
