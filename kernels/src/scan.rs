//! The exclusive sum over an array of any length: from counts or lengths to offsets and a 64-bit total.
//!
//! The one idea: waves do not talk to each other, so an array is summed a tile at a time ([`Sums`]), the sums are scanned,
//! by the same kernels until one tile holds them all, and then each tile is scanned from where the ones before it ended
//! ([`Scan`]). Whoever makes the values can as well make the sums of their tiles, and saves the first pass.
//!
//! Bytes moved: each value is read twice and its sum written once; the levels above add less than one per cent. Four
//! 16-byte loads a lane are in flight; 5 shuffle steps for every 4 values of 4 bytes in a lane (2 of 8 bytes).
//!
//! Numbers of values come as a bound and, where the device knows better, as a `count` in its memory: what a filter keeps
//! is not known to the host when the lengths of what it keeps are summed.

use crate::memory::{In, Out};
use crate::target::{Lanes, Number, Value, Wave};

/// Values that one wave sums or scans.
pub const TILE: u64 = 1024;

/// 16-byte loads a lane has in flight.
const LOADS: usize = 4;

/// Values in 16 bytes, at most.
const MOST: usize = 4;

kernel! {
    family "scan";
    /// The sum of each tile. Waves: one for each [`TILE`] of `len`; those past `count` write zero.
    Sums {
        /// The values, on a 16-byte boundary and readable up to one.
        values: In<u8>,
        /// How many there are, where less than `len`. May be absent.
        count: In<u64>,
        /// How many there may be.
        len: u64,
        /// One for each wave.
        sums: Out<u64>,
    }
    /// By the width of a value in bytes.
    SUMS {
        scan_sums_b4 [4] = sums::<u32>,
        scan_sums_b8 [8] = sums::<u64>,
    }
}

kernel! {
    family "scan";
    /// The sum of the values before each, and, one past the last value, of all. Waves: one for each [`TILE`] of `len`, and
    /// at least one.
    Scan {
        /// The values, on a 16-byte boundary and readable up to one.
        values: In<u8>,
        /// How many there are, where less than `len`. May be absent.
        count: In<u64>,
        /// How many there may be.
        len: u64,
        /// What comes before each tile: the scanned sums. Absent where there is one tile.
        bases: In<u64>,
        /// One more than there are values, on a 16-byte boundary. Sums wrap where they do not fit: ask the total first.
        out: Out<u8>,
        /// Receives the sum of all. May be absent.
        total: Out<u64>,
    }
    /// By the widths in bytes of a value and of a sum.
    SCAN {
        scan_b4_b4 [4, 4] = scan::<u32, u32>,
        scan_b4_b8 [4, 8] = scan::<u32, u64>,
        scan_b8_b8 [8, 8] = scan::<u64, u64>,
    }
}

/// What can be summed.
pub trait Summand: Value + Number {
    /// The `k`th value in 16 bytes.
    fn part(all: u128, k: u32) -> Self;
    /// 16 bytes of values.
    #[inline(always)]
    fn join(parts: &[Self]) -> u128 {
        parts.iter().rev().fold(0, |all, part| all << (8 * size_of::<Self>()) | u128::from(part.wide()))
    }
    /// As a 64-bit number.
    fn wide(self) -> u64;
    /// As much of a 64-bit number as fits.
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

/// `bound`, or the number in device memory where that is less.
#[inline(always)]
pub fn live(bound: u64, count: In<u64>) -> u64 {
    if count.is_absent() { bound } else { count.get(0).min(bound) }
}

/// The values of one step: lane `l` has `16 / size_of::<T>()` neighbours in each of the loads.
struct Step<T> {
    at: u64,
    end: u64,
    loads: [Lanes<u128>; LOADS],
    of: core::marker::PhantomData<T>,
}

impl<T: Summand> Step<T> {
    /// Values in a load.
    const PER: u64 = 16 / size_of::<T>() as u64;

