//! The groups of some rows.

use std::sync::Arc;

use arrow_schema::DataType;

use crate::compute::arrays::bytes_of;
use crate::compute::compacted::{compacted, with_own};
use crate::compute::evaluated::begin;
use crate::compute::host_rows::{restored, retyped, spilled};
use crate::compute::long_runs::{as_before, concat_long};
use crate::compute::spill::{Spill, moved};
use crate::compute::{TakeOptions, partition_by_hash, take};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// The groups of some rows.
#[derive(Clone, Debug)]
pub(in crate::compute) struct Partial {
    /// The keys of each group.
    pub keys: DeviceBatch,
    /// The states of each group.
    pub states: Vec<DeviceArray>,
    /// The rows that are kept, in their order. Their first columns are keys.
    pub kept: Vec<DeviceBatch>,
}

impl Partial {
    /// The number of rows in memory.
    pub fn rows(&self) -> usize {
        self.keys.len() + self.kept.iter().map(DeviceBatch::len).sum::<usize>()
    }

    /// The bytes in memory.
    pub fn bytes(&self) -> usize {
        self.columns().map(bytes_of).sum()
    }

    /// The groups of several parts, one after the other. Ends of runs may be longer than those of the parts,
    /// for which [`like`](Self::like) is.
    pub async fn joined(parts: &[Partial], stream: &Stream) -> Result<Partial> {
        let keys = concat_long(&parts.iter().map(|part| &part.keys).collect::<Vec<_>>(), stream).await?;
        let mut all = Partial { keys, states: vec![], kept: vec![] };
        for i in 0..parts.first().map_or(0, |part| part.states.len()) {
            let states: Vec<_> = parts.iter().map(|part| &part.states[i]).collect();
            all.states.push(concat_long(&states, stream).await?);
        }
        for i in 0..parts.first().map_or(0, |part| part.kept.len()) {
            let kept: Vec<_> = parts.iter().map(|part| &part.kept[i]).collect();
            all.kept.push(concat_long(&kept, stream).await?);
        }
        Ok(all)
    }

    /// The types of all columns.
    pub fn types(&self) -> Vec<DataType> {
        self.columns().map(|column| column.data_type().clone()).collect()
    }

    fn columns(&self) -> impl Iterator<Item = &DeviceArray> {
        let kept = self.kept.iter().flat_map(DeviceBatch::columns);
        self.keys.columns().iter().chain(&self.states).chain(kept)
    }

    /// The same without the contents of rows that are in no group.
    pub async fn compacted(self, stream: &Stream) -> Result<Partial> {
        let mut columns = vec![];
        for column in self.columns() {
            columns.push(compacted(column.clone(), stream).await?);
        }
        self.with(columns)
    }

    /// The same in host memory.
    pub async fn downloaded(self, stream: Stream) -> Result<Partial> {
        let mut columns = vec![];
        for column in self.columns() {
            columns.push(spilled(column, &stream).await?);
        }
        self.with(columns)
    }

    /// Moves the columns to a place for rows that wait.
    pub fn spilled(self, spill: Option<&Arc<dyn Spill>>) -> Result<Partial> {
        let columns = self.columns().cloned().collect();
        self.with(moved(columns, spill)?)
    }

    /// The same on a stream's device, with columns of these types.
    pub async fn uploaded(&self, types: &[DataType], stream: &Stream) -> Result<Partial> {
        let mut columns = vec![];
        for (column, of) in self.columns().zip(types) {
            columns.push(restored(column, of, stream).await?);
        }
        self.with(columns)
    }

    /// The same with columns of the types that those of another have.
    pub async fn like(self, other: &Partial, stream: &Stream) -> Result<Partial> {
        if self.columns().zip(other.columns()).all(|(own, other)| own.data_type() == other.data_type()) {
            return Ok(self);
        }
        let mut columns = vec![];
        for (column, like) in self.columns().zip(other.columns()) {
            columns.push(as_before(column, like.data_type(), stream).await?);
        }
        self.with(columns)
    }

    /// The same with other columns.
    fn with(&self, columns: Vec<DeviceArray>) -> Result<Partial> {
        let mut columns = columns.into_iter();
        let mut next = |count: usize| columns.by_ref().take(count).collect::<Vec<_>>();
        let keys = retyped(&self.keys, next(self.keys.columns().len()))?;
        let states = next(self.states.len());
        let kept = self.kept.iter().map(|kept| retyped(kept, next(kept.columns().len())));
        Ok(Partial { keys, states, kept: kept.collect::<Result<_>>()? })
    }

    /// Divides groups in host memory among parts that hashes of their keys choose. Returns the parts that
    /// have any, with their numbers. Each has memory of its own.
    pub fn divided(&self, parts: usize) -> Result<Vec<(usize, Partial)>> {
        let (here, plain) = (Stream::cpu(), TakeOptions::default());
        let keys = self.keys.columns().len();
        // Taken rows share dictionaries and views: in each part these would be counted, and kept, as a whole.
        let own = |taken: DeviceArray| {
            let here = here.clone();
            begin(&here.clone(), async move { with_own(taken, &here).await })?.wait()
        };
        let own_rows = |taken: DeviceBatch| {
            let columns = taken.columns().iter().cloned().map(own).collect::<Result<_>>()?;
            retyped(&taken, columns)
        };
        let divide = |rows: &DeviceBatch| partition_by_hash(&rows.columns()[..keys], parts, &here).wait();
        let groups = divide(&self.keys)?;
        let kept = self.kept.iter().map(divide).collect::<Result<Vec<_>>>()?;
        let part = |part: usize| {
            let rows = groups.rows(part)?;
            let states = self.states.iter().map(|state| own(take(state, &rows, &plain, &here).wait()?));
            let kept = self.kept.iter().zip(&kept);
            let kept =
                kept.map(|(kept, parts)| own_rows(take(kept, &parts.rows(part)?, &plain, &here).wait()?));
            let made = Partial {
                keys: own_rows(take(&self.keys, &rows, &plain, &here).wait()?)?,
                states: states.collect::<Result<_>>()?,
                kept: kept.collect::<Result<_>>()?,
            };
            Ok((part, made))
        };
        // Rows are kept of groups only.
        let some = (0..parts).filter(|part| groups.starts()[*part] < groups.starts()[part + 1]);
        some.map(part).collect()
    }
}
