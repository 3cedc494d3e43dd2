//! Filter, in three steps: everything whose output size is known before the row count (bitmaps are at most as
//! long as they were); one read of the counts by the host; then the values. For a small batch, values have
//! memory for all of its rows, so that they need not wait for the count, and the host reads it at the end.

use bowstring_kernels::column::MovedRow;
use bowstring_kernels::memory::Out;
use bowstring_kernels::select::bits::{FILTER_BITS, FilterBits, filter_bits_spans};
use bowstring_kernels::select::filter_small::{FILTER_SMALL_BITS, FilterSmallBits, MOST};

use super::draft::Draft;
use super::filter_values::{Moved, Values};
use super::mask::{Mask, Source, Unread};
use super::parts::empty_like;
use super::ranges::{Node, Planner, Rows};
use super::ranges_copy::Found;
use super::rows::{Children, children_of, fixed_width, has_ranges, rows_of};
use super::structure::Marked;
use super::structure::runs::KeptRuns;
use super::take::finished;
use crate::array::{Bitmap, Buffer, DeviceArray, Slot};
use crate::engine::Filtered;
use crate::pass::{
    Counter, FEW_ROWS, Granted, Looks, Pass, Pending, Region, Request, Requests, Seen, Table, Words, bits,
};
use crate::{Result, Stream};

/// The most bytes of values that a small batch has. Its outputs keep as many, however few rows are kept.
const EARLY_BYTES: usize = 1 << 20;

/// The most rows of a batch that is filtered before its kept rows are counted: with more rows, waves that
/// each count the rows before their own take longer than one that counts for all.
const EARLY_ROWS: usize = FEW_ROWS;
const _: () = assert!(EARLY_ROWS as u64 <= MOST);

/// Filters arrays as long as the mask. Reads the counts once; nested types may read more, see
/// [`Child`](super::ranges::Child).
pub(crate) fn filter(
    columns: &[&DeviceArray],
    mask: Source<'_>,
    stream: &Stream,
) -> Result<Pending<Filtered>> {
    if mask.rows() == 0 {
        let columns = columns.iter().copied().cloned().collect();
        return Ok(Pending::known(Ok(Filtered { columns, rows: 0 })));
    }
    let mut pass = Pass::begin("filter", stream)?;
    mask.enter(&mut pass)?;
    let mut plan = Plan::new(&mut pass, mask.rows(), columns)?;
    let (early, total) = (plan.is_early(), plan.requests.seldom_sums(1));
    let unread = match early {
        true => Unread::uncounted(&mut plan.requests, mask),
        false => Unread::new(&mut plan.requests, mask),
    };
    let mut started = plan.start(&mut pass, early)?;
    let (outcome, count) = (unread.outcome(), started.granted.counter(total));
    let mask = unread.read(&mut pass, &started.granted, count)?;
    let mut looks = Looks::default();
    started.launch(&mut pass, &mask, &mut looks, count)?;
    Ok(Pending::begin(stream, async move {
        let words = match early {
            true => looks.read_last(&mut pass).await?,
            false => looks.read(&mut pass).await?,
        };
        let own = &words[&started.counters];
        outcome(own)?;
        let total = total.of(own) as usize;
        started.build(pass, &mask, total, &words).await
    }))
}

/// Keeps the rows of `columns` that a mask selects; `rows` is how many those are. Synchronises once, when the
/// result is waited for, if any column has bitmaps or ranges.
pub(crate) fn filter_by(
    mut pass: Pass,
    mask: &Mask,
    rows: usize,
    columns: &[&DeviceArray],
) -> Result<Pending<Filtered>> {
    let mut started = Plan::new(&mut pass, mask.rows, columns)?.start(&mut pass, false)?;
    let mut looks = Looks::default();
    started.launch(&mut pass, mask, &mut looks, Out::absent())?;
    let (mask, stream) = (mask.clone(), pass.stream().clone());
    Ok(Pending::begin(&stream, async move {
        let words = looks.read(&mut pass).await?;
        started.build(pass, &mask, rows, &words).await
    }))
}

/// Everything that one mask filters. One launch filters all bitmaps.
struct Plan {
    /// The length of the mask: no output is longer.
    rows: usize,
    requests: Requests,
    columns: Vec<Column>,
    bitmaps: Vec<(Bitmap, Request)>,
    values: Values,
}

