//! Ranges: where the contents of variable-length rows are, and how much of them there is.
//!
//! The one idea: a row of a string, binary or list array is a **range** of the elements below it, and what an operation
//! keeps of a whole tree of arrays are ranges at every level. A row's range of list elements is a range of grandchildren
//! too, because offsets ascend: its first element's first grandchild to its last element's last. So each level needs one
//! start and one length for each row kept, and all levels' totals can be summed before any of them is read: one wait for
//! the host, however deep the type. What the ranges cover is then copied (see [`copy`](crate::copy)).
//!
//! [`Take`] makes the ranges of rows chosen by indices, [`Compose`] those one level down. Both write the sum of the
//! lengths of each [`TILE`] of rows, which is the first step of a [`scan`](crate::scan).
//!
//! Nothing is believed: an index past the values or a pair of offsets that descends or leaves the extent gives a range
//! of no elements, and the first such row goes into `fault`. What is written can be followed without looking again.
//!
//! Bytes a row, offsets of 4 bytes: `Take` reads the index and two neighbouring offsets (one 32-byte sector where indices
//! are random), writes 8. Four rows a lane are in flight. About 20 instructions a row in a wave of 32.

use crate::memory::{Bits, In, Out};
use crate::scan::{Summand, TILE, live, plus, total};
use crate::target::{Lanes, Wave};

/// Rows a lane has in flight.
const ROWS: usize = 4;

