//! Short forms of queries on one batch.

use super::Query;
use crate::expr::{Aggregation, Expr};
use crate::{DeviceBatch, Pending, Stream};

/// Keeps the rows of a batch for which `predicate` is true; null is not true.
///
/// The predicate is evaluated and counted in one launch, and never becomes an array. On a GPU the first
/// [`wait`](Pending::wait) synchronises, once for all columns, as [`filter`](super::filter) does. Binds the
/// predicate to the batch's schema; to bind it once for many batches, bind a [`Query`].
///
/// ```
/// use arrow_array::{ArrayRef, Int32Array, RecordBatch};
/// use bowstring::{DeviceBatch, Stream, compute::filter_where, expr::col};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let values: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(30)]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values)])?)?;
/// let few = filter_where(&rows, &col("n").lt(24), &Stream::cpu()).wait()?;
/// assert_eq!(few.len(), 1);
/// # Ok(())
/// # }
/// ```
pub fn filter_where(batch: &DeviceBatch, predicate: &Expr, stream: &Stream) -> Pending<DeviceBatch> {
    Query::new().filter(predicate).run_once(batch, stream)
}

/// Evaluates expressions for each row of a batch in one launch, and returns the results as the columns of a
/// batch. An expression that is just a column shares that column.
///
/// Does not synchronise for numbers, dates and Booleans. Casts, tests of dictionaries and views, and results
/// that are text (substring; `if_else`, `coalesce` and `nullif` of text) may.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use bowstring::{DeviceBatch, Stream, compute::evaluate, expr::{col, lit}};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values)])?)?;
/// let made = evaluate(&rows, &[(col("n") * 10 + 1).alias("m"), col("n").gt(1)], &Stream::cpu()).wait()?;
/// assert_eq!(made.schema().field(0).name(), "m");
/// assert_eq!(made.schema().field(1).name(), "n > 1");
/// # Ok(())
/// # }
/// ```
pub fn evaluate(batch: &DeviceBatch, exprs: &[Expr], stream: &Stream) -> Pending<DeviceBatch> {
    Query::new().select(exprs).run_once(batch, stream)
}

/// Aggregates the rows of a batch for which the predicate is true, or all rows, into one row. Reads the rows
/// once, and writes only partial aggregates; the host merges them when the result is waited for. The
/// resulting row is in host memory.
///
/// ```
/// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
/// use bowstring::{DeviceBatch, Stream, compute::aggregate, expr::{col, count_all, sum}};
/// # use std::sync::Arc;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
/// let rows = DeviceBatch::try_from(&RecordBatch::try_from_iter([("n", values)])?)?;
/// let (sums, large) = ([sum(col("n")), count_all()], col("n").gt(1));
/// let of_large = aggregate(&rows, &sums, Some(&large), &Stream::cpu()).wait()?;
/// let of_large = RecordBatch::try_from(&of_large)?;
/// assert_eq!(of_large.column(0).as_ref(), &Int64Array::from(vec![5]));
/// # Ok(())
/// # }
/// ```
pub fn aggregate(
    batch: &DeviceBatch,
    aggregations: &[Aggregation],
    predicate: Option<&Expr>,
    stream: &Stream,
) -> Pending<DeviceBatch> {
    let query = predicate.into_iter().fold(Query::new(), Query::filter);
    query.aggregate(aggregations).run_once(batch, stream)
}
