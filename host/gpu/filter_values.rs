//! Filter of values of fixed width, after the row count is known: one launch for all buffers of equal width.

use std::collections::BTreeMap;

use bowstring_kernels::column::MovedRow;
use bowstring_kernels::select::filter::{FILTER, Filter};
use bowstring_kernels::select::filter_few::{FILTER_FEW, FilterFew};
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

    /// Moves the `rows` kept rows of each buffer: one launch for each table, one upload for all tables.
    pub fn launch(&self, pass: &mut Pass, mask: &Mask, rows: usize) -> Result<Vec<Region>> {
        let mut requests = Requests::default();
        let request = |(_, width): &(Buffer, usize)| Ok(requests.output(pass.times(rows, *width)?));
        let targets = self.0.iter().map(request).collect::<Result<Vec<_>>>()?;
        let granted = requests.grant(pass, self.0.len() * Table::<MovedRow>::ROW_BYTES)?;
        let targets: Vec<Region> = targets.into_iter().map(|target| granted[target].clone()).collect();
        let mut tables: BTreeMap<TableKey, Table<MovedRow>> = BTreeMap::new();
        for ((source, width), target) in self.0.iter().zip(&targets).filter(|((_, width), _)| *width > 0) {
            let unit = unit(*width, source.address());
            let row = MovedRow::values(input::<u8>(source), target.out());
            tables.entry((unit, width / unit)).or_default().push(&row);
        }
        let words: Vec<u64> = tables.values().flat_map(Table::words).copied().collect();
        if words.is_empty() {
            return Ok(targets);
        }
        let uploaded = pass.upload(&words)?;
        let mut start = 0;
        for ((unit, pieces), table) in tables {
            let end = start + table.bytes();
            let columns = table.len() as u64;
            let (tiles, len) = (mask.sizes.tiles, mask.rows as u64);
            let (words, words_offset) = mask.words();
            let (table, offsets) = (uploaded.part(start, end), mask.offsets());
            start = end;
            if pieces == 1 && rows <= mask.rows / FEW && columns * tiles >= ENOUGH {
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
        Ok(targets)
    }
}
