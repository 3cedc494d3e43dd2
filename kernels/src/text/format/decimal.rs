//! Decimals: a sign, and digits with a point among them.
//!
//! The one idea: digits are computed eight at a time, from the last one to the first, and written backwards.
//! Short decimals are moved into position in registers instead.

use super::sink::{Backwards, Sink};
use crate::target::HOST;
use crate::text::digits::{Digits, EIGHT, ZEROS, count_of_digits, eight, eight_of_number};

/// The number of digits, and the scale, up to which a decimal is written from registers: with its point it
/// has sixteen characters.
const FEW: u32 = 15;

/// Writes a decimal of at most eight digits.
#[inline(always)]
fn write_eight<S: Sink>(negative: bool, magnitude: u32, scale: u32, sink: &mut S) {
    let digits = eight(magnitude);
    // Writes at least one digit before the point.
    let count = (8 - digits.trailing_zeros() / 8).max(scale + 1);
    let text = (digits | ZEROS) >> (64 - 8 * count);
    if negative {
        sink.put(b'-');
    }
    let whole = count - scale;
    sink.put_all(text, whole);
    if scale > 0 {
        sink.put(b'.');
        sink.put_all(text >> (8 * whole), scale);
    }
}

/// Writes a decimal of at most [`FEW`] digits, which are moved into position all at once.
#[inline(always)]
fn write_few<S: Sink>(negative: bool, magnitude: u64, scale: u32, sink: &mut S) {
    let (high, low) = magnitude.split_eight();
    let (high, low) = (eight_of_number(high as u32), eight_of_number(low));
    let zeros = if high != ZEROS {
        (high ^ ZEROS).trailing_zeros()
    } else {
        64 + ((low ^ ZEROS) | 1 << 63).trailing_zeros()
    };
    let digits = (16 - zeros / 8).max(scale + 1);
    let text = (u128::from(high) | u128::from(low) << 64) >> (8 * (16 - digits));
    if negative {
        sink.put(b'-');
    }
    if scale == 0 {
        return sink.put_some(text, digits);
    }
    let point = 8 * (digits - scale);
    let whole = text & !(!0 << point);
    sink.put_some(whole | u128::from(b'.') << point | text >> point << point << 8, digits + 1);
}

/// Writes a decimal; one of many digits is written from the last digit to its sign.
#[inline(always)]
pub fn write_decimal<S: Sink + Backwards, M: Digits>(negative: bool, magnitude: M, scale: i32, sink: &mut S) {
    let low = magnitude.to_wide().low as u64;
    // Wider decimals usually have more digits, and AMD's scalar registers would not suffice.
    if HOST && M::BITS == 64 && low < 10u64.pow(FEW) && (0..FEW as i32).contains(&scale) {
        if low < EIGHT && scale < 8 {
            return write_eight(negative, low as u32, scale as u32, sink);
        }
        return write_few(negative, low, scale as u32, sink);
    }
    if scale < 0 && magnitude != M::ZERO {
        for _ in scale..0 {
            sink.put_before(b'0');
        }
    }
    let behind = scale.max(0) as u32;
    let wanted = if behind > 0 { behind + 1 } else { 1 };
    let (mut left, mut written) = (magnitude, 0u32);
    loop {
        let (rest, last) = left.split_eight();
        let whole = rest != M::ZERO;
        let needed = wanted.saturating_sub(written);
        let count = if whole { 8 } else { count_of_digits(last).max(needed).min(8) };
        let text = eight_of_number(last) >> (64 - 8 * count);
        // The point may be among these digits, or before all of them.
        let point = behind.wrapping_sub(written);
        if behind > written && point < count {
            sink.put_all_before(text >> (8 * (count - point)), point);
            sink.put_before(b'.');
            sink.put_all_before(text, count - point);
        } else {
            sink.put_all_before(text, count);
            if behind > 0 && point == count {
                sink.put_before(b'.');
            }
        }
        (left, written) = (rest, written + count);
        if !whole && written >= wanted {
            break;
        }
    }
    if negative {
        sink.put_before(b'-');
    }
}
