//! What expressions come to: the operations that take some.

use std::ffi::c_char;

use bowstring::Result;
use bowstring::compute::{Aggregates, Predicate, Projection, batches};
use bowstring::expr::{self, Aggregation, Expr, FloatOrder, Options, Overflow};

use crate::batch::BowstringBatch;
use crate::compute::options;
use crate::device::BowstringStream;
use crate::expr::{BowstringExpr, text};
use crate::status::{BowstringStatus, borrow, give, guard, invalid};
use crate::stream::BowstringBatches;

/// How to compute. Zero-initialise it, set `size` to `sizeof`, then what differs from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringExprOptions {
    /// `sizeof(struct BowstringExprOptions)`.
    pub size: usize,
    /// Of an integer that does not fit its type: 0: `BOWSTRING_STATUS_EVALUATION` (the default); 1: what remains of it in the type's
    /// bits; 2: a null. Decimals are an error, but for 2.
    pub overflow: i32,
    /// 0: a division by zero is `BOWSTRING_STATUS_EVALUATION` (the default); 1: it is a null. Floats always have a result.
    pub division_by_zero_is_null: i32,
    /// 0: floats are compared by their total order (the default); 1: as in SQL: zeros are equal, and so are NaNs, which are greatest.
    pub floats_as_sql: i32,
}

/// How rows become one.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringFunction {
    /// How many rows there are: of no expression.
    CountAll = 0,
    /// How many are not null.
    Count = 1,
    /// The sum of what is not null; null of nothing, as all below.
    Sum = 2,
    /// The least.
    Min = 3,
    /// The greatest.
    Max = 4,
    /// The mean.
    Mean = 5,
    /// Whether all are true.
    BoolAnd = 6,
    /// Whether any is true.
    BoolOr = 7,
}

/// An aggregate.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringAggregate {
    /// A `BowstringFunction`.
    pub function: i32,
    /// What it is of; NULL, and not looked at, for `BOWSTRING_FUNCTION_COUNT_ALL`.
    pub of: *const BowstringExpr,
    /// The name of the result's column; NULL for the function and expression as they are written.
    pub name: *const c_char,
}

/// What the caller's options mean.
unsafe fn expr_options(pointer: *const BowstringExprOptions) -> Result<Options> {
    // SAFETY: the caller's promise.
    let Some(options) = (unsafe { options(pointer) })? else { return Ok(Options::default()) };
    let overflow = match options.overflow {
        0 => Overflow::Error,
        1 => Overflow::Wrap,
        2 => Overflow::Null,
        other => return Err(invalid(format!("overflow is {other}"))),
    };
    let floats = if options.floats_as_sql != 0 { FloatOrder::Sql } else { FloatOrder::Total };
    let is_null = options.division_by_zero_is_null != 0;
    Ok(Options::new().overflow(overflow).division_by_zero_is_null(is_null).floats(floats))
}

/// So many items of the caller's.
unsafe fn items<'a, T>(first: *const T, count: u64, argument: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    // SAFETY: the caller's promise.
    let first = unsafe { borrow(first, argument) }?;
    let count = usize::try_from(count).ok().filter(|count| *count <= isize::MAX as usize / size_of::<T>());
    let count = count.ok_or_else(|| invalid(format!("{argument}: too many")))?;
    // SAFETY: the caller's promise: there are so many, and no allocation is larger than this.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// So many expressions.
unsafe fn all(exprs: *const *const BowstringExpr, count: u64) -> Result<Vec<Expr>> {
    // SAFETY: the caller's promise.
    let each = |one: &*const BowstringExpr| unsafe { borrow(*one, "exprs") }.map(|one| one.expr.clone());
    // SAFETY: the caller's promise.
    unsafe { items(exprs, count, "exprs") }?.iter().map(each).collect()
}

type Function = fn(Expr) -> Aggregation;

unsafe fn aggregation(one: &BowstringAggregate) -> Result<Aggregation> {
    use BowstringFunction::*;
    let made: &[(BowstringFunction, Function)] = &[
        (Count, expr::count),
        (Sum, expr::sum),
        (Min, expr::min),
        (Max, expr::max),
        (Mean, expr::mean),
        (BoolAnd, expr::bool_and),
        (BoolOr, expr::bool_or),
    ];
    let made = if one.function == CountAll as i32 {
        expr::count_all()
    } else {
        let found = made.iter().find(|(known, _)| *known as i32 == one.function);
        let (_, make) = found.ok_or_else(|| invalid(format!("no function {}", one.function)))?;
        // SAFETY: the caller's promise.
        make(unsafe { borrow(one.of, "aggregates.of") }?.expr.clone())
    };
    if one.name.is_null() {
        return Ok(made);
    }
    // SAFETY: the caller's promise.
    Ok(made.alias(unsafe { text(one.name, "aggregates.name") }?))
}

