//! The tables of a take: columns and bitmaps, for launches that each move many of them by the same indices.

use std::collections::BTreeMap;

use arrow_schema::{DataType, UnionMode};
use bowstring_kernels::column::{ColumnRow, MovedRow, OutputRow};
use bowstring_kernels::gather::take::{TAKE, TAKE_BITS, Take, TakeBits};
use bowstring_kernels::memory::{In, Out, TableRow};
use bowstring_kernels::target::find;

use super::bitmap::validity_from_start;
use super::draft::{Draft, Pick};
use super::indices::{IndexArguments, Indices, Outside};
use super::ranges::{Node, Planner, Rows};
use super::ranges_copy::Found;
use super::rows::{Children, children_of, fixed_width, has_ranges, rows_of, unit};
use crate::Result;
use crate::array::{Bitmap, Buffer, DeviceArray, Parts, Slot};
use crate::pass::{Counter, Granted, Pass, Region, Request, Requests, Table, bits, input, validity};

/// The most columns whose table stays on the host: a wave waits for one row of it after the other.
const FEW_COLUMNS: usize = 2;

/// Everything that one set of indices takes.
pub(crate) struct Plan {
    requests: Requests,
    indices: Indices,
    columns: Vec<Column>,
    values: BTreeMap<TableKey, Vec<PlannedRow>>,
    bitmaps: Vec<Bits>,
    /// Whether a column shares the indices' validity, and whether a bitmap of ones stands in for a validity
    /// that a column lacks.
    shares_validity: bool,
    needs_ones: bool,
    /// Whether the host must read counters before the result can be built.
    reads: bool,
}

/// Identifies the launch that takes a column: the bytes of an access, accesses for a value, and whether the
/// values have nulls.
type TableKey = (usize, usize, bool);

/// A row of a launch's table without its outputs, followed by the requests for those: values, and validity.
type PlannedRow = (ColumnRow, Request, Option<Request>);

/// A bitmap (`None` stands for all ones), and the request for the taken bits.
type Bits = (Option<Bitmap>, Request);

/// Identifies the counter of a column's nulls: the launch (`None` for that of the bitmaps), and the row in
/// its table.
#[derive(Clone, Copy)]
struct Count(Option<TableKey>, usize);

/// The part of an array that is taken before the totals are known.
struct Column {
    array: DeviceArray,
    validity: Validity,
    /// The counter of its nulls, if one is kept.
    nulls: Option<Count>,
    buffers: Vec<Request>,
    ranges: Option<Node>,
    /// Children whose rows correspond to the array's rows one to one.
    children: Option<Vec<Column>>,
    /// Whether a separate take handles the array, by the same indices.
    apart: bool,
}

/// The source of a result's validity.
#[derive(Clone, Copy)]
enum Validity {
    All,
    /// A row is valid if its index is valid.
    OfIndices,
    /// The rows' own validity, taken into this bitmap.
    OfRows(Request),
    /// All rows are valid but indices may be out of bounds: ones, taken into this bitmap.
    InBounds(Request),
}

impl Plan {
    pub fn new(indices: &DeviceArray, rows: usize, outside: Outside) -> Result<Plan> {
        let mut requests = Requests::over(indices.len());
        Ok(Plan {
            indices: Indices::new(&mut requests, indices, rows, outside)?,
            requests,
            columns: vec![],
            values: BTreeMap::new(),
            bitmaps: vec![],
            shares_validity: false,
            needs_ones: false,
            reads: false,
        })
    }

    /// Adds a column to the plan.
    pub fn add(&mut self, pass: &Pass, array: &DeviceArray) -> Result<()> {
        let column = self.column(pass, array)?;
        self.columns.push(column);
        Ok(())
    }

