//! Arrays whose rows are ranges of what lies below them: strings, binaries, and lists of every kind.
//!
//! The one idea: see [`bowstring_kernels::ranges`]. A [`Node`] asks for what its rows' ranges take at every level, then finds
//! them and sums them; nothing of that needs to know any size. When the host has read the totals, what the ranges cover is
//! copied (`ranges_copy.rs`). However deep a type is, there is one look at the numbers.
//!
//! Bytes of null rows: a string's or list's own null rows come out empty (for a take, those of null indices). What null
//! elements inside of lists have comes along as it is.

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::{COMPOSE, Compose, TAKE, Take};
use bowstring_kernels::ranges_keep::{KEEP, Keep};
use bowstring_kernels::structure::lists::{EXTENTS, Extents};
use bowstring_kernels::target::find;

use super::bitmap::aligned;
use super::indices::IndexArguments;
use super::mask::Mask;
use super::rows::{has_ranges, offsets_of, rows_of};
use super::scan::{scan_sums, tiles};
use crate::Result;
use crate::array::{Array, Slot};
use crate::pass::{Counter, Granted, Pass, Reach, Region, Request, Requests, validity};

/// The ranges of some rows, one for each.
pub(crate) struct RangeSet {
    /// Bytes of a start, of a length, and of the place where a range goes.
    pub width: usize,
    /// The first element of each range, and how many it has.
    pub starts: Request,
    pub lens: Request,
    /// How many elements each tile of rows has.
    sums: Request,
    /// How many elements come before each tile of rows, once that is found.
    pub bases: Option<Region>,
    /// How many elements there are.
    pub total: Counter,
    /// The first row with bad offsets.
    pub fault: Counter,
}

/// An array of ranges.
pub(crate) struct Node {
    pub array: Array,
    /// Those of its rows.
    pub ranges: RangeSet,
    /// What they are ranges of, unless that is bytes.
    pub child: Option<Child>,
}

/// An array of which the ranges of a set above are copied.
pub(crate) struct Child {
    pub array: Array,
    /// Rows of the array that make one element of the set above: more than 1 inside fixed-size lists.
    pub scale: u64,
    /// Its own ranges, where it has some.
    pub node: Option<Box<Node>>,
    /// Fields of a struct or sparse union, items of a fixed-size list.
    pub children: Vec<Child>,
    /// Whether its rows are taken by their numbers, once those are known.
    pub apart: bool,
}

/// Which rows are moved.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// Those that a filter keeps.
    Kept(&'a Mask),
    /// Those at some indices.
    At(&'a IndexArguments),
    /// All of so many, which are list views.
    Views(usize),
}

/// Plans arrays of ranges under the same rows.
pub(crate) struct Planner<'a> {
    pub pass: &'a Pass,
    pub requests: &'a mut Requests,
    /// The most rows there can be.
    pub rows: usize,
    /// Whether they stay in their order.
    pub in_order: bool,
}

