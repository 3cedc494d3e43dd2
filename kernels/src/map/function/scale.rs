//! Multiplication or division by a constant: decimals to another scale, integers to and from decimals, times
//! to another unit.
//!
//! Two comparisons of the input with bounds decide, before the arithmetic, whether a value fits. The plan
//! works the bounds out exactly: the result is monotone in the input, so the inputs that fit are an interval.
//! Inside it the multiplication cannot overflow. If arrow-cast has proved from the precisions that every
//! value fits, it checks nothing and wraps; the bounds are then those of the type.

use super::ValueFunction;
use super::divide::Divisor;
use super::integer::{Integer, Magnitude, join};
use super::wide::U256;
use core::marker::PhantomData;

/// The interval of the inputs that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds<A> {
    /// The least input that fits.
    pub least: A,
    /// The greatest input that fits.
    pub greatest: A,
}

impl<A: Integer> Bounds<A> {
    /// The bounds that every value of the type is within.
    pub const ALL: Bounds<A> = Bounds { least: A::LEAST, greatest: A::GREATEST };

    /// Whether `x` is within the bounds.
    #[inline(always)]
    pub fn hold(&self, x: A) -> bool {
        (x >= self.least) & (x <= self.greatest)
    }
}

/// Computes `x * factor + addend`, in the target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up<A, B> {
    /// The bounds of the inputs that fit.
    pub bounds: Bounds<A>,
    /// The factor to multiply by.
    pub factor: B,
    /// The number added afterwards: the offset of a time zone, else 0.
    pub addend: i64,
}

impl<A: Integer, B: Integer> ValueFunction for Up<A, B> {
    type From = A;
    type To = B;
    #[inline(always)]
    fn call(&self, x: A) -> (B, bool) {
        let addend = B::truncate(self.addend.widen());
        (B::truncate(x.widen()).mul(self.factor).add(addend), self.bounds.hold(x))
    }
}

/// The treatment of a division's remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Drops the remainder: integers from decimals, larger time units.
    TowardZero,
    /// Rounds half away from zero: decimals of smaller scale.
    HalfAway,
}

/// Computes `x / divisor + addend`, rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Down<A: Integer, B> {
    /// The bounds of the inputs that fit.
    pub bounds: Bounds<A>,
    /// The divisor, prepared for fast division.
    pub divisor: Divisor<A::Magnitude>,
    /// The least remainder that increases the quotient by one; the divisor itself where none does.
    pub round_from: A::Magnitude,
    /// The number added afterwards: the offset of a time zone, else 0.
    pub addend: i64,
    /// The type of the result.
    pub to: PhantomData<B>,
}

impl<A: Integer, B: Integer> Down<A, B> {
    /// Prepares a division; `divisor` is at least 2.
    pub fn new(bounds: Bounds<A>, divisor: A::Magnitude, rounding: Rounding, addend: i64) -> Down<A, B> {
        let round_from = match rounding {
            Rounding::TowardZero => divisor,
            Rounding::HalfAway => divisor.shift_right(1),
        };
        Down { bounds, divisor: Divisor::new(divisor), round_from, addend, to: PhantomData }
    }
}

impl<A: Integer, B: Integer> ValueFunction for Down<A, B> {
    type From = A;
    type To = B;
    #[inline(always)]
    fn call(&self, x: A) -> (B, bool) {
        let (negative, magnitude) = x.split();
        let (quotient, remainder) = self.divisor.divide(magnitude);
        let up = A::Magnitude::from_wide(U256::from_low((remainder >= self.round_from) as u128));
        let value = B::truncate(join(negative, quotient.add(up).to_wide()));
        (value.add(B::truncate(self.addend.widen())), self.bounds.hold(x))
    }
}
