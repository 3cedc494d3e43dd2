//! What a take moves: tables of columns and bitmaps for launches that take many of them by the same indices.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::take::{TAKE, TAKE_BITS, Take, TakeBits, TakeBitsRow, TakeRow};
use bowstring_kernels::target::find;

use super::ranges::{Indices, Node, Planner, has_ranges};
use super::take::{Planned, index_at, index_width};
use super::{
    Children, Status, aligned, along, children_of, fixed_width, nodes, row_bytes, rows_of, unit,
    validity_from_start,
};
use crate::array::{Array, Bitmap, Buffer, Parts, Slot};
use crate::device::Gpu;
use crate::pass::{Pass, Region, Table, bits, input, validity};
use crate::{Error, Result};

/// What is taken by the same indices, until it is launched.
pub(crate) struct Taking {
    gpu: Arc<Gpu>,
    indices: Array,
    by: Indices,
    /// How many rows the columns have.
    rows: usize,
    /// The first row whose index is out of range is the first fault; behind it are those of ranges, and their totals.
    pub status: Status,
    pub first_fault: usize,
    pub has_ranges: bool,
    pub null_out_of_bounds: bool,
    values: BTreeMap<Kind, Values>,
    bitmaps: Bitmaps,
    /// Once launched: the places of the null counts of each table, and of the bitmaps.
    counts: BTreeMap<Option<Kind>, usize>,
}

/// Which table a column is in: by unit, pieces, and whether the values have nulls.
type Kind = (usize, usize, bool);

/// Where a column's nulls are counted: its table, or none for the bitmaps, and its row.
#[derive(Clone, Copy)]
pub(crate) struct Count(Option<Kind>, usize);

/// A table of columns of values, whatever their width.
type Values = Table<TakeRow<u8>>;
/// A table of bitmaps.
type Bitmaps = Table<TakeBitsRow>;

