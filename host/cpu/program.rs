//! Bound expressions on host memory: a plan is executed step by step, on chunks of rows that stay in a core's
//! cache.
//!
//! The one idea: a step reads and writes values in their own type and width; truths and validity are words.
//! The step and its types are resolved once a chunk, and the work on its rows is a loop in [`blocks`].

mod asked;
mod blocks;
mod compare;
mod numbers;
mod ranges;
mod slots;
mod steps;
mod sums;
mod values;

use std::sync::atomic::{AtomicUsize, Ordering};

use bowstring_kernels::map::function::Number;
use bowstring_kernels::program::code::PART_WORDS;
use bowstring_kernels::program::{parts, tiles};
use bowstring_kernels::select::selection::TILE;

use super::memory;
use super::selection::{PARALLEL, Selection};
use crate::array::{Bitmap, DeviceArray, Parts};
use crate::device::{HostMemory, HostPool};
use crate::expr::Fold;
use crate::expr::plan::Plan;
use crate::threads::{self, among_threads, each_part_in};
use crate::{Error, Result};
use blocks::{CHUNK, inside};
use slots::{Scratch, Values};
use steps::Machine;
use sums::Sum;

/// The number of rows that one thread takes at a time when it writes results.
const PART: usize = 64 * 1024;

/// The most equal rows that are still summed one by one; sums of floats require that, because each addition
/// rounds.
const REPEATED: usize = 1 << 32;

/// Runs the rows of a part by chunks. The first row that fails is the error.
fn in_chunks<'m>(
    machine: &'m Machine<'_>,
    scratch: &mut Scratch<'m, '_>,
    first: usize,
    rows: usize,
    mut each: impl FnMut(&Scratch<'_, '_>, usize, usize),
) -> Result<()> {
    let mut at = 0;
    while at < rows {
        let count = machine.chunk.min(rows - at);
        machine.run(scratch, first + at, count)?;
        each(scratch, at, count);
        at += count;
    }
    Ok(())
}

/// Runs parts on several threads if that pays off, each with scratch memory of its own. Returns the error of
/// the first part that fails.
fn in_parts<'m, 'o, P: Send>(
    machine: &'m Machine<'_>,
    rows: usize,
    parts: Vec<P>,
    run: impl Fn(&mut Scratch<'m, 'o>, usize, P) -> Result<()> + Sync + Send,
) -> Result<()> {
    among_threads(rows >= PARALLEL, |large| {
        let _room = machine.room(if large { threads::here() } else { 1 })?;
        if !large {
            let mut scratch = machine.scratch()?;
            return parts.into_iter().enumerate().try_for_each(|(i, part)| run(&mut scratch, i, part));
        }
        each_part_in(
            parts,
            || machine.scratch(),
            |scratch, i, part| match scratch {
                Ok(scratch) => run(scratch, i, part),
                Err(error) => Err(error.clone()),
            },
        )
    })
}

/// Selects the rows at which the condition of a plan is true.
pub(crate) fn select(
    plan: &Plan,
    columns: &[DeviceArray],
    rows: usize,
    pool: &HostPool,
) -> Result<Selection> {
    let machine = Machine::new(plan, columns, rows, pool)?;
    let condition = plan.condition.ok_or_else(|| Error::invalid("filter_where", "no condition"))?;
    let mut words = pool.alloc(rows.div_ceil(64) * 8)?;
    let all = &mut memory::values_mut::<u64>(&mut words)[..rows.div_ceil(64)];
    in_parts(&machine, rows, all.chunks_mut(PART / 64).collect(), |scratch, i, words: &mut [u64]| {
        let first = i * PART;
        in_chunks(&machine, scratch, first, PART.min(rows - first), |scratch, at, count| {
            let (truth, known) = scratch.truth(condition);
            let out = &mut words[at / 64..][..count.div_ceil(64)];
            for (k, out) in out.iter_mut().enumerate() {
                *out = truth[k] & known.map_or(!0, |known| known[k]) & inside(count, k);
            }
        })
    })?;
    Selection::of_own(rows, words)
}

