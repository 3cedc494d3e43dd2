//! Joins: pairs of rows with equal keys, and the rows of one side that have such a partner, or none. The left
//! side is prepared once, for any number of right batches.

use arrow_schema::SchemaRef;

use super::arrays::{computed, empty, sql_key, sql_keys};
use super::join_options::{JoinKind, JoinOptions};
use super::join_sides::Sides;
use super::join_table::{JoinTable, Matches};
use super::{engine, is_not_null, logical_null_count, reach_all};
use crate::expr::{FloatOrder, nth};
use crate::{DeviceArray, DeviceBatch, Error, Pending, Result, Stream};

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
        check_side(right, on.1, stream)?;
        let prepared = PreparedJoin::new(left, on.0, options, stream);
        let (right, keys, on) = (right.clone(), on.1.to_vec(), stream.clone());
        Ok(Pending::begin(stream, async move { prepared.await?.whole(&right, &keys, &on).await }))
    })
}

/// A join whose left side is prepared once, for right batches from any number of threads and streams of the
/// device.
///
/// ```
/// use arrow_array::{RecordBatch, record_batch};
/// use bowstring::compute::{JoinKind, JoinOptions, PreparedJoin, Visited};
/// use bowstring::{DeviceBatch, Stream};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = Stream::cpu();
/// let left = DeviceBatch::try_from(&record_batch!(("id", Int32, [1, 2]), ("name", Utf8, ["a", "b"]))?)?;
/// let options = JoinOptions { kind: JoinKind::Left, ..JoinOptions::default() };
/// let join = PreparedJoin::new(&left, &left.columns()[..1], &options, &stream).wait()?;
/// let mut visited = Visited::default();
/// for ids in [vec![2, 2], vec![3, 4]] {
///     let right = DeviceBatch::try_from(&record_batch!(("of", Int32, ids))?)?;
///     let probed = join.probe(&right, right.columns(), &stream).wait()?;
///     println!("{} pairs", probed.rows.map_or(0, |rows| rows.len()));
///     visited = visited.and(&probed.visited, &stream).wait()?;
/// }
/// let right = DeviceBatch::try_from(&record_batch!(("of", Int32, [0]))?)?;
/// let rest = join.rest(&visited, right.schema(), &stream).wait()?;
/// assert_eq!(rest.map(|rows| rows.len()), Some(1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PreparedJoin {
    left: DeviceBatch,
    keys: Vec<DeviceArray>,
    table: JoinTable,
    options: JoinOptions,
}

/// The result of a join for a batch of right rows.
#[derive(Clone, Debug)]
pub struct Probed {
    /// The rows that are known already; `None` if the kind returns left rows only.
    pub rows: Option<DeviceBatch>,
    /// The left rows that the batch has found, for [`PreparedJoin::rest`].
    pub visited: Visited,
}

/// The left rows that right batches have found. The default is that of no batches.
#[derive(Clone, Debug, Default)]
pub struct Visited {
    /// The left rows that have a partner; if there is no condition, the groups of equal keys. `None` if no
    /// batch was seen, or if it does not matter.
    marks: Option<DeviceArray>,
    /// Whether there was any right row.
    rows: bool,
    /// Whether any right key was null; only known where it matters.
    nulls: bool,
}

