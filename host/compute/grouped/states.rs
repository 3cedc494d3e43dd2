//! The states of groups: the values that an aggregate needs of each.

use arrow_schema::DataType;

use crate::compute::arrays::{computed, fold_groups, null_unless_true};
use crate::compute::{SortOptions, TakeOptions, is_not_null, sort_to_indices, take};
use crate::engine::{GroupFold, Groups};
use crate::expr::{Expr, Fold, Reduction, nth};
use crate::{DeviceArray, Result, Stream};

/// Something that is kept of each group.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    Fold(Folds),
    Row(Row),
    Squares(Squares),
}

/// A fold of one of the columns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Folds {
    pub fold: Reduction,
    /// Which of the columns is folded; `None` counts rows.
    pub of: Option<usize>,
    pub wraps: bool,
}

/// The value of one of the rows that count.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub which: Which,
    /// The column of values.
    pub of: usize,
    /// The column that says which rows count; `None` if all do.
    pub counts: Option<usize>,
    /// Which rows count when parts are merged.
    pub again: Again,
}

/// The row whose value is wanted: by its number, or by the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Which {
    First,
    Last,
    Least,
    Greatest,
}

/// Which parts have a row that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Again {
    All,
    /// Those whose value is not null.
    Valid,
    /// Those in which this state, a number of rows, is not zero.
    Some(usize),
}

/// The sum of the squared distances of a column to its mean, of which the sum and the number of values are
/// states before this one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Squares {
    pub of: usize,
    pub sum: usize,
    pub count: usize,
}

/// Rows from which a state comes about: those of a batch, or the states of several parts.
pub(super) enum Source {
    Fold(GroupFold),
    Row {
        which: Which,
        values: DeviceArray,
        /// Whether each row counts; `None` if all do.
        counts: Option<DeviceArray>,
    },
    /// The terms of squares are `term` of these columns and, as the last one, the mean of the row's group.
    Squares {
        of: Squares,
        columns: Vec<DeviceArray>,
        term: Expr,
    },
}

impl State {
    /// The source that a batch of columns is.
    pub fn of(&self, columns: &[DeviceArray]) -> Source {
        match self {
            State::Fold(Folds { fold, of, wraps }) => {
                let values = of.map(|of| columns[of].clone());
                Source::Fold(GroupFold { fold: *fold, values, wraps: *wraps })
            }
            State::Row(row) => Source::Row {
                which: row.which,
                values: columns[row.of].clone(),
                counts: row.counts.map(|counts| columns[counts].clone()),
            },
            State::Squares(of) => {
                let distance = nth(0) - nth(1);
                let columns = vec![columns[of.of].clone()];
                Source::Squares { of: of.clone(), columns, term: distance.clone() * distance }
            }
        }
    }

    /// The source that the states of parts are, of which this is number `own`.
    pub async fn again(&self, own: usize, states: &[DeviceArray], stream: &Stream) -> Result<Source> {
        let values = states[own].clone();
        Ok(match self {
            // Counts are summed; they are in no danger of wrapping around.
            State::Fold(Folds { fold: Reduction::Fold(Fold::Count), .. }) => Source::Fold(GroupFold {
                fold: Reduction::Fold(Fold::Sum),
                values: Some(values),
                wraps: true,
            }),
            State::Fold(Folds { fold, wraps, .. }) => {
                Source::Fold(GroupFold { fold: *fold, values: Some(values), wraps: *wraps })
            }
            State::Row(row) => {
                let counts = match row.again {
                    Again::All => None,
                    Again::Valid => Some(is_not_null(&values, stream).await?),
                    Again::Some(rows) => {
                        Some(computed(nth(0).gt(0), vec![states[rows].clone()], stream).await?)
                    }
                };
                Source::Row { which: row.which, values, counts }
            }
            State::Squares(of) => {
                // The squares of a part, around its own mean, and its mean's distance for each value.
                let count = nth(2).cast(DataType::Float64);
                let distance = nth(1) / count.clone() - nth(3);
                let term = nth(0) + count * (distance.clone() * distance);
                let columns = vec![values, states[of.sum].clone(), states[of.count].clone()];
                Source::Squares { of: of.clone(), columns, term }
            }
        })
    }
}

/// Returns the states that sources make for each group.
pub(super) async fn folded(
    sources: Vec<Source>,
    groups: &Groups,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    let mut folds = vec![];
    for source in &sources {
        match source {
            Source::Fold(fold) => folds.push(fold.clone()),
            Source::Row { which: which @ (Which::First | Which::Last), counts, .. } => {
                folds.push(place(*which, counts.as_ref())?);
            }
            Source::Row { .. } | Source::Squares { .. } => {}
        }
    }
    let mut folded = fold_groups(&folds, groups, stream).await?.into_iter();
    let mut states: Vec<DeviceArray> = vec![];
    for source in sources {
        states.push(match source {
            Source::Fold(_) => folded.next().expect("one for each fold"),
            Source::Row { which: Which::First | Which::Last, values, .. } => {
                let rows = folded.next().expect("one for each fold");
                take(&values, &rows, &TakeOptions::default(), stream).await?
            }
            Source::Row { which, values, counts } => {
                extreme(which, &values, counts.as_ref(), groups, stream).await?
            }
            Source::Squares { of, mut columns, term } => {
                let parts = vec![states[of.sum].clone(), states[of.count].clone()];
                let means = computed(nth(0) / nth(1).cast(DataType::Float64), parts, stream).await?;
                columns.push(take(&means, groups.ids(), &TakeOptions::default(), stream).await?);
                let terms = computed(term, columns, stream).await?;
                let sum = GroupFold { fold: Reduction::Fold(Fold::Sum), values: Some(terms), wraps: false };
                let sums = fold_groups(&[sum], groups, stream).await?.pop();
                sums.expect("one for each fold")
            }
        });
    }
    Ok(states)
}

/// The fold that finds the first or the last row that counts.
pub(super) fn place(which: Which, counts: Option<&DeviceArray>) -> Result<GroupFold> {
    let fold = if matches!(which, Which::First | Which::Least) { Reduction::First } else { Reduction::Last };
    let values = counts.map(null_unless_true).transpose()?;
    Ok(GroupFold { fold, values, wraps: false })
}

/// Returns the least or the greatest value of each group: that of its first or last row in their order.
async fn extreme(
    which: Which,
    values: &DeviceArray,
    counts: Option<&DeviceArray>,
    groups: &Groups,
    stream: &Stream,
) -> Result<DeviceArray> {
    let plain = TakeOptions::default();
    let order = sort_to_indices(values, SortOptions::default(), None, stream).await?;
    let ids = take(groups.ids(), &order, &plain, stream).await?;
    let counts = match counts {
        Some(counts) => Some(take(counts, &order, &plain, stream).await?),
        None => None,
    };
    let sorted = Groups { ids, firsts: groups.firsts().clone() };
    let places = fold_groups(&[place(which, counts.as_ref())?], &sorted, stream).await?;
    let rows = take(&order, &places[0], &plain, stream).await?;
    take(values, &rows, &plain, stream).await
}
