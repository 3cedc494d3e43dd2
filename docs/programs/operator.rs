//! An operator for a query engine.

// ANCHOR: operator
use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use bowstring::compute::{BoundQuery, Query};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow};
use bowstring::expr::{Expr, Options};
use bowstring::{Device, DeviceBatch, Pending, Result, Stream};

/// `SELECT exprs FROM input WHERE predicate`: an iterator over an iterator, like most engines' operators.
pub struct FilterProject<I> {
    input: I,
    stream: Stream,
    query: BoundQuery,
    /// Batches that the device is at work on.
    in_flight: VecDeque<Pending<DeviceBatch>>,
}

impl<I: Iterator<Item = Result<RecordBatch>>> FilterProject<I> {
    /// Everything that can be wrong with the query is an error here, before there is a batch.
    pub fn new(
        input: I,
        schema: &SchemaRef,
        predicate: &Expr,
        exprs: &[Expr],
        stream: Stream,
    ) -> Result<FilterProject<I>> {
        let query = Query::new().filter(predicate).select(exprs).bind(schema, &Options::default())?;
        Ok(FilterProject { input, stream, query, in_flight: VecDeque::new() })
    }

    pub fn schema(&self) -> SchemaRef {
        self.query.schema()
    }

    /// Sends a batch up and begins the query on it. Waits for nothing.
    fn start(&self, batch: &RecordBatch) -> Result<Pending<DeviceBatch>> {
        let there = self.stream.upload(&batch_from_arrow(batch)?)?;
        Ok(self.query.run(&there, &self.stream))
    }

    /// Waits until the device has counted the rows that the filter keeps, and fetches the result.
    fn finish(&self, begun: Pending<DeviceBatch>) -> Result<RecordBatch> {
        batch_to_arrow(&self.stream.download(&begun.wait()?)?)
    }
}

impl<I: Iterator<Item = Result<RecordBatch>>> Iterator for FilterProject<I> {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        // While the host waits for one batch, the device has the next one already.
        while self.in_flight.len() < 2 {
            match self.input.next() {
                None => break,
                Some(batch) => match batch.and_then(|batch| self.start(&batch)) {
                    Ok(started) => self.in_flight.push_back(started),
                    Err(error) => return Some(Err(error)),
                },
            }
        }
        let first = self.in_flight.pop_front()?;
        Some(self.finish(first))
    }
}
// ANCHOR_END: operator

// ANCHOR: used
use bowstring::expr::{col, count_all, sum};

/// Four batches of a thousand numbers.
fn numbers() -> impl Iterator<Item = Result<RecordBatch>> {
    (0..4).map(|batch| {
        let n: ArrayRef = Arc::new(Int64Array::from_iter_values(batch * 1_000..(batch + 1) * 1_000));
        Ok(RecordBatch::try_from_iter([("n", n)]).expect("one column has one length"))
    })
}

pub fn the_operator_gives_what_the_query_asks() -> Result<()> {
    let schema = numbers().next().expect("there is one")?.schema();
    let (predicate, exprs) = (col("n").gt_eq(1_500) & col("n").lt(2_500), [(col("n") * 2).alias("twice")]);
    for stream in [Stream::cpu(), Device::emulated().stream()?] {
        let operator = FilterProject::new(numbers(), &schema, &predicate, &exprs, stream)?;
        assert_eq!(operator.schema().field(0).name(), "twice");
        let rows: Result<Vec<usize>> = operator.map(|batch| Ok(batch?.num_rows())).collect();
        assert_eq!(rows?, [0, 500, 500, 0]);
    }
    Ok(())
}
// ANCHOR_END: used

// ANCHOR: aggregate
use bowstring::array::{Batches, Place};

pub fn an_aggregate_over_batches() -> Result<()> {
    let stream = Stream::cpu();
    let schema = numbers().next().expect("there is one")?.schema();
    let input = Batches::new(schema.clone(), Place::CPU, numbers().map(|batch| batch_from_arrow(&batch?)));

    let large = col("n").gt_eq(3_998);
    let wanted = [sum(col("n")), count_all()];
    let aggregates = Query::new().filter(&large).aggregate(&wanted).bind(&schema, &Options::default())?;
    let row = aggregates.run_batches(input, &stream).next().expect("one row for all batches")?;
    let row = batch_to_arrow(&row)?;
    assert_eq!(row.column(0).as_ref(), &Int64Array::from(vec![3_998 + 3_999]));
    assert_eq!(row.column(1).as_ref(), &Int64Array::from(vec![2]));
    Ok(())
}
// ANCHOR_END: aggregate