impl PreparedJoin {
    /// Prepares the left side of a join. Synchronises like [`JoinTable::new`].
    pub fn new(
        left: &DeviceBatch,
        keys: &[DeviceArray],
        options: &JoinOptions,
        stream: &Stream,
    ) -> Pending<PreparedJoin> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            check_side(left, keys, stream)?;
            options.check(keys.len())?;
            let nulls_equal = options.nulls_equal;
            // Keys that need no change are in the table before anyone waits.
            let table = match are_changed(keys, options) {
                false => Some(JoinTable::new(keys, nulls_equal, stream)),
                true => None,
            };
            let (left, keys, options, on) = (left.clone(), keys.to_vec(), options.clone(), stream.clone());
            Ok(Pending::begin(stream, async move {
                let table = match table {
                    Some(table) => table.await?,
                    None => JoinTable::new(&sql_keys(&keys, &on).await?, nulls_equal, &on).await?,
                };
                Ok(PreparedJoin { left, keys, table, options })
            }))
        })
    }

    /// Joins a batch of right rows. Synchronises like [`join`] without its table.
    pub fn probe(&self, right: &DeviceBatch, keys: &[DeviceArray], stream: &Stream) -> Pending<Probed> {
        self.probe_for(u64::MAX, right, keys, stream)
    }

    /// Like `probe`, except that more than `most` pairs of rows are an error.
    pub(super) fn probe_for(
        &self,
        most: u64,
        right: &DeviceBatch,
        keys: &[DeviceArray],
        stream: &Stream,
    ) -> Pending<Probed> {
        Pending::begun(|| {
            let _current = stream.enter()?;
            check_side(right, keys, stream)?;
            let (prepared, right, keys) = (self.clone(), right.clone(), keys.to_vec());
            let on = stream.clone();
            Ok(Pending::begin(stream, async move { prepared.probed((most, &right), &keys, &on).await }))
        })
    }

    /// Returns the left rows that are known when all right batches have been seen, with the columns of
    /// `right` if the kind has them; `None` if the kind returns no such rows.
    pub fn rest(
        &self,
        visited: &Visited,
        right: &SchemaRef,
        stream: &Stream,
    ) -> Pending<Option<DeviceBatch>> {
        if !self.options.kind.has_rest() {
            return Pending::known(Ok(None));
        }
        Pending::begun(|| {
            let _current = stream.enter()?;
            reach_all("join", self.left.columns(), stream)?;
            let (prepared, visited, on) = (self.clone(), visited.clone(), stream.clone());
            let right = without_rows(right, stream)?;
            Ok(Pending::begin(
                stream,
                async move { prepared.left_rows(&visited, &right, &on).await.map(Some) },
            ))
        })
    }

    /// Whether any left row can have a partner: if not, all keys are null, and nulls equal nothing.
    pub fn has_keys(&self) -> bool {
        self.table.groups() > 0
    }

    /// The keys of the left rows, as they were given.
    pub fn keys(&self) -> &[DeviceArray] {
        &self.keys
    }

    fn sides(&self, right: &DeviceBatch, on: &Stream) -> Sides {
        Sides { left: self.left.clone(), right: right.clone(), stream: on.clone() }
    }

    /// Joins the only right batch.
    async fn whole(&self, right: &DeviceBatch, keys: &[DeviceArray], on: &Stream) -> Result<DeviceBatch> {
        let kind = self.options.kind;
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            // Row numbers are cheaper to put together than rows.
            let (sides, matches) = (self.sides(right, on), self.find(keys, on).await?);
            return match &self.options.filter {
                None => sides.unfiltered(kind, &matches).await,
                Some(filter) => {
                    let pairs =
                        sides.kept(matches.pairs(on).await?, filter, &self.options.evaluation).await?;
                    sides.filtered(kind, pairs).await
                }
            };
        }
        let probed = self.probed((u64::MAX, right), keys, on).await?;
        match probed.rows {
            Some(rows) => Ok(rows),
            None => self.left_rows(&probed.visited, right, on).await,
        }
    }

    /// Finds the partners of right rows.
    async fn find(&self, keys: &[DeviceArray], on: &Stream) -> Result<Matches> {
        self.table.find(&hashed_keys(keys, &self.options, on).await?, on).await
    }

    async fn probed(
        &self,
        (most, right): (u64, &DeviceBatch),
        keys: &[DeviceArray],
        on: &Stream,
    ) -> Result<Probed> {
        let (sides, kind) = (self.sides(right, on), self.options.kind);
        let mut visited = Visited { rows: !right.is_empty(), ..Visited::default() };
        if self.options.null_aware {
            let nulls = |keys: &[DeviceArray]| logical_null_count(&keys[0], on);
            if kind == JoinKind::LeftAnti {
                visited.nulls = nulls(keys).await? > 0;
            } else if nulls(&self.keys).await? > 0 {
                return Ok(Probed { rows: Some(right.slice(0, 0)?), visited });
            } else if !self.left.is_empty() {
                let valid = is_not_null(&keys[0], on).await?;
                let found = self.find(keys, on).await?.found(on).await?;
                let rows = sides.not_in(false, &valid, &found).await?;
                return Ok(Probed { rows: Some(rows), visited });
            }
        }
        let matches = self.find(keys, on).await?.at_most(most);
        let rows = match &self.options.filter {
            None => {
                if kind.has_rest() {
                    visited.marks = Some(matches.found_groups(on)?);
                }
                match kind.of_each_batch() {
                    Some(kind) => Some(sides.unfiltered(kind, &matches).await?),
                    None => None,
                }
            }
            Some(filter) => {
                let pairs = sides.kept(matches.pairs(on).await?, filter, &self.options.evaluation).await?;
                if kind.has_rest() {
                    visited.marks = Some(engine(on).mark(&pairs.left, self.left.len(), on)?);
                }
                match kind.of_each_batch() {
                    Some(kind) => Some(sides.filtered(kind, pairs).await?),
                    None => None,
                }
            }
        };
        Ok(Probed { rows, visited })
    }

    /// The left rows of a kind, when all right rows have been seen.
    async fn left_rows(&self, visited: &Visited, right: &DeviceBatch, on: &Stream) -> Result<DeviceBatch> {
        let sides = self.sides(right, on);
        if self.options.null_aware && !visited.rows {
            return Ok(self.left.clone());
        }
        if self.options.null_aware && visited.nulls {
            return self.left.slice(0, 0);
        }
        let marks = match (&visited.marks, &self.options.filter) {
            (Some(marks), None) => self.table.rows_of_groups(marks, on)?.await?,
            (Some(marks), Some(_)) => marks.clone(),
            (None, _) => engine(on).mark(&sides.no_rows()?, self.left.len(), on)?,
        };
        if self.options.null_aware {
            let valid = is_not_null(&self.keys[0], on).await?;
            return sides.not_in(true, &valid, &marks).await;
        }
        sides.of_left(self.options.kind, marks).await
    }
}

