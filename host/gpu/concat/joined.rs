//! Builds one array from several, after the extents of each are known.

use arrow_schema::DataType;
use bowstring_kernels::gather::concat::{CONCAT_BITS, ConcatBits, REBASE, Rebase, SourceRow};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::offsets::{CONVERT, Convert};
use bowstring_kernels::target::find;

use super::{Found, Node};
use crate::array::{Bitmap, DeviceArray, Parts, SharedBuffers, Slot};
use crate::gpu::bitmap::aligned;
use crate::gpu::cast::most;
use crate::gpu::parts::{check_end_as_arrow, empty, part_of};
use crate::gpu::rows::{fixed_width, offsets_of, rows_of};
use crate::pass::{Pass, Region, Table, bits, input, validity};
use crate::transfer::Gathered;
use crate::{Error, Result};

/// The bound on one array's numbers (offsets, keys or run ends), and the shift that it adds to those of later
/// arrays.
struct Part {
    /// Every number of this array must be less.
    there: u64,
    /// The elements that this array has in the result.
    adds: u64,
    /// The place of the first of them; `None` if they follow those of the array before.
    at: Option<u64>,
}

impl Part {
    fn of(elements: usize) -> Part {
        Part { there: elements as u64, adds: elements as u64, at: None }
    }
}

impl Node {
    /// Builds the concatenated array from the arrays `below` it.
    pub fn join(&self, pass: &mut Pass, below: Vec<DeviceArray>) -> Result<DeviceArray> {
        match &self.pieces[..] {
            [] => return empty(pass, &self.data_type),
            [one] => return part_of(pass, one.clone()),
            _ => {}
        }
        let rows = self.pieces.iter().try_fold(0, |sum: usize, piece| sum.checked_add(piece.len()));
        let rows = rows
            .filter(|rows| *rows <= i64::MAX as usize)
            .ok_or_else(|| Error::invalid(pass.operation(), "more rows than can be counted"))?;
        let mut parts = pass.parts(self.data_type.clone(), rows);
        if self.pieces.iter().any(|piece| piece.possible_nulls().is_some()) {
            let valid = self.pieces.iter().map(|piece| (piece.possible_nulls().cloned(), piece.len()));
            let buffer = join_bits(pass, valid, rows)?.buffer();
            parts.validity = Some(Bitmap { buffer, offset: 0 });
            parts.null_count = self.pieces.iter().map(DeviceArray::known_null_count).sum();
        }
        self.fill(pass, &mut parts, below)?;
        DeviceArray::try_new(parts)
    }

    /// Fills in the buffers and children.
    fn fill(&self, pass: &mut Pass, parts: &mut Parts, below: Vec<DeviceArray>) -> Result<()> {
        let numbers = Numbers { pieces: &self.pieces, slot: 0, sizes: None, types: None, most: u64::MAX };
        match (&self.data_type, &self.found) {
            (DataType::Dictionary(..), _) if !below.is_empty() => {
                let values =
                    self.parts(|piece| vec![Part::of(piece.dictionary().map_or(0, DeviceArray::len))]);
                parts.buffers = vec![numbers.rebased(pass, values)?.0.buffer()];
                parts.dictionary = below.into_iter().next();
                return Ok(());
            }
            (DataType::RunEndEncoded(field, _), Found::Ends(ends)) => {
                let ends = self.ends(pass, field.data_type(), ends, parts.len)?;
                parts.children = [ends].into_iter().chain(below).collect();
                return Ok(());
            }
            (DataType::ListView(_) | DataType::LargeListView(_), _) => {
                let width = if matches!(self.data_type, DataType::ListView(_)) { 4 } else { 8 };
                let numbers = Numbers { sizes: Some(1), most: most(width), ..numbers };
                let items = self.parts(|piece| vec![Part::of(piece.children()[0].len())]);
                let (offsets, sizes) = numbers.rebased(pass, items)?;
                parts.buffers = [Some(offsets), sizes].iter().flatten().map(Region::buffer).collect();
            }
            (DataType::Union(fields, _), _) => {
                parts.buffers = vec![self.bytes(pass, 0, 1)?.buffer()];
                if self.pieces[0].layout().slots().count() > 1 {
                    let members = self.parts(|piece| {
                        // Type ids index this table; they are less than 128.
                        let mut parts: Vec<Part> = (0..128).map(|_| Part::of(0)).collect();
                        let members = fields.iter().zip(piece.children());
                        members.for_each(|((id, _), child)| parts[id as usize] = Part::of(child.len()));
                        parts
                    });
                    let numbers = Numbers { slot: 1, types: Some(0), most: most(4), ..numbers };
                    parts.buffers.push(numbers.rebased(pass, members)?.0.buffer());
                }
            }
            (_, Found::Spans(spans)) => {
                parts.buffers = vec![self.offsets(pass)?.buffer()];
                if below.is_empty() {
                    let mut bytes = Gathered::default();
                    for (piece, span) in self.pieces.iter().zip(spans) {
                        bytes.bytes(&piece.buffers()[1].slice(span.start, Some(span.len())), span.len());
                    }
                    parts.buffers.push(bytes.launch(pass)?.buffer());
                }
            }
            (DataType::Utf8View | DataType::BinaryView, _) => {
                let mut buffers = SharedBuffers::default();
                let mut data = vec![];
                for piece in &self.pieces {
                    let before = buffers.len();
                    let at = Some(buffers.place(&piece.buffers()[1..]) as u64);
                    let adds = (buffers.len() - before) as u64;
                    data.push(vec![Part { there: piece.buffers().len() as u64 - 1, adds, at }]);
                }
                parts.buffers = vec![numbers.rebased(pass, data)?.0.buffer()];
                parts.buffers.extend(buffers.into_buffers());
            }
            _ => {
                for (i, slot) in self.pieces[0].layout().slots().enumerate() {
                    parts.buffers.push(self.plain(pass, i, slot, parts.len)?.buffer());
                }
                // All pieces share one dictionary.
                parts.dictionary = self.pieces[0].dictionary().cloned();
            }
        }
        parts.children = below;
        Ok(())
    }

