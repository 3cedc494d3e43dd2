//! Terms: a column's rows against constants, in bits, a tile at a time and without the machine's values.
//!
//! The one idea: most predicates are a few comparisons of a column with a constant, and each of those is a range of the
//! column's bits, modulo their width: `x - low <= span`. That holds for integers with and without a sign and for decimals as
//! they are, and for floats in their total order, since bits beyond a constant are a range too, or all but one. So what a term
//! does depends on a width alone. A ballot makes words of the answers, a lane keeps those of its number, and logic is on words.
//! What it takes to read a term is paid once for a tile.

use super::task::{ColumnRow, Group};
use crate::memory::{Bits, In, TableRow, ones};
use crate::selection::TILE;
use crate::target::{Lane, Lanes, Value, Wave};

/// Words of a term.
pub const TERM_WORDS: u64 = 5;
/// Truths that wait at once, at most, the newest counted.
pub const TRUTHS: usize = 3;

/// What a term asks of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Asks {
    /// Whether a value of one byte is in the range.
    Range1 = 0,
    /// Of two bytes.
    Range2 = 1,
    /// Of four.
    Range4 = 2,
    /// Of eight.
    Range8 = 3,
    /// Of sixteen.
    Range16 = 4,
    /// Whether a column of booleans is true.
    Bits = 5,
    /// Whether it is valid. Never null.
    Valid = 6,
    /// Nothing: the two newest truths are joined.
    Join = 7,
}

/// What becomes of what it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Then {
    /// It is the newest truth.
    Push = 0,
    /// Kleene's and, with the newest truth.
    And = 1,
    /// Kleene's or.
    Or = 2,
}

/// A question about the rows of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// What is asked.
    pub asks: Asks,
    /// What becomes of the answer.
    pub then: Then,
    /// The column.
    pub slot: u16,
    /// Whether the answer is the other one.
    pub inverted: bool,
    /// The range's first bits. Of one and two bytes it MUST NOT go beyond the highest.
    pub low: u128,
    /// And how far the last are from them.
    pub span: u128,
}

impl Term {
    /// Its words.
    pub const fn words(&self) -> [u64; TERM_WORDS as usize] {
        let first = self.asks as u64
            | (self.then as u64) << 8
            | (self.slot as u64) << 16
            | (self.inverted as u64) << 32;
        [first, self.low as u64, (self.low >> 64) as u64, self.span as u64, (self.span >> 64) as u64]
    }
}

/// The words of a tile that a lane has: that of its number, and, where lanes are fewer than words, that behind the others'.
#[derive(Clone, Copy)]
pub(super) struct TileWords {
    pub first: Lanes<u32>,
    pub second: Lanes<u32>,
}

/// Bits of rows: whether true, and whether known. What is not known is not true.
#[derive(Clone, Copy)]
pub(super) struct Truth {
    pub truth: TileWords,
    pub known: TileWords,
}

/// A predicate's terms.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub terms: In<u64>,
    pub count: u64,
    pub columns: In<u64>,
    pub len: u64,
}

impl Terms {
    /// What they come to for the rows of a tile; anything for rows that are not there.
    #[inline(always)]
    pub fn of_tile(&self, rows: Group, wave: &mut Wave) -> Truth {
        let none = TileWords::all(0, wave);
        let none = Truth { truth: none, known: none };
        // Named, as what is found by a number would be in memory.
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
        let valid = self.columns.input::<u32>(wave, row + 3);
        let mut known = TileWords::all(!0, wave);
        if !valid.is_absent() {
            known = self.bitmap(valid, self.columns.get(row + 5), rows, wave);
        }
        let (narrow, narrow_span) = (low as u32, span as u32);
        let (short, short_span) = (low as u64, span as u64);
        // The tile's first value: by a width that is known here only, or five distances would be kept in registers.
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

    /// The words of a bitmap.
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
        // False where either is known to be.
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

    /// The one or the other. Both are looked at before: compilers would choose a place, and that in memory.
    #[inline(always)]
    pub fn one(self, second: bool, l: Lane<'_>) -> u32 {
        let (one, other) = (self.first.at(l), self.second.at(l));
        if second { other } else { one }
    }

    /// Without rows that are not there.
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

/// Rows of a lane whose answers become words together.
const AT_ONCE: usize = 4;

/// Of which rows of a tile the values, from its first row's on, are in a range, `N` rows of each lane in flight.
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
    // No more than there are; and a number that compilers do not know, or some write the loop out.
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
            // One by one: out of an array compilers would choose a place, and that in memory.
            let mut word_of = |k: usize| {
                let is_within = wave.each(move |l| within(loaded.at(l)[k]));
                let mask = wave.ballot(is_within);
                wave.each(move |l| mask.half(l.index() % halves))
            };
            let (a, b, c, d) = (word_of(0), word_of(1), word_of(2), word_of(3));
            // Which of the words is a lane's own, by the bits of its number: fewer choices than asking for each.
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
