//! Floats from text: the nearest float, ties to even, whatever the number of digits, as arrow-cast reads
//! them.
//!
//! The one idea: the first 19 or 20 significant digits are an integer `w` of one word, and `w * 10^q` is
//! computed to 128 bits, which always determine how it rounds. For a longer text, the number is between `w`
//! and `w + 1`: if both round to the same float, so does the number. The remaining texts, one in a thousand
//! of the longer ones, are [`Hard`](Said::Hard), and [`float_exact`](super::float_exact) reads them.
//!
//! Mushtak and Lemire (arXiv 2212.06644) prove that 128 bits are enough, even though the bits after them are
//! ignored.

use super::plain::{Plain, plain};
use super::said::Said;
use crate::map::function::float::Float;
use crate::map::function::half::F16;
use crate::text::bytes::Bytes;
use crate::text::digits::number;
use crate::text::powers::{Powers, log2, multiply};

/// A type of floats to which a text is rounded directly.
pub trait Rounded: Float + PartialEq {
    /// The number of bits of the fraction.
    const FRACTION: u32;
    /// The biased exponent of 1.
    const BIAS: i32;
    /// The greatest exponent of a power of ten that is a float, as are all smaller powers.
    const TENS: i32;
    /// Returns `digits / ten`, or their product, rounded once; both numbers are floats themselves.
    fn of_two(digits: u64, ten: u64, divide: bool) -> Self;
    /// Returns the float's bits, in the lower part of a word.
    fn bits(self) -> u64;
    /// Returns the float that has these bits.
    fn of_bits(bits: u64) -> Self;

    /// Returns infinity, or else a NaN, of the given sign.
    #[inline(always)]
    fn special(negative: bool, infinite: bool) -> Self {
        let sign = (negative as u64) << (8 * size_of::<Self>() as u32 - 1);
        let infinity = (2 * Self::BIAS as u64 + 1) << Self::FRACTION;
        Self::of_bits(sign | infinity | (!infinite as u64) << (Self::FRACTION - 1))
    }
}

