//! Pairs of rows that have equal keys: counted, and then written.
//!
//! A wave writes as many pairs as any other, whichever rows they are of, so a key that most rows have costs
//! no more than others.

use crate::encoded::rows::{store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

kernel! {
    family "join";
    /// Counts the pairs of each row.
    Count {
        /// The group that each row was found in.
        found: In<u32>,
        /// A bit for each row that was found, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// The places of the groups, from [`Spans`](crate::group::segments::Spans).
        spans: In<u64>,
        /// The number of pairs of a row that was not found.
        outer: u64,
        /// Receives the number of pairs of each row.
        counts: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    COUNT {
        join_count = count,
    }
}

kernel! {
    family "join";
    /// Writes pairs of rows.
    Write {
        /// The group that each row was found in.
        found: In<u32>,
        /// A bit for each row that was found, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// The number that is added to rows.
        first: u64,
        /// The places of the groups, from [`Spans`](crate::group::segments::Spans).
        spans: In<u64>,
        /// The rows of the groups, at their places.
        order: In<u32>,
        /// The number of pairs before each row, and of all.
        before: In<u64>,
        /// The number of pairs.
        pairs: u64,
        /// Receives the row of the group of each pair, or 0.
        out: Out<u32>,
        /// Receives a bit, in whole words, for each pair that has one. May be absent.
        out_valid: Out<u32>,
        /// Receives the row of each pair.
        out_rows: Out<u32>,
    }
    waves |args, _| args.pairs.div_ceil(TILE);
    /// The only entry of this kernel.
    WRITE {
        join_write = write,
    }
}

kernel! {
    family "join";
    /// Marks the rows that are among some.
    Mark {
        /// Rows, in any order.
        of: In<u32>,
        /// A bit for each of them that counts, from `In::bitmap`. Absent if all do.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows in `of`.
        rows: u64,
        /// Receives a bit, in whole words, for each marked row; zeroed before.
        marks: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    MARK {
        join_mark = mark,
    }
}

fn count(args: &Count, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            let count = if !valid.is_absent() && !valid.get(row) {
                args.outer as u32
            } else {
                let span = args.spans.get(args.found.get(row).into());
                (span >> 32) as u32 - span as u32
            };
            args.counts.set(l, row, count);
        });
        at += u64::from(wave.width());
    }
}

/// Returns the row of a pair: the last one, from `from` on and before `to`, with at most so many before it.
#[inline(always)]
fn row_of(before: In<u64>, pair: u64, from: u64, to: u64) -> u64 {
    let (mut from, mut to) = (from, to);
    while to - from > 1 {
        let middle = from + (to - from) / 2;
        if before.get(middle) <= pair {
            from = middle;
        } else {
            to = middle;
        }
    }
    from
}

fn write(args: &Write, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.pairs, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    // The rows of all pairs of the wave are between those of its first and its last one.
    let from = row_of(args.before, at, 0, args.rows);
    let to = row_of(args.before, end - 1, from, args.rows) + 1;
    while at < end {
        let has = wave.each(|l| {
            let pair = at + u64::from(l.index());
            if pair >= end {
                return false;
            }
            let row = row_of(args.before, pair, from, to);
            let has = valid.is_absent() || valid.get(row);
            let other = if !has {
                0
            } else {
                let group = u64::from(args.found.get(row));
                let place = args.spans.get(group) & 0xffff_ffff;
                args.order.get(place + pair - args.before.get(row))
            };
            args.out.set(l, pair, other);
            args.out_rows.set(l, pair, (args.first + row) as u32);
            has
        });
        if !args.out_valid.is_absent() {
            store(has, at, args.pairs, args.out_valid, wave);
        }
        at += u64::from(wave.width());
    }
}

fn mark(args: &Mark, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        wave.each(|l| {
            let i = at + u64::from(l.index());
            if i < end && (valid.is_absent() || valid.get(i)) {
                let row = args.of.get(i);
                let (word, bit) = (u64::from(row / 32), 1 << (row % 32));
                // Most rows are marked more than once, and a look costs less than an update.
                if args.marks.load(l, word) & bit == 0 {
                    args.marks.or(l, word, bit);
                }
            }
        });
        at += u64::from(wave.width());
    }
}
