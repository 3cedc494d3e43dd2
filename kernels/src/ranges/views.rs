//! Conversion of views to offsets, and of offsets to views.
//!
//! The one idea: a view is a length and a position. [`Measure`] checks the position and writes the length.
//! A [`scan`](crate::reduce::scan) turns the lengths into offsets, and
//! [`CopyViews`](crate::gather::copy::CopyViews) copies the bytes. [`Build`] goes the other way: it does
//! not move long strings, whose views point into the buffer that holds them.
//!
//! A buffer of more than 2 GiB is cut into data buffers that begin every `1 << shift` bytes, so that
//! positions fit in 32 bits.
//!
//! Bytes moved per row: `Measure` reads 16 and writes 4. `Build` reads two neighbouring offsets and writes
//! 16. It also reads the bytes of a string of up to 12 bytes, and the first 4 bytes of a longer one. Each
//! lane has four rows in flight in `Measure`, and two in `Build`, each of which takes two 16-byte loads.

use super::rows::{Edges, checked, extent};
use crate::gather::places::{Source, overlay, piece};
use crate::memory::{Bits, In, Out, TableRow};
use crate::reduce::scan::{Summand, TILE};
use crate::target::{Lanes, Wave};

/// Rows that a lane of `Measure` has in flight.
const ROWS: usize = 4;

/// The length in bytes up to which a view holds the string itself.
const INLINE: u64 = 12;

/// The number of words in a row of the table of buffers.
pub const BUFFER: u64 = BufferRow::ROW;

/// A data buffer in a table of buffers.
pub struct BufferRow {
    /// The bytes, from `In::bitmap`.
    pub bytes: In<u32>,
    /// The offset of `bytes` in bits, from `In::bitmap`.
    pub offset: u64,
    /// The length in bytes; `u64::MAX` if it is not known.
    pub limit: u64,
}

impl TableRow for BufferRow {
    type Words = [u64; 4];
    fn words(&self) -> [u64; 4] {
        let [address, extent] = self.bytes.described();
        [address, extent, self.offset, self.limit]
    }
}

kernel! {
    family "views";
    /// Checks views, and writes the length of each.
    Measure {
        /// The views: 16 bytes each.
        views: In<u128>,
        /// The validity of the views, from `In::bitmap`. A null view has no bytes, and its value is not
        /// checked. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of views.
        rows: u64,
        /// A [`BufferRow`] for each data buffer.
        buffers: In<u64>,
        /// The number of data buffers.
        count: u64,
        /// Receives the length of each view in bytes; 0 for a bad view.
        lens: Out<u32>,
        /// Receives the sum of each tile of lengths.
        sums: Out<u64>,
        /// Receives the first row whose view is bad; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    MEASURE {
        views_measure = measure,
    }
}

kernel! {
    family "views";
    /// Builds the views of rows that offsets describe.
    Build {
        /// The offsets: one more than the number of rows.
        offsets: In<u8>,
        /// The validity of the rows, from `In::bitmap`. A null row gets an empty view. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// The bytes, from `In::bitmap`.
        bytes: In<u32>,
        /// The offset of `bytes` in bits, from `In::bitmap`.
        offset: u64,
        /// How many bytes exist; if `end` is present, the width in bits of the number there: see [`extent`].
        limit: u64,
        /// The number of bytes, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// The binary logarithm of the distance in bytes at which data buffers begin.
        shift: u64,
        /// Receives the views; those of bad rows are empty.
        views: Out<u128>,
        /// Receives the first row whose offsets are bad, and the first row that is too long for a view; both
        /// `u64::MAX` before.
        faults: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width of an offset in bytes.
    BUILD {
        views_build_b4 [4] = build::<u32>,
        views_build_b8 [8] = build::<u64>,
    }
}

fn measure(args: &Measure, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.rows {
        return;
    }
    let end = args.rows.min(at + TILE);
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let mut sum = wave.each(|_| 0u64);
    while at < end {
        let row = |k: usize, lane: u32| at + u64::from(k as u32 * wave.width() + lane);
        let views: [Lanes<u128>; ROWS] =
            core::array::from_fn(|k| wave.each(|l| args.views.stream(row(k, l.index()).min(end - 1))));
        for k in 0..ROWS {
            sum = wave.each(|l| {
                let (row, view) = (row(k, l.index()), views[k].at(l));
                if row >= end {
                    return sum.at(l);
                }
                let len = u64::from(view as u32);
                let (buffer, place) = (u64::from((view >> 64) as u32), u64::from((view >> 96) as u32));
                let wanted = valid.is_absent() || valid.get(row);
                let good = len <= INLINE
                    || len <= i32::MAX as u64
                        && buffer < args.count
                        && place + len <= args.buffers.get(buffer * BUFFER + 3);
                if wanted && !good {
                    args.fault.min(l, 0, row);
                }
                let len = if wanted && good { len } else { 0 };
                args.lens.set(l, row, len as u32);
                sum.at(l) + len
            });
        }
        at += ROWS as u64 * u64::from(wave.width());
    }
    let sum = wave.sum(sum);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn build<E: Summand + Edges>(args: &Build, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.rows {
        return;
    }
    let end = args.rows.min(at + TILE);
    let limit = extent(args.limit, args.end, args.end_offset);
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            let (start, end_of_row) = (E::edge(args.offsets, row), E::edge(args.offsets, row + 1));
            let wanted = valid.is_absent() || valid.get(row);
            let (start, len, good) = checked(start, end_of_row, limit, wanted);
            let fits = len <= i32::MAX as u64;
            if !good {
                args.faults.min(l, 0, row);
            }
            if !fits {
                args.faults.min(l, 1, row);
            }
            args.views.set(l, row, if len == 0 || !fits { 0 } else { view(args, start, len) });
        });
        at += u64::from(wave.width());
    }
}

/// Builds the view of bytes `start..start + len`; `len` is at least 1.
#[inline(always)]
fn view(args: &Build, start: u64, len: u64) -> u128 {
    let source = Source { blocks: args.bytes.cast(), from: start + args.offset / 8 };
    let shown = if len <= INLINE { len } else { 4 } as u32;
    let [low, high] = overlay(piece(source, 0, shown), [0; 2], shown);
    let shown = u128::from(high) << 64 | u128::from(low);
    if len <= INLINE {
        return shown << 32 | u128::from(len);
    }
    let (buffer, place) = (start >> args.shift, start & ((1 << args.shift) - 1));
    u128::from(place) << 96 | u128::from(buffer as u32) << 64 | shown << 32 | u128::from(len)
}
