//! Filter and take of run-end encoded arrays, without expanding them.
//!
//! The one idea: this file only determines the runs that remain, and their new ends. The caller takes the
//! values of those runs like any array: they may be run-end encoded themselves.

use std::ops::Range;

use arrow_schema::DataType;

use crate::array::{DeviceArray, Parts};
use crate::device::{HostMemory, HostPool, interrupt};
use crate::{Error, Result};

use super::indices::{Indices, Rows};
use super::ranges::Ranges;
use super::selection::Selection;
use super::{memory, rows, spans};

/// Run ends as stored: of any of three widths, and not adjusted for the array's offset.
struct Ends<'a> {
    bytes: &'a [u8],
    width: usize,
    offset: usize,
    runs: usize,
}

impl<'a> Ends<'a> {
    fn of(array: &'a DeviceArray) -> Ends<'a> {
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

    /// Returns the end of run `run`, before the array's offset is subtracted; 0 if it is negative.
    fn get(&self, run: usize) -> usize {
        let bytes = &self.bytes[run * self.width..(run + 1) * self.width];
        let end = match self.width {
            2 => i64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
            4 => i64::from(i32::from_le_bytes(bytes.try_into().expect("four bytes"))),
            _ => i64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        };
        usize::try_from(end).unwrap_or(0)
    }

    /// Returns the run of row `row`.
    fn find(&self, row: usize) -> Result<usize> {
        let logical = row + self.offset;
        let (mut low, mut high) = (0, self.runs);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle) <= logical { low = middle + 1 } else { high = middle }
        }
        if low < self.runs { Ok(low) } else { Err(uncovered(row)) }
    }

    /// Returns the run of the first row: a slice may be of few of many runs. The number of runs, if no run
    /// covers that row.
    fn first(&self) -> usize {
        if self.offset == 0 { 0 } else { self.find(0).unwrap_or(self.runs) }
    }
}

