//! The left side of a join of streams, of which a device may not have memory for all rows.
//!
//! The one idea: if rows are more than the limit, both sides are divided by the same hash of their keys, and
//! wait in host memory. Then parts are joined one after the other: no row has a partner in another part.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::arrays::unnamed;
use super::host_rows::{batch_bytes, bounded};
use super::join::{PreparedJoin, Visited, check_side, hashed_keys};
use super::join_options::JoinOptions;
use super::logical_null_count;
use super::parted_rows::PartedRows;
use super::sorting::together;
use super::spill::Spill;
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Collects the left side of a join.
pub struct JoinBuild {
    options: JoinOptions,
    memory: Option<usize>,
    spill: Option<Arc<dyn Spill>>,
    stream: Stream,
    /// The rows on the device, and their keys. If others are spilled, these are to be.
    held: VecDeque<(DeviceBatch, DeviceBatch)>,
    bytes: usize,
    rows: usize,
    spilled: Option<Spilled>,
}

/// Left rows in host memory.
struct Spilled {
    /// The columns, and then the keys.
    rows: PartedRows,
    /// The number of columns that are no keys.
    columns: usize,
    /// The bytes that the parts may take that are joined together.
    bytes: usize,
    /// Whether any key is null; only known where it matters.
    nulls: bool,
}

impl JoinBuild {
    /// Joins with these options.
    pub fn new(options: &JoinOptions, stream: &Stream) -> JoinBuild {
        let (options, stream) = (options.clone(), stream.clone());
        let (memory, spill, held) = (None, None, VecDeque::new());
        JoinBuild { options, memory, spill, stream, held, bytes: 0, rows: 0, spilled: None }
    }

    /// Spills the rows of both sides to host memory if the left ones take more than so many bytes, or more
    /// than 1 GiB if a column has offsets of 32 bits: then rows come in another order. To join parts takes
    /// about four times as many.
    pub fn memory(self, bytes: usize) -> JoinBuild {
        JoinBuild { memory: Some(bytes), ..self }
    }

    /// Has spilled rows of both sides kept elsewhere than in host memory.
    pub fn spill_to(self, spill: Arc<dyn Spill>) -> JoinBuild {
        JoinBuild { spill: Some(spill), ..self }
    }

    pub(super) fn limited(self, memory: Option<usize>) -> JoinBuild {
        JoinBuild { memory, ..self }
    }

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of spilled rows.
    pub fn spilled_bytes(&self) -> usize {
        self.spilled.as_ref().map_or(0, |spilled| spilled.rows.bytes())
    }

    /// Adds left rows and their keys. All batches have the same columns; the first may have no rows. Rows are
    /// added even if spilling them fails, or is abandoned: the next call spills them.
    pub async fn push(&mut self, left: &DeviceBatch, keys: &[DeviceArray]) -> Result<()> {
        check_side(left, keys, &self.stream)?;
        // A batch without rows says only which columns there are.
        if left.is_empty() && (self.spilled.is_some() || !self.held.is_empty()) {
            return Ok(());
        }
        if self.rows == 0 {
            self.held.clear();
        }
        self.rows += left.len();
        // Left rows are not spilled before there are any: right rows with null keys depend on that. Buffers
        // of a batch without rows may be large.
        let keys = unnamed(keys.to_vec())?;
        if self.held.is_empty() && self.spilled.is_none() {
            let columns = left.columns().iter().chain(keys.columns());
            self.memory = bounded(self.memory, columns.map(DeviceArray::data_type));
        }
        if self.spilled.is_none() && !left.is_empty() {
            self.bytes += self.memory.map_or(0, |_| batch_bytes(left) + batch_bytes(&keys));
        }
        self.held.push_back((left.clone(), keys));
        if let Some(memory) = self.memory.filter(|memory| self.bytes > *memory && self.spilled.is_none()) {
            let columns = left.columns().len();
            let rows = PartedRows::new(self.spill.clone());
            self.spilled = Some(Spilled { rows, columns, bytes: memory / 2, nulls: false });
        }
        self.spill_held().await
    }

    /// Spills the rows on the device, if others are spilled.
    async fn spill_held(&mut self) -> Result<()> {
        while self.spilled.is_some()
            && let Some((left, keys)) = self.held.front().cloned()
        {
            self.spill(&left, &keys).await?;
            self.held.pop_front();
        }
        Ok(())
    }

    async fn spill(&mut self, left: &DeviceBatch, keys: &DeviceBatch) -> Result<()> {
        let Some(spilled) = &mut self.spilled else { return Ok(()) };
        let stream = &self.stream;
        if self.options.null_aware {
            spilled.nulls |= logical_null_count(&keys.columns()[0], stream).await? > 0;
        }
        let hashed = hashed_keys(keys.columns(), &self.options, stream).await?;
        spilled.rows.push(&beside(left, keys)?, &hashed, stream).await
    }