    fn column(&mut self, pass: &Pass, array: &DeviceArray) -> Result<Column> {
        let apart = self.is_apart(array.data_type());
        let validity = if apart { Validity::All } else { self.validity(array) };
        let mut column = Column {
            array: array.clone(),
            validity,
            nulls: None,
            buffers: vec![],
            ranges: None,
            children: None,
            apart,
        };
        if apart {
            return Ok(column);
        }
        if let Children::Along = children_of(array.data_type()) {
            let along = (0..array.children().len()).map(|i| self.column(pass, &array.child_rows(i)?));
            column.children = Some(along.collect::<Result<_>>()?);
        }
        // If one access moves a whole value, the same launch takes the validity.
        let mut is_left = true;
        if has_ranges(array) {
            self.reads = true;
            let mut planner =
                Planner { pass, requests: &mut self.requests, rows: self.indices.len(), in_order: false };
            column.ranges = Some(planner.taken(array)?);
        } else {
            for (slot, buffer) in array.layout().slots().zip(array.buffers()) {
                column.buffers.push(match (slot, fixed_width(slot)) {
                    (Slot::Bits, _) => self.bits(Bitmap { buffer: buffer.clone(), offset: array.offset() }),
                    (_, Some(width)) => {
                        let target = self.requests.output(pass.times(self.indices.len(), width)?);
                        if width > 0 {
                            let left = if is_left { validity } else { Validity::All };
                            column.nulls = self.values(array, buffer, width, target, left).or(column.nulls);
                            is_left &= column.nulls.is_none();
                        }
                        target
                    }
                    _ => return Err(pass.unsupported(array.data_type())),
                });
            }
        }
        if let Some(target) = validity.target().filter(|_| is_left) {
            column.nulls = Some(Count(None, self.bitmaps.len()));
            let own = array.validity().filter(|_| matches!(validity, Validity::OfRows(_)));
            self.needs_ones |= own.is_none();
            self.bitmaps.push((own.cloned(), target));
        }
        Ok(column)
    }

    /// Returns whether rows of a type cannot be moved one by one. That holds for runs; for dense unions,
    /// whose offsets must not decrease; for sparse unions if rows may become null, because a null needs a
    /// type id; and for fixed-size lists whose null rows must have null items.
    fn is_apart(&self, data_type: &DataType) -> bool {
        match data_type {
            DataType::RunEndEncoded(..) | DataType::Union(_, UnionMode::Dense) => true,
            DataType::FixedSizeList(..) => self.indices.outside == Outside::NullBelow,
            DataType::Union(_, UnionMode::Sparse) => {
                self.indices.array.possible_nulls().is_some() || self.indices.outside.is_null()
            }
            _ => false,
        }
    }

    /// Chooses the source of an array's validity.
    fn validity(&mut self, array: &DeviceArray) -> Validity {
        let values = array.possible_nulls().is_some();
        let indices = self.indices.array.possible_nulls().is_some();
        let outside_is_null = self.indices.outside.is_null();
        if !array.layout().validity {
            // A Null array needs no bitmap, and rows of a union do not become null here.
            return Validity::All;
        }
        let bytes = self.indices.len().div_ceil(8);
        match (values, outside_is_null) {
            (true, _) => Validity::OfRows(self.requests.zeros(bytes)),
            (false, true) => Validity::InBounds(self.requests.zeros(bytes)),
            (false, false) if indices => {
                self.shares_validity = true;
                Validity::OfIndices
            }
            (false, false) => Validity::All,
        }
    }

    /// Takes values of `width` bytes. If one access moves a whole value, the launch takes the validity too,
    /// and the counter of nulls is returned.
    fn values(
        &mut self,
        array: &DeviceArray,
        buffer: &Buffer,
        width: usize,
        target: Request,
        left: Validity,
    ) -> Option<Count> {
        let source = rows_of(array, buffer, width);
        let unit = match unit(width, source.address()) {
            unit if unit == width => unit,
            // If a value takes several accesses, kernels exist for these sizes only.
            unit => [16, 4, 1].into_iter().find(|size| *size <= unit).unwrap_or(1),
        };
        let left = if unit == width { left } else { Validity::All };
        let (valid, valid_offset) = match left {
            Validity::OfRows(_) => validity(array),
            _ => (In::absent(), 0),
        };
        let row = ColumnRow { values: input(&source), offset: 0, valid, valid_offset };
        let key = (unit, width / unit, !valid.is_absent());
        let rows = self.values.entry(key).or_default();
        rows.push((row, target, left.target()));
        left.target().map(|_| Count(Some(key), rows.len() - 1))
    }

    /// Takes a bitmap, such as the values of booleans.
    fn bits(&mut self, source: Bitmap) -> Request {
        let target = self.requests.zeros(self.indices.len().div_ceil(8));
        self.bitmaps.push((Some(source), target));
        target
    }

