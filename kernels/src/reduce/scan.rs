//! The exclusive sum over an array of any length: from counts or lengths to offsets and a 64-bit total.
//!
//! The one idea: waves do not communicate, so an array is summed a tile at a time ([`Sums`]), and the sums
//! are scanned by the same kernels, until one tile holds them all. Each tile is then scanned from the sum of
//! those before it ([`Scan`]). A kernel that makes the values can also make the sums of their tiles, which
//! saves the first pass.
//!
//! Bytes moved: each value is read twice and its sum written once; the levels above add less than one per
//! cent. Each lane has four 16-byte loads in flight, and takes 5 shuffle steps for every 4 values of 4 bytes
//! (2 of 8 bytes).
//!
//! The number of values is given as a bound and, if the device knows better, as a `count` in its memory: the
//! host does not know how many rows a filter keeps when it launches the sum of their lengths.

use crate::memory::{In, Out};
use crate::target::{Lanes, Number, Value, Wave};

/// The number of values that one wave sums or scans.
pub const TILE: u64 = 1024;

/// 16-byte loads that a lane has in flight.
const LOADS: usize = 4;

kernel! {
    family "scan";
    /// Computes the sum of each tile; `u64::MAX` if the sum does not fit. Tiles past `count` get zero.
    Sums {
        /// The values, on a 16-byte boundary and readable up to one.
        values: In<u8>,
        /// The number of values, if it may be less than `len`. May be absent.
        count: In<u64>,
        /// The greatest possible number of values.
        len: u64,
        /// Receives one sum for each wave.
        sums: Out<u64>,
    }
    waves |args, _| args.len.div_ceil(TILE);
    /// By the width of a value in bytes.
    SUMS {
        scan_sums_b4 [4] = sum_tiles::<u32>,
        scan_sums_b8 [8] = sum_tiles::<u64>,
    }
}

kernel! {
    family "scan";
    /// Computes the sum of the values before each value, and, one past the last value, the sum of all.
    Scan {
        /// The values, on a 16-byte boundary and readable up to one.
        values: In<u8>,
        /// The number of values, if it may be less than `len`. May be absent.
        count: In<u64>,
        /// The greatest possible number of values.
        len: u64,
        /// The sum of the values before each tile: the scanned sums. Absent if there is one tile.
        bases: In<u64>,
        /// Receives one more sum than there are values, on a 16-byte boundary. A sum that does not fit wraps,
        /// so check the total first.
        out: Out<u8>,
        /// Receives the sum of all values; `u64::MAX` if it does not fit. `bases` MUST not have wrapped. May
        /// be absent, and MUST be absent for values of 4 bytes.
        total: Out<u64>,
    }
    waves |args, _| args.len.div_ceil(TILE).max(1);
    /// By the widths in bytes of a value and of a sum.
    SCAN {
        scan_b4_b4 [4, 4] = scan::<u32, u32>,
        scan_b4_b8 [4, 8] = scan::<u32, u64>,
        scan_b8_b8 [8, 8] = scan::<u64, u64>,
    }
}

/// A type of values that can be summed.
pub trait Summand: Value + Number {
    /// Whether sums may not fit 64 bits; no array has enough values of 32 bits for that.
    const LONG: bool = size_of::<Self>() == 8;
    /// Returns the `k`th value in 16 bytes.
    fn part(all: u128, k: u32) -> Self;
    /// Joins values to 16 bytes.
    #[inline(always)]
    fn join<const N: usize>(parts: [Self; N]) -> u128 {
        parts.into_iter().rev().fold(0, |all, part| all << (8 * size_of::<Self>()) | u128::from(part.wide()))
    }
    /// Returns the value as a 64-bit number.
    fn wide(self) -> u64;
    /// Returns the low part of a 64-bit number, as much as fits.
    fn from_wide(wide: u64) -> Self;
}

