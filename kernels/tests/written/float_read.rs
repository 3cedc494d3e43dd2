use bowstring_kernels::map::function::half::F16;
use bowstring_kernels::text::bytes::Bytes;
use bowstring_kernels::text::parse::float::{read_f16, read_f32, read_f64};
use bowstring_kernels::text::parse::float_exact::{read_f16_exactly, read_f32_exactly, read_f64_exactly};
use bowstring_kernels::text::parse::said::Said;
use bowstring_kernels::text::powers::{POWERS, Ready};

use crate::support::{Random, cases, midpoint};

/// Bytes with only the methods that all bytes must have, as on a device.
#[derive(Clone, Copy)]
struct OneByOne<'a>(&'a [u8]);

impl Bytes for OneByOne<'_> {
    fn len(self) -> u64 {
        self.0.len() as u64
    }

    fn at(self, i: u64) -> u8 {
        self.0[i as usize]
    }
}

/// Reads a text in every way and compares with Rust. Returns how many ways found it too hard.
fn check(text: &str) -> usize {
    let bytes = text.as_bytes();
    let wanted = text.trim_ascii();
    // Rust accepts the same texts as arrow-cast.
    let (double, single) = (wanted.parse::<f64>().ok(), wanted.parse::<f32>().ok());
    let half = single.map(|x| F16::from_f32(x).0);
    let (double, single) = (double.map(f64::to_bits), single.map(f32::to_bits));
    assert_eq!(read_f64_exactly(bytes, POWERS).map(f64::to_bits), double, "{text}");
    assert_eq!(read_f32_exactly(bytes, POWERS).map(f32::to_bits), single, "{text}");
    assert_eq!(read_f16_exactly(bytes, POWERS).map(|x| x.0), half, "{text}");
    assert_eq!(read_f64_exactly(OneByOne(bytes), Ready).map(f64::to_bits), double, "{text}");
    let mut hard = 0;
    let mut quick = |value: Said<u64>, wanted: Option<u64>| match value {
        Said::Hard => hard += 1,
        Said::Nothing => assert_eq!(None, wanted, "{text}"),
        Said::Value(bits) => assert_eq!(Some(bits), wanted, "{text}"),
        Said::Elsewhere => panic!("{text} names no zone"),
    };
    quick(bits(read_f64(bytes, POWERS), f64::to_bits), double);
    quick(bits(read_f64(bytes, Ready), f64::to_bits), double);
    quick(bits(read_f64(OneByOne(bytes), POWERS), f64::to_bits), double);
    quick(bits(read_f32(bytes, POWERS), |x| x.to_bits().into()), single.map(u64::from));
    quick(bits(read_f32(bytes, Ready), |x| x.to_bits().into()), single.map(u64::from));
    quick(bits(read_f16(bytes, POWERS), |x| x.0.into()), half.map(u64::from));
    hard
}

fn bits<T>(reading: Said<T>, bits: impl Fn(T) -> u64) -> Said<u64> {
    reading.map(bits)
}

#[test]
fn what_is_no_float_is_not_read() {
    let texts = "|+|-|.|+.|-.|e|e5|.e5|1e|1e+|1e-|1e5.|0x10|1_000|1d|1f|--1|+-1|1.2.3|1 2|- 1|in|infi|infinit|infinityy|nann|na|\
        \u{b}1|1\u{b}|é|1é|١|1,5|1e5e5|1-|inf5|12345678|1234567:|/2345678|123:5678|1..|123.5678.|99999999x|\u{a0}1";
    for text in texts.split('|').filter(|text| *text != "12345678") {
        assert_eq!(read_f64(text.as_bytes(), POWERS), Said::Nothing, "{text}");
        assert_eq!(read_f64(text.as_bytes(), Ready), Said::Nothing, "{text}");
        assert_eq!(check(text), 0);
    }
}

