//! Sorting, groups of equal rows, and joins.

use bowstring::Result;
use bowstring::compute::{self, JoinKind, JoinOptions, SortColumn, SortOptions, Ties};
use bowstring::expr::{FloatOrder, Options};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::compute::options;
use crate::device::BowstringStream;
use crate::expr::BowstringExpr;
use crate::join_table::keys_of;
use crate::status::{BowstringStatus, borrow, give, guard, handles, invalid, items};

/// Sorts in descending order; a flag of the orders that sorting functions take.
pub const BOWSTRING_SORT_DESCENDING: u32 = 1;
/// Puts nulls last, and not first; a flag of the orders that sorting functions take.
pub const BOWSTRING_SORT_NULLS_LAST: u32 = 2;

/// Returns all rows; a limit of sorting functions.
pub const BOWSTRING_ALL_ROWS: u64 = u64::MAX;

/// The rank of rows that are equal.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringTies {
    /// The highest of their places.
    Highest = 0,
    /// The lowest of their places, as SQL's `RANK()`.
    Lowest = 1,
    /// One more than that of the rows before them, as SQL's `DENSE_RANK()`.
    Dense = 2,
}

/// The rows that a join returns.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringJoinKind {
    /// The pairs of rows whose keys are equal.
    Inner = 0,
    /// The pairs, and the left rows without a partner.
    Left = 1,
    /// The pairs, and the right rows without a partner.
    Right = 2,
    /// The pairs, and the rows of both sides without a partner.
    Full = 3,
    /// The left rows that have a partner.
    LeftSemi = 4,
    /// The right rows that have a partner.
    RightSemi = 5,
    /// The left rows that have none.
    LeftAnti = 6,
    /// The right rows that have none.
    RightAnti = 7,
    /// All left rows, and a column `mark` that tells whether they have a partner.
    LeftMark = 8,
    /// All right rows, and a column `mark` that tells whether they have a partner.
    RightMark = 9,
}

/// Options for a join. Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields that
/// differ from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringJoinOptions {
    /// The size of the caller's struct in bytes, `sizeof(struct BowstringJoinOptions)`.
    pub size: usize,
    /// The rows that are returned, a `BowstringJoinKind`; `BOWSTRING_JOIN_KIND_INNER`, 0, is the default.
    pub kind: i32,
    /// 0 (the default): a null key equals nothing. 1: it equals other null keys.
    pub nulls_equal: i32,
    /// 1: an anti join is SQL's `NOT IN`: no key of the other side may be null, and nor may a row's own,
    /// unless the other side has no rows. For one key, and without a filter. 0 is the default.
    pub null_aware: i32,
    /// 1: keys that are floats, and those in `filter`, are equal as in SQL: -0.0 equals 0.0, and all NaNs are
    /// equal. 0 (the default): if their bits are.
    pub floats_as_sql: i32,
    /// A condition over the left columns and then the right ones that a pair must meet besides; NULL (the
    /// default) for none.
    pub filter: *const BowstringExpr,
}

/// Translates an order's flags.
pub(crate) fn sort_options(order: u32) -> Result<SortOptions> {
    if order > BOWSTRING_SORT_DESCENDING | BOWSTRING_SORT_NULLS_LAST {
        return Err(invalid(format!("an order of {order}")));
    }
    Ok(SortOptions {
        descending: order & BOWSTRING_SORT_DESCENDING != 0,
        nulls_first: order & BOWSTRING_SORT_NULLS_LAST == 0,
    })
}

/// Returns the number of rows that a limit leaves; `None` for all.
pub(crate) fn limit_of(limit: u64) -> Option<usize> {
    usize::try_from(limit).ok().filter(|_| limit != BOWSTRING_ALL_ROWS)
}

/// The columns to sort by, with their orders.
pub(crate) unsafe fn sort_columns<'a>(
    columns: *const *const BowstringArray,
    orders: *const u32,
    count: u64,
) -> Result<Vec<SortColumn<'a>>> {
    // SAFETY: the caller's promise.
    let (columns, orders) = unsafe { (handles(columns, count, "columns")?, items(orders, count, "orders")?) };
    let by = columns.into_iter().zip(orders);
    by.map(|(column, order)| Ok(SortColumn::new(&column.array, sort_options(*order)?))).collect()
}

/// Returns the numbers of the rows of an array in the order of their values, as UInt32: the first `limit` of
/// them. `order` has the flags `BOWSTRING_SORT_DESCENDING` and `BOWSTRING_SORT_NULLS_LAST`, or 0. Rows that
/// are equal stay in their order. On a GPU this synchronises once, for text twice for each seven bytes in
/// which rows agree, and for lists like a sort of their items.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_sort_to_indices(
    values: *const BowstringArray,
    order: u32,
    limit: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        let limit = limit_of(limit);
        let order = compute::sort_to_indices(&values.array, sort_options(order)?, limit, &stream.0).wait()?;
        give(values.others(order), out)
    })
}

/// Returns the numbers of the rows of `count` columns of one length, in the order of the first column in
/// which they differ. `orders` has an order for each column. Otherwise like `bowstring_sort_to_indices`.
///
/// # Safety
///
/// Handles must be NULL or live, `columns` and `orders` NULL or as many as `count` says, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_lexsort_to_indices(
    columns: *const *const BowstringArray,
    orders: *const u32,
    count: u64,
    limit: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let stream = borrow(stream, "stream")?;
        let by = sort_columns(columns, orders, count)?;
        let order = compute::lexsort_to_indices(&by, limit_of(limit), &stream.0).wait()?;
        let first = handles(columns, count, "columns")?[0];
        give(first.others(order), out)
    })
}

