//! The instructions that the shipped code objects use: for each its opcode in every generation's encoding,
//! its names, and its action. Instructions outside the table cannot be decoded, so nothing is ever guessed.

mod compares;
mod division;
mod floats;
mod lanes;
mod memory;
mod row;
mod scalar;
mod vector;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use row::Generation;
use row::N;
pub(crate) use row::{
    Action, Format, Kind, Output, Packed, Part, Row, Scalar, Sources, Vector, WIDE, Waits, When, Wide,
};

type Codes = HashMap<(Format, u16), &'static Row>;

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let all =
        [scalar::rows(), vector::rows(), floats::rows(), division::rows(), compares::rows(), memory::rows()];
    all.into_iter().flatten().collect()
});

static CODES: LazyLock<[Codes; 4]> = LazyLock::new(|| {
    [0, 1, 2, 3].map(|generation| {
        let of = |row: &'static Row| {
            (row.codes[generation] != N).then_some(((row.format, row.codes[generation]), row))
        };
        ROWS.iter().filter_map(of).collect()
    })
});

/// Looks up an instruction by its opcode.
pub(crate) fn find(generation: Generation, format: Format, code: u32) -> Option<&'static Row> {
    CODES[generation as usize].get(&(format, code as u16)).copied()
}
