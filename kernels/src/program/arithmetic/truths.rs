//! Truths of a group's rows, in words of bits.

use super::state::State;
use crate::program::code::KEYED;
use crate::program::task::Values;
use crate::program::word::{Word, key};
use crate::target::{Lanes, Wave};

/// Truths, a bit for each row: whether each is true, and whether it is known. An unknown truth is not true,
/// and no row past the last is known.
#[derive(Clone, Copy)]
pub(super) struct Truth {
    pub truth: Lanes<u32>,
    pub known: Lanes<u32>,
}

impl Truth {
    /// Keeps what is known.
    #[inline(always)]
    pub(super) fn new(truth: Lanes<u32>, known: Lanes<u32>, wave: &Wave) -> Truth {
        Truth { truth: wave.each(move |l| truth.at(l) & known.at(l)), known }
    }

    #[inline(always)]
    fn and(self, other: Truth, wave: &Wave) -> Truth {
        let known = wave.each(move |l| {
            let (at, ak, bt, bk) = (self.truth.at(l), self.known.at(l), other.truth.at(l), other.known.at(l));
            // The result is false where either side is known to be false.
            ak & bk | ak & !at | bk & !bt
        });
        Truth::new(wave.each(move |l| self.truth.at(l) & other.truth.at(l)), known, wave)
    }

    #[inline(always)]
    fn or(self, other: Truth, wave: &Wave) -> Truth {
        let truth = wave.each(move |l| self.truth.at(l) | other.truth.at(l));
        Truth { truth, known: wave.each(move |l| self.known.at(l) & other.known.at(l) | truth.at(l)) }
    }

    #[inline(always)]
    fn not(self, wave: &Wave) -> Truth {
        Truth::new(wave.each(move |l| !self.truth.at(l)), self.known, wave)
    }

    /// Replaces false, true and null by the bits of `says`, of the rows that are there.
    #[inline(always)]
    pub(super) fn tested(self, says: u32, there: Lanes<u32>, wave: &Wave) -> Truth {
        let all = |bit: u32| (says >> bit & 1).wrapping_neg();
        let (no, yes, null) = (all(0), all(1), all(2));
        let made = wave.each(move |l| {
            let (truth, known) = (self.truth.at(l), self.known.at(l));
            truth & yes | known & !truth & no | !known & null
        });
        Truth::new(made, there, wave)
    }
}

/// The truths at hand: the newest and the two before it.
#[derive(Clone, Copy)]
pub(super) struct Truths {
    pub newest: Truth,
    before: Truth,
    oldest: Truth,
}

impl Truths {
    #[inline(always)]
    pub(super) fn new(wave: &Wave) -> Truths {
        let none = wave.each(|_| 0);
        let none = Truth { truth: none, known: none };
        Truths { newest: none, before: none, oldest: none }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, truth: Truth) {
        *self = Truths { newest: truth, before: self.newest, oldest: self.before };
    }

    /// Drops the newest truth.
    #[inline(always)]
    pub(super) fn pop(&mut self) {
        (self.newest, self.before) = (self.before, self.oldest);
    }

    #[inline(always)]
    pub(super) fn and(&mut self, wave: &Wave) {
        (self.newest, self.before) = (self.before.and(self.newest, wave), self.oldest);
    }

    #[inline(always)]
    pub(super) fn or(&mut self, wave: &Wave) {
        (self.newest, self.before) = (self.before.or(self.newest, wave), self.oldest);
    }

    #[inline(always)]
    pub(super) fn not(&mut self, wave: &Wave) {
        self.newest = self.newest.not(wave);
    }
}

impl<V: Word, const K: usize, const VALUES: usize> State<V, K, VALUES> {
    /// Sets a bit for each row where the newest value compares with `b` as the lowest three bits of `detail`
    /// ask.
    #[inline(always)]
    pub(super) fn compared(
        &self,
        b: Values<V, K>,
        detail: u32,
        unsigned: bool,
        wave: &mut Wave,
    ) -> Lanes<u32> {
        const LESS: u32 = 1;
        const EQUAL: u32 = 2;
        let asked = detail & 7;
        // Two of the three orders are all but the third.
        let inverted = asked.count_ones() > 1;
        let keyed = detail & u32::from(KEYED) != 0;
        let words = match if inverted { asked ^ 7 } else { asked } {
            EQUAL => self.rows(b, |x, y| x == y, wave),
            LESS if keyed => self.rows(b, |x, y| key(x) < key(y), wave),
            LESS if unsigned => self.rows(b, |x, y| x.xor(V::MIN) < y.xor(V::MIN), wave),
            LESS => self.rows(b, |x, y| x < y, wave),
            _ if keyed => self.rows(b, |x, y| key(x) > key(y), wave),
            _ if unsigned => self.rows(b, |x, y| x.xor(V::MIN) > y.xor(V::MIN), wave),
            _ => self.rows(b, |x, y| x > y, wave),
        };
        wave.each(move |l| words.at(l) ^ u32::from(inverted).wrapping_neg())
    }

    #[inline(always)]
    fn rows(&self, b: Values<V, K>, is: impl Fn(V, V) -> bool + Copy, wave: &mut Wave) -> Lanes<u32> {
        let a = self.a;
        self.bits_of_rows(move |k, l| is(a.at(l)[k], b.at(l)[k]), wave)
    }
}