/// The part of an array that is filtered before the row count is known.
struct Column {
    array: DeviceArray,
    /// The index of its validity in `Plan::bitmaps`.
    validity: Option<usize>,
    contents: Contents,
    /// Children whose rows correspond to the array's rows one to one.
    children: Vec<Column>,
}

/// How an array's buffers are filtered.
enum Contents {
    /// Bits: an index into `Plan::bitmaps`.
    Bits(usize),
    /// Values of fixed width: the index of the first buffer. They are moved once the output is allocated.
    Values(usize),
    /// Ranges: found first, copied once the output is allocated.
    Ranges(Box<Node>),
    /// Runs: found first, then filtered themselves. A run stays if any of its rows is kept.
    Runs(Box<Runs>),
}

/// Runs being filtered, with the plan that filters their ends and values, and the places of what the host
/// reads of them.
struct Runs {
    kept: KeptRuns,
    planned: Option<Plan>,
    started: Option<Started>,
    marked: Option<Marked>,
    faults: Seen,
    counters: Seen,
}

impl Plan {
    fn new(pass: &mut Pass, rows: usize, columns: &[&DeviceArray]) -> Result<Plan> {
        columns.iter().try_for_each(|column| pass.input(column))?;
        Plan::of(pass, rows, columns)
    }

    /// Makes a plan for columns that the pass already reads or writes.
    fn of(pass: &mut Pass, rows: usize, columns: &[&DeviceArray]) -> Result<Plan> {
        let mut plan = Plan {
            rows,
            requests: Requests::over(rows),
            columns: vec![],
            bitmaps: vec![],
            values: Values::default(),
        };
        let planned = columns.iter().map(|column| plan.column(pass, column));
        plan.columns = planned.collect::<Result<_>>()?;
        Ok(plan)
    }

    fn column(&mut self, pass: &mut Pass, array: &DeviceArray) -> Result<Column> {
        let children = match children_of(array.data_type()) {
            Children::Along => (0..array.children().len())
                .map(|i| self.column(pass, &array.child_rows(i)?))
                .collect::<Result<_>>()?,
            Children::Shared | Children::Ranges => vec![],
            Children::Runs => {
                let kept = KeptRuns::new(pass, array)?;
                let planned = Plan::of(pass, kept.runs(), &[&kept.ends(pass)?, &array.children()[1]])?;
                let (planned, faults, counters) = (Some(planned), Seen::default(), Seen::default());
                let runs = Runs { kept, planned, started: None, marked: None, faults, counters };
                let contents = Contents::Runs(Box::new(runs));
                return Ok(Column { array: array.clone(), validity: None, contents, children: vec![] });
            }
        };
        let validity = array.possible_nulls().map(|validity| self.bits(validity.clone()));
        let contents = match has_ranges(array) {
            true => {
                let mut planner =
                    Planner { pass, requests: &mut self.requests, rows: self.rows, in_order: true };
                Contents::Ranges(Box::new(planner.kept(array)?))
            }
            false => self.buffers(pass, array)?,
        };
        Ok(Column { array: array.clone(), validity, contents, children })
    }

    fn buffers(&mut self, pass: &Pass, array: &DeviceArray) -> Result<Contents> {
        let first = self.values.len();
        for (slot, buffer) in array.layout().slots().zip(array.buffers()) {
            match (slot, fixed_width(slot)) {
                (Slot::Bits, _) => {
                    let values = Bitmap { buffer: buffer.clone(), offset: array.offset() };
                    return Ok(Contents::Bits(self.bits(values)));
                }
                (_, Some(width)) => self.values.push(rows_of(array, buffer, width), width),
                _ => return Err(pass.unsupported(array.data_type())),
            }
        }
        Ok(Contents::Values(first))
    }

    fn bits(&mut self, source: Bitmap) -> usize {
        self.bitmaps.push((source, self.requests.zeros(self.rows.div_ceil(8))));
        self.bitmaps.len() - 1
    }

    /// Whether to filter everything before the host knows how many rows are kept.
    fn is_early(&self) -> bool {
        let moves = !self.bitmaps.is_empty() || self.values.bytes(1) > 0;
        let is_small = self.rows <= EARLY_ROWS && self.values.bytes(self.rows) <= EARLY_BYTES;
        moves && is_small && self.columns.iter().all(Column::is_flat)
    }

