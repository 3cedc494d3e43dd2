//! Values as text: the texts that arrow-cast reads and writes, the same on every machine.
//!
//! The one idea: reading and writing are plain functions of bytes, with [`Bytes`] to read from and a [`Sink`]
//! to write to. They know no rows, nulls, layouts or devices; a GPU's lane has a row, and so has an iteration
//! on the CPU. arrow-cast is the reference: the functions accept the texts that it accepts, with the same
//! values, and no others.
//!
//! Device images have no data, so tables are in memory, and a function receives their address.

mod boolean;
pub mod calendar;
pub mod date;
mod decimal;
pub mod digits;
pub mod duration;
mod figures;
pub mod float_digits;
pub mod float_exact;
pub mod float_read;
pub mod float_write;
mod held;
mod integer;
pub mod interval;
mod moment;
mod pieces;
mod plain;
pub mod powers;
pub mod readers;
pub mod reading;
pub mod time;
pub mod timestamp;
pub mod unit;
pub mod words;
pub mod writers;
pub mod writing;
pub mod zone;
pub mod zoned;
pub mod zoning;

pub use crate::text::Bytes;
pub use boolean::{read_boolean, write_boolean};
pub use decimal::{Form, read_decimal, write_decimal};
pub use integer::{read_integer, write_integer};

/// The result of reading a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// The text gives this value.
    Value(T),
    /// The text gives no value of the type.
    Nothing,
    /// The text may give a value that only [`Reader::read_hard`](readers::Reader::read_hard) can compute.
    Hard,
    /// The text names a time zone, whose rules only a database of time zones has.
    Elsewhere,
}

impl<T> Said<T> {
    /// Applies a function to the value, if there is one.
    #[inline(always)]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Said::Value(value) => Said::Value(change(value)),
            Said::Nothing => Said::Nothing,
            Said::Hard => Said::Hard,
            Said::Elsewhere => Said::Elsewhere,
        }
    }
}

impl<T> From<Option<T>> for Said<T> {
    #[inline(always)]
    fn from(value: Option<T>) -> Said<T> {
        match value {
            Some(value) => Said::Value(value),
            None => Said::Nothing,
        }
    }
}

/// A destination that receives a value's bytes in order.
pub trait Sink {
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
