//! The writer of each type, in one list for devices and the host.

use core::marker::PhantomData;

use super::boolean::write_boolean;
use super::date::{write_date32, write_date64};
use super::decimal::write_decimal;
use super::duration::write_duration;
use super::float::{write_f16, write_f32, write_f64};
use super::integer::write_integer;
use super::interval::write_interval;
use super::sink::{Backwards, Sink};
use super::time::write_time;
use super::timestamp::write_instant;
use crate::map::function::{F16, U256};
use crate::text::unit::{IntervalKind, Unit};
use crate::text::words::{Table, Words};

/// Writes values of a type as text.
pub trait Writer: Copy {
    /// The access to the words that describe the type.
    type Words: Words;
    /// Creates the writer of the type that words describe.
    fn of(words: Self::Words) -> Self;
    /// Writes the value that has these bits; those beyond `width` bytes are zero. The sink is filled from one
    /// end or the other. Returns whether the value has a text.
    fn write<S: Sink + Backwards>(self, bits: U256, width: u64, sink: &mut S) -> bool;
}

/// The writer of booleans. It has no words.
#[derive(Clone, Copy)]
pub struct Booleans<W>(PhantomData<W>);

impl<W: Words> Writer for Booleans<W> {
    type Words = W;

    #[inline(always)]
    fn of(_: W) -> Booleans<W> {
        Booleans(PhantomData)
    }

    #[inline(always)]
    fn write<S: Sink + Backwards>(self, bits: U256, _: u64, sink: &mut S) -> bool {
        write_boolean(bits.low != 0, sink);
        true
    }
}

/// The writer of integers. The word is whether they are signed.
#[derive(Clone, Copy)]
pub struct Integers<W> {
    signed: bool,
    words: PhantomData<W>,
}

impl<W: Words> Writer for Integers<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Integers<W> {
        Integers { signed: words.get(0) != 0, words: PhantomData }
    }

    #[inline(always)]
    fn write<S: Sink + Backwards>(self, bits: U256, width: u64, sink: &mut S) -> bool {
        let value = signed(bits.low as u64, width);
        let negative = self.signed && value < 0;
        write_integer(negative, if negative { value.unsigned_abs() } else { bits.low as u64 }, sink);
        true
    }
}

/// The writer of decimals of up to 16 bytes. The word is the scale.
#[derive(Clone, Copy)]
pub struct Decimals<W> {
    scale: i32,
    words: PhantomData<W>,
}

impl<W: Words> Writer for Decimals<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Decimals<W> {
        Decimals { scale: words.get(0) as i32, words: PhantomData }
    }

    #[inline(always)]
    fn write<S: Sink + Backwards>(self, bits: U256, width: u64, sink: &mut S) -> bool {
        let above = 128 - 8 * width as u32;
        let value = (bits.low << above) as i128 >> above;
        let magnitude = value.unsigned_abs();
        // Most magnitudes are small, and a division of 64 bits costs a fraction of one of 128 bits.
        if magnitude >> 64 == 0 {
            write_decimal(value < 0, magnitude as u64, self.scale, sink);
        } else {
            write_decimal(value < 0, magnitude, self.scale, sink);
        }
        true
    }
}

/// The writer of decimals of 32 bytes. The word is the scale.
#[derive(Clone, Copy)]
pub struct WideDecimals<W> {
    scale: i32,
    words: PhantomData<W>,
}

impl<W: Words> Writer for WideDecimals<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> WideDecimals<W> {
        WideDecimals { scale: words.get(0) as i32, words: PhantomData }
    }

    #[inline(always)]
    fn write<S: Sink + Backwards>(self, bits: U256, _: u64, sink: &mut S) -> bool {
        let negative = bits.high >> 127 != 0;
        let magnitude = if negative { U256::ZERO.wrapping_sub(bits) } else { bits };
        write_decimal(negative, magnitude, self.scale, sink);
        true
    }
}

/// Extends the sign of a number of `width` bytes.
#[inline(always)]
fn signed(bits: u64, width: u64) -> i64 {
    let above = 64 - 8 * width as u32;
    (bits << above) as i64 >> above
}

