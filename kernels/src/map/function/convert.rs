//! Functions on values without parameters: between integers, floats and booleans.
//!
//! They mean the same as arrow-cast's `num_cast`. An integer that the target cannot hold does not fit. A
//! float loses its fraction and then must fit, so -0.9 is 0u8 and NaN fits nowhere. Every number fits a
//! float, rounded to nearest even. Halves are reached through `f32`, which rounds twice from `f64` and `i64`.

use core::marker::PhantomData;

use super::half::{F16, f32_to_f64, f64_to_f32};
use super::{Bit, Native, ValueFunction};
use crate::target::Truncate;

/// The function that converts as [`Cast`] says.
pub struct Direct<A, B>(pub PhantomData<(A, B)>);

impl<A, B> Clone for Direct<A, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, B> Copy for Direct<A, B> {}

impl<A: Native + Cast<B>, B: Native> ValueFunction for Direct<A, B> {
    type From = A;
    type To = B;
    const ALWAYS: bool = <A as Cast<B>>::ALWAYS;
    #[inline(always)]
    fn call(&self, x: A) -> (B, bool) {
        x.cast()
    }
}

/// Converts booleans to numbers: [`Truth::from_bool`].
#[derive(Clone, Copy)]
pub struct FromBool<B>(pub PhantomData<B>);

impl<B: Native + Truth> ValueFunction for FromBool<B> {
    type From = Bit;
    type To = B;
    const ALWAYS: bool = true;
    #[inline(always)]
    fn call(&self, x: Bit) -> (B, bool) {
        (B::from_bool(x.is_set()), true)
    }
}

/// Converts numbers to booleans: [`Truth::to_bool`].
#[derive(Clone, Copy)]
pub struct ToBool<A>(pub PhantomData<A>);

impl<A: Native + Truth> ValueFunction for ToBool<A> {
    type From = A;
    type To = Bit;
    const ALWAYS: bool = true;
    #[inline(always)]
    fn call(&self, x: A) -> (Bit, bool) {
        (Bit::new(x.to_bool()), true)
    }
}

/// A native number that converts to `To`.
pub trait Cast<To>: Copy {
    /// Whether every value fits, so that the flag is constant.
    const ALWAYS: bool;
    /// The converted value, and whether it fits. If it does not, the value is meaningless.
    fn cast(self) -> (To, bool);
}

macro_rules! integer_to_integer {
    ($($from:ty => $($to:ty)*;)*) => {$($(
        impl Cast<$to> for $from {
            #[allow(unused_comparisons, reason = "unsigned integers are never negative")]
            const ALWAYS: bool = <$from>::MIN >= 0 && <$to>::MIN >= 0 && <$to>::BITS >= <$from>::BITS
                || <$to>::MIN < 0 && <$to>::BITS >= <$from>::BITS + (<$from>::MIN >= 0) as u32;
            #[inline(always)]
            #[allow(unused_comparisons, reason = "one of the bounds can be the type's own")]
            #[allow(clippy::manual_range_contains, reason = "both comparisons, no branch")]
            fn cast(self) -> ($to, bool) {
                const LEAST: $from = if <$to>::MIN as i128 > <$from>::MIN as i128 { <$to>::MIN as $from } else { <$from>::MIN };
                const GREATEST: $from = if (<$to>::MAX as i128) < <$from>::MAX as i128 { <$to>::MAX as $from } else { <$from>::MAX };
                (self as $to, (self >= LEAST) & (self <= GREATEST))
            }
        }
    )*)*};
}

integer_to_integer! {
    i8 => i8 i16 i32 i64 u8 u16 u32 u64;
    i16 => i8 i16 i32 i64 u8 u16 u32 u64;
    i32 => i8 i16 i32 i64 u8 u16 u32 u64;
    i64 => i8 i16 i32 i64 u8 u16 u32 u64;
    u8 => i8 i16 i32 i64 u8 u16 u32 u64;
    u16 => i8 i16 i32 i64 u8 u16 u32 u64;
    u32 => i8 i16 i32 i64 u8 u16 u32 u64;
    u64 => i8 i16 i32 i64 u8 u16 u32 u64;
}

macro_rules! integer_and_float {
    ($($t:ty)*) => {$(
        impl Cast<f32> for $t {
            const ALWAYS: bool = true;
            #[inline(always)]
            fn cast(self) -> (f32, bool) { (self as f32, true) }
        }
        impl Cast<f64> for $t {
            const ALWAYS: bool = true;
            #[inline(always)]
            fn cast(self) -> (f64, bool) { (self as f64, true) }
        }
        impl Cast<F16> for $t {
            const ALWAYS: bool = true;
            #[inline(always)]
            fn cast(self) -> (F16, bool) { (F16::from_f32(self as f32), true) }
        }
        impl Cast<$t> for f32 {
            const ALWAYS: bool = false;
            #[inline(always)]
            fn cast(self) -> ($t, bool) { self.truncate() }
        }
        impl Cast<$t> for f64 {
            const ALWAYS: bool = false;
            #[inline(always)]
            fn cast(self) -> ($t, bool) { self.truncate() }
        }
        impl Cast<$t> for F16 {
            const ALWAYS: bool = false;
            #[inline(always)]
            fn cast(self) -> ($t, bool) { self.to_f32().cast() }
        }
    )*};
}

integer_and_float! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! float_to_float {
    ($($from:ty => $to:ty, |$value:ident| $convert:expr;)*) => {$(
        impl Cast<$to> for $from {
            const ALWAYS: bool = true;
            #[inline(always)]
            fn cast(self) -> ($to, bool) { let $value = self; ($convert, true) }
        }
    )*};
}

float_to_float! {
    F16 => F16, |x| x;
    F16 => f32, |x| x.to_f32();
    F16 => f64, |x| f32_to_f64(x.to_f32());
    f32 => F16, |x| F16::from_f32(x);
    f32 => f32, |x| x;
    f32 => f64, |x| f32_to_f64(x);
    f64 => F16, |x| F16::from_f32(f64_to_f32(x));
    f64 => f32, |x| f64_to_f32(x);
    f64 => f64, |x| x;
}

/// A native number that converts to a boolean and back.
pub trait Truth: Copy {
    /// The number 1 for true, 0 for false.
    fn from_bool(value: bool) -> Self;
    /// Whether the number is not zero: true for NaN, false for -0.0.
    fn to_bool(self) -> bool;
}

macro_rules! truth {
    ($($t:ty)*) => {$(
        impl Truth for $t {
            #[inline(always)]
            fn from_bool(value: bool) -> Self { value as u8 as $t }
            #[inline(always)]
            fn to_bool(self) -> bool { self != 0 as $t }
        }
    )*};
}

truth! { i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 }

impl Truth for F16 {
    #[inline(always)]
    fn from_bool(value: bool) -> F16 {
        F16(if value { 0x3c00 } else { 0 })
    }
    #[inline(always)]
    fn to_bool(self) -> bool {
        self.0 & 0x7fff != 0
    }
}
