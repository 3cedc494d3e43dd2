//! Moves of fixed-width values that wait to be launched, those of equal width together.

use std::collections::BTreeMap;

use bowstring_kernels::filter::{FILTER, Filter, FilterRow};
use bowstring_kernels::target::find;

use super::selection::Kept;
use super::unit;
use crate::Result;
use crate::array::Buffer;
use crate::launch::{Pass, Region, input};

/// Words of a column in the table.
const ROW: usize = 4;

/// Moves under one selection, by what is loaded at once and how often that makes a value.
#[derive(Default)]
pub(super) struct Moves(BTreeMap<(usize, usize), Vec<u64>>);

impl Moves {
    /// Moves the kept ones of some values of `width` bytes to `target`.
    pub fn add(&mut self, source: &Buffer, width: usize, target: &Region) {
        if width == 0 {
            return;
        }
        let unit = unit(width, &[source.address()]);
        let row: [u64; ROW] = FilterRow::<u8> { source: input(source), target: target.out() }.words();
        self.0.entry((unit, width / unit)).or_default().extend(row);
    }

    /// Launches them: one launch for each width, one upload for all.
    pub fn launch(self, pass: &mut Pass, kept: &Kept) -> Result<()> {
        let all: Vec<u64> = self.0.values().flatten().copied().collect();
        if all.is_empty() {
            return Ok(());
        }
        let tables = pass.upload(&all)?;
        let mut start = 0;
        for ((unit, pieces), table) in self.0 {
            let end = start + 8 * table.len();
            let columns = (table.len() / ROW) as u64;
            let entry =
                find(FILTER, &[unit as u32, u32::from(pieces > 1)]).ok_or_else(|| pass.unsupported(unit))?;
            pass.launch(
                entry,
                columns * kept.sizes.tiles,
                &Filter {
                    table: tables.part(start, end),
                    columns,
                    tiles: kept.sizes.tiles,
                    len: kept.rows as u64,
                    words: kept.words.0,
                    words_offset: kept.words.1,
                    offsets: kept.offsets.input(),
                    pieces: pieces as u64,
                },
            )?;
            start = end;
        }
        Ok(())
    }
}
