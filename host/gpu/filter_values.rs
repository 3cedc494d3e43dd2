//! Moves of fixed-width values that wait to be launched, those of equal width together.

use std::collections::BTreeMap;

use bowstring_kernels::filter::{FILTER, Filter, FilterRow};
use bowstring_kernels::filter_few::{FILTER_FEW, FilterFew};
use bowstring_kernels::target::find;

use super::selection::Kept;
use super::unit;
use crate::Result;
use crate::array::Buffer;
use crate::pass::{Pass, Region, Table, input};

/// Up to one kept row in so many, waves have several tiles each.
const FEW: usize = 32;

/// Tiles, of all columns of a launch, from which on that leaves waves enough.
const ENOUGH: u64 = 32;

/// Moves under one selection, by what is loaded at once and how often that makes a value.
#[derive(Default)]
pub(crate) struct Moves(BTreeMap<(usize, usize), Table<FilterRow<u8>>>);

impl Moves {
    /// Moves the kept ones of some values of `width` bytes to `target`.
    pub fn add(&mut self, source: &Buffer, width: usize, target: &Region) {
        if width == 0 {
            return;
        }
        let unit = unit(width, &[source.address()]);
        let row = FilterRow { source: input(source), target: target.out() };
        self.0.entry((unit, width / unit)).or_default().push(&row);
    }

    /// Launches them, `rows` of each: one launch for each width, one upload for all.
    pub fn launch(self, pass: &mut Pass, kept: &Kept, rows: usize) -> Result<()> {
        let all: Vec<u64> = self.0.values().flat_map(Table::words).copied().collect();
        if all.is_empty() {
            return Ok(());
        }
        let tables = pass.upload(&all)?;
        let mut start = 0;
        for ((unit, pieces), table) in self.0 {
            let end = start + table.bytes();
            let columns = table.len() as u64;
            let (tiles, len) = (kept.sizes.tiles, kept.rows as u64);
            let (words, words_offset) = kept.words();
            let (table, offsets) = (tables.part(start, end), kept.offsets.input());
            start = end;
            if pieces == 1 && rows <= kept.rows / FEW && columns * tiles >= ENOUGH {
                let entry = find(FILTER_FEW, &[unit as u32]).ok_or_else(|| pass.unsupported(unit))?;
                let args = FilterFew { table, columns, tiles, len, words, words_offset, offsets };
                pass.launch(entry, &args)?;
                continue;
            }
            let entry =
                find(FILTER, &[unit as u32, u32::from(pieces > 1)]).ok_or_else(|| pass.unsupported(unit))?;
            let pieces = pieces as u64;
            let args = Filter { table, columns, tiles, len, words, words_offset, offsets, pieces };
            pass.launch(entry, &args)?;
        }
        Ok(())
    }
}
