//! A conversion picked at run time: which one, between which native types, with which parameters.
//!
//! The one list of what exists: [`Recipe::visit`] turns the description back into types. Whoever has a
//! `match` over native types elsewhere has a second list.

use super::direct::{Cast, Truth};
use super::float::{Product, Quotient, Round};
use super::half::F16;
use super::scale::{Down, Up};
use super::temporal::{
    DayTimeToInterval, Days, DurationToInterval, IntervalToDuration, MonthsToInterval, TimeOfDay,
};
use super::wide::I256;
use super::words::{Parameter, WORDS, Words};
use super::{Conversion, Native};
use core::marker::PhantomData;

/// The native types, booleans (a bit each) aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Number {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
    I128,
    I256,
}

impl Number {
    /// Its width in bytes.
    pub const fn width(self) -> usize {
        match self {
            Number::I8 | Number::U8 => 1,
            Number::I16 | Number::U16 | Number::F16 => 2,
            Number::I32 | Number::U32 | Number::F32 => 4,
            Number::I64 | Number::U64 | Number::F64 => 8,
            Number::I128 => 16,
            Number::I256 => 32,
        }
    }
}

/// The ways to compute. The two types of a [`Recipe`] that has only one, to or from bits, are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Booleans to numbers: [`Truth::from_bool`].
    FromBits,
    /// Numbers to booleans: [`Truth::to_bool`].
    ToBits,
    /// [`Direct`]
    Direct,
    /// [`Up`]
    Up,
    /// [`Down`]
    Down,
    /// [`Round`]
    Round,
    /// [`Quotient`]
    Quotient,
    /// [`Product`]
    Product,
    /// [`Days`]
    Days,
    /// [`TimeOfDay`]
    TimeOfDay,
    /// [`DurationToInterval`]
    DurationToInterval,
    /// [`IntervalToDuration`]
    IntervalToDuration,
    /// [`MonthsToInterval`]
    MonthsToInterval,
    /// [`DayTimeToInterval`]
    DayTimeToInterval,
}

/// What to do to every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// How.
    pub operation: Operation,
    /// The native type read.
    pub from: Number,
    /// The native type written.
    pub to: Number,
    /// Whether some values do not fit; if not, the nulls of the result are those of the input.
    pub fallible: bool,
    /// The parameters.
    pub words: [u64; WORDS],
}

/// The conversion of [`Cast`]: no parameters.
pub struct Direct<A, B>(PhantomData<(A, B)>);

impl<A, B> Clone for Direct<A, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, B> Copy for Direct<A, B> {}

impl<A: Native + Cast<B>, B: Native> Conversion for Direct<A, B> {
    type From = A;
    type To = B;
    const ALWAYS: bool = <A as Cast<B>>::ALWAYS;
    #[inline(always)]
    fn convert(&self, x: A) -> (B, bool) {
        x.cast()
    }
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
    [] MonthsToInterval, MonthsToInterval;
    [] DayTimeToInterval, DayTimeToInterval;
}

/// Something generic over conversions.
pub trait Visitor {
    /// What it gives.
    type Output;
    /// Numbers to numbers.
    fn convert<C: Conversion<From: Native, To: Native> + Parameter>(self, conversion: C) -> Self::Output;
    /// Booleans to numbers.
    fn bits_to<B: Native + Truth>(self) -> Self::Output;
    /// Numbers to booleans.
    fn bits_from<A: Native + Truth>(self) -> Self::Output;
}

/// Runs the body with the native type of a number, if it is one of those listed.
macro_rules! with {
    ($number:expr, $t:ident = $($variant:ident)*, $body:expr) => {
        match $number {
            $(Number::$variant => {
                type $t = <tag::$variant as tag::Tag>::Native;
                $body
            })*
            #[allow(unreachable_patterns, reason = "some lists are complete")]
            _ => None,
        }
    };
}
pub(super) use with;

