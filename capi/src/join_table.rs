//! Tables of rows that others find by their keys.

use arrow_schema::Field;
use bowstring::compute::JoinTable;
use bowstring::{DeviceArray, Result};

use crate::array::BowstringArray;
use crate::device::BowstringStream;
use crate::status::{BowstringStatus, borrow, free, give, guard, handles};

/// Rows that others find by their keys: one side of a join, made once for any number of other sides.
pub struct BowstringJoinTable(JoinTable);

/// The arrays of the keys that an argument has.
pub(crate) unsafe fn keys_of(
    keys: *const *const BowstringArray,
    count: u64,
    argument: &str,
) -> Result<Vec<DeviceArray>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { handles(keys, count, argument) }?.into_iter().map(|key| key.array.clone()).collect())
}

fn nameless(array: DeviceArray) -> BowstringArray {
    let field = Field::new("", array.data_type().clone(), true);
    BowstringArray { array, field }
}

/// Makes a table of rows by `count` columns of keys. A null key equals nothing, unless `nulls_equal` is not
/// 0. Each search by nested keys makes the table anew. On a GPU this synchronises once, and sorts nested
/// keys.
///
/// # Safety
///
/// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_join_table_new(
    keys: *const *const BowstringArray,
    count: u64,
    nulls_equal: i32,
    stream: *const BowstringStream,
    out: *mut *mut BowstringJoinTable,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let stream = borrow(stream, "stream")?;
        let table = JoinTable::new(&keys_of(keys, count, "keys")?, nulls_equal != 0, &stream.0).wait()?;
        give(BowstringJoinTable(table), out)
    })
}

/// Frees a table. Results stay valid. NULL is ignored.
///
/// # Safety
///
/// `table` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_join_table_free(table: *mut BowstringJoinTable) {
    // SAFETY: the caller's promise.
    unsafe { free(table) }
}

/// Finds rows by `count` keys, which have the types of the table's, and returns the pairs of equal ones, as
/// UInt32: the rows of the table in `out_left`, those that were found in `out_right`, in whose order the
/// pairs are. If `outer` is not 0, a row without a partner has one pair, with null on the left. On a GPU this
/// synchronises once, for the number of pairs, before there is memory for them; and as
/// `bowstring_join_table_found` does.
///
/// # Safety
///
/// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out_left` and `out_right` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_join_table_pairs(
    table: *const BowstringJoinTable,
    keys: *const *const BowstringArray,
    count: u64,
    outer: i32,
    stream: *const BowstringStream,
    out_left: *mut *mut BowstringArray,
    out_right: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (table, stream) = (borrow(table, "table")?, &borrow(stream, "stream")?.0);
        borrow(out_left, "out_left")?;
        borrow(out_right, "out_right")?;
        let keys = keys_of(keys, count, "keys")?;
        let rows = keys.first().map_or(0, DeviceArray::len);
        let found = table.0.find(&keys, stream).wait()?;
        let pairs = found.pairs_of(0..rows, outer != 0, stream).wait()?;
        give(nameless(pairs.left), out_left)?;
        give(nameless(pairs.right), out_right)
    })
}

/// Finds rows by `count` keys, and returns which of them have a partner, as booleans without nulls. Does not
/// synchronise, unless keys are dictionaries, runs or nested.
///
/// # Safety
///
/// Handles must be NULL or live, `keys` NULL or as many as `count` says, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_join_table_found(
    table: *const BowstringJoinTable,
    keys: *const *const BowstringArray,
    count: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (table, stream) = (borrow(table, "table")?, &borrow(stream, "stream")?.0);
        let found = table.0.find(&keys_of(keys, count, "keys")?, stream).wait()?;
        give(nameless(found.found(stream).wait()?), out)
    })
}
