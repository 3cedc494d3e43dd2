//! Numbers as they are written, and the floats that are nearest to them.
//!
//! The one idea: a decimal is rounded once, to the type that it meets. Rounded to a wider float first, it may
//! become the middle of two numbers, and then the wrong one of these.

use arrow_buffer::i256;
use bowstring_kernels::map::function::{F16, Number};

/// The number that would follow the greatest half, and the bits of infinity, which has its place.
const AFTER_ALL_HALVES: f64 = 65536.0;
const INFINITE: u16 = 0x7c00;

/// A float as a float type has it.
pub(super) fn rounded(value: f64, number: Number) -> f64 {
    match number {
        Number::F16 => half::f16::from_f64(value).to_f64(),
        Number::F32 => (value as f32).into(),
        _ => value,
    }
}

/// The number of a float type that is nearest to a decimal; `None` if none is near.
pub(super) fn nearest(x: i128, scale: i8, number: Number) -> Option<f64> {
    let text = decimal_text(x, scale);
    let near = match number {
        Number::F32 => text.parse::<f32>().ok()?.into(),
        Number::F16 => nearest_half(x, scale, text.parse().ok()?)?,
        _ => text.parse::<f64>().ok()?,
    };
    Some(near).filter(|near| near.is_finite())
}

/// The half that is nearest to a decimal, which a float is nearly: the one before or after it may be nearer.
fn nearest_half(x: i128, scale: i8, nearly: f64) -> Option<f64> {
    if nearly.abs() >= AFTER_ALL_HALVES {
        return None;
    }
    let power = |by: i16| i256::from_i128(10).wrapping_pow(by.max(0).unsigned_abs().into());
    // The decimal, and halves, in units of the least half divided by the decimal's denominator.
    let exactly = i256::from_i128(x).wrapping_abs().wrapping_mul(power(-i16::from(scale)));
    let exactly = exactly.wrapping_mul(i256::from_i128(1 << 24));
    let value = |half: u16| match half {
        INFINITE => AFTER_ALL_HALVES,
        half => half::f16::from_bits(half).to_f64(),
    };
    let distance = |half: &u16| {
        let units = i256::from_i128((value(*half) * f64::from(1 << 24)) as i128);
        (exactly.wrapping_sub(units.wrapping_mul(power(scale.into()))).wrapping_abs(), half & 1)
    };
    let guess = half::f16::from_f64(nearly.abs()).to_bits();
    let half = (guess.saturating_sub(1)..=guess + 1).filter(|half| *half <= INFINITE).min_by_key(distance)?;
    Some(half::f16::from_bits(half).to_f64().copysign(nearly))
}

/// The bits of a float in a float type; `None` if it overflows there. All other values are rounded: a decimal
/// fraction such as `0.05` is a different number in each float type.
pub(super) fn float_bits(value: f64, number: Number) -> Option<i128> {
    Some(match number {
        Number::F64 => i128::from(value.to_bits() as i64),
        Number::F32 => {
            let single = value as f32;
            if single.is_infinite() && value.is_finite() {
                return None;
            }
            i128::from(single.to_bits() as i32)
        }
        _ => {
            let half = half::f16::from_f64(value);
            if half.is_infinite() && value.is_finite() {
                return None;
            }
            i128::from(F16(half.to_bits()).0 as i16)
        }
    })
}

/// A decimal in positional notation.
pub(super) fn decimal_text(x: i128, scale: i8) -> String {
    let (behind, zeros) =
        (usize::from(scale.max(0).unsigned_abs()), usize::from(scale.min(0).unsigned_abs()));
    let digits = format!("{:0>width$}{}", x.unsigned_abs(), "0".repeat(zeros), width = behind + 1);
    let (whole, fraction) = digits.split_at(digits.len() - behind);
    let sign = if x < 0 { "-" } else { "" };
    format!("{sign}{whole}{}{fraction}", if behind > 0 { "." } else { "" })
}
