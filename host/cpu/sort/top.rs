//! The first rows of an order, without sorting the others.
//!
//! The one idea: each thread keeps twice as many candidates as there are first rows, and drops the upper
//! half whenever its memory is full. After that, nearly every row is above the worst candidate, and is
//! forgotten at once, most rows by their [`Leads`].

use crate::Result;
use crate::cpu::memory;
use crate::device::{HostMemory, HostPool};
use crate::threads::{each_part, here};

use super::items::Item;
use super::keys::{Cursor, Keys};
use super::leads::Leads;
use super::radix::refine;

/// The rows whose items are made at a time.
const BLOCK: usize = 1024;
/// If one row in so many has a low lead, or more, the items of the block are made together.
const FEW: usize = 16;
/// So many times as many rows as are wanted make it worth to select them.
pub(super) const WORTH: usize = 16;

/// Writes the first rows to `out`, as many as it has. Returns `false`, and nothing is written, if too many
/// rows are equal in what an item holds.
pub(super) fn first<I: Item>(keys: &Keys<'_>, out: &mut [u32], pool: &HostPool) -> Result<bool> {
    let (rows, limit) = (keys.rows, out.len());
    let threads = here().min(rows.div_ceil(8 * BLOCK)).max(1);
    let part = rows.div_ceil(threads).next_multiple_of(BLOCK);
    let parts: Vec<usize> = (0..rows).step_by(part).collect();
    let room = 2 * limit + BLOCK;
    let mut memory = pool.alloc((parts.len() * room).saturating_mul(size_of::<I>()))?;
    let all = &mut memory::values_mut::<I>(&mut memory)[..parts.len() * room];
    let whole = keys.ends::<I>(Cursor::default());
    let found = each_part(all.chunks_mut(room).zip(&parts), |(kept, first)| {
        candidates(keys, *first..rows.min(first + part), kept, limit, whole)
    })?;
    let mut count = 0;
    for (i, found) in found.into_iter().enumerate() {
        let Some(found) = found? else { return Ok(false) };
        all.copy_within(i * room..i * room + found, count);
        count += found;
    }
    let all = &mut all[..count];
    all.sort_unstable();
    if !whole {
        let mut spare: HostMemory = pool.alloc(size_of_val(all))?;
        refine(keys, Cursor::default(), all, &mut memory::values_mut::<I>(&mut spare)[..count])?;
    }
    all.iter().zip(out).for_each(|(item, out)| *out = keys.row(*item) as u32);
    Ok(true)
}

/// Finds the first `limit` of some rows, and those with equal items. Returns their number; `None` if they do
/// not fit.
fn candidates<I: Item>(
    keys: &Keys<'_>,
    rows: std::ops::Range<usize>,
    kept: &mut [I],
    limit: usize,
    whole: bool,
) -> Result<Option<usize>> {
    let mut block = [I::default(); BLOCK];
    let (mut words, leads) = ([0; BLOCK], Leads::of(keys));
    let leads = leads.as_ref();
    let (mut count, mut worst) = (0, None);
    for first in rows.clone().step_by(BLOCK) {
        let len = BLOCK.min(rows.end - first);
        let (block, words) = (&mut block[..len], &mut words[..len]);
        leads.map_or(Ok(()), |leads| leads.write(first, words))?;
        let below = match (&worst, leads) {
            (Some((_, lead)), Some(_)) => words.iter().map(|word| usize::from(*word <= *lead)).sum(),
            _ => len,
        };
        let is_wanted = |item: I| match worst {
            None => true,
            Some((worst, _)) if whole => item < worst,
            Some((worst, _)) => item.above(keys.row_bits()) <= worst.above(keys.row_bits()),
        };
        if below > len / FEW {
            match leads.filter(|leads| leads.are_keys) {
                Some(leads) => leads.items(first, words, block),
                None => keys.begin(first, block)?,
            }
            for item in block {
                // Always stored, and counted only if it is wanted: no branch to guess.
                kept[count] = *item;
                count += usize::from(is_wanted(*item));
            }
        } else if let (Some((_, lead)), true) = (worst, below > 0) {
            for (i, _) in words.iter().enumerate().filter(|(_, word)| **word <= lead) {
                keys.begin(first + i, std::slice::from_mut(&mut kept[count]))?;
                count += usize::from(is_wanted(kept[count]));
            }
        }
        if count + BLOCK > kept.len() {
            let last = drop_others(keys, kept, &mut count, limit, whole);
            worst = Some((last, lead_of(keys, leads, last)?));
            if count + BLOCK > kept.len() {
                return Ok(None);
            }
        }
    }
    if count > limit {
        drop_others(keys, kept, &mut count, limit, whole);
    }
    Ok(Some(count))
}

/// Returns the lead of an item's row.
fn lead_of<I: Item>(keys: &Keys<'_>, leads: Option<&Leads<'_>>, item: I) -> Result<u64> {
    let mut lead = [u64::MAX];
    leads.map_or(Ok(()), |leads| leads.write(keys.row(item), &mut lead))?;
    Ok(lead[0])
}

/// Keeps the first `limit` of `count` items, and unless items hold whole keys, those with equal keys. Returns
/// the last of the first.
fn drop_others<I: Item>(keys: &Keys<'_>, kept: &mut [I], count: &mut usize, limit: usize, whole: bool) -> I {
    let items = &mut kept[..*count];
    let worst = *items.select_nth_unstable(limit - 1).1;
    let key = worst.above(keys.row_bits());
    *count = limit;
    for i in limit..items.len() {
        if !whole && items[i].above(keys.row_bits()) <= key {
            items.swap(*count, i);
            *count += 1;
        }
    }
    worst
}
