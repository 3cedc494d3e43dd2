//! The values that a program computes with: integers of eight or sixteen bytes. Every integer of at most that
//! size becomes one, and a float becomes its bits, sign-extended.

/// An integer of eight or sixteen bytes.
pub trait Word: Copy + Ord + Default + 'static {
    /// Whether the type has sixteen bytes.
    const WIDE: bool;
    /// The least value of the type.
    const MIN: Self;
    /// The greatest value of the type.
    const MAX: Self;
    /// Truncates a number to the type.
    fn of(value: i128) -> Self;
    /// Sign-extends a number to the type.
    fn of_i64(value: i64) -> Self;
    /// Sign-extends the value to sixteen bytes.
    fn wide(self) -> i128;
    /// The low eight bytes.
    fn low(self) -> u64;
    /// The wrapping sum, and whether it overflowed.
    fn add(self, other: Self, unsigned: bool) -> (Self, bool);
    /// The wrapping difference, and whether it overflowed.
    fn sub(self, other: Self, unsigned: bool) -> (Self, bool);
    /// The wrapping product, and whether it overflowed.
    fn mul(self, other: Self, unsigned: bool) -> (Self, bool);
    /// Quotient and remainder, and whether the quotient overflowed. The divisor MUST NOT be zero.
    fn div_rem(self, other: Self, unsigned: bool) -> (Self, Self, bool);
    /// The quotient of `self * by` and a divisor, rounded towards zero, and whether it overflowed, as it does if
    /// the divisor is zero. `by` must be above zero; values of eight bytes do not use it. The product of others
    /// may be larger than the type.
    fn quotient(self, by: Self, other: Self, unsigned: bool) -> (Self, bool);
    /// The bitwise exclusive or.
    fn xor(self, other: Self) -> Self;
    /// All ones where the value is negative, else all zeros.
    fn sign(self) -> Self;
    /// Shifts right by `by` bits, filling with zeros.
    fn shift_right(self, by: u32) -> Self;
    /// Applies `f` to each eight bytes.
    fn map_halves(self, f: impl Fn(u64) -> u64) -> Self;
}

impl Word for i64 {
    const WIDE: bool = false;
    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;

    #[inline(always)]
    fn of(value: i128) -> i64 {
        value as i64
    }

    #[inline(always)]
    fn of_i64(value: i64) -> i64 {
        value
    }

    #[inline(always)]
    fn wide(self) -> i128 {
        i128::from(self)
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn add(self, other: i64, unsigned: bool) -> (i64, bool) {
        let sum = self.wrapping_add(other);
        let over = if unsigned { (sum as u64) < self as u64 } else { (self ^ sum) & (other ^ sum) < 0 };
        (sum, over)
    }

    #[inline(always)]
    fn sub(self, other: i64, unsigned: bool) -> (i64, bool) {
        let difference = self.wrapping_sub(other);
        let over =
            if unsigned { (self as u64) < other as u64 } else { (self ^ other) & (self ^ difference) < 0 };
        (difference, over)
    }

    #[inline(always)]
    fn mul(self, other: i64, unsigned: bool) -> (i64, bool) {
        let full = if unsigned {
            (u128::from(self as u64) * u128::from(other as u64)) as i128
        } else {
            i128::from(self) * i128::from(other)
        };
        let low = full as i64;
        (low, if unsigned { full >> 64 != 0 } else { i128::from(low) != full })
    }

    #[inline(always)]
    fn div_rem(self, other: i64, unsigned: bool) -> (i64, i64, bool) {
        // One division, of magnitudes: a second one would take as long again.
        let (negative, below) = if unsigned { (false, false) } else { (self < 0, other < 0) };
        let (a, b) = (magnitude(self, negative), magnitude(other, below));
        // The divisor is not zero, but no compiler knows that, and a panic is a call.
        let quotient = a / if b == 0 { 1 } else { b };
        let remainder = a.wrapping_sub(quotient.wrapping_mul(b));
        let over = !unsigned && self == i64::MIN && other == -1;
        (signed(quotient, negative != below), signed(remainder, negative), over)
    }

    #[inline(always)]
    fn quotient(self, _: i64, other: i64, unsigned: bool) -> (i64, bool) {
        let zero = other == 0;
        let (quotient, _, over) = self.div_rem(if zero { 1 } else { other }, unsigned);
        (quotient, zero | over)
    }

    #[inline(always)]
    fn xor(self, other: i64) -> i64 {
        self ^ other
    }

    #[inline(always)]
    fn sign(self) -> i64 {
        self >> 63
    }

    #[inline(always)]
    fn shift_right(self, by: u32) -> i64 {
        (self as u64 >> by) as i64
    }

    #[inline(always)]
    fn map_halves(self, f: impl Fn(u64) -> u64) -> i64 {
        f(self as u64) as i64
    }
}

#[inline(always)]
fn magnitude(x: i64, negative: bool) -> u64 {
    if negative { (x as u64).wrapping_neg() } else { x as u64 }
}

#[inline(always)]
fn signed(x: u64, negative: bool) -> i64 {
    if negative { x.wrapping_neg() as i64 } else { x as i64 }
}

impl Word for i128 {
    const WIDE: bool = true;
    const MIN: i128 = i128::MIN;
    const MAX: i128 = i128::MAX;

