//! 256-bit integers, with the operations that decimals need: add, subtract, multiply, shift, compare.
//!
//! Division is missing: every divisor here is a power of ten known before the kernel starts, and
//! [`super::divide`] divides by one with two multiplications.

/// An unsigned 256-bit integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct U256 {
    /// The low 128 bits.
    pub low: u128,
    /// The high 128 bits.
    pub high: u128,
}

/// A signed 256-bit integer in two's complement; in memory the 32 little-endian bytes of Arrow's Decimal256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct I256 {
    /// The low 128 bits.
    pub low: u128,
    /// The high half, with the sign.
    pub high: i128,
}

/// The full 256-bit product of two 128-bit integers.
#[inline(always)]
pub fn full_product(a: u128, b: u128) -> U256 {
    let word = |x: u128| x & u64::MAX as u128;
    let (a0, a1, b0, b1) = (word(a), a >> 64, word(b), b >> 64);
    let (p00, p01, p10, p11) = (a0 * b0, a0 * b1, a1 * b0, a1 * b1);
    // Three terms below 2^64 each: no carry is lost.
    let middle = (p00 >> 64) + word(p01) + word(p10);
    U256 {
        low: word(p00) | (middle << 64),
        // The product of two values below 2^128 has its upper half below 2^128 - 1: no overflow.
        high: p11.wrapping_add(p01 >> 64).wrapping_add(p10 >> 64).wrapping_add(middle >> 64),
    }
}

impl U256 {
    /// The number 0 as 256 bits.
    pub const ZERO: U256 = U256 { low: 0, high: 0 };
    /// The number 1 as 256 bits.
    pub const ONE: U256 = U256 { low: 1, high: 0 };
    /// The greatest number, 2^256 - 1.
    pub const MAX: U256 = U256 { low: u128::MAX, high: u128::MAX };

    /// Zero-extends a number of 128 bits.
    pub const fn from_low(low: u128) -> U256 {
        U256 { low, high: 0 }
    }

    /// The sum, and whether it reached 2^256.
    #[inline(always)]
    pub const fn overflowing_add(self, other: U256) -> (U256, bool) {
        let (low, carry) = self.low.overflowing_add(other.low);
        let (high, over) = self.high.overflowing_add(other.high);
        let (high, over_again) = high.overflowing_add(carry as u128);
        (U256 { low, high }, over | over_again)
    }

    /// The difference, and whether it fell below zero.
    #[inline(always)]
    pub const fn overflowing_sub(self, other: U256) -> (U256, bool) {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        let (high, under) = self.high.overflowing_sub(other.high);
        let (high, under_again) = high.overflowing_sub(borrow as u128);
        (U256 { low, high }, under | under_again)
    }

    /// The sum modulo 2^256.
    #[inline(always)]
    pub const fn wrapping_add(self, other: U256) -> U256 {
        self.overflowing_add(other).0
    }

    /// The difference modulo 2^256.
    #[inline(always)]
    pub const fn wrapping_sub(self, other: U256) -> U256 {
        self.overflowing_sub(other).0
    }

    /// The product modulo 2^256.
    #[inline(always)]
    pub fn wrapping_mul(self, other: U256) -> U256 {
        let product = full_product(self.low, other.low);
        let crossed = self.low.wrapping_mul(other.high).wrapping_add(self.high.wrapping_mul(other.low));
        U256 { low: product.low, high: product.high.wrapping_add(crossed) }
    }

    /// The upper 256 bits of the 512-bit product.
    #[inline(always)]
    pub fn mul_high(self, other: U256) -> U256 {
        let carried = U256::from_low(full_product(self.low, other.low).high);
        let (left, right) = (full_product(self.low, other.high), full_product(self.high, other.low));
        // left + carried cannot overflow: (2^128 - 1)^2 + 2^128 - 1 < 2^256. Adding `right` can, once.
        let (middle, over) = left.wrapping_add(carried).overflowing_add(right);
        full_product(self.high, other.high).wrapping_add(U256 { low: middle.high, high: over as u128 })
    }

    /// The product if it is below 2^256.
    pub fn checked_mul(self, other: U256) -> Option<U256> {
        (self.mul_high(other) == U256::ZERO).then(|| self.wrapping_mul(other))
    }

    /// `self << bits`, for fewer than 256 bits.
    #[inline(always)]
    pub const fn shl(self, bits: u32) -> U256 {
        let inner = bits & 127;
        // Two steps, so that inner = 0 does not shift by 128.
        let crossing = (self.low >> 1).wrapping_shr(127 - inner);
        let (low, high) = (self.low.wrapping_shl(inner), self.high.wrapping_shl(inner) | crossing);
        if bits >= 128 { U256 { low: 0, high: low } } else { U256 { low, high } }
    }

    /// `self >> bits`, for fewer than 256 bits.
    #[inline(always)]
    pub const fn shr(self, bits: u32) -> U256 {
        let inner = bits & 127;
        let crossing = (self.high << 1).wrapping_shl(127 - inner);
        let (low, high) = (self.low.wrapping_shr(inner) | crossing, self.high.wrapping_shr(inner));
        if bits >= 128 { U256 { low: high, high: 0 } } else { U256 { low, high } }
    }

    /// The number of the 256 bits above the highest one bit.
    #[inline(always)]
    pub const fn leading_zeros(self) -> u32 {
        if self.high != 0 { self.high.leading_zeros() } else { 128 + self.low.leading_zeros() }
    }

    /// Whether `self < other`, without a branch.
    #[inline(always)]
    pub const fn below(self, other: U256) -> bool {
        (self.high < other.high) | ((self.high == other.high) & (self.low < other.low))
    }
}

impl PartialOrd for U256 {
    #[inline(always)]
    fn partial_cmp(&self, other: &U256) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for U256 {
    #[inline(always)]
    fn cmp(&self, other: &U256) -> core::cmp::Ordering {
        (self.high, self.low).cmp(&(other.high, other.low))
    }
}

impl I256 {
    /// The least number, -2^255.
    pub const MIN: I256 = I256 { low: 0, high: i128::MIN };
    /// The greatest number, 2^255 - 1.
    pub const MAX: I256 = I256 { low: u128::MAX, high: i128::MAX };
    /// The number 0 as 256 bits.
    pub const ZERO: I256 = I256 { low: 0, high: 0 };

    /// Sign-extends a number of 128 bits.
    #[inline(always)]
    pub const fn from_i128(value: i128) -> I256 {
        I256 { low: value as u128, high: value >> 127 }
    }

    /// The same bits, without a sign.
    #[inline(always)]
    pub const fn to_bits(self) -> U256 {
        U256 { low: self.low, high: self.high as u128 }
    }

    /// The same bits, with a sign.
    #[inline(always)]
    pub const fn from_bits(bits: U256) -> I256 {
        I256 { low: bits.low, high: bits.high as i128 }
    }

    /// `0 - self`, modulo 2^256.
    #[inline(always)]
    pub const fn wrapping_neg(self) -> I256 {
        I256::from_bits(U256::ZERO.wrapping_sub(self.to_bits()))
    }

    /// Whether `self < other`, without a branch.
    #[inline(always)]
    pub const fn below(self, other: I256) -> bool {
        (self.high < other.high) | ((self.high == other.high) & (self.low < other.low))
    }
}

impl PartialOrd for I256 {
    #[inline(always)]
    fn partial_cmp(&self, other: &I256) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for I256 {
    #[inline(always)]
    fn cmp(&self, other: &I256) -> core::cmp::Ordering {
        (self.high, self.low).cmp(&(other.high, other.low))
    }
}
