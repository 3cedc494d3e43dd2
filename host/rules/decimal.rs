//! Rules for decimals: powers of ten, and which inputs fit.

use std::marker::PhantomData;

use arrow_schema::DataType;
use bowstring_kernels::map::function::divide::Divisor;
use bowstring_kernels::map::function::float::{Decimal, Float, Product, Quotient, Round, Significand};
use bowstring_kernels::map::function::integer::{Integer, Magnitude, join};
use bowstring_kernels::map::function::scale::{Bounds, Down, Rounding, Up};
use bowstring_kernels::map::function::words::Parameter;
use bowstring_kernels::map::function::{F16, I256, Native, Number, U256};
use bowstring_kernels::map::functions::Function;

use super::rule::{CastRule, apply, decimal, float, integer, signed, with};

/// A decimal type: native type, precision and scale.
pub(super) type Type = (Number, u8, i8);

/// The maximum precision of a native decimal type, and the exponent of the greatest power of ten that it
/// holds.
const fn max_precision(number: Number) -> u8 {
    match number {
        Number::I32 => 9,
        Number::I64 => 18,
        Number::I128 => 38,
        _ => 76,
    }
}

/// The native type, precision and scale of a decimal type; `None` for other types.
pub(super) fn of(data_type: &DataType) -> Option<Type> {
    Some(match *data_type {
        DataType::Decimal32(precision, scale) => (Number::I32, precision, scale),
        DataType::Decimal64(precision, scale) => (Number::I64, precision, scale),
        DataType::Decimal128(precision, scale) => (Number::I128, precision, scale),
        DataType::Decimal256(precision, scale) => (Number::I256, precision, scale),
        _ => return None,
    })
}

/// Whether precision and scale are consistent. A negative scale always is.
pub(super) const fn is_valid((number, precision, scale): Type) -> bool {
    precision != 0 && precision <= max_precision(number) && (scale <= 0 || scale as u8 <= precision)
}

/// Ten to the power of `exponent`; `None` above 2^256.
pub(super) fn power_of_ten(exponent: u32) -> Option<U256> {
    (exponent <= 77).then(|| (0..exponent).fold(U256::ONE, |power, _| power.wrapping_mul(U256::from_low(10))))
}

/// The inputs whose absolute values are at most these limits. A limit beyond the type does not restrict it.
fn bounds<A: Integer>(below_zero: U256, above_zero: U256) -> Bounds<A> {
    let (least, greatest) = (A::LEAST.split().1.to_wide(), A::GREATEST.split().1.to_wide());
    Bounds {
        least: if below_zero >= least { A::LEAST } else { A::truncate(join(true, below_zero)) },
        greatest: if above_zero >= greatest { A::GREATEST } else { A::truncate(join(false, above_zero)) },
    }
}

/// Whether some input is out of bounds.
fn exclude_some<A: Integer>(bounds: &Bounds<A>) -> bool {
    bounds.least != A::LEAST || bounds.greatest != A::GREATEST
}

/// Multiplication, with inputs limited in absolute value on either side of zero.
fn up<A, B>(factor: U256, below_zero: U256, above_zero: U256) -> CastRule
where
    A: Native + Integer + Parameter,
    B: Native + Integer + Parameter,
{
    let bounds = bounds::<A>(below_zero, above_zero);
    let factor = B::truncate(I256::from_bits(factor));
    apply(Function::Up, Up { bounds, factor, addend: 0 }, exclude_some(&bounds))
}

/// Division, with quotients limited in absolute value on either side of zero.
fn down<A, B>(divisor: U256, rounding: Rounding, below_zero: U256, above_zero: U256) -> CastRule
where
    A: Native + Integer<Magnitude: Parameter> + Parameter,
    B: Native + Integer,
{
    // The greatest input with this quotient: one below the first input of the next quotient.
    let next = match rounding {
        Rounding::TowardZero => divisor,
        Rounding::HalfAway => divisor.shr(1),
    };
    let last = |quotient: U256| match quotient.checked_mul(divisor).map(|x| x.overflowing_add(next)) {
        Some((past, false)) => past.wrapping_sub(U256::ONE),
        _ => U256::MAX,
    };
    let bounds = bounds::<A>(last(below_zero), last(above_zero));
    let conversion = Down::<A, B>::new(bounds, A::Magnitude::from_wide(divisor), rounding, 0);
    apply(Function::Down, conversion, exclude_some(&bounds))
}

