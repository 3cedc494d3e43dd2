//! Decimals to floats and back.
//!
//! **From a float**: multiply by 10^scale in `f64`, round half away from zero, and check the precision. The
//! product is rounded once more than exact arithmetic would; arrow-cast does the same.
//!
//! **To a float**: the nearest float to the exact value, rounded once (arrow-cast prints the decimal and
//! parses the text where its arithmetic would not be exact; half precision goes through `f64` and `f32`).
//! This module uses integer arithmetic throughout: 64 significant bits of the exact quotient or product,
//! truncated, and whether any nonzero bit was cut off. That is enough to round correctly.

use super::ValueFunction;
use super::half::{F16, f32_to_f64, f64_to_f32};
use super::integer::{Integer, Magnitude, join};
use super::wide::{I256, U256, full_product};
use core::marker::PhantomData;

/// A floating point type of Arrow.
pub trait Float: Copy {
    /// The same number as an `f64`.
    fn widen(self) -> f64;
    /// The float nearest to `digits * 2^exponent`; `inexact` says that the exact value is a little more.
    /// `digits` must have at least 62 significant bits, or be 0.
    fn nearest(negative: bool, digits: u64, inexact: bool, exponent: i32) -> Self;
}

/// The bits of the float nearest to `digits * 2^exponent`, ties to even, for a float with `mantissa` stored
/// bits.
#[inline(always)]
fn nearest_bits(digits: u64, inexact: bool, exponent: i32, mantissa: u32, bias: i32) -> u64 {
    let leading = digits.leading_zeros();
    // Bits that were cut off only matter as "more than nothing": the last bit, which is never kept, can hold
    // that.
    let digits = digits.wrapping_shl(leading) | inexact as u64;
    let magnitude = exponent + 63 - leading as i32;
    let least = 1 - bias;
    // A subnormal keeps fewer bits. After 60 places only that last bit is left, and it rounds to zero.
    let lost = (least - magnitude).clamp(0, 60) as u32;
    let shifted = digits >> lost;
    let digits_kept = shifted | (shifted << lost != digits) as u64;
    let dropped = 63 - mantissa;
    let (kept, rest, half) =
        (digits_kept >> dropped, digits_kept & ((1 << dropped) - 1), 1u64 << (dropped - 1));
    let up = (rest > half) | ((rest == half) & (kept & 1 == 1));
    // `kept` includes the leading one, which adds one to the exponent field; a subnormal has no leading one.
    let field = if lost > 0 { 0 } else { (magnitude + bias - 1) as u64 };
    let bits = (field << mantissa) + kept + up as u64;
    let infinite = ((2 * bias + 1) as u64) << mantissa;
    if digits & !1 == 0 {
        0
    } else if magnitude > bias {
        infinite
    } else {
        bits
    }
}

impl Float for f64 {
    #[inline(always)]
    fn widen(self) -> f64 {
        self
    }
    #[inline(always)]
    fn nearest(negative: bool, digits: u64, inexact: bool, exponent: i32) -> f64 {
        f64::from_bits(nearest_bits(digits, inexact, exponent, 52, 1023) | (negative as u64) << 63)
    }
}

impl Float for f32 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f32_to_f64(self)
    }
    #[inline(always)]
    fn nearest(negative: bool, digits: u64, inexact: bool, exponent: i32) -> f32 {
        f32::from_bits(nearest_bits(digits, inexact, exponent, 23, 127) as u32 | (negative as u32) << 31)
    }
}

impl Float for F16 {
    #[inline(always)]
    fn widen(self) -> f64 {
        f32_to_f64(self.to_f32())
    }
    #[inline(always)]
    fn nearest(negative: bool, digits: u64, inexact: bool, exponent: i32) -> F16 {
        F16::from_f32(f64_to_f32(f64::nearest(negative, digits, inexact, exponent)))
    }
}

/// Converts a float to a decimal: `round(x * factor)`, which fits if its absolute value is at most `limit`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round<F, B: Integer> {
    /// The factor 10^scale, as an `f64` that need not be exact.
    pub factor: f64,
    /// The greatest decimal of the precision: 10^precision - 1.
    pub limit: B::Magnitude,
    /// The type of float that it converts.
    pub from: PhantomData<F>,
}

