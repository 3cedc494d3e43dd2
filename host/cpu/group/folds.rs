//! Folds of the values of groups.
//!
//! The one idea: a fold has a state for each group. If the states of all groups fit a cache, each thread
//! folds a range of rows into states of its own, which are merged; otherwise each thread folds all rows of a
//! range of groups. Only exact folds are merged, so results do not depend on the number of threads. Sums of
//! floats are never merged.

use arrow_schema::DataType;

use super::chosen::{Folds, fold_of};
use super::floats::{self, Float};
use super::folders::{Bitwise, Folder, Least};
use super::numbers;
use super::rows::{Folded, Rows};
use crate::array::{Bitmap, Buffer, DeviceArray, Parts};
use crate::cpu::hashed::RANGE;
use crate::cpu::intrinsics::{AHEAD, prefetch};
use crate::cpu::rows::CHUNK;
use crate::cpu::{admitted, memory, rows};
use crate::device::{HostMemory, HostPool, interrupt};
use crate::engine::{GroupFold, Groups};
use crate::expr::Reduction;
use crate::rules::{folded_type, words};
use crate::threads::{among_threads, each_part, here};
use crate::{Error, Pending, Result, Stream};

/// The values that are fetched together.
const BLOCK: usize = 64;

/// The bytes of states that a thread has of its own.
const OWN: usize = 4 << 20;

/// Folds values of each group.
pub(in crate::cpu) fn fold_groups(
    folds: &[GroupFold],
    groups: &Groups,
    stream: &Stream,
) -> Result<Pending<Vec<DeviceArray>>> {
    let pool = stream.device().host_pool();
    let folded = folds.iter().map(|one| folded(one, groups, pool)).collect();
    Ok(Pending::known(folded))
}

fn folded(one: &GroupFold, groups: &Groups, pool: &HostPool) -> Result<DeviceArray> {
    let ids = admitted(&groups.ids)?;
    let numbers = memory::bytes(&ids.buffers()[0]);
    let ids = &memory::plain::<u32>(numbers).expect("our own memory")[ids.offset()..][..ids.len()];
    let values = one.values.as_ref().map(admitted).transpose()?;
    let from = values.as_ref().map_or(&DataType::Null, |values| values.data_type());
    let unfit = || Error::invalid("aggregate", format!("{:?} of {from}", one.fold));
    let to = folded_type(one.fold, from, one.wraps).ok_or_else(unfit)?;
    let rows = Rows {
        ids,
        groups: groups.firsts.len(),
        values: values.as_deref(),
        valid: values.as_deref().and_then(rows::validity),
        pool,
    };
    among_threads(ids.len() > RANGE, |_| {
        let (states, valid) = match one.fold {
            Reduction::Fold(fold) => fold_of(&rows, fold, one.wraps, from)?.ok_or_else(unfit)?,
            Reduction::Bits(bits) => match from.primitive_width().ok_or_else(unfit)? {
                1 => rows.folded(&Bitwise::<1>(bits))?,
                2 => rows.folded(&Bitwise::<2>(bits))?,
                4 => rows.folded(&Bitwise::<4>(bits))?,
                _ => rows.folded(&Bitwise::<8>(bits))?,
            },
            Reduction::First => numbered(&rows, false)?,
            Reduction::Last => numbered(&rows, true)?,
        };
        let mut parts = Parts::new(to, rows.groups);
        parts.buffers = vec![states];
        if let Some(seen) = valid {
            (parts.validity, parts.null_count) = validity_of(&seen, rows.groups, pool)?;
        }
        DeviceArray::made(parts, true)
    })
}

/// Finds the first or the last row that is valid, of each group.
fn numbered(rows: &Rows<'_>, last: bool) -> Result<Folded> {
    let numbers = numbers(rows.ids.len(), rows.pool)?;
    let rows = Rows { values: Some(&numbers), ..*rows };
    rows.least(&Least::<4>::new(&words(&DataType::UInt32).expect("a number")[0], last))
}

/// The states of groups, and a byte for each: whether it has a value. `None` if all have.
type States = (HostMemory, Option<HostMemory>);

impl Folds for Rows<'_> {
    fn folded<F: Folder<W>, const W: usize>(&self, folder: &F) -> Result<Folded> {
        let (states, seen) = self.states(folder)?;
        Ok((states.freeze(self.groups * size_of::<F::State>()), seen))
    }

    fn least<const W: usize>(&self, folder: &Least<W>) -> Result<Folded> {
        let (states, seen) = self.states(folder)?;
        Ok((values_of_keys(folder, &states, self.groups, self.pool)?, seen))
    }

    fn floats<F: Float<W>, const W: usize>(&self) -> Result<Folded> {
        floats::sums::<F, W>(self)
    }
}

