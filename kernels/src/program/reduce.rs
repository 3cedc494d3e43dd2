//! The aggregates of a program: for each, a wave keeps four words and a row count, in the lane of the
//! aggregate's number.

use super::code::PART_WORDS;
use super::task::Values;
use super::word::{Word, plain_nan_f32, plain_nan_f64};
use crate::memory::Out;
use crate::target::{Lanes, Wave};

/// The aggregates of a wave: lane `i` holds aggregate `i`.
pub(super) struct Sums {
    a: Lanes<u64>,
    b: Lanes<u64>,
    c: Lanes<u64>,
    d: Lanes<u64>,
    rows: Lanes<u64>,
}

impl Sums {
    #[inline(always)]
    pub fn new(wave: &Wave) -> Sums {
        let zero = wave.each(|_| 0);
        Sums { a: zero, b: zero, c: zero, d: zero, rows: zero }
    }

    /// Adds to aggregate `i` the rows of `values` whose bits are set in `there`. It adds 32 bits at a time,
    /// so that no carry is lost; the highest 32 bits have a sign, except in `unsigned` values of eight bytes.
    #[inline(always)]
    pub fn sum<V: Word, const K: usize>(
        &mut self,
        i: u32,
        values: Values<V, K>,
        there: Lanes<u32>,
        unsigned: bool,
        wave: &mut Wave,
    ) {
        let limb = |n: u32, wave: &mut Wave| {
            let last = n == if V::WIDE { 3 } else { 1 } && !unsigned;
            let of_lane = wave.each(move |l| {
                let mut sum = 0u64;
                for k in 0..K {
                    let word = (values.at(l)[k].wide() >> (32 * n)) as u32;
                    let word = if last { word as i32 as u64 } else { u64::from(word) };
                    sum = sum.wrapping_add(if there.at(l) >> k & 1 != 0 { word } else { 0 });
                }
                sum
            });
            wave.sum(of_lane)
        };
        let (a, b) = (limb(0, wave), limb(1, wave));
        self.a = {
            let a_ = self.a;
            wave.each(move |l| a_.at(l).wrapping_add(if l.index() == i { a } else { 0 }))
        };
        self.b = {
            let b_ = self.b;
            wave.each(move |l| b_.at(l).wrapping_add(if l.index() == i { b } else { 0 }))
        };
        if V::WIDE {
            let (c, d) = (limb(2, wave), limb(3, wave));
            self.c = {
                let c_ = self.c;
                wave.each(move |l| c_.at(l).wrapping_add(if l.index() == i { c } else { 0 }))
            };
            self.d = {
                let d_ = self.d;
                wave.each(move |l| d_.at(l).wrapping_add(if l.index() == i { d } else { 0 }))
            };
        }
        self.count(i, there, wave);
    }

    /// Adds the rows set in `there` to the row count of aggregate `i`.
    #[inline(always)]
    pub fn count(&mut self, i: u32, there: Lanes<u32>, wave: &mut Wave) {
        let of_lane = wave.each(move |l| there.at(l).count_ones());
        let rows = wave.sum(of_lane);
        self.rows = {
            let rows_ = self.rows;
            wave.each(move |l| rows_.at(l).wrapping_add(if l.index() == i { u64::from(rows) } else { 0 }))
        };
    }

