//! Take on host memory: the rows of an array at given [`Indices`].
//!
//! The one idea: every loop checks the indices that it follows in the same pass, and reports only whether one
//! was out of bounds. A second pass finds out which, when speed no longer matters.

use arrow_schema::{DataType, FieldRef, UnionMode};

use crate::array::{Bitmap, Buffer, DeviceArray, Parts, Slot, null_member, says_null};
use crate::device::{HostPool, interrupt};
use crate::{Error, Result};

use super::bitmap::Bits;
use super::indices::{Indices, Rows, Width};
use super::ranges::Ranges;
use super::selection::PARALLEL;
use super::{intrinsics, memory, ranges, rows, run_ends, take_bytes};
use crate::threads::{among_threads, each_part};

/// Takes the rows of `array` at `indices`; null indices give null rows. Both must be readable by the host.
pub(crate) fn take(array: &DeviceArray, indices: &Indices, pool: &HostPool) -> Result<DeviceArray> {
    if indices.len() == 0 {
        return array.slice(0, 0);
    }
    let mut parts = Parts::new(array.data_type().clone(), indices.len());
    if array.layout().validity {
        (parts.validity, parts.null_count) = take_validity(array, indices, pool)?;
    }
    match array.data_type() {
        DataType::Null => indices.check(array.len())?,
        DataType::Utf8 | DataType::Binary => take_bytes::take::<4>(array, indices, pool, &mut parts)?,
        DataType::LargeUtf8 | DataType::LargeBinary => {
            take_bytes::take::<8>(array, indices, pool, &mut parts)?
        }
        DataType::List(_) | DataType::Map(..) => take_lists::<4>(array, indices, pool, &mut parts)?,
        DataType::LargeList(_) => take_lists::<8>(array, indices, pool, &mut parts)?,
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            parts.children = vec![take_fixed_lists(array, size, indices, pool)?];
        }
        DataType::Struct(_) => {
            // Without children, nothing else would check the indices.
            if array.children().is_empty() {
                indices.check(array.len())?;
            }
            parts.children = (0..array.children().len())
                .map(|i| take(&array.child_rows(i)?, indices, pool))
                .collect::<Result<_>>()?;
        }
        DataType::Union(..) => take_union(array, indices, pool, &mut parts)?,
        DataType::RunEndEncoded(..) => {
            parts.children = take_runs(array, run_ends::at(array, indices, pool)?, pool)?;
        }
        _ => {
            take_slots(array, indices, pool, &mut parts)?;
            parts.children = array.children().to_vec();
            parts.dictionary = array.dictionary().cloned();
        }
    }
    DeviceArray::made(parts, array.known_valid())
}

/// Takes the validity of the rows, and counts the nulls.
fn take_validity(
    array: &DeviceArray,
    indices: &Indices,
    pool: &HostPool,
) -> Result<(Option<Bitmap>, Option<usize>)> {
    let Some(valid) = rows::validity(array) else {
        let nulls = indices.null_count()?;
        return Ok((indices.validity().filter(|_| nulls > 0).cloned(), Some(nulls)));
    };
    let (buffer, ones) = take_bits(valid, indices, pool)?;
    let nulls = indices.len() - ones;
    Ok(((nulls > 0).then_some(Bitmap { buffer, offset: 0 }), Some(nulls)))
}

/// Takes the buffers that have a part for every row; variadic buffers are shared.
fn take_slots(array: &DeviceArray, indices: &Indices, pool: &HostPool, parts: &mut Parts) -> Result<()> {
    let mut buffers = array.buffers().iter();
    for (slot, buffer) in array.layout().slots().zip(buffers.by_ref()) {
        parts.buffers.push(match slot {
            Slot::Bits => take_bits(rows::booleans(array), indices, pool)?.0,
            Slot::Fixed(width) => take_rows(array, buffer, width, indices, pool)?,
            Slot::Views => take_rows(array, buffer, 16, indices, pool)?,
            Slot::Offsets(_) | Slot::Bytes => unreachable!("types with offsets have their own way"),
        });
    }
    parts.buffers.extend(buffers.cloned());
    Ok(())
}

fn take_rows(
    array: &DeviceArray,
    buffer: &Buffer,
    width: usize,
    indices: &Indices,
    pool: &HostPool,
) -> Result<Buffer> {
    match width {
        0 => indices.check(array.len()).map(|()| Buffer::empty()),
        1 => take_values::<1>(array, buffer, indices, pool),
        2 => take_values::<2>(array, buffer, indices, pool),
        4 => take_values::<4>(array, buffer, indices, pool),
        8 => take_values::<8>(array, buffer, indices, pool),
        16 => take_values::<16>(array, buffer, indices, pool),
        32 => take_values::<32>(array, buffer, indices, pool),
        _ => take_any_width(array, buffer, width, indices, pool),
    }
}

