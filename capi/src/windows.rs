//! Windows: values that rows have because of their place among others.

use arrow_schema::Field;
use bowstring::compute::{FrameBound, WindowFrame, Windows};
use bowstring::{DeviceArray, Pending, Result};

use crate::array::BowstringArray;
use crate::batch::BowstringBatch;
use crate::compute::options;
use crate::device::BowstringStream;
use crate::expressions::{BowstringAggregate, BowstringExprOptions, aggregations, expr_options};
use crate::relational::sort_columns;
use crate::status::{BowstringStatus, borrow, free, give, guard, handles, invalid};

/// Rows in partitions, each in an order, as SQL's `OVER (PARTITION BY … ORDER BY …)` has them. All results
/// have a value for each row, in the rows' own order.
pub struct BowstringWindows(Windows);

/// One end of a frame.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringBound {
    /// The first or the last row of the partition.
    Unbounded = 0,
    /// The row at a distance.
    Row = 1,
    /// The first or the last of the rows that are equal in the order.
    Peers = 2,
}

/// A window frame: the rows of its partition that an aggregate covers for a row, both ends included.
/// Initialise the struct with zeros, set `size` to its `sizeof`, then set the fields that differ from the
/// default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringFrame {
    /// The size of the caller's struct in bytes, `sizeof(struct BowstringFrame)`.
    pub size: usize,
    /// The kind of the first row, a `BowstringBound`; `BOWSTRING_BOUND_UNBOUNDED`, 0, is the default.
    pub start: i32,
    /// The kind of the last row, a `BowstringBound`; `BOWSTRING_BOUND_UNBOUNDED`, 0, is the default.
    pub end: i32,
    /// The number of rows from the row itself to the first row of its frame, if `start` is
    /// `BOWSTRING_BOUND_ROW`: negative before it.
    pub start_by: i64,
    /// The number of rows from the row itself to the last row of its frame, if `end` is
    /// `BOWSTRING_BOUND_ROW`.
    pub end_by: i64,
}

fn bound(kind: i32, by: i64) -> Result<FrameBound> {
    Ok(match kind {
        0 => FrameBound::Unbounded,
        1 => FrameBound::Row(by),
        2 => FrameBound::Peers,
        other => return Err(invalid(format!("no bound {other} of frames"))),
    })
}

/// Gives out an array without a name.
unsafe fn give_nameless(made: Pending<DeviceArray>, out: *mut *mut BowstringArray) -> Result<()> {
    let array = made.wait()?;
    let field = Field::new("", array.data_type().clone(), true);
    // SAFETY: the caller's promise.
    unsafe { give(BowstringArray { array, field }, out) }
}

/// Partitions `rows` rows by `partition_count` columns, and orders the rows of each partition by
/// `order_count` others; `orders` has an order for each of these, as for `bowstring_sort_to_indices`. Without
/// columns to partition by, all rows are one partition; without an order, rows stay in their own. All columns
/// have `rows` rows. On a GPU this synchronises as `bowstring_group` and `bowstring_lexsort_to_indices` do.
///
/// # Safety
///
/// Handles must be NULL or live, the columns and `orders` NULL or as many as the counts say, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_new(
    partition_by: *const *const BowstringArray,
    partition_count: u64,
    order_by: *const *const BowstringArray,
    orders: *const u32,
    order_count: u64,
    rows: u64,
    stream: *const BowstringStream,
    out: *mut *mut BowstringWindows,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let stream = borrow(stream, "stream")?;
        let parts = handles(partition_by, partition_count, "partition_by")?;
        let parts: Vec<DeviceArray> = parts.into_iter().map(|part| part.array.clone()).collect();
        let order = sort_columns(order_by, orders, order_count)?;
        let rows = usize::try_from(rows).map_err(|_| invalid(format!("{rows} rows")))?;
        give(BowstringWindows(Windows::new(&parts, &order, rows, &stream.0).wait()?), out)
    })
}

/// Frees windows. Results stay valid. NULL is ignored.
///
/// # Safety
///
/// `windows` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_free(windows: *mut BowstringWindows) {
    // SAFETY: the caller's promise.
    unsafe { free(windows) }
}

/// Returns the number of each row in its partition, from 1 on, as UInt64.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_row_number(
    windows: *const BowstringWindows,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { give_nameless(borrow(windows, "windows")?.0.row_number(), out) })
}

/// Returns SQL's `RANK()`, as UInt64: one more than the number of rows that come before the row's first peer.
/// On a GPU this synchronises once.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_rank(
    windows: *const BowstringWindows,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { give_nameless(borrow(windows, "windows")?.0.rank(), out) })
}

/// Returns SQL's `DENSE_RANK()`, as UInt64: one more than the number of distinct order keys before the row's.
/// On a GPU this synchronises twice.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_dense_rank(
    windows: *const BowstringWindows,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { give_nameless(borrow(windows, "windows")?.0.dense_rank(), out) })
}

/// Returns the values of the row that is `by` rows before each row in its partition, or null if there is
/// none. Negative numbers look ahead, as SQL's `LEAD` does. Synchronises as `bowstring_take` does.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_lag(
    windows: *const BowstringWindows,
    values: *const BowstringArray,
    by: i64,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (windows, values) = (borrow(windows, "windows")?, borrow(values, "values")?);
        give(values.with(windows.0.lag(&values.array, by).wait()?), out)
    })
}

/// Returns the values of the row with a number, from 1 on, in each row's partition, or null if there is none.
/// Synchronises as `bowstring_take` does.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_nth_value(
    windows: *const BowstringWindows,
    values: *const BowstringArray,
    number: u64,
    out: *mut *mut BowstringArray,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (windows, values) = (borrow(windows, "windows")?, borrow(values, "values")?);
        give(values.with(windows.0.nth_value(&values.array, number).wait()?), out)
    })
}

/// Aggregates the rows of each partition, or with a `frame` those around each row, and returns a batch with
/// as many rows as `batch`. Frames have sums, means, counts, least and greatest values, first and last ones,
/// and whether any or all Booleans are true; another aggregate with a frame is `BOWSTRING_STATUS_INVALID`.
/// `frame` and `options` may be NULL. Synchronises as `bowstring_group_by` does; frames do so only for text
/// and for peers.
///
/// # Safety
///
/// Handles, `frame` and options must be NULL or live, `aggregates` NULL or an array of `count` items whose
/// handles and names are NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_windows_aggregate(
    windows: *const BowstringWindows,
    batch: *const BowstringBatch,
    aggregates: *const BowstringAggregate,
    count: u64,
    frame: *const BowstringFrame,
    options: *const BowstringExprOptions,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (windows, batch) = (&borrow(windows, "windows")?.0, &borrow(batch, "batch")?.0);
        let (all, options) = (aggregations(aggregates, count)?, expr_options(options)?);
        let made = match frame_of(frame)? {
            None => windows.aggregate(batch, all, &options),
            Some(frame) => windows.aggregate_frames(batch, frame, all, &options),
        };
        give(BowstringBatch::new(made.wait()?), out)
    })
}

/// Translates the caller's frame; NULL means the whole partition.
unsafe fn frame_of(pointer: *const BowstringFrame) -> Result<Option<WindowFrame>> {
    // SAFETY: the caller's promise.
    let Some(said) = (unsafe { options(pointer) })? else { return Ok(None) };
    let (start, end) = (bound(said.start, said.start_by)?, bound(said.end, said.end_by)?);
    Ok(Some(WindowFrame { start, end }))
}
