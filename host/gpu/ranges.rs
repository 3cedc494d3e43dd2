//! Arrays whose rows are ranges of what lies below them: strings, binaries, and lists of every kind.
//!
//! The one idea: see [`bowstring_kernels::ranges`]. [`Node::kept`] and [`Node::taken`] find the ranges of the rows at every
//! level, and sum them; nothing of that needs to know any size. When the host has read the totals, [`Node::build`] copies
//! what the ranges cover. However deep a type is, there is one look at the numbers.
//!
//! Bytes of null rows: a string's or list's own null rows come out empty (for a take, those of null indices). What null
//! elements inside of lists have comes along as it is.

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::{COMPOSE, Compose, TAKE, Take};
use bowstring_kernels::ranges_keep::{KEEP, Keep};
use bowstring_kernels::scan::{SCAN, SUMS, Scan, Sums, TILE};
use bowstring_kernels::target::find;

use super::ranges_below::{Above, Inside, copy_bytes};
use super::selection::{Kept, Words};
use super::{Status, aligned};
use crate::array::{Array, Parts, Slot};
use crate::pass::{Pass, Reach, Region, validity};
use crate::{Error, Result};

/// Whether an array's rows are ranges.
pub(crate) fn has_ranges(array: &Array) -> bool {
    matches!(array.data_type(), DataType::FixedSizeList(..))
        || array.layout().slots().any(|slot| matches!(slot, Slot::Offsets(_)))
}

/// The ranges of the rows kept at one level, on the device.
pub(crate) struct Level {
    /// Bytes of a start, of a length, and of the place where a range goes.
    pub width: usize,
    /// The first element of each range.
    pub starts: Region,
    lens: Region,
    /// How many elements come before each tile of rows.
    bases: Region,
    /// The word of the status that has their number.
    total: usize,
    /// The word of the status that has the first row with bad offsets.
    fault: usize,
}

/// An array of ranges, planned.
pub(crate) struct Node {
    array: Array,
    /// The ranges of its rows.
    pub level: Level,
    child: Option<Inside>,
}

/// What all levels under the same rows need to be planned.
pub(crate) struct Planner<'a> {
    pub pass: &'a mut Pass,
    pub status: &'a mut Status,
    /// The most rows there can be.
    pub rows: usize,
    /// How many there are, where the device knows better.
    pub count: In<u64>,
}

/// The offsets of an array as kernels take them.
struct Edges {
    /// Bytes of an offset; 0 for none.
    width: usize,
    offsets: In<u8>,
    /// How far they may point.
    reach: Reach,
}

/// What takes: the arguments that each launch has.
#[derive(Clone, Copy)]
pub(crate) struct Indices {
    pub indices: In<u8>,
    pub width: u32,
    pub valid: Words,
    pub len: usize,
    /// The first index that is not a row.
    pub limit: u64,
    /// Receives the first row whose index is not one.
    pub fault: Out<u64>,
}

impl Node {
    /// The rows of an array that a filter keeps.
    pub fn kept(planner: &mut Planner, kept: &Kept, array: &Array) -> Result<Node> {
        let edges = edges(planner.pass, array)?;
        let width = if edges.width == 0 { 8 } else { edges.width };
        // Tiles of kept rows get their sums bit by bit.
        planner.node(array, width, true, |pass, level, sums, fault| {
            let entry =
                find(KEEP, &[edges.width as u32]).ok_or_else(|| pass.unsupported(array.data_type()))?;
            let (valid, valid_offset) = validity(array);
            let args = Keep {
                words: kept.words().0,
                words_offset: kept.words().1,
                tile_offsets: kept.offsets.input(),
                rows: kept.rows as u64,
                valid,
                valid_offset,
                offsets: edges.offsets,
                limit: edges.reach.limit,
                end: edges.reach.end,
                end_offset: edges.reach.end_offset,
                starts: level.starts.out(),
                lens: level.lens.out(),
                sums: sums.out(),
                fault,
            };
            pass.launch(entry, &args)
        })
    }