macro_rules! floats {
    ($($(#[$doc:meta])* $writer:ident $write:ident |$bits:ident| $value:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $writer<W: Words>(W::Powers);

        impl<W: Words> Writer for $writer<W> {
            type Words = W;

            #[inline(always)]
            fn of(words: W) -> $writer<W> {
                $writer(words.powers(0))
            }

            #[inline(always)]
            fn write<S: Sink + Backwards>(self, bits: U256, _: u64, sink: &mut S) -> bool {
                let $bits = bits.low as u64;
                $write($value, self.0, sink);
                true
            }
        }
    )+};
}

floats! {
    /// The writer of halves. The words are [`POWERS`](crate::text::powers::POWERS).
    Halves write_f16 |bits| F16(bits as u16);
    /// The writer of singles. The words are [`POWERS`](crate::text::powers::POWERS).
    Singles write_f32 |bits| f32::from_bits(bits as u32);
    /// The writer of doubles. The words are [`POWERS`](crate::text::powers::POWERS).
    Doubles write_f64 |bits| f64::from_bits(bits);
}

macro_rules! told_in_one_word {
    ($($(#[$doc:meta])* $writer:ident $told:ty = |$word:ident| $of:expr, |$value:ident, $width:ident, $by:ident, $sink:ident| $write:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $writer<W>($told, PhantomData<W>);

        impl<W: Words> Writer for $writer<W> {
            type Words = W;

            #[inline(always)]
            fn of(words: W) -> $writer<W> {
                let $word = words.get(0);
                $writer($of, PhantomData)
            }

            #[inline(always)]
            fn write<S: Sink + Backwards>(self, $value: U256, $width: u64, $sink: &mut S) -> bool {
                let $by = self.0;
                $write
            }
        }
    )+};
}

told_in_one_word! {
    /// The writer of days. The word is whether they are counted in milliseconds.
    Days bool = |word| word != 0, |bits, width, milliseconds, sink| match milliseconds {
        true => write_date64(signed(bits.low as u64, width), sink),
        false => write_date32(bits.low as i32, sink),
    };
    /// The writer of times of day. The word is the [unit](Unit::cuts).
    Times Unit = |word| Unit::new(word as u32), |bits, width, unit, sink| write_time(signed(bits.low as u64, width), unit, sink);
    /// The writer of durations. The word is the [unit](Unit::cuts).
    Durations Unit = |word| Unit::new(word as u32), |bits, width, unit, sink| {
        write_duration(signed(bits.low as u64, width), unit, sink)
    };
    /// The writer of intervals. The word is the [kind](IntervalKind::new).
    Intervals IntervalKind = |word| IntervalKind::new(word), |bits, width, kind, sink| {
        let above = 128 - 8 * width as u32;
        write_interval((bits.low << above) as i128 >> above, kind, sink)
    };
}

/// The writer of timestamps. The words are the [unit](Unit::cuts), whether the type has a zone, and the zone
/// as a [`Table`], which is UTC if the type has none.
#[derive(Clone, Copy)]
pub struct Timestamps<W> {
    unit: Unit,
    zoned: bool,
    zone: Table<W>,
}

impl<W: Words> Writer for Timestamps<W> {
    type Words = W;

    #[inline(always)]
    fn of(words: W) -> Timestamps<W> {
        let unit = Unit::new(words.get(0) as u32);
        Timestamps { unit, zoned: words.get(1) != 0, zone: Table::new(words, 2) }
    }

    #[inline(always)]
    fn write<S: Sink + Backwards>(self, bits: U256, _: u64, sink: &mut S) -> bool {
        write_instant(bits.low as u64 as i64, self.unit, self.zone, self.zoned, sink)
    }
}

/// Passes the list to `$macro`: a number, the names of the entries, and the writer.
macro_rules! writers {
    ($macro:ident) => {
        $macro! {
            Booleans 0 measure_boolean write_boolean;
            Integers 1 measure_integer write_integer;
            Decimals 2 measure_decimal_b16 write_decimal_b16;
            WideDecimals 3 measure_decimal_b32 write_decimal_b32;
            Halves 4 measure_f16 write_f16;
            Singles 5 measure_f32 write_f32;
            Doubles 6 measure_f64 write_f64;
            Days 7 measure_date write_date;
            Times 8 measure_time write_time;
            Durations 9 measure_duration write_duration;
            Timestamps 10 measure_timestamp write_timestamp;
            Intervals 11 measure_interval write_interval;
        }
    };
}
pub(super) use writers;

/// An operation on a writer whose type is only known at run time.
pub trait WithWriter {
    /// The result of the operation.
    type Output;
    /// Runs the operation on a writer.
    fn with<W: Writer>(self, writer: W) -> Self::Output;
}

macro_rules! writing {
    ($($writer:ident $key:literal $measure:ident $write:ident;)+) => {
        /// The writer of a type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Writing {
            $(#[doc = concat!("[`", stringify!($writer), "`]")] $writer = $key,)+
        }

        impl Writing {
            /// Runs an operation on this writer, for the type that words describe.
            pub fn visit<V: WithWriter>(self, words: &[u64], visitor: V) -> V::Output {
                match self {
                    $(Writing::$writer => visitor.with($writer::of(words)),)+
                }
            }
        }
    };
}
host_only! {
    writers! { writing }
}
