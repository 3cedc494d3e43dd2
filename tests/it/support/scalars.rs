//! Single random values: the extremes of each number type, values that fail to convert, text and bytes of all
//! lengths.

use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use half::f16;

use super::Random;

/// The bytes of one value of a fixed-width type.
pub fn fixed(data_type: &DataType, rng: &mut Random) -> Vec<u8> {
    use DataType::*;
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    // A plausible value of a temporal type, in units of this size, or any number.
    let mut near = |from: i128, to: i128, width: usize| {
        if rng.percent(70.0) {
            (from + rng.below((to - from) as usize) as i128).to_le_bytes()[..width].to_vec()
        } else {
            integer(width, rng)
        }
    };
    const DAY: i128 = 86_400;
    match data_type {
        Float16 => f16::from_f64(float(rng)).to_le_bytes().to_vec(),
        Float32 => (float(rng) as f32).to_le_bytes().to_vec(),
        Float64 => float(rng).to_le_bytes().to_vec(),
        Decimal32(precision, _) => decimal(*precision, rng)[..4].to_vec(),
        Decimal64(precision, _) => decimal(*precision, rng)[..8].to_vec(),
        Decimal128(precision, _) => decimal(*precision, rng)[..16].to_vec(),
        Decimal256(precision, _) => decimal(*precision, rng).to_vec(),
        FixedSizeBinary(width) => rng.bytes(*width as usize),
        Date32 => near(-25_000, 50_000, 4),
        // Whole days, as the format requires.
        Date64 => near(-25_000, 50_000, 8)
            .try_into()
            .map(|days| (i64::from_le_bytes(days) % 100_000 * DAY as i64 * 1000).to_le_bytes().to_vec())
            .expect("eight bytes"),
        Time32(step) => near(0, DAY * unit(step), 4),
        Time64(step) => near(0, DAY * unit(step), 8),
        Timestamp(step, _) => near(-2_000_000_000 * unit(step), 4_000_000_000 * unit(step), 8),
        Interval(arrow_schema::IntervalUnit::DayTime) => [integer(4, rng), integer(4, rng)].concat(),
        Interval(arrow_schema::IntervalUnit::MonthDayNano) => {
            [integer(4, rng), integer(4, rng), integer(8, rng)].concat()
        }
        other => integer(other.primitive_width().expect("a type of fixed width"), rng),
    }
}

/// An integer of `width` bytes: a limit of a narrower or wider type, a small one, or any.
fn integer(width: usize, rng: &mut Random) -> Vec<u8> {
    let limit = 1i128 << [7, 8, 15, 16, 24, 31, 32, 53, 63, 64][rng.below(10)];
    let value = match rng.below(5) {
        0 => [limit - 1, limit, limit + 1, -limit, -limit - 1, 1 - limit][rng.below(6)],
        // The limits of each width, as signed and as unsigned numbers.
        1 => [0, -1, 1 << (8 * width - 1), (1 << (8 * width - 1)) - 1][rng.below(4)],
        2 => rng.below(256) as i128 - 128,
        3 => i128::from(rng.bits() as i64 >> rng.below(64)),
        _ => i128::from(rng.bits() as i64),
    };
    value.to_le_bytes()[..width].to_vec()
}

/// A float: a special value, one at the edge of an integer type, a small one, or any bits.
fn float(rng: &mut Random) -> f64 {
    const ODD: [f64; 24] = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        0.999_999_999_999_999_9,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::MIN,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::MIN_POSITIVE / 8.0,
        5e-324,
        f32::MAX as f64,
        f32::MIN_POSITIVE as f64,
        f32::MIN_POSITIVE as f64 / 8.0,
        1e-45,
        // Float16: the largest, the first that overflows, the smallest normal and subnormal ones.
        65_504.0,
        65_520.0,
        6.103_515_625e-5,
        5.960_464_477_539_063e-8,
        16_777_217.0,
        2_049.0,
    ];
    match rng.below(6) {
        0 | 1 => ODD[rng.below(ODD.len())],
        2 => {
            let edge = (1u128 << [7, 8, 15, 16, 31, 32, 53, 63, 64][rng.below(9)]) as f64;
            let edge = if rng.percent(50.0) { edge } else { -edge };
            [edge, edge.next_down(), edge.next_up(), edge - 1.0, edge - 0.5][rng.below(5)]
        }
        3 => (rng.below(2_000) as f64 - 1_000.0) / 4.0,
        4 => f64::from(f32::from_bits(rng.bits() as u32)),
        _ => f64::from_bits(rng.bits()),
    }
}

/// The 32 bytes of a decimal with at most `precision` digits: the largest, one less than a power of ten, or
/// any.
fn decimal(precision: u8, rng: &mut Random) -> [u8; 32] {
    let ten = i256::from_i128(10);
    let digits = 1 + rng.below(precision as usize) as u32;
    let limit = ten.wrapping_pow(digits);
    let any = i256::from_parts(
        (u128::from(rng.bits()) << 64) | u128::from(rng.bits()),
        i128::from(rng.bits() >> 1),
    );
    let value = match rng.below(6) {
        0 => ten.wrapping_pow(u32::from(precision)).wrapping_sub(i256::ONE),
        1 => limit.wrapping_sub(i256::ONE),
        // The values 5, 50, 500, at which rounding changes direction.
        2 => ten.wrapping_pow(digits - 1).wrapping_mul(i256::from_i128(5)),
        3 => i256::ZERO,
        _ => any.wrapping_rem(limit),
    };
    if rng.percent(50.0) { value.to_le_bytes() } else { value.wrapping_neg().to_le_bytes() }
}

/// A string: empty, near the inline limit of a view, long, with characters of one to four bytes, or one that
/// some cast can parse.
pub fn text(rng: &mut Random) -> Vec<u8> {
    const READABLE: [&str; 22] = [
        "",
        "0",
        "-1",
        "127",
        "128",
        "+42",
        " 7",
        "3.25",
        "-1e3",
        "NaN",
        "inf",
        "true",
        "FALSE",
        "yes",
        "2024-02-29",
        "1969-12-31T23:59:59.999999999",
        "2024-02-29T12:34:56Z",
        "23:59:60",
        "12:34:56.789",
        "1 year 2 months",
        "99999999999999999999",
        "0.005",
    ];
    const LETTERS: [char; 8] = ['a', 'Z', '0', 'é', 'ß', '語', '🏹', '\u{0}'];
    let len = match rng.below(8) {
        0..3 => return READABLE[rng.below(READABLE.len())].as_bytes().to_vec(),
        3 => 11 + rng.below(3),
        4 => 60 + rng.below(200),
        _ => rng.below(20),
    };
    let mut text = String::new();
    while text.len() < len {
        text.push(LETTERS[rng.below(LETTERS.len())]);
    }
    text.into_bytes()
}

/// Bytes: sometimes a string, otherwise of any value.
pub fn blob(rng: &mut Random) -> Vec<u8> {
    if rng.percent(40.0) {
        return text(rng);
    }
    let len = [0, 3, 12, 13, 40][rng.below(5)];
    rng.bytes(len)
}
