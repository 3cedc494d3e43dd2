//! What a program works on, apart from how its rows are dealt to waves.

use crate::memory::{In, Out, TableRow};
use crate::target::Lanes;

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

/// Values of a lane's rows.
pub(super) type Values<V, const K: usize> = Lanes<[V; K]>;

/// Where a group of rows is: `K` in each lane, a wave's width apart.
#[derive(Clone, Copy)]
pub(super) struct Group {
    /// The first row.
    pub first: u64,
    /// How many there are of it, at most.
    pub left: u32,
}

/// What instructions need of a launch's arguments.
#[derive(Clone, Copy)]
pub(super) struct Task {
    pub code: In<u64>,
    pub columns: In<u64>,
    pub outputs: In<u64>,
    pub len: u64,
    pub words: Out<u32>,
    pub failed: Out<u64>,
}
