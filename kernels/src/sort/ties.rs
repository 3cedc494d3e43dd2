//! Rows that are equal so far: the words of text, seven bytes at a time, and the rows that the next words
//! must still tell apart.
//!
//! The one idea: text may be of any length, and most texts differ in their first bytes. So rows are sorted
//! from the first key on, and after each word only the rows that have an equal neighbour, and more to
//! compare, go on. Rows that are equal so far form a group. Groups lie one after the other, so a group's rows
//! are put in order within the places that it has.

use super::words::Word;
use crate::encoded::rows::{Selected, store, tile};
use crate::memory::{In, Out};
use crate::reduce::scan::TILE;
use crate::target::{Lane, Wave};
use crate::text::rows::Column;

/// The bytes of text in a word. Its lowest byte is their number, or [`MORE`] if others follow.
pub const BYTES: u64 = 7;

/// Marks a word after which the text goes on.
pub const MORE: u64 = 8;

kernel! {
    family "sort";
    /// Makes a word of some bytes of each text.
    TextWords {
        /// A row of [`TextColumn`](crate::text::rows::TextColumn).
        column: In<u64>,
        /// The rows. Absent if they are in order.
        order: In<u32>,
        /// The position of the first byte.
        from: u64,
        /// The bits that flip in every word.
        flip: u64,
        /// The number of rows, at least one.
        rows: u64,
        /// Receives the words; 0 for nulls.
        words: Out<u64>,
        /// Gains the bits in which a word differs from the first; zeroed before.
        differs: Out<u64>,
        /// Lowered to the first row whose bytes are not inside their buffer; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    TEXT_WORDS {
        sort_words_text = text_words,
    }
}

