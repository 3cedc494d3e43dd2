//! Joins: pairs of rows with equal keys, and the rows of one side that have such a partner, or none.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use super::arrays::{sql_key, sql_keys};
use super::join_table::{JoinTable, Matches, Pairs, computed};
use super::nullability::never_null;
use super::{
    OutOfBounds, Query, Selection, TakeOptions, concat, engine, evaluate, filter, is_not_null, is_null,
    logical_null_count, nullable, reach_all, sort_to_indices, take,
};
use crate::exchange::from_arrow;
use crate::expr::{Expr, FloatOrder, Options, nth};
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream};

/// The rows that a join returns. "Left" is the side whose rows are in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JoinKind {
    /// The pairs of rows whose keys are equal.
    #[default]
    Inner,
    /// The pairs, and the left rows without a partner.
    Left,
    /// The pairs, and the right rows without a partner.
    Right,
    /// The pairs, and the rows of both sides without a partner.
    Full,
    /// The left rows that have a partner.
    LeftSemi,
    /// The right rows that have a partner.
    RightSemi,
    /// The left rows that have none.
    LeftAnti,
    /// The right rows that have none.
    RightAnti,
    /// All left rows, and a column, `mark`, that tells whether they have a partner.
    LeftMark,
    /// All right rows, and a column, `mark`, that tells whether they have a partner.
    RightMark,
}

/// The options of a [`join`].
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// The rows that are returned.
    pub kind: JoinKind,
    /// Whether a null key equals another one. By default, it equals nothing.
    pub nulls_equal: bool,
    /// Whether an anti join is SQL's `NOT IN`, which is true of a row only if its key certainly differs from
    /// all keys of the other side: none of them may be null, and nor may its own, unless the other side has
    /// no rows. For one key, and without a filter.
    pub null_aware: bool,
    /// A condition that pairs must meet besides, over the left columns and then the right ones. A pair for
    /// which it is not true does not count.
    pub filter: Option<Expr>,
    /// Which floats are equal, as keys and in the condition. By default, those with the same bits.
    pub floats: FloatOrder,
}

/// Joins two batches by keys, which are as long as their batches. See [`JoinOptions`] for what it returns:
/// the left columns, then the right ones. Each side's columns are nullable if the join may make nulls.
///
/// Rows come in the order of the right rows, and for each of them in that of the left ones; left rows without
/// a partner follow. Kinds that return rows of one side only keep that side's order.
///
/// ```
/// use arrow_array::{RecordBatch, record_batch};
/// use bowstring::{DeviceBatch, Stream, compute::{JoinOptions, join}};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let left = DeviceBatch::try_from(&record_batch!(("id", Int32, [1, 2]), ("name", Utf8, ["a", "b"]))?)?;
/// let right = DeviceBatch::try_from(&record_batch!(("of", Int32, [2, 2, 3]))?)?;
/// let on = (&left.columns()[..1], &right.columns()[..1]);
/// let joined = join(&left, &right, on, &JoinOptions::default(), &Stream::cpu()).wait()?;
/// let expected = record_batch!(("id", Int32, [2, 2]), ("name", Utf8, ["b", "b"]), ("of", Int32, [2, 2]))?;
/// assert_eq!(RecordBatch::try_from(&joined)?, expected);
/// # Ok(())
/// # }
/// ```
pub fn join(
    left: &DeviceBatch,
    right: &DeviceBatch,
    on: (&[DeviceArray], &[DeviceArray]),
    options: &JoinOptions,
    stream: &Stream,
) -> Pending<DeviceBatch> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        for (side, keys) in [(left, on.0), (right, on.1)] {
            reach_all("join", side.columns(), stream)?;
            if let Some(key) = keys.iter().find(|key| key.len() != side.len()) {
                let problem = format!("{} rows, and keys for {}", side.len(), key.len());
                return Err(Error::invalid("join", problem));
            }
        }
        let is_anti = matches!(options.kind, JoinKind::LeftAnti | JoinKind::RightAnti);
        if options.null_aware && !(is_anti && on.0.len() == 1 && options.filter.is_none()) {
            let problem = "only an anti join by one key, without a filter, is aware of nulls";
            return Err(Error::invalid("join", problem));
        }
        let sql = options.floats == FloatOrder::Sql
            && on.0.iter().any(|key| sql_key(&nth(0), key.data_type()).is_some());
        let table = if sql { None } else { Some(JoinTable::new(on.0, options.nulls_equal, stream)) };
        let sides = Sides { left: left.clone(), right: right.clone(), stream: stream.clone() };
        let (left_keys, keys, options) = (on.0.to_vec(), on.1.to_vec(), options.clone());
        Ok(Pending::begin(stream, async move {
            let (table, keys) = match table {
                Some(table) => (table, keys),
                None => {
                    let left_keys = sql_keys(&left_keys, &sides.stream).await?;
                    let keys = sql_keys(&keys, &sides.stream).await?;
                    (JoinTable::new(&left_keys, options.nulls_equal, &sides.stream), keys)
                }
            };
            if options.null_aware {
                let left = options.kind == JoinKind::LeftAnti;
                let (own, others) = if left { (&left_keys[0], &keys[0]) } else { (&keys[0], &left_keys[0]) };
                match sides.certain(own, others).await? {
                    Certain::All => return Ok(sides.one(left).clone()),
                    Certain::None => return sides.one(left).slice(0, 0),
                    Certain::Valid(valid) => {
                        let found = table.await?.find(&keys, &sides.stream).await?;
                        return sides.not_in(left, &valid, &found).await;
                    }
                }
            }
            let matches = table.await?.find(&keys, &sides.stream).await?;
            match &options.filter {
                None => sides.unfiltered(options.kind, &matches).await,
                Some(filter) => {
                    let expr_options = Options::default().floats(options.floats);
                    sides.filtered(options.kind, &matches, filter, &expr_options).await
                }
            }
        }))
    })
}

