//! Sorting on the host: the order of rows, their ranks, and groups of equal rows.
//!
//! The one idea: every row becomes a number, a key followed by the row's own number, and numbers are
//! sorted by digits. `columns.rs` makes keys of arrays of any type, `keys.rs` makes items of keys,
//! `ordered.rs` has them sorted by `radix.rs`, or the first of them found by `top.rs`, which leaves out most
//! rows by their `leads.rs`.

mod columns;
mod items;
mod keys;
mod leads;
mod numbers;
mod ordered;
mod radix;
mod top;

use arrow_schema::SortOptions;

use super::memory;
use crate::Result;
use crate::array::DeviceArray;
use crate::device::HostPool;
use crate::engine::Ties;
use crate::rules::check_rows;
use crate::threads::{among_threads, each_part};

pub(super) use columns::ranks_of;
use columns::{flatten, keys, measured, unmeasured_keys};
use keys::{Keys, Source};
use ordered::{first, ordered, starts_of_groups};
pub(super) use radix::CHUNK;
use radix::LEAF;

/// Returns the rows of columns in their order, the first `limit` of them.
pub(super) fn sort_to_indices(
    columns: &[(&DeviceArray, SortOptions)],
    limit: Option<usize>,
    pool: &HostPool,
) -> Result<DeviceArray> {
    among_threads(rows_of(columns) > LEAF, |_| {
        let (flat, rows) = flattened("sort_to_indices", columns, pool)?;
        let limit = limit.map_or(rows, |limit| limit.min(rows));
        // To measure the columns would take as long as to find a few first rows.
        let keys = unmeasured_keys(&flat, rows)?;
        check_text(&keys, columns, true)?;
        let order = match first(&keys, limit, pool)? {
            Some(first) => first,
            None => ordered(&measured(keys)?, pool)?,
        };
        DeviceArray::uint32(order, limit)
    })
}

/// Returns the rank of each row.
pub(super) fn ranks(
    values: &DeviceArray,
    options: SortOptions,
    ties: Ties,
    pool: &HostPool,
) -> Result<DeviceArray> {
    among_threads(values.len() > LEAF, |_| {
        let columns = [(values, options)];
        let (flat, rows) = flattened("rank", &columns, pool)?;
        let keys = keys(&flat, rows)?;
        check_text(&keys, &columns, true)?;
        let order = ordered(&keys, pool)?;
        let order = memory::plain::<u32>(memory::bytes(&order)).expect("our own memory");
        let new = starts_of_groups(&keys, Some(order), pool)?;
        let new = &new.bytes()[..rows];
        let mut memory = pool.alloc(rows * 4)?;
        let out = memory::values_mut::<u32>(&mut memory);
        let (mut start, mut rank) = (0, 0);
        while start < rows {
            let len = 1 + new[start + 1..].iter().take_while(|new| **new == 0).count();
            rank = match ties {
                Ties::Highest => start + len,
                Ties::Lowest => start + 1,
                Ties::Dense => rank + 1,
            };
            order[start..start + len].iter().for_each(|row| out[*row as usize] = rank as u32);
            start += len;
        }
        DeviceArray::uint32(memory.freeze(rows * 4), rows)
    })
}

/// Returns the rows that differ from the row before them, in any column; the first row is one.
pub(super) fn partition(columns: &[DeviceArray], pool: &HostPool) -> Result<DeviceArray> {
    let columns: Vec<_> = columns.iter().map(|column| (column, SortOptions::default())).collect();
    among_threads(rows_of(&columns) > LEAF, |_| {
        let (flat, rows) = flattened("partition", &columns, pool)?;
        let keys = keys(&flat, rows)?;
        check_text(&keys, &columns, false)?;
        let new = starts_of_groups(&keys, None, pool)?;
        let new = &new.bytes()[..rows];
        let count: usize = new.iter().map(|new| usize::from(*new)).sum();
        let mut memory = pool.alloc(count * 4)?;
        let starts = (0u32..).zip(new).filter(|(_, new)| **new != 0);
        memory::values_mut::<u32>(&mut memory).iter_mut().zip(starts).for_each(|(out, (row, _))| *out = row);
        DeviceArray::uint32(memory.freeze(count * 4), count)
    })
}

/// Checks that text which may be wrong is inside of its buffers. A first column of text needs no check if
/// `items` are made of it; behind other columns it may have no room in them.
fn check_text(keys: &Keys<'_>, columns: &[(&DeviceArray, SortOptions)], items: bool) -> Result<()> {
    let texts = keys.parts.iter().map(|part| matches!(part.source, Source::Bytes(_)));
    let nulls = keys.parts.iter().take_while(|part| matches!(part.source, Source::Nulls)).count();
    let first = if items && nulls <= 1 { nulls + 1 } else { 0 };
    if !texts.skip(first).any(|text| text) || columns.iter().all(|(column, _)| column.known_valid()) {
        return Ok(());
    }
    let parts = (0..keys.rows).step_by(CHUNK).map(|first| first..keys.rows.min(first + CHUNK));
    each_part(parts, |part| keys.check(part))?.into_iter().collect()
}

/// Moves numbers to the places of a digit, which is `bits` wide, `shift` bits above the lowest. Equal digits
/// keep their order. Returns where each digit starts, and the end.
pub(super) fn by_digit(items: &[u64], to: &mut [u64], shift: u32, bits: u32) -> Result<Vec<usize>> {
    radix::scatter(items, to, shift, bits)
}

fn rows_of(columns: &[(&DeviceArray, SortOptions)]) -> usize {
    columns.first().map_or(0, |(column, _)| column.len())
}

/// Makes the columns of keys, and counts their rows.
fn flattened(
    operation: &'static str,
    columns: &[(&DeviceArray, SortOptions)],
    pool: &HostPool,
) -> Result<(Vec<columns::Column>, usize)> {
    let rows = rows_of(columns);
    check_rows(operation, rows)?;
    let mut flat = vec![];
    if rows > 0 {
        columns.iter().try_for_each(|(column, options)| flatten(column, *options, None, pool, &mut flat))?;
    }
    Ok((flat, rows))
}
