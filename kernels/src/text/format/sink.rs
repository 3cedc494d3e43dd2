//! Destinations that receive a value's bytes.

/// A destination that receives a value's bytes in order.
pub trait Sink {
    /// Whether bytes are counted and not looked at.
    const ONLY_COUNTS: bool = false;

    /// Writes the next byte.
    fn put(&mut self, byte: u8);

    /// Writes the next `count` bytes, at most eight: the lowest ones of a word, of which the lowest is the
    /// first.
    #[inline(always)]
    fn put_all(&mut self, bytes: u64, count: u32) {
        let mut i = 0;
        while i < count {
            self.put((bytes >> (8 * i)) as u8);
            i += 1;
        }
    }

    /// Writes the next `count` bytes: the lowest ones of these sixteen, of which the lowest is the first.
    #[inline(always)]
    fn put_some(&mut self, bytes: u128, count: u32) {
        let (mut bytes, mut left) = (bytes, count);
        while left > 0 {
            self.put(bytes as u8);
            bytes >>= 8;
            left -= 1;
        }
    }
}

/// A destination that receives a value from its last byte to its first, in the order in which divisions
/// compute digits.
pub trait Backwards {
    /// Writes the byte before those already written.
    fn put_before(&mut self, byte: u8);

    /// Writes the `count` bytes before those already written, at most eight: the lowest ones of a word, of
    /// which the lowest is the first.
    #[inline(always)]
    fn put_all_before(&mut self, bytes: u64, count: u32) {
        let mut i = count;
        while i > 0 {
            i -= 1;
            self.put_before((bytes >> (8 * i)) as u8);
        }
    }
}

/// A destination that only counts the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length(pub u32);

impl Sink for Length {
    const ONLY_COUNTS: bool = true;

    #[inline(always)]
    fn put(&mut self, _: u8) {
        self.0 += 1;
    }

    #[inline(always)]
    fn put_all(&mut self, _: u64, count: u32) {
        self.0 += count;
    }

    #[inline(always)]
    fn put_some(&mut self, _: u128, count: u32) {
        self.0 += count;
    }
}

impl Backwards for Length {
    #[inline(always)]
    fn put_before(&mut self, _: u8) {
        self.0 += 1;
    }

    #[inline(always)]
    fn put_all_before(&mut self, _: u64, count: u32) {
        self.0 += count;
    }
}
