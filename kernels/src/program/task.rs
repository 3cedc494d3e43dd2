//! What a program works on, apart from how its rows are dealt to waves.

use crate::memory::{In, Out, TableRow};
use crate::target::{Lanes, Wave};

/// A column that a program reads.
pub struct ColumnRow {
    /// The values, from the array's first row on; of booleans, from `In::bitmap`.
    pub values: [u64; 2],
    /// Of booleans, from `In::bitmap`.
    pub offset: u64,
    /// Which are valid, from `In::bitmap`. May be absent.
    pub valid: [u64; 2],
    /// From `In::bitmap`.
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
    /// The values; of booleans, whole words.
    pub values: [u64; 2],
    /// Which are valid: whole words. May be absent.
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

/// Where a selection's counts and their sums stand in its rows.
pub(super) const COUNTS: u64 = 2;
pub(super) const GROUP_SUMS: u64 = OutputRow::ROW;

impl OutputRow {
    /// What a selection writes: the words of the rows that it keeps, how many each tile keeps, and their sums, zeroed before.
    pub fn selection(words: Out<u32>, counts: Out<u32>, sums: Out<u64>) -> [OutputRow; 2] {
        let sums = OutputRow { values: sums.described(), valid: [0; 2] };
        [OutputRow { values: words.described(), valid: counts.described() }, sums]
    }
}

/// Values of a lane's rows.
pub(super) type Values<V, const K: usize> = Lanes<[V; K]>;

/// Where rows are that a wave has at once.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The first row.
    pub first: u64,
    /// How many there are of it, at most.
    pub left: u32,
}

impl Group {
    /// Each lane's rows, from the first: those that are not there are the last. And a bit for each that is.
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

/// What instructions need of a launch's arguments.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub code: In<u64>,
    pub columns: In<u64>,
    pub outputs: In<u64>,
    pub len: u64,
    pub failed: Out<u64>,
}

/// The rows without the first, and `last` behind them.
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
