//! Columns of keys, made of arrays of any type.
//!
//! The one idea: a struct is its fields, and a list is the text of its items' ranks. Rows that refer to
//! values (dictionaries, runs, unions) have the values' ranks. So keys know numbers and bytes only.

use arrow_schema::{DataType, SortOptions, UnionMode};

use crate::array::{Bitmap, Buffer, DeviceArray};
use crate::cpu::bitmap::Bits;
use crate::cpu::text::layout;
use crate::cpu::{memory, rows, run_ends};
use crate::device::HostPool;
use crate::rules::{Order, check_rows, too_many_rows, words};
use crate::threads::each_part;
use crate::{Error, Result};

use super::keys::{Keys, Part, Source, Text};
use super::numbers::Numbers;
use super::ordered::{ordered, starts_of_groups};
use super::radix::CHUNK;

/// The memory that a column of keys is made of.
pub(super) struct Column {
    data: Data,
    /// The rows that have a value; `None` if all do.
    valid: Option<Bitmap>,
    /// Whether null is a value of this column, and not of one around it.
    nulls: bool,
    options: SortOptions,
}

enum Data {
    /// A column in which every row is null.
    Nothing,
    /// Booleans, text, or values of a fixed width.
    Array(DeviceArray),
    Ranks(Buffer),
    /// A range of bytes for each row.
    Lists(Buffer, Buffer),
}

/// The ranks of rows among each other: numbers that order as they do. Equal rows have equal ranks.
struct Ranks {
    words: Buffer,
    /// The rank of null, whether or not a row is null.
    null: u32,
    most: u32,
}

/// Adds the columns that the order of an array consists of. Rows that `within`, the validity of a struct
/// around it, does not have are all equal.
pub(super) fn flatten(
    array: &DeviceArray,
    options: SortOptions,
    within: Option<&Bitmap>,
    pool: &HostPool,
    into: &mut Vec<Column>,
) -> Result<()> {
    let own = array.possible_nulls();
    let nulls = own.is_some();
    let valid = match (own, within) {
        (Some(own), Some(within)) => Some(both(own, within, array.len(), pool)?),
        (own, within) => own.or(within).cloned(),
    };
    // Below, null ranks lower if it comes first: a descending order then turns around both.
    let low = options.nulls_first != options.descending;
    let data = match array.data_type() {
        DataType::Null => return Ok(()),
        DataType::Struct(fields) => {
            if nulls {
                into.push(Column { data: Data::Nothing, valid: valid.clone(), nulls, options });
            }
            return (0..fields.len())
                .try_for_each(|i| flatten(&array.child_rows(i)?, options, valid.as_ref(), pool, into));
        }
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) | DataType::Union(..) => {
            let data = Data::Ranks(ranks(array, low, pool)?.words);
            into.push(Column { data, valid: within.cloned(), nulls: false, options });
            return Ok(());
        }
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..)
        | DataType::Map(..) => lists(array, valid.as_ref(), low, pool)?,
        _ => Data::Array(array.clone()),
    };
    into.push(Column { data, valid, nulls, options });
    Ok(())
}

/// Returns the rows that two bitmaps have.
fn both(a: &Bitmap, b: &Bitmap, len: usize, pool: &HostPool) -> Result<Bitmap> {
    let (a, b) = (Bits::of(a, len), Bits::of(b, len));
    let mut memory = pool.alloc(a.words() * 8)?;
    let words = memory::values_mut::<u64>(&mut memory);
    (0..a.words()).for_each(|i| words[i] = a.word(i) & b.word(i));
    Ok(Bitmap { buffer: memory.freeze(len.div_ceil(8)), offset: 0 })
}