    /// Allocates what was requested, and uploads the table of bitmaps in the same step. If it is early, the
    /// same for values.
    fn start(mut self, pass: &mut Pass, early: bool) -> Result<Started> {
        let spans = filter_bits_spans(self.rows as u64, pass.width());
        let nulls = self.requests.sums_of(self.bitmaps.len(), spans);
        let of_values = if early { self.values.table_bytes() } else { 0 };
        let granted =
            self.requests.grant(pass, self.bitmaps.len() * Table::<MovedRow>::ROW_BYTES + of_values)?;
        let row = |(source, target): &(Bitmap, Request)| {
            let (source, offset) = bits(source);
            MovedRow::bits(source, offset, granted[*target].out())
        };
        let table: Table<MovedRow> = self.bitmaps.iter().map(row).collect();
        let waves = spans.saturating_mul(self.bitmaps.len() as u64);
        let table = (!table.is_empty()).then(|| pass.table(table.words(), waves)).transpose()?;
        let bitmaps = self.bitmaps.into_iter().map(|(_, target)| target).collect();
        let moved = early.then(|| self.values.prepare(pass, self.rows, self.rows)).transpose()?;
        self.columns.iter_mut().try_for_each(|column| column.start(pass))?;
        let (columns, values, counters) = (self.columns, self.values, Seen::default());
        Ok(Started { granted, counters, columns, table, bitmaps, nulls, values, moved })
    }
}

/// A plan whose requests were granted.
struct Started {
    granted: Granted,
    /// The place of its own counters, once it was launched.
    counters: Seen,
    columns: Vec<Column>,
    table: Option<Region>,
    /// The filtered bitmaps, and the first of the counters of their unset bits.
    bitmaps: Vec<Request>,
    nulls: Counter,
    values: Values,
    /// The memory of the filtered values, if they do not wait for the row count.
    moved: Option<Moved>,
}

impl Started {
    /// Launches every kernel that does not depend on the row count, and adds what the host must read before
    /// the others. `total` receives the row count, if the mask has none.
    fn launch(&mut self, pass: &mut Pass, mask: &Mask, looks: &mut Looks, mut total: Out<u64>) -> Result<()> {
        self.counters = self.granted.look(looks);
        self.columns.iter_mut().try_for_each(|column| column.find(pass, &self.granted, mask, looks))?;
        let (len, columns) = (mask.rows as u64, self.bitmaps.len() as u64);
        if let Some(moved) = &self.moved {
            moved.launch_uncounted(pass, mask, total)?;
            total = if moved.is_needed() { Out::absent() } else { total };
        }
        let Some(table) = self.table.as_ref().map(Region::input) else { return Ok(()) };
        let ((words, words_offset), nulls) = (mask.words(), self.granted.counter(self.nulls));
        if self.moved.is_some() {
            let args = FilterSmallBits { table, columns, len, words, words_offset, total, nulls };
            return pass.launch(&FILTER_SMALL_BITS[0], &args);
        }
        let (spans, offsets) = (filter_bits_spans(len, pass.width()), mask.offsets());
        let args = FilterBits { table, columns, spans, len, words, words_offset, offsets, nulls };
        pass.launch(&FILTER_BITS[0], &args)
    }

    /// Builds the filtered columns, each of `rows` rows.
    async fn build(self, mut pass: Pass, mask: &Mask, rows: usize, words: &Words) -> Result<Filtered> {
        let columns = self.columns(&mut pass, mask, rows, words)?;
        let columns = finished(&mut pass, columns).await?;
        pass.finish()?;
        Ok(Filtered { columns, rows })
    }

    /// As [`Started::build`], but the arrays become parts of what the pass makes.
    fn columns(mut self, pass: &mut Pass, mask: &Mask, rows: usize, words: &Words) -> Result<Vec<Draft>> {
        let columns = std::mem::take(&mut self.columns).into_iter();
        match rows {
            0 => columns.map(|column| empty_like(pass, &column.array).map(Draft::Whole)).collect(),
            all if all == mask.rows => Ok(columns.map(|column| Draft::Whole(column.array)).collect()),
            _ => {
                let moved = match self.moved.take() {
                    Some(moved) => moved,
                    None => self.values.launch(pass, mask, rows)?,
                };
                let values: Vec<Buffer> = self.values.buffers(&moved, rows).collect();
                columns.map(|column| self.column(pass, rows, (&values, words), column)).collect()
            }
        }
    }