/// The memory of an output that is being written.
struct Output {
    values: HostMemory,
    valid: HostMemory,
}

/// A part's share of an output: values (or words of truths), and validity.
type OutputPart<'a> = (&'a mut [u8], &'a mut [u64]);

/// Evaluates the outputs of a plan to arrays.
pub(crate) fn evaluate(
    plan: &Plan,
    columns: &[DeviceArray],
    rows: usize,
    pool: &HostPool,
) -> Result<Vec<DeviceArray>> {
    let machine = Machine::new(plan, columns, rows, pool)?;
    let words = rows.div_ceil(64);
    let mut outputs = Vec::with_capacity(plan.outputs.len());
    for root in &plan.outputs {
        if rows.checked_mul(plan.number(*root).width()).is_none() {
            return Err(Error::invalid("expression", "more rows than there are bytes"));
        }
        let (values, valid) = (pool.alloc(bytes_of(plan, *root, rows))?, pool.alloc(words * 8)?);
        outputs.push(Output { values, valid });
    }
    let mut by_part: Vec<Vec<OutputPart<'_>>> = vec![];
    by_part.resize_with(rows.div_ceil(PART), || Vec::with_capacity(plan.outputs.len()));
    for (root, output) in plan.outputs.iter().zip(&mut outputs) {
        let (bytes, each) = (bytes_of(plan, *root, rows), bytes_of(plan, *root, PART));
        let values = output.values.bytes_mut()[..bytes].chunks_mut(each);
        let valid = memory::values_mut::<u64>(&mut output.valid)[..words].chunks_mut(PART / 64);
        by_part.iter_mut().zip(values.zip(valid)).for_each(|(part, both)| part.push(both));
    }
    let nulls: Vec<AtomicUsize> = plan.outputs.iter().map(|_| AtomicUsize::new(0)).collect();
    in_parts(&machine, rows, by_part, |scratch, i, mut outs| {
        let first = i * PART;
        let end = rows.min(first + PART);
        let mut left = Vec::with_capacity(plan.outputs.len());
        for at in (first..end).step_by(machine.chunk) {
            let count = machine.chunk.min(end - at);
            for (root, (values, _)) in plan.outputs.iter().zip(&mut outs) {
                let (chunk, rest) = std::mem::take(values).split_at_mut(bytes_of(plan, *root, count));
                *values = rest;
                // A cache has all of a small output. To fill memory, a copy is faster: it does not read it
                // first.
                left.push(if rows < PARALLEL { scratch.lend(*root, chunk) } else { Some(chunk) });
            }
            machine.run(scratch, at, count)?;
            let outs = left.drain(..).zip(&mut outs);
            for ((root, nulls), (values, (_, valid))) in plan.outputs.iter().zip(&nulls).zip(outs) {
                let valid = &mut valid[(at - first) / 64..][..count.div_ceil(64)];
                store(scratch, *root, count, values, valid);
                nulls.fetch_add(count - super::intrinsics::count_ones(valid), Ordering::Relaxed);
            }
            plan.outputs.iter().for_each(|root| scratch.take_back(*root));
        }
        Ok(())
    })?;
    let finished = plan.outputs.iter().zip(outputs).zip(nulls).map(|((root, output), nulls)| {
        let mut parts = Parts::new(plan.nodes[*root].data_type.clone(), rows);
        let bytes = match plan.number(*root) {
            Number::Bit => rows.div_ceil(8),
            number => rows * number.width(),
        };
        parts.buffers = vec![output.values.freeze(bytes)];
        let nulls = nulls.into_inner();
        parts.null_count = Some(nulls);
        if nulls > 0 {
            let buffer = output.valid.freeze(rows.div_ceil(8));
            parts.validity = Some(Bitmap { buffer, offset: 0 });
        }
        DeviceArray::made(parts, true)
    });
    finished.collect()
}

