//! The groups of a stream of batches.

use super::states::{Folds, State};
use super::{Grouped, Partial, empty};
use crate::compute::evaluated::begin;
use crate::compute::nullability::never_null;
use crate::expr::{Fold, Reduction};
use crate::{DeviceBatch, Error, Result, Stream};

/// The groups of all batches so far.
pub(in crate::compute) struct Merged {
    grouped: Grouped,
    stream: Stream,
    /// The first are the merged ones; the others wait until they have as many rows.
    parts: Vec<Partial>,
    waiting: usize,
}

/// Groups of fewer rows are not worth merging.
const WORTH: usize = 1 << 16;

impl Merged {
    pub fn new(grouped: Grouped, stream: Stream) -> Merged {
        Merged { grouped, stream, parts: vec![], waiting: 0 }
    }

    /// Adds the groups of a batch.
    pub fn add(&mut self, part: Partial) -> Result<()> {
        self.waiting += part.rows();
        self.parts.push(part);
        if self.waiting > self.parts[0].rows().max(WORTH) { self.merge() } else { Ok(()) }
    }

    fn merge(&mut self) -> Result<()> {
        self.waiting = 0;
        if self.parts.len() > 1 {
            let (grouped, parts, on) =
                (self.grouped.clone(), std::mem::take(&mut self.parts), self.stream.clone());
            let merged = begin(&self.stream, async move {
                let mut merged = grouped.together(&parts, &on).await?;
                for (state, values) in grouped.states.iter().zip(&mut merged.states) {
                    if matches!(state, State::Fold(Folds { fold: Reduction::Fold(Fold::Count), .. })) {
                        *values = never_null(values)?;
                    }
                }
                Ok(merged)
            });
            self.parts.push(merged?.wait()?);
        }
        Ok(())
    }

    /// Returns the results for all batches.
    pub fn finish(mut self) -> Result<DeviceBatch> {
        if self.parts.is_empty() {
            let schema = &self.grouped.columns.schema;
            let columns = schema.fields().iter().map(|field| empty(field.data_type(), &self.stream));
            let none = DeviceBatch::try_new(schema.clone(), columns.collect::<Result<_>>()?, 0)?;
            let none = self.grouped.clone().partial(none, self.stream.clone());
            self.parts.push(begin(&self.stream, none)?.wait()?);
        }
        self.merge()?;
        let Some(merged) = self.parts.pop() else { return Err(Error::invalid("query", "no groups")) };
        let finished = self.grouped.clone().finish(merged, self.stream.clone());
        begin(&self.stream, finished)?.wait()
    }
}
