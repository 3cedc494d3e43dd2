//! Items to sort: a key in the upper bits of a number, the row in the lower ones.
//!
//! The one idea: no two items are equal, and of equal keys the earlier row is the smaller item. So any sort
//! of the numbers is a stable sort of the rows.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::cpu::memory::{self, Plain};

/// A number of 64 or 128 bits.
pub(super) trait Item: Plain + Ord + Default {
    const BITS: u32;
    /// Makes the item of a row that has no key yet.
    fn of_row(row: usize) -> Self;
    /// Returns the lowest bits, as a number.
    fn low(self) -> u64;
    /// Adds bits of a key, `shift` bits above the lowest.
    fn with(self, key: u128, shift: u32) -> Self;
    /// Adds bits of a key that has at most 64.
    fn with_word(self, key: u64, shift: u32) -> Self;
    /// Returns the bits that differ from another item's.
    fn differing(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    /// Removes the lowest bits.
    fn above(self, bits: u32) -> Self;
    /// The number of zeros above, and below, the bits that are set.
    fn zeros(self) -> (u32, u32);
    /// Stores the item as place `at` of memory that threads share.
    fn store(self, to: &[AtomicU64], at: usize);
}

impl Item for u64 {
    const BITS: u32 = 64;

    #[inline(always)]
    fn of_row(row: usize) -> u64 {
        row as u64
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self
    }

    #[inline(always)]
    fn with(self, key: u128, shift: u32) -> u64 {
        self.with_word(key as u64, shift)
    }

    #[inline(always)]
    fn with_word(self, key: u64, shift: u32) -> u64 {
        self | key << shift
    }

    #[inline(always)]
    fn differing(self, other: u64) -> u64 {
        self ^ other
    }

    #[inline(always)]
    fn or(self, other: u64) -> u64 {
        self | other
    }

    #[inline(always)]
    fn above(self, bits: u32) -> u64 {
        self >> bits
    }

    fn zeros(self) -> (u32, u32) {
        (self.leading_zeros(), self.trailing_zeros())
    }

    #[inline(always)]
    fn store(self, to: &[AtomicU64], at: usize) {
        to[at].store(self, Ordering::Relaxed);
    }
}

impl Item for u128 {
    const BITS: u32 = 128;

    #[inline(always)]
    fn of_row(row: usize) -> u128 {
        row as u128
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn with(self, key: u128, shift: u32) -> u128 {
        self | key << shift
    }

    #[inline(always)]
    fn with_word(self, key: u64, shift: u32) -> u128 {
        self | u128::from(key) << shift
    }

    #[inline(always)]
    fn differing(self, other: u128) -> u128 {
        self ^ other
    }

    #[inline(always)]
    fn or(self, other: u128) -> u128 {
        self | other
    }

    #[inline(always)]
    fn above(self, bits: u32) -> u128 {
        self >> bits
    }

    fn zeros(self) -> (u32, u32) {
        (self.leading_zeros(), self.trailing_zeros())
    }

    #[inline(always)]
    fn store(self, to: &[AtomicU64], at: usize) {
        let halves = &to[2 * at..2 * at + 2];
        let [first, second] = memory::halves(self);
        halves[0].store(first, Ordering::Relaxed);
        halves[1].store(second, Ordering::Relaxed);
    }
}

/// Returns the bits in which items differ.
pub(super) fn differing<I: Item>(items: &[I]) -> I {
    let Some(first) = items.first() else { return I::default() };
    items.iter().fold(I::default(), |all, item| all.or(item.differing(*first)))
}