impl Planner<'_> {
    /// The rows of an array that a filter keeps.
    pub fn kept(&mut self, array: &Array) -> Result<Node> {
        // Tiles of kept rows get their sums bit by bit.
        self.node(array, offset_width(array), Requests::zeros)
    }

    /// The rows of an array at some indices.
    pub fn taken(&mut self, array: &Array) -> Result<Node> {
        self.node(array, offset_width(array), Requests::scratch)
    }

    /// The rows of list views, as lists with offsets of so many bytes.
    pub fn viewed(&mut self, array: &Array, width: usize) -> Result<Node> {
        self.node(array, width, Requests::scratch)
    }

    fn node(
        &mut self,
        array: &Array,
        width: usize,
        sums: fn(&mut Requests, usize) -> Request,
    ) -> Result<Node> {
        let bytes = self.pass.times(self.rows, width)?;
        let ranges = RangeSet {
            width,
            starts: self.requests.scratch(bytes),
            lens: self.requests.scratch(bytes),
            sums: sums(self.requests, 8 * tiles(self.rows)),
            bases: None,
            total: self.requests.sum(),
            fault: self.requests.first_row(),
        };
        let child = match array.data_type() {
            DataType::FixedSizeList(_, size) => Some(self.child(*size as u64, &array.child_rows(0)?)?),
            _ => array.children().first().map(|child| self.child(1, child)).transpose()?,
        };
        Ok(Node { array: array.clone(), ranges, child })
    }

    fn child(&mut self, scale: u64, array: &Array) -> Result<Child> {
        let mut child = Child { array: array.clone(), scale, node: None, children: vec![], apart: false };
        match array.data_type() {
            DataType::RunEndEncoded(..) => child.apart = true,
            // The offsets of its rows must not go back.
            DataType::Union(_, UnionMode::Dense) => child.apart = !self.in_order,
            DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => {
                for i in 0..array.children().len() {
                    child.children.push(self.child(scale, &array.child_rows(i)?)?);
                }
            }
            DataType::FixedSizeList(_, size) => {
                let scale = scale.checked_mul(*size as u64);
                let scale = scale.ok_or_else(|| self.pass.unsupported(array.data_type()))?;
                child.children.push(self.child(scale, &array.child_rows(0)?)?);
            }
            _ if has_ranges(array) => {
                child.node = Some(Box::new(self.node(array, 8, Requests::scratch)?));
            }
            _ => {}
        }
        Ok(child)
    }
}

impl Node {
    /// Finds the ranges of an array's rows, and of all that lies below.
    pub fn find(&mut self, pass: &mut Pass, granted: &Granted, rows: Rows) -> Result<()> {
        if let Rows::Views(_) = rows {
            self.find_views(pass, granted)?;
            return self.find_below(pass, granted, rows);
        }
        let edges = Edges::of(pass, &self.array)?;
        let (Edges { width, offsets, reach }, ranges) = (edges, &self.ranges);
        let unsupported = |pass: &Pass| pass.unsupported(self.array.data_type());
        let (starts, lens) = (granted[ranges.starts].out(), granted[ranges.lens].out());
        let (sums, fault) = (granted[ranges.sums].out(), granted.counter(ranges.fault));
        let (limit, end, end_offset) = (reach.limit, reach.end, reach.end_offset);
        match rows {
            Rows::Kept(mask) => {
                let (valid, valid_offset) = validity(&self.array);
                let (words, words_offset) = mask.words();
                let args = Keep {
                    words,
                    words_offset,
                    tile_offsets: mask.offsets.input(),
                    rows: mask.rows as u64,
                    valid,
                    valid_offset,
                    offsets,
                    limit,
                    end,
                    end_offset,
                    starts,
                    lens,
                    sums,
                    fault,
                };
                pass.launch(find(KEEP, &[width as u32]).ok_or_else(|| unsupported(pass))?, &args)?;
            }
            Rows::At(by) => {
                let args = Take {
                    indices: by.indices,
                    valid: by.valid.0,
                    valid_offset: by.valid.1,
                    rows: by.len,
                    offsets,
                    values_len: by.limit,
                    limit,
                    end,
                    end_offset,
                    starts,
                    lens,
                    sums,
                    index_fault: by.fault,
                    fault,
                };
                let entry = find(TAKE, &[width as u32, by.width]);
                pass.launch(entry.ok_or_else(|| unsupported(pass))?, &args)?;
            }
            Rows::Views(_) => {}
        }
        self.find_below(pass, granted, rows)
    }