kernel! {
    family "sort";
    /// Marks the rows that begin a group, and those that have an equal neighbour and more to compare.
    Ties {
        /// The words of the rows, in order.
        words: In<u8>,
        /// The groups that the rows had before. Absent if all are in one.
        groups: In<u32>,
        /// The bits that are flipped in every word of text.
        flip: u64,
        /// Whether rows whose text ends do not go on.
        only_more: u64,
        /// The number of rows.
        rows: u64,
        /// Receives a bit, in whole words, for each row that begins a group.
        begins: Out<u32>,
        /// Receives a bit, in whole words, for each row that goes on.
        goes_on: Out<u32>,
        /// Gains the number of rows that go on and whose text does too. Absent if the words are not text.
        more: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the bytes of a word.
    TIES {
        sort_ties_b4 [4] = ties::<u32>,
        sort_ties_b8 [8] = ties::<u64>,
    }
}

kernel! {
    family "sort";
    /// Moves the rows that go on together.
    Narrow {
        /// The bits of the rows that begin a group, from [`Ties`].
        begins: In<u32>,
        /// The result of [`Offsets`](crate::select::selection::Offsets) for them.
        begins_offsets: In<u64>,
        /// The bits of the rows that go on, from [`Ties`].
        goes_on: In<u32>,
        /// The result of [`Offsets`](crate::select::selection::Offsets) for them.
        goes_on_offsets: In<u64>,
        /// The places of the rows among all rows. Absent if these are all.
        places: In<u32>,
        /// The rows in order. Absent if only the places are wanted.
        order: In<u32>,
        /// The number of rows.
        rows: u64,
        /// Receives the places of the rows that go on.
        out_places: Out<u32>,
        /// Receives the rows that go on.
        out_order: Out<u32>,
        /// Receives their groups, from 0 on.
        out_groups: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    NARROW {
        sort_narrow = narrow,
    }
}

kernel! {
    family "sort";
    /// Writes rows to their places.
    Scatter {
        /// The places, all different.
        places: In<u32>,
        /// The rows that go to these places.
        order: In<u32>,
        /// The number of rows.
        rows: u64,
        /// Receives each row at its place.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    SCATTER {
        sort_scatter = scatter,
    }
}

fn text_words(args: &TextWords, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let row = |i: u64| if args.order.is_absent() { i } else { u64::from(args.order.get(i)) };
    let mut differs = wave.each(|_| 0u64);
    let first = wave.each(|l| word(args, column, row(0), l).unwrap_or(0));
    while at < end {
        let made = wave.each(|l| {
            let i = at + u64::from(l.index());
            if i >= end {
                return first.at(l);
            }
            let row = row(i);
            let word = word(args, column, row, l);
            if word.is_none() {
                args.fault.min(l, 0, row);
            }
            let word = word.unwrap_or(0);
            args.words.set(l, i, word);
            word
        });
        differs = wave.each(|l| differs.at(l) | (made.at(l) ^ first.at(l)));
        at += u64::from(wave.width());
    }
    let differs = wave.or(differs);
    if differs != 0 {
        wave.once(|l| args.differs.or(l, 0, differs));
    }
}

/// Returns the word of a row; `None` if its bytes are not inside their buffer.
#[inline(always)]
fn word(args: &TextWords, column: Column, row: u64, l: Lane<'_>) -> Option<u64> {
    if !column.is_valid(row) {
        return Some(0);
    }
    let text = column.row(row, l)?;
    let left = text.len.saturating_sub(args.from);
    let count = if left > BYTES { MORE } else { left };
    // A text without bytes from here on is not read.
    let bytes = if left == 0 { 0 } else { text.bytes(args.from)[0].swap_bytes() & !0xff };
    Some((bytes | count) ^ args.flip)
}

fn ties<W: Word>(args: &Ties, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let words = args.words.cast::<W>();
    // Whether a row, which is not the first, is in another group than the row before it.
    let begins = |i: u64| {
        let group = |i: u64| if args.groups.is_absent() { 0 } else { args.groups.get(i) };
        words.get(i) != words.get(i - 1) || group(i) != group(i - 1)
    };
    let mut count = wave.each(|_| 0u32);
    while at < end {
        let row = |lane: u32| at + u64::from(lane);
        let more = wave.each(|l| (words.get(row(l.index()).min(end - 1)).wide() ^ args.flip) & 0xff == MORE);
        let first = wave.each(|l| row(l.index()) < end && (row(l.index()) == 0 || begins(row(l.index()))));
        let tied = wave.each(|l| {
            let i = row(l.index());
            let next = i + 1 < args.rows && !begins(i + 1);
            i < end && (args.only_more == 0 || more.at(l)) && (next || !first.at(l))
        });
        count = wave.each(|l| count.at(l) + u32::from(tied.at(l) && more.at(l)));
        store(first, at, args.rows, args.begins, wave);
        store(tied, at, args.rows, args.goes_on, wave);
        at += u64::from(wave.width());
    }
    let count = wave.sum(count);
    if count != 0 && !args.more.is_absent() {
        wave.once(|l| args.more.add(l, 0, count.into()));
    }
}

fn narrow(args: &Narrow, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let begins = Selected::new(args.begins, 0, args.rows, args.begins_offsets);
    let goes_on = Selected::new(args.goes_on, 0, args.rows, args.goes_on_offsets);
    while at < end {
        wave.each(|l| {
            let i = at + u64::from(l.index());
            if i < end && goes_on.has(i) {
                let to = goes_on.rank(i);
                let place = if args.places.is_absent() { i as u32 } else { args.places.get(i) };
                args.out_places.set(l, to, place);
                if args.order.is_absent() {
                    return;
                }
                args.out_order.set(l, to, args.order.get(i));
                // Its own group is among those that begin before the row that follows.
                let before = begins.rank(i) + u64::from(begins.has(i));
                args.out_groups.set(l, to, (before - 1) as u32);
            }
        });
        at += u64::from(wave.width());
    }
}

fn scatter(args: &Scatter, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let i = at + u64::from(l.index());
            if i < end {
                args.out.set(l, args.places.get(i).into(), args.order.get(i));
            }
        });
        at += u64::from(wave.width());
    }
}
