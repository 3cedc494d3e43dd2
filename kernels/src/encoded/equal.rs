//! Rows that can be compared, and hashed: values of fixed width, bits, and text.

use crate::memory::{Bits, In};
use crate::target::{Lane, Value};
use crate::text::rows::{Column, Row};

/// Rows that can be compared. A comparison is `None` where a row's bytes are not inside its buffer.
pub(crate) trait Rows: Copy {
    fn is_valid(self, row: u64) -> bool;
    fn alike(self, one: u64, other: u64, l: Lane<'_>) -> Option<bool>;
}

/// Rows that choose a slot by their contents.
pub(crate) trait Hashed: Rows {
    fn hash(self, row: u64, seed: u64, l: Lane<'_>) -> Option<u64>;
}

/// A value that is compared at once.
pub(crate) trait Unit: Value + PartialEq {
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

/// Rows that are values of fixed width.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<T> {
    pub values: In<T>,
    pub pieces: u64,
    pub valid: Bits,
}

/// Rows that are single bits.
#[derive(Clone, Copy)]
pub(crate) struct Booleans {
    pub values: Bits,
    pub valid: Bits,
}

impl<T: Unit> Fixed<T> {
    #[inline(always)]
    pub fn new(values: In<u8>, pieces: u64, valid: Bits) -> Fixed<T> {
        Fixed { values: values.cast(), pieces, valid }
    }
}

impl Booleans {
    /// Rows that are the bits of `values` from an offset on.
    #[inline(always)]
    pub fn new(values: In<u8>, offset: u64, rows: u64, valid: Bits) -> Booleans {
        Booleans { values: Bits::new(values.cast(), offset, rows), valid }
    }
}

/// Adds a word to a hash. Every bit of both reaches the upper half, which then reaches the lower one.
#[inline(always)]
pub fn mixed(hash: u64, word: u64) -> u64 {
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

impl Hashed for Booleans {
    #[inline(always)]
    fn hash(self, row: u64, seed: u64, _: Lane<'_>) -> Option<u64> {
        Some(mixed(seed, self.values.get(row).into()))
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