macro_rules! integer {
    ($number:expr, $t:ident, $body:expr) => {
        with!($number, $t = I8 I16 I32 I64 U8 U16 U32 U64, $body)
    };
}
macro_rules! plain {
    ($number:expr, $t:ident, $body:expr) => {
        with!($number, $t = I8 I16 I32 I64 U8 U16 U32 U64 F16 F32 F64, $body)
    };
}
macro_rules! decimal {
    ($number:expr, $t:ident, $body:expr) => { with!($number, $t = I32 I64 I128 I256, $body) };
}
macro_rules! float {
    ($number:expr, $t:ident, $body:expr) => { with!($number, $t = F16 F32 F64, $body) };
}
pub(super) use {decimal, float, integer};

/// The native type behind each name of [`Number`].
pub(super) mod tag {
    pub trait Tag {
        type Native;
    }

    macro_rules! tags {
        ($($name:ident = $t:ty;)*) => {$(
            pub enum $name {}
            impl Tag for $name {
                type Native = $t;
            }
        )*};
    }

    tags! {
        I8 = i8; I16 = i16; I32 = i32; I64 = i64; U8 = u8; U16 = u16; U32 = u32; U64 = u64;
        F16 = super::F16; F32 = f32; F64 = f64; I128 = i128; I256 = super::I256;
    }
}

impl Recipe {
    /// The recipe of a conversion.
    pub fn new<C: Conversion<From: Native, To: Native> + Parameter>(
        operation: Operation,
        conversion: C,
        fallible: bool,
    ) -> Recipe {
        let mut words = Words::new([0; WORDS]);
        conversion.write(&mut words);
        let (from, to) = (<C::From as Native>::NUMBER, <C::To as Native>::NUMBER);
        Recipe { operation, from, to, fallible, words: words.into_array() }
    }

    /// The recipe of a conversion without parameters between plain numbers.
    pub(super) fn direct(from: Number, to: Number) -> Recipe {
        let recipe = Recipe { operation: Operation::Direct, from, to, fallible: true, words: [0; WORDS] };
        let always = plain!(from, A, plain!(to, B, Some(<A as Cast<B>>::ALWAYS)));
        Recipe { fallible: always != Some(true), ..recipe }
    }

    /// The recipe from or to booleans, which always fit.
    pub(super) fn bits(operation: Operation, number: Number) -> Recipe {
        Recipe { operation, from: number, to: number, fallible: false, words: [0; WORDS] }
    }

    /// Calls the visitor with the conversion, or gives nothing for a combination that no plan makes.
    pub fn visit<V: Visitor>(&self, visitor: V) -> Option<V::Output> {
        macro_rules! convert {
            ($conversion:ty) => {
                Some(visitor.convert(<$conversion>::read(&mut Words::new(self.words))))
            };
        }
        /// Decimals to decimals and integers, and integers to decimals.
        macro_rules! scaled {
            ($conversion:ident) => {
                match (self.from, self.to) {
                    (Number::I32 | Number::I64 | Number::I128 | Number::I256, to) => {
                        decimal!(self.from, A, with!(
                            to,
                            B = I8 I16 I32 I64 U8 U16 U32 U64 I128 I256,
                            convert!($conversion<A, B>)
                        ))
                    }
                    (from, to) => integer!(from, A, decimal!(to, B, convert!($conversion<A, B>))),
                }
            };
        }
        match self.operation {
            Operation::FromBits => plain!(self.to, B, Some(visitor.bits_to::<B>())),
            Operation::ToBits => plain!(self.from, A, Some(visitor.bits_from::<A>())),
            Operation::Direct => plain!(self.from, A, plain!(self.to, B, convert!(Direct<A, B>))),
            Operation::Up => scaled!(Up),
            Operation::Down => scaled!(Down),
            Operation::Round => float!(self.from, A, decimal!(self.to, B, convert!(Round<A, B>))),
            Operation::Quotient => decimal!(self.from, A, float!(self.to, B, convert!(Quotient<A, B>))),
            Operation::Product => decimal!(self.from, A, float!(self.to, B, convert!(Product<A, B>))),
            Operation::Days => with!(self.to, B = I32 I64, convert!(Days<B>)),
            Operation::TimeOfDay => with!(self.to, B = I32 I64, convert!(TimeOfDay<B>)),
            Operation::DurationToInterval => convert!(DurationToInterval),
            Operation::IntervalToDuration => convert!(IntervalToDuration),
            Operation::MonthsToInterval => convert!(MonthsToInterval),
            Operation::DayTimeToInterval => convert!(DayTimeToInterval),
        }
    }
}
