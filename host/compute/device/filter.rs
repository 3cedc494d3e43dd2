//! Filter: first everything whose size is known before the rows are (bitmaps: at most as long as they were), then one
//! look at the numbers, then the values.

use bowstring_kernels::filter_bits::{FILTER_BITS, FilterBits, FilterBitsRow, filter_bits_spans};
use bowstring_kernels::memory::Out;

use super::moves::Moves;
use super::ranges::{Node, Planner, has_ranges};
use super::selection::{Kept, Words};
use super::{Children, Status, along, children_of, empty_like, fixed_width, nodes, rows_of};
use crate::array::{Array, Bitmap, Slot};
use crate::launch::{Pass, Pending, Region, bits};
use crate::{Result, Stream};

/// The kept rows of some columns.
pub(in crate::compute) struct Filtered {
    /// The columns.
    pub columns: Vec<Array>,
    /// How many rows.
    pub rows: usize,
}

/// The rows of arrays as long as `mask` where it is true. Synchronises once, when the result is waited for.
pub(in crate::compute) fn filter(
    columns: &[&Array],
    mask: &Array,
    stream: &Stream,
) -> Result<Pending<Filtered>> {
    if mask.is_empty() {
        let columns = columns.iter().copied().cloned().collect();
        return Ok(Pending::known(Ok(Filtered { columns, rows: 0 })));
    }
    let mut pass = Pass::begin("filter", stream)?;
    pass.input(mask)?;
    let mut status = status(&mut pass, columns)?;
    let (_, total) = status.take(1);
    let kept = Kept::of_mask(&mut pass, mask, total)?;
    of(pass, kept, status, None, columns)
}

/// Room for what the host must know about these columns: of each array two null counts, a total and where it went wrong;
/// before them, how many rows.
pub(super) fn status(pass: &mut Pass, columns: &[&Array]) -> Result<Status> {
    let nodes: usize = columns.iter().map(|column| nodes(column)).sum();
    let ranges = columns.iter().any(|column| needs_ranges(column));
    Status::new(pass, 1 + 4 * nodes, if ranges { nodes } else { 0 })
}

/// The rows of `columns` that are kept. How many these are is `known`, or the first word of `status`.
pub(super) fn of(
    mut pass: Pass,
    kept: Kept,
    mut status: Status,
    known: Option<usize>,
    columns: &[&Array],
) -> Result<Pending<Filtered>> {
    for column in columns {
        pass.input(column)?;
    }
    let nothing_to_read = status.used;
    let mut level = Level::new(&mut status, columns);
    let planned: Vec<Planned> = columns
        .iter()
        .map(|column| level.plan(&mut pass, &kept, &mut status, column))
        .collect::<Result<_>>()?;
    level.launch(&mut pass, &kept)?;
    let columns: Vec<Array> = columns.iter().copied().cloned().collect();
    let build = move |mut pass: Pass, words: &[u64]| {
        let rows = known.unwrap_or_else(|| words[0] as usize);
        let mut moves = Moves::default();
        let mut done = vec![];
        for (planned, column) in planned.into_iter().zip(columns) {
            done.push(match rows {
                0 => empty_like(&column, &pass)?,
                all if all == column.len() => column,
                _ => planned.build(&mut pass, &column, rows, words, &mut moves)?,
            });
        }
        moves.launch(&mut pass, &kept)?;
        pass.finish()?;
        Ok(Filtered { columns: done, rows })
    };
    match known {
        Some(_) if status.used == nothing_to_read => Ok(Pending::known(build(pass, &[]))),
        _ => pass.read_later(&status.region, build),
    }
}

/// The bitmaps of all arrays under one selection, filtered in one launch.
struct Level {
    table: Vec<u64>,
    bitmaps: usize,
    first: usize,
    nulls: Out<u64>,
}

/// An array's rows as far as they are filtered before their number is known.
struct Planned {
    validity: Option<Kind>,
    kind: Kind,
    children: Vec<Planned>,
}

/// What a bitmap or an array's buffers become.
enum Kind {
    /// Bits: there already. The number of unset ones is a word of the status.
    Bits(Region, usize),
    /// Fixed widths: moved once there is room.
    Moved,
    /// Ranges: found, copied once there is room.
    Ranges(Box<Node>),
}

impl Level {
    fn new(status: &mut Status, columns: &[&Array]) -> Level {
        let bitmaps = columns.iter().map(|column| bitmaps(column)).sum();
        let (first, nulls) = status.take(bitmaps);
        Level { table: vec![], bitmaps: 0, first, nulls }
    }