/// Returns the bytes of text in the rows of an array; a run counts once for each of its rows. A null has none
/// behind it, unless it is a view: arrow-rs repeats these with their lengths.
pub(crate) fn spanned(array: &DeviceArray) -> usize {
    let values = &array.children()[1];
    let is_hidden = matches!(
        values.data_type(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
    );
    let (len, valid) = (spans::of_row(values), rows::validity(values).filter(|_| is_hidden));
    let mut total = 0usize;
    // Rows without a run have no text.
    let _ = each(array, |run, rows| {
        if valid.is_none_or(|valid| valid.get(run)) {
            total = total.saturating_add(rows.len().saturating_mul(len(run)));
        }
        Ok(())
    });
    total
}

/// Calls `visit` with each run and its rows.
pub(crate) fn each(
    array: &DeviceArray,
    mut visit: impl FnMut(usize, Range<usize>) -> Result<()>,
) -> Result<()> {
    let ends = Ends::of(array);
    let mut row = 0;
    for run in ends.first()..ends.runs {
        if row == array.len() {
            break;
        }
        let end = ends.get(run).saturating_sub(ends.offset).min(array.len());
        if end > row {
            visit(run, row..end)?;
            row = end;
        }
    }
    if row < array.len() { Err(uncovered(row)) } else { Ok(()) }
}

/// Returns the values of the runs that an array's rows cover.
pub(crate) fn values(array: &DeviceArray) -> DeviceArray {
    let (ends, values) = (Ends::of(array), &array.children()[1]);
    let seen = match array.len() {
        0 => values.slice(0, 0),
        len => ends.find(0).and_then(|first| values.slice(first, ends.find(len - 1)? + 1 - first)),
    };
    seen.unwrap_or_else(|_| values.clone())
}

fn uncovered(row: usize) -> Error {
    Error::out_of_spec("array.children[0]", format!("no run for row {row}"))
}

/// Run ends and run numbers, as they are collected.
struct Runs {
    ends: HostMemory,
    runs: Rows,
    /// The last run and its end. It is stored once the next run begins.
    last: Option<(Option<usize>, usize)>,
}

impl Runs {
    fn with_room(runs: usize, pool: &HostPool) -> Result<Runs> {
        let ends = pool.alloc(runs.saturating_mul(8))?;
        Ok(Runs { ends, runs: Rows::with_room(runs, pool)?, last: None })
    }

    /// Extends the rows with run `run` (`None` is null) up to row `end`.
    fn push(&mut self, run: Option<usize>, end: usize) -> Result<()> {
        if let Some((last, before)) = self.last
            && last != run
        {
            memory::values_mut::<u64>(&mut self.ends)[self.runs.len()] = before as u64;
            self.runs.push(last)?;
        }
        self.last = Some((run, end));
        Ok(())
    }

    /// Returns the run ends, in the type of `like`, and the run numbers.
    fn finish(mut self, like: &DeviceArray, pool: &HostPool) -> Result<(DeviceArray, Indices)> {
        if let Some((last, end)) = self.last {
            memory::values_mut::<u64>(&mut self.ends)[self.runs.len()] = end as u64;
            self.runs.push(last)?;
        }
        let ends = &memory::values_mut::<u64>(&mut self.ends)[..self.runs.len()];
        let ends = ends_array(ends, like, pool)?;
        Ok((ends, self.runs.finish()))
    }
}

/// Returns run ends as an array of the type of `like`.
fn ends_array(ends: &[u64], like: &DeviceArray, pool: &HostPool) -> Result<DeviceArray> {
    let width = match like.data_type() {
        DataType::Int16 => 2,
        DataType::Int32 => 4,
        _ => 8,
    };
    if ends.last().is_some_and(|last| *last > i64::MAX as u64 >> (64 - 8 * width)) {
        let problem = format!("{:?} rows need wider run ends than {}", ends.last(), like.data_type());
        return Err(Error::invalid("take", problem));
    }
    let mut memory = pool.alloc(ends.len() * width)?;
    for (out, end) in memory.bytes_mut().chunks_exact_mut(width).zip(ends) {
        out.copy_from_slice(&end.to_le_bytes()[..width]);
    }
    let mut parts = Parts::new(like.data_type().clone(), ends.len());
    parts.buffers.push(memory.freeze(ends.len() * width));
    DeviceArray::made(parts, false)
}

/// The runs between two checks for an interrupt.
const LOOK: usize = 1 << 16;

/// Returns the runs that keep at least one row of a selection.
pub(crate) fn kept(
    array: &DeviceArray,
    selection: &Selection,
    pool: &HostPool,
) -> Result<(DeviceArray, Indices)> {
    let ends = Ends::of(array);
    let (words, first) = (selection.words(), ends.first());
    let mut runs = Runs::with_room((ends.runs - first).min(selection.len()), pool)?;
    let (mut row, mut kept) = (0, 0);
    for run in first..ends.runs {
        if row == array.len() {
            break;
        }
        let end = ends.get(run).saturating_sub(ends.offset).min(array.len());
        let before = kept;
        if run % LOOK == LOOK - 1 {
            interrupt::check()?;
        }
        while row < end {
            let len = (64 - row % 64).min(end - row);
            kept += (words[row / 64] >> (row % 64) & rows::ones(len)).count_ones() as usize;
            row += len;
        }
        if kept > before {
            runs.push(Some(run), kept)?;
        }
    }
    if row < array.len() {
        return Err(uncovered(row));
    }
    runs.finish(&array.children()[0], pool)
}

/// Returns the runs of the rows in ranges; neighbouring rows of one run stay one run.
pub(crate) fn in_ranges(
    array: &DeviceArray,
    ranges: &Ranges,
    pool: &HostPool,
) -> Result<(DeviceArray, Indices)> {
    let ends = Ends::of(array);
    let mut room = 0usize;
    for range in ranges.iter() {
        let (first, last) = (ends.find(range.start)?, ends.find(range.end - 1)?);
        room = room.saturating_add(last.saturating_sub(first) + 1);
    }
    let mut runs = Runs::with_room(room, pool)?;
    let mut end = 0;
    for range in ranges.iter() {
        let (first, last) = (ends.find(range.start)?, ends.find(range.end - 1)?);
        let mut row = range.start;
        for run in first..=last {
            let stop = if run == last { range.end } else { ends.get(run).saturating_sub(ends.offset) };
            end += stop.saturating_sub(row);
            row = stop;
            runs.push(Some(run), end)?;
        }
    }
    if end != ranges.rows() {
        return Err(Error::out_of_spec("array.children[0]", "run ends that go back"));
    }
    runs.finish(&array.children()[0], pool)
}

/// Returns the runs of the rows at `indices`; neighbouring rows of one run stay one run.
pub(crate) fn at(array: &DeviceArray, indices: &Indices, pool: &HostPool) -> Result<(DeviceArray, Indices)> {
    if let DataType::RunEndEncoded(_, values) = array.data_type()
        && !values.is_nullable()
        && indices.null_count()? > 0
    {
        return Err(Error::invalid("take", "null indices into runs of values that may not be null"));
    }
    let ends = Ends::of(array);
    let mut runs = Runs::with_room(indices.len(), pool)?;
    indices.visit(array.len(), |row, index| {
        runs.push(index.map(|index| ends.find(index)).transpose()?, row + 1)
    })?;
    runs.finish(&array.children()[0], pool)
}