fn take_values<const W: usize>(
    array: &DeviceArray,
    buffer: &Buffer,
    indices: &Indices,
    pool: &HostPool,
) -> Result<Buffer> {
    let values = rows::values::<W>(buffer, array.offset(), array.len());
    let limit = indices.limit(array.len());
    let valid = indices.valid();
    let mut memory = pool.alloc(indices.len() * W)?;
    let out = &mut memory::values_mut::<[u8; W]>(&mut memory)[..indices.len()];
    let good = match indices.values() {
        Width::Narrow(indices) => each_chunk(out, rows::CHUNK, indices.len(), |first, out| {
            let valid = valid.map(|valid| valid.slice(first, out.len()));
            intrinsics::gather(values, &indices[first..first + out.len()], limit, valid, out)
        })?,
        Width::Wide(indices) => each_chunk(out, rows::CHUNK, indices.len(), |first, out| {
            let valid = valid.map(|valid| valid.slice(first, out.len()));
            intrinsics::gather(values, &indices[first..first + out.len()], limit, valid, out)
        })?,
    };
    if !good {
        indices.check(array.len())?;
    }
    Ok(memory.freeze(indices.len() * W))
}

/// The number of rows from which threads pay off. A row at random takes several times as long as one of a
/// filter.
pub(crate) const SHARED: usize = PARALLEL / 2;

/// The items of lists that are collected between two checks for an interrupt.
const ITEMS: usize = 1 << 20;

/// Calls `write` with every `chunk` elements of `out` and the index of their first. Returns whether all calls
/// are true.
fn each_chunk<T: Send>(
    out: &mut [T],
    chunk: usize,
    rows: usize,
    write: impl Fn(usize, &mut [T]) -> bool + Sync,
) -> Result<bool> {
    among_threads(rows >= SHARED, |large| match large {
        true => {
            let parts = out.chunks_mut(chunk).enumerate();
            Ok(each_part(parts, |(i, out)| write(i * chunk, out))?.into_iter().all(|good| good))
        }
        false => {
            let parts = out.chunks_mut(chunk).enumerate();
            Ok(parts.fold(true, |all, (i, out)| all & write(i * chunk, out)))
        }
    })
}

fn take_any_width(
    array: &DeviceArray,
    buffer: &Buffer,
    width: usize,
    indices: &Indices,
    pool: &HostPool,
) -> Result<Buffer> {
    let start = array.offset() * width;
    let values = &memory::bytes(buffer)[start..start + array.len() * width];
    let bytes = indices.len().checked_mul(width).ok_or_else(|| rows::too_long(array))?;
    let mut memory = pool.alloc(bytes)?;
    let mut out = memory.bytes_mut()[..bytes].chunks_exact_mut(width);
    let mut moved = 0;
    indices.visit(array.len(), |_, index| {
        let out = out.next().expect("a value for every index");
        // A look for each row would take longer than most rows.
        moved += width;
        if moved >= memory::LOOK {
            interrupt::check()?;
            moved = 0;
        }
        match index {
            Some(index) => out.copy_from_slice(&values[index * width..(index + 1) * width]),
            None => out.fill(0),
        }
        Ok(())
    })?;
    Ok(memory.freeze(bytes))
}

/// Takes the bits at `indices`, 0 if an index is null. Returns them and the number of set ones.
pub(crate) fn take_bits(bits: Bits, indices: &Indices, pool: &HostPool) -> Result<(Buffer, usize)> {
    let words = indices.len().div_ceil(64);
    let limit = indices.limit(bits.len());
    let valid = indices.valid();
    let mut memory = pool.alloc(words * 8)?;
    let out = &mut memory::values_mut::<u64>(&mut memory)[..words];
    let good = match indices.values() {
        Width::Narrow(values) => each_chunk(out, rows::CHUNK / 64, indices.len(), |first, out| {
            let values = &values[first * 64..(first * 64 + out.len() * 64).min(values.len())];
            let valid = valid.map(|valid| valid.slice(first * 64, values.len()));
            intrinsics::gather_bits(bits, values, limit, valid, out)
        })?,
        Width::Wide(values) => each_chunk(out, rows::CHUNK / 64, indices.len(), |first, out| {
            let values = &values[first * 64..(first * 64 + out.len() * 64).min(values.len())];
            let valid = valid.map(|valid| valid.slice(first * 64, values.len()));
            intrinsics::gather_bits(bits, values, limit, valid, out)
        })?,
    };
    if !good {
        indices.check(bits.len())?;
    }
    let ones = intrinsics::count_ones(out);
    Ok((memory.freeze(indices.len().div_ceil(8)), ones))
}

