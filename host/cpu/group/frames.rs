//! Folds of the values of frames, by the nodes of [`Frames`].

use std::marker::PhantomData;

use arrow_schema::DataType;

use super::chosen::{Folds, fold_of};
use super::floats::Float;
use super::folders::{Folder, Least};
use super::folds::{validity_of, values_of_keys};
use super::numbers;
use super::rows::Folded;
use crate::array::{DeviceArray, Parts};
use crate::cpu::bitmap::Bits;
use crate::cpu::memory::Plain;
use crate::cpu::rows::CHUNK;
use crate::cpu::{admitted, memory, rows};
use crate::device::{HostMemory, HostPool, interrupt};
use crate::engine::{Frames, GroupFold};
use crate::expr::Reduction;
use crate::rules::{NODE, folded_type, levels, words};
use crate::threads::{among_threads, each_part};
use crate::{Error, Result};

/// Finds one end of the frame of each place.
pub(in crate::cpu) fn frame_ends(
    [firsts, counts]: [&DeviceArray; 2],
    by: Option<i64>,
    after: bool,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let (firsts, counts) = (admitted(firsts)?, admitted(counts)?);
    let rows = firsts.len();
    let firsts: &[[u8; 4]] = rows::values(&firsts.buffers()[0], firsts.offset(), rows);
    let counts: &[[u8; 8]] = rows::values(&counts.buffers()[0], counts.offset(), rows);
    let mut memory = pool.alloc(rows * 4)?;
    let out = &mut memory::values_mut::<u32>(&mut memory)[..rows];
    let part = |(i, out): (usize, &mut [u32])| {
        for (place, end) in (i * CHUNK..).zip(out) {
            let first = i64::from(u32::from_le_bytes(firsts[place]));
            let last = first + i64::from_le_bytes(counts[place]);
            let own = if after { last } else { first };
            let wanted = by.map_or(own, |by| place as i64 + by + i64::from(after));
            *end = wanted.min(last).max(first) as u32;
        }
    };
    among_threads(rows > CHUNK, |_| each_part(out.chunks_mut(CHUNK).enumerate(), part))?;
    DeviceArray::uint32(memory.freeze(rows * 4), rows)
}

/// Folds the values of each frame.
pub(in crate::cpu) fn fold_frames(
    folds: &[GroupFold],
    frames: &Frames,
    pool: &HostPool,
) -> Result<Vec<DeviceArray>> {
    folds.iter().map(|one| folded(one, frames, pool)).collect()
}

fn folded(one: &GroupFold, frames: &Frames, pool: &HostPool) -> Result<DeviceArray> {
    let ends = [admitted(&frames.starts)?, admitted(&frames.ends)?];
    let [starts, ends] = ends.each_ref().map(|array| {
        let numbers = memory::plain::<u32>(memory::bytes(&array.buffers()[0])).expect("our own memory");
        &numbers[array.offset()..][..array.len()]
    });
    let values = one.values.as_ref().map(admitted).transpose()?;
    let values = values.as_deref();
    let from = values.map_or(&DataType::Null, |values| values.data_type());
    let unfit = || Error::invalid("windows", format!("{:?} of {from}", one.fold));
    let to = folded_type(one.fold, from, one.wraps).ok_or_else(unfit)?;
    let valid = values.and_then(rows::validity);
    let places = Places { starts, ends, longest: frames.longest, values, valid, pool };
    among_threads(starts.len() > CHUNK, |_| {
        let (states, seen) = match one.fold {
            Reduction::Fold(fold) => fold_of(&places, fold, one.wraps, from)?.ok_or_else(unfit)?,
            Reduction::First | Reduction::Last => {
                let numbers = numbers(starts.len(), pool)?;
                let places = Places { values: Some(&numbers), ..places };
                let last = one.fold == Reduction::Last;
                places.least(&Least::<4>::new(&words(&DataType::UInt32).ok_or_else(unfit)?[0], last))?
            }
            Reduction::Bits(_) => return Err(unfit()),
        };
        let mut parts = Parts::new(to, starts.len());
        parts.buffers = vec![states];
        if let Some(seen) = seen {
            (parts.validity, parts.null_count) = validity_of(&seen, starts.len(), pool)?;
        }
        DeviceArray::made(parts, true)
    })
}

/// Places with their frames, and the values of a fold.
#[derive(Clone, Copy)]
struct Places<'a> {
    starts: &'a [u32],
    ends: &'a [u32],
    longest: usize,
    values: Option<&'a DeviceArray>,
    valid: Option<Bits<'a>>,
    pool: &'a HostPool,
}

/// The sum of floats.
struct Sum<F>(PhantomData<F>);

impl<F: Float<W>, const W: usize> Folder<W> for Sum<F> {
    type State = F;

    fn empty(&self) -> F {
        F::default()
    }

    #[inline(always)]
    fn add(&self, state: F, value: [u8; W]) -> F {
        state.plus(F::of(value))
    }

    #[inline(always)]
    fn merge(&self, state: F, other: F) -> F {
        state.plus(other)
    }
}

impl Folds for Places<'_> {
    fn folded<F: Folder<W>, const W: usize>(&self, folder: &F) -> Result<Folded> {
        let (states, seen) = self.states(folder)?;
        Ok((states.freeze(self.starts.len() * size_of::<F::State>()), Some(seen)))
    }

    fn least<const W: usize>(&self, folder: &Least<W>) -> Result<Folded> {
        let (states, seen) = self.states(folder)?;
        Ok((values_of_keys(folder, &states, self.starts.len(), self.pool)?, Some(seen)))
    }

    fn floats<F: Float<W>, const W: usize>(&self) -> Result<Folded> {
        self.folded::<_, W>(&Sum(PhantomData::<F>))
    }
}