/// The bytes of so many rows of a root.
fn bytes_of(plan: &Plan, root: usize, rows: usize) -> usize {
    match plan.number(root) {
        Number::Bit => rows.div_ceil(64) * 8,
        number => rows * number.width(),
    }
}

/// Copies a root's rows of a chunk to its output, but for the values if they are there already.
fn store(scratch: &Scratch<'_, '_>, root: usize, count: usize, out: Option<&mut [u8]>, valid: &mut [u64]) {
    let there = |word: Option<&[u64]>, k: usize| word.map_or(!0, |words| words[k]) & inside(count, k);
    match (scratch.values(root), out) {
        (Values::Truth(truth, known), out) => {
            let out = out.expect("no node computes truths in place").as_chunks_mut::<8>().0;
            for (k, out) in out.iter_mut().enumerate() {
                *out = (truth[k] & there(known, k)).to_le_bytes();
                valid[k] = there(known, k);
            }
        }
        (Values::Numbers(view, width, known), out) => {
            match out {
                None => {}
                Some(out) if view.constant => {
                    out.chunks_mut(width).for_each(|out| out.copy_from_slice(&view.bytes[..width]));
                }
                Some(out) => out.copy_from_slice(&view.bytes[..count * width]),
            }
            match known {
                Some(known) if count.is_multiple_of(64) => valid.copy_from_slice(&known[..valid.len()]),
                known => valid.iter_mut().enumerate().for_each(|(k, valid)| *valid = there(known, k)),
            }
        }
    }
}

/// As `gpu::program::aggregate`: yields the partial aggregates of the same parts of the rows.
pub(crate) fn aggregate(
    plan: &Plan,
    kinds: &[Fold],
    columns: &[DeviceArray],
    rows: usize,
    pool: &HostPool,
) -> Result<Vec<u64>> {
    if rows > 1 && plan.is_constant() {
        let one = aggregate(plan, kinds, columns, 1, pool)?;
        let numbers = plan.outputs.iter().map(|root| plan.number(*root));
        let words = one.chunks(PART_WORDS as usize).zip(kinds.iter().zip(numbers));
        let all = words.map(|(words, (kind, number))| sums::repeated(words, *kind, number, rows as u64));
        if let Some(all) = all.collect::<Option<Vec<_>>>() {
            return Ok(all.concat());
        }
        if rows > REPEATED {
            return Err(Error::invalid("aggregate", format!("no such sum of {rows} equal rows")));
        }
    }
    let len = rows as u64;
    let (each, count) = ((tiles(len) * TILE) as usize, parts(len, tiles(len)) as usize);
    let mut words = vec![0; count * kinds.len() * PART_WORDS as usize];
    if kinds.is_empty() {
        return Ok(words);
    }
    let values = &plan.outputs;
    let machine = Machine::new(plan, columns, rows, pool)?;
    // Several parts together, so that a thread has enough work.
    let together = PART.div_ceil(each);
    let taken = words.chunks_mut(kinds.len() * PART_WORDS as usize * together).collect();
    in_parts(&machine, rows, taken, |scratch, i, words: &mut [u64]| {
        for (k, words) in words.chunks_mut(kinds.len() * PART_WORDS as usize).enumerate() {
            let first = (i * together + k) * each;
            let end = rows.min(first + each);
            let mut sums: Vec<Sum> = kinds.iter().map(|_| Sum::default()).collect();
            in_chunks(&machine, scratch, first, end - first, |scratch, _, count| {
                for ((sum, kind), root) in sums.iter_mut().zip(kinds).zip(values) {
                    let mut there = [0; CHUNK / 64];
                    let values = scratch.counted(*root, plan.condition, count, &mut there);
                    sum.add(*kind, plan.number(*root), values);
                }
            })?;
            let each = sums.iter().zip(kinds.iter().zip(values));
            for ((sum, (kind, root)), words) in each.zip(words.chunks_mut(PART_WORDS as usize)) {
                words.copy_from_slice(&sum.words(*kind, plan.number(*root)));
            }
        }
        Ok(())
    })?;
    Ok(words)
}