impl Summand for u32 {
    #[inline(always)]
    fn part(all: u128, k: u32) -> u32 {
        (all >> (32 * k)) as u32
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn from_wide(wide: u64) -> u32 {
        wide as u32
    }
}

impl Summand for u64 {
    #[inline(always)]
    fn part(all: u128, k: u32) -> u64 {
        (all >> (64 * k)) as u64
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        self
    }
    #[inline(always)]
    fn from_wide(wide: u64) -> u64 {
        wide
    }
}

/// Returns `bound`, or the number in device memory if that is less.
#[inline(always)]
pub fn live(bound: u64, count: In<u64>) -> u64 {
    if count.is_absent() { bound } else { count.get(0).min(bound) }
}

/// Returns how many values of `T` 16 bytes hold.
const fn per<T>() -> u64 {
    16 / size_of::<T>() as u64
}

/// Returns the 16 bytes that each lane has of each load from value `at` on; neighbouring lanes have
/// neighbouring bytes.
#[inline(always)]
fn load<T: Summand>(values: In<u8>, at: u64, end: u64, wave: &Wave) -> [Lanes<u128>; LOADS] {
    let (values, first, last) = (values.cast::<u128>(), at / per::<T>(), (end - 1) / per::<T>());
    core::array::from_fn(|k| {
        wave.each(|l| values.stream((first + u64::from(k as u32 * wave.width() + l.index())).min(last)))
    })
}

/// Returns the number of values in one load of a wave.
#[inline(always)]
fn stride<T>(wave: &Wave) -> u64 {
    per::<T>() * u64::from(wave.width())
}

/// Returns value `at + i` of those that `all` holds from `at` on; zero past the end.
#[inline(always)]
fn value<T: Summand>(all: u128, i: u32, at: u64, end: u64) -> T {
    if u64::from(i) < per::<T>() && at + u64::from(i) < end { T::part(all, i) } else { <T as Value>::ZERO }
}

/// Adds two sums of lengths; `u64::MAX` if the sum does not fit, which can only happen if `long`.
#[inline(always)]
pub(crate) fn plus(a: u64, b: u64, long: bool) -> u64 {
    if long { a.saturating_add(b) } else { a.wrapping_add(b) }
}

/// Adds the sums of all lanes by the same rule.
#[inline(always)]
pub(crate) fn total(sum: Lanes<u64>, long: bool, wave: &mut Wave) -> u64 {
    if long { wave.saturating_sum(sum) } else { wave.sum(sum) }
}

/// Returns the sum of values `at..end`, at most a tile.
#[inline(always)]
fn tile_sum<T: Summand>(values: In<u8>, mut at: u64, end: u64, wave: &mut Wave) -> u64 {
    let mut sum = wave.each(|_| 0u64);
    while at < end {
        let loads = load::<T>(values, at, end, wave);
        for k in 0..LOADS {
            sum = wave.each(|l| {
                let own = at + k as u64 * stride::<T>(wave) + u64::from(l.index()) * per::<T>();
                let add = |sum: u64, i| plus(sum, value::<T>(loads[k].at(l), i, own, end).wide(), T::LONG);
                (0..per::<T>() as u32).fold(sum.at(l), add)
            });
        }
        at += LOADS as u64 * stride::<T>(wave);
    }
    total(sum, T::LONG, wave)
}

fn sum_tiles<T: Summand>(args: &Sums, wave: &mut Wave) {
    let at = wave.index() * TILE;
    if at >= args.len {
        return;
    }
    let end = live(args.len, args.count).min(at + TILE);
    let sum = tile_sum::<T>(args.values, at, end, wave);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn scan<T: Summand, S: Summand>(args: &Scan, wave: &mut Wave) {
    let len = live(args.len, args.count);
    let first = wave.index() * TILE;
    // The wave of the last value also writes the sum of all; without values, the first wave does.
    if first >= len && wave.index() != 0 {
        return;
    }
    let end = len.min(first + TILE);
    let base = |wave: &Wave| if args.bases.is_absent() { 0 } else { args.bases.get(wave.index()) };
    if T::LONG && end == len && !args.total.is_absent() {
        // This is a loop of its own before the scan, because a single loop would need more registers than
        // there are. So the tile of sums, at most 8 KiB, is read twice.
        let sum = plus(base(wave), tile_sum::<T>(args.values, first, end, wave), T::LONG);
        wave.once(|l| args.total.set(l, 0, sum));
    }
    let (mut at, mut before) = (wave.index() * TILE, base(wave));
    let out = args.out.cast::<S>();
    while at < end {
        // Written out, because a loop around a collective is not unrolled, and a value it indexes would lie
        // in memory.
        let [first, second, third, fourth] = load::<T>(args.values, at, end, wave);
        before = scan_load::<T, S>(first, at, end, before, out, wave);
        before = scan_load::<T, S>(second, at + stride::<T>(wave), end, before, out, wave);
        before = scan_load::<T, S>(third, at + 2 * stride::<T>(wave), end, before, out, wave);
        before = scan_load::<T, S>(fourth, at + 3 * stride::<T>(wave), end, before, out, wave);
        at += LOADS as u64 * stride::<T>(wave);
    }
    if end == len {
        wave.once(|l| out.set(l, len, S::from_wide(before)));
    }
}

/// Scans the values of one load, which begin at `at` after a sum of `before`; returns the sum before the next
/// load.
#[inline(always)]
fn scan_load<T: Summand, S: Summand>(
    all: Lanes<u128>,
    at: u64,
    end: u64,
    before: u64,
    out: Out<S>,
    wave: &mut Wave,
) -> u64 {
    let own = |lane: u32| at + u64::from(lane) * per::<T>();
    let add = |sum: S, all, i, own| sum.plus(S::from_wide(value::<T>(all, i, own, end).wide()));
    let sum = wave.each(|l| {
        (0..per::<T>() as u32).fold(<S as Value>::ZERO, |sum, i| add(sum, all.at(l), i, own(l.index())))
    });
    let (lower, sum) = wave.scan(sum);
    wave.each(|l| {
        let (all, own) = (all.at(l), own(l.index()));
        let first = S::from_wide(before).plus(lower.at(l));
        let second = add(first, all, 0, own);
        let third = add(second, all, 1, own);
        let fourth = add(third, all, 2, own);
        if own + per::<T>() <= end {
            let wide = out.cast::<u128>();
            if size_of::<S>() == 4 {
                wide.set(l, own / 4, S::join([first, second, third, fourth]));
            } else {
                wide.set(l, own / 2, S::join([first, second]));
                if per::<T>() == 4 {
                    wide.set(l, own / 2 + 1, S::join([third, fourth]));
                }
            }
        } else {
            let offsets = [first, second, third, fourth];
            for i in 0..per::<T>() as usize {
                if own + (i as u64) < end {
                    out.set(l, own + i as u64, offsets[i]);
                }
            }
        }
    });
    before.wrapping_add(sum.wide())
}