/// Both sides of a join.
struct Sides {
    left: DeviceBatch,
    right: DeviceBatch,
    stream: Stream,
}

/// The rows of one side whose keys certainly differ from keys of the other, if they have no partner.
enum Certain {
    All,
    None,
    /// Those whose own key is valid, as booleans without nulls.
    Valid(DeviceArray),
}

impl Sides {
    fn one(&self, left: bool) -> &DeviceBatch {
        if left { &self.left } else { &self.right }
    }

    /// Finds the rows whose keys can differ from all keys of the other side.
    async fn certain(&self, own: &DeviceArray, others: &DeviceArray) -> Result<Certain> {
        if others.is_empty() {
            return Ok(Certain::All);
        }
        if logical_null_count(others, &self.stream).await? > 0 {
            return Ok(Certain::None);
        }
        Ok(Certain::Valid(is_not_null(own, &self.stream).await?))
    }

    /// The rows of one side that are valid and have no partner.
    async fn not_in(&self, left: bool, valid: &DeviceArray, matches: &Matches) -> Result<DeviceBatch> {
        let on = &self.stream;
        let found = if left { matches.found_left(on).await? } else { matches.found(on).await? };
        let fields = ["valid", "found"].map(|name| Field::new(name, DataType::Boolean, false));
        let marks = vec![valid.clone(), found];
        let marks = DeviceBatch::try_new(Arc::new(Schema::new(fields.to_vec())), marks, valid.len())?;
        let kept = evaluate(&marks, &[nth(0) & !nth(1)], on).await?;
        filter(self.one(left), &kept.columns()[0], on).await
    }

    async fn unfiltered(&self, kind: JoinKind, matches: &Matches) -> Result<DeviceBatch> {
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
            LeftSemi => filter(&self.left, &matches.found_left(on).await?, on).await,
            LeftAnti => filter(&self.left, &not(&matches.found_left(on).await?, on).await?, on).await,
            LeftMark => marked(&self.left, matches.found_left(on).await?),
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

    async fn filtered(
        &self,
        kind: JoinKind,
        matches: &Matches,
        condition: &Expr,
        options: &Options,
    ) -> Result<DeviceBatch> {
        use JoinKind::*;
        let on = &self.stream;
        let pairs = self.kept(matches.pairs(on).await?, condition, options).await?;
        let side = |left: bool| {
            let (rows, len) =
                if left { (&pairs.left, self.left.len()) } else { (&pairs.right, self.right.len()) };
            engine(on).mark(rows, len, on)
        };
        match kind {
            Inner => self.paired(pairs, [false, false]).await,
            Left => {
                let marks = side(true)?;
                self.paired(self.and_left(pairs, marks).await?, [false, true]).await
            }
            Right => {
                let marks = side(false)?;
                self.paired(self.and_right(pairs, marks).await?, [true, false]).await
            }
            Full => {
                let (left, right) = (side(true)?, side(false)?);
                let pairs = self.and_right(pairs, right).await?;
                self.paired(self.and_left(pairs, left).await?, [true, true]).await
            }
            RightSemi => filter(&self.right, &side(false)?, on).await,
            RightAnti => filter(&self.right, &not(&side(false)?, on).await?, on).await,
            RightMark => marked(&self.right, side(false)?),
            LeftSemi => filter(&self.left, &side(true)?, on).await,
            LeftAnti => filter(&self.left, &not(&side(true)?, on).await?, on).await,
            LeftMark => marked(&self.left, side(true)?),
        }
    }

    /// The pairs for which a condition is true.
    async fn kept(&self, pairs: Pairs, condition: &Expr, options: &Options) -> Result<Pairs> {
        let on = &self.stream;
        let rows = self.paired(pairs.clone(), [false, false]).await?;
        let query = Query::new().filter(condition.clone()).bind(rows.schema(), options)?;
        let kept = query.selection(&rows, on).await?;
        let fields = ["left", "right"].map(|name| Field::new(name, DataType::UInt32, false));
        let both = vec![pairs.left, pairs.right];
        let both = DeviceBatch::try_new(Arc::new(Schema::new(fields.to_vec())), both, rows.len())?;
        let kept = kept.filter(&both).await?;
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
        let none = self.stream.upload(&from_arrow(&arrow_array::new_null_array(&DataType::UInt32, 0))?)?;
        let options = TakeOptions { out_of_bounds: OutOfBounds::Null };
        take(&none, rows, &options, &self.stream).await
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
    computed(marks, nth(0).is_false(), stream).await
}