    /// Concatenates a buffer of bits or fixed widths.
    fn plain(&self, pass: &mut Pass, i: usize, slot: Slot, rows: usize) -> Result<Region> {
        match fixed_width(slot) {
            Some(width) => self.bytes(pass, i, width),
            None => {
                let bits = self.pieces.iter().map(|piece| {
                    let bits = Bitmap { buffer: piece.buffers()[i].clone(), offset: piece.offset() };
                    (Some(bits), piece.len())
                });
                join_bits(pass, bits, rows)
            }
        }
    }

    fn bytes(&self, pass: &mut Pass, i: usize, width: usize) -> Result<Region> {
        let mut bytes = Gathered::default();
        for piece in &self.pieces {
            bytes.bytes(&rows_of(piece, &piece.buffers()[i], width), piece.len() * width);
        }
        bytes.launch(pass)
    }

    /// Concatenates the offsets, each array's moved by the elements of those before it. Decreasing offsets
    /// are an error when the result is waited for.
    fn offsets(&self, pass: &mut Pass) -> Result<Region> {
        let (Found::Spans(spans), Some(width)) = (&self.found, self.offset_width()) else {
            return Err(pass.unsupported(&self.data_type));
        };
        let total = spans.iter().fold(0, |sum: u64, span| sum.saturating_add(span.len() as u64));
        check_total(pass, total, most(width), &self.data_type)?;
        let rows: usize = self.pieces.iter().map(DeviceArray::len).sum();
        let (out, faults) = (pass.rows(rows + 1, width)?, pass.upload(&vec![u64::MAX; 2 * spans.len()])?);
        let entry = find(CONVERT, &[width as u32; 2]).ok_or_else(|| pass.unsupported(&self.data_type))?;
        let (mut row, mut before) = (0, 0);
        for (i, (piece, span)) in self.pieces.iter().zip(spans).enumerate() {
            let args = Convert {
                offsets: aligned(pass, &offsets_of(piece, width), width)?,
                rows: piece.len() as u64,
                limit: span.end as u64,
                end: In::absent(),
                end_offset: 0,
                // A negative base wraps.
                base: (span.start as u64).wrapping_sub(before),
                most: most(width),
                out: out.out().skip((row * width) as u64),
                faults: faults.out().skip(2 * i as u64),
            };
            pass.launch(entry, &args)?;
            row += piece.len();
            before += span.len() as u64;
        }
        let at = format!("offsets of {}", self.data_type);
        pass.report(&faults, move |words| match words.iter().position(|row| *row != u64::MAX) {
            None => Ok(()),
            Some(i) => {
                let problem = format!(
                    "row {} of array {} ends before it begins, or beyond what there is",
                    words[i],
                    i / 2
                );
                Err(Error::OutOfSpec { at, problem })
            }
        })?;
        Ok(out)
    }

    /// Concatenates run ends; `ends` are the run ends of each array.
    fn ends(
        &self,
        pass: &mut Pass,
        data_type: &DataType,
        ends: &[DeviceArray],
        rows: usize,
    ) -> Result<DeviceArray> {
        check_end_as_arrow(pass.operation(), rows, data_type)?;
        // An end is the number of the row after the run, so it may equal the length.
        let part =
            |piece: &DeviceArray| vec![Part { there: piece.len() as u64 + 1, ..Part::of(piece.len()) }];
        let parts = self.pieces.iter().map(part).collect();
        let numbers = Numbers { pieces: ends, slot: 0, sizes: None, types: None, most: u64::MAX };
        let (out, _) = numbers.rebased(pass, parts)?;
        let mut joined = pass.parts(data_type.clone(), ends.iter().map(DeviceArray::len).sum());
        joined.buffers = vec![out.buffer()];
        DeviceArray::try_new(joined)
    }

