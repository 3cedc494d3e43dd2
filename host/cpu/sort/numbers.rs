//! Numbers as parts of keys: as many bits as their column spans.

use std::ops::Range;

use crate::cpu::bitmap::Bits;
use crate::rules::Order;

/// Numbers of one to eight bytes, or words of wider values.
pub(super) struct Numbers<'a> {
    /// The bytes from the first number on, from one to the next, and of a number.
    pub bytes: &'a [u8],
    pub stride: usize,
    pub width: usize,
    /// The masks of [`Order::flips`](crate::rules::Order::flips).
    pub flips: [u64; 2],
    /// All ones if the order is descending, otherwise zero.
    pub invert: u64,
    /// The smallest flipped number, and the bits of the span.
    pub base: u64,
    pub bits: u32,
}

impl<'a> Numbers<'a> {
    /// Describes numbers that may be any of their width.
    pub fn new(bytes: &'a [u8], stride: usize, width: usize, order: Order, descending: bool) -> Numbers<'a> {
        let invert = if descending { u64::MAX } else { 0 };
        let flips = order.flips(width);
        let mut numbers = Numbers { bytes, stride, width, flips, invert, base: 0, bits: 0 };
        numbers.within((0, u64::MAX >> (64 - 8 * width)));
        numbers
    }

    /// Sets the least and the greatest flipped number that there is. If the least is greater, there is none.
    pub fn within(&mut self, (least, most): (u64, u64)) {
        (self.bits, self.base) = match least <= most {
            true => (64 - (most - least).leading_zeros(), if self.invert == 0 { least } else { !most }),
            false => (0, 0),
        };
    }

    /// Returns the number of a row in its order: below, and as wide as, the span.
    #[inline(always)]
    pub fn key(&self, row: usize) -> u64 {
        (self.flipped(row) ^ self.invert).wrapping_sub(self.base)
    }

    #[inline(always)]
    fn flipped(&self, row: usize) -> u64 {
        let start = row * self.stride;
        let unused = 64 - 8 * self.width as u32;
        // Eight bytes, of which the number may be the first: one load for all widths.
        let value = match self.bytes[start..].first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes) << unused,
            None => self.last(start) << unused,
        };
        let negative = (value as i64 >> 63) as u64;
        (value >> unused) ^ self.flips[0] ^ (self.flips[1] & negative)
    }

    /// Reads a number that fewer than eight bytes are left of.
    #[inline(never)]
    fn last(&self, start: usize) -> u64 {
        let mut wide = [0; 8];
        wide[..self.width].copy_from_slice(&self.bytes[start..start + self.width]);
        u64::from_le_bytes(wide)
    }

    /// Returns the least and the greatest flipped number of some valid rows; the least is greater if there
    /// are none.
    pub fn span(&self, valid: Option<Bits<'_>>, rows: Range<usize>) -> (u64, u64) {
        let wider = |(least, most): (u64, u64), row| {
            let key = self.flipped(row);
            (least.min(key), most.max(key))
        };
        match valid {
            None => rows.fold((u64::MAX, 0), wider),
            Some(valid) => rows.filter(|row| valid.get(*row)).fold((u64::MAX, 0), wider),
        }
    }
}
