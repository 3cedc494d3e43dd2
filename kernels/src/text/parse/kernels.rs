//! Reading of columns of text as columns of values.
//!
//! The one idea: a lane has a row, whatever its column's layout
//! ([`TextColumn`](crate::text::rows::TextColumn)), and passes its text to a [`Reader`]. The properties of
//! a type that all rows share (bounds, scales, units, tables) are words. An entry thus serves every type
//! whose values are computed in the same way, and stores them by their width.
//!
//! Bytes moved per row: its offsets or view, its text (32 bytes at once), its value, and a bit for whether it
//! has a value.

use super::held::Held;
use super::parsers::*;
use super::said::Said;
use crate::map::function::U256;
use crate::memory::{In, Out};
use crate::target::{Lane, Lanes, Wave};
use crate::text::bytes::Bytes;
use crate::text::rows::{Column, Row};

/// Rows that one wave reads for each of its lanes.
const ROWS_PER_LANE: u64 = 4;

macro_rules! read_kernels {
    ($($reader:ident $key:literal $name:ident $(hard $hard:ident)?;)+) => {
        kernel! {
            family "read", blocks 3 for read_date read_interval read_f64, blocks 2 for read_decimal_b16 read_decimal_b32 read_f64_hard;
            /// Reads the rows of a column of text.
            Read {
                /// A row of [`TextColumn`](crate::text::rows::TextColumn).
                column: In<u64>,
                /// The number of rows; not 0.
                len: u64,
                /// The words that describe the type to the entry's reader.
                words: In<u64>,
                /// The width of a value in bytes; 0 for bits in whole words.
                width: u64,
                /// Receives the values; rows without one get zeros.
                values: Out<u8>,
                /// Receives a bit for each row that has a value, in whole words. May be absent.
                good: Out<u32>,
                /// Receives a bit for each row whose text is hard, in whole words. Absent if the reader has
                /// no hard texts.
                hard: Out<u32>,
                /// Lowered to the first row whose bytes are not inside its buffer, the first valid row whose
                /// text gives no value, and the first row whose text names a zone; all `u64::MAX` before.
                faults: Out<u64>,
            }
            waves |args, width| args.len.div_ceil(ROWS_PER_LANE * u64::from(width));
            /// By the type of the values.
            READ {
                $($name [$key] = run::<$reader<In<u64>>>,)+
            }
        }

        kernel! {
            family "read";
            /// Reads the rows whose text [`Read`] found hard.
            ReadHard {
                /// The column, as in [`Read`].
                column: In<u64>,
                /// The number of rows, as in [`Read`].
                len: u64,
                /// The words that describe the type, as in [`Read`].
                words: In<u64>,
                /// The width of a value in bytes, as in [`Read`].
                width: u64,
                /// Receives the values of these rows, as in [`Read`].
                values: Out<u8>,
                /// Receives a bit for each of these rows that has a value, as in [`Read`].
                good: Out<u32>,
                /// A bit for each row whose text is hard, in whole words.
                hard: In<u32>,
                /// Lowered to the first rows of each fault, as in [`Read`].
                faults: Out<u64>,
            }
            waves |args, width| args.len.div_ceil(ROWS_PER_LANE * u64::from(width));
            /// By the type of the values.
            READ_HARD {
                $($($hard [$key] = run_hard::<$reader<In<u64>>>,)?)+
            }
        }
    };
}
readers! { read_kernels }

fn run_hard<R: Reader<Words = In<u64>>>(args: &ReadHard, wave: &mut Wave) {
    let run = ROWS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    let end = args.len.min(at + run);
    if at >= end {
        return;
    }
    let column = Column::new(args.column, 0, wave);
    let reader = R::of(args.words);
    let (width, values, good, hard, faults) = (args.width, args.values, args.good, args.hard, args.faults);
    while at < end {
        wave.each(move |l| {
            let row = at + u64::from(l.index());
            if row >= end || hard.get(row / 32) >> (row % 32) & 1 == 0 {
                return;
            }
            match column.row(row, l).and_then(|text| reader.read_hard::<Row>(text)) {
                Some(value) => {
                    store(values, width, row, value, l);
                    if !good.is_absent() {
                        good.or(l, row / 32, 1 << (row % 32));
                    }
                }
                None => faults.min(l, 1, row),
            }
        });
        at += u64::from(wave.width());
    }
}