    /// Launches the tables of all planned columns.
    pub fn launch(mut self, pass: &mut Pass) -> Result<Taken> {
        if self.values.is_empty() && self.bitmaps.is_empty() {
            // Nothing moves, but the indices are checked all the same.
            self.values.insert((1, 1, false), vec![]);
        }
        let requests = &mut self.requests;
        let mut sums = |key: &TableKey, columns: usize| match key.2 {
            true => requests.sums(columns),
            // Without nulls there is nothing to count.
            false => requests.seldom_sums(columns),
        };
        let mut counts: BTreeMap<Option<TableKey>, Counter> =
            self.values.iter().map(|(key, rows)| (Some(*key), sums(key, rows.len()))).collect();
        counts.insert(None, requests.sums(self.bitmaps.len()));
        let rows: usize = self.values.values().map(Vec::len).sum();
        // The kernel reads a row of the table before it checks the table's length.
        let values_bytes = rows.max(1) * Table::<MovedRow>::ROW_BYTES;
        let bytes = values_bytes + self.bitmaps.len() * Table::<MovedRow>::ROW_BYTES;
        let granted = self.requests.grant(pass, bytes)?;
        let ones = self.needs_ones.then(|| pass.output(self.indices.rows.div_ceil(8).max(1))).transpose()?;
        let mut words = Vec::with_capacity(bytes / size_of::<u64>());
        for (source, target, valid) in self.values.values().flatten() {
            let valid = valid.map_or(Out::absent(), |valid| granted[valid].out());
            let target = OutputRow { values: granted[*target].out(), valid };
            words.extend(MovedRow { source: *source, target }.words());
        }
        words.resize(values_bytes / size_of::<u64>(), 0);
        for (source, target) in &self.bitmaps {
            let ones = || ones.as_ref().map_or(In::absent(), Region::input);
            let (source, offset) = source.as_ref().map_or_else(|| (ones(), 0), bits);
            words.extend(MovedRow::bits(source, offset, granted[*target].out()).words());
        }
        let tables = match rows + self.bitmaps.len() <= FEW_COLUMNS {
            // A wave takes at least one row for each lane.
            true => pass.table(&words, self.indices.len() as u64 / u64::from(pass.width()))?,
            false => pass.upload(&words)?,
        };
        // Uploads end here: the first launch sends all of them at once.
        ones.map_or(Ok(()), |ones| pass.fill(&ones, 0xff))?;
        let by = self.indices.arguments(pass, &granted)?;
        let of_indices =
            if self.shares_validity { validity_from_start(pass, &self.indices.array)? } else { None };
        let mut start = 0;
        for (key, rows) in &self.values {
            let end = start + rows.len() * Table::<MovedRow>::ROW_BYTES;
            let table = tables.part(start, end.max(Table::<MovedRow>::ROW_BYTES));
            take_values(pass, &by, *key, (table, rows.len()), granted.counter(counts[&Some(*key)]))?;
            start = end;
        }
        if !self.bitmaps.is_empty() {
            let table = tables.part(values_bytes, bytes);
            take_bits(pass, &by, (table, self.bitmaps.len()), granted.counter(counts[&None]))?;
        }
        self.columns.iter_mut().try_for_each(|column| column.find(pass, &granted, &by))?;
        let Plan { indices, columns, reads, .. } = self;
        Ok(Taken { granted, indices, columns, reads, counts, of_indices })
    }
}

fn take_values(
    pass: &mut Pass,
    by: &IndexArguments,
    (unit, pieces, has_nulls): TableKey,
    (table, columns): (In<u64>, usize),
    nulls: Out<u64>,
) -> Result<()> {
    let kind = if pieces > 1 { 2 } else { u32::from(has_nulls) };
    let entry = find(TAKE, &[unit as u32, by.width, kind])
        .ok_or_else(|| pass.unsupported(format!("values of {unit} bytes")))?;
    let args = Take {
        indices: by.indices,
        valid: by.valid.0,
        valid_offset: by.valid.1,
        len: by.len,
        limit: by.limit,
        table,
        columns: columns as u64,
        nulls,
        error: by.fault,
        pieces: pieces as u64,
    };
    pass.launch(entry, &args)
}

