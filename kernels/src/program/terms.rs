//! Terms: tests of a column's rows against constants, a tile at a time, in bits and without a stack of
//! values.
//!
//! The one idea: most predicates are a few comparisons of a column with a constant, and each comparison tests
//! whether the column's bits are in a range, modulo their width: `x - low <= span`. That holds for decimals
//! and for integers with and without a sign as they are stored. It holds for floats in their total order too,
//! since the bits beyond a constant are a range, or all but one range. So the work of a term depends on the
//! width alone. A ballot makes words of the answers, each lane keeps the words of its number, and logic works
//! on words. A wave pays for reading a term once a tile.

use super::task::Group;
use crate::column::ColumnRow;
use crate::memory::{Bits, In, TableRow, ones};
use crate::select::selection::TILE;
use crate::target::{Lane, Lanes, Value, Wave};

/// Words of a term.
pub const TERM_WORDS: u64 = 5;
/// The most truths that a predicate holds at once, including the newest.
pub const TRUTHS: usize = 3;

/// The test that a term makes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Asks {
    /// Whether a value of one byte is in the range.
    Range1 = 0,
    /// Whether a value of two bytes is in the range.
    Range2 = 1,
    /// Whether a value of four bytes is in the range.
    Range4 = 2,
    /// Whether a value of eight bytes is in the range.
    Range8 = 3,
    /// Whether a value of sixteen bytes is in the range.
    Range16 = 4,
    /// Whether a column of booleans is true.
    Bits = 5,
    /// Whether the column is valid. The answer is never null.
    Valid = 6,
    /// No test: the term combines the two newest truths.
    Join = 7,
}

/// The use of a term's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Then {
    /// Pushes the answer, which becomes the newest truth.
    Push = 0,
    /// Replaces the newest truth by Kleene's and of it and the answer.
    And = 1,
    /// Replaces the newest truth by Kleene's or of it and the answer.
    Or = 2,
}

/// A test of the rows of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The test to make.
    pub asks: Asks,
    /// The use of the answer.
    pub then: Then,
    /// The index of the column in the launch's table.
    pub slot: u16,
    /// Whether to negate the answer.
    pub inverted: bool,
    /// The range's first value, as bits. A range of one or two bytes MUST NOT go beyond the highest value.
    pub low: u128,
    /// The distance from the range's first value to its last.
    pub span: u128,
}

impl Term {
    /// The term in the words that a wave reads.
    pub const fn words(&self) -> [u64; TERM_WORDS as usize] {
        let first = self.asks as u64
            | (self.then as u64) << 8
            | (self.slot as u64) << 16
            | (self.inverted as u64) << 32;
        [first, self.low as u64, (self.low >> 64) as u64, self.span as u64, (self.span >> 64) as u64]
    }
}

/// The words of a tile that a lane holds: the word of its index and, where a tile has more words than a wave
/// has lanes, the word a wave's width further on.
#[derive(Clone, Copy)]
pub(super) struct TileWords {
    pub first: Lanes<u32>,
    pub second: Lanes<u32>,
}

/// Truths of rows, as bits: whether each is true, and whether it is known. An unknown truth is not true.
#[derive(Clone, Copy)]
pub(super) struct Truth {
    pub truth: TileWords,
    pub known: TileWords,
}

/// The terms of a predicate, and the columns they test.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub terms: In<u64>,
    pub count: u64,
    pub columns: In<u64>,
    pub len: u64,
}

impl Terms {
    /// Evaluates the terms for the rows of a tile. Bits of rows past the last are arbitrary.
    #[inline(always)]
    pub fn of_tile(&self, rows: Group, wave: &mut Wave) -> Truth {
        let none = TileWords::all(0, wave);
        let none = Truth { truth: none, known: none };
        // Named variables, since a compiler puts an array with a variable index into memory.
        let (mut newest, mut before, mut oldest) = (none, none, none);
        let mut i = 0;
        while i < self.count as u32 {
            let word = |n: u64| self.terms.get(u64::from(i) * TERM_WORDS + n);
            let first = word(0);
            let (low, span) = (wide(word(1), word(2)), wide(word(3), word(4)));
            let asks = first as u32 & 0xff;
            let found = if asks == Asks::Join as u32 {
                let found = newest;
                (newest, before) = (before, oldest);
                found
            } else {
                self.answer(rows, first, (low, span), wave)
            };
            match first as u32 >> 8 & 0xff {
                0 => (newest, before, oldest) = (found, newest, before),
                1 => newest = newest.and(found, wave),
                _ => newest = newest.or(found, wave),
            }
            i += 1;
        }
        newest
    }