    #[inline(always)]
    fn of(value: i128) -> i128 {
        value
    }

    #[inline(always)]
    fn of_i64(value: i64) -> i128 {
        i128::from(value)
    }

    #[inline(always)]
    fn wide(self) -> i128 {
        self
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn add(self, other: i128, _: bool) -> (i128, bool) {
        self.overflowing_add(other)
    }

    #[inline(always)]
    fn sub(self, other: i128, _: bool) -> (i128, bool) {
        self.overflowing_sub(other)
    }

    #[inline(always)]
    fn mul(self, other: i128, _: bool) -> (i128, bool) {
        // `overflowing_mul` is a call on devices.
        let negative = (self < 0) != (other < 0);
        let product = crate::map::function::wide::full_product(self.unsigned_abs(), other.unsigned_abs());
        let low = if negative { product.low.wrapping_neg() } else { product.low };
        let limit = if negative { 1u128 << 127 } else { (1 << 127) - 1 };
        (low as i128, product.high != 0 || product.low > limit)
    }

    #[inline(always)]
    fn div_rem(self, other: i128, _: bool) -> (i128, i128, bool) {
        let (quotient, remainder) = divided(0, self.unsigned_abs(), other.unsigned_abs());
        let over = self == i128::MIN && other == -1;
        (signed_wide(quotient, (self < 0) != (other < 0)), signed_wide(remainder, self < 0), over)
    }

    #[inline(always)]
    fn quotient(self, by: i128, other: i128, _: bool) -> (i128, bool) {
        let (b, negative) = (other.unsigned_abs(), (self < 0) != (other < 0));
        let product = crate::map::function::wide::full_product(self.unsigned_abs(), by as u128);
        let (quotient, _) = divided(product.high, product.low, b);
        let made = signed_wide(quotient, negative);
        // A quotient that fits has its sign, or is zero. No half of a product is below a divisor of zero.
        (made, product.high >= b || (made < 0) != negative && quotient != 0)
    }

    #[inline(always)]
    fn xor(self, other: i128) -> i128 {
        self ^ other
    }

    #[inline(always)]
    fn sign(self) -> i128 {
        self >> 127
    }

    #[inline(always)]
    fn shift_right(self, by: u32) -> i128 {
        (self as u128 >> by) as i128
    }

    #[inline(always)]
    fn map_halves(self, f: impl Fn(u64) -> u64) -> i128 {
        let high = f((self >> 64) as u64);
        (u128::from(high) << 64 | u128::from(f(self as u64))) as i128
    }
}

/// A power of ten. By sums, which need fewer registers than products.
#[inline(always)]
pub fn ten_to<V: Word>(power: u32) -> V {
    let sum = |a: V, b: V| a.add(b, false).0;
    let (mut made, mut left) = (V::of_i64(1), power);
    while left > 0 {
        let two = sum(made, made);
        let four = sum(two, two);
        made = sum(sum(four, four), two);
        left -= 1;
    }
    made
}

/// Divides a number of two halves, of which the high one is below the divisor, and returns the remainder too.
/// Bit by bit: a division of sixteen bytes is a call on devices.
#[inline(always)]
fn divided(high: u128, low: u128, by: u128) -> (u128, u128) {
    let (mut quotient, mut remainder, mut left) = (low, high, 128);
    while left > 0 {
        let carried = remainder >> 127 != 0;
        remainder = remainder << 1 | quotient >> 127;
        let goes = carried || remainder >= by;
        remainder = if goes { remainder.wrapping_sub(by) } else { remainder };
        quotient = quotient << 1 | u128::from(goes);
        left -= 1;
    }
    (quotient, remainder)
}

#[inline(always)]
fn signed_wide(x: u128, negative: bool) -> i128 {
    if negative { x.wrapping_neg() as i128 } else { x as i128 }
}

/// Truncates to the integer type in `detail`: its number of bits, and [`UNSIGNED`](super::code::UNSIGNED) for
/// a type without a sign.
#[inline(always)]
pub fn fit<V: Word>(x: V, detail: u32) -> V {
    let (bits, unsigned) = (detail & 0x7f, detail & 0x80 != 0);
    if V::WIDE {
        // By words: a shift of sixteen bytes by a number known only at run time takes many instructions.
        let low = x.low() as i64;
        let part = match (bits, unsigned) {
            (64, true) => return V::of(i128::from(low as u64)),
            (64, false) => low,
            (_, true) => low & !(-1 << bits),
            (_, false) => low << (64 - bits) >> (64 - bits),
        };
        V::of_i64(part)
    } else {
        let low = x.low() as i64;
        V::of_i64(if unsigned { low & !(-1 << bits) } else { low << (64 - bits) >> (64 - bits) })
    }
}

/// Maps a float's bits to an integer that sorts in the floats' total order, and maps it back.
#[inline(always)]
pub fn key<V: Word>(x: V) -> V {
    x.xor(x.sign().shift_right(1))
}

/// Replaces any NaN by the one that this crate makes, since machines differ in which they make.
#[inline(always)]
pub fn plain_nan_f64(x: f64) -> f64 {
    if x.is_nan() { f64::from_bits(0x7ff8 << 48) } else { x }
}

/// Replaces any NaN of four bytes by the one that this crate makes.
#[inline(always)]
pub fn plain_nan_f32(x: f32) -> f32 {
    if x.is_nan() { f32::from_bits(0x7fc0_0000) } else { x }
}

/// The exact remainder of a division rounded towards zero. It subtracts, as devices have no instruction for
/// it.
#[inline(always)]
pub fn remainder(x: f64, y: f64) -> f64 {
    let parts = |x: f64| {
        let bits = x.to_bits() & !(1 << 63);
        let exponent = (bits >> 52) as i32;
        let fraction = bits & ((1 << 52) - 1);
        if exponent != 0 {
            (fraction | 1 << 52, exponent)
        } else {
            // Shifts out the leading zeros, which takes the exponent below one.
            let zeros = fraction.leading_zeros() as i32 - 11;
            (if fraction == 0 { 0 } else { fraction << zeros }, 1 - zeros)
        }
    };
    if x.is_nan() || y.is_nan() || x.is_infinite() || y == 0.0 {
        return f64::from_bits(0x7ff8 << 48);
    }
    let ((mut a, mut exponent), (b, least)) = (parts(x), parts(y));
    if y.is_infinite() || a == 0 || exponent < least {
        return x;
    }
    while exponent > least {
        a = if a >= b { a - b } else { a } << 1;
        exponent -= 1;
    }
    a = if a >= b { a - b } else { a };
    let sign = x.to_bits() & 1 << 63;
    if a == 0 {
        return f64::from_bits(sign);
    }
    let zeros = a.leading_zeros() as i32 - 11;
    a <<= zeros;
    exponent -= zeros;
    let bits =
        if exponent > 0 { (a & ((1 << 52) - 1)) | (exponent as u64) << 52 } else { a >> (1 - exponent) };
    f64::from_bits(bits | sign)
}

/// The year, month and day of a day since 1970, in the Gregorian calendar, also before its introduction.
///
/// Years begin in March here, so that the leap day comes last; then 400, 100, 4 and 1 years are whole
/// divisions.
#[inline(always)]
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Counts from 1 March of the year 0; no caller passes a day for which this wraps.
    let days = days.wrapping_add(719_468);
    let era = if days >= 0 { days } else { days.wrapping_sub(146_096) } / 146_097;
    let day = (days - era * 146_097) as u32;
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = i64::from(year) + era * 400 + i64::from(month <= 2);
    (year, i64::from(month), i64::from(of_month))
}

/// The quotient rounded down, and its remainder; the divisor is above zero.
#[inline(always)]
pub fn floor<V: Word>(x: V, by: V) -> (V, V) {
    let (quotient, remainder, _) = x.div_rem(by, false);
    if remainder < V::default() {
        (quotient.sub(V::of_i64(1), false).0, remainder.add(by, false).0)
    } else {
        (quotient, remainder)
    }
}
