//! Substrings: some of a text's characters, by their numbers.
//!
//! The one idea: a substring is a view of its text's own bytes, whatever the layout of the column. So no text
//! is moved, each row writes 16 bytes, and no row waits for another.
//!
//! A character begins at every byte that does not continue one, so characters are counted without decoding
//! them, eight bytes at a time. Bytes moved per row: its offsets or view, its bytes up to the end of the
//! substring, and those of a short substring again.

use crate::memory::{In, Out};
use crate::target::{Lane, Wave};

use super::bytes::Bytes;
use super::rows::{Column, INLINE, Row};

/// The number of characters that stands for all that follow.
pub const ALL: u64 = u64::MAX;

/// Rows that one wave has for each of its lanes.
const ROWS_PER_LANE: u64 = 8;

kernel! {
    family "text";
    /// Makes views of parts of texts.
    Substring {
        /// A row of [`TextColumn`](super::rows::TextColumn).
        column: In<u64>,
        /// The number of rows; not 0.
        len: u64,
        /// The first character of the substring; a negative number counts from the end of the text.
        start: u64,
        /// The most characters, or [`ALL`].
        count: u64,
        /// The binary logarithm of the distance in bytes at which data buffers begin, if the column has
        /// offsets.
        shift: u64,
        /// Receives the views; those of null rows are empty.
        views: Out<u128>,
        /// Receives the first row whose bytes are not inside its buffer, and the first whose substring is too
        /// long for a view; both `u64::MAX` before.
        faults: Out<u64>,
    }
    waves |args, width| args.len.div_ceil(ROWS_PER_LANE * u64::from(width));
    /// The only entry of this kernel.
    SUBSTRING {
        text_substring = run,
    }
}

fn run(args: &Substring, wave: &mut Wave) {
    let run = ROWS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    let end = args.len.min(at + run);
    if at >= end {
        return;
    }
    let column = Column::new(args.column, 0, wave);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end {
                args.views.set(l, row, view(args, column, row, l));
            }
        });
        at += u64::from(wave.width());
    }
}

/// Returns the view of a row's substring.
#[inline(always)]
fn view(args: &Substring, column: Column, row: u64, l: Lane<'_>) -> u128 {
    if !column.is_valid(row) {
        return 0;
    }
    let Some(text) = column.row(row, l) else {
        args.faults.min(l, 0, row);
        return 0;
    };
    let (from, to) = bounds(Blocks(text), args.start as i64, args.count);
    let len = to - from;
    if len > i32::MAX as u64 {
        args.faults.min(l, 1, row);
        return 0;
    }
    if len == 0 {
        return 0;
    }
    let shown = if len <= INLINE { len } else { 4 };
    let [low, high] = text.part(from, shown).bytes(0);
    let shown = (u128::from(high) << 64 | u128::from(low)) << 32 | u128::from(len);
    if len <= INLINE {
        return shown;
    }
    let (buffer, place) = column.place(row, text, from, args.shift);
    u128::from(place) << 96 | u128::from(buffer) << 64 | shown
}

/// Returns the bytes, from the first up to the second, of at most `count` characters of a text from character
/// `start` on. A negative number counts from the end of the text. Bounds beyond the text are its own.
#[inline(always)]
pub fn bounds<B: Bytes>(text: B, start: i64, count: u64) -> (u64, u64) {
    let skipped =
        if start >= 0 { start as u64 } else { characters(text).saturating_sub(start.unsigned_abs()) };
    let from = character(text, 0, skipped);
    // A character has a byte at least.
    let all = count >= text.len() - from;
    (from, if all { text.len() } else { character(text, from, count) })
}

/// Returns where character `number` begins, counted from byte `at` on, at which one begins; the end of the
/// text if it has no such character.
#[inline(always)]
fn character<B: Bytes>(text: B, mut at: u64, mut number: u64) -> u64 {
    if number == 0 {
        return at;
    }
    while at < text.len() {
        let mut begins = beginnings(text, at);
        let count = u64::from(begins.count_ones());
        if number < count {
            while number > 0 {
                begins &= begins - 1;
                number -= 1;
            }
            return at + u64::from(begins.trailing_zeros()) / 8;
        }
        number -= count;
        at += 8;
    }
    text.len()
}

/// Returns the number of characters in a text.
#[inline(always)]
fn characters<B: Bytes>(text: B) -> u64 {
    let (mut at, mut count) = (0, 0);
    while at < text.len() {
        count += u64::from(beginnings(text, at).count_ones());
        at += 8;
    }
    count
}

/// Sets the lowest bit of each of eight bytes from `at` on at which a character begins.
#[inline(always)]
fn beginnings<B: Bytes>(text: B, at: u64) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let (eight, left) = (text.eight(at), text.len() - at);
    let begins = (!(eight >> 7) | eight >> 6) & LOWEST;
    if left < 8 { begins & !(!0 << (8 * left)) } else { begins }
}

/// A row that is loaded in blocks.
#[derive(Clone, Copy)]
struct Blocks(Row);

impl Bytes for Blocks {
    #[inline(always)]
    fn len(self) -> u64 {
        self.0.len
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        self.0.at(i)
    }

    #[inline(always)]
    fn eight(self, i: u64) -> u64 {
        let left = self.0.len - i;
        self.0.part(i, if left < 8 { left } else { 8 }).bytes(0)[0]
    }
}
