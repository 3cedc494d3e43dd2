//! A hash table from words to the first rows that have them.
//!
//! A slot is a number of 64 bits: the upper half of a word's hash, and a row. A row claims a free slot with
//! one exchange; a row whose word is there lowers the slot's row to its own, unless that is less already. So
//! the table ends up with the first row of each word, in whatever order lanes arrive, and after a group's
//! first rows there is nothing left to do but to look.
//!
//! Bytes moved for a row: its word, a slot, the word of the slot's row, and its place.

use crate::encoded::equal::mixed;
use crate::encoded::rows::{Selected, store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;

/// A free slot. No row has the number of its lower half.
pub const FREE: u64 = u64::MAX;

/// The place, and the group, of a row that is in no group.
pub const NONE: u32 = u32::MAX;

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
        /// Receives a bit, in whole words, for each row that is the first of its group.
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
    waves |args, _| args.rows.div_ceil(TILE);
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
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            if !valid.is_absent() && !valid.get(row) {
                args.places.set(l, row, NONE);
                return;
            }
            let word = args.words.get(row) & args.kept;
            let hash = mixed(args.seed, word);
            let mine = hash & !0xffff_ffff | row;
            let mut slot = hash & args.most;
            // As many steps as there are slots: a full table ends the search, and no step waits for a lane.
            for _ in 0..=args.most {
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
                slot = (slot + 1) & args.most;
            }
            args.places.set(l, row, slot as u32);
        });
        at += u64::from(wave.width());
    }
}

fn own(args: &Own, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        let own = wave.each(|l| {
            let row = at + u64::from(l.index());
            row < end && first_of(args.slots, args.places, row) == Some(row)
        });
        store(own, at, args.rows, args.firsts, wave);
        at += u64::from(wave.width());
    }
}

fn number(args: &Number, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let firsts = Selected::new(args.firsts, 0, args.rows, args.offsets);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end && firsts.has(row) {
                let group = firsts.rank(row);
                args.groups.set(l, args.places.get(row).into(), group as u32);
                args.out.set(l, group, row as u32);
            }
        });
        at += u64::from(wave.width());
    }
}

fn ids(args: &Ids, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end {
                let place = args.places.get(row);
                let group = if place == NONE { args.none as u32 } else { args.groups.get(place.into()) };
                args.out.set(l, row, group);
            }
        });
        at += u64::from(wave.width());
    }
}
