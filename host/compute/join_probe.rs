//! The right side of a join of streams.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::arrays::unnamed;
use super::host_rows::{HostRows, uploaded};
use super::join::{PreparedJoin, Probed, Visited, check_side, hashed_keys};
use super::join_build::{BuiltJoin, apart, beside};
use super::join_options::JoinKind;
use super::parted_rows::PartedRows;
use super::{filter, is_not_null, logical_null_count};
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Right rows that have more pairs than this, and more than so many each, are joined in halves: the pairs of
/// a common key would fill the memory.
const PAIRS: u64 = 1 << 20;
const PAIRS_OF_A_ROW: u64 = 16;

/// Joins the batches of one right stream with a left side. Without a limit of memory, rows come in the
/// order of [`join`](super::join()) for each batch. Left rows that depend on all right ones come at the end,
/// from the probe that ends last.
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::record_batch;
/// use bowstring::compute::{JoinBuild, JoinKind, JoinOptions, JoinProbe};
/// use bowstring::{DeviceBatch, Stream};
/// # async fn joined() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = Stream::cpu();
/// let options = JoinOptions { kind: JoinKind::Left, ..JoinOptions::default() };
/// let mut build = JoinBuild::new(&options, &stream).memory(1 << 30);
/// let left = DeviceBatch::try_from(&record_batch!(("id", Int32, [1, 2]), ("name", Utf8, ["a", "b"]))?)?;
/// build.push(&left, &left.columns()[..1]).await?;
/// let built = Arc::new(build.finish(1).await?);
/// let right = DeviceBatch::try_from(&record_batch!(("of", Int32, [2, 2, 3]))?)?;
/// let mut probe = JoinProbe::new(&built, right.schema(), &stream);
/// probe.push(&right, right.columns()).await?;
/// probe.end()?;
/// while let Some(rows) = probe.next().await? {
///     println!("{} rows", rows.len());
/// }
/// # Ok(())
/// # }
/// ```
pub struct JoinProbe {
    built: Arc<BuiltJoin>,
    right: SchemaRef,
    stream: Stream,
    /// Right rows on the device, and their keys.
    waiting: VecDeque<(DeviceBatch, Vec<DeviceArray>)>,
    /// Right rows in host memory: the columns, and then the keys.
    spilled: PartedRows,
    /// Pieces of these, in the present range, that are not joined yet.
    pieces: VecDeque<Vec<HostRows>>,
    /// The present range of parts, and its left rows, once they are needed.
    range: usize,
    prepared: Option<PreparedJoin>,
    visited: Visited,
    /// The left rows that all probes have found in the present range, if this one has ended it: none unless
    /// it is the last.
    found: Option<Vec<Visited>>,
    /// The marks of all right rows, whatever their part: whether there are any, and nulls.
    all: Visited,
    ended: bool,
}

impl JoinProbe {
    /// Joins batches of a schema.
    pub fn new(built: &Arc<BuiltJoin>, right: &SchemaRef, stream: &Stream) -> JoinProbe {
        JoinProbe {
            built: built.clone(),
            right: right.clone(),
            stream: stream.clone(),
            waiting: VecDeque::new(),
            spilled: PartedRows::new(built.spill.clone()),
            pieces: VecDeque::new(),
            range: 0,
            prepared: None,
            visited: Visited::default(),
            found: None,
            all: Visited::default(),
            ended: false,
        }
    }

    /// The bytes of spilled rows.
    pub fn spilled_bytes(&self) -> usize {
        self.spilled.bytes()
    }

    /// Adds right rows and their keys. None are added if the call fails or is abandoned.
    pub async fn push(&mut self, right: &DeviceBatch, keys: &[DeviceArray]) -> Result<()> {
        check_side(right, keys, &self.stream)?;
        if self.ended {
            return Err(Error::invalid("join", "right rows after their end"));
        }
        if !self.built.is_spilled() {
            self.waiting.push_back((right.clone(), keys.to_vec()));
            return Ok(());
        }
        if !right.is_empty() {
            self.spill(right, &unnamed(keys.to_vec())?).await?;
        }
        Ok(())
    }

    async fn spill(&mut self, right: &DeviceBatch, keys: &DeviceBatch) -> Result<()> {
        let (stream, options) = (&self.stream, &self.built.options);
        let columns = right.columns().len();
        let (mut rows, mut nulls) = (beside(right, keys)?, false);
        if options.null_aware {
            nulls = logical_null_count(&keys.columns()[0], stream).await? > 0;
            if options.kind == JoinKind::RightAnti {
                if self.built.spilled_nulls() {
                    self.all.saw(nulls);
                    return Ok(());
                }
                // A part without left rows knows nothing of those in others, which a null key may equal.
                rows = filter(&rows, &is_not_null(&keys.columns()[0], stream).await?, stream).await?;
            }
        }
        let (_, keys) = apart(&rows, columns)?;
        let hashed = hashed_keys(&keys, options, stream).await?;
        self.spilled.push(&rows, &hashed, stream).await?;
        // Rows that could not be added have not been seen.
        self.all.saw(nulls);
        Ok(())
    }