/// Returns the lists of the valid rows as ranges of bytes: a big-endian rank for each item.
fn lists(array: &DeviceArray, valid: Option<&Bitmap>, low: bool, pool: &HostPool) -> Result<Data> {
    let valid = valid.map(|valid| Bits::of(valid, array.len()));
    let child = &array.children()[0];
    let mut memory = pool.alloc(array.len().saturating_mul(16))?;
    let ranges = &mut memory::values_mut::<[u64; 2]>(&mut memory)[..array.len()];
    let range = range_of(array)?;
    let (mut start, mut end) = (usize::MAX, 0);
    for (row, out) in ranges.iter_mut().enumerate() {
        *out = [0; 2];
        if valid.is_none_or(|valid| valid.get(row)) {
            let items = range(row)?;
            if !items.is_empty() {
                (start, end) = (start.min(items.start), end.max(items.end));
                *out = [items.start as u64, items.end as u64];
            }
        }
    }
    let start = start.min(end);
    let items = ranks(&child.slice(start, end - start)?, low, pool)?.words;
    let count = end - start;
    let mut bytes = pool.alloc(count * 4)?;
    let from = rows::values::<4>(&items, 0, count);
    let to = &mut memory::values_mut::<[u8; 4]>(&mut bytes)[..count];
    for (to, from) in to.iter_mut().zip(from) {
        *to = [from[3], from[2], from[1], from[0]];
    }
    for range in ranges.iter_mut().filter(|range| range[1] > 0) {
        *range = range.map(|at| (at - start as u64) * 4);
    }
    Ok(Data::Lists(memory.freeze(array.len() * 16), bytes.freeze(count * 4)))
}

/// The items of each row of a list.
type RangeOf<'a> = Box<dyn Fn(usize) -> Result<std::ops::Range<usize>> + 'a>;

/// Returns a function from a list's row to its items.
fn range_of(array: &DeviceArray) -> Result<RangeOf<'_>> {
    let extent = array.children()[0].len();
    let (offset, len) = (array.offset(), array.len());
    let view = move |row: usize, start: usize, size: usize| match start.checked_add(size) {
        Some(end) if end <= extent => Ok(start..end),
        _ => Err(rows::bad_offset(row)),
    };
    Ok(match array.data_type() {
        DataType::LargeList(_) => {
            let offsets = rows::offsets::<8>(array);
            Box::new(move |row| rows::range(offsets, row, extent))
        }
        DataType::ListView(_) => {
            let starts = rows::values::<4>(&array.buffers()[0], offset, len);
            let sizes = rows::values::<4>(&array.buffers()[1], offset, len);
            Box::new(move |row| view(row, rows::offset(starts[row]), rows::offset(sizes[row])))
        }
        DataType::LargeListView(_) => {
            let starts = rows::values::<8>(&array.buffers()[0], offset, len);
            let sizes = rows::values::<8>(&array.buffers()[1], offset, len);
            Box::new(move |row| view(row, rows::offset(starts[row]), rows::offset(sizes[row])))
        }
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            Box::new(move |row| view(row, (offset + row) * size, size))
        }
        _ => {
            let offsets = rows::offsets::<4>(array);
            Box::new(move |row| rows::range(offsets, row, extent))
        }
    })
}

/// Returns numbers of four bytes, one for each row, that order as the rows do: equal ones have equal numbers.
pub(in crate::cpu) fn ranks_of(array: &DeviceArray, pool: &HostPool) -> Result<Buffer> {
    Ok(ranks(array, true, pool)?.words)
}

/// Ranks all rows of an array in ascending order; null is lower or higher than all values.
fn ranks(array: &DeviceArray, low: bool, pool: &HostPool) -> Result<Ranks> {
    let len = array.len();
    check_rows("sort_to_indices", len)?;
    match array.data_type() {
        DataType::Dictionary(..) => {
            let values = ranks(array.dictionary().expect("a dictionary has values"), low, pool)?;
            let words = of_keys(array, &values, pool)?;
            Ok(Ranks { words, ..values })
        }
        DataType::RunEndEncoded(..) => {
            let values = ranks(&array.children()[1], low, pool)?;
            let of_runs = rows::values::<4>(&values.words, 0, array.children()[1].len());
            let mut memory = pool.alloc(len * 4)?;
            let out = memory::values_mut::<[u8; 4]>(&mut memory);
            run_ends::each(array, |run, rows| {
                out[rows].fill(of_runs[run]);
                Ok(())
            })?;
            Ok(Ranks { words: memory.freeze(len * 4), ..values })
        }
        DataType::Union(..) => of_members(array, low, pool),
        _ => of_order(array, low, pool),
    }
}

