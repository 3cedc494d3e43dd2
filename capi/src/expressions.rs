//! The operations that evaluate expressions: filters, projections and aggregates.

use std::ffi::c_char;

use bowstring::Result;
use bowstring::compute::Query;
use bowstring::expr::{self, Aggregation, Expr, FloatOrder, Options, Overflow};

use crate::batch::BowstringBatch;
use crate::compute::options;
use crate::device::BowstringStream;
use crate::expr::BowstringExpr;
use crate::status::{BowstringStatus, borrow, give, guard, handles, invalid, items, text};
use crate::stream::BowstringBatches;

/// Options for evaluating expressions. Initialise the struct with zeros, set `size` to its `sizeof`, then set
/// the fields that differ from the default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringExprOptions {
    /// The size of the caller's struct in bytes, `sizeof(struct BowstringExprOptions)`.
    pub size: usize,
    /// An integer result that does not fit its type: 0 (the default) fails with
    /// `BOWSTRING_STATUS_EVALUATION`; 1 keeps the low bits; 2 gives null. A decimal that does not fit fails
    /// for 0 and 1, and gives null for 2.
    pub overflow: i32,
    /// 0 (the default): a division by zero fails with `BOWSTRING_STATUS_EVALUATION`. 1: it gives null. A
    /// division of floats always has a result.
    pub division_by_zero_is_null: i32,
    /// 0 (the default): floats are compared by their total order. 1: they are compared as in SQL, where both
    /// zeros are equal, all NaNs are equal, and NaN is greatest.
    pub floats_as_sql: i32,
    /// For functions that group: sets of keys to group by. Each is a word whose bit `i` is set if key `i` is
    /// in the set. NULL (the default) for one set of all keys.
    pub key_sets: *const u64,
    /// The number of sets; 0 (the default) with NULL.
    pub key_set_count: u64,
}

/// A function that aggregates many rows into one value.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringFunction {
    /// The number of rows. It takes no expression.
    CountAll = 0,
    /// The number of values that are not null.
    Count = 1,
    /// The sum of the values that are not null; null if all are. The functions below skip nulls in the same
    /// way.
    Sum = 2,
    /// The minimum of the values, of any type that can be sorted.
    Min = 3,
    /// The maximum of the values, of any type that can be sorted.
    Max = 4,
    /// The mean of the values.
    Mean = 5,
    /// Whether all values are true.
    BoolAnd = 6,
    /// Whether any value is true.
    BoolOr = 7,
    /// The bits that are set in all integers.
    BitAnd = 8,
    /// The bits that are set in any integer.
    BitOr = 9,
    /// The bits that are set in an odd number of integers.
    BitXor = 10,
    /// The first of the values.
    First = 11,
    /// The last of the values.
    Last = 12,
    /// The value of the first row, which may be null.
    FirstValue = 13,
    /// The value of the last row, which may be null.
    LastValue = 14,
    /// The variance of the numbers: the sum of their squared distances to their mean, divided by their number
    /// less `parameter`, which is 0 for a population and 1 for a sample.
    Variance = 15,
    /// The square root of the variance.
    Stddev = 16,
    /// The number of different values.
    CountDistinct = 17,
    /// The median of the numbers.
    Median = 18,
    /// The number below which a part of the numbers lies, which is `parameter`, from 0 to 1.
    Quantile = 19,
    /// The list of the values, nulls included.
    ArrayAgg = 20,
}

/// An aggregate: a function, its argument, and the name of its column.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BowstringAggregate {
    /// The function, a `BowstringFunction`.
    pub function: i32,
    /// The function's argument. It is ignored for `BOWSTRING_FUNCTION_COUNT_ALL` and may then be NULL.
    pub of: *const BowstringExpr,
    /// Only rows for which this is true count; NULL means all rows.
    pub filter: *const BowstringExpr,
    /// A number that some functions need, and the others ignore.
    pub parameter: f64,
    /// The name of the result's column, in UTF-8. NULL names the column after the function and its
    /// expression.
    pub name: *const c_char,
}

/// Translates the caller's options; NULL means the defaults.
pub(crate) unsafe fn expr_options(pointer: *const BowstringExprOptions) -> Result<Options> {
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

/// The expressions behind `count` handles.
pub(crate) unsafe fn all(exprs: *const *const BowstringExpr, count: u64) -> Result<Vec<Expr>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { handles(exprs, count, "exprs") }?.into_iter().map(|one| one.expr.clone()).collect())
}

/// A function of an expression and a parameter.
type Function = fn(Expr, f64) -> Result<Aggregation>;

/// The parameter as a number of degrees of freedom.
fn ddof(parameter: f64) -> Result<u32> {
    let whole = parameter as u32;
    if f64::from(whole) == parameter { Ok(whole) } else { Err(invalid(format!("parameter is {parameter}"))) }
}

