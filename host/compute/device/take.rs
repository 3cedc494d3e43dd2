//! Take: values by indices, columns of equal width in one launch. Everything but an error is known beforehand, so
//! nothing is waited for: an index out of range surfaces when somebody waits for the result.

use std::collections::BTreeMap;

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::take::{TAKE, TAKE_BITS, Take, TakeBits, TakeBitsRow, TakeRow, take_waves};
use bowstring_kernels::target::find;

use super::{Children, aligned, children_of, empty_like, fixed_width, rows_of, unit};
use crate::array::{Array, Bitmap, Parts, Slot};
use crate::compute::{OutOfBounds, TakeOptions};
use crate::launch::{Pass, Region, bits, input, validity};
use crate::{Error, Result, Stream, exchange};

/// The rows of columns of `rows` rows at `indices`. Does not synchronise.
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
    let mut taking = Taking::new(&mut pass, rows, indices, options)?;
    let taken = match indices.is_empty() {
        true => columns.iter().map(|column| empty_like(column, &pass)).collect::<Result<_>>()?,
        false => columns.iter().map(|column| taking.column(&mut pass, column)).collect::<Result<_>>()?,
    };
    taking.launch(&mut pass)?;
    pass.finish()?;
    Ok(taken)
}

/// What is taken by the same indices, until it is launched.
struct Taking {
    indices: Array,
    index_width: usize,
    /// How many rows the values have, and the first index that is not one of them.
    rows: usize,
    limit: u64,
    null_out_of_bounds: bool,
    /// Values to read where there are none: zeroes.
    dummy: Option<Region>,
    /// The first row whose index is out of range.
    error: Region,
    /// By unit, pieces, and whether the values have nulls: a table.
    values: BTreeMap<(usize, usize, bool), Vec<u64>>,
    bitmaps: Vec<u64>,
}

/// Words of a column in a table of values.
const ROW: usize = 9;
/// Words of a bitmap in a table.
const BITS_ROW: usize = 5;
/// More than the widest value is.
const DUMMY_BYTES: usize = 64;

impl Taking {
    fn new(pass: &mut Pass, rows: usize, indices: &Array, options: &TakeOptions) -> Result<Taking> {
        use DataType::*;
        let (index_width, greatest) = match indices.data_type() {
            Int8 => (1, i8::MAX as u64),
            UInt8 => (1, u8::MAX.into()),
            Int16 => (2, i16::MAX as u64),
            UInt16 => (2, u16::MAX.into()),
            Int32 => (4, i32::MAX as u64),
            UInt32 => (4, u32::MAX.into()),
            Int64 => (8, i64::MAX as u64),
            UInt64 => (8, u64::MAX),
            other => return Err(Error::invalid("take", format!("indices are {other}, not integers"))),
        };
        let error = pass.output(8)?;
        pass.fill(&error, 0xff)?;
        Ok(Taking {
            indices: indices.clone(),
            index_width,
            rows,
            // Kernels read negative indices as huge ones: beyond the greatest.
            limit: (rows as u64).min(greatest.saturating_add(1)),
            null_out_of_bounds: options.out_of_bounds == OutOfBounds::Null,
            dummy: if rows == 0 { Some(pass.zeroed(DUMMY_BYTES)?) } else { None },
            error,
            values: BTreeMap::new(),
            bitmaps: vec![],
        })
    }

