//! The rows of a tile that a predicate leaves, and which of them each lane works on.
//!
//! The one idea: a predicate that leaves few rows of a tile need not cost a pass over the whole tile. Each
//! lane looks up the row of its turn (the third row left, the thirty-fifth, …), so that every lane of the
//! wave has a row to work on.

use super::task::{Group, Values, moved_up};
use super::terms::TileWords;
use crate::memory::In;
use crate::select::selection::WORDS;
use crate::target::{Lanes, Wave};

/// The rows of a tile that a predicate leaves.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    words: TileWords,
    /// How many rows are left before a lane's first word (low sixteen bits), and before its second (high
    /// sixteen bits).
    before: Lanes<u32>,
    /// How many rows are left in all first words.
    firsts: u32,
    /// How many rows are left in the tile; `u32::MAX`, more than any tile has, where no predicate says.
    pub total: u32,
}

impl Chosen {
    /// Reads the tile's rows from `words`, which hold a bit for each row of the array.
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

    /// Every row of a tile.
    #[inline(always)]
    pub fn all(wave: &Wave) -> Chosen {
        let none = wave.each(|_| 0);
        Chosen { words: TileWords { first: none, second: none }, before: none, firsts: 0, total: u32::MAX }
    }

    /// Whether no predicate restricts the rows.
    #[inline(always)]
    pub fn are_all(&self) -> bool {
        self.total == u32::MAX
    }

    /// Each lane's `K` rows, counted among the rows left, from number `at` on; and a bit for each that
    /// exists. A row past the end repeats the last one.
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

    /// The row whose number, among the rows left, is `number` plus the lane's index.
    #[inline(always)]
    fn row(&self, number: u32, wave: &mut Wave) -> Lanes<u32> {
        let Chosen { words, before, firsts, total } = *self;
        let wanted = wave.each(move |l| {
            let number = number + l.index();
            if number < total { number } else { total - 1 }
        });
        // Selects the half of `before` that counts the wanted word: the low half for first words, the high
        // for second.
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

    /// Clears the bits in `there` of rows that the predicate leaves out. A lane's rows start at row `at` of
    /// the tile and are a wave's width apart.
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

/// The position of the set bit of `word` that has `n` set bits below it.
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
