//! Rows that are alike: where one differs from the next, and which is the first of all that are.
//!
//! The one idea: the first of all is found in rounds. In each, every row that has none yet offers itself to a slot that its
//! contents choose ([`Claim`]), and the least offer wins; rows that are like the winner have their first ([`Settle`]), the
//! others go on to the next round, where other contents share a slot. Each round settles all rows that are like any winner, so it
//! ends, whatever the rows are. That takes an atomic minimum and nothing else: no lock, no order, no exchange.
//!
//! Bytes: each round reads the rows that are left twice, and once more the winners, which lie anywhere; rows that have their first
//! cost 16 bytes a round.

use super::{NONE, store, tile};
use crate::memory::{Bits, In, Out};
use crate::scan::TILE;
use crate::target::{Lane, Value, Wave};
use crate::text::rows::{Column, Row};

/// A row that has no first yet.
const LEFT: u64 = NONE - 1;

kernel! {
    family "structure";
    /// Which rows are not like the next one.
    Stretches {
        /// Values of fixed width.
        values: In<u8>,
        /// How many accesses make one; of bits, their bit offset.
        pieces: u64,
        /// From `In::bitmap`: which are valid. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// Of text, a row of [`TextColumn`](crate::text::TextColumn).
        column: In<u64>,
        /// How many rows there are.
        rows: u64,
        /// Whole words: a bit for each row that is not like the next one, and for the last.
        out: Out<u32>,
        /// Receives the first row whose place is not in its buffer: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By what is compared at once: so many bytes of values of fixed width, 3 for bits, 0 for text.
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
    /// Each row that has no first yet offers itself to a slot.
    Claim {
        /// As in [`Stretches`].
        values: In<u8>,
        /// How many accesses make one.
        pieces: u64,
        /// As in [`Stretches`].
        valid: In<u32>,
        /// As in [`Stretches`].
        valid_offset: u64,
        /// As in [`Stretches`].
        column: In<u64>,
        /// How many rows there are.
        rows: u64,
        /// What [`Settle`] left of the round before; absent in the first one.
        before: In<u64>,
        /// The round's number, mixed.
        seed: u64,
        /// How many slots there are, a power of two, less 1.
        most: u64,
        /// Receives the first row of those that chose each: `u64::MAX` before.
        slots: Out<u64>,
        /// Receives the first row whose place is not in its buffer: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By what is compared at once: so many bytes of values of fixed width, 0 for text.
    CLAIM {
        structure_claim_text [0] = claim_text,
        structure_claim_b1 [1] = claim_fixed::<u8>,
        structure_claim_b4 [4] = claim_fixed::<u32>,
        structure_claim_b8 [8] = claim_fixed::<u64>,
    }
}

kernel! {
    family "structure";
    /// Rows that are like the winner of their slot have it as their first.
    Settle {
        /// As in [`Stretches`].
        values: In<u8>,
        /// How many accesses make one.
        pieces: u64,
        /// As in [`Stretches`].
        valid: In<u32>,
        /// As in [`Stretches`].
        valid_offset: u64,
        /// As in [`Stretches`].
        column: In<u64>,
        /// How many rows there are.
        rows: u64,
        /// What this left of the round before; absent in the first one.
        before: In<u64>,
        /// As [`Claim`] had it.
        seed: u64,
        /// As [`Claim`] had it.
        most: u64,
        /// What [`Claim`] left.
        slots: In<u64>,
        /// The first row that is like each, [`NONE`] for null rows.
        after: Out<u64>,
        /// Whole words: a bit for each row that is its own first.
        firsts: Out<u32>,
        /// Receives, added to what is there, how many rows have none yet.
        left: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// As [`CLAIM`].
    SETTLE {
        structure_settle_text [0] = settle_text,
        structure_settle_b1 [1] = settle_fixed::<u8>,
        structure_settle_b4 [4] = settle_fixed::<u32>,
        structure_settle_b8 [8] = settle_fixed::<u64>,
    }
}

/// Rows that can be compared. `None` for a row whose place is not in its buffer.
trait Rows: Copy {
    fn is_valid(self, row: u64) -> bool;
    fn alike(self, one: u64, other: u64, l: Lane<'_>) -> Option<bool>;
}

/// Rows whose contents choose a slot.
trait Hashed: Rows {
    fn hash(self, row: u64, seed: u64, l: Lane<'_>) -> Option<u64>;
}

/// What is compared at once.
trait Unit: Value + PartialEq {
    fn wide(self) -> u64;
}

macro_rules! unit {
    ($($t:ty)*) => { $(impl Unit for $t {
        #[inline(always)]
        fn wide(self) -> u64 {
            self as u64
        }
    })* };
}
unit! { u8 u32 u64 }

/// Values of fixed width.
#[derive(Clone, Copy)]
struct Fixed<T> {
    values: In<T>,
    pieces: u64,
    valid: Bits,
}

/// Single bits.
#[derive(Clone, Copy)]
struct Booleans {
    values: Bits,
    valid: Bits,
}

/// Another word in a hash. Every bit of both reaches the upper half, which then reaches the lower one.
#[inline(always)]
fn mixed(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ mixed >> 32
}

impl<T: Unit> Rows for Fixed<T> {
    #[inline(always)]
    fn is_valid(self, row: u64) -> bool {
        self.valid.is_absent() || self.valid.get(row)
    }

    #[inline(always)]
    fn alike(self, one: u64, other: u64, _: Lane<'_>) -> Option<bool> {
        let mut piece = 0;
        while piece < self.pieces
            && self.values.get(one * self.pieces + piece) == self.values.get(other * self.pieces + piece)
        {
            piece += 1;
        }
        Some(piece == self.pieces)
    }
}

impl<T: Unit> Hashed for Fixed<T> {
    #[inline(always)]
    fn hash(self, row: u64, seed: u64, _: Lane<'_>) -> Option<u64> {
        let (mut hash, mut piece) = (seed, 0);
        while piece < self.pieces {
            hash = mixed(hash, self.values.get(row * self.pieces + piece).wide());
            piece += 1;
        }
        Some(hash)
    }
}

impl Rows for Booleans {
    #[inline(always)]
    fn is_valid(self, row: u64) -> bool {
        self.valid.is_absent() || self.valid.get(row)
    }

    #[inline(always)]
    fn alike(self, one: u64, other: u64, _: Lane<'_>) -> Option<bool> {
        Some(self.values.get(one) == self.values.get(other))
    }
}

impl Rows for Column {
    #[inline(always)]
    fn is_valid(self, row: u64) -> bool {
        Column::is_valid(self, row)
    }

    #[inline(always)]
    fn alike(self, one: u64, other: u64, l: Lane<'_>) -> Option<bool> {
        let (one, other): (Row, Row) = (self.row(one, l)?, self.row(other, l)?);
        Some(one.len == other.len && one.order(other) == 1)
    }
}

impl Hashed for Column {
    #[inline(always)]
    fn hash(self, row: u64, seed: u64, l: Lane<'_>) -> Option<u64> {
        let row = self.row(row, l)?;
        let (mut hash, mut at) = (mixed(seed, row.len), 0);
        while at < row.len {
            let [low, high] = row.bytes(at);
            hash = mixed(mixed(hash, low), high);
            at += 16;
        }
        Some(hash)
    }
}

macro_rules! rows {
    ($args:expr, $t:ty) => {
        Fixed {
            values: $args.values.cast::<$t>(),
            pieces: $args.pieces,
            valid: Bits::new($args.valid, $args.valid_offset, $args.rows),
        }
    };
}

fn stretches_fixed<T: Unit>(args: &Stretches, wave: &mut Wave) {
    stretches(args, rows!(args, T), wave)
}

fn stretches_bits(args: &Stretches, wave: &mut Wave) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let values = Bits::new(args.values.cast(), args.pieces, args.rows);
    stretches(args, Booleans { values, valid }, wave)
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
    claim(args, rows!(args, T), wave)
}

fn claim_text(args: &Claim, wave: &mut Wave) {
    let column = Column::new(args.column, 0, wave);
    claim(args, column, wave)
}

/// What became of a row in the rounds before.
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
    settle(args, rows!(args, T), wave)
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
                // A row that is not where it should be, which was reported, is like no other: it counts as null.
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
