//! A row whose first bytes a lane holds in registers.
//!
//! The one idea: a text of a number or an instant nearly always has at most 32 bytes. They are loaded once,
//! by blocks of 16, and readers then look at registers, byte by byte and word by word.

use crate::text::bytes::Bytes;
use crate::text::rows::Row;

/// The number of bytes held.
const BYTES: u64 = 32;

/// A row and its first 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct Held {
    row: Row,
    // Single words, not an array, because values at a variable index have to be in memory.
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

impl Held {
    /// Loads the first bytes of a row.
    #[inline(always)]
    pub fn of(row: Row) -> Held {
        let [a, b] = if row.len > 0 { row.bytes(0) } else { [0; 2] };
        let [c, d] = if row.len > 16 { row.bytes(16) } else { [0; 2] };
        Held { row, a, b, c, d }
    }

    /// Returns word `i` of four, and the one after it.
    #[inline(always)]
    fn two(self, i: u64) -> (u64, u64) {
        let (first, second, third) = if i & 2 == 0 { (self.a, self.b, self.c) } else { (self.c, self.d, 0) };
        if i & 1 == 0 { (first, second) } else { (second, third) }
    }
}

impl Bytes for Held {
    #[inline(always)]
    fn len(self) -> u64 {
        self.row.len
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        if i < BYTES { (self.two(i / 8).0 >> (8 * (i % 8))) as u8 } else { self.row.at(i) }
    }

    #[inline(always)]
    fn eight(self, i: u64) -> u64 {
        if i > BYTES - 8 && self.row.len > BYTES {
            return self.row.eight(i);
        }
        // Byte 32 of a text of 32 bytes does not exist, and is not in any word.
        let (low, high) = if i < BYTES { self.two(i / 8) } else { (0, 0) };
        let by = 8 * (i % 8) as u32;
        low >> by | high << 1 << (63 - by)
    }
}
