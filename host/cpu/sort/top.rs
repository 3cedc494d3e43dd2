//! The first rows of an order, without sorting the others.
//!
//! The one idea: each thread keeps twice as many candidates as there are first rows, and drops the upper
//! half whenever its memory is full. After that, nearly every row is above the worst candidate, and is
//! forgotten at once.

use crate::Result;
use crate::cpu::memory;
use crate::device::{HostMemory, HostPool};
use crate::threads::{each_part, here};

use super::items::Item;
use super::keys::{Cursor, Keys};
use super::radix::refine;

/// The rows whose items are made at a time.
const BLOCK: usize = 2048;
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
    let row_bits = keys.row_bits();
    let mut block = [I::default(); BLOCK];
    let (mut count, mut worst) = (0, None);
    for first in rows.clone().step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(rows.end - first)];
        keys.begin(first, block)?;
        match worst {
            None => {
                kept[count..count + block.len()].copy_from_slice(block);
                count += block.len();
            }
            Some(worst) => {
                for item in block {
                    // Always stored, and counted only if it is wanted: no branch to guess.
                    kept[count] = *item;
                    count += usize::from(item.above(row_bits) <= worst);
                }
            }
        }
        if count + BLOCK > kept.len() {
            (count, worst) = drop_others(&mut kept[..count], limit, row_bits, whole);
            if count + BLOCK > kept.len() {
                return Ok(None);
            }
        }
    }
    if count > limit {
        (count, _) = drop_others(&mut kept[..count], limit, row_bits, whole);
    }
    Ok(Some(count))
}

/// Keeps the first `limit` items, and unless items hold whole keys, those with equal keys. Returns their
/// number, and the last of their keys.
fn drop_others<I: Item>(items: &mut [I], limit: usize, row_bits: u32, whole: bool) -> (usize, Option<I>) {
    let worst = items.select_nth_unstable(limit - 1).1.above(row_bits);
    if whole {
        return (limit, Some(worst));
    }
    let mut count = limit;
    for i in limit..items.len() {
        if items[i].above(row_bits) <= worst {
            items.swap(count, i);
            count += 1;
        }
    }
    (count, Some(worst))
}
