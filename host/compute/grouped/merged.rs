//! The groups of a stream of batches.

use std::sync::Arc;

use arrow_schema::DataType;

use super::spilled::{LEVELS, Spilled, Task, divided};
use super::states::{Folds, State};
use super::{Grouped, Partial, empty};
use crate::compute::Spill;
use crate::compute::evaluated::begin;
use crate::compute::nullability::never_null;
use crate::expr::{Fold, Reduction};
use crate::{DeviceBatch, Result, Stream};

/// The groups of all batches so far.
pub(in crate::compute) struct Merged {
    grouped: Grouped,
    stream: Stream,
    /// The first are the merged ones; the others wait until they have as many rows.
    parts: Vec<Partial>,
    waiting: usize,
    /// The bytes of those that wait.
    waiting_bytes: usize,
    /// The bytes of all parts, if there is a limit.
    bytes: usize,
    /// The groups that were more than there is memory for.
    spilled: Option<Spilled>,
    pub spill: Option<Arc<dyn Spill>>,
}

/// Groups of fewer rows are not worth merging.
const WORTH: usize = 1 << 16;

/// Unless they hold more bytes.
const MUCH: usize = 64 << 20;

impl Merged {
    pub fn new(grouped: Grouped, stream: Stream) -> Merged {
        let (parts, spilled, spill) = (vec![], None, None);
        Merged { grouped, stream, parts, waiting: 0, waiting_bytes: 0, bytes: 0, spilled, spill }
    }

    /// Adds the groups of a batch.
    pub fn add(&mut self, part: Partial) -> Result<()> {
        let limit = self.grouped.limit;
        self.waiting += part.rows();
        self.waiting_bytes += part.bytes();
        self.bytes += limit.map_or(0, |_| part.bytes());
        self.parts.push(part);
        let full = limit.is_some_and(|limit| self.bytes > limit)
            || self.waiting_bytes > MUCH.max(2 * self.parts[0].bytes());
        if !full && self.waiting <= self.parts[0].rows().max(WORTH) {
            return Ok(());
        }
        self.merge()?;
        match self.parts.pop() {
            Some(merged) if limit.is_some_and(|limit| merged.bytes() > limit / 2) => {
                self.bytes = 0;
                self.spill(merged)
            }
            merged => {
                self.bytes = limit.and(merged.as_ref()).map_or(0, Partial::bytes);
                self.parts.extend(merged);
                Ok(())
            }
        }
    }

    fn merge(&mut self) -> Result<()> {
        (self.waiting, self.waiting_bytes) = (0, 0);
        if self.parts.len() > 1 {
            let parts = std::mem::take(&mut self.parts);
            self.parts.push(together(&self.grouped, parts, &self.stream)?);
        }
        Ok(())
    }

    fn spill(&mut self, merged: Partial) -> Result<()> {
        let spilled = self.spilled.get_or_insert_with(|| Spilled::new(&merged));
        let here = begin(&self.stream, merged.downloaded(self.stream.clone()))?.wait()?;
        spilled.add(here, self.spill.as_ref())
    }

    /// Returns the results for all batches: one batch, or several if groups were spilled.
    pub fn finish(mut self) -> Result<Finished> {
        self.merge()?;
        if let Some(spilled) = self.spilled.take() {
            if let Some(rest) = self.parts.pop() {
                self.spilled = Some(spilled);
                self.spill(rest)?;
                return self.finish();
            }
            let (grouped, stream, types) = (self.grouped, self.stream, spilled.types.clone());
            return Ok(Finished { grouped, stream, types, rest: spilled.into_tasks() });
        }
        let last = match self.parts.pop() {
            Some(merged) => merged,
            None => {
                let schema = &self.grouped.columns.schema;
                let columns = schema.fields().iter().map(|field| empty(field.data_type(), &self.stream));
                let none = DeviceBatch::try_new(schema.clone(), columns.collect::<Result<_>>()?, 0)?;
                begin(&self.stream, self.grouped.clone().partial(none, self.stream.clone()))?.wait()?
            }
        };
        let rest = vec![Task::Ready(last)];
        Ok(Finished { grouped: self.grouped, stream: self.stream, types: vec![], rest })
    }
}

/// Merges the groups of several parts.
fn together(grouped: &Grouped, parts: Vec<Partial>, stream: &Stream) -> Result<Partial> {
    let (grouped, on) = (grouped.clone(), stream.clone());
    let merged = begin(stream, async move {
        let mut merged = grouped.together(&parts, &on).await?;
        for (state, values) in grouped.states.iter().zip(&mut merged.states) {
            if matches!(state, State::Fold(Folds { fold: Reduction::Fold(Fold::Count), .. })) {
                *values = never_null(values)?;
            }
        }
        Ok(merged)
    });
    merged?.wait()
}

/// The results of groups, batch by batch.
pub(in crate::compute) struct Finished {
    grouped: Grouped,
    stream: Stream,
    /// The types of the columns of spilled groups on the device.
    types: Vec<DataType>,
    /// The tasks that are left, the last one first.
    rest: Vec<Task>,
}

impl Finished {
    fn results(&self, merged: Partial) -> Result<DeviceBatch> {
        begin(&self.stream, self.grouped.clone().finish(merged, self.stream.clone()))?.wait()
    }

    fn task(&mut self, task: Task) -> Result<Option<DeviceBatch>> {
        let (parts, level) = match task {
            Task::Ready(merged) => return self.results(merged).map(Some),
            Task::Spilled(parts, level) => (parts, level),
        };
        let bytes: usize = parts.iter().map(Partial::bytes).sum();
        if self.grouped.limit.is_some_and(|limit| bytes > limit) && level < LEVELS {
            self.rest.extend(begin(&Stream::cpu(), divided(parts, level))?.wait()?);
            return Ok(None);
        }
        let mut there = Vec::with_capacity(parts.len());
        for part in parts {
            let (types, on) = (self.types.clone(), self.stream.clone());
            let uploaded = async move { part.uploaded(&types, &on).await };
            there.push(begin(&self.stream, uploaded)?.wait()?);
        }
        if there.is_empty() {
            return Ok(None);
        }
        self.results(together(&self.grouped, there, &self.stream)?).map(Some)
    }
}

impl Iterator for Finished {
    type Item = Result<DeviceBatch>;

    fn next(&mut self) -> Option<Result<DeviceBatch>> {
        loop {
            let task = self.rest.pop()?;
            if let Some(made) = self.task(task).transpose() {
                return Some(made);
            }
        }
    }
}