    #[inline(always)]
    fn answer(&self, rows: Group, first: u64, (low, span): (u128, u128), wave: &mut Wave) -> Truth {
        const RANGE1: u32 = Asks::Range1 as u32;
        const RANGE2: u32 = Asks::Range2 as u32;
        const RANGE4: u32 = Asks::Range4 as u32;
        const RANGE8: u32 = Asks::Range8 as u32;
        const RANGE16: u32 = Asks::Range16 as u32;
        const BITS: u32 = Asks::Bits as u32;
        let (asks, row) = (first as u32 & 0xff, (first >> 16 & 0xffff) * ColumnRow::ROW);
        let invert = ((first >> 32) as u32 & 1).wrapping_neg();
        let valid = self.columns.input::<u32>(wave, row + ColumnRow::VALID);
        let mut known = TileWords::all(!0, wave);
        if !valid.is_absent() {
            known = self.bitmap(valid, self.columns.get(row + ColumnRow::VALID_OFFSET), rows, wave);
        }
        let (narrow, narrow_span) = (low as u32, span as u32);
        let (short, short_span) = (low as u64, span as u64);
        // The tile's first value. Computed here, by a width that is known at run time only: one address in
        // each branch would keep five distances in registers.
        let column = self.columns.input::<u8>(wave, row);
        let values = column.skip(rows.first << (asks & 7));
        let found = match asks {
            RANGE1 => {
                tested::<u8, 8>(values, rows, move |x| u32::from(x).wrapping_sub(narrow) <= narrow_span, wave)
            }
            RANGE2 => tested::<u16, 8>(
                values,
                rows,
                move |x| u32::from(x).wrapping_sub(narrow) <= narrow_span,
                wave,
            ),
            RANGE4 => tested::<u32, 16>(values, rows, move |x| x.wrapping_sub(narrow) <= narrow_span, wave),
            RANGE8 => tested::<u64, 8>(values, rows, move |x| x.wrapping_sub(short) <= short_span, wave),
            RANGE16 => tested::<u128, 4>(values, rows, move |x| x.wrapping_sub(low) <= span, wave),
            BITS => self.bitmap(column.cast(), self.columns.get(row + 2), rows, wave),
            _ => {
                let found = known;
                known = TileWords::all(!0, wave);
                found
            }
        };
        let truth = found.with(known, move |found, known| (found ^ invert) & known, wave);
        Truth { truth, known }
    }

    /// Loads a tile's words of a bitmap.
    #[inline(always)]
    fn bitmap(&self, words: In<u32>, offset: u64, rows: Group, wave: &Wave) -> TileWords {
        let (window, width) = (Bits::new(words, offset, self.len).window(rows.first), wave.width());
        let first = wave.each(move |l| window.word(l.index()));
        let second = wave.each(move |l| if width == 32 { window.word(width + l.index()) } else { 0 });
        TileWords { first, second }
    }
}

impl Truth {
    #[inline(always)]
    fn and(self, other: Truth, wave: &Wave) -> Truth {
        let truth = self.truth.with(other.truth, |a, b| a & b, wave);
        // The result is false where either side is known to be false.
        let no = |of: Truth| of.known.with(of.truth, |known, truth| known & !truth, wave);
        let no = no(self).with(no(other), |a, b| a | b, wave);
        let known = self.known.with(other.known, |a, b| a & b, wave);
        Truth { truth, known: known.with(no, |a, b| a | b, wave) }
    }

    #[inline(always)]
    fn or(self, other: Truth, wave: &Wave) -> Truth {
        let truth = self.truth.with(other.truth, |a, b| a | b, wave);
        let known = self.known.with(other.known, |a, b| a & b, wave);
        Truth { truth, known: known.with(truth, |a, b| a | b, wave) }
    }
}

impl TileWords {
    #[inline(always)]
    fn all(word: u32, wave: &Wave) -> TileWords {
        let word = wave.each(move |_| word);
        TileWords { first: word, second: word }
    }

