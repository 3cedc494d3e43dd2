//! Arrays whose rows are ranges of child elements: strings, binaries, and lists of every kind.
//!
//! The one idea: see [`bowstring_kernels::ranges::rows`]. A [`Node`] requests what its rows' ranges need
//! at every level, then finds and sums them; none of that depends on a size. After the host has read the
//! totals, `ranges_copy.rs` copies what the ranges cover. The host reads once, however deep the type.
//!
//! Bytes under nulls: null rows of a string or list array become empty (in a take, those whose index is
//! null). Null elements inside lists keep whatever range they have.

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::ranges::lists::{EXTENTS, Extents};
use bowstring_kernels::ranges::rows::{COMPOSE, Compose, TAKE, Take};
use bowstring_kernels::select::ranges::{KEEP, Keep};
use bowstring_kernels::target::find;

use super::bitmap::aligned;
use super::indices::IndexArguments;
use super::mask::Mask;
use super::rows::{has_ranges, offsets_of, rows_of};
use super::scan::{scan_sums, tiles};
use crate::Result;
use crate::array::{DeviceArray, Slot};
use crate::pass::{Counter, Granted, Pass, Reach, Region, Request, Requests, validity};

/// The ranges of some rows, one for each row.
pub(crate) struct RangeSet {
    /// The bytes of a start, of a length, and of an output offset.
    pub width: usize,
    /// The first element of each range, and its number of elements.
    pub starts: Request,
    pub lens: Request,
    /// The number of elements in each tile of rows.
    sums: Request,
    /// The number of elements before each tile of rows. `None` until that is computed.
    pub bases: Option<Region>,
    /// The total number of elements.
    pub total: Counter,
    /// The first row with bad offsets.
    pub fault: Counter,
}

/// An array whose rows are ranges.
pub(crate) struct Node {
    pub array: DeviceArray,
    /// The ranges of the array's rows.
    pub ranges: RangeSet,
    /// The child that the ranges point into. `None` if they point into bytes.
    pub child: Option<Child>,
}

/// An array from which the ranges of a set above are copied.
pub(crate) struct Child {
    pub array: DeviceArray,
    /// Rows of the array in one element of the set above: more than 1 inside fixed-size lists.
    pub scale: u64,
    /// The array's own ranges, if its rows are ranges.
    pub node: Option<Box<Node>>,
    /// The fields of a struct or sparse union, or the items of a fixed-size list.
    pub children: Vec<Child>,
    /// Whether its rows are taken by index, once the indices are known, rather than copied range by range.
    pub apart: bool,
}

/// Selects the rows that are moved.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// The rows that a filter keeps.
    Kept(&'a Mask),
    /// The rows at some indices.
    At(&'a IndexArguments),
    /// All rows of an array of list views, of this length.
    Views(usize),
}

/// Plans arrays of ranges over the same selection of rows.
pub(crate) struct Planner<'a> {
    pub pass: &'a Pass,
    pub requests: &'a mut Requests,
    /// The most rows that the selection can have.
    pub rows: usize,
    /// Whether the selected rows keep their order.
    pub in_order: bool,
}

impl Planner<'_> {
    /// Plans the rows of an array that a filter keeps.
    pub fn kept(&mut self, array: &DeviceArray) -> Result<Node> {
        // The sums start at zero because a filter's kernel adds to them piece by piece.
        self.node(array, offset_width(array), Requests::zeros)
    }

    /// Plans the rows of an array at some indices.
    pub fn taken(&mut self, array: &DeviceArray) -> Result<Node> {
        self.node(array, offset_width(array), Requests::scratch)
    }

    /// Plans the rows of list views, as lists with offsets of `width` bytes.
    pub fn viewed(&mut self, array: &DeviceArray, width: usize) -> Result<Node> {
        self.node(array, width, Requests::scratch)
    }

    fn node(
        &mut self,
        array: &DeviceArray,
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

    fn child(&mut self, scale: u64, array: &DeviceArray) -> Result<Child> {
        let mut child = Child { array: array.clone(), scale, node: None, children: vec![], apart: false };
        match array.data_type() {
            DataType::RunEndEncoded(..) => child.apart = true,
            // A dense union's offsets must not decrease.
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
    /// Finds the ranges of the array's rows, and of everything below.
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
                    tile_offsets: mask.offsets(),
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

    /// Finds the ranges of list views' rows; null rows have empty ranges.
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

    /// Finds the ranges of the rows that the ranges above cover.
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
    /// Returns the most rows there can be, and the device's exact number if only the device knows it.
    fn count(self) -> (u64, In<u64>) {
        match self {
            Rows::Kept(mask) => {
                let total = mask.sizes.counts;
                (mask.rows as u64, mask.offsets().skip(total))
            }
            Rows::At(by) => (by.len, In::absent()),
            Rows::Views(rows) => (rows as u64, In::absent()),
        }
    }
}

/// The offsets of an array as kernels take them.
struct Edges {
    /// The bytes of an offset; 0 if the array has no offsets.
    width: usize,
    offsets: In<u8>,
    /// The bound that offsets must not exceed.
    reach: Reach,
}

impl Edges {
    fn of(pass: &mut Pass, array: &DeviceArray) -> Result<Edges> {
        let Some(Slot::Offsets(width)) = array.layout().slots().next() else {
            return Ok(Edges { width: 0, offsets: In::absent(), reach: Reach::elements(array.len()) });
        };
        let reach = match array.children().first() {
            Some(child) => Reach::elements(child.len()),
            None => Reach::bytes(&array.buffers()[1]),
        };
        // An empty array may come without its one offset, but kernels always read two.
        let offsets = match array.len() {
            0 => pass.zeroed(16)?.input(),
            _ => aligned(pass, &offsets_of(array, width), width)?,
        };
        Ok(Edges { width, offsets, reach })
    }
}

/// Returns the bytes of an offset, or 8 for an array without offsets.
fn offset_width(array: &DeviceArray) -> usize {
    match array.layout().slots().next() {
        Some(Slot::Offsets(width) | Slot::Fixed(width)) => width,
        _ => 8,
    }
}
