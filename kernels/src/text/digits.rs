//! Decimal digits: single ones, and eight at a time, in one word whose lowest byte is the first digit.

use crate::map::function::U256;
use crate::map::function::integer::Magnitude;

/// 10^8: the number of values of eight digits.
pub const EIGHT: u64 = 100_000_000;

/// A word with `'0'` in every byte.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Returns the value of a digit; 10 or more if the byte is not a digit.
#[inline(always)]
pub(super) fn digit(byte: u8) -> u32 {
    u32::from(byte.wrapping_sub(b'0'))
}

/// Combines digit values: each byte of the result has that digit and the next as a number.
#[inline(always)]
pub(super) fn pairs(digits: u64) -> u64 {
    digits.wrapping_mul(10).wrapping_add(digits >> 8)
}

/// Returns the number that the values of eight digits give.
#[inline(always)]
pub(super) fn number(digits: u64) -> u32 {
    let pairs = pairs(digits) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000).wrapping_add(fours >> 32) as u32
}

/// Returns the number that eight digits give; `None` if a byte is not a digit.
#[inline(always)]
pub fn number_of_eight(text: u64) -> Option<u32> {
    let high = 0xf0f0_f0f0_f0f0_f0f0;
    // The upper half of a digit is 3, and remains 3 if 6 is added.
    let all = (text & high | (text.wrapping_add(0x0606_0606_0606_0606) & high) >> 4) == 0x3333_3333_3333_3333;
    all.then(|| number(text & 0x0f0f_0f0f_0f0f_0f0f))
}

/// Returns the values of the eight digits of a number below [`EIGHT`], the first in the lowest byte.
#[inline(always)]
pub(super) const fn eight(number: u32) -> u64 {
    let high = number / 10_000;
    let fours = high as u64 | ((number - 10_000 * high) as u64) << 32;
    // x / 100 for x below 10^4 is x * 10486 / 2^20, and x / 10 for x below 100 is x * 103 / 2^10.
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

/// Returns the eight digits of a number below [`EIGHT`], with leading zeros.
#[inline(always)]
pub const fn eight_of_number(number: u32) -> u64 {
    eight(number) | ZEROS
}

/// Returns how many digits a number below [`EIGHT`] has; at least one.
#[inline(always)]
pub const fn count_of_digits(number: u32) -> u32 {
    1 + (number > 9) as u32
        + (number > 99) as u32
        + (number > 999) as u32
        + (number > 9_999) as u32
        + (number > 99_999) as u32
        + (number > 999_999) as u32
        + (number > 9_999_999) as u32
}

/// A number that is read and written digit by digit.
pub trait Digits: Magnitude {
    /// The number 1 in this type.
    const ONE: Self;
    /// Returns `self * 10 + digit`, modulo the width.
    fn push(self, digit: u64) -> Self;
    /// Splits off the last eight digits: returns the number without them, and these digits.
    fn split_eight(self) -> (Self, u32);
}

impl Digits for u64 {
    const ONE: u64 = 1;

    #[inline(always)]
    fn push(self, digit: u64) -> u64 {
        self.wrapping_mul(10).wrapping_add(digit)
    }

    #[inline(always)]
    fn split_eight(self) -> (u64, u32) {
        (self / EIGHT, (self % EIGHT) as u32)
    }
}

impl Digits for u128 {
    const ONE: u128 = 1;

    #[inline(always)]
    fn push(self, digit: u64) -> u128 {
        self.wrapping_mul(10).wrapping_add(digit as u128)
    }

    #[inline(always)]
    fn split_eight(self) -> (u128, u32) {
        let (high, left) = split_word((self >> 64) as u64, 0);
        let (low, left) = split_word(self as u64, left);
        ((high as u128) << 64 | low as u128, left)
    }
}

impl Digits for U256 {
    const ONE: U256 = U256::ONE;

    #[inline(always)]
    fn push(self, digit: u64) -> U256 {
        let word = |x: u128| x & u64::MAX as u128;
        let a = word(self.low) * 10 + digit as u128;
        let b = (self.low >> 64) * 10 + (a >> 64);
        let high = self.high.wrapping_mul(10).wrapping_add(b >> 64);
        U256 { low: word(a) | b << 64, high }
    }

    #[inline(always)]
    fn split_eight(self) -> (U256, u32) {
        let (a, left) = split_word((self.high >> 64) as u64, 0);
        let (b, left) = split_word(self.high as u64, left);
        let (c, left) = split_word((self.low >> 64) as u64, left);
        let (d, left) = split_word(self.low as u64, left);
        let join = |high: u64, low: u64| (high as u128) << 64 | low as u128;
        (U256 { low: join(c, d), high: join(a, b) }, left)
    }
}

/// Makes a step of long division by [`EIGHT`]: returns the quotient and the remainder of `left:word`. It
/// works by halves, because no machine divides wider numbers.
#[inline(always)]
fn split_word(word: u64, left: u32) -> (u64, u32) {
    let high = (left as u64) << 32 | word >> 32;
    let low = (high % EIGHT) << 32 | word & 0xffff_ffff;
    let quotient = high / EIGHT;
    (quotient << 32 | (low / EIGHT), (low % EIGHT) as u32)
}