/// A level of nodes: the states, and a byte for each that has a value.
struct Level(HostMemory, HostMemory);

/// A frame that is folded: from its first place to the one after its last.
struct Walk<S> {
    frame: [usize; 2],
    state: S,
    any: bool,
}

impl Places<'_> {
    /// Folds each frame. Returns the states, and a byte for each frame that has a value.
    fn states<F: Folder<W>, const W: usize>(&self, folder: &F) -> Result<(HostMemory, HostMemory)> {
        let values = match self.values {
            Some(values) if F::READS => rows::values(&values.buffers()[0], values.offset(), values.len()),
            _ => &[],
        };
        let tree = Tree { places: self, folder, values, levels: self.levels(folder, values)? };
        self.each(self.starts.len(), |from, states, seen| {
            let mut walk = Walk { frame: [0, 0], state: folder.empty(), any: false };
            for (frame, (state, seen)) in (from..).zip(states.iter_mut().zip(seen)) {
                walk = tree.walked(walk, [self.starts[frame] as usize, self.ends[frame] as usize]);
                (*state, *seen) = (walk.state, walk.any.into());
            }
        })
    }

    /// Makes the nodes of all levels.
    fn levels<F: Folder<W>, const W: usize>(&self, folder: &F, values: &[[u8; W]]) -> Result<Vec<Level>> {
        let (mut made, mut below): (Vec<Level>, usize) = (vec![], self.starts.len());
        for nodes in levels(self.starts.len(), self.longest) {
            let tree = Tree { places: self, folder, values, levels: made };
            let level = tree.levels.len();
            let (states, seen) = self.each(nodes, |from, states, seen| {
                for (node, (state, seen)) in (from..).zip(states.iter_mut().zip(seen)) {
                    let empty = Walk { frame: [0, 0], state: folder.empty(), any: false };
                    let walk = tree.folded(empty, level, node * NODE, (node * NODE + NODE).min(below));
                    (*state, *seen) = (walk.state, walk.any.into());
                }
            })?;
            made = tree.levels;
            made.push(Level(states, seen));
            below = nodes;
        }
        Ok(made)
    }

    /// Makes states and marks, of which threads write parts.
    fn each<S: Plain>(
        &self,
        len: usize,
        write: impl Fn(usize, &mut [S], &mut [u8]) + Sync,
    ) -> Result<(HostMemory, HostMemory)> {
        let (mut states, mut seen) = (self.pool.alloc(len * size_of::<S>())?, self.pool.alloc(len)?);
        let parts = memory::values_mut::<S>(&mut states)[..len].chunks_mut(CHUNK);
        let parts = parts.zip(seen.bytes_mut()[..len].chunks_mut(CHUNK)).enumerate();
        let part = |(i, (states, seen)): (usize, (&mut [S], &mut [u8]))| {
            interrupt::check()?;
            write(i * CHUNK, states, seen);
            Ok(())
        };
        each_part(parts, part)?.into_iter().collect::<Result<()>>()?;
        Ok((states, seen))
    }
}

/// The values and the nodes above them.
struct Tree<'a, F, const W: usize> {
    places: &'a Places<'a>,
    folder: &'a F,
    values: &'a [[u8; W]],
    levels: Vec<Level>,
}

impl<F: Folder<W>, const W: usize> Tree<'_, F, W> {
    /// Folds some nodes of a level, or values, which are level 0.
    #[inline(always)]
    fn folded(&self, mut walk: Walk<F::State>, level: usize, from: usize, to: usize) -> Walk<F::State> {
        if level > 0 {
            let Level(states, seen) = &self.levels[level - 1];
            let states = &memory::plain::<F::State>(states.bytes()).expect("our own memory")[from..to];
            walk.state = states.iter().fold(walk.state, |state, node| self.folder.merge(state, *node));
            walk.any |= seen.bytes()[from..to].iter().any(|seen| *seen != 0);
            return walk;
        }
        for place in from..to {
            if self.places.valid.is_none_or(|valid| valid.get(place)) {
                let value = self.values.get(place).copied().unwrap_or([0; W]);
                (walk.state, walk.any) = (self.folder.add(walk.state, value), true);
            }
        }
        walk
    }

    /// Folds a frame, after another that may begin like it.
    #[inline(always)]
    fn walked(&self, before: Walk<F::State>, frame: [usize; 2]) -> Walk<F::State> {
        let ([start, end], [old_start, old_end]) = (frame, before.frame);
        // A frame that ends a little later in the same node has the same nodes and some more values.
        if start == old_start && old_start < old_end && old_end <= end && end / NODE == old_end / NODE {
            return self.folded(Walk { frame, ..before }, 0, old_end, end);
        }
        let mut walk = Walk { frame, state: self.folder.empty(), any: false };
        if start >= end {
            return walk;
        }
        let (mut level, mut next, mut end_here) = (0, start, end);
        while level < self.levels.len() && next.div_ceil(NODE) < end_here / NODE {
            let whole = next.div_ceil(NODE);
            walk = self.folded(walk, level, next, whole * NODE);
            (level, next, end_here) = (level + 1, whole, end_here / NODE);
        }
        walk = self.folded(walk, level, next, end_here);
        while level > 0 {
            level -= 1;
            let end = end / NODE.pow(level as u32);
            walk = self.folded(walk, level, end / NODE * NODE, end);
        }
        walk
    }
}
