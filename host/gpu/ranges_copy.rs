//! Copies what ranges cover, end to end, once the host knows the totals: bytes, or arrays and everything
//! below them.

use arrow_schema::DataType;
use bowstring_kernels::gather::copy::{
    COPY_BITS, COPY_BYTES, COPY_OFFSETS, CopyBits, CopyBytes, CopyOffsets,
};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::lists::{COVERED, Covered};
use bowstring_kernels::reduce::scan::{SCAN, Scan};
use bowstring_kernels::target::find;

use super::bitmap::aligned;
use super::draft::{Draft, Pick};
use super::indices::Outside;
use super::parts::empty_like;
use super::ranges::{Child, Node, RangeSet};
use super::rows::{fixed_width, offsets_of, rows_of};
use super::structure::written;
use crate::array::{Bitmap, Buffer, DeviceArray, Parts, Slot};
use crate::pass::{Granted, Pass, Region, bits, bytes};
use crate::{Error, Result};

/// The source and the destination of some rows' ranges.
struct Placed<'a> {
    /// The bytes of a start and of an output offset.
    width: u32,
    starts: &'a Region,
    /// The output offset of each range, followed by the end of the last.
    to: Region,
    /// The number of ranges, at least 1.
    rows: usize,
    /// The total number of elements.
    total: usize,
}

/// The state after planning, launching and reading.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub granted: &'a Granted,
    /// The counters that the host has read.
    pub words: &'a [u64],
}

impl Node {
    /// Adds the buffers of the array's `rows` rows to its parts, and returns its children.
    pub fn build(
        &self,
        pass: &mut Pass,
        found: Found<'_>,
        rows: usize,
        parts: &mut Parts,
    ) -> Result<Vec<Draft>> {
        let placed = self.ranges.place(pass, found, rows, &self.array)?;
        // This applies to offsets, and to views, which become offsets.
        if self.array.layout().slots().next().is_some() {
            parts.buffers.push(placed.to.buffer());
        }
        self.build_below(pass, found, &placed, parts)
    }

    /// Copies the bytes, or builds the child.
    fn build_below(
        &self,
        pass: &mut Pass,
        found: Found<'_>,
        above: &Placed<'_>,
        parts: &mut Parts,
    ) -> Result<Vec<Draft>> {
        if let Some(child) = &self.child {
            return Ok(vec![child.build(pass, found, above)?]);
        }
        parts.buffers.push(above.copy_bytes(pass, 1, &self.array.buffers()[1])?.buffer());
        Ok(vec![])
    }
}

impl Child {
    /// Builds the array of everything that the ranges cover.
    fn build(&self, pass: &mut Pass, found: Found<'_>, above: &Placed<'_>) -> Result<Draft> {
        let array = &self.array;
        let len = pass.times(above.total, self.scale as usize)?;
        if len == 0 {
            return empty_like(pass, array).map(Draft::Whole);
        }
        if self.apart {
            let indices = above.numbers(pass, self.scale, len)?;
            return Ok(Draft::Lacking(Pick { array: array.clone(), indices, outside: Outside::Refused }));
        }
        let mut parts = pass.parts(array.data_type().clone(), len);
        if let Some(validity) = array.possible_nulls() {
            let buffer = above.copy_bits(pass, self.scale, validity)?.buffer();
            (parts.validity, parts.null_count) = (Some(Bitmap { buffer, offset: 0 }), None);
        }
        if let Some(node) = &self.node {
            // The array has a row for each element of the ranges above, but its own ranges are merged: one
            // for each range above.
            let below = node.ranges.place(pass, found, above.rows, array)?;
            parts.buffers.push(above.copy_offsets(pass, self.scale, &below, array)?.buffer());
            let children = node.build_below(pass, found, &below, &mut parts)?;
            return Draft::nested(parts, children);
        }
        let slots: Vec<Slot> = array.layout().slots().collect();
        for (slot, buffer) in slots.iter().zip(array.buffers()) {
            let copied = match (slot, fixed_width(*slot)) {
                (Slot::Bits, _) => {
                    let values = Bitmap { buffer: buffer.clone(), offset: array.offset() };
                    above.copy_bits(pass, self.scale, &values)?
                }
                (_, Some(width)) => {
                    let scale = pass.times(self.scale as usize, width)?;
                    above.copy_bytes(pass, scale as u64, &rows_of(array, buffer, width))?
                }
                _ => return Err(pass.unsupported(array.data_type())),
            };
            parts.buffers.push(copied.buffer());
        }
        // Data buffers of views are shared, not copied, and so are children that rows only point into.
        parts.buffers.extend(array.buffers()[slots.len()..].iter().cloned());
        parts.dictionary = array.dictionary().cloned();
        let children = match self.children.is_empty() {
            true => array.children().iter().cloned().map(Draft::Whole).collect(),
            false => {
                let children = self.children.iter().map(|child| child.build(pass, found, above));
                children.collect::<Result<_>>()?
            }
        };
        Draft::nested(parts, children)
    }
}

