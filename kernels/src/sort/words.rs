//! Words: numbers that order as the values of a column do.
//!
//! A value of fixed width has one word or several. The host says which bits of each flip (the sign bit of an
//! integer, all bits of a negative float, all bits if the order is descending), so there is an entry for each
//! width and none for a type. A null has the word zero; the column's validity makes a word of its own.
//!
//! The bits in which the words of a column differ tell the host how many placements are needed: dates, codes
//! and small integers differ in few.

use crate::memory::{Bits, In, Out};
use crate::reduce::scan::{Summand, TILE};
use crate::target::{Value, Wave};

kernel! {
    family "sort";
    /// Makes a word of each row.
    Words {
        /// The values; for bits, from `In::bitmap`.
        values: In<u8>,
        /// The words from one value to the next. A value of several words is as wide as all of them.
        stride: u64,
        /// The position of the word within a value; for bits, their bit offset.
        at: u64,
        /// The bits that flip in every word.
        always: u64,
        /// The bits that flip besides if the highest bit is set.
        negative: u64,
        /// A bit for each valid row, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows, at least one.
        rows: u64,
        /// Receives the words: 8 bytes each if the values have 8, otherwise 4.
        words: Out<u8>,
        /// Gains the bits in which a word differs from that of the first row; zeroed before.
        differs: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the bytes of a word of a value; 0 for bits.
    WORDS {
        sort_words_bits [0] = words_of_bits,
        sort_words_b1 [1] = words_of::<u8, u32>,
        sort_words_b2 [2] = words_of::<u16, u32>,
        sort_words_b4 [4] = words_of::<u32, u32>,
        sort_words_b8 [8] = words_of::<u64, u64>,
    }
}

kernel! {
    family "sort";
    /// Puts words in an order.
    Reorder {
        /// The words of the rows.
        words: In<u8>,
        /// The rows in order. Each MUST be the number of a row.
        order: In<u32>,
        /// The number of rows.
        rows: u64,
        /// Receives the words of the rows in order.
        out: Out<u8>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the bytes of a word.
    REORDER {
        sort_reorder_b4 [4] = reorder::<u32>,
        sort_reorder_b8 [8] = reorder::<u64>,
    }
}

/// The rows that a lane loads before it uses the first.
const LOADS: usize = 4;

/// A number of a value, as it is in memory.
trait Unit<W>: Value {
    /// The number of its bits.
    const BITS: u32 = 8 * size_of::<Self>() as u32;
    /// Widens it to a word.
    fn word(self) -> W;
}

macro_rules! units {
    ($($t:ty => $w:ty,)*) => { $(impl Unit<$w> for $t {
        #[inline(always)]
        fn word(self) -> $w {
            self as $w
        }
    })* };
}
units! { u8 => u32, u16 => u32, u32 => u32, u64 => u64, }

/// A number that orders rows.
pub(super) trait Word: Summand + core::ops::BitXor<Output = Self> {}
impl Word for u32 {}
impl Word for u64 {}

fn words_of<T: Unit<W>, W: Word>(args: &Words, wave: &mut Wave) {
    let (values, always, negative) = (args.values.cast::<T>(), args.always, args.negative);
    make::<W>(args, wave, |row| {
        let word = values.get(row * args.stride + args.at).word().wide();
        let highest = word >> (T::BITS - 1);
        W::from_wide(word ^ always ^ (negative & highest.wrapping_neg()))
    })
}

fn words_of_bits(args: &Words, wave: &mut Wave) {
    let bits = Bits::new(args.values.cast(), args.at, args.rows);
    make::<u32>(args, wave, |row| u32::from(bits.get(row)) ^ args.always as u32)
}

/// Stores the words of a wave's rows.
#[inline(always)]
fn make<W: Word>(args: &Words, wave: &mut Wave, word: impl Fn(u64) -> W) {
    let first = wave.index() * TILE;
    if first >= args.rows {
        return;
    }
    let (last, words) = (args.rows - 1, args.words.cast::<W>());
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let word = |row| {
        let word = word(row);
        if valid.is_absent() || valid.get(row) { word } else { <W as Value>::ZERO }
    };
    // Each lane loads a row of its own, because scalar loads of fewer than 4 bytes are new on AMD.
    let reference = wave.each(|l| word(u64::from(l.index()).min(last)));
    let reference = wave.broadcast(reference, 0);
    let mut differs = wave.each(|_| <W as Value>::ZERO);
    let (mut at, end) = (first, args.rows.min(first + TILE));
    while at < end {
        let begin = at;
        let row = |k: usize, lane: u32| begin + u64::from(k as u32 * wave.width() + lane);
        // Rows past the end repeat the last one.
        let made = wave.each(|l| core::array::from_fn::<W, LOADS, _>(|k| word(row(k, l.index()).min(last))));
        differs =
            wave.each(|l| made.at(l).into_iter().fold(differs.at(l), |all, word| all | (word ^ reference)));
        wave.each(|l| {
            for k in 0..LOADS {
                if row(k, l.index()) < end {
                    words.set(l, row(k, l.index()), made.at(l)[k]);
                }
            }
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
    let differs = wave.or(differs).wide();
    if differs != 0 {
        wave.once(|l| args.differs.or(l, 0, differs));
    }
}

fn reorder<W: Word>(args: &Reorder, wave: &mut Wave) {
    let first = wave.index() * TILE;
    if first >= args.rows {
        return;
    }
    let (words, out) = (args.words.cast::<W>(), args.out.cast::<W>());
    let (mut at, end) = (first, args.rows.min(first + TILE));
    while at < end {
        let begin = at;
        let row = |k: usize, lane: u32| begin + u64::from(k as u32 * wave.width() + lane);
        let found = wave.each(|l| {
            let rows =
                core::array::from_fn::<u32, LOADS, _>(|k| args.order.get(row(k, l.index()).min(end - 1)));
            core::array::from_fn::<W, LOADS, _>(|k| words.get(rows[k].into()))
        });
        wave.each(|l| {
            for k in 0..LOADS {
                if row(k, l.index()) < end {
                    out.set(l, row(k, l.index()), found.at(l)[k]);
                }
            }
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
}
