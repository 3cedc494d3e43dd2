//! Floats of texts whose first digits do not decide the result.
//!
//! The one idea: one midpoint lies between the floats that the first digits `w` and `w + 1` round to, and the
//! text is on one side of it, or equal to it. So nothing is rounded here. Two numbers are compared digit by
//! digit. Each is in registers, in a fixed number of words, whatever the length of the text. If the text is
//! `(w + f) * 10^q`:
//!
//! - `q > 0`: the midpoint is an integer below 2^1024 (2^128 for an `f32`). So is the text's whole part,
//!   which is computed from its digits.
//! - `q <= 0`: the midpoint times 10^-q is `w` or `w + 1` and a fraction of fewer than 768 bits (128),
//!   because `w` has at least 19 digits. Repeated multiplication of the fraction by 10^19 gives the digits
//!   that the text is compared with.
//!
//! All indices of words are constants at compile time, because the loops over words are unrolled.

use super::float::{Number, Rounded, Text, nearest, scan};
use crate::map::function::half::F16;
use crate::text::bytes::Bytes;
use crate::text::powers::{Powers, multiply};
use core::cmp::Ordering;

/// A number of fixed size, the lowest word first.
#[derive(Clone, Copy)]
struct Words<const N: usize>([u64; N]);

impl<const N: usize> Words<N> {
    /// Returns `value * 2^bits`; `bits` may be negative. Bits outside the number are cut off.
    #[inline(always)]
    fn shifted(value: u64, bits: i32) -> Words<N> {
        let mut words = [0; N];
        for i in 0..N {
            let by = bits - 64 * i as i32;
            let up = if by < 64 { value.wrapping_shl(by as u32) } else { 0 };
            let down = if by > -64 { value.wrapping_shr(by.wrapping_neg() as u32) } else { 0 };
            words[i] = if by >= 0 { up } else { down };
        }
        Words(words)
    }

    /// Returns `self * by + more`, and the carry out of its words.
    #[inline(always)]
    fn times(self, by: u64, more: u64) -> (Words<N>, u64) {
        let (mut words, mut carry) = (self.0, more);
        for i in 0..N {
            let (high, low) = multiply(words[i], by);
            let (sum, over) = low.overflowing_add(carry);
            (words[i], carry) = (sum, high.wrapping_add(over as u64));
        }
        (Words(words), carry)
    }

    #[inline(always)]
    fn is_zero(self) -> bool {
        let mut all = 0;
        for i in 0..N {
            all |= self.0[i];
        }
        all == 0
    }

    #[inline(always)]
    fn compare(self, other: Words<N>) -> Ordering {
        let mut order = Ordering::Equal;
        for i in 0..N {
            let here = if self.0[i] < other.0[i] { Ordering::Less } else { Ordering::Greater };
            order = if self.0[i] == other.0[i] { order } else { here };
        }
        order
    }
}

/// The digits of a text after the first ones.
struct Rest<B> {
    text: B,
    at: u64,
    end: u64,
}

