//! Decimals: a sign, digits with a point among them, an exponent, and ASCII white space around it all.
//!
//! The one idea: a number that is too large is never computed. Digits are appended as long as the magnitude
//! has fewer digits than the precision allows; if another one is left, the decimal does not fit. So nothing
//! overflows, whatever the width.

use super::plain::{Plain, plain};
use crate::map::function::U256;
use crate::text::bytes::Bytes;
use crate::text::digits::{Digits, digit};

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
