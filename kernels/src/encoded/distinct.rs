//! Row equality: run boundaries, and the first occurrence of each distinct row.
//!
//! The one idea: first occurrences are found in rounds. In each round, every row that has none yet offers
//! itself to a slot that its contents choose ([`Claim`]), and the least offer wins. Rows equal to the winner
//! take it as their first occurrence ([`Settle`]); the others go on to the next round, where the rows are
//! distributed differently over the slots. Each round settles all rows equal to any winner, so the rounds
//! end, whatever the rows are. A round takes an atomic minimum and nothing else: no lock, no order, no
//! exchange.
//!
//! Bytes moved: each round reads the rows that are left twice, and also the winners, which may be anywhere. A
//! settled row costs 16 bytes a round.

use super::equal::{Booleans, Fixed, Hashed, Rows, Unit};
use super::rows::{NONE, store, tile};
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::TILE;
use crate::target::Wave;
use crate::text::rows::Column;

/// Marks a row that has no first occurrence yet.
const LEFT: u64 = NONE - 1;

kernel! {
    family "structure";
    /// Finds the rows that differ from the next one.
    Stretches {
        /// The values, if they have a fixed width.
        values: In<u8>,
        /// How many accesses make one value; for bits, their bit offset.
        pieces: u64,
        /// A bit for each valid row, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// For text, a row of [`TextColumn`](crate::text::rows::TextColumn).
        column: In<u64>,
        /// The number of rows.
        rows: u64,
        /// A bit, in whole words, for each row that differs from the next one, and for the last row.
        out: Out<u32>,
        /// Lowered to the first row whose bytes are not inside its buffer; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the unit of comparison: the bytes of an access to values of fixed width, 3 for bits, 0
    /// for text.
    STRETCHES {
        structure_stretches_text [0] = stretches_text,
        structure_stretches_b1 [1] = stretches_fixed::<u8>,
        structure_stretches_bits [3] = stretches_bits,
        structure_stretches_b4 [4] = stretches_fixed::<u32>,
        structure_stretches_b8 [8] = stretches_fixed::<u64>,
    }
}

kernel! {
    family "structure";
    /// Offers each row that has no first occurrence yet to a slot.
    Claim {
        /// The values, as in [`Stretches`].
        values: In<u8>,
        /// How many accesses make one value.
        pieces: u64,
        /// A bit for each valid row, as in [`Stretches`].
        valid: In<u32>,
        /// The bit offset of `valid`, as in [`Stretches`].
        valid_offset: u64,
        /// The text column, as in [`Stretches`].
        column: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The result of [`Settle`] in the round before; absent in the first round.
        before: In<u64>,
        /// The round's number after mixing: the start value of each hash.
        seed: u64,
        /// The number of slots, a power of two, less 1.
        most: u64,
        /// Each slot is lowered to the first row that chose it; `u64::MAX` before the launch.
        slots: Out<u64>,
        /// Lowered to the first row whose bytes are not inside its buffer; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the unit of comparison: the bytes of an access to values of fixed width, 0 for text.
    CLAIM {
        structure_claim_text [0] = claim_text,
        structure_claim_b1 [1] = claim_fixed::<u8>,
        structure_claim_b4 [4] = claim_fixed::<u32>,
        structure_claim_b8 [8] = claim_fixed::<u64>,
    }
}

kernel! {
    family "structure";
    /// Gives each row that equals the winner of its slot the winner as its first occurrence.
    Settle {
        /// The values, as in [`Stretches`].
        values: In<u8>,
        /// How many accesses make one value.
        pieces: u64,
        /// A bit for each valid row, as in [`Stretches`].
        valid: In<u32>,
        /// The bit offset of `valid`, as in [`Stretches`].
        valid_offset: u64,
        /// The text column, as in [`Stretches`].
        column: In<u64>,
        /// The number of rows.
        rows: u64,
        /// The result of this kernel in the round before; absent in the first round.
        before: In<u64>,
        /// The `seed` of the round's [`Claim`].
        seed: u64,
        /// The `most` of the round's [`Claim`].
        most: u64,
        /// The slots, as the round's [`Claim`] leaves them.
        slots: In<u64>,
        /// The first occurrence of each row that has one, [`NONE`] for null rows.
        after: Out<u64>,
        /// A bit, in whole words, for each row that is its own first occurrence.
        firsts: Out<u32>,
        /// Gains the number of rows that have no first occurrence yet.
        left: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the unit of comparison, as in [`CLAIM`].
    SETTLE {
        structure_settle_text [0] = settle_text,
        structure_settle_b1 [1] = settle_fixed::<u8>,
        structure_settle_b4 [4] = settle_fixed::<u32>,
        structure_settle_b8 [8] = settle_fixed::<u64>,
    }
}

fn stretches_fixed<T: Unit>(args: &Stretches, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    stretches(args, Fixed::<T>::new(args.values, args.pieces, valid), wave)
}

fn stretches_bits(args: &Stretches, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    stretches(args, Booleans::new(args.values, args.pieces, args.rows, valid), wave)
}

fn stretches_text(args: &Stretches, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    stretches(args, column, wave)
}

#[inline(always)]
fn stretches(args: &Stretches, rows: impl Rows, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        let differs = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return false;
            }
            if row + 1 == args.rows {
                return true;
            }
            match (rows.is_valid(row), rows.is_valid(row + 1)) {
                (true, true) => {
                    let alike = rows.alike(row, row + 1, l);
                    if alike.is_none() {
                        args.fault.min(l, 0, row);
                    }
                    alike != Some(true)
                }
                (one, other) => one != other,
            }
        });
        store(differs, at, args.rows, args.out, wave);
        at += u64::from(wave.width());
    }
}

