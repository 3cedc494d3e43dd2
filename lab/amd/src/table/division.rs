//! The operations of a division: they scale the operands away from the extremes, scale the quotient back, and
//! fix up the special cases. Compilers put Newton's iteration in between.
//!
//! AMD's pseudo-code is wrong in some cases. This code then computes the nearest quotient, as compilers rely
//! on: AUTHORITY.md lists each case, and the test below divides.

use super::floats::scaled;
use super::lanes::{carries, mixed};
use super::row::Format::Vop3;
use super::row::{Action, Kind, Row, row};

/// Splits a finite number other than 0 into 53 bits, the highest of which is set, and a power of two.
fn parts(a: f64) -> (u128, i32) {
    let field = (a.to_bits() >> 52 & 0x7ff) as i32;
    let stored = a.to_bits() & ((1 << 52) - 1);
    let whole = if field == 0 { stored } else { stored | 1 << 52 };
    let up = whole.leading_zeros() - 11;
    (u128::from(whole << up), field.max(1) - 1075 - up as i32)
}

/// Shifts right, and keeps in the lowest bit whether any set bit was lost.
fn shifted_right(a: u128, by: u32) -> u128 {
    let kept = a.checked_shr(by).unwrap_or(0);
    kept | u128::from(a != kept.checked_shl(by).unwrap_or(0))
}

/// The sign, bits and power of two of `a * b + c`: enough bits to round it correctly to any width.
fn exact(a: f64, b: f64, c: f64) -> (bool, u128, i32) {
    let ((a_bits, a_power), (b_bits, b_power)) = (parts(a), parts(b));
    let negative = a.is_sign_negative() != b.is_sign_negative();
    // Both have 126 bits, which leaves room for the sum.
    let (product, power) = ((a_bits * b_bits) << 20, a_power + b_power - 20);
    if c == 0.0 {
        return (negative, product, power);
    }
    let (c_bits, c_power) = parts(c);
    let (more, more_power) = (c_bits << 73, c_power - 73);
    let top = power.max(more_power);
    // The bits shifted out are far below the other operand's highest bit, so cancellation cannot reach them.
    let product = shifted_right(product, (top - power) as u32);
    let more = shifted_right(more, (top - more_power) as u32);
    match negative == c.is_sign_negative() {
        true => (negative, product + more, top),
        false if product < more => (!negative, more - product, top),
        false => (negative && product != more, product - more, top),
    }
}

/// Rounds to the nearest number with this many stored bits of significand and this bias; returns its bits.
fn nearest((negative, bits, power): (bool, u128, i32), width: u32, stored: u32, bias: i32) -> u64 {
    let sign = u64::from(negative) << (width - 1);
    let infinity = ((2 * bias + 1) as u64) << stored;
    let exponent = power + 127 - bits.leading_zeros() as i32;
    if bits == 0 || exponent > bias {
        return sign | if bits == 0 { 0 } else { infinity };
    }
    let exponent = exponent.max(1 - bias);
    let units = match exponent - stored as i32 - power {
        128.. => 0,
        down @ 1.. => {
            let (kept, rest, half) = (bits >> down, bits & ((1 << down) - 1), 1 << (down - 1));
            (kept + u128::from(rest > half || rest == half && kept & 1 != 0)) as u64
        }
        up => (bits << -up) as u64,
    };
    // A carry out of the significand increments the exponent, as it should; a denormal has exponent 0.
    sign | (units + (((exponent + bias - 1) as u64) << stored)).min(infinity)
}

