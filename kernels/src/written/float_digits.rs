//! The shortest digits that are read back as the same float, and of those the nearest ones: Schubfach (Giulietti, 2020), as ryu has
//! them.
//!
//! The one idea: the float is scaled to a decimal of one word, and so are the ends of what rounds to it. They differ from it by a
//! power of two of the same factor, so that one multiplication does for all three. A decimal of one digit less is tried first, then
//! the two next to it: at most one of each pair is inside, but where both are, and the nearer one is taken.

use super::float_read::Rounded;
use super::powers::{Power, Powers, carrying, log2, log10, multiply};

/// `digits * 10^exponent`: 17 digits, with as many zeros at the end as it takes. Or none at all, and -16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digits {
    /// The digits.
    pub digits: u64,
    /// The power of ten.
    pub exponent: i32,
}

/// The least number of 16 digits.
const MOST: u64 = 1_000_000_000_000_000;

/// The least number of 17 digits.
const LEAST: u64 = 10_000_000_000_000_000;

/// A number of 192 bits, of which those behind the first 64 only matter as none or some.
#[inline(always)]
fn round_to_odd((high, middle, _): (u64, u64, u64)) -> u64 {
    // Middle bits of 1 are none: the power was rounded up.
    high | (middle > 1) as u64
}

/// The sum.
#[inline(always)]
fn add((a, b, c): (u64, u64, u64), (d, e, f): (u64, u64, u64)) -> (u64, u64, u64) {
    let (low, carry) = c.overflowing_add(f);
    let (middle, carry) = carrying(b, e, carry);
    (a.wrapping_add(d).wrapping_add(carry as u64), middle, low)
}

/// The negative, modulo 2^192.
#[inline(always)]
fn negative((high, middle, low): (u64, u64, u64)) -> (u64, u64, u64) {
    add((!high, !middle, !low), (0, 0, 1))
}

/// `power * 2^bits`, for 1 to 63 bits.
#[inline(always)]
fn shift(Power { high, low }: Power, bits: u32) -> (u64, u64, u64) {
    let over = 64u32.wrapping_sub(bits);
    (high.wrapping_shr(over), high.wrapping_shl(bits) | low.wrapping_shr(over), low.wrapping_shl(bits))
}

/// The digits of a finite float's absolute value. Where two are as near, the even one, or with `tie_up` the greater one.
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
    // Below a power of two floats are half as far apart.
    let uneven = (fraction == 0) & (field > 1);
    let odd = significand & 1;

    let exponent = log10(binary, uneven);
    let power = powers.power(exponent.wrapping_neg()).plus(1);
    let bits = (binary + log2(exponent.wrapping_neg()) + 1) as u32;
    // Four times the decimal.
    let scaled = significand.wrapping_shl(bits + 2);
    let (high, middle) = multiply(scaled, power.high);
    let (more, low) = multiply(scaled, power.low);
    let (middle, carry) = middle.overflowing_add(more);
    let exact = (high.wrapping_add(carry as u64), middle, low);
    let value = round_to_odd(exact);
    // The ends themselves are inside where the float is even.
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

    // Of an `f32` there are nine at most; of the least floats fewer.
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

/// The digits of an `f64` that is a decimal of 15 digits: those, for no two such decimals are the same float. What tables hold is
/// that, and one division tells, which is correctly rounded, as reading is.
#[inline(always)]
pub(super) fn few<F: Rounded>(x: F, powers: impl Powers) -> Option<Digits> {
    let bits = x.bits() & (u64::MAX >> 1);
    let binary = (bits >> F::FRACTION) as i32 - F::BIAS;
    // As many digits before the point, or one less; and as many behind it as 15 leave.
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

/// The shortest digits of a finite `f64`, whatever its sign.
#[inline(always)]
pub fn digits_f64<P: Powers>(x: f64, powers: P) -> Digits {
    shortest(x, false, powers)
}

/// The shortest digits of a finite `f32`, whatever its sign.
#[inline(always)]
pub fn digits_f32<P: Powers>(x: f32, powers: P) -> Digits {
    shortest(x, false, powers)
}