    fn column(&mut self, pass: &mut Pass, array: &Array) -> Result<Array> {
        let mut parts = pass.parts(array.data_type().clone(), self.indices.len());
        let mut validity = self.validity(pass, array, &mut parts)?;
        parts.dictionary = array.dictionary().cloned();
        parts.children = match children_of(array.data_type()) {
            Some(Children::Along) => (0..array.children().len())
                .map(|i| self.column(pass, &array.child_rows(i)?))
                .collect::<Result<_>>()?,
            Some(Children::Shared) => array.children().to_vec(),
            Some(Children::Ranges) | None => return Err(pass.unsupported(array.data_type())),
        };
        let slots: Vec<Slot> = array.layout().slots().collect();
        for (slot, buffer) in slots.iter().zip(array.buffers()) {
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
        match validity {
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
        Array::try_new(parts)
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
            parts.validity = self.indices.validity().filter(|_| indices).cloned();
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
        let source = self.dummy.as_ref().map_or(source, Region::input);
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
                    (row.valid, row.valid_offset) = self.readable(validity(array));
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
    fn bits(&mut self, source: (In<u32>, u64), target: &Region) {
        let (source, offset) = self.readable(source);
        let words: [u64; BITS_ROW] = TakeBitsRow { source, offset, target: target.out() }.words();
        self.bitmaps.extend(words);
    }

    /// A bitmap, or zeroes where there are no rows.
    fn readable(&self, bitmap: (In<u32>, u64)) -> (In<u32>, u64) {
        self.dummy.as_ref().map_or(bitmap, |dummy| (dummy.input(), 0))
    }

    fn launch(mut self, pass: &mut Pass) -> Result<()> {
        if self.indices.is_empty() {
            return Ok(());
        }
        let nothing = self.values.is_empty() && self.bitmaps.is_empty();
        if nothing {
            // Nothing to move, but the indices are looked at all the same.
            self.values.insert((1, 1, false), vec![]);
        }
        let (len, limit) = (self.indices.len() as u64, self.limit);
        let waves = take_waves(len, pass.width());
        let indices = rows_of(&self.indices, &self.indices.buffers()[0], self.index_width);
        let indices = aligned(pass, &indices, self.index_width)?;
        let (valid, valid_offset) = validity(&self.indices);
        let words: Vec<u64> = self.values.values().flatten().chain(&self.bitmaps).copied().collect();
        let tables = pass.upload(&words)?;
        let longest = self.values.values().map(|table| table.len() / ROW).max().unwrap_or(0);
        let nulls = pass.zeroed(8 * longest.max(self.bitmaps.len() / BITS_ROW).max(1))?;
        let index_width = self.index_width as u32;
        let mut start = 0;
        for ((unit, pieces, has_nulls), table) in &self.values {
            let end = start + 8 * table.len();
            let kind = if *pieces > 1 { 2 } else { u32::from(*has_nulls) };
            let entry =
                find(TAKE, &[*unit as u32, index_width, kind]).ok_or_else(|| pass.unsupported(unit))?;
            let args = Take {
                indices,
                valid,
                valid_offset,
                len,
                limit,
                table: tables.part(start, end),
                columns: (table.len() / ROW) as u64,
                nulls: nulls.out(),
                error: self.error.out(),
                pieces: *pieces as u64,
            };
            pass.launch(entry, waves, &args)?;
            start = end;
        }
        if !self.bitmaps.is_empty() {
            let entry = find(TAKE_BITS, &[index_width]).ok_or_else(|| pass.unsupported("bits"))?;
            let args = TakeBits {
                indices,
                valid,
                valid_offset,
                len,
                limit,
                table: tables.part(start, start + 8 * self.bitmaps.len()),
                columns: (self.bitmaps.len() / BITS_ROW) as u64,
                nulls: nulls.out(),
                error: self.error.out(),
            };
            pass.launch(entry, waves, &args)?;
        }
        if self.null_out_of_bounds {
            return Ok(());
        }
        let (indices, rows, stream) = (self.indices, self.rows, pass.stream().clone());
        let check = move |words: &[u64]| match words[0] {
            u64::MAX => Ok(()),
            row => Err(out_of_bounds(&indices, row as usize, rows, &stream)),
        };
        match nothing {
            // There is nothing of a result to wait for later.
            true => check(&pass.read(&self.error)?),
            false => pass.report(&self.error, check),
        }
    }
}

/// Where an array's validity is still to be taken to.
enum Validity {
    /// From the rows' own.
    OfRows(Region),
    /// All rows are valid, but not every index is one.
    OfIndices(Region),
}

/// The error for the index of a row, which is fetched for it.
fn out_of_bounds(indices: &Array, row: usize, len: usize, stream: &Stream) -> Error {
    let index = || -> Result<i128> {
        let one = stream.download(&indices.slice(row, 1)?)?;
        let one = super::super::cast(&one, &DataType::Utf8, &Default::default(), &Stream::cpu())?;
        let one = exchange::to_arrow(&one)?;
        let text = one.as_any().downcast_ref::<arrow_array::StringArray>().map(|one| one.value(0).to_owned());
        Ok(text.and_then(|text| text.parse().ok()).unwrap_or_default())
    };
    match index() {
        Ok(index) => Error::IndexOutOfBounds { row, index, len },
        Err(error) => error,
    }
}