    /// Finds the ranges of list views' rows; null ones have none.
    fn find_views(&self, pass: &mut Pass, granted: &Granted) -> Result<()> {
        let (array, ranges) = (&self.array, &self.ranges);
        let width = offset_width(array);
        let [offsets, sizes] =
            [0, 1].map(|i| aligned(pass, &rows_of(array, &array.buffers()[i], width), width));
        let (valid, valid_offset) = validity(array);
        let args = Extents {
            offsets: offsets?,
            sizes: sizes?,
            valid,
            valid_offset,
            rows: array.len() as u64,
            limit: array.children()[0].len() as u64,
            end: In::absent(),
            end_offset: 0,
            base: 0,
            starts: granted[ranges.starts].out(),
            lens: granted[ranges.lens].out(),
            sums: granted[ranges.sums].out(),
            fault: granted.counter(ranges.fault),
            limits: Out::absent(),
        };
        let entry = find(EXTENTS, &[width as u32, ranges.width as u32]);
        pass.launch(entry.ok_or_else(|| pass.unsupported(array.data_type()))?, &args)
    }

    /// Finds the ranges that those of a set above cover.
    fn find_inside(
        &mut self,
        pass: &mut Pass,
        granted: &Granted,
        rows: Rows,
        (above, scale): (&RangeSet, u64),
    ) -> Result<()> {
        let Edges { width, offsets, reach } = Edges::of(pass, &self.array)?;
        let (len, count) = rows.count();
        let args = Compose {
            starts: granted[above.starts].input(),
            lens: granted[above.lens].input(),
            scale,
            count,
            rows: len,
            offsets,
            limit: reach.limit,
            end: reach.end,
            end_offset: reach.end_offset,
            next_starts: granted[self.ranges.starts].out(),
            next_lens: granted[self.ranges.lens].out(),
            sums: granted[self.ranges.sums].out(),
            fault: granted.counter(self.ranges.fault),
        };
        let entry = find(COMPOSE, &[above.width as u32, width as u32]);
        let entry = entry.ok_or_else(|| pass.unsupported(self.array.data_type()))?;
        pass.launch(entry, &args)?;
        self.find_below(pass, granted, rows)
    }

    fn find_below(&mut self, pass: &mut Pass, granted: &Granted, rows: Rows) -> Result<()> {
        let (tiles, ranges) = (tiles(rows.count().0 as usize), &mut self.ranges);
        let total = granted.counter(ranges.total);
        ranges.bases = Some(scan_sums(pass, &granted[ranges.sums], tiles, total)?);
        self.child.iter_mut().try_for_each(|child| child.find(pass, granted, rows, ranges))
    }
}

impl Child {
    fn find(&mut self, pass: &mut Pass, granted: &Granted, rows: Rows, above: &RangeSet) -> Result<()> {
        if let Some(node) = &mut self.node {
            node.find_inside(pass, granted, rows, (above, self.scale))?;
        }
        self.children.iter_mut().try_for_each(|child| child.find(pass, granted, rows, above))
    }
}

impl Rows<'_> {
    /// The most rows there can be, and how many there are where the device knows better.
    fn count(self) -> (u64, In<u64>) {
        match self {
            Rows::Kept(mask) => {
                let count =
                    mask.offsets.part(8 * mask.sizes.counts as usize, 8 * mask.sizes.offsets as usize);
                (mask.rows as u64, count)
            }
            Rows::At(by) => (by.len, In::absent()),
            Rows::Views(rows) => (rows as u64, In::absent()),
        }
    }
}

/// The offsets of an array as kernels take them.
struct Edges {
    /// Bytes of an offset; 0 for none.
    width: usize,
    offsets: In<u8>,
    /// How far they may point.
    reach: Reach,
}

impl Edges {
    fn of(pass: &mut Pass, array: &Array) -> Result<Edges> {
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
            _ => aligned(pass, &offsets_of(array, width), width)?,
        };
        Ok(Edges { width, offsets, reach })
    }
}

/// Bytes of an offset; without any, starts are as wide as the widest.
fn offset_width(array: &Array) -> usize {
    match array.layout().slots().next() {
        Some(Slot::Offsets(width) | Slot::Fixed(width)) => width,
        _ => 8,
    }
}