    /// Prepares the join for right rows from some streams. Each has a [`JoinProbe`](super::JoinProbe).
    pub async fn finish(mut self, probes: usize) -> Result<BuiltJoin> {
        self.spill_held().await?;
        let JoinBuild { options, spill, stream, held, rows, spilled, .. } = self;
        let (form, ranges) = match spilled {
            Some(spilled) => {
                let ranges = spilled.rows.ranges(spilled.bytes);
                (Form::Parted(spilled), ranges)
            }
            None => {
                let (left, keys): (Vec<_>, Vec<_>) = held.into_iter().unzip();
                let none = || Error::invalid("join", "no left batch");
                let left = together(&left, &stream).await?.ok_or_else(none)?;
                let keys = together(&keys, &stream).await?.ok_or_else(none)?;
                let prepared = PreparedJoin::new(&left, keys.columns(), &options, &stream);
                (Form::Whole(prepared.await?), Vec::from([Range { start: 0, end: 1 }]))
            }
        };
        let ended = Mutex::new(ranges.iter().map(|_| vec![]).collect());
        Ok(BuiltJoin { form, ranges, options, spill, rows, probes, ended })
    }
}

/// The left side of a join of streams, shared by the [probes](super::JoinProbe) of its right sides.
pub struct BuiltJoin {
    form: Form,
    /// The parts that are joined together.
    pub(super) ranges: Vec<Range<usize>>,
    pub(super) options: JoinOptions,
    pub(super) spill: Option<Arc<dyn Spill>>,
    rows: usize,
    probes: usize,
    /// For each range, the left rows that the probes that have ended it have found.
    ended: Mutex<Vec<Vec<Visited>>>,
}

enum Form {
    Whole(PreparedJoin),
    Parted(Spilled),
}

impl BuiltJoin {
    /// The number of left rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether any left row can have a partner, as far as that is known.
    pub fn has_keys(&self) -> bool {
        match &self.form {
            Form::Whole(prepared) => prepared.has_keys(),
            Form::Parted(_) => true,
        }
    }

    /// The keys of the left rows; `None` if they are spilled.
    pub fn keys(&self) -> Option<&[DeviceArray]> {
        match &self.form {
            Form::Whole(prepared) => Some(prepared.keys()),
            Form::Parted(_) => None,
        }
    }

    /// Whether the rows are in host memory, in parts.
    pub fn is_spilled(&self) -> bool {
        matches!(self.form, Form::Parted(_))
    }

    /// Whether a spilled left side has a null key, if that matters.
    pub(super) fn spilled_nulls(&self) -> bool {
        matches!(&self.form, Form::Parted(spilled) if spilled.nulls)
    }

    /// The bytes that parts of a spilled side may take; no limit if it is not spilled.
    pub(super) fn part_bytes(&self) -> usize {
        match &self.form {
            Form::Whole(_) => usize::MAX,
            Form::Parted(spilled) => spilled.bytes,
        }
    }

    /// The rows of a range, prepared.
    pub(super) async fn prepared(&self, range: usize, stream: &Stream) -> Result<PreparedJoin> {
        match &self.form {
            Form::Whole(prepared) => Ok(prepared.clone()),
            Form::Parted(spilled) => {
                let rows = spilled.rows.uploaded(&self.ranges[range], stream).await?;
                let (left, keys) = apart(&rows, spilled.columns)?;
                PreparedJoin::new(&left, &keys, &self.options, stream).await
            }
        }
    }

    /// Ends a range for one probe. For the last one, returns the left rows that all have found.
    pub(super) fn end(&self, range: usize, found: Visited) -> Option<Vec<Visited>> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let all = &mut ended[range];
        all.push(found);
        (all.len() == self.probes).then(|| std::mem::take(all))
    }
}

/// The columns of both batches.
pub(super) fn beside(left: &DeviceBatch, keys: &DeviceBatch) -> Result<DeviceBatch> {
    let fields = left.schema().fields().iter().chain(keys.schema().fields()).cloned();
    let schema = arrow_schema::Schema::new(fields.collect::<Vec<_>>());
    DeviceBatch::try_new(schema.into(), [left.columns(), keys.columns()].concat(), left.len())
}

/// The first columns, and the others.
pub(super) fn apart(rows: &DeviceBatch, first: usize) -> Result<(DeviceBatch, Vec<DeviceArray>)> {
    let (columns, keys) = rows.columns().split_at(first);
    let schema = arrow_schema::Schema::new(rows.schema().fields()[..first].to_vec());
    Ok((DeviceBatch::try_new(schema.into(), columns.to_vec(), rows.len())?, keys.to_vec()))
}