impl<B: Bytes> Rest<B> {
    /// Returns the next `count` digits as a number, with zeros after the last digit.
    #[inline(always)]
    fn next(&mut self, count: u32) -> u64 {
        let (mut value, mut left) = (0u64, count);
        while left > 0 {
            let mut digit = 0;
            if self.at < self.end {
                let byte = self.text.at(self.at);
                self.at += 1;
                if byte == b'.' {
                    continue;
                }
                digit = byte.wrapping_sub(b'0');
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            left -= 1;
        }
        value
    }

    /// Returns whether any remaining digit is not 0.
    #[inline(always)]
    fn any(&mut self) -> bool {
        while self.at < self.end {
            let byte = self.text.at(self.at);
            if byte != b'.' && byte != b'0' {
                return true;
            }
            self.at += 1;
        }
        false
    }
}

/// The number of digits taken at once: as many as a word holds.
const STEP: u32 = 19;

/// Compares the text with the midpoint `odd * 2^power`; both are whole numbers.
#[inline(always)]
fn against_whole<const WHOLE: usize, B: Bytes>(
    number: Number,
    mut rest: Rest<B>,
    odd: u64,
    power: i32,
    powers: impl Powers,
) -> Ordering {
    let mut whole = Words::<WHOLE>::shifted(number.digits, 0);
    let mut left = number.exponent as u32;
    while left > 0 {
        let count = if left < STEP { left } else { STEP };
        (whole, _) = whole.times(powers.small(count), rest.next(count));
        left -= count;
    }
    match whole.compare(Words::shifted(odd, power)) {
        Ordering::Equal if rest.any() => Ordering::Greater,
        order => order,
    }
}

/// Compares the text with the midpoint `odd * 2^power`; neither need be whole.
#[inline(always)]
fn against_fraction<const PLACES: usize, B: Bytes>(
    number: Number,
    mut rest: Rest<B>,
    odd: u64,
    power: i32,
    powers: impl Powers,
) -> Ordering {
    // 10^left = 5^left * 2^left: the point is below the last word, which is `w` or one more. No bits beyond
    // that are needed.
    let mut left = number.exponent.unsigned_abs();
    let mut point = Words::<PLACES>::shifted(odd, 64 * (PLACES as i32 - 1) + power + left as i32);
    while left > 0 {
        let count = if left < STEP { left } else { STEP };
        (point, _) = point.times(powers.small(count) >> count, 0);
        left -= count;
    }
    if point.0[PLACES - 1] != number.digits {
        return Ordering::Less;
    }
    loop {
        point.0[PLACES - 1] = 0;
        if point.is_zero() {
            return if rest.any() { Ordering::Greater } else { Ordering::Equal };
        }
        if rest.at >= rest.end {
            return Ordering::Less;
        }
        (point, _) = point.times(powers.small(STEP), 0);
        let digits = rest.next(STEP);
        if digits != point.0[PLACES - 1] {
            return if digits < point.0[PLACES - 1] { Ordering::Less } else { Ordering::Greater };
        }
    }
}

#[inline(always)]
fn exactly<F: Rounded, const WHOLE: usize, const PLACES: usize>(
    text: impl Bytes,
    powers: impl Powers,
) -> Option<F> {
    let number = match scan(text, powers) {
        Text::Not => return None,
        Text::Special { negative, infinite } => return Some(F::special(negative, infinite)),
        Text::Number(number) => number,
    };
    let below: F = nearest(false, number.digits, number.exponent, powers);
    let above: F = nearest(false, number.digits.wrapping_add(number.more as u64), number.exponent, powers);
    let mut bits = below.bits();
    if below != above {
        let (field, fraction) = ((bits >> F::FRACTION) as i32, bits & ((1 << F::FRACTION) - 1));
        let normal = (field != 0) as u64;
        // The midpoint: half a unit in the last place more.
        let odd = (fraction | normal << F::FRACTION) * 2 + 1;
        let power = field + (1 - normal as i32) - F::BIAS - F::FRACTION as i32 - 1;
        let rest = Rest { text, at: number.rest, end: number.end };
        let order = if number.exponent > 0 {
            against_whole::<WHOLE, _>(number, rest, odd, power, powers)
        } else {
            against_fraction::<PLACES, _>(number, rest, odd, power, powers)
        };
        // A tie rounds to even.
        let up = if order == Ordering::Equal { bits & 1 } else { (order == Ordering::Greater) as u64 };
        bits += up;
    }
    Some(F::of_bits(bits | (number.negative as u64) << (8 * size_of::<F>() as u32 - 1)))
}

/// Reads a text of any number of digits as an `f64`.
#[inline(always)]
pub fn read_f64_exactly<B: Bytes, P: Powers>(text: B, powers: P) -> Option<f64> {
    exactly::<_, 16, 13>(text, powers)
}

/// Reads a text of any number of digits as an `f32`.
#[inline(always)]
pub fn read_f32_exactly<B: Bytes, P: Powers>(text: B, powers: P) -> Option<f32> {
    exactly::<_, 2, 3>(text, powers)
}

/// Reads a text of any number of digits as a half, by way of an `f32`.
#[inline(always)]
pub fn read_f16_exactly<B: Bytes, P: Powers>(text: B, powers: P) -> Option<F16> {
    read_f32_exactly(text, powers).map(F16::from_f32)
}
