//! Values as text: what arrow-cast reads and writes, the same on every machine.
//!
//! The one idea: what a text says, and what says a value, are plain functions of bytes: [`Bytes`] to read from and a [`Sink`] to
//! write to. They know no rows, nulls, layouts or devices. A GPU's lane has a row; so has an iteration on the CPU. Their authority
//! is arrow-cast: whatever it accepts is accepted, with the same value, and nothing else.
//!
//! Tables are not in the code, because device images have none: they are in memory, and a function is told where.

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

/// What a text says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// A value.
    Value(T),
    /// None of the type.
    Nothing,
    /// A value that only [`Reader::read_hard`](readers::Reader::read_hard) finds out.
    Hard,
    /// It names a time zone, of which only a database of them knows the rules.
    Elsewhere,
}

impl<T> Said<T> {
    /// The same of another value, where there is one.
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

/// Where a value is written, byte after byte.
pub trait Sink {
    /// The next byte.
    fn put(&mut self, byte: u8);

    /// The next `count` bytes, the lowest of a word, the first one lowest. Not more than eight.
    #[inline(always)]
    fn put_all(&mut self, bytes: u64, count: u32) {
        let mut i = 0;
        while i < count {
            self.put((bytes >> (8 * i)) as u8);
            i += 1;
        }
    }

    /// The next `count` bytes, the lowest of these sixteen, the first one lowest.
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

/// Where a value is written from its last byte to its first, as numbers come out of divisions.
pub trait Backwards {
    /// The byte before those that are there.
    fn put_before(&mut self, byte: u8);

    /// The `count` bytes before those that are there, the lowest of a word, the first one lowest. Not more than eight.
    #[inline(always)]
    fn put_all_before(&mut self, bytes: u64, count: u32) {
        let mut i = count;
        while i > 0 {
            i -= 1;
            self.put_before((bytes >> (8 * i)) as u8);
        }
    }
}

/// Only how many bytes there would be.
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
