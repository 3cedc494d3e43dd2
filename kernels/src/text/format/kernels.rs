//! Writing of columns of values as columns of text.
//!
//! The one idea: the same function writes a value twice. [`Measure`] counts its bytes ([`Length`]), a
//! [`scan`](crate::reduce::scan) turns the lengths into offsets, and [`Write`] stores the bytes at them.
//! So a row has no maximum length, and no row waits for another.
//!
//! Bytes moved per row: its value twice, four bytes of length, two neighbouring offsets, and its text a byte
//! at a time.

use super::formatters::*;
use super::sink::{Backwards, Length, Sink};
use crate::map::function::U256;
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::{Lane, Wave};

/// Rows that one wave writes for each of its lanes.
const ROWS_PER_LANE: u64 = 4;

macro_rules! write_kernels {
    ($($writer:ident $key:literal $measure:ident $write:ident;)+) => {
        kernel! {
            family "write";
            /// Computes how many bytes each value takes as text.
            Measure {
                /// The values; bits come from `In::bitmap`.
                values: In<u8>,
                /// The bit offset of `values` from `In::bitmap`, if they are bits.
                offset: u64,
                /// The width of a value in bytes; 0 for bits.
                width: u64,
                /// The words that describe the type to the entry's writer.
                words: In<u64>,
                /// The validity of the values, from `In::bitmap`. A null value takes no bytes. May be absent.
                valid: In<u32>,
                /// The bit offset of `valid`, from `In::bitmap`.
                valid_offset: u64,
                /// The number of rows; not 0.
                rows: u64,
                /// Receives how many bytes each value takes.
                lens: Out<u32>,
                /// Receives the sum of each tile of lengths.
                sums: Out<u64>,
                /// Lowered to the first row whose value has no text; `u64::MAX` before.
                fault: Out<u64>,
            }
            waves |args, _| args.rows.div_ceil(TILE);
            /// By the type of the values.
            MEASURE {
                $($measure [$key] = measure::<$writer<In<u64>>>,)+
            }
        }

        kernel! {
            family "write";
            /// Writes each value as text at its position.
            Write {
                /// The values, as in [`Measure`].
                values: In<u8>,
                /// The bit offset of `values`, as in [`Measure`].
                offset: u64,
                /// The width of a value in bytes, as in [`Measure`].
                width: u64,
                /// The words that describe the type, as in [`Measure`].
                words: In<u64>,
                /// The number of rows; not 0.
                rows: u64,
                /// The position of each row's text, and the end of the last. Rows without bytes are not
                /// written.
                to: In<u8>,
                /// The width of an offset in bytes: 4 or 8.
                to_width: u64,
                /// The output: the bytes of all rows.
                out: Out<u8>,
            }
            waves |args, width| args.rows.div_ceil(ROWS_PER_LANE * u64::from(width));
            /// By the type of the values.
            WRITE {
                $($write [$key] = write::<$writer<In<u64>>>,)+
            }
        }
    };
}
writers! { write_kernels }

/// Loads the bits of a value.
#[inline(always)]
fn load(values: In<u8>, offset: u64, width: u64, row: u64) -> U256 {
    let low = match width {
        0 => u128::from(Bits::new(values.cast(), offset, u64::MAX >> 8).get(row)),
        1 => u128::from(values.get(row)),
        2 => u128::from(values.cast::<u16>().get(row)),
        4 => u128::from(values.cast::<u32>().get(row)),
        8 => u128::from(values.cast::<u64>().get(row)),
        16 => values.cast::<u128>().get(row),
        _ => {
            let halves = values.cast::<u128>();
            return U256 { low: halves.get(row * 2), high: halves.get(row * 2 + 1) };
        }
    };
    U256::from_low(low)
}

fn measure<W: Writer<Words = In<u64>>>(args: &Measure, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.rows {
        return;
    }
    let end = args.rows.min(at + TILE);
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let writer = W::of(args.words);
    let mut sum = wave.each(|_| 0u64);
    while at < end {
        sum = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return sum.at(l);
            }
            let mut len = Length(0);
            if valid.is_absent() || valid.get(row) {
                let bits = load(args.values, args.offset, args.width, row);
                if !writer.write(bits, args.width, &mut len) {
                    args.fault.min(l, 0, row);
                    len = Length(0);
                }
            }
            args.lens.set(l, row, len.0);
            sum.at(l) + u64::from(len.0)
        });
        at += u64::from(wave.width());
    }
    let sum = wave.sum(sum);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn write<W: Writer<Words = In<u64>>>(args: &Write, wave: &mut Wave) {
    let run = ROWS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    let end = args.rows.min(at + run);
    if at >= end {
        return;
    }
    let writer = W::of(args.words);
    let edge = |row: u64| match args.to_width {
        4 => u64::from(args.to.cast::<u32>().get(row)),
        _ => args.to.cast::<u64>().get(row),
    };
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            let (from, to) = (edge(row), edge(row + 1));
            if from < to {
                let bits = load(args.values, args.offset, args.width, row);
                writer.write(bits, args.width, &mut Memory { out: args.out, l, from, to });
            }
        });
        at += u64::from(wave.width());
    }
}

/// A row's bytes in memory, filled from either end.
struct Memory<'l> {
    out: Out<u8>,
    l: Lane<'l>,
    /// The position of the next byte from the beginning.
    from: u64,
    /// The position after the next byte from the end.
    to: u64,
}

impl Memory<'_> {
    /// Stores the `count` lowest bytes of a word, at most eight, at a position. The bound of eight lets the
    /// compiler unroll the loop.
    #[inline(always)]
    fn set(&self, at: u64, bytes: u64, count: u32) {
        let out = self.out.skip(at);
        for i in 0..8 {
            if i >= count {
                break;
            }
            out.set(self.l, u64::from(i), (bytes >> (8 * i)) as u8);
        }
    }
}

impl Sink for Memory<'_> {
    #[inline(always)]
    fn put(&mut self, byte: u8) {
        self.out.set(self.l, self.from, byte);
        self.from += 1;
    }

    #[inline(always)]
    fn put_all(&mut self, bytes: u64, count: u32) {
        self.set(self.from, bytes, count);
        self.from += u64::from(count);
    }

    #[inline(always)]
    fn put_some(&mut self, bytes: u128, count: u32) {
        self.put_all(bytes as u64, if count < 8 { count } else { 8 });
        if count > 8 {
            self.put_all((bytes >> 64) as u64, count - 8);
        }
    }
}

impl Backwards for Memory<'_> {
    #[inline(always)]
    fn put_before(&mut self, byte: u8) {
        self.to -= 1;
        self.out.set(self.l, self.to, byte);
    }

    #[inline(always)]
    fn put_all_before(&mut self, bytes: u64, count: u32) {
        self.to -= u64::from(count);
        self.set(self.to, bytes, count);
    }
}