/// Ranks rows by sorting them.
fn of_order(array: &DeviceArray, low: bool, pool: &HostPool) -> Result<Ranks> {
    let len = array.len();
    let options = SortOptions { descending: false, nulls_first: low };
    let mut columns = vec![];
    flatten(array, options, None, pool, &mut columns)?;
    let keys = keys(&columns, len)?;
    let order = ordered(&keys, pool)?;
    let order = &memory::bytes(&order);
    let order = memory::plain::<u32>(order).expect("our own memory");
    let new = starts_of_groups(&keys, Some(order), pool)?;
    let is_null = |row: u32| match array.data_type() {
        DataType::Null => true,
        _ => rows::validity(array).is_some_and(|valid| !valid.get(row as usize)),
    };
    // Zero is left for null, even if there is none.
    let mut rank = u32::from(low && order.first().is_none_or(|first| !is_null(*first)));
    let mut memory = pool.alloc(len * 4)?;
    let out = memory::values_mut::<u32>(&mut memory);
    for (i, row) in order.iter().enumerate() {
        rank += u32::from(i > 0 && new.bytes()[i] != 0);
        out[*row as usize] = rank;
    }
    let last_is_null = order.last().is_some_and(|last| is_null(*last));
    let null = if low { 0 } else { rank + u32::from(!last_is_null) };
    Ok(Ranks { words: memory.freeze(len * 4), null, most: rank.max(null) })
}

/// The ranks of a dictionary's rows: those of their values.
fn of_keys(array: &DeviceArray, values: &Ranks, pool: &HostPool) -> Result<Buffer> {
    let DataType::Dictionary(key, _) = array.data_type() else { unreachable!("called with dictionaries") };
    let (buffer, offset, len) = (&array.buffers()[0], array.offset(), array.len());
    match key.primitive_width() {
        Some(1) => of_keys_of(array, rows::values::<1>(buffer, offset, len), values, pool),
        Some(2) => of_keys_of(array, rows::values::<2>(buffer, offset, len), values, pool),
        Some(4) => of_keys_of(array, rows::values::<4>(buffer, offset, len), values, pool),
        _ => of_keys_of(array, rows::values::<8>(buffer, offset, len), values, pool),
    }
}

fn of_keys_of<const W: usize>(
    array: &DeviceArray,
    keys: &[[u8; W]],
    values: &Ranks,
    pool: &HostPool,
) -> Result<Buffer> {
    let there = array.dictionary().map_or(0, DeviceArray::len);
    let ranks = rows::values::<4>(&values.words, 0, there);
    let valid = rows::validity(array);
    let null = values.null.to_le_bytes();
    let mut memory = pool.alloc(keys.len() * 4)?;
    let out = &mut memory::values_mut::<[u8; 4]>(&mut memory)[..keys.len()];
    let parts = out.chunks_mut(CHUNK).zip(keys.chunks(CHUNK)).enumerate();
    // A negative key is a large unsigned one.
    let done = each_part(parts, |(chunk, (out, keys))| {
        for (i, (out, key)) in out.iter_mut().zip(keys).enumerate() {
            let row = chunk * CHUNK + i;
            *out = match valid.is_none_or(|valid| valid.get(row)) {
                false => null,
                true => {
                    let key = u64::from_le_bytes(std::array::from_fn(|i| key.get(i).copied().unwrap_or(0)));
                    let rank = usize::try_from(key).ok().and_then(|key| ranks.get(key));
                    let outside =
                        || Error::out_of_spec("array.buffers[0]", format!("key {key} of {there} values"));
                    *rank.ok_or_else(outside)?
                }
            };
        }
        Ok(())
    })?;
    done.into_iter().collect::<Result<()>>()?;
    Ok(memory.freeze(keys.len() * 4))
}

/// The ranks of a union's rows: by their type's number, then by their values.
fn of_members(array: &DeviceArray, low: bool, pool: &HostPool) -> Result<Ranks> {
    let DataType::Union(fields, mode) = array.data_type() else { unreachable!("called with unions") };
    let len = array.len();
    let mut members: Vec<Option<(u32, Buffer, usize)>> = vec![None; 256];
    let mut ids: Vec<(u8, usize)> = fields.iter().enumerate().map(|(i, (id, _))| (id as u8, i)).collect();
    ids.sort_unstable();
    let mut first = 1u32;
    for (id, i) in ids {
        let child = array.child_rows(i)?;
        let of_member = ranks(&child, low, pool)?;
        members[usize::from(id)] = Some((first, of_member.words, child.len()));
        let after = of_member.most.checked_add(1).and_then(|ranks| first.checked_add(ranks));
        first = after.ok_or_else(|| too_many_rows("sort_to_indices", child.len()))?;
    }
    let types = rows::values::<1>(&array.buffers()[0], array.offset(), len);
    let offsets = match mode {
        UnionMode::Dense => Some(rows::values::<4>(&array.buffers()[1], array.offset(), len)),
        UnionMode::Sparse => None,
    };
    let mut memory = pool.alloc(len * 4)?;
    let out = memory::values_mut::<u32>(&mut memory);
    for (row, [id]) in types.iter().enumerate() {
        let unknown = || Error::out_of_spec("array.buffers[0]", format!("type {} in row {row}", *id as i8));
        let (first, words, there) = members[usize::from(*id)].as_ref().ok_or_else(unknown)?;
        let at = offsets.map_or(row, |offsets| rows::offset(offsets[row]));
        if at >= *there {
            return Err(Error::out_of_spec("array.buffers[1]", format!("{at} of {there} rows")));
        }
        out[row] = first + u32::from_le_bytes(rows::values::<4>(words, at, 1)[0]);
    }
    Ok(Ranks { words: memory.freeze(len * 4), null: if low { 0 } else { first }, most: first })
}

