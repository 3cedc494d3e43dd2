//! Sorts, groups and joins of streams of batches.

use bowstring::compute::{Query, SortOptions, batches};
use bowstring::{Result, array::Batches};

use crate::device::BowstringStream;
use crate::expr::BowstringExpr;
use crate::expressions::{BowstringAggregate, BowstringExprOptions, expr_options};
use crate::group_by::grouping;
use crate::relational::{BowstringJoinOptions, join_options, limit_of, sort_options};
use crate::status::{BowstringStatus, borrow, give, guard, invalid, items};
use crate::stream::BowstringBatches;

/// The bytes of rows that may stay on the device; `None` if all may.
fn memory_of(memory: u64) -> Option<usize> {
    (memory > 0).then(|| usize::try_from(memory).unwrap_or(usize::MAX))
}

/// The numbers of columns, of which there are so many.
unsafe fn numbers(columns: *const u64, count: u64, name: &'static str, fields: usize) -> Result<Vec<usize>> {
    // SAFETY: the caller's promise.
    let numbers = unsafe { items(columns, count, name) }?;
    let number = |number: &u64| usize::try_from(*number).ok().filter(|number| *number < fields);
    let checked = numbers.iter().map(|column| {
        number(column).ok_or_else(|| invalid(format!("column {column} of {fields} in {name}")))
    });
    checked.collect()
}

fn fields_of(source: &BowstringBatches) -> Result<usize> {
    source.with(|source| Ok(source.schema().fields().len()))
}

/// Sorts the rows of all batches by `count` columns, whose numbers count from 0: the first `limit` rows in
/// order. `orders` has an order for each, as for `bowstring_sort_to_indices`. If the rows take more than
/// `memory` bytes, sorted runs of them wait in host memory, and the result comes in several batches; 0 means
/// no bound.
/// This takes `batches`: the handle is left empty, and the caller must still free it. On failure it is
/// unchanged. This call reads nothing: all batches are read when the first one of the result is requested.
///
/// # Safety
///
/// Handles must be NULL or live, `columns` and `orders` NULL or as many as `count` says, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_sort(
    batches: *const BowstringBatches,
    columns: *const u64,
    orders: *const u32,
    count: u64,
    limit: u64,
    memory: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (source, stream) = (borrow(batches, "batches")?, &borrow(stream, "stream")?.0);
        borrow(out, "out")?;
        let columns = numbers(columns, count, "columns", fields_of(source)?)?;
        if columns.is_empty() {
            return Err(invalid("no columns to sort by"));
        }
        let orders = items(orders, count, "orders")?.iter().map(|order| sort_options(*order));
        let orders = orders.collect::<Result<Vec<SortOptions>>>()?;
        let by: Vec<_> = columns.into_iter().zip(orders).collect();
        let sorted = batches::sort_batches(source.take()?, &by, limit_of(limit), memory_of(memory), stream);
        give(BowstringBatches::new(sorted), out)
    })
}

/// Groups the rows of all batches and aggregates each group, as `bowstring_group_by` does for a batch. If the
/// groups take more than `memory` bytes, they wait in host memory, and the result comes in several batches,
/// in each of which groups are in the order of their first rows; 0 means no bound. Each set of keys has
/// batches of its own. Otherwise like
/// `bowstring_batches_sort`.
///
/// # Safety
///
/// Handles and options must be NULL or live, `keys` NULL or point to `key_count` of them, `aggregates` NULL
/// or an array of `count` items whose handles and names are NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_group_by(
    batches: *const BowstringBatches,
    keys: *const *const BowstringExpr,
    key_count: u64,
    aggregates: *const BowstringAggregate,
    count: u64,
    condition: *const BowstringExpr,
    options: *const BowstringExprOptions,
    memory: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (source, stream) = (borrow(batches, "batches")?, &borrow(stream, "stream")?.0);
        borrow(out, "out")?;
        let query = grouping(keys, key_count, aggregates, count, condition, options)?;
        let query = memory_of(memory).into_iter().fold(query, Query::group_limit);
        let bound = source.with(|source| query.bind(source.schema(), &expr_options(options)?))?;
        give(BowstringBatches::new(bound.run_batches(source.take()?, stream)), out)
    })
}

/// Joins the rows of two streams by `count` columns of each, whose numbers count from 0. The left stream is
/// read first, and its rows are prepared once; the right one is joined batch by batch. See `bowstring_join`
/// for the rows of the result. If the left rows take more than `memory` bytes, both sides wait in host
/// memory, in parts by a hash of their keys, and rows come in the order of the parts; 0 means no bound.
/// `options` may be NULL. This takes `left` and `right`, which must not be the same. Otherwise like
/// `bowstring_batches_sort`.
///
/// # Safety
///
/// Handles and options must be NULL or live, the columns NULL or as many as `count` says, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_join(
    left: *const BowstringBatches,
    right: *const BowstringBatches,
    left_columns: *const u64,
    right_columns: *const u64,
    count: u64,
    options: *const BowstringJoinOptions,
    memory: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (left, right) = (borrow(left, "left")?, borrow(right, "right")?);
        let (stream, options) = (&borrow(stream, "stream")?.0, join_options(options)?);
        borrow(out, "out")?;
        if std::ptr::eq(left, right) {
            return Err(invalid("left and right are the same stream"));
        }
        let left_columns = numbers(left_columns, count, "left_columns", fields_of(left)?)?;
        let right_columns = numbers(right_columns, count, "right_columns", fields_of(right)?)?;
        let on: [&[usize]; 2] = [&left_columns, &right_columns];
        // The options are checked before the streams are taken.
        let place = stream.device().place();
        let without_rows = |side: &BowstringBatches| {
            side.with(|side| Ok(Batches::new(side.schema().clone(), place, std::iter::empty())))
        };
        let none = [without_rows(left)?, without_rows(right)?];
        batches::join_batches(none, on, &options, None, stream)?;
        let sides = [left.take()?, right.take()?];
        let joined = batches::join_batches(sides, on, &options, memory_of(memory), stream)?;
        give(BowstringBatches::new(joined), out)
    })
}
