//! Filter: first everything whose size is known before the rows are (bitmaps: at most as long as they were), then one
//! look at the numbers, then the values.

use bowstring_kernels::filter_bits::{FILTER_BITS, FilterBits, FilterBitsRow, filter_bits_spans};
use bowstring_kernels::memory::Out;

use super::filter_values::Moves;
use super::ranges::{Node, Planner, has_ranges};
use super::selection::{Kept, Words};
use super::{Children, Status, children_of, empty_like, fixed_width, nodes, row_bytes, rows_of};
use crate::array::{Array, Bitmap, Slot};
use crate::pass::{Pass, Pending, Region, Table, bits};
use crate::{Result, Stream};

/// The kept rows of some columns.
pub(crate) struct Filtered {
    /// The columns.
    pub columns: Vec<Array>,
    /// How many rows.
    pub rows: usize,
}

/// The rows of arrays as long as `mask` where it is true. Synchronises once, when the result is waited for.
pub(crate) fn filter(columns: &[&Array], mask: &Array, stream: &Stream) -> Result<Pending<Filtered>> {
    if mask.is_empty() {
        let columns = columns.iter().copied().cloned().collect();
        return Ok(Pending::known(Ok(Filtered { columns, rows: 0 })));
    }
    let mut pass = Pass::begin("filter", stream)?;
    pass.input(mask)?;
    // All that starts at zero, and the table of the bitmaps, travel together.
    let (bitmaps, bytes) = (columns.iter().map(|column| bitmaps(column)).sum(), mask.len().div_ceil(8));
    let small = [8 * sums(columns), Kept::zeros(mask.len()), bitmaps * Table::<FilterBitsRow>::ROW_BYTES];
    pass.expect(&small, (bitmaps, bytes));
    let mut status = status(&mut pass, columns)?;
    let (_, total) = status.take(1);
    let kept = Kept::of(&mut pass, mask)?;
    of(pass, kept, status, None, columns, |pass, kept| kept.find(pass, mask, total))
}

/// How many numbers the host must know about these columns at most.
fn sums(columns: &[&Array]) -> usize {
    1 + 4 * columns.iter().map(|column| nodes(column)).sum::<usize>()
}

/// Room for what the host must know about these columns: of each array two null counts, a total and where it went wrong;
/// before them, how many rows.
pub(crate) fn status(pass: &mut Pass, columns: &[&Array]) -> Result<Status> {
    let sums = sums(columns);
    let ranges = columns.iter().any(|column| needs_ranges(column));
    Status::new(pass, sums, if ranges { sums / 4 } else { 0 })
}

/// The rows of `columns` that are kept. How many these are is `known`, or the first word of `status`. `find` launches what
/// finds them, late, so that as much as possible is sent to the device before.
pub(crate) fn of(
    mut pass: Pass,
    kept: Kept,
    mut status: Status,
    known: Option<usize>,
    columns: &[&Array],
    find: impl FnOnce(&mut Pass, &Kept) -> Result<()>,
) -> Result<Pending<Filtered>> {
    for column in columns {
        pass.input(column)?;
    }
    let mut find = Some(find);
    // Ranges are looked for while they are planned.
    if columns.iter().any(|column| needs_ranges(column)) {
        find.take().map_or(Ok(()), |find| find(&mut pass, &kept))?;
    }
    let nothing_to_read = status.used;
    let mut level = Level::new(&mut status, columns);
    let planned: Vec<Planned> = columns
        .iter()
        .map(|column| level.plan(&mut pass, &kept, &mut status, column))
        .collect::<Result<_>>()?;
    let table = level.upload(&mut pass)?;
    find.map_or(Ok(()), |find| find(&mut pass, &kept))?;
    level.launch(&mut pass, &kept, table)?;
    let columns: Vec<Array> = columns.iter().copied().cloned().collect();
    let build = move |mut pass: Pass, words: &[u64]| {
        let rows = known.unwrap_or_else(|| words[0] as usize);
        let mut moves = Moves::default();
        let mut done = vec![];
        if rows > 0 {
            pass.expect_outputs(columns.iter().flat_map(|column| row_bytes(column, rows)));
        }
        for (planned, column) in planned.into_iter().zip(columns) {
            done.push(match rows {
                0 => empty_like(&column, &pass)?,
                all if all == column.len() => column,
                _ => planned.build(&mut pass, &column, rows, words, &mut moves)?,
            });
        }
        moves.launch(&mut pass, &kept, rows)?;
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
    table: Table<FilterBitsRow>,
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
        Level { table: Table::default(), first, nulls }
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
        let row = self.table.push(&FilterBitsRow { source, offset, target: target.out() });
        Ok(Kind::Bits(target, self.first + row))
    }

    fn upload(&self, pass: &mut Pass) -> Result<Option<Region>> {
        (!self.table.is_empty()).then(|| pass.upload(self.table.words())).transpose()
    }

    fn launch(self, pass: &mut Pass, kept: &Kept, table: Option<Region>) -> Result<()> {
        let Some(table) = table else { return Ok(()) };
        let columns = self.table.len() as u64;
        let spans = filter_bits_spans(kept.rows as u64, pass.width());
        pass.launch(
            &FILTER_BITS[0],
            &FilterBits {
                table: table.input(),
                columns,
                spans,
                len: kept.rows as u64,
                words: kept.words().0,
                words_offset: kept.words().1,
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
    let own = array.validity().is_some() && array.known_null_count() != Some(0);
    let below = match children_of(array.data_type()) {
        Some(Children::Along) => array.children().iter().map(bitmaps).sum(),
        _ => 0,
    };
    usize::from(own) + array.layout().slots().filter(|slot| *slot == Slot::Bits).count() + below
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
                    let target = pass.rows(rows, width)?;
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
