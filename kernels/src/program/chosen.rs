//! The rows of a tile that go on, and which of them a lane has.
//!
//! The one idea: where a predicate leaves few rows of a tile, lanes need not go through all of it. Each looks up the rows of its turn
//! (the third that is left, the thirty-fifth, …), and what is done with them is done for lanes that all have something to do.

use super::task::{Group, Values, moved_up};
use super::terms::TileWords;
use crate::memory::In;
use crate::selection::WORDS;
use crate::target::{Lanes, Wave};

/// The rows of a tile that go on.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    words: TileWords,
    /// How many there are before a lane's first word, and, sixteen bits on, before its second.
    before: Lanes<u32>,
    /// How many there are in first words.
    firsts: u32,
    /// How many there are; where nothing was said, more than any tile has.
    pub total: u32,
}

impl Chosen {
    /// Those of a tile whose bits are set, in the words of all.
    #[inline(always)]
    pub fn of(words: In<u32>, rows: Group, wave: &mut Wave) -> Chosen {
        let (words, last, width) = (words.skip(rows.first / 32), (rows.left - 1) / 32, wave.width());
        let word = |number: u32| words.get(u64::from(if number < last { number } else { last }));
        let first = wave.each(move |l| word(l.index()));
        let second = wave.each(move |l| if width < WORDS as u32 { word(l.index() + width) } else { 0 });
        let words = TileWords { first, second }.inside(rows, wave);
        let ones = wave.each(move |l| words.first.at(l).count_ones() | words.second.at(l).count_ones() << 16);
        let (before, ones) = wave.scan(ones);
        let firsts = ones & 0xffff;
        Chosen { words, before, firsts, total: firsts + (ones >> 16) }
    }

    /// All of a tile.
    #[inline(always)]
    pub fn all(wave: &Wave) -> Chosen {
        let none = wave.each(|_| 0);
        Chosen { words: TileWords { first: none, second: none }, before: none, firsts: 0, total: u32::MAX }
    }

    /// Whether nothing says that it is not all.
    #[inline(always)]
    pub fn are_all(&self) -> bool {
        self.total == u32::MAX
    }

    /// Each lane's rows, of those from number `at` on; and a bit for each that there is. Those that are not there are the last.
    #[inline(always)]
    pub fn looked_up<const K: usize>(&self, at: u32, wave: &mut Wave) -> (Values<u32, K>, Lanes<u32>) {
        let mut rows = wave.each(|_| [0; K]);
        let mut there = wave.each(|_| 0);
        let (mut number, end, total) = (at, at + K as u32 * wave.width(), self.total);
        while number < end {
            let row = self.row(number, wave);
            rows = wave.each(move |l| moved_up(rows.at(l), row.at(l)));
            there = wave.each(move |l| there.at(l) >> 1 | u32::from(number + l.index() < total) << (K - 1));
            number += wave.width();
        }
        (rows, there)
    }

    /// The row that is the lane's number after `number` of those that go on.
    #[inline(always)]
    fn row(&self, number: u32, wave: &mut Wave) -> Lanes<u32> {
        let Chosen { words, before, firsts, total } = *self;
        let wanted = wave.each(move |l| {
            let number = number + l.index();
            if number < total { number } else { total - 1 }
        });
        // Where what is said of the wanted word stands: in the first or the second half.
        let shift = wave.each(move |l| if wanted.at(l) >= firsts { 16 } else { 0 });
        let wanted = wave.each(move |l| wanted.at(l) - if shift.at(l) != 0 { firsts } else { 0 });
        let mut lane = wave.each(|_| 0u32);
        let mut passed = wave.each(|_| 0u32);
        let mut by = wave.width() / 2;
        while by > 0 {
            let next = wave.each(move |l| lane.at(l) + by);
            let until = wave.shuffle(before, next);
            let until = wave.each(move |l| until.at(l) >> shift.at(l) & 0xffff);
            let on = wave.each(move |l| until.at(l) <= wanted.at(l));
            lane = wave.each(move |l| {
                let (next, lane) = (next.at(l), lane.at(l));
                if on.at(l) { next } else { lane }
            });
            passed = wave.each(move |l| {
                let (until, passed) = (until.at(l), passed.at(l));
                if on.at(l) { until } else { passed }
            });
            by /= 2;
        }
        let (first, second) = (wave.shuffle(words.first, lane), wave.shuffle(words.second, lane));
        let width = wave.width();
        wave.each(move |l| {
            let (first, second, is_second) = (first.at(l), second.at(l), shift.at(l) != 0);
            let word = if is_second { second } else { first };
            let of = lane.at(l) + if is_second { width } else { 0 };
            of * 32 + nth(word, wanted.at(l) - passed.at(l))
        })
    }

    /// Of rows that are there, a bit for each of a lane, from row `at` of the tile on and a wave's width apart: those that go on.
    #[inline(always)]
    pub fn bits<const K: usize>(&self, there: Lanes<u32>, at: u32, wave: &mut Wave) -> Lanes<u32> {
        let (words, width) = (self.words, wave.width());
        let mut bits = wave.each(|_| 0u32);
        for k in 0..K {
            let word = at / 32 + k as u32 * (width / 32);
            let second = word >= width;
            let of = wave.each(move |l| words.one(second, l));
            let mask = wave.mask(of, word % width);
            let member = wave.members(mask);
            bits = wave.each(move |l| bits.at(l) | u32::from(member.at(l)) << k);
        }
        wave.each(move |l| bits.at(l) & there.at(l))
    }
}

/// Which bit of a word is the one with `n` set bits below it.
#[inline(always)]
fn nth(word: u32, n: u32) -> u32 {
    let (mut word, mut n, mut place) = (word, n, 0);
    let mut half = 16;
    while half > 0 {
        let below = (word & ((1 << half) - 1)).count_ones();
        let above = n >= below;
        place += if above { half } else { 0 };
        n -= if above { below } else { 0 };
        word >>= if above { half } else { 0 };
        half /= 2;
    }
    place
}
