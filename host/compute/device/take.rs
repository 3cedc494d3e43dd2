//! Take: values by indices, columns of equal width in one launch. Everything but an error is known beforehand, so
//! nothing is waited for: an index out of range surfaces when somebody waits for the result. Only how much strings and
//! lists have is data: where there are some, the host looks at the totals of all of them, once.

use std::collections::BTreeMap;

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::offsets::{OFFENDER, Offender};
use bowstring_kernels::take::{TAKE, TAKE_BITS, Take, TakeBits, TakeBitsRow, TakeRow, take_waves};
use bowstring_kernels::target::find;

use super::ranges::{Indices, Node, Planner, has_ranges};
use super::{
    Children, Status, aligned, children_of, empty_like, fixed_width, nodes, rows_of, unit,
    validity_from_start,
};
use crate::array::{Array, Bitmap, Parts, Slot};
use crate::compute::{OutOfBounds, TakeOptions};
use crate::launch::{Pass, Region, bits, input, validity};
use crate::{Error, Result, Stream};

/// The rows of columns of `rows` rows at `indices`. Synchronises once where rows are ranges, else not.
pub(in crate::compute) fn take(
    columns: &[&Array],
    rows: usize,
    indices: &Array,
    options: &TakeOptions,
    stream: &Stream,
) -> Result<Vec<Array>> {
    let mut pass = Pass::begin("take", stream)?;
    pass.input(indices)?;
    for column in columns {
        pass.input(column)?;
    }
    if indices.is_empty() {
        index_width(indices)?;
        let taken = columns.iter().map(|column| empty_like(column, &pass)).collect::<Result<_>>()?;
        pass.finish()?;
        return Ok(taken);
    }
    if rows == 0 {
        // There is no row to take: nulls, if the indices have nothing else to say. Synchronises, to be sure.
        Taking::new(&mut pass, rows, indices, options, &[])?.launch(&mut pass)?;
        let taken = columns
            .iter()
            .map(|column| nulls_like(&mut pass, column, indices.len()))
            .collect::<Result<_>>()?;
        pass.finish()?;
        return Ok(taken);
    }
    let mut taking = Taking::new(&mut pass, rows, indices, options, columns)?;
    let planned: Vec<Planned> =
        columns.iter().map(|column| taking.column(&mut pass, column)).collect::<Result<_>>()?;
    taking.launch(&mut pass)?;
    let taken = match taking.has_ranges {
        false => planned.into_iter().map(|planned| planned.build(&mut pass, &[])).collect::<Result<_>>()?,
        true => {
            let words = pass.read(&taking.status.region)?;
            let first = words[taking.first_fault];
            if first != u64::MAX && !taking.null_out_of_bounds {
                let index = index_of(indices.data_type(), words[taking.offender]);
                return Err(Error::IndexOutOfBounds { row: first as usize, index, len: rows });
            }
            planned.into_iter().map(|planned| planned.build(&mut pass, &words)).collect::<Result<_>>()?
        }
    };
    pass.finish()?;
    Ok(taken)
}

/// `len` null rows like those of `array`.
fn nulls_like(pass: &mut Pass, array: &Array, len: usize) -> Result<Array> {
    let (data_type, layout) = (array.data_type(), array.layout());
    let mut parts = pass.parts(data_type.clone(), len);
    if layout.validity {
        let bits = pass.zeroed(len.div_ceil(8))?;
        parts.validity = Some(Bitmap { buffer: bits.buffer(), offset: 0 });
        parts.null_count = Some(len);
    } else if *data_type != DataType::Null {
        // A union or a run cannot say that a row is null.
        return Err(pass.unsupported(data_type));
    }
    for slot in layout.slots() {
        parts.buffers.push(pass.zeroed(slot.bytes_for(len).unwrap_or(0))?.buffer());
    }
    for child in array.children() {
        parts.children.push(match data_type {
            DataType::Struct(_) => nulls_like(pass, child, len)?,
            DataType::FixedSizeList(_, size) => nulls_like(pass, child, len * *size as usize)?,
            _ => empty_like(child, pass)?,
        });
    }
    parts.dictionary = array.dictionary().cloned();
    Array::try_new(parts)
}

