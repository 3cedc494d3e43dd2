//! Window functions: values that a row has because of its place among others.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema};

use super::arrays::{computed, fold_groups};
use super::grouped::Grouped;
use super::query::Query;
use super::{Columns, SortColumn, SortOptions, TakeOptions, engine, group, lexsort_to_indices, take};
use crate::engine::{GroupFold, Groups};
use crate::expr::{Aggregation, Expr, Fold, Literal, Options, Reduction, if_else, lit, nth};
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream};

/// Rows in partitions, each in an order, as SQL's `OVER (PARTITION BY … ORDER BY …)` has them. It is made
/// once, for any number of functions. All results are in the rows' own order.
///
/// ```
/// use arrow_array::{Int64Array, StringArray, UInt64Array};
/// use bowstring::compute::{SortColumn, SortOptions, Windows};
/// use bowstring::{Stream, exchange::{from_arrow, to_arrow}};
/// # fn main() -> bowstring::Result<()> {
/// let by = from_arrow(&StringArray::from(vec!["a", "b", "a", "a"]))?;
/// let values = from_arrow(&Int64Array::from(vec![5, 9, 3, 5]))?;
/// let order = [SortColumn::new(&values, SortOptions::default())];
/// let windows = Windows::new(&[by], &order, 4, &Stream::cpu()).wait()?;
/// let ranks = to_arrow(&windows.rank().wait()?)?;
/// assert_eq!(ranks.as_ref(), &UInt64Array::from(vec![2, 1, 1, 2]));
/// let before = to_arrow(&windows.lag(&values, 1).wait()?)?;
/// assert_eq!(before.as_ref(), &Int64Array::from(vec![Some(3), None, None, Some(5)]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Windows(Arc<Inner>);

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) stream: Stream,
    /// The part of each row.
    parts: Groups,
    /// The columns by which rows are ordered.
    by: Vec<DeviceArray>,
    /// The rows, part after part, in their order.
    pub(super) order: DeviceArray,
    /// The place of each row in it.
    pub(super) places: DeviceArray,
    /// The first place of each row's part, and the number of its rows.
    pub(super) starts: DeviceArray,
    pub(super) counts: DeviceArray,
}