#[test]
fn corners_are_read() {
    let texts = "0|-0|+0|0.|.0|-.5|1.|1e5|1E+5|1e-5|1e400|-1e400|1e-400|-1e-400|inf|-inf|+inf|Infinity|-INFINITY|nan|+NaN|\
         1 | 1|\t1\n|\r\u{c}1|1234.56|-1234.56|12345678|-12345678|1234567.|.1234567|-.1234567|123456789|1234.5678|\
        4.9406564584124654e-324|2.4703282292062327e-324|2.4703282292062328e-324|2.2250738585072011e-308|2.2250738585072014e-308|\
        1.7976931348623157e308|1.7976931348623158e308|1.7976931348623159e308|9007199254740993|9007199254740992.5|\
        9223372036854775808|18446744073709551615|18446744073709551616|184467440737095516151|9999999999999999999|0.1|0.3|\
        3.4028235e38|3.4028236e38|1.1754944e-38|1e-45|7e-46|7.1e-46|16777217|16777219|33554435|8.5899345920e9|\
        65504|65519.99|65520|6e-8|2.98e-8|2.99e-8|1e23|8.5e22|1e22|1e-22|123456789012345678e-5|1e00000000000000000005|\
        1e999999999999999999999|1e-999999999999999999999|0e999999999999999999999|0000000000000000000000000000001|\
        0.00000000000000000000000000000000000000000000001|100000000000000000000000000000000000000000000.000";
    for text in texts.split('|') {
        assert_eq!(check(text), 0, "{text}");
    }
    let Some(nan) = read_f64_exactly(&b"-nan"[..], POWERS) else { panic!("a NaN") };
    assert_eq!(nan.to_bits(), (-f64::NAN).to_bits());
    for zeros in [1, 17, 18, 19, 20, 300, 400, 1000, 3000] {
        let zeros_text = "0".repeat(zeros);
        check(&format!("0.{zeros_text}1e+{zeros}"));
        check(&format!("1{zeros_text}e-{zeros}"));
        check(&format!("1{zeros_text}1e-{zeros}"));
        check(&format!("9007199254740993{zeros_text}.{zeros_text}1e-{zeros}"));
        check(&format!("-1.{zeros_text}"));
        check(&format!("{zeros_text}.{zeros_text}"));
    }
}

#[test]
fn nineteen_digits_are_never_hard() {
    let mut random = Random(3);
    for i in 0..cases(20_000) {
        let digits = random.next() % 10_000_000_000_000_000_000;
        let exponent = random.below(680) as i64 - 360;
        let mut text = format!("{digits}e{exponent}");
        if i % 3 == 0 {
            text.insert(random.below(text.find('e').unwrap() as u64 + 1) as usize, '.');
        }
        assert_eq!(check(&text), 0, "{text}");
        assert_eq!(check(&format!("0.{digits:019}")), 0);
        assert_eq!(check(&format!("{}", digits as f64 / 1e5)), 0);
    }
}

/// Midpoints in 17 to 800 digits: unchanged, cut, extended, and one less in the last digit, with and without
/// exponents.
#[test]
fn ties_are_exact() {
    let mut random = Random(4);
    let mut hard = 0;
    for i in 0..cases(600) {
        let bits = random.next();
        let (digits, point) = match i % 8 {
            0 => midpoint(bits >> 12 >> (bits % 52), 52, 1023),
            1 => midpoint(f64::MAX.to_bits() - (bits & 1), 52, 1023),
            2 => midpoint(f64::MIN_POSITIVE.to_bits() + (bits & 3) - 2, 52, 1023),
            3 => midpoint(1, 23, 127),
            4 => midpoint(bits % (f32::INFINITY.to_bits() as u64), 23, 127),
            5 => midpoint(f32::MAX.to_bits() as u64 - (bits & 1), 23, 127),
            6 => midpoint((1.0f64.to_bits() + (bits >> 5)) & !(7 << 60) | 3 << 60, 52, 1023),
            _ => midpoint(bits % f64::INFINITY.to_bits(), 52, 1023),
        };
        let at = random.below(digits.len() as u64 + 1) as usize;
        let exponent = point - at as i32;
        let text = |digits: &str| match digits.get(at..) {
            Some(rest) => format!("{}.{rest}e{exponent}", &digits[..at]),
            None => format!("{digits}e{}", point - digits.len() as i32),
        };
        let zeros = "0".repeat(random.below(400) as usize);
        let mut less = digits.clone().into_bytes();
        *less.last_mut().unwrap() -= 1;
        let less = String::from_utf8(less).unwrap();
        hard += check(&text(&digits));
        hard += check(&text(&format!("{digits}{zeros}")));
        hard += check(&text(&format!("{digits}{zeros}1")));
        hard += check(&text(&less));
        hard += check(&text(&format!("{less}9{}", zeros.replace('0', "9"))));
        hard += check(&text(&digits[..1 + random.below(digits.len() as u64) as usize]));
    }
    assert!(hard > 0, "the slow way is for something");
}

#[test]
fn long_numbers_are_read() {
    let mut random = Random(5);
    for i in 0..cases(2_000) {
        let len = if i % 16 == 0 { 20 + random.below(2000) } else { 15 + random.below(30) };
        let mut text: String = (0..len).map(|_| (b'0' + random.below(10) as u8) as char).collect();
        text.insert(random.below(len + 1) as usize, '.');
        check(&text);
        check(&format!("-{text}e{}", random.below(800) as i64 - 400));
    }
}

/// Texts that are almost floats.
#[test]
fn nothing_else_is_taken_for_a_float() {
    let mut random = Random(6);
    let pieces = [
        "", "1", "00", "12345678", ".", "-", "+", "e", "E5", " ", "\n", "inf", "NaN", "infinity", "_", "x",
        "\u{b}", "é", "e-7",
    ];
    for _ in 0..cases(20_000) {
        let count = random.below(5);
        let text: String = (0..count).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
        check(&text);
    }
}