/// So many aggregates.
unsafe fn aggregations(first: *const BowstringAggregate, count: u64) -> Result<Vec<Aggregation>> {
    // SAFETY: the caller's promise.
    unsafe { items(first, count, "aggregates")?.iter().map(|one| aggregation(one)).collect() }
}

/// The rows of a batch where `predicate` is true; null is not. `options` may be NULL. On a GPU this synchronises once, as every
/// filter. A row that overflows or divides by zero is `BOWSTRING_STATUS_EVALUATION`.
///
/// # Safety
///
/// Handles and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_filter_where(
    batch: *const BowstringBatch,
    predicate: *const BowstringExpr,
    options: *const BowstringExprOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, predicate) = (borrow(batch, "batch")?, borrow(predicate, "predicate")?);
        let stream = &borrow(stream, "stream")?.0;
        let bound = Predicate::bind(&predicate.expr, batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.filter(&batch.0, stream).wait()?), out)
    })
}

/// A batch of what `count` expressions come to for each row: a column each, named by `bowstring_expr_alias` or as written. `options`
/// may be NULL. Synchronises only where a cast in them does. On a GPU a row that overflows or divides by zero is the failure of
/// whoever first waits for a column.
///
/// # Safety
///
/// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_evaluate(
    batch: *const BowstringBatch,
    exprs: *const *const BowstringExpr,
    count: u64,
    options: *const BowstringExprOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (batch, stream) = (borrow(batch, "batch")?, &borrow(stream, "stream")?.0);
        let bound = Projection::bind(&all(exprs, count)?, batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.evaluate(&batch.0, stream).wait()?), out)
    })
}

/// One row, in host memory, of what the rows of a batch come to: a column for each of `count` aggregates, of the rows where `condition`
/// is true, or of all where it is NULL. `options` may be NULL. On a GPU this synchronises once.
///
/// # Safety
///
/// Handles and options must be NULL or live, `aggregates` NULL or point to `count` of them, whose handles and names are, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_aggregate(
    batch: *const BowstringBatch,
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
        let aggregates = aggregations(aggregates, count)?;
        let condition = condition.as_ref().map(|condition| &condition.expr);
        let bound = Aggregates::bind(&aggregates, condition, batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.aggregate(&batch.0, stream).wait()?), out)
    })
}

/// Each batch with the rows where `predicate` is true, as by `bowstring_filter_where`. `batches` are taken: their handle is left empty,
/// and still to be freed; on failure they stay as they were. What is wrong with the predicate is known now. Nothing is read now: when a
/// batch is asked for, one is filtered on `stream`; on a GPU up to two more are begun.
///
/// # Safety
///
/// Handles and options must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_filter_where(
    batches: *const BowstringBatches,
    predicate: *const BowstringExpr,
    options: *const BowstringExprOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (source, predicate) = (borrow(batches, "batches")?, borrow(predicate, "predicate")?);
        let (stream, options) = (&borrow(stream, "stream")?.0, expr_options(options)?);
        borrow(out, "out")?;
        let bound = source.with(|source| Predicate::bind(&predicate.expr, source.schema(), &options))?;
        give(BowstringBatches::new(batches::filter_batches_where(source.take()?, bound, stream)), out)
    })
}

/// For each batch one of what `count` expressions come to, as by `bowstring_evaluate`; otherwise as `bowstring_batches_filter_where`.
///
/// # Safety
///
/// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_evaluate(
    batches: *const BowstringBatches,
    exprs: *const *const BowstringExpr,
    count: u64,
    options: *const BowstringExprOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatches,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (source, stream) = (borrow(batches, "batches")?, &borrow(stream, "stream")?.0);
        let (exprs, options) = (all(exprs, count)?, expr_options(options)?);
        borrow(out, "out")?;
        let bound = source.with(|source| Projection::bind(&exprs, source.schema(), &options))?;
        give(BowstringBatches::new(batches::evaluate_batches(source.take()?, bound, stream)), out)
    })
}

/// One row, in host memory, of what the rows of all batches come to, as by `bowstring_aggregate`. `batches` are taken, and read to their
/// end, now; a row that fails is one of its batch.
///
/// # Safety
///
/// Handles and options must be NULL or live, `aggregates` NULL or point to `count` of them, whose handles and names are, `out` NULL or
/// writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_batches_aggregate(
    batches: *const BowstringBatches,
    aggregates: *const BowstringAggregate,
    count: u64,
    condition: *const BowstringExpr,
    options: *const BowstringExprOptions,
    stream: *const BowstringStream,
    out: *mut *mut BowstringBatch,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let (source, stream) = (borrow(batches, "batches")?, &borrow(stream, "stream")?.0);
        let (aggregates, options) = (aggregations(aggregates, count)?, expr_options(options)?);
        let condition = condition.as_ref().map(|condition| &condition.expr);
        borrow(out, "out")?;
        let bound =
            source.with(|source| Aggregates::bind(&aggregates, condition, source.schema(), &options))?;
        give(BowstringBatch::new(batches::aggregate_batches(source.take()?, &bound, stream)?), out)
    })
}
