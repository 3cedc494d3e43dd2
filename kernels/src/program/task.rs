//! The inputs and outputs of a program, apart from how its rows are dealt to waves.

use crate::memory::{In, Out, TableRow};
use crate::target::{Lanes, Wave};

/// A column that a program reads.
pub struct ColumnRow {
    /// The values, from the array's first row on; for booleans, as `In::bitmap` gives them.
    pub values: [u64; 2],
    /// The bit offset of a column of booleans, as `In::bitmap` gives it.
    pub offset: u64,
    /// A bit for each row that is valid, as `In::bitmap` gives it. May be absent.
    pub valid: [u64; 2],
    /// The bit offset of `valid`, as `In::bitmap` gives it.
    pub valid_offset: u64,
}

impl TableRow for ColumnRow {
    type Words = [u64; 6];
    const ROW: u64 = 6;

    fn words(&self) -> [u64; 6] {
        let [values, extent] = self.values;
        let [valid, valid_extent] = self.valid;
        [values, extent, self.offset, valid, valid_extent, self.valid_offset]
    }
}

/// A column that a program writes.
pub struct OutputRow {
    /// The values; for booleans, a bitmap of whole words.
    pub values: [u64; 2],
    /// A bit for each valid row, in whole words. May be absent.
    pub valid: [u64; 2],
}

impl TableRow for OutputRow {
    type Words = [u64; 4];
    const ROW: u64 = 4;

    fn words(&self) -> [u64; 4] {
        let ([values, extent], [valid, valid_extent]) = (self.values, self.valid);
        [values, extent, valid, valid_extent]
    }
}

/// The words of a selection's output rows that describe its counts and their sums.
pub(super) const COUNTS: u64 = 2;
pub(super) const GROUP_SUMS: u64 = OutputRow::ROW;

impl OutputRow {
    /// The outputs of a selection: a bit for each row that it keeps, the number it keeps in each tile, and
    /// the sums of those numbers. The host zeroes the sums before the launch.
    pub fn selection(words: Out<u32>, counts: Out<u32>, sums: Out<u64>) -> [OutputRow; 2] {
        let sums = OutputRow { values: sums.described(), valid: [0; 2] };
        [OutputRow { values: words.described(), valid: counts.described() }, sums]
    }
}

/// The values of a lane's rows.
pub(super) type Values<V, const K: usize> = Lanes<[V; K]>;

/// A run of rows within a tile.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The index of the first row.
    pub first: u64,
    /// The number of rows from the first on. A wave may hold fewer at once.
    pub left: u32,
}

impl Group {
    /// Each lane's rows, counted from the first, and a bit for each that exists. A row past the end repeats
    /// the last one.
    #[inline(always)]
    pub fn all<const K: usize>(self, wave: &Wave) -> (Values<u32, K>, Lanes<u32>) {
        let (left, width) = (self.left, wave.width());
        let rows = wave.each(move |l| {
            let mut rows = [0; K];
            for k in 0..K {
                let row = l.index() + k as u32 * width;
                rows[k] = if row < left { row } else { left - 1 };
            }
            rows
        });
        let there = wave.each(move |l| {
            let mut there = 0;
            for k in 0..K {
                there |= u32::from(l.index() + k as u32 * width < left) << k;
            }
            there
        });
        (rows, there)
    }
}

/// The arguments of a launch that instructions use.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub code: In<u64>,
    pub columns: In<u64>,
    pub outputs: In<u64>,
    pub len: u64,
    pub failed: Out<u64>,
}

/// Removes the first row, moves the others up, and puts `last` at the end.
#[allow(clippy::manual_memcpy, reason = "a copy of memory is a call on devices")]
#[inline(always)]
pub(super) fn moved_up<V: Copy, const K: usize>(rows: [V; K], last: V) -> [V; K] {
    let mut moved = rows;
    for k in 1..K {
        moved[k - 1] = rows[k];
    }
    moved[K - 1] = last;
    moved
}
