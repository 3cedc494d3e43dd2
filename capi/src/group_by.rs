//! Groups of rows, by keys and by sets of them.

use bowstring::Result;
use bowstring::compute::Query;

use crate::batch::BowstringBatch;
use crate::compute::options;
use crate::device::BowstringStream;
use crate::expr::BowstringExpr;
use crate::expressions::{
    BowstringAggregate, BowstringExprOptions, aggregations, all, expr_options, rows_where,
};
use crate::status::{BowstringStatus, borrow, give, guard, items};

/// Groups the rows of a batch by `key_count` expressions, and aggregates each group: the result has a row
/// for each group, in the order of their first rows, with the keys and then the `count` aggregates. Only
/// rows for which `condition` is true count; NULL means all rows. `options` may be NULL. If they have sets
/// of keys, the result has the groups of the first set, then those of the next: a key that is not in a
/// row's set is null there, and a column `grouping_id`, UInt64, follows the keys, with a bit for each key,
/// the lowest for the last one, that is set if the key is not in the set. The result is where the batch is.
/// On a GPU this synchronises once, and as `bowstring_take` does for the keys; more often for extremes that
/// are no numbers, distinct counts and quantiles. A sum that does not fit its type is reported by the first
/// call that waits for its column.
///
/// # Safety
///
/// Handles and options must be NULL or live, `keys` NULL or point to `key_count` of them, `aggregates` NULL
/// or an array of `count` items whose handles and names are NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_group_by(
    batch: *const BowstringBatch,
    keys: *const *const BowstringExpr,
    key_count: u64,
    aggregates: *const BowstringAggregate,
    count: u64,
    condition: *const BowstringExpr,
    options: *const BowstringExprOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, &borrow(stream, "stream")?.0);
        let query = grouping(keys, key_count, aggregates, count, condition, options)?;
        let bound = query.bind(batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.run(&batch.0, stream).wait()?), out)
    })
}

/// Returns the query of groups that a caller describes.
pub(crate) unsafe fn grouping(
    keys: *const *const BowstringExpr,
    key_count: u64,
    aggregates: *const BowstringAggregate,
    count: u64,
    condition: *const BowstringExpr,
    options: *const BowstringExprOptions,
) -> Result<Query> {
    // SAFETY: the caller's promise.
    let (query, aggregations, sets) = unsafe {
        let query = rows_where(condition).group_by(&all(keys, key_count)?);
        (query, aggregations(aggregates, count)?, key_sets(options)?)
    };
    let query = sets.into_iter().fold(query, Query::grouping_sets);
    Ok(query.aggregate(&aggregations))
}

/// Returns the sets of keys that options have; `None` if they have none.
unsafe fn key_sets(pointer: *const BowstringExprOptions) -> Result<Option<Vec<Vec<usize>>>> {
    // SAFETY: the caller's promise.
    let Some(options) = (unsafe { options(pointer) })?.filter(|options| !options.key_sets.is_null()) else {
        return Ok(None);
    };
    // SAFETY: the caller's promise.
    let sets = unsafe { items(options.key_sets, options.key_set_count, "key_sets") }?;
    let keys = |set: &u64| (0..64).filter(|key| set >> key & 1 == 1).collect();
    Ok(Some(sets.iter().map(keys).collect()))
}
