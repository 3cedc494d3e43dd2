use bowstring_kernels::map::function::half::F16;
use bowstring_kernels::text::format::float::{write_f16, write_f32, write_f64};
use bowstring_kernels::text::format::shortest::{digits_f32, digits_f64};
use bowstring_kernels::text::format::sink::{Length, Sink};
use bowstring_kernels::text::parse::float::{read_f32, read_f64};
use bowstring_kernels::text::parse::said::Said;
use bowstring_kernels::text::powers::{POWERS, Powers, Ready};

use crate::support::{Random, cases};

#[derive(Default)]
struct Text(String);

impl Sink for Text {
    fn put(&mut self, byte: u8) {
        self.0.push(byte as char);
    }
}

fn text_f64(x: f64, powers: impl Powers) -> String {
    let (mut text, mut length) = (Text::default(), Length(0));
    write_f64(x, powers, &mut text);
    write_f64(x, powers, &mut length);
    assert_eq!(length.0 as usize, text.0.len(), "{}", text.0);
    text.0
}

fn text_f32(x: f32) -> String {
    let mut text = Text::default();
    write_f32(x, POWERS, &mut text);
    text.0
}

/// Lays out the digits of `{:e}`, and the number of them before the point, like arrow-cast's printer.
fn laid_out(scientific: &str, least: i32, most: i32) -> String {
    let (sign, scientific) = scientific.strip_prefix('-').map_or(("", scientific), |rest| ("-", rest));
    let Some((digits, power)) = scientific.split_once('e') else { return format!("{sign}{scientific}") };
    let (digits, power) = (digits.replace('.', ""), power.parse::<i32>().unwrap());
    let (before, count) = (power + 1, digits.len() as i32);
    let number = if before < least || before > most {
        let fraction = if count > 1 { format!(".{}", &digits[1..]) } else { String::new() };
        format!("{}{fraction}e{power}", &digits[..1])
    } else if before <= 0 {
        format!("0.{}{digits}", "0".repeat(-before as usize))
    } else if count <= before {
        format!("{digits}{}.0", "0".repeat((before - count) as usize))
    } else {
        format!("{}.{}", &digits[..before as usize], &digits[before as usize..])
    };
    format!("{sign}{number}")
}

/// Rust writes as many digits as we do, but of two equally near numbers it writes the greater.
fn same_but_for_a_tie(ours: &str, rusts: &str) -> bool {
    ours.len() == rusts.len() && ours.bytes().zip(rusts.bytes()).filter(|(a, b)| a != b).count() <= 1
}

fn check_f64(x: f64) {
    let text = text_f64(x, POWERS);
    assert_eq!(text, text_f64(x, Ready));
    let rusts = laid_out(&format!("{x:e}"), -4, 16);
    assert!(text == rusts || same_but_for_a_tie(&text, &rusts), "{text} is {rusts}");
    match read_f64(text.as_bytes(), POWERS) {
        Said::Value(back) if x.is_nan() => assert!(back.is_nan()),
        Said::Value(back) => assert_eq!(back.to_bits(), x.to_bits(), "{text}"),
        other => panic!("{text} is {other:?}"),
    }
}

fn check_f32(x: f32) {
    let text = text_f32(x);
    let rusts = laid_out(&format!("{x:e}"), -5, 13);
    assert!(text == rusts || same_but_for_a_tie(&text, &rusts), "{text} is {rusts}");
    match read_f32(text.as_bytes(), POWERS) {
        Said::Value(back) if x.is_nan() => assert!(back.is_nan()),
        Said::Value(back) => assert_eq!(back.to_bits(), x.to_bits(), "{text}"),
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn floats_are_laid_out_as_arrow_cast_does() {
    for (x, text) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1234.56, "1234.56"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e16"),
        (1234567890123456.0, "1234567890123456.0"),
        (12345678901234568.0, "1.2345678901234568e16"),
        (0.00001, "0.00001"),
        (0.000012345, "0.000012345"),
        (0.000001, "1e-6"),
        (1e21, "1e21"),
        (5e-324, "5e-324"),
        (1e-323, "1e-323"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (f64::MAX, "1.7976931348623157e308"),
        (9007199254740993.0, "9007199254740992.0"),
        (2f64.powi(-44), "5.684341886080802e-14"),
        (f64::NAN, "NaN"),
        (-f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(text_f64(x, POWERS), text);
    }
    for (x, text) in [
        (0.000001, "0.000001"),
        (0.0000001, "1e-7"),
        (1e12, "1000000000000.0"),
        (1e13, "1e13"),
        (16777216.0, "16777216.0"),
        (f32::from_bits(1), "1e-45"),
        (f32::MAX, "3.4028235e38"),
        (0.1, "0.1"),
    ] {
        assert_eq!(text_f32(x), text);
    }
}

#[test]
fn digits_are_seventeen_or_none() {
    assert_eq!((digits_f64(0.0, POWERS).digits, digits_f64(0.0, POWERS).exponent), (0, -16));
    let digits = digits_f64(-1.5, POWERS);
    assert_eq!((digits.digits, digits.exponent), (15_000_000_000_000_000, -16));
    let digits = digits_f32(1e-45, POWERS);
    assert_eq!((digits.digits, digits.exponent), (10_000_000_000_000_000, -61));
}

#[test]
fn every_half_is_written_as_rust_does() {
    for bits in 0..=u16::MAX {
        let mut text = Text::default();
        write_f16(F16(bits), POWERS, &mut text);
        assert_eq!(text.0, format!("{}", F16(bits).to_f32()), "{bits:#x}");
    }
}

#[test]
fn floats_are_shortest_and_read_back() {
    let mut random = Random(1);
    // Every exponent, at the ends of its fractions.
    for field in 0..2048u64 {
        for fraction in [0, 1, 2, (1 << 52) - 1, random.next() >> 12] {
            check_f64(f64::from_bits(field << 52 | fraction));
        }
    }
    for field in 0..256 {
        for fraction in [0, 1, 2, (1 << 23) - 1, random.next() as u32 >> 9] {
            check_f32(f32::from_bits(field << 23 | fraction));
        }
    }
    for _ in 0..cases(20_000) {
        let bits = random.next();
        check_f64(f64::from_bits(bits));
        check_f64(f64::from_bits(bits >> (12 + bits % 52)));
        check_f64((bits >> (bits % 60)) as f64 / 100.0);
        check_f32(f32::from_bits(bits as u32));
        check_f32((bits >> (34 + bits % 29)) as f32 / 100.0);
    }
}

/// The CPU finds their digits by a division; devices find them as those of any float.
#[test]
fn decimals_are_written_as_other_floats_are() {
    let mut random = Random(2);
    for _ in 0..cases(20_000) {
        let length = 1 + random.below(17) as u32;
        let digits = random.below(10u64.pow(length));
        let power = random.below(24) as i32 - 1;
        let x = digits as f64 / 10f64.powi(power);
        [x, x.next_up(), x.next_down(), -x].into_iter().for_each(check_f64);
    }
    for power in -8..18 {
        for x in [10f64.powi(power), 9.999_999_999_999_99 * 10f64.powi(power), 2f64.powi(3 * power)] {
            [x, x.next_up(), x.next_down()].into_iter().for_each(check_f64);
        }
    }
}