fn take_bits(
    pass: &mut Pass,
    by: &IndexArguments,
    (table, columns): (In<u64>, usize),
    nulls: Out<u64>,
) -> Result<()> {
    let entry = find(TAKE_BITS, &[by.width]).ok_or_else(|| pass.unsupported("bits"))?;
    let args = TakeBits {
        indices: by.indices,
        valid: by.valid.0,
        valid_offset: by.valid.1,
        len: by.len,
        limit: by.limit,
        table,
        columns: columns as u64,
        nulls,
        error: by.fault,
    };
    pass.launch(entry, &args)
}

impl Validity {
    /// Returns the request for the taken bitmap, if there is one.
    fn target(self) -> Option<Request> {
        match self {
            Validity::All | Validity::OfIndices => None,
            Validity::OfRows(target) | Validity::InBounds(target) => Some(target),
        }
    }
}

impl Column {
    /// Returns the arrays in it that are taken apart.
    fn apart(&self) -> Vec<&DeviceArray> {
        match self.apart {
            true => vec![&self.array],
            false => self.children.iter().flatten().flat_map(Column::apart).collect(),
        }
    }

    /// Finds the column's ranges; its validity must have been taken before. As in arrow-rs, the elements of
    /// null rows are not copied: a later cast of them could fail.
    fn find(&mut self, pass: &mut Pass, granted: &Granted, by: &IndexArguments) -> Result<()> {
        let valid = self.validity.target().map_or(by.valid, |taken| (granted[taken].input(), 0));
        let shown = IndexArguments { valid, ..*by };
        self.ranges.iter_mut().try_for_each(|node| node.find(pass, granted, Rows::At(&shown)))?;
        self.children.iter_mut().flatten().try_for_each(|child| child.find(pass, granted, by))
    }
}

/// A plan after its launches.
pub(crate) struct Taken {
    pub granted: Granted,
    pub indices: Indices,
    /// Whether the host must read the counters before the columns can be built.
    pub reads: bool,
    columns: Vec<Column>,
    /// The first null counter of each launch.
    counts: BTreeMap<Option<TableKey>, Counter>,
    /// The indices' validity, if a column shares it.
    of_indices: Option<Bitmap>,
}

impl Taken {
    /// Returns the columns that are taken apart, in the order in which [`Taken::build`] comes to them.
    pub fn apart(&self) -> Vec<Pick> {
        let (indices, outside) = (&self.indices.array, self.indices.outside);
        let picked = |array| Pick { array, indices: indices.clone(), outside };
        self.columns.iter().flat_map(Column::apart).cloned().map(picked).collect()
    }

    /// Builds the columns. `words` are the counters, empty if the host has not read them.
    pub fn build(mut self, pass: &mut Pass, words: &[u64]) -> Result<Vec<Draft>> {
        let columns = std::mem::take(&mut self.columns);
        columns.into_iter().map(|column| self.column(pass, column, words)).collect()
    }

    fn column(&self, pass: &mut Pass, column: Column, words: &[u64]) -> Result<Draft> {
        let (array, granted, rows) = (&column.array, &self.granted, self.indices.len());
        if column.apart {
            return Ok(Draft::Begun);
        }
        let mut parts: Parts = pass.parts(array.data_type().clone(), rows);
        (parts.validity, parts.null_count) = match column.validity {
            Validity::All => (None, Some(0)),
            Validity::OfIndices => (self.of_indices.clone(), self.indices.array.known_null_count()),
            Validity::OfRows(target) | Validity::InBounds(target) => {
                let counted = column.nulls.filter(|_| !words.is_empty());
                let nulls = counted.map(|Count(key, row)| self.counts[&key].plus(row).of(words) as usize);
                (Some(Bitmap { buffer: granted[target].buffer(), offset: 0 }), nulls)
            }
        };
        parts.dictionary = array.dictionary().cloned();
        if let Some(node) = &column.ranges {
            let children = node.build(pass, Found { granted, words }, rows, &mut parts)?;
            return Draft::nested(parts, children);
        }
        // Data buffers of views are shared, not copied, and so are children that rows only point into.
        let shared = array.buffers()[column.buffers.len()..].iter().cloned();
        parts.buffers = column.buffers.iter().map(|taken| granted[*taken].buffer()).chain(shared).collect();
        let children = match column.children {
            None => array.children().iter().cloned().map(Draft::Whole).collect(),
            Some(along) => {
                let children = along.into_iter().map(|child| self.column(pass, child, words));
                children.collect::<Result<_>>()?
            }
        };
        Draft::nested(parts, children)
    }
}
