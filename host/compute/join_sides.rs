//! Both sides of a join, and the rows of them that pairs of equal keys make.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use super::arrays::{computed, empty, unnamed};
use super::join_options::JoinKind;
use super::join_table::{Matches, Pairs};
use super::nullability::never_null;
use super::{
    OutOfBounds, Query, Selection, TakeOptions, concat, engine, filter, is_not_null, is_null, nullable,
    sort_to_indices, take,
};
use crate::exchange::from_arrow;
use crate::expr::{Expr, Options, nth};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// Both sides of a join.
pub(super) struct Sides {
    pub left: DeviceBatch,
    pub right: DeviceBatch,
    pub stream: Stream,
}

impl Sides {
    /// The rows of one side that are valid and have no partner.
    pub async fn not_in(&self, left: bool, valid: &DeviceArray, found: &DeviceArray) -> Result<DeviceBatch> {
        let kept = computed(nth(0) & !nth(1), vec![valid.clone(), found.clone()], &self.stream).await?;
        filter(if left { &self.left } else { &self.right }, &kept, &self.stream).await
    }

    /// The rows of pairs with equal keys, of a kind that returns right rows.
    pub async fn unfiltered(&self, kind: JoinKind, matches: &Matches) -> Result<DeviceBatch> {
        use JoinKind::*;
        let (on, all) = (&self.stream, 0..self.right.len());
        match kind {
            Inner | Right if matches.are_unique() => self.beside(matches.groups(), kind).await,
            Inner | Right => {
                let pairs = matches.pairs_of(all, kind == Right, on).await?;
                self.paired(pairs, [kind == Right, false]).await
            }
            Left | Full => {
                let pairs = matches.pairs_of(all, kind == Full, on).await?;
                let pairs = self.and_left(pairs, matches.found_left(on).await?).await?;
                self.paired(pairs, [kind == Full, true]).await
            }
            RightSemi => filter(&self.right, &matches.found(on).await?, on).await,
            RightAnti => filter(&self.right, &is_null(matches.groups(), on).await?, on).await,
            RightMark => marked(&self.right, matches.found(on).await?),
            LeftSemi | LeftAnti | LeftMark => self.of_left(kind, matches.found_left(on).await?).await,
        }
    }

    /// Each right row beside the only left row that it can have: right rows need not be moved, unless some
    /// have none.
    async fn beside(&self, found: &DeviceArray, kind: JoinKind) -> Result<DeviceBatch> {
        let on = &self.stream;
        if kind == JoinKind::Right {
            let left = take(&self.left, found, &TakeOptions::default(), on).await?;
            return side_by_side(&left, &self.right, [true, false]);
        }
        let (found, right) = match found.known_null_count() {
            Some(0) => (found.clone(), self.right.clone()),
            _ => {
                let kept = Selection::of_mask(&is_not_null(found, on).await?, on).await?;
                (kept.filter(found).await?, kept.filter(&self.right).await?)
            }
        };
        let left = take(&self.left, &never_null(&found)?, &TakeOptions::default(), on).await?;
        side_by_side(&left, &right, [false, false])
    }

    /// The rows of pairs that meet a condition.
    pub async fn filtered(&self, kind: JoinKind, pairs: Pairs) -> Result<DeviceBatch> {
        use JoinKind::*;
        let on = &self.stream;
        let left = |pairs: &Pairs| engine(on).mark(&pairs.left, self.left.len(), on);
        let right = |pairs: &Pairs| engine(on).mark(&pairs.right, self.right.len(), on);
        match kind {
            Inner => self.paired(pairs, [false, false]).await,
            Left => {
                let marks = left(&pairs)?;
                self.paired(self.and_left(pairs, marks).await?, [false, true]).await
            }
            Right => {
                let marks = right(&pairs)?;
                self.paired(self.and_right(pairs, marks).await?, [true, false]).await
            }
            Full => {
                let (left, right) = (left(&pairs)?, right(&pairs)?);
                let pairs = self.and_right(pairs, right).await?;
                self.paired(self.and_left(pairs, left).await?, [true, true]).await
            }
            RightSemi => filter(&self.right, &right(&pairs)?, on).await,
            RightAnti => filter(&self.right, &not(&right(&pairs)?, on).await?, on).await,
            RightMark => marked(&self.right, right(&pairs)?),
            LeftSemi | LeftAnti | LeftMark => self.of_left(kind, left(&pairs)?).await,
        }
    }

