//! The order of keys, and the groups of equal ones.

use super::items::Item;
use super::keys::{Keys, Part, Source};
use super::radix::{self, CHUNK};
use super::top;
use crate::Result;
use crate::array::Buffer;
use crate::cpu::bitmap::Bits;
use crate::cpu::memory;
use crate::device::{HostMemory, HostPool};
use crate::threads::each_part;

/// Returns the first rows in the order of their keys, as numbers of four bytes. `None` if too many rows would
/// have to be sorted for them.
pub(super) fn first(keys: &Keys<'_>, limit: usize, pool: &HostPool) -> Result<Option<Buffer>> {
    if limit == 0 {
        return Ok(Some(Buffer::empty()));
    }
    if limit > keys.rows / top::WORTH {
        return Ok(None);
    }
    let mut memory = pool.alloc(limit * 4)?;
    let out = &mut memory::values_mut::<u32>(&mut memory)[..limit];
    let found = match keys.fit_words() {
        true => top::first::<u64>(keys, out, pool)?,
        false => top::first::<u128>(keys, out, pool)?,
    };
    Ok(found.then(|| memory.freeze(limit * 4)))
}

/// Returns the rows in the order of their keys, as numbers of four bytes.
pub(super) fn ordered(keys: &Keys<'_>, pool: &HostPool) -> Result<Buffer> {
    match keys.fit_words() || keys.begin_in_words() {
        true => ordered_by::<u64>(keys, pool),
        false => ordered_by::<u128>(keys, pool),
    }
}

fn ordered_by<I: Item>(keys: &Keys<'_>, pool: &HostPool) -> Result<Buffer> {
    let rows = keys.rows;
    if rows <= radix::LEAF
        // A part with the same rows follows, unless the column has nothing but nulls.
        && let [Part { source: Source::Nulls, valid: Some(valid), descending }, values] = &keys.parts[..]
        && values.valid.is_some()
        && !matches!(values.source, Source::Nulls)
    {
        return valid_rows::<I>(keys, *valid, !descending, pool);
    }
    let bytes = rows * size_of::<I>();
    let (mut items, mut spare, mut out) = (pool.alloc(bytes)?, pool.alloc(bytes)?, pool.alloc(rows * 4)?);
    let items = &mut memory::values_mut::<I>(&mut items)[..rows];
    let begun = each_part(items.chunks_mut(CHUNK).enumerate(), |(i, items)| keys.begin(i * CHUNK, items))?;
    begun.into_iter().collect::<Result<()>>()?;
    let spare = &mut memory::values_mut::<I>(&mut spare)[..rows];
    radix::sort(keys, items, spare, &mut memory::values_mut::<u32>(&mut out)[..rows])?;
    Ok(out.freeze(rows * 4))
}

/// Returns the rows of one column in order, of which only those with a value are sorted.
fn valid_rows<I: Item>(
    keys: &Keys<'_>,
    valid: Bits<'_>,
    nulls_first: bool,
    pool: &HostPool,
) -> Result<Buffer> {
    let (rows, bytes) = (keys.rows, keys.rows * size_of::<I>());
    let (mut items, mut spare, mut memory) = (pool.alloc(bytes)?, pool.alloc(bytes)?, pool.alloc(rows * 4)?);
    let (items, spare) = (memory::values_mut::<I>(&mut items), memory::values_mut::<I>(&mut spare));
    let out = &mut memory::values_mut::<u32>(&mut memory)[..rows];
    let mut count = 0;
    for row in 0..rows {
        // Always stored, and counted only if it belongs there: no branch to guess.
        items[count] = I::of_row(row);
        let null = row - count;
        out[if nulls_first { null } else { rows - 1 - null }] = row as u32;
        count += usize::from(valid.get(row));
    }
    let nulls = rows - count;
    let sorted = match nulls_first {
        true => &mut out[nulls..],
        false => {
            out[count..].reverse();
            &mut out[..count]
        }
    };
    radix::after_nulls(keys, &mut items[..count], &mut spare[..count], sorted)?;
    Ok(memory.freeze(rows * 4))
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
