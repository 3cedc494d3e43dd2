//! Floats of text: the nearest one, ties to even, whatever the number of digits, as arrow-cast has it.
//!
//! The one idea: the first 19 or 20 significant digits are an integer `w` of one word, and `w * 10^q` is multiplied out to 128 bits,
//! which always tell how it rounds. Of a longer text the number is between `w` and `w + 1`: where both round to the same, so does it.
//! What is left, one text in a thousand of those, is [`Hard`](Said::Hard), and for [`float_exact`](super::float_exact).
//!
//! That 128 bits are enough, without a look at what was cut off: Mushtak and Lemire, arXiv 2212.06644.

use super::digits::number;
use super::plain::{Plain, plain};
use super::powers::{Powers, log2, multiply};
use super::{Bytes, Said};
use crate::function::float::Float;
use crate::function::half::F16;

/// A float that text is rounded to at once.
pub trait Rounded: Float + PartialEq {
    /// Bits of the fraction.
    const FRACTION: u32;
    /// The exponent of 1.
    const BIAS: i32;
    /// Powers of ten up to this one are floats.
    const TENS: i32;
    /// `digits / ten`, or their product, which are floats themselves, rounded once.
    fn of_two(digits: u64, ten: u64, divide: bool) -> Self;
    /// The bits, in the lower part.
    fn bits(self) -> u64;
    /// The value of such bits.
    fn of_bits(bits: u64) -> Self;

    /// Infinity, or else a NaN, of that sign.
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

/// A number as it is written.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub negative: bool,
    /// The first significant digits, 19 or more, or all of them.
    pub digits: u64,
    /// The power of ten that they are to be multiplied by, or beyond -343 and 309 either of those.
    pub exponent: i32,
    /// Whether there are more that are not 0.
    pub more: bool,
    /// Where those begin that are not in `digits`. The point may be in between.
    pub rest: u64,
    /// Where the last one ends.
    pub end: u64,
}

impl Number {
    /// What has no more digits than a word.
    #[inline(always)]
    fn of(Plain { negative, digits, behind }: Plain) -> Number {
        Number { negative, digits, exponent: -(behind as i32), more: false, rest: 0, end: 0 }
    }
}

/// What kind of text it is.
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

/// Below it one more digit is taken: 19 always are, and 20 where a word holds them.
const ROOM: u64 = 1_000_000_000_000_000_000;
/// Below it eight more are.
const ROOM_FOR_EIGHT: u64 = 100_000_000_000;
/// Exponents from here on are not looked at further, which is how arrow-cast has it: no text is long enough to notice.
const ENOUGH: i64 = 1 << 28;

/// How many of eight bytes, from the lowest on, are digits.
#[inline(always)]
fn digits_ahead(eight: u64) -> u32 {
    // The upper half of a digit is 3, and adding 6 to it leaves that so.
    let upper = 0xf0f0_f0f0_f0f0_f0f0;
    let other = (eight & upper ^ 0x3030_3030_3030_3030)
        | (eight.wrapping_add(0x0606_0606_0606_0606) & upper ^ 0x3030_3030_3030_3030);
    other.trailing_zeros() / 8
}

/// The number that so many digits are, the first in the lowest byte.
#[inline(always)]
fn value(eight: u64, count: u32) -> u64 {
    // Others become leading zeros.
    u64::from(number((eight & 0x0f0f_0f0f_0f0f_0f0f) << (64 - 8 * count)))
}

/// Takes the digits from `at` on: up to where they are in `all`, up to where they are, and whether any behind those is not 0.
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
        // 10^room <= 2^zeros: below 2^64. From 19 digits on there is none, as some may have been left out before these.
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

/// What the text is.
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

/// What has no digits: names, in letters of either case.
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

/// The float nearest to `digits * 10^exponent`, whose exponent is -343 to 309.
#[inline(always)]
pub(super) fn nearest<F: Rounded>(negative: bool, digits: u64, exponent: i32, powers: impl Powers) -> F {
    let shift = digits.leading_zeros();
    let digits = digits.wrapping_shl(shift);
    // Where the number may be a whole one after all, that is for divisors of one word, a power rounded up makes it one.
    let up = (-27..0).contains(&exponent);
    let power = powers.power(exponent).plus(up as u64);
    let (high, middle) = multiply(digits, power.high);
    let (more, _) = multiply(digits, power.low);
    let (middle, carry) = middle.overflowing_add(more);
    // Beyond those powers nothing of so few bits is exact.
    let inexact = (middle != 0) | !(-27..=27).contains(&exponent);
    round(negative, high.wrapping_add(carry as u64), inexact, log2(exponent) + 1 - shift as i32)
}

/// The float nearest to `digits * 2^exponent`, and a little more where that is inexact; 63 significant bits or none.
#[inline(always)]
fn round<F: Rounded>(negative: bool, digits: u64, inexact: bool, exponent: i32) -> F {
    let top = digits >> 63;
    let field = exponent + 62 + top as i32 + F::BIAS;
    if digits == 0 || field <= 0 || field > 2 * F::BIAS {
        return F::nearest(negative, digits, inexact, exponent);
    }
    // A bit more than is kept, and whether anything is behind it.
    let dropped = 61 - F::FRACTION + top as u32;
    let kept = digits >> dropped;
    let some = inexact | (digits & ((1 << dropped) - 1) != 0);
    let up = kept & 1 & ((kept >> 1) | some as u64);
    // The leading one adds to the field, and so does a carry, up to infinity.
    let bits = ((field as u64 - 1) << F::FRACTION) + (kept >> 1) + up;
    F::of_bits(bits | (negative as u64) << (8 * size_of::<F>() as u32 - 1))
}

/// `digits / ten` or their product, where both are floats: what is rounded once is the nearest one.
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

/// The `f64` of a text.
#[inline(always)]
pub fn read_f64<B: Bytes, P: Powers>(text: B, powers: P) -> Said<f64> {
    read(text, powers)
}

/// The `f32` of a text.
#[inline(always)]
pub fn read_f32<B: Bytes, P: Powers>(text: B, powers: P) -> Said<f32> {
    read(text, powers)
}

/// The half of a text's `f32`: rounded twice, as arrow-cast does.
#[inline(always)]
pub fn read_f16<B: Bytes, P: Powers>(text: B, powers: P) -> Said<F16> {
    read_f32(text, powers).map(F16::from_f32)
}
