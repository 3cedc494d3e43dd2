//! Rows in parts, and rows of several arrays.

use std::sync::Arc;

use arrow_schema::Schema;
use bowstring::compute;
use bowstring::{DeviceArray, DeviceBatch, Result};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, give, guard, handles, invalid, items, missing};

/// Returns the rows, as UInt32, at which a group of equal rows starts, in `count` sorted columns of one
/// length: row 0, and each row that differs from the row before it. Nulls are equal. On a GPU this
/// synchronises once.
///
/// # Safety
///
/// Handles must be NULL or live, `columns` NULL or as many as `count` says, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_partition(
    columns: *const *const BowstringArray,
    count: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (stream, columns) = (borrow(stream, "stream")?, handles(columns, count, "columns")?);
        let arrays: Vec<DeviceArray> = columns.iter().map(|column| column.array.clone()).collect();
        let starts = compute::partition(&arrays, &stream.0).wait()?;
        give(columns[0].others(starts), out)
    })
}

/// Divides rows into `parts` parts, at most 65,536, by a hash of `count` keys of one length. Rows with equal
/// keys are in the same part and keep their order. `out_order` receives the rows, part after part, as UInt32:
/// take them, and slice the result. `out_starts` is the caller's memory for `parts + 1` numbers: the place of
/// each part's first row, and the number of all rows. The hash is the same in every process and on every
/// device. On a GPU this synchronises once, and more often for keys of nested types.
///
/// # Safety
///
/// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out_order` NULL or writable,
/// `out_starts` NULL or memory for `parts + 1` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_partition_by_hash(
    keys: *const *const BowstringArray,
    count: u64,
    parts: u64,
    stream: *const BowstringStream,
    out_order: *mut *mut BowstringArray,
    out_starts: *mut u64,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (stream, keys) = (borrow(stream, "stream")?, handles(keys, count, "keys")?);
        borrow(out_order, "out_order")?;
        if out_starts.is_null() {
            return Err(missing("out_starts"));
        }
        let arrays: Vec<DeviceArray> = keys.iter().map(|key| key.array.clone()).collect();
        let parts = usize::try_from(parts).map_err(|_| invalid(format!("{parts} parts")))?;
        let made = compute::partition_by_hash(&arrays, parts, &stream.0).wait()?;
        give(keys[0].others(made.order().clone()), out_order)?;
        // The caller's memory may not be initialised, so there is no slice of it.
        made.starts().iter().enumerate().for_each(|(i, start)| out_starts.add(i).write(*start as u64));
        Ok(())
    })
}

/// Returns a batch of the different values of an array, in the order of their first rows, and how often each
/// occurs: the columns `values`, which has the array's metadata, and `counts`. Nulls are counted too. On a
/// GPU this synchronises like `bowstring_group` and `bowstring_take`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_value_counts(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        let counts = compute::value_counts(&values.array, &stream.0).wait()?;
        let [of, count] = [0, 1].map(|i| counts.schema().field(i).clone());
        let schema = Schema::new(vec![of.with_metadata(values.field.metadata().clone()), count]);
        let said = DeviceBatch::try_new(Arc::new(schema), counts.columns().to_vec(), counts.len())?;
        give(BowstringBatch::new(said), out)
    })
}

/// Returns the rows of `truthy` where `mask` is true, and those of `falsy` where it is false or null. All
/// have as many rows. Synchronises as `bowstring_concat` and `bowstring_take` do.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_zip(
    mask: *const BowstringArray,
    truthy: *const BowstringArray,
    falsy: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (mask, stream) = (borrow(mask, "mask")?, borrow(stream, "stream")?);
        let (truthy, falsy) = (borrow(truthy, "truthy")?, borrow(falsy, "falsy")?);
        let zipped = compute::zip(&mask.array, &truthy.array, &falsy.array, &stream.0).wait()?;
        give(truthy.with(zipped), out)
    })
}

/// Returns `len` rows of `count` arrays of one type: row `rows[i]` of array `which[i]`. Synchronises as
/// `bowstring_concat` and `bowstring_take` do.
///
/// # Safety
///
/// Handles must be NULL or live, `arrays` NULL or as many as `count` says, `which` and `rows` NULL or as many
/// as `len` says, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_interleave(
    arrays: *const *const BowstringArray,
    count: u64,
    which: *const u64,
    rows: *const u64,
    len: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (stream, arrays) = (borrow(stream, "stream")?, handles(arrays, count, "arrays")?);
        let (which, rows) = (items(which, len, "which")?, items(rows, len, "rows")?);
        let number = |number: &u64| usize::try_from(*number).map_err(|_| invalid(format!("row {number}")));
        let picks = which.iter().zip(rows).map(|(which, row)| Ok((number(which)?, number(row)?)));
        let picks = picks.collect::<Result<Vec<_>>>()?;
        let values: Vec<&DeviceArray> = arrays.iter().map(|array| &array.array).collect();
        let made = compute::interleave(&values, &picks, &stream.0).wait()?;
        give(arrays.first().ok_or_else(|| missing("arrays"))?.with(made), out)
    })
}
