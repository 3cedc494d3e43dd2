//! Joins whose left side is prepared once, for right rows that arrive batch by batch.

use std::ptr::null_mut;

use bowstring::DeviceBatch;
use bowstring::compute::{PreparedJoin, Visited};
use bowstring::exchange::Turns;

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::device::BowstringStream;
use crate::join_table::keys_of;
use crate::relational::{BowstringJoinOptions, join_options};
use crate::status::{BowstringStatus, borrow, free, give, guard, put};

/// A join whose left side is prepared: right rows are joined batch by batch.
pub struct BowstringPreparedJoin {
    join: PreparedJoin,
    /// The left rows that right batches have found.
    visited: Turns<Visited>,
}

/// Hands out a batch, or NULL if there is none.
unsafe fn give_if_any(batch: Option<DeviceBatch>, out: *mut *mut BowstringBatch) -> bowstring::Result<()> {
    match batch {
        // SAFETY: the caller's promise.
        Some(batch) => unsafe { give(BowstringBatch::new(batch), out) },
        // SAFETY: the caller's promise.
        None => unsafe { put(null_mut(), out) },
    }
}

/// Prepares a join of the rows of `left`, by `count` keys that are as long as the batch, with right rows that
/// `bowstring_prepared_join_probe` takes. `options` may be NULL. On a GPU this synchronises once, and sorts
/// nested keys.
///
/// # Safety
///
/// Handles and options must be NULL or live, `left_keys` NULL or as many as `count` says, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_prepared_join_new(
    left: *const BowstringBatch,
    left_keys: *const *const BowstringArray,
    count: u64,
    options: *const BowstringJoinOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringPreparedJoin,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (left, stream) = (borrow(left, "left")?, &borrow(stream, "stream")?.0);
        let (keys, options) = (keys_of(left_keys, count, "left_keys")?, join_options(options)?);
        let join = PreparedJoin::new(&left.0, &keys, &options, stream).wait()?;
        give(BowstringPreparedJoin { join, visited: Turns::new(Visited::default()) }, out)
    })
}

/// Frees a prepared join. Results stay valid. NULL is ignored.
///
/// # Safety
///
/// `join` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_prepared_join_free(join: *mut BowstringPreparedJoin) {
    // SAFETY: the caller's promise.
    unsafe { free(join) }
}

/// Joins a batch of right rows, by `count` keys, and returns the rows that are known already, in the order of
/// `bowstring_join`; NULL if the kind returns left rows only. Several threads may do so at once. After a
/// failure it is as if the batch had not been there. On a GPU this synchronises like `bowstring_join`, less
/// once for the keys of the left rows.
///
/// # Safety
///
/// Handles must be NULL or live, `right_keys` NULL or as many as `count` says, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_prepared_join_probe(
    join: *const BowstringPreparedJoin,
    right: *const BowstringBatch,
    right_keys: *const *const BowstringArray,
    count: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (join, right) = (borrow(join, "join")?, borrow(right, "right")?);
        let stream = &borrow(stream, "stream")?.0;
        borrow(out, "out")?;
        let probed = join.join.probe(&right.0, &keys_of(right_keys, count, "right_keys")?, stream).wait()?;
        join.visited.with(|visited| {
            *visited = visited.and(&probed.visited, stream).wait()?;
            Ok(())
        })?;
        give_if_any(probed.rows, out)
    })
}

/// Returns the left rows that are known when all right batches have been joined; NULL if the kind returns no
/// such rows. `right` is any batch with the columns of the right side: its rows do not matter. On a GPU this
/// synchronises once.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_prepared_join_rest(
    join: *const BowstringPreparedJoin,
    right: *const BowstringBatch,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (join, right) = (borrow(join, "join")?, borrow(right, "right")?);
        let stream = &borrow(stream, "stream")?.0;
        borrow(out, "out")?;
        let visited = join.visited.with(|visited| Ok(visited.clone()))?;
        give_if_any(join.join.rest(&visited, right.0.schema(), stream).wait()?, out)
    })
}