impl Taking {
    pub fn new(
        pass: &mut Pass,
        rows: usize,
        indices: &Array,
        null_out_of_bounds: bool,
        columns: &[&Array],
    ) -> Result<Taking> {
        let (width, greatest) = index_width(indices)?;
        let nodes: usize = columns.iter().map(|column| nodes(column)).sum();
        let along = columns.iter().map(|column| along(column)).sum::<usize>();
        let small = [8 * (1 + 5 * nodes), (Values::ROW_BYTES + Bitmaps::ROW_BYTES) * along];
        pass.expect(&small, (along, indices.len().div_ceil(8)));
        pass.expect_outputs(columns.iter().flat_map(|column| row_bytes(column, indices.len())));
        // Of each array a total, and a count for each of two buffers and validity.
        let mut status = Status::new(pass, 4 * nodes, 1 + nodes)?;
        let (first_fault, fault) = status.fault();
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
            gpu: pass.gpu().clone(),
            indices: indices.clone(),
            by,
            rows,
            first_fault,
            has_ranges: false,
            null_out_of_bounds,
            status,
            values: BTreeMap::new(),
            bitmaps: Bitmaps::default(),
            counts: BTreeMap::new(),
        })
    }

    pub fn column(&mut self, pass: &mut Pass, array: &Array) -> Result<Planned> {
        let mut parts = pass.parts(array.data_type().clone(), self.by.len);
        let mut validity = self.validity(pass, array, &mut parts)?;
        parts.dictionary = array.dictionary().cloned();
        let (mut ranges, mut children, mut nulls) = (None, None, None);
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
                    let taken = pass.rows(parts.len, width)?;
                    let source = rows_of(array, buffer, width);
                    nulls = self.values(array, &source, width, &taken, &mut validity);
                    taken
                }
                _ => return Err(pass.unsupported(array.data_type())),
            };
            parts.buffers.push(taken.buffer());
        }
        // The data that views point into stays where it is.
        parts.buffers.extend(array.buffers()[slots.len()..].iter().cloned());
        let nulls = self.rest_of_validity(pass, array, validity)?.or(nulls);
        Ok(Planned { parts, nulls, ranges, children })
    }

    /// Takes a validity that nothing else has taken along, and says where its nulls are counted.
    fn rest_of_validity(
        &mut self,
        pass: &mut Pass,
        array: &Array,
        left: Option<Validity>,
    ) -> Result<Option<Count>> {
        let count = Count(None, self.bitmaps.len());
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
            None => return Ok(None),
        }
        Ok(Some(count))
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

    /// Takes values of `width` bytes, and where one access makes a value the validity along: then it says where the nulls
    /// are counted.
    fn values(
        &mut self,
        array: &Array,
        source: &Buffer,
        width: usize,
        target: &Region,
        left: &mut Option<Validity>,
    ) -> Option<Count> {
        if width == 0 {
            return None;
        }
        let unit = match unit(width, &[source.address()]) {
            unit if unit == width => unit,
            // Several accesses a value come in these sizes only.
            unit => [16, 4, 1].into_iter().find(|size| *size <= unit).unwrap_or(1),
        };
        let mut row = TakeRow::<u8> {
            source: input(source),
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
        let kind = (unit, width / unit, !row.valid.is_absent());
        let place = self.values.entry(kind).or_default().push(&row);
        (!row.target_valid.is_absent()).then_some(Count(Some(kind), place))
    }

    /// The word of the status that has a count, after the launch.
    pub fn place_of(&self, Count(kind, row): Count) -> usize {
        self.counts[&kind] + row
    }

    /// Takes bits.
    fn bits(&mut self, (source, offset): (In<u32>, u64), target: &Region) {
        self.bitmaps.push(&TakeBitsRow { source, offset, target: target.out() });
    }

    /// Launches what was noted, and has the status looked at later unless it must be looked at now.
    pub fn launch(&mut self, pass: &mut Pass) -> Result<()> {
        let nothing = self.values.is_empty() && self.bitmaps.is_empty();
        if nothing {
            // Nothing to move, but the indices are looked at all the same.
            self.values.insert((1, 1, false), Values::default());
        }
        let Indices { indices, width, valid: (valid, valid_offset), fault, limit, len } = self.by;
        let len = len as u64;
        let mut words: Vec<u64> =
            self.values.values().flat_map(Table::words).chain(self.bitmaps.words()).copied().collect();
        if nothing {
            // The kernel reads a row of the table before it asks whether there is one.
            words.resize(Values::ROW_BYTES / size_of::<u64>(), 0);
        }
        let tables = pass.upload(&words)?;
        let mut start = 0;
        for ((unit, pieces, has_nulls), table) in &self.values {
            let end = start + table.bytes();
            let kind = if *pieces > 1 { 2 } else { u32::from(*has_nulls) };
            let entry = find(TAKE, &[*unit as u32, width, kind]).ok_or_else(|| pass.unsupported(unit))?;
            let (place, nulls) = self.status.take(table.len());
            self.counts.insert(Some((*unit, *pieces, *has_nulls)), place);
            let args = Take {
                indices,
                valid,
                valid_offset,
                len,
                limit,
                table: tables.part(start, end.max(Values::ROW_BYTES)),
                columns: table.len() as u64,
                nulls,
                error: fault,
                pieces: *pieces as u64,
            };
            pass.launch(entry, &args)?;
            start = end;
        }
        if !self.bitmaps.is_empty() {
            let entry = find(TAKE_BITS, &[width]).ok_or_else(|| pass.unsupported("bits"))?;
            let (place, nulls) = self.status.take(self.bitmaps.len());
            self.counts.insert(None, place);
            let args = TakeBits {
                indices,
                valid,
                valid_offset,
                len,
                limit,
                table: tables.part(start, start + self.bitmaps.bytes()),
                columns: (self.bitmaps.len()) as u64,
                nulls,
                error: fault,
            };
            pass.launch(entry, &args)?;
        }
        if self.null_out_of_bounds {
            return Ok(());
        }
        if !self.has_ranges {
            let check = self.check();
            pass.keep_for_checks(&self.indices);
            // Where nothing was moved there is nothing of a result to wait for later.
            match nothing {
                true => check(&pass.read(&self.status.region)?)?,
                false => pass.report(&self.status.region, check)?,
            }
        }
        Ok(())
    }

    /// What tells from the status whether an index was out of range. It keeps the indices, for the one that was.
    pub fn check(&self) -> impl FnOnce(&[u64]) -> Result<()> + Send + use<> {
        let (indices, rows) = (self.indices.clone(), self.rows);
        let (first, null) = (self.first_fault, self.null_out_of_bounds);
        let gpu = self.gpu.clone();
        move |words| match words[first] {
            _ if null => Ok(()),
            u64::MAX => Ok(()),
            row => Err(Error::IndexOutOfBounds {
                row: row as usize,
                index: index_at(&gpu, &indices, row as usize)?,
                len: rows,
            }),
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
