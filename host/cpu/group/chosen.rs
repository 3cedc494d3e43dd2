//! The folder of each fold.

use arrow_schema::DataType;

use super::floats::Float;
use super::folders::{Count, Folder, Least, LeastWide, Sum, SumWide, Wrapping};
use super::rows::Folded;
use crate::Result;
use crate::expr::Fold;
use crate::rules::words;

/// Rows whose values are folded, for groups or for frames.
pub(super) trait Folds {
    /// Folds values whose states are the results.
    fn folded<F: Folder<W>, const W: usize>(&self, folder: &F) -> Result<Folded>;
    /// Folds values whose states are keys.
    fn least<const W: usize>(&self, folder: &Least<W>) -> Result<Folded>;
    /// Adds floats, in the one order that all devices have.
    fn floats<F: Float<W>, const W: usize>(&self) -> Result<Folded>;
}

/// Folds values of a type; `None` if there is no such fold.
pub(super) fn fold_of(on: &impl Folds, fold: Fold, wraps: bool, of: &DataType) -> Result<Option<Folded>> {
    let descending = fold == Fold::Max;
    Ok(Some(match (fold, of) {
        (Fold::Count, _) => (on.folded(&Count)?.0, None),
        (Fold::Sum, DataType::Int64 | DataType::UInt64) if wraps => on.folded(&Wrapping)?,
        (Fold::Sum, DataType::Int64) => on.folded(&Sum { signed: true })?,
        (Fold::Sum, DataType::UInt64) => on.folded(&Sum { signed: false })?,
        (Fold::Sum, DataType::Decimal128(..)) => on.folded(&SumWide::<16>)?,
        (Fold::Sum, DataType::Decimal256(..)) => on.folded(&SumWide::<32>)?,
        (Fold::Sum, DataType::Float32) => on.floats::<f32, 4>()?,
        (Fold::Sum, DataType::Float64) => on.floats::<f64, 8>()?,
        (Fold::Sum, _) => return Ok(None),
        (Fold::Min | Fold::Max, DataType::Decimal128(..)) => on.folded(&LeastWide { descending })?,
        (Fold::Min | Fold::Max, _) => {
            let words = words(of).unwrap_or_default();
            let Some(word) = words.first() else { return Ok(None) };
            match word.width {
                1 => on.least(&Least::<1>::new(word, descending))?,
                2 => on.least(&Least::<2>::new(word, descending))?,
                4 => on.least(&Least::<4>::new(word, descending))?,
                _ => on.least(&Least::<8>::new(word, descending))?,
            }
        }
    }))
}
