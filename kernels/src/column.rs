//! How a table describes a column to a kernel: one row to read a column, one to write it, and one to move it.
//!
//! The one idea: a launch over many columns reads a table in device memory, and most tables describe the same
//! thing. So kernels name the words of a row by the constants here, and the host fills in the same structs.

use crate::memory::{In, Out, TableRow};
use crate::target::Value;

/// A column that a kernel reads.
#[derive(Clone, Copy)]
pub struct ColumnRow {
    /// The values, from the array's first row on; for booleans, from `In::bitmap`.
    pub values: In<u8>,
    /// The bit offset of a column of booleans, from `In::bitmap`.
    pub offset: u64,
    /// A bit for each row that is valid, from `In::bitmap`. May be absent.
    pub valid: In<u32>,
    /// The bit offset of `valid`, from `In::bitmap`.
    pub valid_offset: u64,
}

impl ColumnRow {
    /// The word at which `offset` is.
    pub const OFFSET: u64 = 2;
    /// The words at which `valid` is.
    pub const VALID: u64 = 3;
    /// The word at which `valid_offset` is.
    pub const VALID_OFFSET: u64 = 5;
}

impl TableRow for ColumnRow {
    type Words = [u64; 6];
    fn words(&self) -> [u64; 6] {
        let ([a, b], [c, d]) = (self.values.described(), self.valid.described());
        [a, b, self.offset, c, d, self.valid_offset]
    }
}

/// A column that a kernel writes.
#[derive(Clone, Copy)]
pub struct OutputRow {
    /// The values; for booleans, a bitmap of whole words.
    pub values: Out<u8>,
    /// A bit for each valid row, in whole words. May be absent.
    pub valid: Out<u32>,
}

impl OutputRow {
    /// The words at which `valid` is.
    pub const VALID: u64 = 2;
}

impl TableRow for OutputRow {
    type Words = [u64; 4];
    fn words(&self) -> [u64; 4] {
        let ([a, b], [c, d]) = (self.values.described(), self.valid.described());
        [a, b, c, d]
    }
}

/// A column whose rows a kernel moves: what it reads, then what it writes.
#[derive(Clone, Copy)]
pub struct MovedRow {
    /// The column that the rows come from.
    pub source: ColumnRow,
    /// The column that the rows go to.
    pub target: OutputRow,
}

impl MovedRow {
    /// The words at which `target` is.
    pub const TARGET: u64 = ColumnRow::ROW;
}

host_only! {
    impl MovedRow {
        /// Describes values whose validity, if any, another row moves.
        pub fn values<T: Value>(source: In<T>, target: Out<T>) -> MovedRow {
            let source = ColumnRow { values: source.cast(), offset: 0, valid: In::absent(), valid_offset: 0 };
            MovedRow { source, target: OutputRow { values: target.cast(), valid: Out::absent() } }
        }

        /// Describes a bitmap, from `In::bitmap`, which moves to whole words.
        pub fn bits(source: In<u32>, offset: u64, target: Out<u32>) -> MovedRow {
            let row = MovedRow::values(source, target);
            MovedRow { source: ColumnRow { offset, ..row.source }, ..row }
        }
    }
}

impl TableRow for MovedRow {
    type Words = [u64; 10];
    fn words(&self) -> [u64; 10] {
        let ([a, b, c, d, e, f], [g, h, i, j]) = (self.source.words(), self.target.words());
        [a, b, c, d, e, f, g, h, i, j]
    }
}