/// Returns the keys of columns of so many rows, as short as the values' spans allow.
pub(super) fn keys(columns: &[Column], rows: usize) -> Result<Keys<'_>> {
    measured(unmeasured_keys(columns, rows)?)
}

/// Shortens keys as far as the values' spans allow.
pub(super) fn measured(mut keys: Keys<'_>) -> Result<Keys<'_>> {
    for part in &mut keys.parts {
        if let Source::Numbers(numbers) = &mut part.source {
            measure(numbers, part.valid, keys.rows)?;
        }
    }
    Ok(keys)
}

/// Returns the keys of columns of so many rows, without reading them: numbers take all of their bits.
pub(super) fn unmeasured_keys(columns: &[Column], rows: usize) -> Result<Keys<'_>> {
    let mut parts = vec![];
    for column in columns {
        let valid = column.valid.as_ref().map(|valid| Bits::of(valid, rows));
        let descending = column.options.descending;
        if column.nulls {
            parts.push(Part { source: Source::Nulls, valid, descending: !column.options.nulls_first });
        }
        let mut add = |source| parts.push(Part { source, valid, descending });
        match &column.data {
            Data::Nothing => {}
            Data::Ranks(ranks) => {
                let bytes = memory::bytes(ranks);
                add(Source::Numbers(Numbers::new(bytes, 4, 4, Order::Unsigned, descending)));
            }
            Data::Lists(ranges, bytes) => {
                let ranges = memory::plain(memory::bytes(ranges)).expect("our own memory");
                add(Source::Bytes(Text::Ranges(ranges, memory::bytes(bytes))));
            }
            Data::Array(array) => match array.data_type() {
                DataType::Boolean => add(Source::Booleans(rows::booleans(array))),
                DataType::FixedSizeBinary(width) => {
                    let width = usize::try_from(*width).unwrap_or(0);
                    let bytes = &memory::bytes(&array.buffers()[0])[array.offset() * width..];
                    add(Source::Bytes(Text::Fixed(bytes, width)));
                }
                of => match (words(of), array.layout().slots[0]) {
                    (Some(words), Some(crate::array::Slot::Fixed(stride))) => {
                        let bytes = &memory::bytes(&array.buffers()[0])[array.offset() * stride..];
                        for word in words {
                            // Without rows there may be no bytes either.
                            let bytes = bytes.get(word.at..).unwrap_or_default();
                            let (width, order) = (word.width, word.order);
                            add(Source::Numbers(Numbers::new(bytes, stride, width, order, descending)));
                        }
                    }
                    _ => add(Source::Bytes(match layout::Column::of(array) {
                        layout::Column::Short(text) => Text::Short(text),
                        layout::Column::Long(text) => Text::Long(text),
                        layout::Column::Views(text) => Text::Views(text),
                    })),
                },
            },
        }
    }
    Ok(Keys { parts, rows })
}

/// Shortens numbers to the bits that they span.
fn measure(numbers: &mut Numbers<'_>, valid: Option<Bits<'_>>, rows: usize) -> Result<()> {
    let parts = (0..rows).step_by(CHUNK).map(|first| first..rows.min(first + CHUNK));
    let spans = each_part(parts, |part| numbers.span(valid, part))?;
    numbers.within(spans.into_iter().fold((u64::MAX, 0), |all, one| (all.0.min(one.0), all.1.max(one.1))));
    Ok(())
}