    fn plan(&mut self, pass: &mut Pass, kept: &Kept, status: &mut Status, array: &Array) -> Result<Planned> {
        let children = match children_of(array.data_type()) {
            Some(Children::Along) => (0..array.children().len())
                .map(|i| self.plan(pass, kept, status, &array.child_rows(i)?))
                .collect::<Result<_>>()?,
            Some(Children::Shared | Children::Ranges) => vec![],
            None => return Err(pass.unsupported(array.data_type())),
        };
        let validity = array.validity().filter(|_| array.known_null_count() != Some(0));
        let validity = validity.map(|validity| self.bits(pass, kept, bits(validity))).transpose()?;
        let mut kind = Kind::Moved;
        if has_ranges(array) {
            let count = kept.offsets.part(8 * kept.sizes.counts as usize, 8 * kept.sizes.offsets as usize);
            let mut planner = Planner { pass, status, rows: kept.rows, count };
            let node = Node::kept(&mut planner, kept, array)?;
            return Ok(Planned { validity, kind: Kind::Ranges(Box::new(node)), children });
        }
        for (slot, buffer) in array.layout().slots().zip(array.buffers()) {
            match slot {
                Slot::Bits => {
                    let values = Bitmap { buffer: buffer.clone(), offset: array.offset() };
                    kind = self.bits(pass, kept, bits(&values))?;
                }
                slot if fixed_width(slot).is_some() => {}
                _ => return Err(pass.unsupported(array.data_type())),
            }
        }
        Ok(Planned { validity, kind, children })
    }

    fn bits(&mut self, pass: &mut Pass, kept: &Kept, (source, offset): Words) -> Result<Kind> {
        let target = pass.zeroed(kept.rows.div_ceil(8))?;
        self.table.extend(FilterBitsRow { source, offset, target: target.out() }.words());
        self.bitmaps += 1;
        Ok(Kind::Bits(target, self.first + self.bitmaps - 1))
    }

    fn launch(self, pass: &mut Pass, kept: &Kept) -> Result<()> {
        if self.bitmaps == 0 {
            return Ok(());
        }
        let table = pass.upload(&self.table)?;
        let columns = self.bitmaps as u64;
        let spans = filter_bits_spans(kept.rows as u64, pass.width());
        pass.launch(
            &FILTER_BITS[0],
            columns * spans,
            &FilterBits {
                table: table.input(),
                columns,
                spans,
                len: kept.rows as u64,
                words: kept.words.0,
                words_offset: kept.words.1,
                offsets: kept.offsets.input(),
                nulls: self.nulls,
            },
        )
    }
}

/// Whether rows of the array, or of what moves along with it, are ranges.
fn needs_ranges(array: &Array) -> bool {
    has_ranges(array) || array.children().iter().any(needs_ranges)
}

/// How many bitmaps are filtered with an array's rows: its own and those of children that move along.
fn bitmaps(array: &Array) -> usize {
    2 * along(array)
}

impl Planned {
    /// The array of `rows` rows, at least one, its moves noted.
    fn build(
        self,
        pass: &mut Pass,
        array: &Array,
        rows: usize,
        words: &[u64],
        moves: &mut Moves,
    ) -> Result<Array> {
        let mut parts = pass.parts(array.data_type().clone(), rows);
        if let Some(Kind::Bits(region, slot)) = self.validity {
            parts.null_count = Some(words[slot] as usize);
            // Without nulls there is nothing to say.
            parts.validity = (words[slot] > 0).then(|| bitmap(&region, rows));
        }
        match self.kind {
            Kind::Bits(region, _) => parts.buffers.push(bitmap(&region, rows).buffer),
            Kind::Ranges(node) => {
                node.build(pass, rows, words, &mut parts)?;
                return Array::try_new(parts);
            }
            Kind::Moved => {
                let slots = array.layout().slots().count();
                for (slot, buffer) in array.layout().slots().zip(array.buffers()) {
                    let Some(width) = fixed_width(slot) else {
                        return Err(pass.unsupported(array.data_type()));
                    };
                    let target = pass.output(rows * width)?;
                    moves.add(&rows_of(array, buffer, width), width, &target);
                    parts.buffers.push(target.buffer());
                }
                // The data that views point into stays where it is.
                parts.buffers.extend(array.buffers()[slots..].iter().cloned());
            }
        }
        parts.dictionary = array.dictionary().cloned();
        parts.children = match children_of(array.data_type()) {
            Some(Children::Along) => {
                let children = self.children.into_iter().enumerate();
                let one = |(i, planned): (usize, Planned)| {
                    planned.build(pass, &array.child_rows(i)?, rows, words, moves)
                };
                children.map(one).collect::<Result<_>>()?
            }
            _ => array.children().to_vec(),
        };
        Array::try_new(parts)
    }
}

/// The first `rows` bits of a region, the rest of which nobody sees.
fn bitmap(region: &Region, rows: usize) -> Bitmap {
    Bitmap { buffer: region.buffer().slice(0, Some(rows.div_ceil(8))), offset: 0 }
}