    /// How many values a wave loads in one step.
    #[inline(always)]
    fn len(wave: &Wave) -> u64 {
        LOADS as u64 * Self::PER * u64::from(wave.width())
    }

    #[inline(always)]
    fn load(values: In<u8>, at: u64, end: u64, wave: &Wave) -> Step<T> {
        let (values, last) = (values.cast::<u128>(), (end - 1) / Self::PER);
        let loads = core::array::from_fn(|k| {
            wave.each(|l| {
                values.stream((at / Self::PER + u64::from(k as u32 * wave.width() + l.index())).min(last))
            })
        });
        Step { at, end, loads, of: core::marker::PhantomData }
    }

    /// Which value a lane's first one of load `k` is.
    #[inline(always)]
    fn index(&self, k: usize, lane: u32, wave: &Wave) -> u64 {
        self.at + u64::from(k as u32 * wave.width() + lane) * Self::PER
    }

    /// A lane's value `i` of load `k`; zero past the end.
    #[inline(always)]
    fn value(&self, all: u128, index: u64, i: u32) -> T {
        if index + u64::from(i) < self.end { T::part(all, i) } else { <T as Value>::ZERO }
    }
}

fn sums<T: Summand>(args: &Sums, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.len {
        return;
    }
    let end = live(args.len, args.count).min(at + TILE);
    let mut sum = wave.each(|_| 0u64);
    while at < end {
        let step = Step::<T>::load(args.values, at, end, wave);
        for k in 0..LOADS {
            sum = wave.each(|l| {
                let index = step.index(k, l.index(), wave);
                (0..Step::<T>::PER as u32).fold(sum.at(l), |sum, i| {
                    sum.wrapping_add(step.value(step.loads[k].at(l), index, i).wide())
                })
            });
        }
        at += Step::<T>::len(wave);
    }
    let sum = wave.sum(sum);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn scan<T: Summand, S: Summand>(args: &Scan, wave: &mut Wave) {
    let len = live(args.len, args.count);
    let mut at = wave.index() * TILE;
    // The wave of the last value also writes the sum of all; where there is none, the first wave does.
    if at >= len && wave.index() != 0 {
        return;
    }
    let end = len.min(at + TILE);
    let mut before = if args.bases.is_absent() { 0 } else { args.bases.get(wave.index()) };
    let out = args.out.cast::<S>();
    while at < end {
        let step = Step::<T>::load(args.values, at, end, wave);
        for k in 0..LOADS {
            let own = wave.each(|l| {
                let index = step.index(k, l.index(), wave);
                (0..Step::<T>::PER as u32).fold(<S as Value>::ZERO, |sum, i| {
                    sum.plus(S::from_wide(step.value(step.loads[k].at(l), index, i).wide()))
                })
            });
            let (lower, sum) = wave.scan(own);
            wave.each(|l| {
                let index = step.index(k, l.index(), wave);
                let mut offset = S::from_wide(before).plus(lower.at(l));
                let offsets: [S; MOST] = core::array::from_fn(|i| {
                    let this = offset;
                    if i < Step::<T>::PER as usize {
                        offset = offset
                            .plus(S::from_wide(step.value(step.loads[k].at(l), index, i as u32).wide()));
                    }
                    this
                });
                if index + Step::<T>::PER <= end {
                    let (per, wide) = (16 / size_of::<S>(), out.cast::<u128>());
                    for i in 0..Step::<T>::PER as usize / per {
                        wide.set(l, index / per as u64 + i as u64, S::join(&offsets[i * per..][..per]));
                    }
                } else {
                    for (i, offset) in offsets.iter().enumerate().take(Step::<T>::PER as usize) {
                        if index + (i as u64) < end {
                            out.set(l, index + i as u64, *offset);
                        }
                    }
                }
            });
            before = before.wrapping_add(sum.wide());
        }
        at += Step::<T>::len(wave);
    }
    if end == len {
        wave.once(|l| {
            out.set(l, len, S::from_wide(before));
            if !args.total.is_absent() {
                args.total.set(l, 0, before);
            }
        });
    }
}