impl Visited {
    /// Notes that there was a right row, and whether any key was null.
    pub(super) fn saw(&mut self, nulls: bool) {
        self.rows = true;
        self.nulls |= nulls;
    }

    /// Notes what another knows of all right rows.
    pub(super) fn saw_as(&mut self, other: &Visited) {
        self.rows |= other.rows;
        self.nulls |= other.nulls;
    }

    /// The left rows that either of two sets of right batches has found.
    pub fn and(&self, other: &Visited, stream: &Stream) -> Pending<Visited> {
        let (rows, nulls) = (self.rows || other.rows, self.nulls || other.nulls);
        let (Some(marks), Some(others)) = (&self.marks, &other.marks) else {
            let marks = self.marks.clone().or_else(|| other.marks.clone());
            return Pending::known(Ok(Visited { marks, rows, nulls }));
        };
        let (both, on) = (vec![marks.clone(), others.clone()], stream.clone());
        Pending::begin(stream, async move {
            let marks = computed(nth(0) | nth(1), both, &on).await?;
            Ok(Visited { marks: Some(marks), rows, nulls })
        })
    }
}

/// Checks that keys are as long as their batch, and that the stream's device can reach the batch.
pub(super) fn check_side(side: &DeviceBatch, keys: &[DeviceArray], stream: &Stream) -> Result<()> {
    reach_all("join", side.columns(), stream)?;
    match keys.iter().find(|key| key.len() != side.len()) {
        None => Ok(()),
        Some(key) => {
            let problem = format!("{} rows, and keys for {}", side.len(), key.len());
            Err(Error::invalid("join", problem))
        }
    }
}

/// The keys that are equal in a table if those of a join are.
pub(super) async fn hashed_keys(
    keys: &[DeviceArray],
    options: &JoinOptions,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    match are_changed(keys, options) {
        false => Ok(keys.to_vec()),
        true => sql_keys(keys, stream).await,
    }
}

/// Whether keys are changed, so that those are equal that SQL says are equal.
fn are_changed(keys: &[DeviceArray], options: &JoinOptions) -> bool {
    options.evaluation.floats == FloatOrder::Sql
        && keys.iter().any(|key| sql_key(&nth(0), key.data_type()).is_some())
}

/// A batch without rows, on a stream's device.
pub(super) fn without_rows(schema: &SchemaRef, stream: &Stream) -> Result<DeviceBatch> {
    let columns = schema.fields().iter().map(|field| empty(field.data_type(), stream));
    DeviceBatch::try_new(schema.clone(), columns.collect::<Result<_>>()?, 0)
}