/// The absolute values of an integer type's limits.
fn ends<B: Integer>() -> (U256, U256) {
    (B::LEAST.split().1.to_wide(), B::GREATEST.split().1.to_wide())
}

/// The rule for a decimal to a decimal.
pub(super) fn rescale((a, p, s): Type, to @ (b, q, t): Type) -> CastRule {
    if !is_valid(to) {
        return CastRule::InvalidTarget;
    }
    let digits = power_of_ten(q as u32).map_or(U256::MAX, |power| power.wrapping_sub(U256::ONE));
    let change = t as i32 - s as i32;
    let result = if a == b && change == 0 && p <= q {
        Some(CastRule::Same)
    } else if change >= 0 {
        // arrow-cast's table of powers is as long as the target's maximum precision.
        if change > max_precision(b) as i32 {
            return CastRule::Overflow;
        }
        power_of_ten(change as u32).and_then(|factor| {
            // Every number of the source's precision fits; arrow-cast does not check.
            let certain = p as i32 + change <= q as i32;
            // |x| * 10^change <= 10^q - 1 is |x| <= 10^(q - change) - 1, and x = 0 if q < change.
            let most = power_of_ten((q as u32).saturating_sub(change as u32))?.wrapping_sub(U256::ONE);
            let limit = if certain { U256::MAX } else { most };
            decimal!(a, A, decimal!(b, B, Some(up::<A, B>(factor, limit, limit))))
        })
    } else {
        // The limit is the source's maximum precision; beyond it everything rounds to zero.
        if -change > max_precision(a) as i32 {
            return CastRule::Zero;
        }
        power_of_ten(change.unsigned_abs()).and_then(|divisor| {
            // Rounding can add a digit, so the comparison is strict.
            let certain = (p as i32 + change) < q as i32;
            let limit = if certain { U256::MAX } else { digits };
            let round = Rounding::HalfAway;
            decimal!(a, A, decimal!(b, B, Some(down::<A, B>(divisor, round, limit, limit))))
        })
    };
    result.unwrap_or(CastRule::Never)
}

/// The rule for a decimal to an integer or float.
pub(super) fn to_plain(a: Number, scale: i8, b: Number) -> CastRule {
    let exponent = scale.unsigned_abs() as u32;
    if matches!(b, Number::F16 | Number::F32 | Number::F64) {
        return decimal!(a, A, float!(b, F, to_float::<A, F>(scale))).unwrap_or(CastRule::Never);
    }
    // The power of ten must fit the decimal's own native type.
    let Some(power) = power_of_ten(exponent).filter(|_| exponent <= max_precision(a) as u32) else {
        return CastRule::Overflow;
    };
    let ends_of = |number| integer!(number, B, Some(ends::<B>()));
    let Some((below, above)) = ends_of(b) else { return CastRule::Never };
    // The target type `b` decides which values fit; the resulting bits are those of the signed type.
    decimal!(
        a,
        A,
        signed!(b.signed(), B, {
            Some(if scale > 0 {
                down::<A, B>(power, Rounding::TowardZero, below, above)
            } else {
                // The product must fit both types, because arrow-cast multiplies in the decimal's type.
                let divisor = Divisor::new(power);
                let within = |end: U256, own: U256| divisor.divide(end.min(own)).0;
                let (own_below, own_above) = ends::<A>();
                up::<A, B>(power, within(below, own_below), within(above, own_above))
            })
        })
    )
    .unwrap_or(CastRule::Never)
}