/// The nearest integer, halves up. `x` must be below 2^63 for types of 64 bits and less, else below 2^255.
#[inline(always)]
fn round_half_up<M: Magnitude>(x: f64) -> M {
    // Below 2^64 the integer part is exact in both types, and so is the difference.
    let whole = x as u64;
    let small = whole.wrapping_add((x - whole as f64 >= 0.5) as u64);
    if M::BITS <= 64 {
        return M::from_wide(U256::from_low(small as u128));
    }
    // From 2^52 on, `x` has no fraction: mantissa and exponent give the integer.
    let (exponent, mantissa) = ((x.to_bits() >> 52) as u32, x.to_bits() & ((1 << 52) - 1) | (1 << 52));
    let large = U256::from_low(mantissa as u128).shl(exponent.wrapping_sub(1023 + 52) & 255);
    M::from_wide(if exponent < 1023 + 52 { U256::from_low(small as u128) } else { large })
}

impl<F: Float, B: Integer> ValueFunction for Round<F, B> {
    type From = F;
    type To = B;
    #[inline(always)]
    fn call(&self, x: F) -> (B, bool) {
        let scaled = self.factor * x.widen();
        let (negative, absolute) = (scaled.is_sign_negative(), scaled.abs());
        let magnitude: B::Magnitude = round_half_up(absolute);
        // The bound is 2^(width - 1); NaN and infinity fail here.
        let past = f64::from_bits(((1023 + 8 * size_of::<B>() as u64) - 1) << 52);
        let fits = (absolute < past) & (magnitude <= self.limit);
        (B::truncate(join(negative, magnitude.to_wide())), fits)
    }
}

/// The integer type in which quotients and products of decimals are computed.
pub trait Significand: Magnitude {
    /// The number of zero bits above the highest one.
    fn leading_zeros(self) -> u32;
    /// `self << bits`, modulo 2^BITS. For 0, `bits` may be any number.
    fn shift_left(self, bits: u32) -> Self;
    /// The product with `word`: the 64 bits beyond this type, and the low bits.
    fn mul_word(self, word: u64) -> (u64, Self);
    /// The upper 128 bits.
    fn top(self) -> u128;
    /// The lower 64 bits.
    fn bottom(self) -> u64;
    /// The number whose upper 64 bits are `word` and whose other bits are zero.
    fn from_top(word: u64) -> Self;
}

impl Significand for u128 {
    #[inline(always)]
    fn leading_zeros(self) -> u32 {
        u128::leading_zeros(self)
    }
    #[inline(always)]
    fn shift_left(self, bits: u32) -> u128 {
        self.wrapping_shl(bits)
    }
    #[inline(always)]
    fn mul_word(self, word: u64) -> (u64, u128) {
        let product = full_product(self, word as u128);
        (product.high as u64, product.low)
    }
    #[inline(always)]
    fn top(self) -> u128 {
        self
    }
    #[inline(always)]
    fn bottom(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn from_top(word: u64) -> u128 {
        (word as u128) << 64
    }
}

impl Significand for U256 {
    #[inline(always)]
    fn leading_zeros(self) -> u32 {
        U256::leading_zeros(self)
    }
    #[inline(always)]
    fn shift_left(self, bits: u32) -> U256 {
        self.shl(bits & 255)
    }
    #[inline(always)]
    fn mul_word(self, word: u64) -> (u64, U256) {
        let low = full_product(self.low, word as u128);
        let high = full_product(self.high, word as u128);
        let (middle, carry) = low.high.overflowing_add(high.low);
        // The carry cannot overflow: the product has no more than 320 bits.
        (high.high as u64 + carry as u64, U256 { low: low.low, high: middle })
    }
    #[inline(always)]
    fn top(self) -> u128 {
        self.high
    }
    #[inline(always)]
    fn bottom(self) -> u64 {
        self.low as u64
    }
    #[inline(always)]
    fn from_top(word: u64) -> U256 {
        U256 { low: 0, high: (word as u128) << 64 }
    }
}

/// A native type that decimals have.
pub trait Decimal: Integer {
    /// The integer type that holds its absolute value and every power of ten of its scales.
    type Significand: Significand;