    /// The rows of an array at some indices.
    pub fn taken(planner: &mut Planner, by: &Indices, array: &Array) -> Result<Node> {
        let edges = edges(planner.pass, array)?;
        let width = if edges.width == 0 { 8 } else { edges.width };
        planner.node(array, width, false, |pass, level, sums, fault| {
            let entry = find(TAKE, &[edges.width as u32, by.width]);
            let args = Take {
                indices: by.indices,
                valid: by.valid.0,
                valid_offset: by.valid.1,
                rows: by.len as u64,
                offsets: edges.offsets,
                values_len: by.limit,
                limit: edges.reach.limit,
                end: edges.reach.end,
                end_offset: edges.reach.end_offset,
                starts: level.starts.out(),
                lens: level.lens.out(),
                sums: sums.out(),
                index_fault: by.fault,
                fault,
            };
            let entry = entry.ok_or_else(|| pass.unsupported(array.data_type()))?;
            pass.launch(entry, &args)
        })
    }

    /// The elements, of an array of ranges itself, that the ranges of a level above cover.
    pub fn inside(planner: &mut Planner, above: &Level, scale: u64, array: &Array) -> Result<Node> {
        let edges = edges(planner.pass, array)?;
        let (rows, count) = (planner.rows as u64, planner.count);
        planner.node(array, 8, false, |pass, level, sums, fault| {
            let entry = find(COMPOSE, &[above.width as u32, edges.width as u32]);
            let args = Compose {
                starts: above.starts.input(),
                lens: above.lens.input(),
                scale,
                count,
                rows,
                offsets: edges.offsets,
                limit: edges.reach.limit,
                end: edges.reach.end,
                end_offset: edges.reach.end_offset,
                next_starts: level.starts.out(),
                next_lens: level.lens.out(),
                sums: sums.out(),
                fault,
            };
            let entry = entry.ok_or_else(|| pass.unsupported(array.data_type()))?;
            pass.launch(entry, &args)
        })
    }

    /// Finishes the parts of the array's `rows` rows: buffers and children.
    pub fn build(&self, pass: &mut Pass, rows: usize, words: &[u64], parts: &mut Parts) -> Result<()> {
        let above = self.level.place(pass, rows, words, &self.array)?;
        if let Some(Slot::Offsets(_)) = self.array.layout().slots().next() {
            parts.buffers.push(above.to.buffer());
        }
        self.build_below(pass, &above, words, parts)
    }

    /// The bytes, or the child.
    pub fn build_below(
        &self,
        pass: &mut Pass,
        above: &Above,
        words: &[u64],
        parts: &mut Parts,
    ) -> Result<()> {
        match &self.child {
            Some(child) => parts.children = vec![child.build(pass, above, words)?],
            None => {
                let bytes = &self.array.buffers()[1];
                parts.buffers.push(copy_bytes(pass, above, 1, bytes)?.buffer());
            }
        }
        Ok(())
    }
}

impl Planner<'_> {
    /// Plans an array whose ranges `launch` finds, and what lies below it.
    fn node(
        &mut self,
        array: &Array,
        width: usize,
        zeroed: bool,
        launch: impl FnOnce(&mut Pass, &Level, &Region, Out<u64>) -> Result<()>,
    ) -> Result<Node> {
        let tiles = self.rows.div_ceil(TILE as usize);
        let sums = if zeroed { self.pass.zeroed(8 * tiles)? } else { self.pass.output(8 * tiles)? };
        let ((total, total_out), (fault, fault_out)) = (self.status.take(1), self.status.fault());
        let (starts, lens) = (self.pass.rows(self.rows, width)?, self.pass.rows(self.rows, width)?);
        let mut level = Level { width, starts, lens, bases: sums.clone(), total, fault };
        launch(self.pass, &level, &sums, fault_out)?;
        level.bases = scan_sums(self.pass, &sums, tiles, total_out)?;
        let child = match array.data_type() {
            DataType::FixedSizeList(_, size) => {
                Some(Inside::plan(self, &level, *size as u64, &array.child_rows(0)?)?)
            }
            _ => match array.children().first() {
                Some(child) => Some(Inside::plan(self, &level, 1, child)?),
                None => None,
            },
        };
        Ok(Node { array: array.clone(), level, child })
    }
}

