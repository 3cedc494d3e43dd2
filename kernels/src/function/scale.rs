//! Multiply or divide by a constant: decimals of another scale, integers into and out of decimals, other
//! time units.
//!
//! Whether a value fits is decided before the arithmetic, by two comparisons of the input with bounds that
//! the plan works out exactly: the result is monotone in the input, so the inputs that fit are an interval.
//! Inside it the multiplication cannot overflow. Where arrow-cast has proved from the precisions that
//! everything fits, it looks at nothing and wraps; there the bounds are those of the type.

use super::ValueFunction;
use super::divide::Divisor;
use super::integer::{Integer, Magnitude, join};
use super::wide::U256;
use core::marker::PhantomData;

/// Which inputs fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds<A> {
    /// The least that does.
    pub least: A,
    /// The greatest that does.
    pub greatest: A,
}

impl<A: Integer> Bounds<A> {
    /// Everything fits.
    pub const ALL: Bounds<A> = Bounds { least: A::LEAST, greatest: A::GREATEST };

    /// Whether `x` fits.
    #[inline(always)]
    pub fn hold(&self, x: A) -> bool {
        (x >= self.least) & (x <= self.greatest)
    }
}

/// `x * factor + addend`, in the target type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Up<A, B> {
    /// Which inputs fit.
    pub bounds: Bounds<A>,
    /// What to multiply by.
    pub factor: B,
    /// What to add afterwards: the offset of a time zone, else 0.
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

/// What happens to the remainder of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// It is dropped: integers from decimals, larger time units.
    TowardZero,
    /// Half away from zero: decimals of smaller scale.
    HalfAway,
}

/// `x / divisor + addend`, rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Down<A: Integer, B> {
    /// Which inputs fit.
    pub bounds: Bounds<A>,
    /// What to divide by.
    pub divisor: Divisor<A::Magnitude>,
    /// The remainder from which the quotient grows by one: the divisor itself for never.
    pub round_from: A::Magnitude,
    /// What to add afterwards: the offset of a time zone, else 0.
    pub addend: i64,
    /// The target type.
    pub to: PhantomData<B>,
}

impl<A: Integer, B: Integer> Down<A, B> {
    /// This division; `divisor` is at least 2.
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