/// Sorts an array: the first `limit` of its rows in order. Otherwise like `bowstring_sort_to_indices`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_sort(
    values: *const BowstringArray,
    order: u32,
    limit: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        let by = [SortColumn::new(&values.array, sort_options(order)?)];
        let sorted = compute::sort_by(&values.array, &by, limit_of(limit), &stream.0).wait()?;
        give(values.part(sorted), out)
    })
}

/// Sorts the rows of a batch by `count` columns, which need not be its own. Otherwise like
/// `bowstring_lexsort_to_indices`.
///
/// # Safety
///
/// Handles must be NULL or live, `columns` and `orders` NULL or as many as `count` says, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_sort_batch(
    batch: *const BowstringBatch,
    columns: *const *const BowstringArray,
    orders: *const u32,
    count: u64,
    limit: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        let by = sort_columns(columns, orders, count)?;
        let sorted = compute::sort_by(&batch.0, &by, limit_of(limit), &stream.0).wait()?;
        give(BowstringBatch::new(sorted), out)
    })
}

/// Returns the rank of each row in the order of `bowstring_sort_to_indices`, as UInt32, from 1 on.
/// `ties` is a `BowstringTies`. On a GPU this synchronises once more than `bowstring_sort_to_indices`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_rank(
    values: *const BowstringArray,
    order: u32,
    ties: i32,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        let ties = match ties {
            0 => Ties::Highest,
            1 => Ties::Lowest,
            2 => Ties::Dense,
            other => return Err(invalid(format!("ties are {other}"))),
        };
        let ranks = compute::rank(&values.array, sort_options(order)?, ties, &stream.0).wait()?;
        give(values.others(ranks), out)
    })
}

/// Numbers the groups of equal rows of `count` columns of one length. `out_ids` receives the group of each
/// row, and `out_firsts` the first row of each group, both as UInt32. Groups are numbered in the order of
/// their first rows. Nulls are equal. On a GPU this synchronises once, and sorts what is inside of lists.
///
/// # Safety
///
/// Handles must be NULL or live, `columns` NULL or as many as `count` says, `out_ids` and `out_firsts` NULL
/// or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_group(
    columns: *const *const BowstringArray,
    count: u64,
    stream: *const BowstringStream,
    out_ids: *mut *mut BowstringArray,
    out_firsts: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let stream = borrow(stream, "stream")?;
        borrow(out_ids, "out_ids")?;
        borrow(out_firsts, "out_firsts")?;
        let columns = handles(columns, count, "columns")?;
        let arrays: Vec<_> = columns.iter().map(|column| column.array.clone()).collect();
        let groups = compute::group(&arrays, &stream.0).wait()?;
        give(columns[0].others(groups.ids().clone()), out_ids)?;
        give(columns[0].others(groups.firsts().clone()), out_firsts)
    })
}

/// Returns the first of equal rows of an array, in their order. Otherwise like `bowstring_group`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_distinct(
    values: *const BowstringArray,
    stream: *const BowstringStream,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (values, stream) = (borrow(values, "values")?, borrow(stream, "stream")?);
        give(values.part(compute::distinct(&values.array, &stream.0).wait()?), out)
    })
}

/// Returns the first of equal rows of a batch, in their order. Otherwise like `bowstring_group`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_distinct_batch(
    batch: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, borrow(stream, "stream")?);
        give(BowstringBatch::new(compute::distinct(&batch.0, &stream.0).wait()?), out)
    })
}

/// Joins two batches by `count` keys of each, which are as long as their batches and need not be their
/// columns. The result has the left columns and then the right ones, or those of one side. Rows come in the
/// order of the right rows, and for each of them in that of the left ones; left rows without a partner
/// follow. `options` may be NULL. On a GPU this synchronises once for the keys, once for the number of pairs,
/// and then as `bowstring_filter` and `bowstring_take` do; more often for a filter, and for keys that are
/// dictionaries, runs or nested.
///
/// # Safety
///
/// Handles and options must be NULL or live, the keys NULL or as many as `count` says, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_join(
    left: *const BowstringBatch,
    right: *const BowstringBatch,
    left_keys: *const *const BowstringArray,
    right_keys: *const *const BowstringArray,
    count: u64,
    options: *const BowstringJoinOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (left, right) = (borrow(left, "left")?, borrow(right, "right")?);
        let stream = borrow(stream, "stream")?;
        let left_keys = keys_of(left_keys, count, "left_keys")?;
        let right_keys = keys_of(right_keys, count, "right_keys")?;
        let on = (&left_keys[..], &right_keys[..]);
        let joined = compute::join(&left.0, &right.0, on, &join_options(options)?, &stream.0).wait()?;
        give(BowstringBatch::new(joined), out)
    })
}

/// Translates the caller's options; NULL means the defaults.
pub(crate) unsafe fn join_options(pointer: *const BowstringJoinOptions) -> Result<JoinOptions> {
    use JoinKind::*;
    // SAFETY: the caller's promise.
    let Some(said) = unsafe { options(pointer) }? else { return Ok(JoinOptions::default()) };
    let kinds = [Inner, Left, Right, Full, LeftSemi, RightSemi, LeftAnti, RightAnti, LeftMark, RightMark];
    let kind = usize::try_from(said.kind).ok().and_then(|kind| kinds.get(kind));
    let kind = *kind.ok_or_else(|| invalid(format!("no kind {} of joins", said.kind)))?;
    // SAFETY: the caller's promise.
    let filter = unsafe { said.filter.as_ref() }.map(|filter| filter.expr.clone());
    let (nulls_equal, null_aware) = (said.nulls_equal != 0, said.null_aware != 0);
    let floats = if said.floats_as_sql != 0 { FloatOrder::Sql } else { FloatOrder::Total };
    let evaluation = Options::new().floats(floats);
    Ok(JoinOptions { kind, nulls_equal, null_aware, filter, evaluation })
}
