//! A table from words to the first rows that have them.
//!
//! A slot is a number of 64 bits: the upper half of a word's hash, and a row. A row claims a free slot with
//! one exchange; a row whose word is there lowers the slot's row to its own, unless that is less already. So
//! the table ends up with the first row of each word, in whatever order lanes arrive, and after a group's
//! first rows there is nothing left to do but to look.
//!
//! Words in a narrow range have slots of their own (see [`dense`](super::dense)), which hold just the row.
//!
//! Bytes moved for a row: its word, a slot, the word of the slot's row, and its place.

use core::array::from_fn;

use super::dense::Dense;
use crate::encoded::equal::mixed;
use crate::encoded::rows::{store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::select::selection::{self, TileBits};
use crate::target::{Lane, Lanes, Mask, Wave};

/// A free slot. No row has the number of its lower half.
pub const FREE: u64 = u64::MAX;

/// The place, and the group, of a row that is in no group.
pub const NONE: u32 = u32::MAX;

/// The rows that a lane looks at before it uses the first answer.
pub(crate) const LOADS: usize = 4;
/// The same for insertions: with more, registers run out.
const INSERTS: usize = 2;

kernel! {
    family "group";
    /// Finds a slot for the word of each row.
    Insert {
        /// The word of each row.
        words: In<u64>,
        /// The number of rows, less than that of slots.
        rows: u64,
        /// A bit for each row that is to be in a group, from `In::bitmap`. Absent if all are.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The bits of words that count. If it is not all, equal words are not equal keys.
        kept: u64,
        /// The seed of the hash of words.
        seed: u64,
        /// The result of [`Range`](super::dense::Range) for the words. Absent if they are hashed.
        range: In<u64>,
        /// The `flip` of [`Range`](super::dense::Range).
        flip: u64,
        /// The `null` of [`Range`](super::dense::Range).
        null: u64,
        /// The number of slots, a power of two of at most 2^31, less 1.
        most: u64,
        /// The slots, [`FREE`] before the launch.
        slots: Out<u64>,
        /// Receives the slot of each row, or [`NONE`].
        places: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    INSERT {
        group_insert = insert,
    }
}

kernel! {
    family "group";
    /// Marks the rows that are the first of their groups.
    Own {
        /// The slots, from [`Insert`].
        slots: In<u64>,
        /// The slot of each row, from [`Insert`].
        places: In<u32>,
        /// The number of rows.
        rows: u64,
        /// The `range` of [`Insert`].
        range: In<u64>,
        /// The `most` of [`Insert`].
        most: u64,
        /// Receives a bit for each row that is the first of its group; whole words, zeroed before.
        firsts: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    OWN {
        group_own = own,
    }
}

kernel! {
    family "group";
    /// Numbers the groups in the order of their first rows.
    Number {
        /// The bits of [`Own`].
        firsts: In<u32>,
        /// The result of [`Offsets`](crate::select::selection::Offsets) for them.
        offsets: In<u64>,
        /// The slot of each row, from [`Insert`].
        places: In<u32>,
        /// The number of rows.
        rows: u64,
        /// Receives the group at each slot that has one.
        groups: Out<u32>,
        /// Receives the first row of each group.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(selection::TILE);
    /// The only entry of this kernel.
    NUMBER {
        group_number = number,
    }
}

kernel! {
    family "group";
    /// Looks up the group of each row.
    Ids {
        /// The group at each slot, from [`Number`].
        groups: In<u32>,
        /// The slot of each row, from [`Insert`].
        places: In<u32>,
        /// The number of rows.
        rows: u64,
        /// The group of rows that are in none.
        none: u64,
        /// Receives the group of each row.
        out: Out<u32>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    IDS {
        group_ids = ids,
    }
}

/// Returns the first row of a row's group; `None` if it is in none.
#[inline(always)]
pub(super) fn first_of(slots: In<u64>, places: In<u32>, row: u64) -> Option<u64> {
    let place = places.get(row);
    if place == NONE { None } else { Some(slots.get(place.into()) & 0xffff_ffff) }
}

fn insert(args: &Insert, wave: &mut Wave) {
    let Some((at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    match Dense::new(args.range, args.flip, args.null, args.most) {
        Some(dense) => insert_dense(args, dense, valid, at, end, wave),
        None => insert_hashed(args, valid, at, end, wave),
    }
}

/// Inserts words that have slots of their own.
#[inline(always)]
fn insert_dense(args: &Insert, dense: Dense, valid: Bits, mut at: u64, end: u64, wave: &mut Wave) {
    while at < end {
        let begin = at;
        wave.each(|l| {
            let rows = from_fn::<u64, LOADS, _>(|k| begin + u64::from(k as u32 * wave.width() + l.index()));
            let counts = rows.map(|row| row < end && (valid.is_absent() || valid.get(row)));
            let slots = rows.map(|row| dense.slot(args.words.get(row.min(end - 1))));
            let held = from_fn::<u64, LOADS, _>(|k| match counts[k] {
                true => args.slots.load(l, slots[k]),
                false => 0,
            });
            for k in 0..LOADS {
                if rows[k] < end {
                    args.places.set(l, rows[k], if counts[k] { slots[k] as u32 } else { NONE });
                }
                if rows[k] < held[k] {
                    args.slots.min(l, slots[k], rows[k]);
                }
            }
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
}

/// Inserts words at their hashes.
#[inline(always)]
fn insert_hashed(args: &Insert, valid: Bits, mut at: u64, end: u64, wave: &mut Wave) {
    while at < end {
        let begin = at;
        let row = |k: u32, lane: u32| begin + u64::from(k * wave.width() + lane);
        wave.each(|l| {
            // First of all, each row goes to its first slot, and several are under way at once.
            let rows = from_fn::<u64, INSERTS, _>(|k| row(k as u32, l.index()));
            let counts = rows.map(|row| row < end && (valid.is_absent() || valid.get(row)));
            let words = rows.map(|row| args.words.get(row.min(end - 1)) & args.kept);
            let hashes = words.map(|word| mixed(args.seed, word));
            let seen = hashes.map(|hash| args.slots.load(l, hash & args.most));
            let held = from_fn::<u64, INSERTS, _>(|k| match counts[k] && seen[k] == FREE {
                true => {
                    args.slots.compare_exchange(l, hashes[k] & args.most, FREE, slot_of(hashes[k], rows[k]))
                }
                false => seen[k],
            });
            let others = from_fn::<u64, INSERTS, _>(|k| match counts[k] && held[k] != FREE {
                true => args.words.get(held[k] & 0xffff_ffff) & args.kept,
                false => words[k],
            });
            let mut left = 0u32;
            for k in 0..INSERTS {
                let (slot, mine) = (hashes[k] & args.most, slot_of(hashes[k], rows[k]));
                let is_same = held[k] == FREE || (held[k] ^ mine) >> 32 == 0 && others[k] == words[k];
                if rows[k] < end {
                    args.places.set(l, rows[k], if counts[k] { slot as u32 } else { NONE });
                }
                if counts[k] && is_same && mine < held[k] && held[k] != FREE {
                    args.slots.min(l, slot, mine);
                }
                left |= u32::from(counts[k] && !is_same) << k;
            }
            // Rows whose first slot another word has go on alone.
            while left != 0 {
                let row = row(left.trailing_zeros(), l.index());
                args.places.set(l, row, insert_beyond(args, row, l) as u32);
                left &= left - 1;
            }
        });
        at += INSERTS as u64 * u64::from(wave.width());
    }
}

/// Returns the contents of a slot that a row takes: the upper half of its hash, and the row.
#[inline(always)]
fn slot_of(hash: u64, row: u64) -> u64 {
    hash & !0xffff_ffff | row
}

/// Returns the slot of a row whose first slot another word has.
#[inline(always)]
fn insert_beyond(args: &Insert, row: u64, l: Lane<'_>) -> u64 {
    let word = args.words.get(row) & args.kept;
    let hash = mixed(args.seed, word);
    let (mine, mut slot) = (slot_of(hash, row), hash & args.most);
    // As many steps as there are slots: a full table ends the search, and no step waits for a lane.
    for _ in 0..=args.most {
        slot = (slot + 1) & args.most;
        let mut held = args.slots.load(l, slot);
        if held == FREE {
            held = args.slots.compare_exchange(l, slot, FREE, mine);
        }
        if held == FREE {
            break;
        }
        if (held ^ mine) >> 32 == 0 && args.words.get(held & 0xffff_ffff) & args.kept == word {
            if mine < held {
                args.slots.min(l, slot, mine);
            }
            break;
        }
    }
    slot
}

fn own(args: &Own, wave: &mut Wave) {
    match Dense::new(args.range, 0, 0, args.most) {
        Some(dense) if dense.slots() < args.rows => own_by_slots(args, dense.slots(), wave),
        _ => own_by_rows(args, wave),
    }
}

/// Looks at the first slots, which are fewer than the rows.
#[inline(always)]
fn own_by_slots(args: &Own, slots: u64, wave: &mut Wave) {
    let Some((mut at, end)) = tile(slots, wave) else { return };
    while at < end {
        wave.each(|l| {
            let slot = at + u64::from(l.index());
            let held = if slot < end { args.slots.get(slot) } else { FREE };
            if held != FREE {
                let row = held & 0xffff_ffff;
                // No other slot has the row, so its bit is not set yet.
                args.firsts.add(l, row / 32, 1 << (row % 32));
            }
        });
        at += u64::from(wave.width());
    }
}

/// Looks for each row at the slot that it has.
#[inline(always)]
fn own_by_rows(args: &Own, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        let (begin, width) = (at, u64::from(wave.width()));
        let row = |k: usize, lane: u32| begin + k as u64 * width + u64::from(lane);
        let places =
            wave.each(|l| from_fn::<u32, LOADS, _>(|k| args.places.get(row(k, l.index()).min(end - 1))));
        let firsts = wave.each(|l| {
            from_fn::<u64, LOADS, _>(|k| match places.at(l)[k] {
                NONE => u64::MAX,
                place => args.slots.get(place.into()) & 0xffff_ffff,
            })
        });
        for k in 0..LOADS {
            let own = wave.each(|l| row(k, l.index()) < end && firsts.at(l)[k] == row(k, l.index()));
            store(own, row(k, 0), args.rows, args.firsts, wave);
        }
        at += LOADS as u64 * width;
    }
}

fn number(args: &Number, wave: &mut Wave) {
    let first = wave.index() * selection::TILE;
    if first >= args.rows {
        return;
    }
    let bits = TileBits::of(args.firsts, 0, args.rows, wave.index(), wave);
    let (mut group, mut at) = (args.offsets.get(wave.index()), 0);
    while at < selection::TILE as u32 / wave.width() {
        let owners = from_fn::<Mask, LOADS, _>(|k| bits.mask(at, k, wave));
        if owners.iter().any(|owners| !owners.is_empty()) {
            let own = from_fn::<Lanes<bool>, LOADS, _>(|k| wave.members(owners[k]));
            let row = |k: usize, l: Lane<'_>| first + u64::from((at + k as u32) * wave.width() + l.index());
            let places = wave.each(|l| {
                from_fn::<u32, LOADS, _>(|k| if own[k].at(l) { args.places.get(row(k, l)) } else { NONE })
            });
            for k in 0..LOADS {
                wave.each(|l| {
                    if own[k].at(l) {
                        let group = group + u64::from(l.rank(owners[k]));
                        args.groups.set(l, places.at(l)[k].into(), group as u32);
                        args.out.set(l, group, row(k, l) as u32);
                    }
                });
                group += u64::from(owners[k].count());
            }
        }
        at += LOADS as u32;
    }
}

fn ids(args: &Ids, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        let begin = at;
        let row = |k: usize, lane: u32| begin + u64::from(k as u32 * wave.width() + lane);
        let places =
            wave.each(|l| from_fn::<u32, LOADS, _>(|k| args.places.get(row(k, l.index()).min(end - 1))));
        let groups = wave.each(|l| {
            from_fn::<u32, LOADS, _>(|k| match places.at(l)[k] {
                NONE => args.none as u32,
                place => args.groups.get(place.into()),
            })
        });
        wave.each(|l| {
            for k in 0..LOADS {
                if row(k, l.index()) < end {
                    args.out.set(l, row(k, l.index()), groups.at(l)[k]);
                }
            }
        });
        at += LOADS as u64 * u64::from(wave.width());
    }
}