    /// Whether the number is negative, its absolute value shifted to the top, and the bits of that shift.
    #[inline(always)]
    fn normalised(self) -> (bool, Self::Significand, u32) {
        let (negative, magnitude) = self.split();
        let magnitude = Self::Significand::from_wide(magnitude.to_wide());
        let shift = magnitude.leading_zeros();
        (negative, magnitude.shift_left(shift), shift)
    }
}

impl Decimal for i32 {
    type Significand = u128;
}
impl Decimal for i64 {
    type Significand = u128;
}
impl Decimal for i128 {
    type Significand = u128;
}
impl Decimal for I256 {
    type Significand = U256;
}

/// Converts a decimal of scale 0 or more to a float: divides by 10^scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quotient<A: Decimal, F> {
    /// The number 10^scale shifted to the top: `d` in [2^(N-1), 2^N).
    pub divisor: A::Significand,
    /// The bits by which `divisor` is shifted.
    pub shift: u32,
    /// An estimate of the reciprocal: floor(2^(N+127) / d), or one less.
    pub reciprocal: u128,
    /// The type of float that it makes.
    pub to: PhantomData<F>,
}

impl<A: Decimal, F: Float> ValueFunction for Quotient<A, F> {
    type From = A;
    type To = F;
    const ALWAYS: bool = true;
    #[inline(always)]
    fn call(&self, x: A) -> (F, bool) {
        let (negative, numerator, shift) = x.normalised();
        // floor(numerator * 2^63 / divisor), or one less: each of three truncations costs less than one in
        // the last of 128 bits, and only the upper 64 are used.
        let estimate = (full_product(numerator.top(), self.reciprocal).high >> 64) as u64;
        // The exact remainder of that quotient, in N + 64 bits; it is below twice the divisor.
        let (product_high, product) = self.divisor.mul_word(estimate);
        let (high, low) =
            (numerator.shift_right(A::Significand::BITS - 63).bottom(), numerator.shift_left(63));
        let rest = low.sub(product);
        let rest_high = high.wrapping_sub(product_high).wrapping_sub((low < product) as u64);
        let one_less = (rest_high != 0) | (rest >= self.divisor);
        let digits = estimate.wrapping_add(one_less as u64);
        let inexact = rest != if one_less { self.divisor } else { A::Significand::ZERO };
        (F::nearest(negative, digits, inexact, self.shift as i32 - shift as i32 - 63), true)
    }
}

/// Converts a decimal of negative scale to a float: multiplies by 10^-scale, that is by a power of five and
/// of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product<A, F> {
    /// The number 5^-scale (298 bits for 5^128) shifted to the top of 320 bits, low word first.
    pub factor: [u64; 5],
    /// The power of two by which to multiply the product's upper 64 bits, without the decimal's width and
    /// shift, which `call` adds.
    pub exponent: i32,
    /// The source type and the target type.
    pub types: PhantomData<(A, F)>,
}

impl<A: Decimal, F: Float> ValueFunction for Product<A, F> {
    type From = A;
    type To = F;
    const ALWAYS: bool = true;
    #[inline(always)]
    fn call(&self, x: A) -> (F, bool) {
        let (negative, number, shift) = x.normalised();
        let step = |(_, low): (u64, A::Significand), word: u64| {
            let (high, product) = number.mul_word(word);
            let sum = low.add(product);
            (high.wrapping_add((sum < product) as u64), sum)
        };
        let drop_word =
            |(high, low): (u64, A::Significand)| (0, low.shift_right(64).add(A::Significand::from_top(high)));
        // Schoolbook multiplication, a word of the factor at a time; words that fall off the low end count as
        // inexact.
        let first = step((0, A::Significand::ZERO), self.factor[0]);
        let second = step(drop_word(first), self.factor[1]);
        let third = step(drop_word(second), self.factor[2]);
        let fourth = step(drop_word(third), self.factor[3]);
        let fifth = step(drop_word(fourth), self.factor[4]);
        let lost = first.1.bottom() | second.1.bottom() | third.1.bottom() | fourth.1.bottom();
        let inexact = (lost != 0) | (fifth.1 != A::Significand::ZERO);
        let exponent = self.exponent + A::Significand::BITS as i32 - shift as i32;
        (F::nearest(negative, fifth.0, inexact, exponent), true)
    }
}