    /// Adds floats, each 64 rows by halves; the floats have eight bytes where `DOUBLE` is true, else four.
    #[inline(always)]
    pub fn sum_floats<V: Word, const K: usize, const DOUBLE: bool>(
        &mut self,
        i: u32,
        values: Values<V, K>,
        there: Lanes<u32>,
        wave: &mut Wave,
    ) {
        let plus = |a: u64, b: u64| match DOUBLE {
            true => plain_nan_f64(f64::from_bits(a) + f64::from_bits(b)).to_bits(),
            false => u64::from(plain_nan_f32(f32::from_bits(a as u32) + f32::from_bits(b as u32)).to_bits()),
        };
        // Rows that do not count become zero. The rows of each lane move up, since a compiler puts an array
        // with a variable index into memory.
        let mut rows = wave.each(move |l| {
            let mut rows = [0; K];
            for k in 0..K {
                rows[k] = if there.at(l) >> k & 1 != 0 { values.at(l)[k].low() } else { 0 };
            }
            rows
        });
        // A lane of a wave of 64 has one of each 64 rows, a lane of a wave of 32 has two.
        let lanes = wave.width();
        let mut left = K as u32 * lanes / 64;
        while left > 0 {
            let both = rows;
            let mut sum = wave.each(move |l| {
                let rows = both.at(l);
                if lanes == 32 { plus(rows[0], rows[1]) } else { rows[0] }
            });
            rows = wave.each(move |l| {
                let (rows, by) = (both.at(l), 64 / lanes as usize);
                let mut moved = rows;
                for k in 0..K {
                    moved[k] = rows[if k + by < K { k + by } else { k }];
                }
                moved
            });
            let mut by = lanes / 2;
            while by > 0 {
                let from = wave.each(move |l| l.index() ^ by);
                let other = wave.shuffle(sum, from);
                sum = wave.each(move |l| plus(sum.at(l), other.at(l)));
                by /= 2;
            }
            self.a = {
                let a_ = self.a;
                wave.each(move |l| if l.index() == i { plus(a_.at(l), sum.at(l)) } else { a_.at(l) })
            };
            left -= 1;
        }
        self.count(i, there, wave);
    }

    /// Lowers aggregate `i` to the least of `values`, or with `greatest` raises it to the greatest.
    #[inline(always)]
    pub fn extreme<V: Word, const K: usize>(
        &mut self,
        i: u32,
        values: Values<V, K>,
        there: Lanes<u32>,
        greatest: bool,
        wave: &mut Wave,
    ) {
        let pick = |a: V, b: V| if (a < b) != greatest { a } else { b };
        let nothing = if greatest { V::MIN } else { V::MAX };
        let of_lane = wave.each(move |l| {
            let mut best = nothing;
            for k in 0..K {
                best = pick(if there.at(l) >> k & 1 != 0 { values.at(l)[k] } else { nothing }, best);
            }
            best
        });
        let mut low = wave.each(move |l| of_lane.at(l).low());
        let mut high = wave.each(move |l| (of_lane.at(l).wide() >> 64) as u64);
        let value = |low: u64, high: u64| V::of((u128::from(high) << 64 | u128::from(low)) as i128);
        let mut by = wave.width() / 2;
        while by > 0 {
            let from = wave.each(move |l| l.index() ^ by);
            let other_low = wave.shuffle(low, from);
            let other_high = if V::WIDE { wave.shuffle(high, from) } else { high };
            let best = wave
                .each(move |l| pick(value(low.at(l), high.at(l)), value(other_low.at(l), other_high.at(l))));
            low = wave.each(move |l| best.at(l).low());
            if V::WIDE {
                high = wave.each(move |l| (best.at(l).wide() >> 64) as u64);
            }
            by /= 2;
        }
        let some = wave.each(move |l| there.at(l) != 0);
        if !wave.any(some) {
            return;
        }
        let best = {
            let a_ = self.a;
            let b_ = self.b;
            let rows_ = self.rows;
            wave.each(move |l| {
                let before = value(a_.at(l), b_.at(l));
                let found = value(low.at(l), high.at(l));
                let first = rows_.at(l) == 0;
                if l.index() != i {
                    before
                } else if first {
                    found
                } else {
                    pick(found, before)
                }
            })
        };
        self.a = wave.each(move |l| best.at(l).low());
        if V::WIDE {
            self.b = wave.each(move |l| (best.at(l).wide() >> 64) as u64);
        }
        self.count(i, there, wave);
    }

    /// Stores the first `count` aggregates.
    #[inline(always)]
    pub fn store<V: Word>(&self, out: Out<u64>, count: u32, wave: &Wave) {
        {
            let a_ = self.a;
            let b_ = self.b;
            let c_ = self.c;
            let d_ = self.d;
            let rows_ = self.rows;
            wave.each(move |l| {
                if l.index() >= count {
                    return;
                }
                let at = u64::from(l.index()) * PART_WORDS;
                out.set(l, at, a_.at(l));
                out.set(l, at + 1, b_.at(l));
                out.set(l, at + 2, if V::WIDE { c_.at(l) } else { 0 });
                out.set(l, at + 3, if V::WIDE { d_.at(l) } else { 0 });
                out.set(l, at + 4, rows_.at(l));
            })
        };
    }
}
