//! The order of keys, and the groups of equal ones.

use super::items::Item;
use super::keys::Keys;
use super::radix::{self, CHUNK};
use super::top;
use crate::Result;
use crate::array::Buffer;
use crate::cpu::memory;
use crate::device::{HostMemory, HostPool};
use crate::threads::each_part;

/// Returns the rows in the order of their keys, as numbers of four bytes.
pub(super) fn ordered(keys: &Keys<'_>, limit: Option<usize>, pool: &HostPool) -> Result<Buffer> {
    // One word where it is enough: half of the memory to move.
    match keys.bits() {
        Some(bits) if bits + keys.row_bits() <= 64 => ordered_by::<u64>(keys, limit, pool),
        _ => ordered_by::<u128>(keys, limit, pool),
    }
}

fn ordered_by<I: Item>(keys: &Keys<'_>, limit: Option<usize>, pool: &HostPool) -> Result<Buffer> {
    let rows = keys.rows;
    let limit = limit.unwrap_or(rows).min(rows);
    if limit == 0 {
        return Ok(Buffer::empty());
    }
    if limit <= rows / top::WORTH {
        let mut out = pool.alloc(limit * 4)?;
        if top::first::<I>(keys, &mut memory::values_mut::<u32>(&mut out)[..limit], pool)? {
            return Ok(out.freeze(limit * 4));
        }
    }
    let bytes = rows * size_of::<I>();
    let (mut items, mut spare, mut out) = (pool.alloc(bytes)?, pool.alloc(bytes)?, pool.alloc(rows * 4)?);
    let items = &mut memory::values_mut::<I>(&mut items)[..rows];
    let begun = each_part(items.chunks_mut(CHUNK).enumerate(), |(i, items)| keys.begin(i * CHUNK, items))?;
    begun.into_iter().collect::<Result<()>>()?;
    let spare = &mut memory::values_mut::<I>(&mut spare)[..rows];
    radix::sort(keys, items, spare, &mut memory::values_mut::<u32>(&mut out)[..rows])?;
    Ok(out.freeze(limit * 4))
}

/// Returns a byte for each row: 1 if it is the first, or differs from the one before it. Rows come in the
/// given order.
pub(super) fn starts_of_groups(
    keys: &Keys<'_>,
    order: Option<&[u32]>,
    pool: &HostPool,
) -> Result<HostMemory> {
    let mut memory = pool.alloc(keys.rows)?;
    let row = |i: usize| order.map_or(i, |order| order[i] as usize);
    each_part(memory.bytes_mut()[..keys.rows].chunks_mut(CHUNK).enumerate(), |(chunk, out)| {
        for (i, out) in (chunk * CHUNK..).zip(out) {
            *out = u8::from(i == 0 || !keys.same(row(i - 1), row(i)));
        }
    })?;
    Ok(memory)
}
