//! Rows that an aggregate keeps until the end, because no state of a fixed size would do.

use arrow_schema::DataType;

use crate::compute::arrays::{computed, fold_groups, lengthened, null_unless_true, unnamed, widened};
use crate::compute::{SortColumn, SortOptions, TakeOptions, group, lexsort_to_indices, take};
use crate::engine::{GroupFold, Groups};
use crate::expr::{Fold, Literal, Reduction, if_else, lit, nth};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// A column that is kept beside the keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    pub of: usize,
    /// The column that says which rows count; `None` if all do.
    pub counts: Option<usize>,
    /// Whether one of equal rows is enough.
    pub distinct: bool,
}

impl Kept {
    /// The rows of a batch: their keys, and then the kept columns.
    pub async fn of(
        &self,
        keys: &DeviceBatch,
        columns: &[DeviceArray],
        stream: &Stream,
    ) -> Result<DeviceBatch> {
        let mut rows = vec![];
        for key in keys.columns() {
            // More rows may be kept than there are groups.
            rows.push(lengthened(key, stream).await?);
        }
        // Distinct values of several batches meet.
        rows.push(match self.distinct {
            true => widened(&columns[self.of], stream).await?,
            false => columns[self.of].clone(),
        });
        rows.extend(self.counts.map(|counts| columns[counts].clone()));
        let rows = unnamed(rows)?;
        self.again(rows, stream).await
    }

    /// Keeps rows of several batches.
    pub async fn again(&self, rows: DeviceBatch, stream: &Stream) -> Result<DeviceBatch> {
        if !self.distinct {
            return Ok(rows);
        }
        let groups = group(rows.columns(), stream).await?;
        take(&rows, groups.firsts(), &TakeOptions::default(), stream).await
    }
}

/// Returns the number of rows that count, of each group of equal keys, which are all columns but two. The
/// groups are in the order of their first rows, as those of the rows that were not kept.
pub(super) async fn counted(rows: &DeviceBatch, stream: &Stream) -> Result<DeviceArray> {
    let (keys, [_, counts]) = split::<2>(rows);
    let groups = group(keys, stream).await?;
    let values = Some(null_unless_true(&counts)?);
    let count = GroupFold { fold: Reduction::Fold(Fold::Count), values, wraps: false };
    Ok(fold_groups(&[count], &groups, stream).await?.remove(0))
}

/// Returns the number below which a part of the numbers of each group lies. They are the last column, as
/// Float64. The groups are as those of [`counted`].
pub(super) async fn quantiles(rows: &DeviceBatch, part: f64, stream: &Stream) -> Result<DeviceArray> {
    let (keys, [values]) = split::<1>(rows);
    let groups = group(keys, stream).await?;
    // A NaN is greatest, and its sign says nothing.
    let numbers = if_else(nth(0).is_nan(), f64::NAN, nth(0));
    let numbers = computed(numbers, vec![values], stream).await?;
    // The numbers of each group follow each other in their order, and nulls follow them.
    let options = SortOptions { descending: false, nulls_first: false };
    let sorted_by = [groups.ids(), &numbers].map(|values| SortColumn::new(values, options));
    let order = lexsort_to_indices(&sorted_by, None, stream).await?;
    let plain = TakeOptions::default();
    let ids = take(groups.ids(), &order, &plain, stream).await?;
    let sorted = take(&numbers, &order, &plain, stream).await?;
    let groups = Groups { ids, firsts: groups.firsts().clone() };
    let fold = |fold, values| GroupFold { fold, values, wraps: false };
    let folds = [fold(Reduction::First, None), fold(Reduction::Fold(Fold::Count), Some(sorted.clone()))];
    let mut folded = fold_groups(&folds, &groups, stream).await?;
    let (counts, firsts) = (folded.remove(1), folded.remove(0));
    // The place among the numbers, which is between two of them.
    let place = (nth(1) - 1).cast(DataType::Float64) * part;
    let below = place.clone().cast(DataType::Int64);
    let first = nth(0).cast(DataType::Int64);
    let some = |place| if_else(nth(1).gt(0), place, Literal::null(DataType::Null));
    let above = if_else((below.clone() + 1).lt(nth(1)), below.clone() + 1, below.clone());
    let mut ends = vec![];
    for place in [first.clone() + below.clone(), first + above] {
        let place =
            computed(some(place).cast(DataType::UInt32), vec![firsts.clone(), counts.clone()], stream);
        ends.push(take(&sorted, &place.await?, &plain, stream).await?);
    }
    let between = place - below.cast(DataType::Float64);
    let (low, high) = (nth(2), nth(3));
    // A place of a number has this number, also where the next one is infinite or NaN.
    let is_between = between.clone().gt(0.0).and(low.clone().neq(high.clone()));
    let distance = high.clone() - low.clone();
    let by_distance = low.clone() + distance.clone() * between.clone();
    // The distance of infinite and of very large numbers is no number.
    let by_weights = low.clone() * (lit(1.0) - between.clone()) + high * between;
    let is_finite = (distance.clone() - distance).eq(0.0);
    let value = if_else(is_between, if_else(is_finite, by_distance, by_weights), low);
    ends.splice(0..0, [firsts, counts]);
    computed(value, ends, stream).await
}

/// The first columns of a batch, and its last ones.
fn split<const LAST: usize>(rows: &DeviceBatch) -> (&[DeviceArray], [DeviceArray; LAST]) {
    let (keys, last) = rows.columns().split_at(rows.columns().len() - LAST);
    (keys, std::array::from_fn(|i| last[i].clone()))
}