    /// Says that no more right rows come.
    pub fn end(&mut self) -> Result<()> {
        if !self.ended {
            self.begin_range(0)?;
            self.ended = true;
        }
        Ok(())
    }

    /// Returns the next rows that are known; `None` if there are none until more is pushed, or at all. After
    /// a call that failed or was abandoned, the next one returns its rows.
    pub async fn next(&mut self) -> Result<Option<DeviceBatch>> {
        // Whatever is taken off a list has been joined by then.
        loop {
            let rows = if !self.waiting.is_empty() {
                let rows = self.joined().await?;
                self.waiting.pop_front();
                rows
            } else if let Some(piece) = self.pieces.front() {
                match uploaded(piece, &self.stream).await {
                    Ok(rows) => {
                        self.waiting.push_back(apart(&rows, self.right.fields().len())?);
                        self.pieces.pop_front();
                    }
                    Err(error @ (Error::Interrupted | Error::OutOfMemory { .. })) => return Err(error),
                    Err(error) if piece.len() < 2 => return Err(error),
                    // Keys and ends of few bits may number the rows of each batch, but not of all.
                    Err(_) => {
                        let parts = self.pieces.pop_front().unwrap_or_default();
                        parts.into_iter().rev().for_each(|part| self.pieces.push_front(vec![part]));
                    }
                }
                continue;
            } else if self.ended && self.range < self.built.ranges.len() {
                let rest = self.rest().await?;
                self.begin_range(self.range + 1)?;
                rest
            } else {
                return Ok(None);
            };
            if let Some(rows) = rows.filter(|rows| !rows.is_empty()) {
                return Ok(Some(rows));
            }
        }
    }

    fn begin_range(&mut self, range: usize) -> Result<()> {
        if let Some(parts) = self.built.ranges.get(range) {
            self.pieces = self.spilled.pieces(parts, self.built.part_bytes())?.into();
        }
        (self.range, self.prepared, self.found) = (range, None, None);
        Ok(())
    }

    async fn prepared(&mut self) -> Result<PreparedJoin> {
        if self.prepared.is_none() {
            self.prepared = Some(self.built.prepared(self.range, &self.stream).await?);
        }
        self.prepared.clone().ok_or_else(|| Error::invalid("join", "no left rows"))
    }

    /// Joins the first right rows that wait. If the result is too large for memory, for the offsets of a
    /// column, or to be made at once, that of the first half: then the halves wait in their place.
    async fn joined(&mut self) -> Result<Option<DeviceBatch>> {
        let prepared = self.prepared().await?;
        while let Some((right, keys)) = self.waiting.front() {
            match prepared.probe_for(most_pairs(right.len()), right, keys, &self.stream).await {
                Ok(Probed { rows, visited }) => {
                    self.visited = self.visited.and(&visited, &self.stream).await?;
                    return Ok(rows);
                }
                Err(error) if right.len() > 1 && is_too_large(&error) => {
                    let (rows, first) = (right.len(), right.len() / 2);
                    let halves = |from, len| {
                        let keys = keys.iter().map(|key| key.slice(from, len)).collect::<Result<Vec<_>>>()?;
                        Ok((right.slice(from, len)?, keys))
                    };
                    let (here, later) = (halves(0, first)?, halves(first, rows - first)?);
                    self.waiting.pop_front();
                    self.waiting.push_front(later);
                    self.waiting.push_front(here);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The left rows of the present range that are known when all right rows have been seen; the probe that
    /// ends the range last returns them.
    async fn rest(&mut self) -> Result<Option<DeviceBatch>> {
        if self.found.is_none() {
            let mut found = std::mem::take(&mut self.visited);
            found.saw_as(&self.all);
            self.found = Some(self.built.end(self.range, found).unwrap_or_default());
        }
        let all = self.found.as_deref().unwrap_or_default();
        if all.is_empty() || !self.built.options.kind.has_rest() {
            return Ok(None);
        }
        let mut visited = Visited::default();
        for one in all {
            visited = visited.and(one, &self.stream).await?;
        }
        let prepared = self.prepared().await?;
        let rest = prepared.rest(&visited, &self.right, &self.stream);
        rest.await
    }
}

/// The most pairs that are made of so many right rows at once.
fn most_pairs(rows: usize) -> u64 {
    match rows {
        0 | 1 => u64::MAX,
        _ => (rows as u64).saturating_mul(PAIRS_OF_A_ROW).max(PAIRS),
    }
}

/// Whether an error says that a result was too large, so that those of fewer rows may be small enough.
fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::OutOfMemory { .. } | Error::TooManyPairs { .. }) || error.is_too_long()
}
