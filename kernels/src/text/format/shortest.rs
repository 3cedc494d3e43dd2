//! The shortest digits that are read back as the same float, and the nearest of those: Schubfach (Giulietti,
//! 2020), with the results of ryu.
//!
//! The one idea: the float is scaled to a decimal of one word, and so are the bounds of the interval that
//! rounds to it. The bounds differ from the float by a power of two times the same factor, so one
//! multiplication is enough for all three. The decimals of one digit less are tried first, then the two
//! nearest ones. At most one of each pair is inside the interval, unless both are, and then the nearer one is
//! taken.

use crate::text::parse::float::Rounded;
use crate::text::powers::{Power, Powers, carrying, log2, log10, multiply};

/// A decimal `digits * 10^exponent`: 17 digits, padded with zeros at the end. Zero has no digits, and the
/// exponent -16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The digits, as a number.
    pub digits: u64,
    /// The power of ten that multiplies them.
    pub exponent: i32,
}

/// The least number of 16 digits.
const MOST: u64 = 1_000_000_000_000_000;

/// The least number of 17 digits.
const LEAST: u64 = 10_000_000_000_000_000;

/// Rounds a number of 192 bits to its first 64. The bits after those only matter as zero or not.
#[inline(always)]
fn round_to_odd((high, middle, _): (u64, u64, u64)) -> u64 {
    // Middle bits of 1 count as zero, because the power was rounded up.
    high | (middle > 1) as u64
}

/// Returns the sum, modulo 2^192.
#[inline(always)]
fn add((a, b, c): (u64, u64, u64), (d, e, f): (u64, u64, u64)) -> (u64, u64, u64) {
    let (low, carry) = c.overflowing_add(f);
    let (middle, carry) = carrying(b, e, carry);
    (a.wrapping_add(d).wrapping_add(carry as u64), middle, low)
}

/// Returns the negative, modulo 2^192.
#[inline(always)]
fn negative((high, middle, low): (u64, u64, u64)) -> (u64, u64, u64) {
    add((!high, !middle, !low), (0, 0, 1))
}

/// Returns `power * 2^bits`, for 1 to 63 bits.
#[inline(always)]
fn shift(Power { high, low }: Power, bits: u32) -> (u64, u64, u64) {
    let over = 64u32.wrapping_sub(bits);
    (high.wrapping_shr(over), high.wrapping_shl(bits) | low.wrapping_shr(over), low.wrapping_shl(bits))
}

/// Returns the shortest digits of a finite float's absolute value. If two decimals are equally near, it takes
/// the even one, or with `tie_up` the greater one.
#[inline(always)]
pub(super) fn shortest<F: Rounded>(x: F, tie_up: bool, powers: impl Powers) -> Digits {
    let infinity = 2 * F::BIAS as u64 + 1;
    let (field, fraction) = (x.bits() >> F::FRACTION & infinity, x.bits() & ((1 << F::FRACTION) - 1));
    if field == 0 && fraction == 0 {
        return Digits { digits: 0, exponent: -16 };
    }
    let normal = (field != 0) as u64;
    let significand = fraction | normal << F::FRACTION;
    let binary = field as i32 + (1 - normal as i32) - F::BIAS - F::FRACTION as i32;
    // Below a power of two, the distance of floats is half as large.
    let uneven = (fraction == 0) & (field > 1);
    let odd = significand & 1;

    let exponent = log10(binary, uneven);
    let power = powers.power(exponent.wrapping_neg()).plus(1);
    let bits = (binary + log2(exponent.wrapping_neg()) + 1) as u32;
    // Scales to four times the decimal.
    let scaled = significand.wrapping_shl(bits + 2);
    let (high, middle) = multiply(scaled, power.high);
    let (more, low) = multiply(scaled, power.low);
    let (middle, carry) = middle.overflowing_add(more);
    let exact = (high.wrapping_add(carry as u64), middle, low);
    let value = round_to_odd(exact);
    // The bounds belong to the interval if the float is even.
    let lower = round_to_odd(add(exact, negative(shift(power, bits + 1 - uneven as u32)))).wrapping_add(odd);
    let upper = round_to_odd(add(exact, shift(power, bits + 1))).wrapping_sub(odd);

    let whole = value / 4;
    let tens = whole / 10 * 10;
    let (down, up) = (lower <= tens * 4, tens * 4 + 40 <= upper);
    let (down_one, up_one) = (lower <= whole * 4, whole * 4 + 4 <= upper);
    let tie = tie_up | (whole & 1 == 1);
    let nearer = value & 3 > 2 - tie as u64;
    let one = whole + if down_one != up_one { up_one } else { nearer } as u64;
    let digits = if down != up { tens + 10 * up as u64 } else { one };

    // An `f32` has at most nine digits; the least floats have fewer.
    let short = F::FRACTION < 32;
    let mut digits = if short { digits * 100_000_000 } else { digits };
    let mut exponent = if short { exponent - 8 } else { exponent };
    let sixteen = digits < LEAST;
    digits = if sixteen { digits * 10 } else { digits };
    exponent -= sixteen as i32;
    while digits < LEAST {
        digits *= 10;
        exponent -= 1;
    }
    Digits { digits, exponent }
}

/// Returns the digits of an `f64` that is a decimal of 15 digits. No two such decimals are the same float, so
/// these digits are the shortest. Most floats in tables are such decimals, and one division, which is
/// correctly rounded as reading is, confirms it.
#[inline(always)]
pub(super) fn few<F: Rounded>(x: F, powers: impl Powers) -> Option<Digits> {
    let bits = x.bits() & (u64::MAX >> 1);
    let binary = (bits >> F::FRACTION) as i32 - F::BIAS;
    // The digits after the point: as many as 15 digits leave if the float has this many before the point, or
    // one less.
    let behind = 14 - log10(binary + 1, false);
    if F::FRACTION != f64::FRACTION || !(0..=19).contains(&behind) {
        return None;
    }
    let (x, ten) = (f64::from_bits(bits), powers.small(behind as u32));
    let digits = (f64::of_two(1, ten, false) * x + 0.5) as u64;
    if digits >= MOST || f64::of_two(digits, ten, true) != x {
        return None;
    }
    let fourteen = digits * 100 < LEAST;
    let digits = if fourteen { digits * 1000 } else { digits * 100 };
    Some(Digits { digits, exponent: -behind - 2 - i32::from(fourteen) })
}

/// Returns the shortest digits of a finite `f64`, without its sign.
#[inline(always)]
pub fn digits_f64<P: Powers>(x: f64, powers: P) -> Digits {
    shortest(x, false, powers)
}

/// Returns the shortest digits of a finite `f32`, without its sign.
#[inline(always)]
pub fn digits_f32<P: Powers>(x: f32, powers: P) -> Digits {
    shortest(x, false, powers)
}