kernel! {
    family "ranges", blocks 3;
    /// The ranges of the rows that indices choose.
    Take {
        /// The indices; signed ones MUST come with `values_len` no more than their greatest value plus one.
        indices: In<u8>,
        /// From `In::bitmap`: which rows of the result are valid. Others get no elements. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many indices.
        rows: u64,
        /// The offsets of the values; two of them MUST be readable even where `values_len` is 0.
        offsets: In<u8>,
        /// How many values there are.
        values_len: u64,
        /// How many elements the offsets may point into; where there is an `end`, how many bits that has: see [`extent`].
        limit: u64,
        /// From `In::bitmap`: the number that says how many, where only the device has it. May be absent.
        end: In<u32>,
        /// From `In::bitmap`.
        end_offset: u64,
        /// The first element of each row's range.
        starts: Out<u8>,
        /// How many elements each has, up to a multiple of 16 bytes.
        lens: Out<u8>,
        /// The sum of each tile of lengths, `u64::MAX` where it is more.
        sums: Out<u64>,
        /// Receives the first row whose index is out of bounds: `u64::MAX` before.
        index_fault: Out<u64>,
        /// Receives the first row whose offsets are bad: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the widths in bytes of an offset (which is that of a start and a length) and of an index. Width 0 of an offset:
    /// there are none, row `i` is element `i`, starts and lengths are 8 bytes wide, and null rows have an element too.
    TAKE {
        ranges_take_b0_i1 [0, 1] = take::<Rows, u8>,
        ranges_take_b0_i2 [0, 2] = take::<Rows, u16>,
        ranges_take_b0_i4 [0, 4] = take::<Rows, u32>,
        ranges_take_b0_i8 [0, 8] = take::<Rows, u64>,
        ranges_take_b4_i1 [4, 1] = take::<u32, u8>,
        ranges_take_b4_i2 [4, 2] = take::<u32, u16>,
        ranges_take_b4_i4 [4, 4] = take::<u32, u32>,
        ranges_take_b4_i8 [4, 8] = take::<u32, u64>,
        ranges_take_b8_i1 [8, 1] = take::<u64, u8>,
        ranges_take_b8_i2 [8, 2] = take::<u64, u16>,
        ranges_take_b8_i4 [8, 4] = take::<u64, u32>,
        ranges_take_b8_i8 [8, 8] = take::<u64, u64>,
    }
}

kernel! {
    family "ranges";
    /// The same rows' ranges one level down.
    Compose {
        /// From the level above, which checked them against the number of elements there.
        starts: In<u8>,
        /// From the level above.
        lens: In<u8>,
        /// How many elements of this level one of the level above is: 1, or the size of fixed-size lists between them.
        scale: u64,
        /// How many rows there are, where less than `rows`. May be absent.
        count: In<u64>,
        /// How many rows there may be.
        rows: u64,
        /// The offsets of this level's elements; two of them MUST be readable.
        offsets: In<u8>,
        /// How many elements the offsets may point into; where there is an `end`, how many bits that has: see [`extent`].
        limit: u64,
        /// From `In::bitmap`: the number that says how many, where only the device has it. May be absent.
        end: In<u32>,
        /// From `In::bitmap`.
        end_offset: u64,
        /// The first element of each row's range, as 8 bytes.
        next_starts: Out<u64>,
        /// How many elements each has.
        next_lens: Out<u64>,
        /// The sum of each tile of lengths, `u64::MAX` where it is more.
        sums: Out<u64>,
        /// Receives the first row whose offsets are bad: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the widths in bytes of the starts above and of an offset.
    COMPOSE {
        ranges_compose_b4_b4 [4, 4] = compose::<u32, u32>,
        ranges_compose_b4_b8 [4, 8] = compose::<u32, u64>,
        ranges_compose_b8_b4 [8, 4] = compose::<u64, u32>,
        ranges_compose_b8_b8 [8, 8] = compose::<u64, u64>,
    }
}

/// How rows find their elements.
pub trait Edges: 'static {
    /// What a start and a length are stored as.
    type Word: Summand;
    /// Whether a null row has no elements.
    const NULLS_ARE_EMPTY: bool;
    /// Whether lengths are so long that sums of them may not fit 64 bits.
    const LONG: bool;
    /// Where row `i` begins, and where row `i - 1` ends.
    fn edge(offsets: In<u8>, i: u64) -> u64;
}

impl<T: Summand> Edges for T {
    type Word = T;
    const NULLS_ARE_EMPTY: bool = true;
    const LONG: bool = T::LONG;
    #[inline(always)]
    fn edge(offsets: In<u8>, i: u64) -> u64 {
        offsets.cast::<T>().get(i).wide()
    }
}

/// Row `i` is element `i`.
pub struct Rows;

impl Edges for Rows {
    type Word = u64;
    const NULLS_ARE_EMPTY: bool = false;
    const LONG: bool = false;
    #[inline(always)]
    fn edge(_: In<u8>, i: u64) -> u64 {
        i
    }
}

/// An index as it lies in memory. Negative ones are large.
pub trait Index: crate::target::Value {
    /// As a number.
    fn wide(self) -> u64;
}

macro_rules! index {
    ($($t:ty)*) => { $(impl Index for $t {
        #[inline(always)]
        fn wide(self) -> u64 {
            self as u64
        }
    })* };
}
index! { u8 u16 u32 u64 }

/// How many elements offsets may point into: `limit`, or where there is an `end`, the signed number of `limit` bits (32 or
/// 64) there. Whoever made the array said with that number how far its elements reach. No offset says so: the last one of
/// a slice is one of the inner offsets, which may be anything.
#[inline(always)]
pub fn extent(limit: u64, end: In<u32>, end_offset: u64) -> u64 {
    if end.is_absent() {
        return limit;
    }
    let number = Bits::new(end, end_offset, limit);
    let high = if limit > 32 { number.word(1) } else { 0 };
    let said = u64::from(high) << 32 | u64::from(number.word(0));
    // Less than nothing is nothing.
    if said >> (limit - 1) == 0 { said } else { 0 }
}

/// `start..end` as a start and a length, and whether they were good.
#[inline(always)]
pub fn checked(start: u64, end: u64, limit: u64, wanted: bool) -> (u64, u64, bool) {
    let good = start <= end && end <= limit;
    if good && wanted { (start, end - start, true) } else { (0, 0, good || !wanted) }
}

fn take<E: Edges, I: Index>(args: &Take, wave: &mut Wave) {
    let first = wave.index() * TILE;
    if first >= args.rows {
        return;
    }
    let end = args.rows.min(first + TILE);
    let limit = extent(args.limit, args.end, args.end_offset);
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let (indices, starts, lens) = (args.indices.cast::<I>(), args.starts.cast(), args.lens.cast());
    let mut sum = wave.each(|_| 0u64);
    let mut at = first;
    while at < end {
        let row = |k: usize, lane: u32| at + u64::from(k as u32 * wave.width() + lane);
        let index: [Lanes<u64>; ROWS] =
            core::array::from_fn(|k| wave.each(|l| indices.stream(row(k, l.index()).min(end - 1)).wide()));
        // A lane's flags are bits of one register, not an array of bools: those would become predicates, and the loads
        // would wait for each other.
        let live = wave.each(|l| {
            (0..ROWS).fold(0u32, |bits, k| {
                let row = row(k, l.index());
                let valid = valid.is_absent() || valid.get(row.min(end - 1));
                bits | u32::from(row < end && valid) << k
            })
        });
        let inside = wave.each(|l| {
            (0..ROWS).fold(0u32, |bits, k| bits | u32::from(index[k].at(l) < args.values_len) << k)
                & live.at(l)
        });
        let edges: [Lanes<[u64; 2]>; ROWS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let i = if inside.at(l) >> k & 1 != 0 { index[k].at(l) } else { 0 };
                [E::edge(args.offsets, i), E::edge(args.offsets, i + 1)]
            })
        });
        sum = wave.each(|l| {
            (0..ROWS).fold(sum.at(l), |sum, k| {
                let row = row(k, l.index());
                let [start, end_of_row] = edges[k].at(l);
                let wanted = inside.at(l) >> k & 1 != 0;
                let (start, len, good) = if E::NULLS_ARE_EMPTY {
                    checked(start, end_of_row, limit, wanted)
                } else {
                    (start, 1, true)
                };
                if row >= end {
                    return sum;
                }
                starts.set(l, row, E::Word::from_wide(start));
                lens.set(l, row, E::Word::from_wide(len));
                if !wanted && live.at(l) >> k & 1 != 0 {
                    args.index_fault.min(l, 0, row);
                }
                if !good {
                    args.fault.min(l, 0, row);
                }
                plus(sum, len, E::LONG)
            })
        });
        at += ROWS as u64 * u64::from(wave.width());
    }
    let sum = total(sum, E::LONG, wave);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn compose<S: Summand, E: Edges>(args: &Compose, wave: &mut Wave) {
    let first = wave.index() * TILE;
    if first >= args.rows {
        return;
    }
    let end = live(args.rows, args.count).min(first + TILE);
    let limit = extent(args.limit, args.end, args.end_offset);
    let (starts, lens) = (args.starts.cast::<S>(), args.lens.cast::<S>());
    let mut sum = wave.each(|_| 0u64);
    let mut at = first;
    while at < end {
        let row = |k: usize, lane: u32| at + u64::from(k as u32 * wave.width() + lane);
        let above: [Lanes<[u64; 2]>; ROWS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let row = row(k, l.index()).min(end - 1);
                [starts.stream(row).wide(), lens.stream(row).wide()]
            })
        });
        let edges: [Lanes<[u64; 2]>; ROWS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let [start, len] = above[k].at(l);
                let empty = len == 0;
                let from = if empty { 0 } else { start * args.scale };
                let to = if empty { 0 } else { (start + len) * args.scale };
                [E::edge(args.offsets, from), E::edge(args.offsets, to)]
            })
        });
        sum = wave.each(|l| {
            (0..ROWS).fold(sum.at(l), |sum, k| {
                let row = row(k, l.index());
                let [start, end_of_row] = edges[k].at(l);
                let (start, len, good) = checked(start, end_of_row, limit, above[k].at(l)[1] != 0);
                if row >= end {
                    return sum;
                }
                args.next_starts.set(l, row, start);
                args.next_lens.set(l, row, len);
                if !good {
                    args.fault.min(l, 0, row);
                }
                plus(sum, len, E::LONG)
            })
        });
        at += ROWS as u64 * u64::from(wave.width());
    }
    let sum = total(sum, E::LONG, wave);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}
