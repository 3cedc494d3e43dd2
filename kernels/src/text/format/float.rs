//! Floats as text: the shortest digits, in the layouts of arrow-cast.
//!
//! The one idea: 17 digits are one digit and two words of eight, a byte for each digit, computed without a
//! loop. The output consists of runs of those bytes, with a point and zeros between them.

use super::shortest::{Digits, few, shortest};
use super::sink::Sink;
use crate::map::function::half::F16;
use crate::text::digits::{EIGHT, eight};
use crate::text::parse::float::Rounded;
use crate::text::powers::Powers;

/// A layout: the conditions for an exponent, a point, and the choice between equally near decimals.
#[derive(Clone, Copy)]
struct Layout {
    /// Fewer digits before the point than this need an exponent. A negative number counts the zeros after the
    /// point.
    least: i32,
    /// More digits before the point than this need an exponent.
    most: i32,
    /// Whether whole numbers have a point and a zero.
    point: bool,
    /// Whether, of two decimals that are equally near, the greater one is written, not the even one.
    tie_up: bool,
}

/// The layout in which ryu writes an `f64`.
const DOUBLE: Layout = Layout { least: -4, most: 16, point: true, tie_up: false };
/// The layout in which ryu writes an `f32`.
const SINGLE: Layout = Layout { least: -5, most: 13, point: true, tie_up: false };
/// The layout in which Rust writes an `f32`, for the range of halves: never with an exponent.
const HALF: Layout = Layout { least: -16, most: 16, point: false, tie_up: true };

/// A word of sixteen digits `0`.
const ZEROS: u128 = 0x3030_3030_3030_3030_3030_3030_3030_3030;

/// Writes digits in a layout.
#[inline(always)]
fn lay_out(digits: Digits, layout: Layout, sink: &mut impl Sink) {
    let Digits { digits, exponent } = digits;
    let first = digits / 10_000_000_000_000_000;
    let rest = digits.wrapping_sub(first * 10_000_000_000_000_000);
    let upper = rest / EIGHT;
    let rest =
        u128::from(eight(upper as u32)) | u128::from(eight(rest.wrapping_sub(upper * EIGHT) as u32)) << 64;
    // The digits after the first one, up to the last that is not 0.
    let count = 16 - rest.leading_zeros() / 8;
    let (first, rest) = (first as u8 | b'0', rest | ZEROS);
    let before = exponent + 17;
    if before < layout.least || before > layout.most {
        sink.put(first);
        if count > 0 {
            sink.put(b'.');
            sink.put_some(rest, count);
        }
        sink.put(b'e');
        let power = before - 1;
        if power < 0 {
            sink.put(b'-');
        }
        let power = power.unsigned_abs();
        let (hundreds, tens) = (power / 100, power / 10);
        let (ten, one) = (tens.wrapping_sub(hundreds * 10), power.wrapping_sub(tens * 10));
        let text = hundreds | ten << 8 | one << 16 | 0x30_3030;
        let skipped = (hundreds == 0) as u32 + (tens == 0) as u32;
        sink.put_some(u128::from(text >> (8 * skipped)), 3 - skipped);
    } else if before > 0 {
        let whole = before as u32 - 1;
        sink.put(first);
        sink.put_some(rest, whole);
        let fraction = if count > whole { count - whole } else { layout.point as u32 };
        if fraction > 0 {
            sink.put(b'.');
            sink.put_some(rest >> (8 * whole), fraction);
        }
    } else {
        sink.put(b'0');
        sink.put(b'.');
        sink.put_some(ZEROS, before.unsigned_abs());
        sink.put(first);
        sink.put_some(rest, count);
    }
}

#[inline(always)]
fn write<F: Rounded, P: Powers>(x: F, layout: Layout, powers: P, sink: &mut impl Sink) {
    let infinity = (2 * F::BIAS as u64 + 1) << F::FRACTION;
    let sign = 1 << (8 * size_of::<F>() as u32 - 1);
    let (negative, magnitude) = (x.bits() & sign != 0, x.bits() & (sign - 1));
    if magnitude > infinity {
        sink.put_some(u128::from(u32::from_le_bytes(*b"NaN\0")), 3);
        return;
    }
    if negative {
        sink.put(b'-');
    }
    if magnitude == infinity {
        sink.put_some(u128::from(u32::from_le_bytes(*b"inf\0")), 3);
        return;
    }
    let few = if P::DIVIDES { few(x, powers) } else { None };
    lay_out(few.unwrap_or_else(|| shortest(x, layout.tie_up, powers)), layout, sink);
}

/// Writes an `f64`, in at most 24 bytes.
#[inline(always)]
pub fn write_f64<S: Sink, P: Powers>(x: f64, powers: P, sink: &mut S) {
    write(x, DOUBLE, powers, sink);
}

/// Writes an `f32`, in at most 16 bytes.
#[inline(always)]
pub fn write_f32<S: Sink, P: Powers>(x: f32, powers: P, sink: &mut S) {
    write(x, SINGLE, powers, sink);
}

/// Writes a half as Rust writes its `f32`, in at most 19 bytes.
#[inline(always)]
pub fn write_f16<S: Sink, P: Powers>(x: F16, powers: P, sink: &mut S) {
    write(x.to_f32(), HALF, powers, sink);
}
