//! What lies below rows that are ranges: arrays of which stretches are copied, end to end.

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::copy::{COPY_BITS, COPY_BYTES, COPY_OFFSETS, CopyBits, CopyBytes, CopyOffsets};
use bowstring_kernels::memory::Out;
use bowstring_kernels::target::find;

use super::ranges::{Level, Node, Planner, has_ranges};
use super::{aligned, empty_like, fixed_width, rows_of};
use crate::array::{Array, Bitmap, Buffer, Slot};
use crate::pass::{Pass, Region, bits};
use crate::{Error, Result};

/// The ranges of a level above, and where they go.
pub(crate) struct Above<'a> {
    pub level: &'a Level,
    /// One place for each range, and where the last one ends.
    pub to: Region,
    /// How many ranges; not 0.
    pub rows: usize,
    /// How many elements they have.
    pub total: usize,
}

/// An array of which the ranges of a level above are copied, planned.
pub(crate) struct Inside {
    array: Array,
    /// Rows of the array that make one element of the level above: more than 1 inside fixed-size lists.
    scale: u64,
    /// Its own ranges, where it has some.
    node: Option<Box<Node>>,
    /// Fields of a struct or sparse union, items of a fixed-size list.
    children: Vec<Inside>,
}

impl Inside {
    /// Plans for the ranges of the level `above`.
    pub fn plan(planner: &mut Planner, above: &Level, scale: u64, array: &Array) -> Result<Inside> {
        let mut inside = Inside { array: array.clone(), scale, node: None, children: vec![] };
        match array.data_type() {
            DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => {
                for i in 0..array.children().len() {
                    inside.children.push(Inside::plan(planner, above, scale, &array.child_rows(i)?)?);
                }
            }
            DataType::FixedSizeList(_, size) => {
                let scale = scale.checked_mul(*size as u64);
                let scale = scale.ok_or_else(|| planner.pass.unsupported(array.data_type()))?;
                inside.children.push(Inside::plan(planner, above, scale, &array.child_rows(0)?)?);
            }
            DataType::RunEndEncoded(..) => return Err(planner.pass.unsupported(array.data_type())),
            _ if has_ranges(array) => {
                inside.node = Some(Box::new(Node::inside(planner, above, scale, array)?));
            }
            _ => {}
        }
        Ok(inside)
    }

    /// The array of what the ranges cover.
    pub fn build(&self, pass: &mut Pass, above: &Above, words: &[u64]) -> Result<Array> {
        let array = &self.array;
        let len = pass.times(above.total, self.scale as usize)?;
        if len == 0 {
            return empty_like(array, pass);
        }
        let mut parts = pass.parts(array.data_type().clone(), len);
        if let Some(validity) = array.validity().filter(|_| array.known_null_count() != Some(0)) {
            let buffer = copy_bits(pass, above, self.scale, validity)?.buffer();
            (parts.validity, parts.null_count) = (Some(Bitmap { buffer, offset: 0 }), None);
        }
        if let Some(node) = &self.node {
            // Its rows are as many as the ranges above cover, but its ranges are as many as those.
            let below = node.level.place(pass, above.rows, words, array)?;
            parts.buffers.push(copy_offsets(pass, above, self.scale, &below, array)?.buffer());
            node.build_below(pass, &below, words, &mut parts)?;
            return Array::try_new(parts);
        }
        let slots: Vec<Slot> = array.layout().slots().collect();
        for (slot, buffer) in slots.iter().zip(array.buffers()) {
            let copied = match (slot, fixed_width(*slot)) {
                (Slot::Bits, _) => {
                    let values = Bitmap { buffer: buffer.clone(), offset: array.offset() };
                    copy_bits(pass, above, self.scale, &values)?
                }
                (_, Some(width)) => {
                    let scale = pass.times(self.scale as usize, width)?;
                    copy_bytes(pass, above, scale as u64, &rows_of(array, buffer, width))?
                }
                _ => return Err(pass.unsupported(array.data_type())),
            };
            parts.buffers.push(copied.buffer());
        }
        // The data that views point into stays where it is, and so do children that rows only point into.
        parts.buffers.extend(array.buffers()[slots.len()..].iter().cloned());
        parts.dictionary = array.dictionary().cloned();
        parts.children = match self.children.is_empty() {
            true => array.children().to_vec(),
            false => {
                self.children.iter().map(|child| child.build(pass, above, words)).collect::<Result<_>>()?
            }
        };
        Array::try_new(parts)
    }
}

/// Copies elements of `scale` bytes.
pub(crate) fn copy_bytes(pass: &mut Pass, above: &Above, scale: u64, source: &Buffer) -> Result<Region> {
    let len = pass.times(above.total, scale as usize)? as u64;
    let target = pass.output(len as usize)?;
    if len == 0 {
        return Ok(target);
    }
    let width = above.level.width as u32;
    let entry = find(COPY_BYTES, &[width]).ok_or_else(|| pass.unsupported("ranges"))?;
    let (bytes, offset) = bits(&Bitmap { buffer: source.clone(), offset: 0 });
    let args = CopyBytes {
        to: above.to.input(),
        starts: above.level.starts.input(),
        rows: above.rows as u64,
        scale,
        bytes,
        offset,
        out: target.out(),
        len,
    };
    pass.launch(entry, &args)?;
    Ok(target)
}

/// Copies elements of `scale` bits.
fn copy_bits(pass: &mut Pass, above: &Above, scale: u64, source: &Bitmap) -> Result<Region> {
    let len = pass.times(above.total, scale as usize)? as u64;
    let target = pass.zeroed(len.div_ceil(8) as usize)?;
    let width = above.level.width as u32;
    let entry = find(COPY_BITS, &[width]).ok_or_else(|| pass.unsupported("ranges"))?;
    let (words, offset) = bits(source);
    let args = CopyBits {
        to: above.to.input(),
        starts: above.level.starts.input(),
        rows: above.rows as u64,
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

/// Copies the offsets of an array, moved to where what they point to goes.
fn copy_offsets(pass: &mut Pass, above: &Above, scale: u64, below: &Above, array: &Array) -> Result<Region> {
    let Some(Slot::Offsets(width)) = array.layout().slots().next() else {
        return Err(pass.unsupported(array.data_type()));
    };
    if width == 4 && below.total > i32::MAX as usize {
        let problem = format!("{} elements do not fit the offsets of {}", below.total, array.data_type());
        return Err(Error::Invalid { operation: pass.operation(), problem });
    }
    let len = pass.times(above.total, scale as usize)? as u64;
    let target = pass.rows((len as usize).saturating_add(1), width)?;
    let offsets = array.buffers()[0].slice(array.offset() * width, Some((array.len() + 1) * width));
    let entry = find(COPY_OFFSETS, &[above.level.width as u32, width as u32]);
    let entry = entry.ok_or_else(|| pass.unsupported(array.data_type()))?;
    let args = CopyOffsets {
        to: above.to.input(),
        starts: above.level.starts.input(),
        rows: above.rows as u64,
        scale,
        offsets: aligned(pass, &offsets, width)?,
        next_starts: below.level.starts.input(),
        next_to: below.to.input(),
        out: target.out(),
        len,
    };
    pass.launch(entry, &args)?;
    Ok(target)
}