/// The rule for a decimal to a float, if the scale is supported.
fn to_float<A, F>(scale: i8) -> Option<CastRule>
where
    A: Native + Decimal<Significand: Parameter>,
    F: Native + Float,
{
    let exponent = scale.unsigned_abs() as u32;
    if scale >= 0 {
        let power = power_of_ten(exponent)?;
        let spare = 256 - A::Significand::BITS;
        let shift = power.leading_zeros().checked_sub(spare)?;
        let divisor = Divisor::new(A::Significand::from_wide(power));
        // floor(2^(N + s) / 10^scale), s = N - 1 - shift, is floor(2^(2N - 1) / (10^scale * 2^shift)).
        let reciprocal = divisor.reciprocal.top();
        let divisor = divisor.value.shift_left(shift);
        let conversion = Quotient::<A, F> { divisor, shift, reciprocal, to: PhantomData };
        return Some(apply(Function::Quotient, conversion, false));
    }
    // 5^exponent in 320 bits, shifted to the top: multiplied by five, then by two until the top bit is set.
    let times = |factor: [u64; 5], by: u64| {
        let mut carry = 0u128;
        factor.map(|word| {
            carry += word as u128 * by as u128;
            let low = carry as u64;
            carry >>= 64;
            low
        })
    };
    let mut factor = (0..exponent).fold([1, 0, 0, 0, 0], |power, _| times(power, 5));
    let mut shift = 0;
    while factor[4] >> 63 == 0 {
        (factor, shift) = (times(factor, 2), shift + 1);
    }
    // 10^exponent = factor * 2^(exponent - shift), and 256 of the 320 bits are cut off.
    let exponent = exponent as i32 - shift + 256;
    Some(apply(Function::Product, Product::<A, F> { factor, exponent, types: PhantomData }, false))
}

/// The rule for an integer or float to a decimal.
pub(super) fn from_plain(a: Number, to @ (b, precision, scale): Type) -> CastRule {
    if !is_valid(to) {
        return CastRule::InvalidTarget;
    }
    let exponent = scale.unsigned_abs() as u32;
    let digits = power_of_ten(precision as u32).map_or(U256::MAX, |power| power.wrapping_sub(U256::ONE));
    if matches!(a, Number::F16 | Number::F32 | Number::F64) {
        let factor = power_as_float(scale as i32);
        return float!(
            a,
            F,
            decimal!(b, B, {
                let limit = <B as Integer>::Magnitude::from_wide(digits);
                Some(apply(Function::Round, Round::<F, B> { factor, limit, from: PhantomData }, true))
            })
        )
        .unwrap_or(CastRule::Never);
    }
    if scale >= 0 {
        // |x| * 10^scale <= 10^precision - 1; the scale is at most the precision.
        let most = power_of_ten(precision as u32 - exponent).zip(power_of_ten(exponent));
        return most
            .and_then(|(past, factor)| {
                let most = past.wrapping_sub(U256::ONE);
                integer!(a, A, decimal!(b, B, Some(up::<A, B>(factor, most, most))))
            })
            .unwrap_or(CastRule::Never);
    }
    integer!(
        a,
        A,
        decimal!(b, B, {
            // arrow-cast computes the power of ten in the integer's own type; if it does not fit, every
            // result is zero.
            let power = power_of_ten(exponent).filter(|power| *power <= ends::<A>().1);
            Some(
                power.map_or(CastRule::Zero, |power| {
                    down::<A, B>(power, Rounding::TowardZero, digits, digits)
                }),
            )
        })
    )
    .unwrap_or(CastRule::Never)
}

/// Ten to the power of `exponent` as `f64::powi` computes it, by squaring. If that is inexact, so is
/// arrow-cast.
fn power_as_float(exponent: i32) -> f64 {
    let (mut power, mut square, mut left) = (1.0, 10.0, exponent.unsigned_abs());
    loop {
        if left & 1 == 1 {
            power *= square;
        }
        left >>= 1;
        if left == 0 {
            return if exponent < 0 { 1.0 / power } else { power };
        }
        square *= square;
    }
}