    /// The left rows that a kind returns, of which those with a partner are marked: of a kind of left rows
    /// all, of others those without a partner.
    pub async fn of_left(&self, kind: JoinKind, marks: DeviceArray) -> Result<DeviceBatch> {
        let on = &self.stream;
        match kind {
            JoinKind::LeftSemi => filter(&self.left, &marks, on).await,
            JoinKind::LeftAnti => filter(&self.left, &not(&marks, on).await?, on).await,
            JoinKind::LeftMark => marked(&self.left, marks),
            _ => {
                let left = self.unmarked(&marks).await?;
                let right = self.nulls(&left).await?;
                self.paired(Pairs { left, right }, [kind == JoinKind::Full, true]).await
            }
        }
    }

    /// The pairs for which a condition is true.
    pub async fn kept(&self, pairs: Pairs, condition: &Expr, options: &Options) -> Result<Pairs> {
        let on = &self.stream;
        let rows = self.paired(pairs.clone(), [false, false]).await?;
        let query = Query::new().filter(condition.clone()).bind(rows.schema(), options)?;
        let kept = query.selection(&rows, on).await?;
        let kept = kept.filter(&unnamed(vec![pairs.left, pairs.right])?).await?;
        Ok(Pairs { left: kept.columns()[0].clone(), right: kept.columns()[1].clone() })
    }

    /// Adds the left rows that are not marked.
    async fn and_left(&self, pairs: Pairs, marks: DeviceArray) -> Result<Pairs> {
        let alone = self.unmarked(&marks).await?;
        let none = self.nulls(&alone).await?;
        Ok(Pairs {
            left: concat(&[&pairs.left, &alone], &self.stream).await?,
            right: concat(&[&pairs.right, &none], &self.stream).await?,
        })
    }

    /// Adds the right rows that are not marked, in their places.
    async fn and_right(&self, pairs: Pairs, marks: DeviceArray) -> Result<Pairs> {
        let on = &self.stream;
        let alone = self.unmarked(&marks).await?;
        let none = self.nulls(&alone).await?;
        let left = concat(&[&pairs.left, &none], on).await?;
        let right = concat(&[&pairs.right, &alone], on).await?;
        let order = sort_to_indices(&right, Default::default(), None, on).await?;
        let options = TakeOptions::default();
        Ok(Pairs {
            left: take(&left, &order, &options, on).await?,
            right: take(&right, &order, &options, on).await?,
        })
    }

    /// The numbers of the rows that are not marked.
    async fn unmarked(&self, marks: &DeviceArray) -> Result<DeviceArray> {
        // Sorting by nothing numbers the rows.
        let none = from_arrow(&arrow_array::new_null_array(&DataType::Null, marks.len()))?;
        let none = self.stream.upload(&none)?;
        let rows = sort_to_indices(&none, Default::default(), None, &self.stream).await?;
        filter(&rows, &not(marks, &self.stream).await?, &self.stream).await
    }

    /// Nulls in the place of rows.
    async fn nulls(&self, rows: &DeviceArray) -> Result<DeviceArray> {
        let options = TakeOptions { out_of_bounds: OutOfBounds::Null };
        take(&self.no_rows()?, rows, &options, &self.stream).await
    }

    /// The numbers of no rows.
    pub fn no_rows(&self) -> Result<DeviceArray> {
        empty(&DataType::UInt32, &self.stream)
    }

    /// The columns of both sides at pairs of rows. A side may be null.
    async fn paired(&self, pairs: Pairs, nulls: [bool; 2]) -> Result<DeviceBatch> {
        let (options, on) = (TakeOptions::default(), &self.stream);
        let (left, right) =
            (take(&self.left, &pairs.left, &options, on), take(&self.right, &pairs.right, &options, on));
        side_by_side(&left.await?, &right.await?, nulls)
    }
}

/// The columns of both sides. A side may be null.
fn side_by_side(left: &DeviceBatch, right: &DeviceBatch, nulls: [bool; 2]) -> Result<DeviceBatch> {
    let mut fields = vec![];
    for (side, null) in [left, right].into_iter().zip(nulls) {
        let schema = if null { nullable(side.schema()) } else { side.schema().clone() };
        fields.extend(schema.fields().iter().cloned());
    }
    let columns = [left.columns(), right.columns()].concat();
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, right.len())
}

/// A side with a column of marks.
fn marked(side: &DeviceBatch, marks: DeviceArray) -> Result<DeviceBatch> {
    let mut fields = side.schema().fields().to_vec();
    fields.push(Arc::new(Field::new("mark", DataType::Boolean, false)));
    let columns = [side.columns(), &[marks]].concat();
    let made = DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, side.len())?;
    Ok(made.with_metadata(side.metadata().clone()))
}

/// The complement of booleans without nulls.
async fn not(marks: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    computed(nth(0).is_false(), vec![marks.clone()], stream).await
}