unsafe fn aggregation(one: &BowstringAggregate) -> Result<Aggregation> {
    use BowstringFunction::*;
    let made: &[(BowstringFunction, Function)] = &[
        (Count, |of, _| Ok(expr::count(of))),
        (Sum, |of, _| Ok(expr::sum(of))),
        (Min, |of, _| Ok(expr::min(of))),
        (Max, |of, _| Ok(expr::max(of))),
        (Mean, |of, _| Ok(expr::mean(of))),
        (BoolAnd, |of, _| Ok(expr::bool_and(of))),
        (BoolOr, |of, _| Ok(expr::bool_or(of))),
        (BitAnd, |of, _| Ok(expr::bit_and(of))),
        (BitOr, |of, _| Ok(expr::bit_or(of))),
        (BitXor, |of, _| Ok(expr::bit_xor(of))),
        (First, |of, _| Ok(expr::first(of))),
        (Last, |of, _| Ok(expr::last(of))),
        (FirstValue, |of, _| Ok(expr::first_value(of))),
        (LastValue, |of, _| Ok(expr::last_value(of))),
        (Variance, |of, parameter| Ok(expr::variance(of, ddof(parameter)?))),
        (Stddev, |of, parameter| Ok(expr::stddev(of, ddof(parameter)?))),
        (CountDistinct, |of, _| Ok(expr::count_distinct(of))),
        (Median, |of, _| Ok(expr::median(of))),
        (Quantile, |of, parameter| Ok(expr::quantile(of, parameter))),
        (ArrayAgg, |of, _| Ok(expr::array_agg(of))),
    ];
    let made = if one.function == CountAll as i32 {
        expr::count_all()
    } else {
        let found = made.iter().find(|(known, _)| *known as i32 == one.function);
        let (_, make) = found.ok_or_else(|| invalid(format!("no function {}", one.function)))?;
        // SAFETY: the caller's promise.
        make(unsafe { borrow(one.of, "aggregates.of") }?.expr.clone(), one.parameter)?
    };
    // SAFETY: the caller's promise.
    let made = match unsafe { one.filter.as_ref() } {
        Some(filter) => made.filter(&filter.expr),
        None => made,
    };
    if one.name.is_null() {
        return Ok(made);
    }
    // SAFETY: the caller's promise.
    Ok(made.alias(unsafe { text(one.name, "aggregates.name") }?))
}

/// Translates the caller's array of `count` aggregates.
pub(crate) unsafe fn aggregations(first: *const BowstringAggregate, count: u64) -> Result<Vec<Aggregation>> {
    // SAFETY: the caller's promise.
    unsafe { items(first, count, "aggregates")?.iter().map(|one| aggregation(one)).collect() }
}

/// Returns the rows of a batch for which `predicate` is true. A null drops the row. `options` may be NULL. On
/// a GPU this synchronises once, like every filter. A row that overflows or divides by zero is
/// `BOWSTRING_STATUS_EVALUATION`.
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
        let bound = Query::new().filter(&predicate.expr).bind(batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.run(&batch.0, stream).wait()?), out)
    })
}

/// Evaluates `count` expressions for each row of a batch. The result has a column for each expression, named
/// by `bowstring_expr_alias`, or after the expression's text. `options` may be NULL. Does not synchronise for
/// numbers, dates and Booleans. Casts, tests of dictionaries and views, and results that are text (substring;
/// if_else, coalesce and nullif of text) may. On a GPU a row that overflows or divides by zero is reported by
/// the first call that waits for a column.
///
/// # Safety
///
/// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or
/// writable.
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
        let bound =
            Query::new().select(&all(exprs, count)?).bind(batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.run(&batch.0, stream).wait()?), out)
    })
}

/// Aggregates the rows of a batch into one row in host memory, with a column for each of `count` aggregates.
/// Only rows for which `condition` is true count; NULL means all rows. `options` may be NULL. On a GPU this
/// synchronises once.
///
/// # Safety
///
/// Handles and options must be NULL or live, `aggregates` NULL or an array of `count` items
/// whose handles and names are NULL or live, `out` NULL or writable.
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
        let query = rows_where(condition).aggregate(&aggregations(aggregates, count)?);
        let bound = query.bind(batch.0.schema(), &expr_options(options)?)?;
        give(BowstringBatch::new(bound.run(&batch.0, stream).wait()?), out)
    })
}

/// Returns a query of the rows for which a condition is true; NULL means all rows.
pub(crate) unsafe fn rows_where(condition: *const BowstringExpr) -> Query {
    // SAFETY: the caller's promise.
    let condition = unsafe { condition.as_ref() };
    condition.into_iter().fold(Query::new(), |query, condition| query.filter(&condition.expr))
}

/// Filters each batch by `predicate`, as `bowstring_filter_where` does. This takes `batches`: the handle is
/// left empty, and the caller must still free it. On failure it is unchanged. Errors in the predicate are
/// reported by this call, which reads no batch. When a batch is requested, one is filtered on `stream`; on a
/// GPU up to two more are begun.
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
        let bound =
            source.with(|source| Query::new().filter(&predicate.expr).bind(source.schema(), &options))?;
        give(BowstringBatches::new(bound.run_batches(source.take()?, stream)), out)
    })
}

/// Evaluates `count` expressions for each batch, as `bowstring_evaluate` does; otherwise like
/// `bowstring_batches_filter_where`.
///
/// # Safety
///
/// Handles and options must be NULL or live, `exprs` NULL or point to `count` of them, `out` NULL or
/// writable.
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
        let bound = source.with(|source| Query::new().select(&exprs).bind(source.schema(), &options))?;
        give(BowstringBatches::new(bound.run_batches(source.take()?, stream)), out)
    })
}

/// Aggregates the rows of all batches into one row in host memory, as `bowstring_aggregate` does. This takes
/// `batches` and reads them to their end before it returns. The row number in an error counts from the start
/// of its batch.
///
/// # Safety
///
/// Handles and options must be NULL or live, `aggregates` NULL or an array of `count` items
/// whose handles and names are NULL or live, `out` NULL or writable.
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
        let query = rows_where(condition).aggregate(&aggregates);
        borrow(out, "out")?;
        let bound = source.with(|source| query.bind(source.schema(), &options))?;
        let row = bound.run_batches(source.take()?, stream).next();
        give(BowstringBatch::new(row.unwrap_or_else(|| Err(invalid("no row of aggregates")))?), out)
    })
}