/// The bytes of an index, and the greatest that its type can say.
fn index_width(indices: &Array) -> Result<(usize, u64)> {
    use DataType::*;
    Ok(match indices.data_type() {
        Int8 => (1, i8::MAX as u64),
        UInt8 => (1, u8::MAX.into()),
        Int16 => (2, i16::MAX as u64),
        UInt16 => (2, u16::MAX.into()),
        Int32 => (4, i32::MAX as u64),
        UInt32 => (4, u32::MAX.into()),
        Int64 => (8, i64::MAX as u64),
        UInt64 => (8, u64::MAX),
        other => return Err(Error::invalid("take", format!("indices are {other}, not integers"))),
    })
}

/// An array as far as it is taken before the totals are known.
struct Planned {
    parts: Parts,
    ranges: Option<Node>,
    /// Children that move along.
    children: Option<Vec<Planned>>,
}

impl Planned {
    fn build(mut self, pass: &mut Pass, words: &[u64]) -> Result<Array> {
        if let Some(children) = self.children {
            self.parts.children =
                children.into_iter().map(|child| child.build(pass, words)).collect::<Result<_>>()?;
        }
        if let Some(node) = self.ranges {
            node.build(pass, self.parts.len, words, &mut self.parts)?;
        }
        Array::try_new(self.parts)
    }
}

/// What is taken by the same indices, until it is launched.
struct Taking {
    indices: Array,
    by: Indices,
    /// How many rows the columns have.
    rows: usize,
    null_out_of_bounds: bool,
    /// The first row whose index is out of range is the first fault; behind it are those of ranges, and their totals.
    status: Status,
    first_fault: usize,
    /// The index of that row is the first sum.
    offender: usize,
    has_ranges: bool,
    /// By unit, pieces, and whether the values have nulls: a table.
    values: BTreeMap<(usize, usize, bool), Vec<u64>>,
    bitmaps: Vec<u64>,
}

/// Words of a column in a table of values.
const ROW: usize = 9;
/// Words of a bitmap in a table.
const BITS_ROW: usize = 5;

impl Taking {
    fn new(
        pass: &mut Pass,
        rows: usize,
        indices: &Array,
        options: &TakeOptions,
        columns: &[&Array],
    ) -> Result<Taking> {
        let (width, greatest) = index_width(indices)?;
        let nodes: usize = columns.iter().map(|column| nodes(column)).sum();
        let mut status = Status::new(pass, 1 + nodes, 1 + nodes)?;
        let ((offender, _), (first_fault, fault)) = (status.take(1), status.fault());
        let values = rows_of(indices, &indices.buffers()[0], width);
        let by = Indices {
            indices: aligned(pass, &values, width)?,
            width: width as u32,
            valid: validity(indices),
            len: indices.len(),
            // Kernels read negative indices as huge ones: beyond the greatest.
            limit: (rows as u64).min(greatest.saturating_add(1)),
            fault,
        };
        Ok(Taking {
            indices: indices.clone(),
            by,
            rows,
            first_fault,
            offender,
            has_ranges: false,
            null_out_of_bounds: options.out_of_bounds == OutOfBounds::Null,
            status,
            values: BTreeMap::new(),
            bitmaps: vec![],
        })
    }

