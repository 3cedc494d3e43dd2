//! The steps of a plan that compute numbers, dispatched on types known at run time.

use bowstring_kernels::map::function::{F16, Number};
use bowstring_kernels::map::functions::{Function, FunctionCall};
use bowstring_kernels::program::word::{Word, plain_nan_f32, plain_nan_f64};

use super::blocks::{self, BLOCK, View};
use super::numbers::{by_integer, by_number};
use super::slots::Slot;
use crate::cpu::map_rows::{Part, Source};
use crate::cpu::vectorise::VectorLevel;
use crate::expr::Arithmetic;

pub(super) fn choose(
    number: Number,
    words: &[u64],
    a: &Slot<'_, '_>,
    b: &Slot<'_, '_>,
    slot: &mut Slot<'_, '_>,
) {
    let out = slot.numbers();
    match number.width() {
        1 => blocks::choose::<u8>(words, a.view(), b.view(), out),
        2 => blocks::choose::<u16>(words, a.view(), b.view(), out),
        4 => blocks::choose::<u32>(words, a.view(), b.view(), out),
        8 => blocks::choose::<u64>(words, a.view(), b.view(), out),
        _ => blocks::choose::<i128>(words, a.view(), b.view(), out),
    }
}

/// Maps integers of eight bytes to such integers, or to 4-byte ones (the parts of dates).
pub(super) fn each_to(number: Number, a: View<'_>, slot: &mut Slot<'_, '_>, f: impl Fn(i64) -> i64) {
    let out = slot.numbers();
    match number {
        Number::I32 => blocks::each(a, out, |x: i64| f(x) as i32),
        _ => blocks::each(a, out, f),
    }
}

pub(super) fn widen(from: Number, to: Number, a: View<'_>, count: usize, slot: &mut Slot<'_, '_>) {
    let call = FunctionCall::plain(Function::Direct, from, to.signed());
    let call = call.expect("integers are cast to each other");
    let rows = if a.constant { BLOCK } else { count };
    let out = slot.numbers();
    let from = Source::Bytes(&a.bytes[..rows * from.width()], from.width());
    let part = Part { from, rows, to: out, valid: None, good: None };
    call.visit(part).expect("a call of a function in the list");
    slot.constant = a.constant;
}

pub(super) fn arithmetic(
    op: Arithmetic,
    number: Number,
    a: View<'_>,
    b: View<'_>,
    out: &mut [u8],
    bad: &mut [u64],
) {
    let (widest, plain) = (VectorLevel::widest(), VectorLevel::Plain);
    macro_rules! floats {
        ($t:ty, $nan:path) => {{
            macro_rules! each {
                ($level:ident, $op:tt) => {
                    blocks::zip($level, a, b, out, bad, |a: $t, b: $t| ($nan(a $op b), false), |_, _| false)
                };
            }
            match op {
                Arithmetic::Add => each!(widest, +),
                Arithmetic::Sub => each!(widest, -),
                Arithmetic::Mul => each!(widest, *),
                Arithmetic::Div => each!(widest, /),
                Arithmetic::Rem => each!(plain, %),
            }
        }};
    }
    match number {
        Number::F32 => floats!(f32, plain_nan_f32),
        Number::F64 => floats!(f64, plain_nan_f64),
        number => by_integer!(number, T => match op {
            Arithmetic::Add => blocks::zip(widest, a, b, out, bad, T::plus, |a, b| a.overflowing_add(b).1),
            Arithmetic::Sub => blocks::zip(widest, a, b, out, bad, T::minus, |a, b| a.overflowing_sub(b).1),
            Arithmetic::Mul => blocks::zip(widest, a, b, out, bad, T::times, |a, b| a.overflowing_mul(b).1),
            Arithmetic::Div => {
                let f = |a: T, b: T| if b == 0 { (0, true) } else { a.overflowing_div(b) };
                blocks::zip(plain, a, b, out, bad, f, |a, b| f(a, b).1);
            }
            Arithmetic::Rem => {
                let f = |a: T, b: T| if b == 0 { (0, true) } else { (a.wrapping_rem(b), false) };
                blocks::zip(plain, a, b, out, bad, f, |_, b| b == 0);
            }
        }),
    }
}

/// Arithmetic that wraps, with whether it may have overflowed. Compilers vectorise this, but not the
/// functions of the language that say so.
trait Wrapping: Sized {
    fn plus(self, other: Self) -> (Self, bool);
    fn minus(self, other: Self) -> (Self, bool);
    fn times(self, other: Self) -> (Self, bool);
}

