//! Predicates on text: each row of a column is tested against a row of another column, against the same bytes
//! for all rows, or against a list.
//!
//! The one idea: a row is a position and a length (`rows.rs`), whatever its column's layout (offsets of
//! either width, views, the same row again and again), so one entry does a test for every pair of layouts. A
//! lane has a row and computes one bit. A ballot makes a word from 32 of them, which programs load. A view
//! holds the first bytes of its row itself ([`Head`]).
//!
//! Bytes moved per row: its offsets or view, and as many of its bytes as the test reads, sixteen at a time;
//! patterns with `_` read single bytes, unless the row is ASCII and no piece is long. Null rows are not read,
//! so they may hold anything.

use crate::memory::{In, Out, TableRow};
use crate::target::{Lane, Wave};

use super::find::{SPARE, contains};
use super::folds::FOLDS;
use super::head::Head;
use super::like::{Folds, like};
use super::pieces::{consists_of, is_ascii};
use super::test::Test;
use super::test::kinds::{COMPARE, CONTAINS, IN, LIKE, PIECES};
use crate::text::rows::{Column, Row, TextColumn};

/// Rows that one wave tests for each of its lanes.
const ROWS_PER_LANE: u64 = 8;

kernel! {
    family "text", blocks 3 for text_like text_pieces;
    /// Tests the rows of a column.
    Text {
        /// Two rows of [`TextColumn`]: the rows to test, and those to test them against.
        columns: In<u64>,
        /// The number of rows; not 0.
        len: u64,
        /// The code of the [`Test`].
        test: u64,
        /// The first word of the [`Head`], if views are all tested against the same bytes.
        head_want: u64,
        /// The second word of that [`Head`].
        head_mask: u64,
        /// The third word of that [`Head`].
        head_rest: u64,
        /// The table of case folding, for tests that ignore case: [`Fold::word`](super::folds::Fold::word)
        /// of each of [`FOLDS`]. Or the pieces of a pattern, as [`pieces::words`](super::pieces::words) says.
        table: In<u64>,
        /// Receives a bit for each row that passes, in whole words. Null rows do not pass.
        out: Out<u32>,
        /// Lowered to the first row whose bytes are not inside its buffer; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, width| args.len.div_ceil(ROWS_PER_LANE * u64::from(width));
    /// By the kind of the test.
    TEXT {
        text_compare [0] = run::<COMPARE>,
        text_contains [3] = run::<CONTAINS>,
        text_like [4] = run::<LIKE>,
        text_in [6] = run::<IN>,
        text_pieces [7] = run::<PIECES>,
    }
}

fn run<const KIND: u32>(args: &Text, wave: &mut Wave) {
    let run = ROWS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    let end = args.len.min(at + run);
    if at >= end {
        return;
    }
    let (left, right) = (Column::new(args.columns, 0, wave), Column::new(args.columns, 1, wave));
    let table = Table(args.table);
    let (code, len, fault) = (args.test, args.len, args.fault);
    let list = args.columns.get(TextColumn::ROW + 4);
    let head = Head::from_words([args.head_want, args.head_mask, args.head_rest]);
    while at < end {
        let answers = wave.each(move |l| {
            let row = at + u64::from(l.index());
            if row >= len {
                return Some(false);
            }
            answer::<KIND>(left, right, head, list, code, table, row, l)
        });
        wave.each(move |l| {
            if answers.at(l).is_none() {
                fault.min(l, 0, at + u64::from(l.index()));
            }
        });
        let passes = wave.each(move |l| answers.at(l) == Some(true));
        let mask = wave.ballot(passes);
        let (word, halves) = (at / 32, wave.width() / 32);
        let out = args.out;
        wave.each(move |l| {
            if l.index() < halves && (word + u64::from(l.index())) * 32 < len {
                out.set(l, word + u64::from(l.index()), mask.half(l.index()));
            }
        });
        at += u64::from(wave.width());
    }
}

/// Returns whether a row passes; `None` if its bytes are not inside its buffer.
#[allow(clippy::too_many_arguments, reason = "a closure's captures, which lanes copy")]
#[inline(always)]
fn answer<const KIND: u32>(
    left: Column,
    right: Column,
    head: Head,
    list: u64,
    code: u64,
    table: Table,
    row: u64,
    l: Lane<'_>,
) -> Option<bool> {
    if !left.is_valid(row) || KIND != PIECES && !right.is_valid(row) {
        return Some(false);
    }
    if KIND == PIECES {
        return Some(consists_of::<false>(left.row(row, l)?, table.0));
    }
    let (test, detail) = Test::parts(code);
    if KIND == COMPARE
        && head.compares()
        && let Some(answer) = head.answer(left.view(row) as u64)
    {
        return Some(answer);
    }
    let value = left.row(row, l)?;
    if KIND == IN {
        return Some(is_in(value, right, list, l));
    }
    let other = right.row(row, l)?;
    Some(match KIND {
        CONTAINS => contains(value, other, SPARE),
        LIKE if test == Test::WILD && is_ascii(value) => consists_of::<true>(value, table.0),
        LIKE => like(value, other, table, test == Test::ILIKE, SPARE),
        _ => {
            let (whole, same_length) = (test == Test::COMPARE, value.len == other.len);
            // If the test only asks for equality, different lengths decide it.
            if whole && !same_length && (detail == 2 || detail == 5) {
                return Some(detail == 5);
            }
            if !whole && value.len < other.len {
                return Some(false);
            }
            let (from, len) = match test {
                Test::COMPARE => (0, value.len),
                Test::ENDS_WITH => (value.len - other.len, other.len),
                _ => (0, other.len),
            };
            let wanted = if whole { detail } else { 2 };
            wanted >> value.part(from, len).order(other) & 1 != 0
        }
    })
}

/// Returns whether the value is one of the rows of a column, which MUST ascend.
#[inline(always)]
fn is_in(value: Row, list: Column, len: u64, l: Lane<'_>) -> bool {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        let Some(other) = list.row(middle, l) else { return false };
        match value.order(other) {
            0 => high = middle,
            1 => return true,
            _ => low = middle + 1,
        }
    }
    false
}

/// Returns whether bytes of the host pass a test.
pub fn passes(test: Test, text: &[u8], other: &[u8]) -> bool {
    match test {
        Test::Compare(bits) => bits >> (text.cmp(other) as i8 + 1) & 1 != 0,
        Test::StartsWith => text.starts_with(other),
        Test::EndsWith => text.ends_with(other),
        Test::Contains => contains(text, other, SPARE),
        Test::Like | Test::Wild => like(text, other, FOLDS, false, SPARE),
        Test::ILike => like(text, other, FOLDS, true, SPARE),
        Test::In | Test::Pieces => text == other,
    }
}

/// A table in device memory: of folds, or of pieces.
#[derive(Clone, Copy)]
struct Table(In<u64>);

impl Folds for Table {
    #[inline(always)]
    fn count(self) -> u32 {
        const { FOLDS.len() as u32 }
    }

    #[inline(always)]
    fn word(self, i: u32) -> u64 {
        self.0.get(u64::from(i))
    }
}