impl RangeSet {
    /// Computes the output offsets of `rows` ranges, now that the totals are known.
    fn place<'a>(
        &self,
        pass: &mut Pass,
        Found { granted, words }: Found<'a>,
        rows: usize,
        array: &DeviceArray,
    ) -> Result<Placed<'a>> {
        let (total, fault) = (self.total.of(words), self.fault.of(words));
        if fault != u64::MAX {
            let problem = format!("row {fault} ends before it begins, or beyond what there is");
            return Err(Error::OutOfSpec { at: format!("offsets of {}", array.data_type()), problem });
        }
        // Kernels saturate sums: one that exceeds 64 bits arrives as a number above every offset.
        let most = if self.width == 4 { i32::MAX as u64 } else { i64::MAX as u64 };
        if total > most {
            // Such a total is not exact.
            let how_many = if total > i64::MAX as u64 { "2^63 or more".into() } else { total.to_string() };
            return Err(do_not_fit(pass, how_many, array));
        }
        let (to, width) = (pass.rows(rows + 1, self.width)?, self.width as u32);
        let entry = find(SCAN, &[width, width]).ok_or_else(|| pass.unsupported(array.data_type()))?;
        let args = Scan {
            values: granted[self.lens].input(),
            count: In::absent(),
            len: rows as u64,
            bases: self.bases.as_ref().map_or_else(In::absent, Region::input),
            out: to.out(),
            total: Out::absent(),
        };
        pass.launch(entry, &args)?;
        Ok(Placed { width, starts: &granted[self.starts], to, rows, total: total as usize })
    }
}

impl Placed<'_> {
    /// Returns the indices of all rows that the ranges cover; `scale` rows make one element.
    fn numbers(&self, pass: &mut Pass, scale: u64, len: usize) -> Result<DeviceArray> {
        let out = pass.rows(len, 8)?;
        let args = Covered {
            to: self.to.input(),
            starts: self.starts.input(),
            rows: self.rows as u64,
            scale,
            out: out.out(),
            len: len as u64,
        };
        let entry = find(COVERED, &[self.width]).ok_or_else(|| pass.unsupported("ranges"))?;
        pass.launch(entry, &args)?;
        written(pass, DataType::UInt64, len, &out)
    }

    /// Copies elements of `scale` bytes each.
    fn copy_bytes(&self, pass: &mut Pass, scale: u64, source: &Buffer) -> Result<Region> {
        let len = pass.times(self.total, scale as usize)? as u64;
        let target = pass.output(len as usize)?;
        if len == 0 {
            return Ok(target);
        }
        let entry = find(COPY_BYTES, &[self.width]).ok_or_else(|| pass.unsupported("ranges"))?;
        let (bytes, offset) = bytes(source);
        let args = CopyBytes {
            to: self.to.input(),
            starts: self.starts.input(),
            rows: self.rows as u64,
            scale,
            bytes,
            offset,
            out: target.out(),
            len,
        };
        pass.launch(entry, &args)?;
        Ok(target)
    }

    /// Copies elements of `scale` bits each.
    fn copy_bits(&self, pass: &mut Pass, scale: u64, source: &Bitmap) -> Result<Region> {
        let len = pass.times(self.total, scale as usize)? as u64;
        let target = pass.zeroed(len.div_ceil(8) as usize)?;
        let entry = find(COPY_BITS, &[self.width]).ok_or_else(|| pass.unsupported("ranges"))?;
        let (words, offset) = bits(source);
        let args = CopyBits {
            to: self.to.input(),
            starts: self.starts.input(),
            rows: self.rows as u64,
            scale,
            words,
            offset,
            out: target.out(),
            len,
            unset: Out::absent(),
        };
        pass.launch(entry, &args)?;
        Ok(target)
    }

    /// Copies the offsets of an array, rebased to the place where their targets go.
    fn copy_offsets(
        &self,
        pass: &mut Pass,
        scale: u64,
        below: &Placed,
        array: &DeviceArray,
    ) -> Result<Region> {
        let Some(Slot::Offsets(width)) = array.layout().slots().next() else {
            return Err(pass.unsupported(array.data_type()));
        };
        if width == 4 && below.total > i32::MAX as usize {
            return Err(do_not_fit(pass, below.total, array));
        }
        let len = pass.times(self.total, scale as usize)? as u64;
        let target = pass.rows((len as usize).saturating_add(1), width)?;
        let entry = find(COPY_OFFSETS, &[self.width, width as u32]);
        let entry = entry.ok_or_else(|| pass.unsupported(array.data_type()))?;
        let args = CopyOffsets {
            to: self.to.input(),
            starts: self.starts.input(),
            rows: self.rows as u64,
            scale,
            offsets: aligned(pass, &offsets_of(array, width), width)?,
            next_starts: below.starts.input(),
            next_to: below.to.input(),
            out: target.out(),
            len,
        };
        pass.launch(entry, &args)?;
        Ok(target)
    }
}

fn do_not_fit(pass: &Pass, elements: impl std::fmt::Display, array: &DeviceArray) -> Error {
    Error::too_long(pass.operation(), format_args!("{elements} elements"), array.data_type())
}