    fn column(&mut self, pass: &mut Pass, array: &Array) -> Result<Planned> {
        let mut parts = pass.parts(array.data_type().clone(), self.by.len);
        let mut validity = self.validity(pass, array, &mut parts)?;
        parts.dictionary = array.dictionary().cloned();
        let (mut ranges, mut children) = (None, None);
        match children_of(array.data_type()) {
            Some(Children::Along) => {
                let along = (0..array.children().len()).map(|i| self.column(pass, &array.child_rows(i)?));
                children = Some(along.collect::<Result<_>>()?);
            }
            Some(Children::Shared) => parts.children = array.children().to_vec(),
            Some(Children::Ranges) => {}
            None => return Err(pass.unsupported(array.data_type())),
        }
        // Its offsets must not go back, as taken ones would.
        if let DataType::Union(_, UnionMode::Dense) = array.data_type() {
            return Err(pass.unsupported(array.data_type()));
        }
        if has_ranges(array) {
            let status = &mut self.status;
            let mut planner = Planner { pass, status, rows: self.by.len, count: In::absent() };
            ranges = Some(Node::taken(&mut planner, &self.by, array)?);
            self.has_ranges = true;
        }
        let slots: Vec<Slot> = array.layout().slots().collect();
        for (slot, buffer) in slots.iter().zip(array.buffers()).filter(|_| ranges.is_none()) {
            let taken = match (slot, fixed_width(*slot)) {
                (Slot::Bits, _) => {
                    let values = Bitmap { buffer: buffer.clone(), offset: array.offset() };
                    let taken = pass.zeroed(parts.len.div_ceil(8))?;
                    self.bits(bits(&values), &taken);
                    taken
                }
                (_, Some(width)) => {
                    let taken = pass.output(parts.len * width)?;
                    let source = rows_of(array, buffer, width);
                    self.values(array, input(&source), source.address(), width, &taken, &mut validity);
                    taken
                }
                _ => return Err(pass.unsupported(array.data_type())),
            };
            parts.buffers.push(taken.buffer());
        }
        // The data that views point into stays where it is.
        parts.buffers.extend(array.buffers()[slots.len()..].iter().cloned());
        self.rest_of_validity(pass, array, validity)?;
        Ok(Planned { parts, ranges, children })
    }

    /// Takes a validity that nothing else has taken along.
    fn rest_of_validity(&mut self, pass: &mut Pass, array: &Array, left: Option<Validity>) -> Result<()> {
        match left {
            Some(Validity::OfRows(target)) => {
                let own = array.validity().map_or((In::absent(), 0), bits);
                self.bits(own, &target);
            }
            Some(Validity::OfIndices(target)) => {
                // Of rows that are all valid: what is unset then is what has no row.
                let valid = pass.output(array.len().div_ceil(8).max(1))?;
                pass.fill(&valid, 0xff)?;
                self.bits((valid.input(), 0), &target);
            }
            None => {}
        }
        Ok(())
    }

    /// Decides where an array's validity comes from, and notes it in `parts`: what is left to do is returned.
    fn validity(&self, pass: &mut Pass, array: &Array, parts: &mut Parts) -> Result<Option<Validity>> {
        let nullable = |array: &Array| array.validity().is_some() && array.known_null_count() != Some(0);
        let (values, indices) = (nullable(array), nullable(&self.indices));
        if !array.layout().validity {
            // A union or a run cannot say that a row is null; a Null array need not.
            let silent = *array.data_type() == DataType::Null || !indices && !self.null_out_of_bounds;
            return if silent { Ok(None) } else { Err(pass.unsupported(array.data_type())) };
        }
        if !values && !self.null_out_of_bounds {
            // The rows that are null are those whose index is: it is the same bitmap.
            parts.validity = if indices { validity_from_start(pass, &self.indices)? } else { None };
            parts.null_count = if indices { self.indices.known_null_count() } else { Some(0) };
            return Ok(None);
        }
        let target = pass.zeroed(parts.len.div_ceil(8))?;
        parts.validity = Some(Bitmap { buffer: target.buffer(), offset: 0 });
        parts.null_count = None;
        Ok(Some(if values { Validity::OfRows(target) } else { Validity::OfIndices(target) }))
    }

    /// Takes values of `width` bytes, and the validity along where one access makes a value.
    fn values(
        &mut self,
        array: &Array,
        source: In<u8>,
        address: usize,
        width: usize,
        target: &Region,
        left: &mut Option<Validity>,
    ) {
        if width == 0 {
            return;
        }
        let unit = match unit(width, &[address]) {
            unit if unit == width => unit,
            // Several accesses a value come in these sizes only.
            unit => [16, 4, 1].into_iter().find(|size| *size <= unit).unwrap_or(1),
        };
        let mut row = TakeRow::<u8> {
            source,
            target: target.out(),
            valid: In::absent(),
            valid_offset: 0,
            target_valid: Out::absent(),
        };
        if unit == width {
            match left.take() {
                Some(Validity::OfRows(bitmap)) => {
                    (row.valid, row.valid_offset) = validity(array);
                    row.target_valid = bitmap.out();
                }
                Some(Validity::OfIndices(bitmap)) => row.target_valid = bitmap.out(),
                None => {}
            }
        }
        let words: [u64; ROW] = row.words();
        self.values.entry((unit, width / unit, !row.valid.is_absent())).or_default().extend(words);
    }

