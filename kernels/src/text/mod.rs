//! Predicates on text: each row of a column tried against a row of another, against the same bytes for all, or against a list.
//!
//! The one idea: a row is a place and a length (`rows.rs`), however its column says so (offsets of either width, views, the
//! same row again and again), so one entry does every test for every pair of layouts. A lane has a row. What it answers is a
//! bit; a ballot makes a word of 32, which is what programs load. Views show much of their row themselves
//! ([`Head`]).
//!
//! Bytes a row: what describes it, and of its bytes as many as the test looks at, sixteen at a time; patterns look at single bytes.
//! Rows that are null are not looked at: they may be anything.

mod bytes;
mod find;
mod folds;
mod head;
mod like;
pub(crate) mod rows;
mod test;

use crate::memory::{In, Out, TableRow};
use crate::places::Source;
use crate::target::{Lane, Wave};
pub(crate) use rows::{Column, Row};

pub use bytes::Bytes;
pub use find::{SPARE, contains};
pub use folds::{FOLDS, Fold};
pub use head::Head;
pub use like::{Folds, like};

pub use rows::{TextColumn, VIEWS};
pub use test::Test;
use test::kinds::{COMPARE, CONTAINS, IN, LIKE};

/// Rows that one wave tests, for each of its lanes.
const ROWS_PER_LANE: u64 = 8;

kernel! {
    family "text";
    /// Tests the rows of a column.
    Text {
        /// Two rows of [`TextColumn`]: what is tested, and against what.
        columns: In<u64>,
        /// How many rows; not 0.
        len: u64,
        /// The [`Test`], by its code.
        test: u64,
        /// Of views that are all tested against the same bytes, the words of their [`Head`].
        head_want: u64,
        /// Likewise.
        head_mask: u64,
        /// Likewise.
        head_rest: u64,
        /// How characters fold, for tests that ignore case: [`Fold::word`] of each of [`FOLDS`].
        folds: In<u64>,
        /// Whole words: a bit for each row that passes. Of nulls, unset.
        out: Out<u32>,
        /// Lowered to the first row whose place is not in its buffer: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, width| args.len.div_ceil(ROWS_PER_LANE * u64::from(width));
    /// By the kind of the test.
    TEXT {
        text_compare [0] = run::<COMPARE>,
        text_contains [3] = run::<CONTAINS>,
        text_like [4] = run::<LIKE>,
        text_in [6] = run::<IN>,
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
    let folds = Table(args.folds);
    let (code, len, fault) = (args.test, args.len, args.fault);
    let list = args.columns.get(TextColumn::ROW + 4);
    let head = Head::from_words([args.head_want, args.head_mask, args.head_rest]);
    while at < end {
        let answers = wave.each(move |l| {
            let row = at + u64::from(l.index());
            if row >= len {
                return Some(false);
            }
            answer::<KIND>(left, right, head, list, code, folds, row, l)
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

/// What a row answers; `None` where its place is not in its buffer.
#[allow(clippy::too_many_arguments, reason = "a closure's captures, which lanes copy")]
#[inline(always)]
fn answer<const KIND: u32>(
    left: Column,
    right: Column,
    head: Head,
    list: u64,
    code: u64,
    folds: Table,
    row: u64,
    l: Lane<'_>,
) -> Option<bool> {
    if !left.is_valid(row) || !right.is_valid(row) {
        return Some(false);
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
        LIKE => like(value, other, folds, test == Test::ILIKE, SPARE),
        _ => {
            let (whole, same_length) = (test == Test::COMPARE, value.len == other.len);
            // What is asked only whether it is equal differs where lengths do.
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

/// Whether it is one of the rows of a column, which ascend.
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

/// What a test says of bytes of the host.
pub fn passes(test: Test, text: &[u8], other: &[u8]) -> bool {
    match test {
        Test::Compare(bits) => bits >> (text.cmp(other) as i8 + 1) & 1 != 0,
        Test::StartsWith => text.starts_with(other),
        Test::EndsWith => text.ends_with(other),
        Test::Contains => contains(text, other, SPARE),
        Test::Like => like(text, other, FOLDS, false, SPARE),
        Test::ILike => like(text, other, FOLDS, true, SPARE),
        Test::In => text == other,
    }
}

/// A table of folds in memory.
#[derive(Clone, Copy)]
struct Table(In<u64>);

impl Folds for Table {
    #[inline(always)]
    fn count(self) -> u64 {
        const { FOLDS.len() as u64 }
    }

    #[inline(always)]
    fn word(self, i: u64) -> u64 {
        self.0.get(i)
    }
}

impl Bytes for Row {
    #[inline(always)]
    fn len(self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        let Source { blocks, from } = self.source;
        blocks.cast::<u8>().get(from + i)
    }
}