    /// Computes the bounds and shifts of each array's numbers.
    fn parts(&self, of: impl Fn(&DeviceArray) -> Vec<Part>) -> Vec<Vec<Part>> {
        self.pieces.iter().map(of).collect()
    }
}

/// A buffer of offsets or keys, of several arrays.
struct Numbers<'a> {
    pieces: &'a [DeviceArray],
    slot: usize,
    /// The index of the buffer of sizes, if each number starts a range of elements.
    sizes: Option<usize>,
    /// The index of the buffer of type ids, if those choose the elements that a number refers to.
    types: Option<usize>,
    /// The most elements that are accepted; `u64::MAX` if the caller has checked their number.
    most: u64,
}

impl Numbers<'_> {
    /// Moves each array's numbers by the elements of the arrays before it, and returns them with their sizes.
    /// `parts` has, for each array, an entry for each type id. Numbers out of bounds are an error when the
    /// result is waited for.
    fn rebased(&self, pass: &mut Pass, parts: Vec<Vec<Part>>) -> Result<(Region, Option<Region>)> {
        let data_type = self.pieces[0].data_type().clone();
        let width = self.pieces[0].layout().slots().nth(self.slot).and_then(fixed_width);
        let width = width.ok_or_else(|| pass.unsupported(&data_type))?;
        let entry = find(REBASE, &[width as u32]).ok_or_else(|| pass.unsupported(&data_type))?;
        let rows: usize = self.pieces.iter().map(DeviceArray::len).sum();
        let out = pass.rows(rows, width)?;
        let out_sizes = self.sizes.map(|_| pass.rows(rows, width)).transpose()?;
        let faults = pass.upload(&vec![u64::MAX; self.pieces.len()])?;
        let (mut row, mut before) = (0, vec![0; parts[0].len()]);
        for (i, (piece, parts)) in self.pieces.iter().zip(&parts).enumerate() {
            let words =
                parts.iter().zip(&before).flat_map(|(part, before)| [part.there, part.at.unwrap_or(*before)]);
            let table = pass.upload(&words.collect::<Vec<u64>>())?;
            let of = |buffer: usize, width| rows_of(piece, &piece.buffers()[buffer], width);
            let (valid, valid_offset) = validity(piece);
            let args = Rebase {
                numbers: aligned(pass, &of(self.slot, width), width)?,
                sizes: match self.sizes {
                    Some(sizes) => aligned(pass, &of(sizes, width), width)?,
                    None => In::absent(),
                },
                types: self.types.map_or(In::absent(), |types| input(&of(types, 1))),
                valid,
                valid_offset,
                rows: piece.len() as u64,
                parts: table.input(),
                count: parts.len() as u64,
                out: out.out().skip((row * width) as u64),
                out_sizes: out_sizes
                    .as_ref()
                    .map_or(Out::absent(), |sizes| sizes.out().skip((row * width) as u64)),
                fault: faults.out().skip(i as u64),
            };
            pass.launch(entry, &args)?;
            row += piece.len();
            before
                .iter_mut()
                .zip(parts)
                .for_each(|(before, part)| *before = before.saturating_add(part.adds));
        }
        before.iter().try_for_each(|total| check_total(pass, *total, self.most, &data_type))?;
        let at = format!("array.buffers[{}]", self.slot);
        pass.report(&faults, move |words| match words.iter().position(|row| *row != u64::MAX) {
            None => Ok(()),
            Some(i) => {
                let problem = format!("row {} of array {i} is of nothing that there is", words[i]);
                Err(Error::OutOfSpec { at, problem })
            }
        })?;
        Ok((out, out_sizes))
    }
}

/// Checks that offsets can count so many elements.
fn check_total(pass: &Pass, total: u64, most: u64, data_type: &DataType) -> Result<()> {
    if total <= most {
        return Ok(());
    }
    Err(Error::too_long(pass.operation(), format_args!("{total} elements"), data_type))
}

/// Concatenates bitmaps; a missing one counts as all set.
pub(crate) fn join_bits(
    pass: &mut Pass,
    bitmaps: impl Iterator<Item = (Option<Bitmap>, usize)>,
    rows: usize,
) -> Result<Region> {
    let (mut table, mut to) = (Table::default(), 0);
    for (bitmap, len) in bitmaps {
        let (words, offset) = bitmap.as_ref().map_or((In::absent(), 0), bits);
        table.push(&SourceRow { words, offset, to });
        to += len as u64;
    }
    let (sources, out) = (pass.upload(table.words())?, pass.zeroed(rows.div_ceil(8))?);
    let args =
        ConcatBits { sources: sources.input(), count: table.len() as u64, out: out.out(), len: rows as u64 };
    pass.launch(&CONCAT_BITS[0], &args)?;
    Ok(out)
}
