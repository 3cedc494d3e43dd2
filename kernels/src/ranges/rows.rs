//! Ranges: the positions and sizes of the contents of variable-length rows.
//!
//! The one idea: a row of a string, binary or list array is a **range** of the elements below it, and an
//! operation keeps ranges at every level of a tree of arrays. Offsets ascend, so a row's range of list
//! elements is a range of grandchildren too: from its first element's first grandchild to its last
//! element's last. Each level thus needs one start and one length for each row kept, and all levels'
//! totals can be summed before any of them is read. The host waits once, however deep the type is.
//! [`copy`](crate::gather::copy) then copies the elements that the ranges cover.
//!
//! [`Take`] makes the ranges of rows chosen by indices, [`Compose`] those one level down. Both write the sum
//! of the lengths of each [`TILE`] of rows, which is the first step of a [`scan`](crate::reduce::scan).
//!
//! These kernels trust no input: an index past the values, or a pair of offsets that descends or leaves the
//! extent, gives a range of no elements, and `fault` receives the first such row. Later kernels need not
//! check the ranges again.
//!
//! Bytes moved per row with offsets of 4 bytes: `Take` reads the index and two neighbouring offsets (one
//! 32-byte sector if indices are random), and writes 8. Each lane has four rows in flight. A row takes about
//! 20 instructions in a wave of 32.

use crate::memory::{Bits, In, Out};
use crate::reduce::scan::{Summand, TILE, live, plus, total};
use crate::target::{Lanes, Wave};

/// Rows that a lane has in flight.
const ROWS: usize = 4;

kernel! {
    family "ranges", blocks 3;
    /// Computes the ranges of the rows that indices choose.
    Take {
        /// The indices. For signed ones, `values_len` MUST be at most their greatest value plus one.
        indices: In<u8>,
        /// The validity of the result's rows, from `In::bitmap`. A null row gets no elements. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of indices.
        rows: u64,
        /// The offsets of the values; two of them MUST be readable even if `values_len` is 0.
        offsets: In<u8>,
        /// The number of values.
        values_len: u64,
        /// How many elements the offsets may point into; if `end` is present, the width in bits of the number
        /// there: see [`extent`].
        limit: u64,
        /// The number of elements, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// Receives the first element of each row's range.
        starts: Out<u8>,
        /// Receives the number of elements of each row; the buffer extends to a multiple of 16 bytes.
        lens: Out<u8>,
        /// Receives the sum of each tile of lengths; `u64::MAX` if the sum does not fit.
        sums: Out<u64>,
        /// Receives the first row whose index is out of bounds; `u64::MAX` before.
        index_fault: Out<u64>,
        /// Receives the first row whose offsets are bad; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the widths in bytes of an offset (which is also that of a start and a length) and of an index.
    /// Width 0 means no offsets: row `i` is element `i`, starts and lengths are 8 bytes wide, and null rows
    /// have an element too.
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
    /// Computes the same rows' ranges one level down.
    Compose {
        /// The starts from the level above, which checked them against the number of elements there.
        starts: In<u8>,
        /// The lengths from the level above.
        lens: In<u8>,
        /// How many elements of this level make up one of the level above: 1, or the size of fixed-size lists
        /// between them.
        scale: u64,
        /// The number of rows, if it may be less than `rows`. May be absent.
        count: In<u64>,
        /// The greatest possible number of rows.
        rows: u64,
        /// The offsets of this level's elements; two of them MUST be readable.
        offsets: In<u8>,
        /// How many elements the offsets may point into; if `end` is present, the width in bits of the number
        /// there: see [`extent`].
        limit: u64,
        /// The number of elements, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// Receives the first element of each row's range, in 8 bytes.
        next_starts: Out<u64>,
        /// Receives the number of elements of each row.
        next_lens: Out<u64>,
        /// Receives the sum of each tile of lengths; `u64::MAX` if the sum does not fit.
        sums: Out<u64>,
        /// Receives the first row whose offsets are bad; `u64::MAX` before.
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

/// The layout by which rows find their elements.
pub trait Edges: 'static {
    /// The type in which starts and lengths are stored.
    type Word: Summand;
    /// Whether a null row has no elements.
    const NULLS_ARE_EMPTY: bool;
    /// Whether lengths are so long that sums of them may not fit 64 bits.
    const LONG: bool;
    /// Returns the beginning of row `i`, which is the end of row `i - 1`.
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

/// The layout without offsets: row `i` is element `i`.
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

/// An index as it lies in memory. A negative one counts as a large one.
pub trait Index: crate::target::Value {
    /// Returns the index as an unsigned number.
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

/// Returns how many elements offsets may point into: `limit`, or, if `end` is present, the signed number of
/// `limit` bits (32 or 64) there. The array's creator states with that number how many elements exist. No
/// offset of a slice states it: the last one is an inner offset of the whole array, and may be any number.
#[inline(always)]
pub fn extent(limit: u64, end: In<u32>, end_offset: u64) -> u64 {
    if end.is_absent() {
        return limit;
    }
    let number = Bits::new(end, end_offset, limit);
    let high = if limit > 32 { number.word(1) } else { 0 };
    let said = u64::from(high) << 32 | u64::from(number.word(0));
    // A negative number counts as 0.
    if said >> (limit - 1) == 0 { said } else { 0 }
}

/// Returns `start..end` as a start and a length, and whether the two are valid or not wanted.
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
        // A lane's flags are bits of one register, not an array of bools: those would become predicates, and
        // the loads would wait for each other.
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