fn claim_fixed<T: Unit>(args: &Claim, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    claim(args, Fixed::<T>::new(args.values, args.pieces, valid), wave)
}

fn claim_text(args: &Claim, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    claim(args, column, wave)
}

/// The state of a row after the rounds before: its first occurrence, [`LEFT`], or [`NONE`] for a null.
#[inline(always)]
fn before(rows: impl Rows, before: In<u64>, row: u64) -> u64 {
    if !before.is_absent() {
        before.get(row)
    } else if rows.is_valid(row) {
        LEFT
    } else {
        NONE
    }
}

#[inline(always)]
fn claim(args: &Claim, rows: impl Hashed, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end && before(rows, args.before, row) == LEFT {
                match rows.hash(row, args.seed, l) {
                    Some(hash) => args.slots.min(l, hash & args.most, row),
                    None => args.fault.min(l, 0, row),
                }
            }
        });
        at += u64::from(wave.width());
    }
}

fn settle_fixed<T: Unit>(args: &Settle, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    settle(args, Fixed::<T>::new(args.values, args.pieces, valid), wave)
}

fn settle_text(args: &Settle, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    settle(args, column, wave)
}

#[inline(always)]
fn settle(args: &Settle, rows: impl Hashed, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let mut left = wave.each(|_| 0u32);
    while at < end {
        let now = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return NONE;
            }
            let mut first = before(rows, args.before, row);
            if first == LEFT {
                // A row whose bytes are not inside its buffer, which [`Claim`] reported, equals no other: it
                // counts as null.
                first = match rows.hash(row, args.seed, l) {
                    Some(hash) => {
                        let winner = args.slots.get(hash & args.most);
                        if rows.alike(row, winner, l) == Some(true) { winner } else { LEFT }
                    }
                    None => NONE,
                };
            }
            args.after.set(l, row, first);
            first
        });
        left = wave.each(|l| left.at(l) + u32::from(now.at(l) == LEFT));
        let own = wave.each(|l| now.at(l) == at + u64::from(l.index()));
        store(own, at, args.rows, args.firsts, wave);
        at += u64::from(wave.width());
    }
    let left = wave.sum(left);
    wave.once(|l| {
        if left != 0 {
            args.left.add(l, 0, u64::from(left))
        }
    });
}