    #[inline(always)]
    fn with(self, other: TileWords, f: impl Fn(u32, u32) -> u32 + Copy, wave: &Wave) -> TileWords {
        TileWords {
            first: wave.each(move |l| f(self.first.at(l), other.first.at(l))),
            second: wave.each(move |l| f(self.second.at(l), other.second.at(l))),
        }
    }

    /// Returns the first or the second word. It reads both before it chooses: otherwise compilers index
    /// memory.
    #[inline(always)]
    pub fn one(self, second: bool, l: Lane<'_>) -> u32 {
        let (one, other) = (self.first.at(l), self.second.at(l));
        if second { other } else { one }
    }

    /// Clears the bits of rows past the last.
    #[inline(always)]
    pub fn inside(self, rows: Group, wave: &Wave) -> TileWords {
        let (there, width) =
            (move |word: u32| ones(rows.left.saturating_sub(word * 32).into()), wave.width());
        TileWords {
            first: wave.each(move |l| self.first.at(l) & there(l.index())),
            second: wave.each(move |l| self.second.at(l) & there(l.index() + width)),
        }
    }
}

#[inline(always)]
fn wide(low: u64, high: u64) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// The rows of a lane whose answers become words together.
const AT_ONCE: usize = 4;

/// Tests which rows of a tile have a value within a range, with `N` rows of each lane in flight. `values`
/// start at the tile's first row.
#[allow(clippy::manual_memcpy, reason = "a copy of memory is a call on devices")]
#[inline(always)]
fn tested<T: Value, const N: usize>(
    values: In<u8>,
    rows: Group,
    within: impl Fn(T) -> bool + Copy,
    wave: &mut Wave,
) -> TileWords {
    let (values, width) = (values.cast::<T>(), wave.width());
    let (whole, last) = (rows.left >= TILE as u32, rows.left - 1);
    let halves = width / 32;
    let mut words = TileWords::all(0, wave);
    let mut word = 0;
    // Runs only as often as there are rows. Compilers do not know that number, so none of them unrolls the
    // loop.
    while word < rows.left.div_ceil(32) {
        let mut loaded = if whole {
            wave.each(move |l| {
                let (mut loaded, values) = ([T::ZERO; N], values.skip(u64::from(word * 32 + l.index())));
                for k in 0..N {
                    loaded[k] = values.stream(k as u64 * u64::from(width));
                }
                loaded
            })
        } else {
            wave.each(move |l| {
                let mut loaded = [T::ZERO; N];
                for k in 0..N {
                    let row = word * 32 + l.index() + k as u32 * width;
                    loaded[k] = values.stream(u64::from(if row < last { row } else { last }));
                }
                loaded
            })
        };
        let second = word >= width;
        let before = words;
        let mut own = wave.each(move |l| before.one(second, l));
        let mut done = 0;
        while done < N {
            // One by one: with an array, compilers would index memory.
            let mut word_of = |k: usize| {
                let is_within = wave.each(move |l| within(loaded.at(l)[k]));
                let mask = wave.ballot(is_within);
                wave.each(move |l| mask.half(l.index() % halves))
            };
            let (a, b, c, d) = (word_of(0), word_of(1), word_of(2), word_of(3));
            // Picks the lane's own word by the bits of its number, which takes fewer choices than a test for
            // each word.
            let choose = |by: u32, even: Lanes<u32>, odd: Lanes<u32>| {
                let both = TileWords { first: even, second: odd };
                wave.each(move |l| both.one((l.index() / halves) & by != 0, l))
            };
            let found = choose(2, choose(1, a, b), choose(1, c, d));
            let at = word % width;
            own = wave.each(move |l| {
                let (found, own) = (found.at(l), own.at(l));
                if l.index().wrapping_sub(at) < AT_ONCE as u32 * halves { found } else { own }
            });
            loaded = wave.each(move |l| {
                let before = loaded.at(l);
                let mut moved = before;
                for k in AT_ONCE..N {
                    moved[k - AT_ONCE] = before[k];
                }
                moved
            });
            done += AT_ONCE;
            word += AT_ONCE as u32 * halves;
        }
        words = TileWords {
            first: wave.each(move |l| TileWords { first: own, second: before.first }.one(second, l)),
            second: wave.each(move |l| TileWords { first: before.second, second: own }.one(second, l)),
        };
    }
    words
}
