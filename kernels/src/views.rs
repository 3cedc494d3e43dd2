//! From views to offsets and back.
//!
//! The one idea: a view is a length and a place. [`Measure`] checks the place and writes the length, from which a
//! [`scan`](crate::scan) makes offsets and [`CopyViews`](crate::copy::CopyViews) the bytes. [`Build`] goes the other way:
//! long strings are not moved, their views point into the buffer they are in.
//!
//! A buffer of more than 2 GiB is cut into data buffers that begin every `1 << shift` bytes, so that places fit in 32 bits.
//!
//! Bytes a row: `Measure` reads 16 and writes 4; `Build` reads two neighbouring offsets and, for strings up to 12 bytes,
//! the bytes themselves (for longer ones the first 4), and writes 16. Four rows a lane are in flight in `Measure`, two in
//! `Build`: each is two 16-byte loads.

use crate::memory::{Bits, In, Out, TableRow};
use crate::places::{Source, overlay, piece};
use crate::ranges::{Edges, checked, extent};
use crate::scan::{Summand, TILE};
use crate::target::{Lanes, Wave};

/// Rows a lane has in flight.
const ROWS: usize = 4;

/// What a view holds itself, in bytes.
const INLINE: u64 = 12;

/// Words in a row of the table of buffers.
pub const BUFFER: u64 = BufferRow::ROW;

/// A data buffer in a table of buffers.
pub struct BufferRow {
    /// From `In::bitmap`.
    pub bytes: In<u32>,
    /// From `In::bitmap`.
    pub offset: u64,
    /// How many bytes it has; `u64::MAX` where nobody knows.
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
    /// Checks views, and writes how many bytes each has.
    Measure {
        /// The views.
        views: In<u128>,
        /// From `In::bitmap`: which are valid. Others have no bytes and may be anything. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many views.
        rows: u64,
        /// A [`BufferRow`] for each data buffer.
        buffers: In<u64>,
        /// How many there are.
        count: u64,
        /// How many bytes each has; none where the view is bad.
        lens: Out<u32>,
        /// The sum of each tile of lengths.
        sums: Out<u64>,
        /// Receives the first row whose view is bad: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    MEASURE {
        views_measure = measure,
    }
}

kernel! {
    family "views";
    /// Views of rows that offsets describe.
    Build {
        /// One more than there are rows.
        offsets: In<u8>,
        /// From `In::bitmap`: which are valid. Others get an empty view. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many rows.
        rows: u64,
        /// The bytes, from `In::bitmap`.
        bytes: In<u32>,
        /// From `In::bitmap`.
        offset: u64,
        /// How many bytes there are; where there is an `end`, how many bits that has: see [`extent`].
        limit: u64,
        /// From `In::bitmap`: the number that says how many, where only the device has it. May be absent.
        end: In<u32>,
        /// From `In::bitmap`.
        end_offset: u64,
        /// A data buffer begins every `1 << shift` bytes.
        shift: u64,
        /// The views; those of bad rows are empty.
        views: Out<u128>,
        /// Receives the first row whose offsets are bad, and the first one that is too long for a view: `u64::MAX` before.
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

/// The view of bytes `start .. start + len`, of which there is one at least.
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