impl Rows<'_> {
    fn states<F: Folder<W>, const W: usize>(&self, folder: &F) -> Result<States> {
        let values = if F::READS { self.values::<W>() } else { &[] };
        let fold = |rows: std::ops::Range<usize>, first: u32, groups: usize| {
            let mut states = self.pool.alloc(groups * size_of::<F::State>())?;
            let own = &mut memory::values_mut::<F::State>(&mut states)[..groups];
            own.fill(folder.empty());
            let mut seen = match self.valid {
                Some(_) => Some(memory::zeroed(groups, self.pool)?),
                None => None,
            };
            let marks = seen.as_mut().map(|seen| &mut seen.bytes_mut()[..groups]);
            self.fold(folder, values, rows, first, (own, marks))?;
            Ok((states, seen))
        };
        let (rows, threads) = (self.ids.len(), here());
        if threads == 1 || rows <= RANGE {
            return fold(0..rows, 0, self.groups);
        }
        if self.groups * size_of::<F::State>() <= OWN {
            let part = rows.div_ceil(threads);
            let parts = (0..rows).step_by(part).map(|first| first..rows.min(first + part));
            let mut parts = each_part(parts, |rows| fold(rows, 0, self.groups))?.into_iter();
            let Some(first) = parts.next() else { return fold(0..0, 0, self.groups) };
            return parts.try_fold(first?, |merged, part| Ok(merge(folder, merged, part?, self.groups)));
        }
        let part = self.groups.div_ceil(threads);
        let parts = (0..self.groups).step_by(part).map(|first| first..self.groups.min(first + part));
        let made = each_part(parts, |groups| fold(0..rows, groups.start as u32, groups.len()))?;
        let mut states = self.pool.alloc(self.groups * size_of::<F::State>())?;
        let mut seen = if self.valid.is_some() { Some(self.pool.alloc(self.groups)?) } else { None };
        let mut first = 0;
        for (i, made) in made.into_iter().enumerate() {
            let (own, own_seen) = made?;
            let len = part.min(self.groups - i * part);
            let from = &memory::plain::<F::State>(own.bytes()).expect("our own memory")[..len];
            memory::values_mut::<F::State>(&mut states)[first..first + len].copy_from_slice(from);
            if let (Some(seen), Some(own)) = (&mut seen, own_seen) {
                seen.bytes_mut()[first..first + len].copy_from_slice(&own.bytes()[..len]);
            }
            first += len;
        }
        Ok((states, seen))
    }

    /// Folds some rows into the states of the groups from `first` on; rows of other groups are left out.
    fn fold<F: Folder<W>, const W: usize>(
        &self,
        folder: &F,
        values: &[[u8; W]],
        rows: std::ops::Range<usize>,
        first: u32,
        (states, mut seen): (&mut [F::State], Option<&mut [u8]>),
    ) -> Result<()> {
        for start in rows.clone().step_by(CHUNK) {
            interrupt::check()?;
            let rows = start..rows.end.min(start + CHUNK);
            let ids = &self.ids[rows.clone()];
            match (&self.valid, &mut seen) {
                (Some(valid), Some(seen)) => {
                    for (row, id) in rows.zip(ids) {
                        let group = id.wrapping_sub(first) as usize;
                        if group < states.len() && valid.get(row) {
                            let value = values.get(row).copied().unwrap_or([0; W]);
                            states[group] = folder.add(states[group], value);
                            seen[group] = 1;
                        }
                    }
                }
                _ if F::READS => {
                    for (ids, values) in ids.chunks(BLOCK).zip(values[rows].chunks(BLOCK)) {
                        if let Some(block) = values.first_chunk::<BLOCK>() {
                            prefetch(block, AHEAD);
                        }
                        for (id, value) in ids.iter().zip(values) {
                            if let Some(state) = states.get_mut(id.wrapping_sub(first) as usize) {
                                *state = folder.add(*state, *value);
                            }
                        }
                    }
                }
                _ => {
                    for id in ids {
                        if let Some(state) = states.get_mut(id.wrapping_sub(first) as usize) {
                            *state = folder.add(*state, [0; W]);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the values that keys stand for.
pub(super) fn values_of_keys<const W: usize>(
    folder: &Least<W>,
    keys: &HostMemory,
    len: usize,
    pool: &HostPool,
) -> Result<Buffer> {
    let keys = &memory::plain::<u64>(keys.bytes()).expect("our own memory")[..len];
    let mut values = pool.alloc(len * W)?;
    let out = &mut memory::values_mut::<[u8; W]>(&mut values)[..len];
    each_part(out.chunks_mut(CHUNK).zip(keys.chunks(CHUNK)), |(out, keys)| {
        out.iter_mut().zip(keys).for_each(|(out, key)| *out = folder.value(*key));
    })?;
    Ok(values.freeze(len * W))
}

fn merge<F: Folder<W>, const W: usize>(
    folder: &F,
    (mut states, mut seen): States,
    (others, others_seen): States,
    groups: usize,
) -> States {
    let into = &mut memory::values_mut::<F::State>(&mut states)[..groups];
    let from = memory::plain::<F::State>(others.bytes()).expect("our own memory");
    into.iter_mut().zip(from).for_each(|(into, from)| *into = folder.merge(*into, *from));
    if let (Some(seen), Some(others)) = (&mut seen, others_seen) {
        let others = &others.bytes()[..groups];
        seen.bytes_mut()[..groups].iter_mut().zip(others).for_each(|(seen, other)| *seen |= other);
    }
    (states, seen)
}

/// The validity of groups, of which those that have a value are marked by a byte.
pub(super) fn validity_of(
    seen: &HostMemory,
    groups: usize,
    pool: &HostPool,
) -> Result<(Option<Bitmap>, Option<usize>)> {
    let seen = &seen.bytes()[..groups];
    let nulls = seen.iter().filter(|seen| **seen == 0).count();
    if nulls == 0 {
        return Ok((None, Some(0)));
    }
    let mut bits = pool.alloc(groups.div_ceil(64) * 8)?;
    for (word, seen) in memory::values_mut::<u64>(&mut bits).iter_mut().zip(seen.chunks(64)) {
        *word = seen.iter().enumerate().fold(0, |word, (i, seen)| word | u64::from(*seen) << i);
    }
    Ok((Some(Bitmap { buffer: bits.freeze(groups.div_ceil(8)), offset: 0 }), Some(nulls)))
}