    /// Takes bits.
    fn bits(&mut self, (source, offset): (In<u32>, u64), target: &Region) {
        let words: [u64; BITS_ROW] = TakeBitsRow { source, offset, target: target.out() }.words();
        self.bitmaps.extend(words);
    }

    /// Launches what was noted, and has the status looked at later unless it must be looked at now.
    fn launch(&mut self, pass: &mut Pass) -> Result<()> {
        let nothing = self.values.is_empty() && self.bitmaps.is_empty();
        if nothing {
            // Nothing to move, but the indices are looked at all the same.
            self.values.insert((1, 1, false), vec![]);
        }
        let Indices { indices, width, valid: (valid, valid_offset), fault, limit, len } = self.by;
        let len = len as u64;
        let waves = take_waves(len, pass.width());
        let words: Vec<u64> = self.values.values().flatten().chain(&self.bitmaps).copied().collect();
        let tables = pass.upload(&words)?;
        let longest = self.values.values().map(|table| table.len() / ROW).max().unwrap_or(0);
        let nulls = pass.zeroed(8 * longest.max(self.bitmaps.len() / BITS_ROW).max(1))?;
        let mut start = 0;
        for ((unit, pieces, has_nulls), table) in &self.values {
            let end = start + 8 * table.len();
            let kind = if *pieces > 1 { 2 } else { u32::from(*has_nulls) };
            let entry = find(TAKE, &[*unit as u32, width, kind]).ok_or_else(|| pass.unsupported(unit))?;
            let args = Take {
                indices,
                valid,
                valid_offset,
                len,
                limit,
                table: tables.part(start, end),
                columns: (table.len() / ROW) as u64,
                nulls: nulls.out(),
                error: fault,
                pieces: *pieces as u64,
            };
            pass.launch(entry, waves, &args)?;
            start = end;
        }
        if !self.bitmaps.is_empty() {
            let entry = find(TAKE_BITS, &[width]).ok_or_else(|| pass.unsupported("bits"))?;
            let args = TakeBits {
                indices,
                valid,
                valid_offset,
                len,
                limit,
                table: tables.part(start, start + 8 * self.bitmaps.len()),
                columns: (self.bitmaps.len() / BITS_ROW) as u64,
                nulls: nulls.out(),
                error: fault,
            };
            pass.launch(entry, waves, &args)?;
        }
        if self.null_out_of_bounds {
            return Ok(());
        }
        // The index goes with its row: whoever looks at the status later cannot fetch it.
        let row = 8 * self.first_fault;
        let args = Offender {
            indices,
            row: self.status.region.part(row, row + 8),
            index: self.status.region.out().skip(self.offender as u64),
        };
        let entry = find(OFFENDER, &[width]).ok_or_else(|| pass.unsupported("indices"))?;
        pass.launch(entry, 1, &args)?;
        if !self.has_ranges {
            let (data_type, rows) = (self.indices.data_type().clone(), self.rows);
            let (first, offender) = (self.first_fault, self.offender);
            let check = move |words: &[u64]| match words[first] {
                u64::MAX => Ok(()),
                row => {
                    let index = index_of(&data_type, words[offender]);
                    Err(Error::IndexOutOfBounds { row: row as usize, index, len: rows })
                }
            };
            // Where nothing was moved there is nothing of a result to wait for later.
            match nothing {
                true => check(&pass.read(&self.status.region)?)?,
                false => pass.report(&self.status.region, check)?,
            }
        }
        Ok(())
    }
}

/// Where an array's validity is still to be taken to.
enum Validity {
    /// From the rows' own.
    OfRows(Region),
    /// All rows are valid, but not every index is one.
    OfIndices(Region),
}

/// An index of a type, from the unsigned number that kernels read.
fn index_of(data_type: &DataType, word: u64) -> i128 {
    match data_type {
        DataType::Int8 => i128::from(word as i8),
        DataType::Int16 => i128::from(word as i16),
        DataType::Int32 => i128::from(word as i32),
        DataType::Int64 => i128::from(word as i64),
        _ => i128::from(word),
    }
}
