//! Aggregates of frames, which overlap, instead of groups.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};

use super::finish::result;
use super::states::{Source, State, Which, place};
use super::{Grouped, Partial};
use crate::compute::arrays::{computed, empty};
use crate::compute::{CastOptions, SortOptions, TakeOptions, Ties, engine, rank, sort_to_indices, take};
use crate::engine::{Frames, GroupFold};
use crate::expr::{Fold, Literal, Overflow, Reduction, if_else, nth};
use crate::rules::folded_type;
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

impl Grouped {
    /// Checks that all aggregates have results for frames.
    pub fn check_frames(&self) -> Result<()> {
        let folds = |state: &State| match state {
            State::Fold(one) => !matches!(one.fold, Reduction::Bits(_)),
            State::Row(_) => true,
            State::Squares(_) => false,
        };
        if self.kept.is_empty() && self.states.iter().all(folds) {
            return Ok(());
        }
        let problem = "frames have sums, means, counts, least and greatest values, and first and last ones";
        Err(Error::invalid("windows", problem))
    }

    /// Aggregates frames of rows, which are of places in an order.
    pub async fn framed(
        self,
        rows: DeviceBatch,
        order: &DeviceArray,
        frames: &Frames,
        stream: &Stream,
    ) -> Result<DeviceBatch> {
        let plain = TakeOptions::default();
        let columns = self.columns.evaluate(rows, stream.clone()).await?;
        let columns = take(&columns, order, &plain, stream).await?;
        let (mut folds, mut of) = (vec![], vec![]);
        for state in &self.states {
            let (fold, found) = fold_of(state.of(columns.columns()), stream).await?;
            folds.push(fold);
            of.push(found);
        }
        let folded = match columns.is_empty() {
            true => folds.iter().map(|one| nothing(one, stream)).collect::<Result<Vec<_>>>()?,
            false => engine(stream).fold_frames(&folds, frames, stream)?,
        };
        let mut states = vec![];
        for (folded, found) in folded.into_iter().zip(of) {
            states.push(match found {
                Found::Value => folded,
                Found::Row(values) => take(&values, &folded, &plain, stream).await?,
                Found::Rank(values, sorted) => {
                    let place = computed(nth(0) - 1, vec![folded], stream).await?;
                    let row = take(&sorted, &place, &plain, stream).await?;
                    take(&values, &row, &plain, stream).await?
                }
            });
        }
        let no_keys = DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], columns.len())?;
        let made = Partial { keys: no_keys, states, kept: vec![] };
        let options = CastOptions { safe: self.overflow == Overflow::Null, ..CastOptions::default() };
        let mut results = vec![];
        for one in &self.results {
            results.push(result(one, &made, &options, stream).await?);
        }
        DeviceBatch::try_new(self.schema(), results, columns.len())
    }
}

/// The meaning of a fold's result.
enum Found {
    Value,
    /// The number of one of these rows.
    Row(DeviceArray),
    /// The rank of one of these rows, whose order is the second array.
    Rank(DeviceArray, DeviceArray),
}

/// The fold that makes a state, and what it finds.
async fn fold_of(source: Source, stream: &Stream) -> Result<(GroupFold, Found)> {
    Ok(match source {
        Source::Fold(fold) => (fold, Found::Value),
        Source::Row { which: which @ (Which::First | Which::Last), values, counts } => {
            (place(which, counts.as_ref())?, Found::Row(values))
        }
        Source::Row { which, values, counts } => {
            let options = SortOptions::default();
            let order = sort_to_indices(&values, options, None, stream).await?;
            let mut ranks = rank(&values, options, Ties::Lowest, stream).await?;
            if let Some(counts) = counts {
                let some = if_else(nth(1), nth(0), Literal::null(DataType::UInt32));
                ranks = computed(some, vec![ranks, counts], stream).await?;
            }
            let fold = if which == Which::Least { Fold::Min } else { Fold::Max };
            let fold = GroupFold { fold: Reduction::Fold(fold), values: Some(ranks), wraps: false };
            (fold, Found::Rank(values, order))
        }
        Source::Squares { .. } => return Err(Error::invalid("windows", "frames have no variances")),
    })
}

/// The result of a fold of no frames.
fn nothing(one: &GroupFold, stream: &Stream) -> Result<DeviceArray> {
    let of = one.values.as_ref().map_or(&DataType::Null, DeviceArray::data_type);
    empty(&folded_type(one.fold, of, one.wraps).unwrap_or_else(|| of.clone()), stream)
}