    fn column(
        &self,
        pass: &mut Pass,
        rows: usize,
        (values, words): (&[Buffer], &Words),
        column: Column,
    ) -> Result<Draft> {
        let (array, own) = (&column.array, &words[&self.counters]);
        let mut parts = pass.parts(array.data_type().clone(), rows);
        if let Some(place) = column.validity {
            let nulls = self.nulls.plus(place).of(own) as usize;
            parts.null_count = Some(nulls);
            // Without nulls the array needs no bitmap.
            parts.validity = (nulls > 0).then(|| Bitmap { buffer: self.bitmap(place, rows), offset: 0 });
        }
        let slots = array.layout().slots().count();
        match column.contents {
            Contents::Ranges(node) => {
                let found = Found { granted: &self.granted, words: own };
                let children = node.build(pass, found, rows, &mut parts)?;
                return Draft::nested(parts, children);
            }
            Contents::Runs(runs) => return Draft::nested(parts, runs.build(pass, words)?),
            Contents::Bits(place) => parts.buffers.push(self.bitmap(place, rows)),
            Contents::Values(first) => {
                parts.buffers.extend_from_slice(&values[first..][..slots]);
            }
        }
        // The data buffers that views point into are shared, not copied.
        parts.buffers.extend(array.buffers()[slots..].iter().cloned());
        parts.dictionary = array.dictionary().cloned();
        let children = match column.children.is_empty() {
            true => array.children().iter().cloned().map(Draft::Whole).collect(),
            false => {
                let children = column.children.into_iter();
                let built = children.map(|child| self.column(pass, rows, (values, words), child));
                built.collect::<Result<_>>()?
            }
        };
        Draft::nested(parts, children)
    }

    /// Returns the first `rows` bits of a bitmap. The bits after them are unspecified.
    fn bitmap(&self, place: usize, rows: usize) -> Buffer {
        self.granted[self.bitmaps[place]].buffer().slice(0, Some(rows.div_ceil(8)))
    }
}

impl Column {
    /// Whether no part of the column has to be found before it is filtered.
    fn is_flat(&self) -> bool {
        matches!(self.contents, Contents::Bits(_) | Contents::Values(_))
            && self.children.iter().all(Column::is_flat)
    }

    /// Starts the plans of runs in this column and its children.
    fn start(&mut self, pass: &mut Pass) -> Result<()> {
        if let Contents::Runs(runs) = &mut self.contents {
            runs.started = runs.planned.take().map(|plan| plan.start(pass, false)).transpose()?;
        }
        self.children.iter_mut().try_for_each(|child| child.start(pass))
    }

    /// Launches the search for ranges and runs in this column and its children.
    fn find(&mut self, pass: &mut Pass, granted: &Granted, mask: &Mask, looks: &mut Looks) -> Result<()> {
        match &mut self.contents {
            Contents::Ranges(node) => node.find(pass, granted, Rows::Kept(mask))?,
            Contents::Runs(runs) => {
                let marked = runs.marked.insert(runs.kept.find(pass, mask)?);
                (runs.faults, runs.counters) =
                    (looks.at([runs.kept.faults()]), looks.at([marked.counters()]));
                runs.started
                    .iter_mut()
                    .try_for_each(|started| started.launch(pass, &marked.mask, looks, Out::absent()))?;
            }
            Contents::Bits(_) | Contents::Values(_) => {}
        }
        self.children.iter_mut().try_for_each(|child| child.find(pass, granted, mask, looks))
    }
}

impl Runs {
    /// Builds the ends and the values of the remaining runs.
    fn build(self, pass: &mut Pass, words: &Words) -> Result<Vec<Draft>> {
        let (Some(marked), Some(started)) = (self.marked, self.started) else {
            return Err(pass.unsupported("runs that nobody has found"));
        };
        KeptRuns::check(&words[&self.faults])?;
        let runs = marked.total(&words[&self.counters]);
        let parts = started.columns(pass, &marked.mask, runs, words)?;
        parts.into_iter().map(|part| part.part_of(pass)).collect()
    }
}
