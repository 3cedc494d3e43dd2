//! The group that a row's keys have in a table of other rows.

use core::array::from_fn;

use crate::encoded::equal::{Booleans, Fixed, Rows, Unit, mixed};
use crate::encoded::rows::{store, tile};
use crate::group::dense::Dense;
use crate::group::table::{FREE, LOADS, NONE};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::{Lane, Wave};
use crate::text::rows::Column;

kernel! {
    family "join";
    /// Finds the row of a table that has the word of each row.
    Find {
        /// The words of the rows.
        words: In<u64>,
        /// The number of rows.
        rows: u64,
        /// A bit for each row that may be found, from `In::bitmap`. Absent if all may.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The words of the table's rows.
        table_words: In<u64>,
        /// The `range` of [`Insert`](crate::group::table::Insert).
        range: In<u64>,
        /// The `flip` of [`Insert`](crate::group::table::Insert).
        flip: u64,
        /// The `null` of [`Insert`](crate::group::table::Insert).
        null: u64,
        /// The `kept` of [`Insert`](crate::group::table::Insert).
        kept: u64,
        /// The `seed` of [`Insert`](crate::group::table::Insert).
        seed: u64,
        /// The `most` of [`Insert`](crate::group::table::Insert).
        most: u64,
        /// The slots, from [`Insert`](crate::group::table::Insert).
        slots: In<u64>,
        /// The group of each of the table's rows. Absent if each row is a group.
        ids: In<u32>,
        /// Receives the group of each row; [`NONE`] if the table has no such word.
        out: Out<u32>,
        /// Receives a bit, in whole words, for each row that has a group.
        out_valid: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    FIND {
        join_find = find,
    }
}

kernel! {
    family "join";
    /// Compares a column of rows with the first rows of the groups they were found in. A row that differs is
    /// in none.
    Compare {
        /// The values, as for [`Words`](crate::group::keys::Words).
        values: In<u8>,
        /// How many accesses make one value; for bits, their bit offset.
        pieces: u64,
        /// A bit for each valid row, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// For text, two rows of [`TextColumn`](crate::text::rows::TextColumn): this column, and the table's.
        columns: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The values of the table's rows.
        table_values: In<u8>,
        /// For bits, the bit offset of the table's.
        table_offset: u64,
        /// A bit for each valid row of the table, from `In::bitmap`. May be absent.
        table_valid: In<u32>,
        /// The bit offset of `table_valid`, from `In::bitmap`.
        table_valid_offset: u64,
        /// The number of rows of the table.
        table_rows: u64,
        /// The first row of each group.
        firsts: In<u32>,
        /// The group of each row, before this column is compared.
        before: In<u32>,
        /// Receives the group of each row.
        out: Out<u32>,
        /// Receives a bit, in whole words, for each row that has a group.
        out_valid: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the unit of comparison: the bytes of an access to values of fixed width, 3 for bits, 0
    /// for text.
    COMPARE {
        join_compare_text [0] = compare_text,
        join_compare_b1 [1] = compare_fixed::<u8>,
        join_compare_bits [3] = compare_bits,
        join_compare_b4 [4] = compare_fixed::<u32>,
        join_compare_b8 [8] = compare_fixed::<u64>,
    }
}

fn find(args: &Find, wave: &mut Wave) {
    let Some((at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    match Dense::new(args.range, args.flip, args.null, args.most) {
        Some(dense) => find_dense(args, dense, valid, at, end, wave),
        None => find_hashed(args, valid, at, end, wave),
    }
}

/// Returns the group of a row of the table.
#[inline(always)]
fn group_of(args: &Find, row: u64) -> u32 {
    if args.ids.is_absent() { row as u32 } else { args.ids.get(row) }
}

/// Finds words that have slots of their own.
#[inline(always)]
fn find_dense(args: &Find, dense: Dense, valid: Bits, mut at: u64, end: u64, wave: &mut Wave) {
    while at < end {
        let (begin, width) = (at, u64::from(wave.width()));
        let row = |k: u64, lane: u32| begin + k * width + u64::from(lane);
        let groups = wave.each(|l| {
            let rows = from_fn::<u64, LOADS, _>(|k| row(k as u64, l.index()));
            let words = rows.map(|row| args.words.get(row.min(end - 1)));
            let held = from_fn::<u64, LOADS, _>(|k| match dense.slot_if_any(words[k]) {
                Some(slot) if rows[k] < end && (valid.is_absent() || valid.get(rows[k])) => {
                    args.slots.get(slot)
                }
                _ => FREE,
            });
            let groups =
                held.map(|held| if held == FREE { NONE } else { group_of(args, held & 0xffff_ffff) });
            for k in 0..LOADS {
                if rows[k] < end {
                    args.out.set(l, rows[k], groups[k]);
                }
            }
            groups
        });
        for k in 0..LOADS {
            let found = wave.each(|l| groups.at(l)[k] != NONE);
            store(found, row(k as u64, 0), args.rows, args.out_valid, wave);
        }
        at += LOADS as u64 * width;
    }
}

/// Finds words by their hashes.
#[inline(always)]
fn find_hashed(args: &Find, valid: Bits, mut at: u64, end: u64, wave: &mut Wave) {
    while at < end {
        let (begin, width) = (at, u64::from(wave.width()));
        let row = |k: u64, lane: u32| begin + k * width + u64::from(lane);
        let found = wave.each(|l| {
            // First of all, each row looks at its first slot, and several are under way at once.
            let rows = from_fn::<u64, LOADS, _>(|k| row(k as u64, l.index()));
            let counts = rows.map(|row| row < end && (valid.is_absent() || valid.get(row)));
            let words = rows.map(|row| args.words.get(row.min(end - 1)) & args.kept);
            let hashes = words.map(|word| mixed(args.seed, word));
            let held = hashes.map(|hash| args.slots.get(hash & args.most));
            let is_same = from_fn::<bool, LOADS, _>(|k| {
                counts[k]
                    && held[k] != FREE
                    && (held[k] ^ hashes[k]) >> 32 == 0
                    && args.table_words.get(held[k] & 0xffff_ffff) & args.kept == words[k]
            });
            let groups = from_fn::<u32, LOADS, _>(|k| match is_same[k] {
                true => group_of(args, held[k] & 0xffff_ffff),
                false => NONE,
            });
            let (mut found, mut left) = (0u32, 0u32);
            for k in 0..LOADS {
                if rows[k] < end {
                    args.out.set(l, rows[k], groups[k]);
                }
                found |= u32::from(groups[k] != NONE) << k;
                left |= u32::from(counts[k] && !is_same[k] && held[k] != FREE) << k;
            }
            // Rows whose first slot has another word go on alone.
            while left != 0 {
                let row = row(left.trailing_zeros().into(), l.index());
                let group = beyond(args, args.words.get(row) & args.kept);
                args.out.set(l, row, group);
                found |= u32::from(group != NONE) << left.trailing_zeros();
                left &= left - 1;
            }
            found
        });
        for k in 0..LOADS as u64 {
            let found = wave.each(|l| found.at(l) >> k & 1 != 0);
            store(found, row(k, 0), args.rows, args.out_valid, wave);
        }
        at += LOADS as u64 * width;
    }
}

/// Returns the group of a word whose first slot has another one.
#[inline(always)]
fn beyond(args: &Find, word: u64) -> u32 {
    let hash = mixed(args.seed, word);
    let mut slot = hash & args.most;
    for _ in 0..args.most {
        slot = (slot + 1) & args.most;
        let held = args.slots.get(slot);
        if held == FREE {
            break;
        }
        let other = held & 0xffff_ffff;
        if (held ^ hash) >> 32 == 0 && args.table_words.get(other) & args.kept == word {
            return group_of(args, other);
        }
    }
    NONE
}

/// Rows that can be compared with those of another column.
trait Pairs: Rows {
    fn is_like(self, row: u64, others: Self, other: u64, l: Lane<'_>) -> bool;
}

impl<T: Unit> Pairs for Fixed<T> {
    #[inline(always)]
    fn is_like(self, row: u64, others: Self, other: u64, _: Lane<'_>) -> bool {
        let mut piece = 0;
        while piece < self.pieces
            && self.values.get(row * self.pieces + piece) == others.values.get(other * self.pieces + piece)
        {
            piece += 1;
        }
        piece == self.pieces
    }
}

impl Pairs for Booleans {
    #[inline(always)]
    fn is_like(self, row: u64, others: Self, other: u64, _: Lane<'_>) -> bool {
        self.values.get(row) == others.values.get(other)
    }
}

impl Pairs for Column {
    #[inline(always)]
    fn is_like(self, row: u64, others: Self, other: u64, l: Lane<'_>) -> bool {
        match (self.row(row, l), others.row(other, l)) {
            (Some(row), Some(other)) => row.len == other.len && row.order(other) == 1,
            // A row whose bytes are not inside their buffer is reported elsewhere.
            _ => false,
        }
    }
}

/// The rows that are valid, of both sides.
#[inline(always)]
fn valid(args: &Compare) -> (Bits, Bits) {
    (
        Bits::new(args.valid, args.valid_offset, args.rows),
        Bits::new(args.table_valid, args.table_valid_offset, args.table_rows),
    )
}

fn compare_fixed<T: Unit>(args: &Compare, wave: &mut Wave) {
    let (own, others) = valid(args);
    let own = Fixed::<T>::new(args.values, args.pieces, own);
    compare(args, own, Fixed::new(args.table_values, args.pieces, others), wave)
}

fn compare_bits(args: &Compare, wave: &mut Wave) {
    let (own, others) = valid(args);
    let own = Booleans::new(args.values, args.pieces, args.rows, own);
    compare(args, own, Booleans::new(args.table_values, args.table_offset, args.table_rows, others), wave)
}

fn compare_text(args: &Compare, wave: &mut Wave) {
    let (own, others) = (Column::new(args.columns, 0, wave), Column::new(args.columns, 1, wave));
    compare(args, own, others, wave)
}

#[inline(always)]
fn compare<R: Pairs>(args: &Compare, own: R, others: R, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        let found = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return false;
            }
            let mut group = args.before.get(row);
            if group != NONE {
                let first = u64::from(args.firsts.get(group.into()));
                let is_like = match (own.is_valid(row), others.is_valid(first)) {
                    (true, true) => own.is_like(row, others, first, l),
                    (one, other) => one == other,
                };
                if !is_like {
                    group = NONE;
                }
            }
            args.out.set(l, row, group);
            group != NONE
        });
        store(found, at, args.rows, args.out_valid, wave);
        at += u64::from(wave.width());
    }
}