macro_rules! wrapping {
    // The sum of two signed numbers has another sign than both if it overflows.
    (signed $($t:ty: $times:expr,)+) => { $(
        impl Wrapping for $t {
            #[inline(always)]
            fn plus(self, other: $t) -> ($t, bool) {
                let sum = self.wrapping_add(other);
                (sum, (self ^ sum) & (other ^ sum) < 0)
            }
            #[inline(always)]
            fn minus(self, other: $t) -> ($t, bool) {
                let difference = self.wrapping_sub(other);
                (difference, (self ^ other) & (self ^ difference) < 0)
            }
            #[inline(always)]
            fn times(self, other: $t) -> ($t, bool) {
                $times(self, other)
            }
        }
    )+ };
    (unsigned $($t:ty: $times:expr,)+) => { $(
        impl Wrapping for $t {
            #[inline(always)]
            fn plus(self, other: $t) -> ($t, bool) {
                let sum = self.wrapping_add(other);
                (sum, sum < self)
            }
            #[inline(always)]
            fn minus(self, other: $t) -> ($t, bool) {
                (self.wrapping_sub(other), self < other)
            }
            #[inline(always)]
            fn times(self, other: $t) -> ($t, bool) {
                $times(self, other)
            }
        }
    )+ };
}

/// Multiplies in a type that has room for every product.
macro_rules! in_wider {
    ($t:ty, $wide:ty) => {
        |a: $t, b: $t| {
            let product = <$wide>::from(a) * <$wide>::from(b);
            (product as $t, <$wide>::from(product as $t) != product)
        }
    };
}

/// Multiplies where no product of halves overflows; a larger factor may have overflowed.
macro_rules! of_halves {
    ($t:ty, $half:ty) => {
        |a: $t, b: $t| {
            let large = |x: $t| <$t>::from(x as $half) != x;
            (a.wrapping_mul(b), large(a) | large(b))
        }
    };
}

wrapping!(signed i8: in_wider!(i8, i16), i16: in_wider!(i16, i32), i32: in_wider!(i32, i64),
    i64: of_halves!(i64, i32), i128: of_halves!(i128, i64),);
wrapping!(unsigned u8: in_wider!(u8, u16), u16: in_wider!(u16, u32), u32: in_wider!(u32, u64),
    u64: of_halves!(u64, u32),);

/// Divides decimals, of which the dividends are first multiplied by a constant; no product overflows.
#[allow(clippy::unnecessary_cast, reason = "one of the types is the one that is cast to")]
pub(super) fn scaled_quotients(number: Number, [a, b, by]: [View<'_>; 3], out: &mut [u8], bad: &mut [u64]) {
    by_integer!(number, T => {
        let mut bytes = [0; size_of::<T>()];
        bytes.copy_from_slice(&by.bytes[..size_of::<T>()]);
        let by = T::from_le_bytes(bytes);
        let f = |a: T, b: T| {
            if b == 0 {
                return (0, true);
            }
            match a.checked_mul(by) {
                Some(product) => product.overflowing_div(b),
                None => {
                    let (quotient, over) = (a as i128).quotient(by as i128, b as i128, false);
                    (quotient as T, over || (quotient as T) as i128 != quotient)
                }
            }
        };
        blocks::zip(VectorLevel::Plain, a, b, out, bad, f, |a, b| f(a, b).1);
    });
}

/// Multiplies; decimals of 128 bits only in the rows that are asked for.
pub(super) fn multiply(
    number: Number,
    a: View<'_>,
    b: View<'_>,
    asked: &[u64],
    out: &mut [u8],
    bad: &mut [u64],
) {
    match number {
        Number::I128 => blocks::multiply_wide(a, b, asked, out, bad),
        number => arithmetic(Arithmetic::Mul, number, a, b, out, bad),
    }
}

pub(super) fn negate(number: Number, a: View<'_>, out: &mut [u8], bad: &mut [u64]) {
    match number {
        Number::F16 => blocks::each(a, out, |x: F16| F16(x.0 ^ 1 << 15)),
        Number::F32 => blocks::each(a, out, |x: f32| -x),
        Number::F64 => blocks::each(a, out, |x: f64| -x),
        number => by_integer!(number, T => {
            let f = |a: T, _: T| (0 as T).minus(a);
            blocks::zip(VectorLevel::widest(), a, a, out, bad, f, |a, _| f(a, a).1);
        }),
    }
}