impl Windows {
    /// Partitions rows by columns, and orders the rows of each partition. Without columns to partition by,
    /// all rows are one partition; without an order, rows stay in their own. Rows are equal as for [`group`],
    /// and ordered as by [`lexsort_to_indices`]. Columns of another length than `rows`, and more rows than
    /// `u32::MAX`, are an error.
    pub fn new(
        partition_by: &[DeviceArray],
        order_by: &[SortColumn<'_>],
        rows: usize,
        stream: &Stream,
    ) -> Pending<Windows> {
        let by: Vec<(DeviceArray, SortOptions)> =
            order_by.iter().map(|column| (column.values.clone(), column.options)).collect();
        let (partition_by, on) = (partition_by.to_vec(), stream.clone());
        Pending::begun(|| {
            let _current = stream.enter()?;
            let mut columns = partition_by.iter().chain(by.iter().map(|(values, _)| values));
            if let Some(other) = columns.find(|column| column.len() != rows) {
                let problem = format!("a column of {} rows in windows of {rows}", other.len());
                return Err(Error::invalid("windows", problem));
            }
            Ok(Pending::begin(stream, Windows::of(partition_by, by, rows, on)))
        })
    }

    async fn of(
        mut partition_by: Vec<DeviceArray>,
        by: Vec<(DeviceArray, SortOptions)>,
        rows: usize,
        stream: Stream,
    ) -> Result<Windows> {
        let numbers = engine(&stream).numbers(rows, &stream)?;
        if partition_by.is_empty() {
            partition_by.push(computed(lit(false), vec![numbers.clone()], &stream).await?);
        }
        let parts = group(&partition_by, &stream).await?;
        let options = SortOptions::default();
        let mut columns = vec![SortColumn { values: parts.ids(), options }];
        columns.extend(by.iter().map(|(values, options)| SortColumn { values, options: *options }));
        let order = lexsort_to_indices(&columns, None, &stream).await?;
        let plain = TakeOptions::default();
        let ids = take(parts.ids(), &order, &plain, &stream).await?;
        let sorted = Groups { ids, firsts: parts.firsts().clone() };
        let fold = |fold| GroupFold { fold, values: None, wraps: false };
        let folds = [Reduction::First, Reduction::Fold(Fold::Count)].map(fold);
        let folded = fold_groups(&folds, &sorted, &stream).await?;
        let [starts, counts] = [0, 1].map(|i: usize| take(&folded[i], parts.ids(), &plain, &stream));
        // Each row is a group of its own, whose first place is the only one.
        let rows = Groups { ids: order.clone(), firsts: order.clone() };
        let places = firsts(&rows, &stream).await?;
        let by = by.into_iter().map(|(values, _)| values).collect();
        let (starts, counts) = (starts.await?, counts.await?);
        Ok(Windows(Arc::new(Inner { stream, parts, by, order, places, starts, counts })))
    }

    /// The number of each row in its partition, from 1 on, as UInt64. Equal rows are numbered in their own
    /// order.
    pub fn row_number(&self) -> Pending<DeviceArray> {
        self.begin(|this| async move { this.number(this.places.clone()).await })
    }

    /// SQL's `RANK()`, as UInt64: one more than the number of rows that come before the row's first peer.
    pub fn rank(&self) -> Pending<DeviceArray> {
        self.begin(|this| async move {
            let peers = this.peers().await?;
            let sorted = take(peers.ids(), &this.order, &TakeOptions::default(), &this.stream).await?;
            let sorted = Groups { ids: sorted, firsts: peers.firsts().clone() };
            let firsts = firsts(&sorted, &this.stream).await?;
            let first = take(&firsts, peers.ids(), &TakeOptions::default(), &this.stream).await?;
            this.number(first).await
        })
    }

    /// SQL's `DENSE_RANK()`, as UInt64: one more than the number of distinct order keys before the row's.
    pub fn dense_rank(&self) -> Pending<DeviceArray> {
        self.begin(|this| async move {
            let (plain, on) = (TakeOptions::default(), &this.stream);
            let peers = this.peers().await?;
            let sorted = take(peers.ids(), &this.order, &plain, on).await?;
            // Numbered again, in the order.
            let sorted = group(&[sorted], on).await?;
            let number = take(sorted.ids(), &this.places, &plain, on).await?;
            let first = take(sorted.ids(), &this.starts, &plain, on).await?;
            computed(wide(0) - wide(1) + 1, vec![number, first], on).await
        })
    }

    /// The values of the row that is `by` rows before each row in its partition, or null if there is none.
    /// Negative numbers look ahead, as SQL's `LEAD` does.
    pub fn lag<C: Columns + Clone + 'static>(&self, values: &C, by: i64) -> Pending<C> {
        let values = values.clone();
        self.begin(move |this| async move {
            this.check(&values)?;
            let rows = this.places.len() as i64;
            // Farther than any row is as good as that far.
            let place = nth(0).cast(DataType::Int64) - by.clamp(-rows - 1, rows + 1);
            let start = nth(1).cast(DataType::Int64);
            let exists = place.clone().gt_eq(start.clone()) & place.clone().lt(start + nth(2));
            this.at(&values, exists, place).await
        })
    }