/// Takes the items of the taken rows, `size` each; those of a null row are unspecified.
fn take_fixed_lists(
    array: &DeviceArray,
    size: usize,
    indices: &Indices,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let child = array.child_rows(0)?;
    if !ranges::dense(&child) && !array.is_empty() {
        let mut items = Ranges::with_room(indices.len(), pool)?;
        indices.visit(array.len(), |_, index| {
            let first = index.unwrap_or(0) * size;
            items.push(first..first + size)
        })?;
        return take_ranges(&child, &items, pool);
    }
    let room = indices.len().checked_mul(size).ok_or_else(|| rows::too_long(array))?;
    let mut items = Rows::with_room(room, pool)?;
    indices.visit(array.len(), |_, index| {
        (0..size).try_for_each(|i| items.push(index.map(|index| index * size + i)))
    })?;
    take(&child, &items.finish(), pool)
}

/// Takes lists with offsets of `O` bytes. Fills in the offsets, and the child with the items of the taken
/// rows.
fn take_lists<const O: usize>(
    array: &DeviceArray,
    indices: &Indices,
    pool: &HostPool,
    parts: &mut Parts,
) -> Result<()> {
    let offsets = rows::offsets::<O>(array);
    let child = &array.children()[0];
    let mut memory = pool.alloc((indices.len() + 1) * O)?;
    let ends = &mut memory::values_mut::<[u8; O]>(&mut memory)[..indices.len() + 1];
    ends[0] = rows::offset_bytes(0);
    let mut total = 0usize;
    let valid = rows::validity(array);
    let range = |index: usize| match valid {
        Some(valid) if !valid.get(index) => Ok(0..0),
        _ => rows::range(offsets, index, child.len()),
    };
    indices.visit(array.len(), |row, index| {
        if let Some(index) = index {
            total = total.checked_add(range(index)?.len()).ok_or_else(|| rows::too_long(array))?;
        }
        ends[row + 1] = rows::offset_bytes(total);
        Ok(())
    })?;
    if total > rows::largest_offset::<O>() {
        return Err(rows::too_long(array));
    }
    parts.buffers.push(memory.freeze((indices.len() + 1) * O));

    if !ranges::dense(child) {
        let mut items = Ranges::with_room(indices.len(), pool)?;
        indices.visit(array.len(), |_, index| match index {
            Some(index) => items.push(range(index)?),
            None => Ok(()),
        })?;
        parts.children = vec![take_ranges(child, &items, pool)?];
        return Ok(());
    }
    let mut items = pool.alloc(total.checked_mul(8).ok_or_else(|| rows::too_long(array))?)?;
    let mut out = memory::values_mut::<u64>(&mut items).iter_mut();
    let mut looked = 0;
    indices.visit(array.len(), |_, index| {
        if let Some(index) = index {
            let range = range(index)?;
            looked += range.len();
            if looked >= ITEMS {
                interrupt::check()?;
                looked = 0;
            }
            // `range` comes first, because `zip` takes from its left side before it finds the right one
            // exhausted.
            range.zip(out.by_ref()).for_each(|(item, out)| *out = item as u64);
        }
        Ok(())
    })?;
    let items = Indices::of_buffer(items.freeze(total * 8), true, total);
    parts.children = vec![take(child, &items, pool)?];
    Ok(())
}

