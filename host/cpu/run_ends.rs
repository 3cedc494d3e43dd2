//! Run-end encoded arrays, filtered and taken from without being expanded.

use arrow_schema::DataType;

use crate::array::{Array, Parts};
use crate::device::HostPool;
use crate::{Error, Result};

use super::indices::Indices;
use super::selection::Selection;
use super::{filter::filter as filter_array, memory, rows, take::take as take_array};

/// Run ends as they are stored: of any of three widths, before the array's offset.
struct Ends<'a> {
    bytes: &'a [u8],
    width: usize,
    offset: usize,
    runs: usize,
}

impl<'a> Ends<'a> {
    fn of(array: &'a Array) -> Ends<'a> {
        let ends = &array.children()[0];
        let width = match ends.data_type() {
            DataType::Int16 => 2,
            DataType::Int32 => 4,
            _ => 8,
        };
        let start = ends.offset() * width;
        let bytes = &memory::bytes(&ends.buffers()[0])[start..start + ends.len() * width];
        Ends { bytes, width, offset: array.offset(), runs: ends.len() }
    }

    /// The row behind run `run`, before the array's offset is taken off; 0 where that is negative.
    fn get(&self, run: usize) -> usize {
        let bytes = &self.bytes[run * self.width..(run + 1) * self.width];
        let end = match self.width {
            2 => i64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
            4 => i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))),
            _ => i64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        };
        usize::try_from(end).unwrap_or(0)
    }

    /// The run of row `row`.
    fn find(&self, row: usize) -> Result<usize> {
        let logical = row + self.offset;
        let (mut low, mut high) = (0, self.runs);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle) <= logical { low = middle + 1 } else { high = middle }
        }
        if low < self.runs { Ok(low) } else { Err(uncovered(row)) }
    }
}

fn uncovered(row: usize) -> Error {
    Error::out_of_spec("array.children[0]", format!("no run for row {row}"))
}

/// An array of these run ends, of the type that `like` has.
fn ends_array(ends: &[usize], like: &Array, pool: &HostPool) -> Result<Array> {
    let width = match like.data_type() {
        DataType::Int16 => 2,
        DataType::Int32 => 4,
        _ => 8,
    };
    if ends.last().is_some_and(|last| *last > i64::MAX as usize >> (64 - 8 * width)) {
        let problem = format!("{:?} rows need wider run ends than {}", ends.last(), like.data_type());
        return Err(Error::invalid("take", problem));
    }
    let mut memory = pool.alloc(ends.len() * width)?;
    for (out, end) in memory.bytes_mut().chunks_exact_mut(width).zip(ends) {
        out.copy_from_slice(&(*end as u64).to_le_bytes()[..width]);
    }
    let mut parts = Parts::new(like.data_type().clone(), ends.len());
    parts.buffers.push(memory.freeze(ends.len() * width));
    Array::made(parts, false)
}

/// The kept rows; a run of which none is kept goes.
pub(crate) fn filter(array: &Array, selection: &Selection, pool: &HostPool, parts: &mut Parts) -> Result<()> {
    let ends = Ends::of(array);
    let words = selection.words();
    let mut new_ends = vec![];
    let mut kept_runs = vec![0u64; ends.runs.div_ceil(64)];
    let (mut row, mut kept) = (0, 0);
    for run in 0..ends.runs {
        let end = ends.get(run).saturating_sub(ends.offset).min(array.len());
        let before = kept;
        while row < end {
            let len = (64 - row % 64).min(end - row);
            kept += (words[row / 64] >> (row % 64) & rows::ones(len)).count_ones() as usize;
            row += len;
        }
        if kept > before {
            new_ends.push(kept);
            rows::set(&mut kept_runs, run, run + 1);
        }
    }
    if row < array.len() {
        return Err(uncovered(row));
    }
    let runs = Selection::from_words(ends.runs, pool, |out, first| {
        out.copy_from_slice(&kept_runs[first..first + out.len()]);
    })?;
    let values = filter_array(&array.children()[1], &runs, pool)?;
    parts.children = vec![ends_array(&new_ends, &array.children()[0], pool)?, values];
    Ok(())
}

/// The rows at `indices`; neighbours of one run stay one.
pub(crate) fn take(array: &Array, indices: &Indices, pool: &HostPool, parts: &mut Parts) -> Result<()> {
    if let DataType::RunEndEncoded(_, values) = array.data_type()
        && !values.is_nullable()
        && indices.null_count() > 0
    {
        return Err(Error::invalid("take", "null indices into runs of values that may not be null"));
    }
    let ends = Ends::of(array);
    let (mut new_ends, mut runs) = (vec![], vec![]);
    let mut last = None;
    indices.visit(array.len(), |row, index| {
        let run = index.map(|index| ends.find(index)).transpose()?;
        if last.is_some_and(|last| last != run) {
            new_ends.push(row);
            runs.extend(last);
        }
        last = Some(run);
        Ok(())
    })?;
    runs.extend(last);
    new_ends.extend((indices.len() > 0).then_some(indices.len()));
    let values = take_array(&array.children()[1], &Indices::from_rows(&runs, pool)?, pool)?;
    parts.children = vec![ends_array(&new_ends, &array.children()[0], pool)?, values];
    Ok(())
}