impl Level {
    /// Where the ranges of `rows` rows go, now that all is known.
    pub fn place(&self, pass: &mut Pass, rows: usize, words: &[u64], array: &Array) -> Result<Above<'_>> {
        let (total, fault) = (words[self.total], words[self.fault]);
        if fault != u64::MAX {
            let problem = format!("row {fault} ends before it begins, or beyond what there is");
            return Err(Error::OutOfSpec { at: format!("offsets of {}", array.data_type()), problem });
        }
        // Kernels let no sum wrap: one that 64 bits do not hold comes as more than any offset can be.
        let most = if self.width == 4 { i32::MAX as u64 } else { i64::MAX as u64 };
        if total > most {
            // Beyond what any offset says, it is not exact.
            let how_many = if total > i64::MAX as u64 { "2^63 or more".into() } else { total.to_string() };
            let problem = format!("{how_many} elements do not fit the offsets of {}", array.data_type());
            return Err(Error::Invalid { operation: pass.operation(), problem });
        }
        let to = pass.rows(rows + 1, self.width)?;
        let width = self.width as u32;
        let entry = find(SCAN, &[width, width]).ok_or_else(|| pass.unsupported(array.data_type()))?;
        let args = Scan {
            values: self.lens.input(),
            count: In::absent(),
            len: rows as u64,
            bases: self.bases.input(),
            out: to.out(),
            total: Out::absent(),
        };
        pass.launch(entry, &args)?;
        Ok(Above { level: self, to, rows, total: total as usize })
    }
}

/// What comes before each of some tiles, from their sums, and what all of them have.
pub(crate) fn scan_sums(pass: &mut Pass, sums: &Region, tiles: usize, total: Out<u64>) -> Result<Region> {
    let out = pass.scratch::<u64>(tiles + 1)?;
    let groups = tiles.div_ceil(TILE as usize);
    let (values, len, count) = (sums.input(), tiles as u64, In::absent());
    let scan = find(SCAN, &[8, 8]).ok_or_else(|| pass.unsupported("sums"))?;
    if groups <= 1 {
        let args = Scan { values, count, len, bases: In::absent(), out: out.out(), total };
        pass.launch(scan, &args)?;
        return Ok(out);
    }
    let group_sums = pass.scratch::<u64>(groups)?;
    let entry = find(SUMS, &[8]).ok_or_else(|| pass.unsupported("sums"))?;
    pass.launch(entry, &Sums { values, count, len, sums: group_sums.out() })?;
    let bases = scan_sums(pass, &group_sums, groups, total)?;
    let args = Scan { values, count, len, bases: bases.input(), out: out.out(), total: Out::absent() };
    pass.launch(scan, &args)?;
    Ok(out)
}

fn edges(pass: &mut Pass, array: &Array) -> Result<Edges> {
    let Some(Slot::Offsets(width)) = array.layout().slots().next() else {
        return Ok(Edges { width: 0, offsets: In::absent(), reach: Reach::elements(array.len()) });
    };
    let reach = match array.children().first() {
        Some(child) => Reach::elements(child.len()),
        None => Reach::bytes(&array.buffers()[1]),
    };
    // An array of no rows may come without its one offset, and kernels read two.
    let offsets = match array.len() {
        0 => pass.zeroed(16)?.input(),
        len => {
            let offsets = array.buffers()[0].slice(array.offset() * width, Some((len + 1) * width));
            aligned(pass, &offsets, width)?
        }
    };
    Ok(Edges { width, offsets, reach })
}
