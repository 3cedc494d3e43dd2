//! Exact division by a number that is the same for every row, without a divide instruction.
//!
//! For a divisor `d` with `2^s <= d < 2^(s+1)` let `R = floor(2^(N+s) / d)`, N being the width. Then for
//! every `x < 2^N` the estimate `floor(x * R / 2^(N+s))` is the quotient or one less: the true quotient
//! exceeds `x * R / 2^(N+s)` by `x * (2^(N+s) - R * d) / (d * 2^(N+s))`, the bracket is below `d`, so the
//! excess is below `x / 2^(N+s) <= 1`. The remainder shows which of the two it is. A power of two would need
//! `R = 2^N`; `R = 2^N - 1` keeps the excess below one too.
//!
//! This costs two multiplications of width N. A 128-bit division on a GPU is a loop over 128 bits.

use super::integer::Magnitude;
use super::wide::U256;

/// A divisor, with the precomputed values that make dividing by it cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor<M> {
    /// The divisor itself, at least 1.
    pub value: M,
    /// The value `R` of the module's documentation.
    pub reciprocal: M,
    /// The value `s` of the module's documentation.
    pub shift: u32,
}

impl<M: Magnitude> Divisor<M> {
    /// Prepares a divisor, which must be at least 1. For the host only: this is a loop over the bits.
    pub fn new(value: M) -> Divisor<M> {
        let wide = value.to_wide();
        let shift = 255 - wide.leading_zeros();
        // Long division of 2^(N+s) by d, a bit at a time; the remainder starts at 2^s <= d.
        let (mut quotient, mut remainder) = (U256::ZERO, U256::ONE.shl(shift));
        if remainder == wide {
            return Divisor { value, reciprocal: M::MAX, shift };
        }
        for _ in 0..M::BITS {
            // Doubling can exceed 256 bits; it is then certainly at least d, and the difference fits again.
            let (doubled, over) = remainder.overflowing_add(remainder);
            let goes = over || doubled >= wide;
            remainder = if goes { doubled.wrapping_sub(wide) } else { doubled };
            quotient = quotient.shl(1).wrapping_add(if goes { U256::ONE } else { U256::ZERO });
        }
        Divisor { value, reciprocal: M::from_wide(quotient), shift }
    }

    /// Divides `x`: the quotient and the remainder.
    #[inline(always)]
    pub fn divide(&self, x: M) -> (M, M) {
        let estimate = x.mul_high(self.reciprocal).shift_right(self.shift);
        let remainder = x.sub(estimate.mul_low(self.value));
        let one_less = remainder >= self.value;
        (
            if one_less { estimate.add(M::from_wide(U256::ONE)) } else { estimate },
            if one_less { remainder.sub(self.value) } else { remainder },
        )
    }
}
