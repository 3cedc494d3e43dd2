//! Parameters as machine words, in which the host passes them to a kernel.

use super::convert::{Direct, FromBool, ToBool};
use super::divide::Divisor;
use super::float::{Decimal, Product, Quotient, Round};
use super::integer::{Integer, Magnitude};
use super::scale::{Bounds, Down, Up};
use super::temporal::{
    DayTimeToInterval, Days, DurationToInterval, IntervalToDuration, MonthsToInterval, TimeOfDay,
};
use super::wide::{I256, U256};
use core::marker::PhantomData;

/// The number of words in the largest set of parameters: that of a division of 256 bits.
pub const WORDS: usize = 22;

/// A sequence of words, written or read from the front.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    words: [u64; WORDS],
    next: usize,
}

impl Words {
    /// Starts at the first of `words`, to read them or to write over them.
    #[inline(always)]
    pub const fn new(words: [u64; WORDS]) -> Words {
        Words { words, next: 0 }
    }

    /// Returns all the words; those never written are zero.
    #[inline(always)]
    pub fn into_array(self) -> [u64; WORDS] {
        self.words
    }

    #[inline(always)]
    fn push(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.next) {
            *place = word;
        }
        self.next += 1;
    }

    /// Reads the next word. It cannot panic, so kernels contain no panic code.
    #[inline(always)]
    fn pull(&mut self) -> u64 {
        let word = self.words.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        word
    }
}

/// A value that travels as words.
pub trait Parameter: Copy {
    /// Appends the value to the words.
    fn write(&self, to: &mut Words);
    /// Takes the value from the front of the words.
    fn read(from: &mut Words) -> Self;
}

macro_rules! one_word {
    ($($t:ty)*) => {$(
        impl Parameter for $t {
            #[inline(always)]
            fn write(&self, to: &mut Words) { to.push(*self as u64); }
            #[inline(always)]
            fn read(from: &mut Words) -> Self { from.pull() as $t }
        }
    )*};
}

one_word! { i8 i16 i32 i64 u8 u16 u32 u64 }

impl Parameter for f64 {
    #[inline(always)]
    fn write(&self, to: &mut Words) {
        to.push(self.to_bits());
    }
    #[inline(always)]
    fn read(from: &mut Words) -> Self {
        f64::from_bits(from.pull())
    }
}

impl Parameter for u128 {
    #[inline(always)]
    fn write(&self, to: &mut Words) {
        to.push(*self as u64);
        to.push((*self >> 64) as u64);
    }
    #[inline(always)]
    fn read(from: &mut Words) -> Self {
        let low = from.pull() as u128;
        low | (from.pull() as u128) << 64
    }
}

impl Parameter for i128 {
    #[inline(always)]
    fn write(&self, to: &mut Words) {
        (*self as u128).write(to);
    }
    #[inline(always)]
    fn read(from: &mut Words) -> Self {
        u128::read(from) as i128
    }
}

impl Parameter for [u64; 5] {
    #[inline(always)]
    fn write(&self, to: &mut Words) {
        self.iter().for_each(|word| to.push(*word));
    }
    #[inline(always)]
    fn read(from: &mut Words) -> Self {
        [from.pull(), from.pull(), from.pull(), from.pull(), from.pull()]
    }
}

/// The parameters of a structure are those of its fields, in order.
macro_rules! fields {
    ($([$($generics:tt)*] $t:ty { $($field:ident)* } $($marker:ident)?;)*) => {$(
        impl<$($generics)*> Parameter for $t {
            #[inline(always)]
            fn write(&self, to: &mut Words) { $(self.$field.write(to);)* }
            #[inline(always)]
            fn read(from: &mut Words) -> Self {
                $(let $field = Parameter::read(from);)*
                Self { $($field,)* $($marker: PhantomData)? }
            }
        }
    )*};
}

fields! {
    [] U256 { low high };
    [] I256 { low high };
    [A: Integer + Parameter] Bounds<A> { least greatest };
    [M: Magnitude + Parameter] Divisor<M> { value reciprocal shift };
    [A: Integer + Parameter, B: Integer + Parameter] Up<A, B> { bounds factor addend };
    [A: Integer<Magnitude: Parameter> + Parameter, B: Copy] Down<A, B> { bounds divisor round_from addend } to;
    [F: Copy, B: Integer<Magnitude: Parameter>] Round<F, B> { factor limit } from;
    [A: Decimal<Significand: Parameter>, F: Copy] Quotient<A, F> { divisor shift reciprocal } to;
    [A: Copy, F: Copy] Product<A, F> { factor exponent } types;
    [B: Copy] Days<B> { bounds day offset offset_days factor } to;
    [B: Copy] TimeOfDay<B> { bounds day offset factor divisor } to;
    [] DurationToInterval { bounds factor };
    [] IntervalToDuration { divisor };
}

macro_rules! no_parameters {
    ($([$($generics:tt)*] $t:ty, $value:expr;)*) => {$(
        impl<$($generics)*> Parameter for $t {
            #[inline(always)]
            fn write(&self, _: &mut Words) {}
            #[inline(always)]
            fn read(_: &mut Words) -> Self { $value }
        }
    )*};
}

no_parameters! {
    [A, B] Direct<A, B>, Direct(PhantomData);
    [B: Copy] FromBool<B>, FromBool(PhantomData);
    [A: Copy] ToBool<A>, ToBool(PhantomData);
    [] MonthsToInterval, MonthsToInterval;
    [] DayTimeToInterval, DayTimeToInterval;
}