/// `$far` is the difference of exponents from which the quotient may overflow, `$tiny` the exponent below
/// which remainders are lost, and `$nothing` the difference below which the quotient is 0.
macro_rules! division {
    (
        $t:ident, $width:literal, $stored:literal, $bias:literal,
        $far:literal, $tiny:literal, $nothing:literal, $by:literal
    ) => {
        mod $t {
            use crate::table::division::*;

            fn exponent(a: $t) -> i32 {
                (a.to_bits() >> $stored) as i32 & (2 * $bias + 1)
            }

            fn times_power(a: $t, by: i32) -> $t {
                scaled(f64::from(a), by) as $t
            }

            /// Scales `a`, which is the denominator or the numerator; returns whether the quotient is scaled
            /// too.
            fn scale(a: $t, under: $t, over: $t) -> ($t, bool) {
                let tiny_quotient = (over / under).is_subnormal();
                let huge = (1.0 / under).is_subnormal();
                if over == 0.0 || under == 0.0 {
                    ($t::NAN, false)
                } else if exponent(over) - exponent(under) >= $far {
                    (if a == under { times_power(a, $by) } else { a }, true)
                } else if under.is_subnormal() {
                    (times_power(a, $by), false)
                } else if huge && tiny_quotient {
                    (if a == under { times_power(a, -$by) } else { a }, true)
                } else if huge {
                    (times_power(a, -$by), false)
                } else if tiny_quotient {
                    (if a == over { times_power(a, $by) } else { a }, true)
                } else if exponent(over) <= $tiny {
                    (times_power(a, $by), false)
                } else {
                    (a, false)
                }
            }

            /// The quotient `a * b + c`, scaled back before it is rounded.
            fn multiply_add(a: $t, b: $t, c: $t, is_scaled: bool) -> $t {
                let sum = a.mul_add(b, c);
                if !is_scaled {
                    return sum;
                }
                let by = if exponent(c) > $bias { $by } else { -$by };
                if a == 0.0 || b == 0.0 || ![a, b, c].iter().all(|x| x.is_finite()) {
                    return times_power(sum, by);
                }
                let (negative, bits, power) = exact(a.into(), b.into(), c.into());
                $t::from_bits(nearest((negative, bits, power + by), $width, $stored, $bias) as _)
            }

            fn fixed_up(quotient: $t, under: $t, over: $t) -> $t {
                let negative = under.is_sign_negative() != over.is_sign_negative();
                let size = if over.is_nan() || under.is_nan() {
                    return over + under;
                } else if over == 0.0 && under == 0.0 || over.is_infinite() && under.is_infinite() {
                    return $t::NAN;
                } else if under == 0.0 || over.is_infinite() {
                    $t::INFINITY
                } else if under.is_infinite() || over == 0.0 || exponent(over) - exponent(under) < $nothing {
                    0.0
                } else if quotient.is_nan() {
                    // The iteration subtracted infinities.
                    $t::INFINITY
                } else {
                    quotient.abs()
                };
                if negative { -size } else { size }
            }

            fn of(bits: u64) -> $t {
                $t::from_bits(bits as _)
            }

            pub(super) fn scale_lanes(kind: Kind) -> Action {
                carries(kind, [kind; 3], |[a, under, over]| {
                    let (scaled, quotient_is) = scale(of(a), of(under), of(over));
                    (scaled.to_bits().into(), quotient_is)
                })
            }

            pub(super) fn multiply_add_lanes(kind: Kind) -> Action {
                mixed(kind, [kind, kind, kind, Kind::Vcc], |[a, b, c, is_scaled]| {
                    multiply_add(of(a), of(b), of(c), is_scaled != 0).to_bits().into()
                })
            }

            pub(super) fn fix_up_lanes(kind: Kind) -> Action {
                mixed(kind, [kind; 3], |[quotient, under, over]| {
                    fixed_up(of(quotient), of(under), of(over)).to_bits().into()
                })
            }

            /// The division `over / under`, in the steps that compilers emit.
            #[cfg(test)]
            pub(super) fn divided(over: $t, under: $t, more: u32) -> $t {
                let (under_scaled, _) = scale(under, under, over);
                let (over_scaled, is_scaled) = scale(over, under, over);
                let mut inverse = 1.0 / under_scaled;
                for _ in 0..more {
                    inverse = (-under_scaled).mul_add(inverse, 1.0).mul_add(inverse, inverse);
                }
                let mut quotient = over_scaled * inverse;
                if $width == 32 {
                    let rest = (-under_scaled).mul_add(quotient, over_scaled);
                    quotient = rest.mul_add(inverse, quotient);
                }
                let rest = (-under_scaled).mul_add(quotient, over_scaled);
                fixed_up(multiply_add(rest, inverse, quotient, is_scaled), under, over)
            }
        }
    };
}

division!(f32, 32, 23, 127, 96, 23, -150, 64);
division!(f64, 64, 52, 1023, 768, 53, -1075, 128);

pub(super) fn rows() -> Vec<Row> {
    vec![
        row(Vop3, [478, 351, 551, 551], "v_div_fixup_f32", f32::fix_up_lanes(Kind::F32)),
        row(Vop3, [479, 352, 552, 552], "v_div_fixup_f64", f64::fix_up_lanes(Kind::F64)),
        row(Vop3, [480, 365, 764, 764], "v_div_scale_f32", f32::scale_lanes(Kind::F32)),
        row(Vop3, [481, 366, 765, 765], "v_div_scale_f64", f64::scale_lanes(Kind::F64)),
        row(Vop3, [482, 367, 567, 567], "v_div_fmas_f32", f32::multiply_add_lanes(Kind::F32)),
        row(Vop3, [483, 368, 568, 568], "v_div_fmas_f64", f64::multiply_add_lanes(Kind::F64)),
    ]
}

#[cfg(test)]
mod tests {
    use bowstring_watch::Drawn;

    /// Draws random bits; in some cases with exponents near the bounds, so that quotients are near them too.
    fn drawn(random: &mut Drawn, stored: u32, exponents: u64) -> u64 {
        let (bits, near) = (random.draw(), random.draw());
        let exponent = match near % 8 {
            0 => near >> 8 & 1,
            1 => exponents - 1 - (near >> 8 & 3),
            2 => exponents / 2 + (near >> 8) % 5 - 2,
            3 => (near >> 8) % 64,
            _ => (near >> 8) % exponents,
        };
        let fraction = if near >> 60 & 3 == 0 { bits & 3 } else { bits >> (64 - stored) };
        (near >> 63) << stored << exponents.trailing_ones() | exponent << stored | fraction
    }

    #[test]
    fn division_gives_the_nearest_quotient() {
        let mut random = Drawn::new(1, 0);
        for _ in 0..400_000 {
            let [a, b] = [0, 1].map(|_| f32::from_bits(drawn(&mut random, 23, 255) as u32));
            let made = crate::table::division::f32::divided(a, b, 1);
            assert!(
                made.to_bits() == (a / b).to_bits() || made.is_nan() && (a / b).is_nan(),
                "{a:e} / {b:e}: {made:e}"
            );
            let [a, b] = [0, 1].map(|_| f64::from_bits(drawn(&mut random, 52, 2047)));
            let made = crate::table::division::f64::divided(a, b, 2);
            assert!(
                made.to_bits() == (a / b).to_bits() || made.is_nan() && (a / b).is_nan(),
                "{a:e} / {b:e}: {made:e}"
            );
        }
    }
}
