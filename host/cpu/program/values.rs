//! The steps of a plan that compute numbers, dispatched on types known at run time.

use bowstring_kernels::map::function::{F16, Number};
use bowstring_kernels::map::functions::{Function, FunctionCall};
use bowstring_kernels::program::word::{Word, plain_nan_f32, plain_nan_f64};

use super::blocks::{self, BLOCK, View};
use super::numbers::{by_integer, by_number};
use super::slots::Slot;
use crate::cpu::map_rows::{Part, Source};
use crate::cpu::memory;
use crate::cpu::vectorise::VectorLevel;
use crate::expr::Arithmetic;

pub(super) fn choose(number: Number, words: &[u64], a: &Slot<'_>, b: &Slot<'_>, slot: &mut Slot<'_>) {
    let out = memory::bytes_of_mut(&mut slot.own);
    match number.width() {
        1 => blocks::choose::<u8>(words, a.view(), b.view(), out),
        2 => blocks::choose::<u16>(words, a.view(), b.view(), out),
        4 => blocks::choose::<u32>(words, a.view(), b.view(), out),
        8 => blocks::choose::<u64>(words, a.view(), b.view(), out),
        _ => blocks::choose::<i128>(words, a.view(), b.view(), out),
    }
}

/// Maps integers of eight bytes to such integers, or to 4-byte ones (the parts of dates).
pub(super) fn each_to(number: Number, a: View<'_>, slot: &mut Slot<'_>, f: impl Fn(i64) -> i64) {
    let out = memory::bytes_of_mut(&mut slot.own);
    match number {
        Number::I32 => blocks::each(a, out, |x: i64| f(x) as i32),
        _ => blocks::each(a, out, f),
    }
}

pub(super) fn widen(from: Number, to: Number, a: View<'_>, count: usize, slot: &mut Slot<'_>) {
    let call = FunctionCall::plain(Function::Direct, from, to.signed());
    let call = call.expect("integers are cast to each other");
    let rows = if a.constant { BLOCK } else { count };
    let out = memory::bytes_of_mut(&mut slot.own);
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
        ($t:ty, $nan:path) => {
            match op {
                Arithmetic::Add => blocks::zip(widest, a, b, out, bad, |a: $t, b: $t| ($nan(a + b), false)),
                Arithmetic::Sub => blocks::zip(widest, a, b, out, bad, |a: $t, b: $t| ($nan(a - b), false)),
                Arithmetic::Mul => blocks::zip(widest, a, b, out, bad, |a: $t, b: $t| ($nan(a * b), false)),
                Arithmetic::Div => blocks::zip(widest, a, b, out, bad, |a: $t, b: $t| ($nan(a / b), false)),
                Arithmetic::Rem => blocks::zip(plain, a, b, out, bad, |a: $t, b: $t| ($nan(a % b), false)),
            }
        };
    }
    match number {
        Number::F32 => floats!(f32, plain_nan_f32),
        Number::F64 => floats!(f64, plain_nan_f64),
        number => by_integer!(number, T => match op {
            Arithmetic::Add => blocks::zip(widest, a, b, out, bad, T::overflowing_add),
            Arithmetic::Sub => blocks::zip(widest, a, b, out, bad, T::overflowing_sub),
            Arithmetic::Mul => blocks::zip(widest, a, b, out, bad, T::overflowing_mul),
            Arithmetic::Div => blocks::zip(plain, a, b, out, bad, |a: T, b: T| match b {
                0 => (0, true),
                b => a.overflowing_div(b),
            }),
            Arithmetic::Rem => blocks::zip(plain, a, b, out, bad, |a: T, b: T| match b {
                0 => (0, true),
                b => (a.wrapping_rem(b), false),
            }),
        }),
    }
}

/// Divides decimals, of which the dividends are first multiplied by a constant; no product overflows.
#[allow(clippy::unnecessary_cast, reason = "one of the types is the one that is cast to")]
pub(super) fn scaled_quotients(number: Number, [a, b, by]: [View<'_>; 3], out: &mut [u8], bad: &mut [u64]) {
    by_integer!(number, T => {
        let mut bytes = [0; size_of::<T>()];
        bytes.copy_from_slice(&by.bytes[..size_of::<T>()]);
        let by = T::from_le_bytes(bytes);
        blocks::zip(VectorLevel::Plain, a, b, out, bad, |a: T, b: T| {
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
        });
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
            let f = |a: T, _: T| (0 as T).overflowing_sub(a);
            blocks::zip(VectorLevel::widest(), a, a, out, bad, f);
        }),
    }
}
