//! Integers for the conversions: sign and magnitude, and conversion to and from 256 bits.
//!
//! Every conversion between integers goes through [`I256`] in the source. Inlining removes it: the optimiser
//! sees that only the low bits are used.

use super::wide::{I256, U256, full_product};

/// An unsigned integer type for the arithmetic on magnitudes.
pub trait Magnitude: Copy + Ord {
    /// Its width in bits.
    const BITS: u32;
    /// The zero of this type.
    const ZERO: Self;
    /// The greatest value: all bits one.
    const MAX: Self;
    /// `self + other`, modulo 2^BITS.
    fn add(self, other: Self) -> Self;
    /// `self - other`, modulo 2^BITS.
    fn sub(self, other: Self) -> Self;
    /// The low half of the product.
    fn mul_low(self, other: Self) -> Self;
    /// The high half of the product.
    fn mul_high(self, other: Self) -> Self;
    /// `self >> bits`, for fewer than BITS bits.
    fn shift_right(self, bits: u32) -> Self;
    /// The same number, zero-extended.
    fn to_wide(self) -> U256;
    /// The low bits of a number of 256 bits.
    fn from_wide(wide: U256) -> Self;
}

/// A native integer of an Arrow type.
pub trait Integer: Copy + PartialOrd {
    /// The type that holds its absolute value: at least 32 bits, since no GPU has a narrower multiplier.
    type Magnitude: Magnitude;
    /// The least value of the type.
    const LEAST: Self;
    /// The greatest value of the type.
    const GREATEST: Self;
    /// Whether the number is negative, and its absolute value.
    fn split(self) -> (bool, Self::Magnitude);
    /// The same number, sign- or zero-extended.
    fn widen(self) -> I256;
    /// The low bits of a number of 256 bits.
    fn truncate(wide: I256) -> Self;
    /// The product, modulo 2^width.
    fn mul(self, other: Self) -> Self;
    /// The sum, modulo 2^width.
    fn add(self, other: Self) -> Self;
}

/// The integer of this sign and magnitude, modulo 2^256.
#[inline(always)]
pub fn join(negative: bool, magnitude: U256) -> I256 {
    let value = I256::from_bits(magnitude);
    if negative { value.wrapping_neg() } else { value }
}

macro_rules! magnitudes {
    ($($t:ty, |$a:ident, $b:ident| $mul_high:expr;)*) => {$(
        impl Magnitude for $t {
            const BITS: u32 = <$t>::BITS;
            const ZERO: Self = 0;
            const MAX: Self = <$t>::MAX;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul_low(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn mul_high(self, other: Self) -> Self { let ($a, $b) = (self, other); $mul_high }
            #[inline(always)]
            fn shift_right(self, bits: u32) -> Self { self.wrapping_shr(bits) }
            #[inline(always)]
            fn to_wide(self) -> U256 { U256::from_low(self as u128) }
            #[inline(always)]
            fn from_wide(wide: U256) -> Self { wide.low as $t }
        }
    )*};
}

magnitudes! {
    u32, |a, b| ((a as u64 * b as u64) >> 32) as u32;
    u64, |a, b| ((a as u128 * b as u128) >> 64) as u64;
    u128, |a, b| full_product(a, b).high;
}

impl Magnitude for U256 {
    const BITS: u32 = 256;
    const ZERO: Self = U256::ZERO;
    const MAX: Self = U256::MAX;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn mul_low(self, other: Self) -> Self {
        self.wrapping_mul(other)
    }
    #[inline(always)]
    fn mul_high(self, other: Self) -> Self {
        U256::mul_high(self, other)
    }
    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        self.shr(bits)
    }
    #[inline(always)]
    fn to_wide(self) -> U256 {
        self
    }
    #[inline(always)]
    fn from_wide(wide: U256) -> Self {
        wide
    }
}

macro_rules! integers {
    ($($t:ty, $magnitude:ty;)*) => {$(
        impl Integer for $t {
            type Magnitude = $magnitude;
            const LEAST: Self = <$t>::MIN;
            const GREATEST: Self = <$t>::MAX;
            #[inline(always)]
            #[allow(unused_comparisons, reason = "unsigned integers are never negative")]
            fn split(self) -> (bool, $magnitude) {
                // Sign extension, then negation; this is correct for the least value too.
                let (negative, bits) = (self < 0, self as $magnitude);
                (negative, if negative { bits.wrapping_neg() } else { bits })
            }
            #[inline(always)]
            fn widen(self) -> I256 { I256::from_i128(self as i128) }
            #[inline(always)]
            fn truncate(wide: I256) -> Self { wide.low as $t }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
        }
    )*};
}

integers! {
    i8, u32; i16, u32; i32, u32; i64, u64; i128, u128;
    u8, u32; u16, u32; u32, u32; u64, u64;
}

impl Integer for I256 {
    type Magnitude = U256;
    const LEAST: Self = I256::MIN;
    const GREATEST: Self = I256::MAX;
    #[inline(always)]
    fn split(self) -> (bool, U256) {
        let negative = self.high < 0;
        (negative, if negative { self.wrapping_neg().to_bits() } else { self.to_bits() })
    }
    #[inline(always)]
    fn widen(self) -> I256 {
        self
    }
    #[inline(always)]
    fn truncate(wide: I256) -> Self {
        wide
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        I256::from_bits(self.to_bits().wrapping_mul(other.to_bits()))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        I256::from_bits(self.to_bits().wrapping_add(other.to_bits()))
    }
}