impl Rounded for f64 {
    const FRACTION: u32 = 52;
    const BIAS: i32 = 1023;
    const TENS: i32 = 19;
    #[inline(always)]
    fn of_two(digits: u64, ten: u64, divide: bool) -> f64 {
        let (digits, ten) = (digits as f64, ten as f64);
        if divide { digits / ten } else { digits * ten }
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

impl Rounded for f32 {
    const FRACTION: u32 = 23;
    const BIAS: i32 = 127;
    const TENS: i32 = 10;
    #[inline(always)]
    fn of_two(digits: u64, ten: u64, divide: bool) -> f32 {
        let (digits, ten) = (digits as f32, ten as f32);
        if divide { digits / ten } else { digits * ten }
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline(always)]
    fn of_bits(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }
}

/// A number as a text gives it.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub negative: bool,
    /// The first significant digits as an integer: 19 or more, or all of them.
    pub digits: u64,
    /// The power of ten that multiplies them; -343 or 309 if it is below or above these.
    pub exponent: i32,
    /// Whether any of the further digits is not 0.
    pub more: bool,
    /// The position of the first digit that is not in `digits`. The point may be among those that follow.
    pub rest: u64,
    /// The position after the last digit.
    pub end: u64,
}

impl Number {
    /// Converts a number whose digits fit in a word.
    #[inline(always)]
    fn of(Plain { negative, digits, behind }: Plain) -> Number {
        Number { negative, digits, exponent: -(behind as i32), more: false, rest: 0, end: 0 }
    }
}

/// The kind of a text.
#[derive(Clone, Copy)]
pub(super) enum Text {
    Not,
    /// Infinity, or else a NaN.
    Special {
        negative: bool,
        infinite: bool,
    },
    Number(Number),
}

/// Below this number another digit is appended: 19 digits always are, and 20 if a word holds them.
const ROOM: u64 = 1_000_000_000_000_000_000;
/// Below this number eight digits are appended.
const ROOM_FOR_EIGHT: u64 = 100_000_000_000;
/// Larger exponents are cut off here, as arrow-cast does; no text is long enough for a difference.
const ENOUGH: i64 = 1 << 28;

/// Returns how many of eight bytes, from the lowest on, are digits.
#[inline(always)]
fn digits_ahead(eight: u64) -> u32 {
    // The upper half of a digit is 3, and remains 3 if 6 is added.
    let upper = 0xf0f0_f0f0_f0f0_f0f0;
    let other = (eight & upper ^ 0x3030_3030_3030_3030)
        | (eight.wrapping_add(0x0606_0606_0606_0606) & upper ^ 0x3030_3030_3030_3030);
    other.trailing_zeros() / 8
}

/// Returns the number that `count` digits give, the first in the lowest byte.
#[inline(always)]
fn value(eight: u64, count: u32) -> u64 {
    // The other bytes become leading zeros.
    u64::from(number((eight & 0x0f0f_0f0f_0f0f_0f0f) << (64 - 8 * count)))
}

/// Appends the digits from `at` on to `all`. Returns the end of the digits appended, the end of all digits,
/// and whether any digit between these is not 0.
#[inline(always)]
fn take(text: impl Bytes, powers: impl Powers, at: u64, end: u64, all: &mut u64) -> (u64, u64, bool) {
    let (mut at, mut digits) = (at, *all);
    while at < end {
        let eight = text.eight(at);
        let count = digits_ahead(eight);
        if count == 8 && digits < ROOM_FOR_EIGHT {
            digits = digits.wrapping_mul(100_000_000).wrapping_add(value(eight, 8));
            at += 8;
            continue;
        }
        // 10^room <= 2^zeros keeps the number below 2^64. From 19 digits on there is no room, as some digits
        // may have been left out before these.
        let room = if digits < ROOM { (digits.leading_zeros() * 1233) >> 12 } else { 0 };
        let taken = if count < room { count } else { room };
        if taken > 0 {
            digits = digits.wrapping_mul(powers.small(taken)).wrapping_add(value(eight, taken));
            at += u64::from(taken);
        }
        if taken < count {
            break;
        }
        if count < 8 {
            *all = digits;
            return (at, at, false);
        }
    }
    while at < end && digits < ROOM {
        let digit = text.at(at).wrapping_sub(b'0');
        if digit >= 10 {
            break;
        }
        digits = digits.wrapping_mul(10).wrapping_add(u64::from(digit));
        at += 1;
    }
    *all = digits;
    let (taken, mut more) = (at, false);
    while at < end {
        let digit = text.at(at).wrapping_sub(b'0');
        if digit >= 10 {
            break;
        }
        more |= digit != 0;
        at += 1;
    }
    (taken, at, more)
}

/// Scans a text, and returns its kind.
#[inline(always)]
pub(super) fn scan(text: impl Bytes, powers: impl Powers) -> Text {
    let (mut at, mut end) = (0, text.len());
    while at < end && text.at(at).is_ascii_whitespace() {
        at += 1;
    }
    while at < end && text.at(end - 1).is_ascii_whitespace() {
        end -= 1;
    }
    if at == end {
        return Text::Not;
    }
    let sign = text.at(at);
    let negative = sign == b'-';
    at += u64::from(negative || sign == b'+');
    let first = at;
    let mut digits = 0;
    let (taken, whole, mut more) = take(text, powers, at, end, &mut digits);
    at = whole;
    let (mut rest, mut exponent) = (taken, (whole - taken) as i64);
    let mut places = whole - first;
    if at < end && text.at(at) == b'.' {
        let (taken, fraction, more_of_it) = take(text, powers, at + 1, end, &mut digits);
        more |= more_of_it;
        places += fraction - (at + 1);
        exponent -= (taken - (at + 1)) as i64;
        if rest == whole {
            rest = taken;
        }
        at = fraction;
    }
    if places == 0 {
        return special(text, first, end, negative);
    }
    let last = at;
    if at < end && text.at(at) | 0x20 == b'e' {
        at += 1;
        let sign = if at < end { text.at(at) } else { 0 };
        at += u64::from(sign == b'-' || sign == b'+');
        let (begin, mut explicit) = (at, 0i64);
        while at < end {
            let digit = text.at(at).wrapping_sub(b'0');
            if digit >= 10 {
                break;
            }
            if explicit < ENOUGH {
                explicit = explicit * 10 + i64::from(digit);
            }
            at += 1;
        }
        if at == begin {
            return Text::Not;
        }
        exponent += if sign == b'-' { -explicit } else { explicit };
    }
    if at != end {
        return Text::Not;
    }
    let exponent = exponent.clamp(-343, 309) as i32;
    Text::Number(Number { negative, digits, exponent, more, rest, end: last })
}

/// Reads a text without digits: a name, in letters of either case.
#[inline(always)]
fn special(text: impl Bytes, at: u64, end: u64, negative: bool) -> Text {
    let len = end - at;
    if len != 3 && len != 8 {
        return Text::Not;
    }
    let (mut word, mut i) = (0, at);
    while i < end {
        word = word << 8 | u64::from(text.at(i) | 0x20);
        i += 1;
    }
    let infinite = word == u64::from_be_bytes(*b"\0\0\0\0\0inf") || word == u64::from_be_bytes(*b"infinity");
    if infinite || word == u64::from_be_bytes(*b"\0\0\0\0\0nan") {
        Text::Special { negative, infinite }
    } else {
        Text::Not
    }
}

/// Returns the float nearest to `digits * 10^exponent`; the exponent is -343 to 309.
#[inline(always)]
pub(super) fn nearest<F: Rounded>(negative: bool, digits: u64, exponent: i32, powers: impl Powers) -> F {
    let shift = digits.leading_zeros();
    let digits = digits.wrapping_shl(shift);
    // The result may be a whole number if the divisor is a power of one word. A power that is rounded up
    // makes it one.
    let up = (-27..0).contains(&exponent);
    let power = powers.power(exponent).plus(up as u64);
    let (high, middle) = multiply(digits, power.high);
    let (more, _) = multiply(digits, power.low);
    let (middle, carry) = middle.overflowing_add(more);
    // For other exponents, no result with so few bits is exact.
    let inexact = (middle != 0) | !(-27..=27).contains(&exponent);
    round(negative, high.wrapping_add(carry as u64), inexact, log2(exponent) + 1 - shift as i32)
}

/// Returns the float nearest to `digits * 2^exponent`, or to a little more if that is `inexact`. `digits` has
/// 63 significant bits or is 0.
#[inline(always)]
fn round<F: Rounded>(negative: bool, digits: u64, inexact: bool, exponent: i32) -> F {
    let top = digits >> 63;
    let field = exponent + 62 + top as i32 + F::BIAS;
    if digits == 0 || field <= 0 || field > 2 * F::BIAS {
        return F::nearest(negative, digits, inexact, exponent);
    }
    // Keeps one more bit than the float has, and whether any bit after it is set.
    let dropped = 61 - F::FRACTION + top as u32;
    let kept = digits >> dropped;
    let some = inexact | (digits & ((1 << dropped) - 1) != 0);
    let up = kept & 1 & ((kept >> 1) | some as u64);
    // The leading one adds to the exponent field, and so does a carry, up to infinity.
    let bits = ((field as u64 - 1) << F::FRACTION) + (kept >> 1) + up;
    F::of_bits(bits | (negative as u64) << (8 * size_of::<F>() as u32 - 1))
}

/// Returns `digits / ten` or their product if both are floats: a result rounded once is the nearest float.
#[inline(always)]
fn of_two<F: Rounded>(negative: bool, digits: u64, ten: u64, divide: bool) -> Option<F> {
    let sign = (negative as u64) << (8 * size_of::<F>() as u32 - 1);
    (digits >> (F::FRACTION + 1) == 0).then(|| F::of_bits(F::of_two(digits, ten, divide).bits() | sign))
}

#[inline(always)]
fn read<F: Rounded, P: Powers>(text: impl Bytes, powers: P) -> Said<F> {
    let scanned = match plain::<true>(text) {
        Some(plain) => Text::Number(Number::of(plain)),
        None => scan(text, powers),
    };
    match scanned {
        Text::Not => Said::Nothing,
        Text::Special { negative, infinite } => Said::Value(F::special(negative, infinite)),
        Text::Number(number) => {
            let Number { negative, digits, exponent, more, .. } = number;
            if P::DIVIDES && !more && (-F::TENS..=F::TENS).contains(&exponent) {
                let ten = powers.small(exponent.unsigned_abs());
                if let Some(value) = of_two(negative, digits, ten, exponent < 0) {
                    return Said::Value(value);
                }
            }
            let value = nearest::<F>(negative, digits, exponent, powers);
            if more && value != nearest(negative, digits.wrapping_add(1), exponent, powers) {
                return Said::Hard;
            }
            Said::Value(value)
        }
    }
}

/// Reads a text as an `f64`.
#[inline(always)]
pub fn read_f64<B: Bytes, P: Powers>(text: B, powers: P) -> Said<f64> {
    read(text, powers)
}

/// Reads a text as an `f32`.
#[inline(always)]
pub fn read_f32<B: Bytes, P: Powers>(text: B, powers: P) -> Said<f32> {
    read(text, powers)
}

/// Reads a text as a half by way of an `f32`: rounded twice, as arrow-cast does.
#[inline(always)]
pub fn read_f16<B: Bytes, P: Powers>(text: B, powers: P) -> Said<F16> {
    read_f32(text, powers).map(F16::from_f32)
}
