//! Floats of texts that their first digits do not settle.
//!
//! The one idea: between the float that the first digits `w` round to and the one that `w + 1` does lies one midpoint, and the
//! text is on one side of it, or is it. So nothing is rounded here: two numbers are compared, digit by digit, and each is in
//! registers, a fixed number of words, whatever the length of the text. With the text as `(w + f) * 10^q`:
//!
//! - `q > 0`: the midpoint is an integer below 2^1024 (of an `f32`, 2^128). So is the text's whole part, which is put together from
//!   its digits.
//! - `q <= 0`: the midpoint times 10^-q is `w` or `w + 1` and a fraction of fewer than 768 bits (128), for `w` has 19 digits at least.
//!   Multiplied by 10^19 again and again the fraction gives the digits that the text is compared with.
//!
//! Words are found by numbers that are known when it is compiled: loops over them unroll.

use super::Bytes;
use super::float_read::{Number, Rounded, Text, nearest, scan};
use super::powers::{Powers, multiply};
use crate::function::half::F16;
use core::cmp::Ordering;

/// A number of fixed size, the lowest word first.
#[derive(Clone, Copy)]
struct Words<const N: usize>([u64; N]);

impl<const N: usize> Words<N> {
    /// `value * 2^bits`, which may be negative: what is not in it is cut off.
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

    /// `self * by + more`, and what is beyond its words.
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

/// The digits that are not among the first.
struct Rest<B> {
    text: B,
    at: u64,
    end: u64,
}

impl<B: Bytes> Rest<B> {
    /// So many of them as a number; behind the last one there are zeros.
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

    /// Whether any that is left is not 0.
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

/// How many digits are taken at once: as many as a word holds.
const STEP: u32 = 19;

/// How the text compares with the midpoint `odd * 2^power`, both of them whole numbers.
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

/// How the text compares with the midpoint `odd * 2^power`, where neither need be whole.
#[inline(always)]
fn against_fraction<const PLACES: usize, B: Bytes>(
    number: Number,
    mut rest: Rest<B>,
    odd: u64,
    power: i32,
    powers: impl Powers,
) -> Ordering {
    // 10^left = 5^left * 2^left: the point is below the last word, which is `w` or one more. Beyond it nothing is needed.
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
        // A tie is even.
        let up = if order == Ordering::Equal { bits & 1 } else { (order == Ordering::Greater) as u64 };
        bits += up;
    }
    Some(F::of_bits(bits | (number.negative as u64) << (8 * size_of::<F>() as u32 - 1)))
}

/// The `f64` of a text of any number of digits.
#[inline(always)]
pub fn read_f64_exactly<B: Bytes, P: Powers>(text: B, powers: P) -> Option<f64> {
    exactly::<_, 16, 13>(text, powers)
}

/// The `f32` of a text of any number of digits.
#[inline(always)]
pub fn read_f32_exactly<B: Bytes, P: Powers>(text: B, powers: P) -> Option<f32> {
    exactly::<_, 2, 3>(text, powers)
}

/// The half of the `f32` of a text of any number of digits.
#[inline(always)]
pub fn read_f16_exactly<B: Bytes, P: Powers>(text: B, powers: P) -> Option<F16> {
    read_f32_exactly(text, powers).map(F16::from_f32)
}