/// The number of bytes of a text that an error message quotes at most.
pub const QUOTED: u64 = 256;

kernel! {
    family "read";
    /// Copies the beginning of the first text that gives no value, for the error message.
    Quote {
        /// The column, as in [`Read`].
        column: In<u64>,
        /// The faults that [`Read`] found; the second gives the row.
        faults: In<u64>,
        /// Receives the length of the text in bytes, and at most [`QUOTED`] of its bytes.
        out: Out<u64>,
    }
    waves |_, _| 1;
    /// The only entry of this kernel.
    QUOTE {
        read_quote = quote,
    }
}

fn quote(args: &Quote, wave: &mut Wave) {
    let row = args.faults.get(1);
    if row == u64::MAX || wave.index() > 0 {
        return;
    }
    let column = Column::new(args.column, 0, wave);
    let (out, width) = (args.out, u64::from(wave.width()));
    wave.each(move |l| {
        let Some(text) = column.row(row, l) else { return };
        if l.index() == 0 {
            out.set(l, 0, text.len);
        }
        let mut i = u64::from(l.index());
        while i < text.len && i < QUOTED {
            out.cast::<u8>().set(l, 8 + i, text.at(i));
            i += width;
        }
    });
}

fn run<R: Reader<Words = In<u64>>>(args: &Read, wave: &mut Wave) {
    let run = ROWS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    let end = args.len.min(at + run);
    if at >= end {
        return;
    }
    let column = Column::new(args.column, 0, wave);
    let reader = R::of(args.words);
    let (width, values, faults) = (args.width, args.values, args.faults);
    while at < end {
        let read = wave.each(move |l| row(column, reader, at + u64::from(l.index()), end, faults, l));
        if width == 0 {
            let set = wave.each(move |l| matches!(read.at(l), Said::Value(value) if value.low != 0));
            bits(values.cast(), set, at, args.len, wave);
        } else {
            wave.each(move |l| {
                let row = at + u64::from(l.index());
                if row < end {
                    let value = if let Said::Value(value) = read.at(l) { value } else { U256::ZERO };
                    store(values, width, row, value, l);
                }
            });
        }
        if !args.good.is_absent() {
            let good = wave.each(move |l| matches!(read.at(l), Said::Value(_)));
            bits(args.good, good, at, args.len, wave);
        }
        if R::HARD && !args.hard.is_absent() {
            let hard = wave.each(move |l| matches!(read.at(l), Said::Hard));
            bits(args.hard, hard, at, args.len, wave);
        }
        at += u64::from(wave.width());
    }
}

/// Reads the value of a row. Returns [`Said::Nothing`] for a null row and for one past the end.
#[inline(always)]
fn row<R: Reader>(
    column: Column,
    reader: R,
    row: u64,
    end: u64,
    faults: Out<u64>,
    l: Lane<'_>,
) -> Said<U256> {
    if row >= end || !column.is_valid(row) {
        return Said::Nothing;
    }
    let Some(text) = column.row(row, l) else {
        faults.min(l, 0, row);
        return Said::Nothing;
    };
    let said = reader.read(Held::of(text));
    match said {
        Said::Nothing => faults.min(l, 1, row),
        Said::Elsewhere => faults.min(l, 2, row),
        Said::Value(_) | Said::Hard => {}
    }
    said
}

/// Stores a bit of each lane, in whole words.
#[inline(always)]
fn bits(out: Out<u32>, set: Lanes<bool>, at: u64, len: u64, wave: &mut Wave) {
    let mask = wave.ballot(set);
    let (word, halves) = (at / 32, wave.width() / 32);
    wave.each(move |l| {
        if l.index() < halves && (word + u64::from(l.index())) * 32 < len {
            out.set(l, word + u64::from(l.index()), mask.half(l.index()));
        }
    });
}

#[inline(always)]
fn store(values: Out<u8>, width: u64, row: u64, value: U256, l: Lane<'_>) {
    match width {
        1 => values.set(l, row, value.low as u8),
        2 => values.cast::<u16>().set(l, row, value.low as u16),
        4 => values.cast::<u32>().set(l, row, value.low as u32),
        8 => values.cast::<u64>().set(l, row, value.low as u64),
        16 => values.cast::<u128>().set(l, row, value.low),
        _ => {
            values.cast::<u128>().set(l, row * 2, value.low);
            values.cast::<u128>().set(l, row * 2 + 1, value.high);
        }
    }
}
