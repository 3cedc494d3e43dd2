//! Decimals: a sign, digits with a point among them, an exponent, and ASCII white space around it all.
//!
//! The one idea: a number that is too large is never computed. Digits are appended as long as the magnitude
//! has fewer digits than the precision allows; if another one is left, the decimal does not fit. So nothing
//! overflows, whatever the width.

use super::digits::{Digits, EIGHT, ZEROS, count_of_digits, digit, eight, eight_of_number};
use super::plain::{Plain, plain};
use super::{Backwards, Bytes, Sink};
use crate::function::U256;
use crate::target::HOST;

/// The limits of a decimal type.
#[derive(Clone, Copy, Debug)]
pub struct Form<M> {
    /// The number of digits after the point.
    pub scale: i32,
    /// The least magnitude with as many digits as the type allows, to which no digit can be appended.
    pub tenth: M,
    /// The greatest magnitude of the type.
    pub greatest: M,
}

/// The result of a scan of digits, up to the first other byte.
enum Scanned<M> {
    Number(M),
    /// An exponent follows; this is the position of its `e`.
    Exponent(u64),
    Not,
}

/// Larger exponents have the same effect: they reduce any number to nothing, or make it too large.
const LARGEST_EXPONENT: i64 = 100_000_000_000_000_000;

/// Reads a text as a decimal: whether it is negative, and its magnitude, rounded half away from zero.
#[inline(always)]
pub fn read_decimal<B: Bytes, M: Digits>(text: B, form: Form<M>) -> Option<(bool, M)> {
    // The widest decimals leave no registers for this method.
    if M::BITS <= 128
        && let Some(Plain { negative, digits, behind }) = plain::<true>(text)
        && i64::from(form.scale) >= i64::from(behind)
    {
        let number = |digits: u64| M::from_wide(U256::from_low(u128::from(digits)));
        if number(digits / 10) >= form.tenth {
            return None;
        }
        let missing = i64::from(form.scale) - i64::from(behind);
        return scaled_up(number(digits), missing, form).map(|magnitude| (negative, magnitude));
    }
    let (mut from, mut end) = (0, text.len());
    while from < end && text.at(from).is_ascii_whitespace() {
        from += 1;
    }
    while from < end && text.at(end - 1).is_ascii_whitespace() {
        end -= 1;
    }
    if from == end {
        return None;
    }
    let first = text.at(from);
    let negative = first == b'-';
    from += u64::from(negative || first == b'+');
    let mut scale = i64::from(form.scale);
    // Repeats the scan if an exponent has moved the point.
    loop {
        match scan(text, from, end, scale, form) {
            Scanned::Number(magnitude) => return Some((negative, magnitude)),
            Scanned::Not => return None,
            Scanned::Exponent(at) => {
                scale += exponent(text, at + 1, end)?;
                end = at;
            }
        }
    }
}

#[inline(always)]
fn scan<B: Bytes, M: Digits>(text: B, from: u64, end: u64, scale: i64, form: Form<M>) -> Scanned<M> {
    // `kept` is the number of digits that still count: first before the point, then after it. If even the
    // first digit is worth less than a tenth, none rounds up.
    let (mut kept, mut rounds) = (i64::MAX, true);
    if scale < 0 {
        let mut at = from;
        while at < end && digit(text.at(at)) <= 9 {
            at += 1;
        }
        let whole = (at - from) as i64;
        (kept, rounds) = if whole + scale < 0 { (0, false) } else { (whole + scale, true) };
    }
    let (mut magnitude, mut too_large, mut next) = (M::ZERO, false, None);
    let (mut at, mut behind_point, mut digits) = (from, false, false);
    while at < end {
        let byte = text.at(at);
        let digit = u64::from(digit(byte));
        if digit > 9 {
            if byte == b'.' && !behind_point {
                (behind_point, kept) = (true, scale.max(0));
                at += 1;
                continue;
            }
            let exponent = byte == b'e' || byte == b'E';
            return if exponent { Scanned::Exponent(at) } else { Scanned::Not };
        }
        digits = true;
        if kept > 0 {
            too_large |= magnitude >= form.tenth;
            (magnitude, kept) = (magnitude.push(digit), kept - 1);
        } else if next.is_none() {
            next = Some(digit);
        }
        at += 1;
    }
    if !digits || too_large {
        return Scanned::Not;
    }
    let Some(mut magnitude) = scaled_up(magnitude, if behind_point { kept } else { scale }, form) else {
        return Scanned::Not;
    };
    if rounds && next.is_some_and(|next| next >= 5) {
        if magnitude >= form.greatest {
            return Scanned::Not;
        }
        magnitude = magnitude.add(M::ONE);
    }
    Scanned::Number(magnitude)
}

/// Appends zeros to the magnitude; `None` if the type does not have enough digits.
#[inline(always)]
fn scaled_up<M: Digits>(mut magnitude: M, mut missing: i64, form: Form<M>) -> Option<M> {
    while missing > 0 && magnitude != M::ZERO {
        if magnitude >= form.tenth {
            return None;
        }
        (magnitude, missing) = (magnitude.push(0), missing - 1);
    }
    Some(magnitude)
}

/// Reads the number after an `e`.
#[inline(always)]
fn exponent<B: Bytes>(text: B, mut at: u64, end: u64) -> Option<i64> {
    if at == end {
        return None;
    }
    let first = text.at(at);
    let negative = first == b'-';
    at += u64::from(negative || first == b'+');
    if at == end {
        return None;
    }
    let mut value = 0i64;
    while at < end {
        let digit = digit(text.at(at));
        if digit > 9 {
            return None;
        }
        if value < LARGEST_EXPONENT {
            value = value * 10 + i64::from(digit);
        }
        at += 1;
    }
    Some(if negative { -value } else { value })
}

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
