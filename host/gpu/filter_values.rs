//! Filter of values of fixed width, after the row count is known: one launch for all buffers of equal width.

use std::collections::BTreeMap;

use bowstring_kernels::column::MovedRow;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::select::filter::{FILTER, Filter};
use bowstring_kernels::select::filter_few::{FILTER_FEW, FilterFew};
use bowstring_kernels::select::filter_small::{FILTER_SMALL, FilterSmall};
use bowstring_kernels::select::selection::TILE;
use bowstring_kernels::target::find;

use super::mask::Mask;
use super::rows::unit;
use crate::Result;
use crate::array::Buffer;
use crate::pass::{Pass, Region, Requests, Table, input};

/// If at most one row in so many is kept, each wave handles several tiles.
const FEW: usize = 32;

/// The least number of tiles, over all columns of a launch, that still occupies enough waves then.
const ENOUGH: u64 = 32;

/// Values of fixed width that one mask filters.
#[derive(Default)]
pub(crate) struct Values(Vec<(Buffer, usize)>);

/// Identifies the launch that moves a buffer: the bytes of one access, and how many accesses make a value.
type TableKey = (usize, usize);

impl Values {
    /// Returns how many buffers were added.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a buffer of rows of `width` bytes.
    pub fn push(&mut self, rows: Buffer, width: usize) {
        self.0.push((rows, width));
    }

    /// The bytes of `rows` rows of all buffers.
    pub fn bytes(&self, rows: usize) -> usize {
        self.0.iter().map(|(_, width)| rows.saturating_mul(*width)).fold(0, usize::saturating_add)
    }

    /// The bytes of the table that describes the buffers.
    pub fn table_bytes(&self) -> usize {
        self.0.len() * Table::<MovedRow>::ROW_BYTES
    }

    /// The first `rows` rows of each buffer that was moved.
    pub fn buffers(&self, moved: &Moved, rows: usize) -> impl Iterator<Item = Buffer> {
        let both = moved.targets.iter().zip(&self.0);
        both.map(move |(target, (_, width))| target.buffer().slice(0, Some(rows * width)))
    }

    /// Moves the `rows` kept rows of each buffer: one launch for each table, one upload for all tables.
    pub fn launch(&self, pass: &mut Pass, mask: &Mask, rows: usize) -> Result<Moved> {
        let moved = self.prepare(pass, mask.rows, rows)?;
        moved.launch(pass, mask)?;
        Ok(moved)
    }

    /// Allocates memory for at most `rows` of each buffer's `all` rows, and uploads the table.
    pub fn prepare(&self, pass: &mut Pass, all: usize, rows: usize) -> Result<Moved> {
        let mut requests = Requests::default();
        let request = |(_, width): &(Buffer, usize)| Ok(requests.output(pass.times(rows, *width)?));
        let targets = self.0.iter().map(request).collect::<Result<Vec<_>>>()?;
        let granted = requests.grant(pass, self.table_bytes())?;
        let targets: Vec<Region> = targets.into_iter().map(|target| granted[target].clone()).collect();
        let mut tables: BTreeMap<TableKey, Table<MovedRow>> = BTreeMap::new();
        for ((source, width), target) in self.0.iter().zip(&targets).filter(|((_, width), _)| *width > 0) {
            let unit = unit(*width, source.address());
            let row = MovedRow::values(input::<u8>(source), target.out());
            tables.entry((unit, width / unit)).or_default().push(&row);
        }
        let words: Vec<u64> = tables.values().flat_map(Table::words).copied().collect();
        let waves = (all as u64).div_ceil(TILE).saturating_mul(self.0.len() as u64);
        let uploaded = (!words.is_empty()).then(|| pass.table(&words, waves)).transpose()?;
        let tables = tables.into_iter().map(|(key, table)| (key, table.len())).collect();
        Ok(Moved { rows, targets, tables, uploaded })
    }
}

/// The memory for the kept rows of buffers.
pub(crate) struct Moved {
    /// The most rows that it has room for.
    rows: usize,
    targets: Vec<Region>,
    /// How many buffers each launch moves.
    tables: Vec<(TableKey, usize)>,
    /// The tables, one after the other; `None` if nothing moves.
    uploaded: Option<Region>,
}

impl Moved {
    /// Whether a launch is needed.
    pub fn is_needed(&self) -> bool {
        self.uploaded.is_some()
    }

    /// Moves the rows of a small batch that no kernel has counted; `total` receives their number.
    pub fn launch_uncounted(&self, pass: &mut Pass, mask: &Mask, mut total: Out<u64>) -> Result<()> {
        let (tiles, len) = (mask.sizes.tiles, mask.rows as u64);
        for ((unit, pieces), table, columns) in self.tables() {
            let (words, words_offset) = mask.words();
            let entry = find(FILTER_SMALL, &[unit as u32])
                .ok_or_else(|| pass.unsupported(format!("values of {unit} bytes")))?;
            let pieces = pieces as u64;
            let args = FilterSmall { table, columns, tiles, len, words, words_offset, total, pieces };
            pass.launch(entry, &args)?;
            total = Out::absent();
        }
        Ok(())
    }

    /// Moves the rows, at the places that the mask's offsets give them.
    pub fn launch(&self, pass: &mut Pass, mask: &Mask) -> Result<()> {
        let (tiles, len) = (mask.sizes.tiles, mask.rows as u64);
        for ((unit, pieces), table, columns) in self.tables() {
            let ((words, words_offset), offsets) = (mask.words(), mask.offsets());
            if pieces == 1 && self.rows <= mask.rows / FEW && columns * tiles >= ENOUGH {
                let entry = find(FILTER_FEW, &[unit as u32])
                    .ok_or_else(|| pass.unsupported(format!("values of {unit} bytes")))?;
                let args = FilterFew { table, columns, tiles, len, words, words_offset, offsets };
                pass.launch(entry, &args)?;
                continue;
            }
            let entry = find(FILTER, &[unit as u32, u32::from(pieces > 1)])
                .ok_or_else(|| pass.unsupported(format!("values of {unit} bytes")))?;
            let pieces = pieces as u64;
            let args = Filter { table, columns, tiles, len, words, words_offset, offsets, pieces };
            pass.launch(entry, &args)?;
        }
        Ok(())
    }

    /// The launches, each with its table and the number of its columns.
    fn tables(&self) -> impl Iterator<Item = (TableKey, In<u64>, u64)> {
        let mut start = 0;
        let tables = self.tables.iter().zip(self.uploaded.iter().cycle());
        tables.map(move |((key, columns), uploaded)| {
            let from = start;
            start += columns * Table::<MovedRow>::ROW_BYTES;
            (*key, uploaded.part(from, start), *columns as u64)
        })
    }
}