/// Takes rows of a union. Unions have no validity: a null row is a null of the first nullable member.
fn take_union(array: &DeviceArray, indices: &Indices, pool: &HostPool, parts: &mut Parts) -> Result<()> {
    let DataType::Union(fields, mode) = array.data_type() else { unreachable!("called with unions") };
    let null_type = match indices.null_count()? {
        0 => None,
        _ => {
            let member = null_member(fields);
            if member.is_none() {
                // An index that is out of bounds takes precedence over other errors, on every device.
                indices.check(array.len())?;
            }
            let missing = || Error::invalid("take", "null indices into a union without a nullable member");
            Some(member.ok_or_else(missing)?)
        }
    };
    let types = rows::values::<1>(&array.buffers()[0], array.offset(), array.len());
    let mut memory = pool.alloc(indices.len())?;
    let out = &mut memory.bytes_mut()[..indices.len()];
    indices.visit(array.len(), |row, index| {
        out[row] = match (index, null_type) {
            (Some(index), _) => types[index][0],
            (None, null_type) => null_type.unwrap_or(0) as u8,
        };
        Ok(())
    })?;
    if *mode == UnionMode::Sparse {
        parts.buffers = vec![memory.freeze(indices.len())];
        // A null row selects the nullable member. The contents of other members there do not matter, so one
        // that cannot hold nulls takes any row.
        let blind =
            |(id, field): (i8, &FieldRef)| null_type.is_some_and(|null| null != id) && !says_null(field);
        let any = match fields.iter().any(blind) && !array.is_empty() {
            true => Some(indices.without_nulls(array.len(), pool)?),
            false => None,
        };
        let children = fields.iter().enumerate().map(|(i, member)| {
            let indices = any.as_ref().filter(|_| blind(member)).unwrap_or(indices);
            take(&array.child_rows(i)?, indices, pool)
        });
        parts.children = children.collect::<Result<_>>()?;
        return Ok(());
    }

    // Dense unions: each child's rows are ordered by their first use, as the format demands.
    let offsets = rows::values::<4>(&array.buffers()[1], array.offset(), array.len());
    let of_type = |row: usize| {
        let unknown =
            || Error::out_of_spec("array.buffers[0]", format!("type {} in row {row}", out[row] as i8));
        fields.iter().position(|(id, _)| id as u8 == out[row]).ok_or_else(unknown)
    };
    let mut counts = vec![0; fields.len()];
    (0..indices.len()).try_for_each(|row| of_type(row).map(|child| counts[child] += 1))?;
    let mut taken = counts.into_iter().map(|rows| Rows::with_room(rows, pool)).collect::<Result<Vec<_>>>()?;
    let mut new_offsets = pool.alloc(indices.len() * 4)?;
    let positions = memory::values_mut::<i32>(&mut new_offsets);
    indices.visit(array.len(), |row, index| {
        let child = of_type(row)?;
        let (rows, len) = (&mut taken[child], array.children()[child].len());
        let offset = index.map(|index| rows::offset(offsets[index]));
        if let Some(outside) = offset.filter(|offset| *offset >= len) {
            return Err(Error::out_of_spec("array.buffers[1]", format!("{outside} of {len} rows")));
        }
        positions[row] = i32::try_from(rows.len()).map_err(|_| rows::too_long(array))?;
        rows.push(offset)
    })?;
    parts.buffers = vec![memory.freeze(indices.len()), new_offsets.freeze(indices.len() * 4)];
    for (child, taken) in array.children().iter().zip(taken) {
        parts.children.push(take(child, &taken.finish(), pool)?);
    }
    Ok(())
}

/// Takes the rows in ranges from an array that is not [`dense`](ranges::dense). The ranges must lie inside of
/// it.
pub(crate) fn take_ranges(array: &DeviceArray, ranges: &Ranges, pool: &HostPool) -> Result<DeviceArray> {
    if ranges.rows() == 0 {
        return array.slice(0, 0);
    }
    let mut parts = Parts::new(array.data_type().clone(), ranges.rows());
    match array.data_type() {
        DataType::FixedSizeBinary(_) => parts.buffers = vec![Buffer::empty()],
        DataType::FixedSizeList(_, 0) => parts.children = vec![array.children()[0].slice(0, 0)?],
        DataType::FixedSizeList(_, size) => {
            let items = ranges.of_items(*size as usize, pool)?;
            parts.children = vec![take_ranges(&array.child_rows(0)?, &items, pool)?];
        }
        DataType::Struct(_) => {
            parts.children = (0..array.children().len())
                .map(|i| take_ranges(&array.child_rows(i)?, ranges, pool))
                .collect::<Result<_>>()?;
        }
        DataType::RunEndEncoded(..) => {
            parts.children = take_runs(array, run_ends::in_ranges(array, ranges, pool)?, pool)?
        }
        _ => debug_assert_eq!(*array.data_type(), DataType::Null, "an array that is not dense"),
    }
    DeviceArray::made(parts, array.known_valid())
}

/// Builds the children of an array of the runs that were found: their ends, and the value of each.
pub(crate) fn take_runs(
    array: &DeviceArray,
    (ends, runs): (DeviceArray, Indices),
    pool: &HostPool,
) -> Result<Vec<DeviceArray>> {
    Ok(vec![ends, take(&array.children()[1], &runs, pool)?])
}
