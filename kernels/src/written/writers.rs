//! How values of each type are written: the one list of it, for devices and the host.

use core::marker::PhantomData;

use super::date::{write_date32, write_date64};
use super::duration::write_duration;
use super::float_write::{write_f16, write_f32, write_f64};
use super::interval::{Kind, write_interval};
use super::time::write_time;
use super::timestamp::write_instant;
use super::unit::Unit;
use super::words::{Table, Words};
use super::{Backwards, Sink, write_boolean, write_decimal, write_integer};
use crate::function::{F16, U256};

/// Writes values as text.
pub trait Writer: Copy {
    /// What it is told in.
    type Words: Words;
    /// The writer of a type that words tell of.
    fn of(words: Self::Words) -> Self;
    /// Writes the value of these bits, of which those beyond `width` bytes are zero, from one end or the other, and says whether it
    /// has a text.
    fn write<S: Sink + Backwards>(self, bits: U256, width: u64, sink: &mut S) -> bool;
}

/// Booleans. There are no words.
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

/// Integers. The word is whether they have a sign.
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

/// Decimals of up to 16 bytes. The word is the scale.
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
        // Most are short, and a division of 64 bits is a fraction of one of 128.
        if magnitude >> 64 == 0 {
            write_decimal(value < 0, magnitude as u64, self.scale, sink);
        } else {
            write_decimal(value < 0, magnitude, self.scale, sink);
        }
        true
    }
}

/// Decimals of 32 bytes, likewise.
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

/// A number of so many bytes, with its sign.
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
    /// Halves. The words are [`POWERS`](super::powers::POWERS).
    Halves write_f16 |bits| F16(bits as u16);
    /// Singles. The words are [`POWERS`](super::powers::POWERS).
    Singles write_f32 |bits| f32::from_bits(bits as u32);
    /// Doubles. The words are [`POWERS`](super::powers::POWERS).
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
    /// Days. The word is whether they are counted in milliseconds.
    Days bool = |word| word != 0, |bits, width, milliseconds, sink| match milliseconds {
        true => write_date64(signed(bits.low as u64, width), sink),
        false => write_date32(bits.low as i32, sink),
    };
    /// Times of day. The word is the [unit](Unit::cuts).
    Times Unit = |word| Unit::new(word as u32), |bits, width, unit, sink| write_time(signed(bits.low as u64, width), unit, sink);
    /// Durations. The word is the [unit](Unit::cuts).
    Durations Unit = |word| Unit::new(word as u32), |bits, width, unit, sink| {
        write_duration(signed(bits.low as u64, width), unit, sink)
    };
    /// Intervals. The word is the [kind](Kind::new).
    Intervals Kind = |word| Kind::new(word), |bits, width, kind, sink| {
        let above = 128 - 8 * width as u32;
        write_interval((bits.low << above) as i128 >> above, kind, sink)
    };
}

/// Timestamps. The words are the [unit](Unit::cuts), whether the type has a zone, and that as a [`Table`]: UTC where it has none.
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

/// Gives `$macro` the list: a number, entries' names, and the writer.
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

/// What is done with a writer whose type is known at run time only.
pub trait WithWriter {
    /// What comes of it.
    type Output;
    /// Does it.
    fn with<W: Writer>(self, writer: W) -> Self::Output;
}

macro_rules! writing {
    ($($writer:ident $key:literal $measure:ident $write:ident;)+) => {
        /// Which writer a type has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Writing {
            $(#[doc = concat!("[`", stringify!($writer), "`]")] $writer = $key,)+
        }

        impl Writing {
            /// Does something with the writer that words tell of.
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