    /// The values of the row with a number, from 1 on, in each row's partition, or null if there is none.
    pub fn nth_value<C: Columns + Clone + 'static>(&self, values: &C, number: u64) -> Pending<C> {
        let values = values.clone();
        self.begin(move |this| async move {
            this.check(&values)?;
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            let exists = lit(Literal::of(DataType::Int64, number.into())).lt_eq(nth(2)) & lit(number > 0);
            let offset = number.clamp(1, this.places.len().max(1) as i64) - 1;
            this.at(&values, exists, nth(1).cast(DataType::Int64) + offset).await
        })
    }

    /// Aggregates the rows of each partition, and returns the results for each row. The batch has as many
    /// rows. [`aggregate_frames`](Windows::aggregate_frames) aggregates some of them.
    pub fn aggregate(
        &self,
        batch: &DeviceBatch,
        aggregations: impl IntoIterator<Item: Into<Aggregation>>,
        options: &Options,
    ) -> Pending<DeviceBatch> {
        let aggregations: Vec<Aggregation> = aggregations.into_iter().map(Into::into).collect();
        let (batch, options) = (batch.clone(), *options);
        self.begin(move |this| async move {
            this.check(&batch)?;
            // The aggregates are those of the batch's columns, not of the one that is added here.
            Grouped::bind(&[], &aggregations, batch.schema(), &options)?;
            let parts = this.parts.ids();
            let mut fields: Vec<FieldRef> = batch.schema().fields().iter().cloned().collect();
            fields.push(Arc::new(Field::new("part", DataType::UInt32, false)));
            let columns = batch.columns().iter().chain([parts]).cloned().collect();
            let with = DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, batch.len())?;
            let query = Query::new().group_by([nth(batch.columns().len())]).aggregate(aggregations);
            let made = query.bind(with.schema(), &options)?.run(&with, &this.stream).await?;
            let fields: Vec<FieldRef> = made.schema().fields().iter().skip(1).cloned().collect();
            let results = made.columns()[1..].to_vec();
            let results = DeviceBatch::try_new(Arc::new(Schema::new(fields)), results, made.len())?;
            take(&results, parts, &TakeOptions::default(), &this.stream).await
        })
    }

    pub(super) fn begin<T, F: Future<Output = Result<T>> + Send + 'static>(
        &self,
        of: impl FnOnce(Arc<Inner>) -> F,
    ) -> Pending<T> {
        let this = self.0.clone();
        Pending::begun(|| {
            let _current = self.0.stream.enter()?;
            Ok(Pending::begin(&self.0.stream, of(this)))
        })
    }
}

impl Inner {
    pub(super) fn check<C: Columns>(&self, values: &C) -> Result<()> {
        let rows = self.places.len();
        if values.rows() == rows {
            return Ok(());
        }
        Err(Error::invalid("windows", format!("{} rows in windows of {rows}", values.rows())))
    }

    /// The places of rows as numbers in their part, from 1 on.
    async fn number(&self, places: DeviceArray) -> Result<DeviceArray> {
        computed(wide(0) - wide(1) + 1, vec![places, self.starts.clone()], &self.stream).await
    }

    /// The groups of rows that are equal in the order, within each part.
    pub(super) async fn peers(&self) -> Result<Groups> {
        let columns: Vec<DeviceArray> = [self.parts.ids()].into_iter().chain(&self.by).cloned().collect();
        group(&columns, &self.stream).await
    }

    /// Takes the values of the row at another place, if that exists. The expressions are of a row's place,
    /// the first place of its part and the number of the part's rows.
    async fn at<C: Columns>(&self, values: &C, exists: Expr, place: Expr) -> Result<C> {
        let place = if_else(exists, place, Literal::null(DataType::Int64));
        let columns = vec![self.places.clone(), self.starts.clone(), self.counts.clone()];
        let place = computed(place, columns, &self.stream).await?;
        let row = take(&self.order, &place, &TakeOptions::default(), &self.stream).await?;
        take(values, &row, &TakeOptions::default(), &self.stream).await
    }
}

/// A column of numbers as UInt64.
fn wide(index: usize) -> Expr {
    nth(index).cast(DataType::UInt64)
}

/// Returns the first place of each group.
async fn firsts(groups: &Groups, stream: &Stream) -> Result<DeviceArray> {
    let first = GroupFold { fold: Reduction::First, values: None, wraps: false };
    Ok(fold_groups(&[first], groups, stream).await?.remove(0))
}
