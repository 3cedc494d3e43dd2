//! Compares integers, decimals and booleans with Rust's own parsing and formatting, and with lists.

use bowstring_kernels::map::function::U256;
use bowstring_kernels::text::digits::{count_of_digits, eight_of_number, number_of_eight};
use bowstring_kernels::text::format::boolean::write_boolean;
use bowstring_kernels::text::format::decimal::write_decimal;
use bowstring_kernels::text::format::integer::write_integer;
use bowstring_kernels::text::format::sink::{Backwards, Length, Sink};
use bowstring_kernels::text::parse::boolean::read_boolean;
use bowstring_kernels::text::parse::decimal::{Form, read_decimal};
use bowstring_kernels::text::parse::integer::read_integer;

/// A text that is written from both ends.
#[derive(Default)]
struct Text {
    front: Vec<u8>,
    /// The bytes from the last one on.
    back: Vec<u8>,
}

impl Sink for Text {
    fn put(&mut self, byte: u8) {
        self.front.push(byte);
    }
}

impl Backwards for Text {
    fn put_before(&mut self, byte: u8) {
        self.back.push(byte);
    }
}

fn written(write: impl Fn(&mut Text), measure: impl Fn(&mut Length)) -> String {
    let (mut text, mut length) = (Text::default(), Length::default());
    write(&mut text);
    measure(&mut length);
    text.front.extend(text.back.iter().rev());
    assert_eq!(text.front.len(), length.0 as usize);
    String::from_utf8(text.front).expect("text")
}

/// Numbers around all powers of two and ten, and some others.
fn numbers() -> impl Iterator<Item = u64> {
    let twos = (0..64).map(|power| 1u64 << power);
    let tens = (0..20).map(|power| 10u64.pow(power));
    let around = twos.chain(tens).flat_map(|x| [x.wrapping_sub(1), x, x + 1]);
    around.chain((0..2000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64)))
}

#[test]
fn eight_digits_in_a_word() {
    for number in numbers().map(|x| (x % 100_000_000) as u32) {
        let text = format!("{number:08}");
        let word = u64::from_le_bytes(text.as_bytes().try_into().unwrap());
        assert_eq!(eight_of_number(number), word, "{number}");
        assert_eq!(number_of_eight(word), Some(number));
        assert_eq!(count_of_digits(number), number.to_string().len() as u32);
        for i in 0..8 {
            for byte in [b'/', b':', b' ', 0, 0x80 | b'1', 0xff] {
                assert_eq!(
                    number_of_eight(word & !(0xff << (8 * i)) | u64::from(byte) << (8 * i)),
                    None,
                    "{text} {i} {byte}"
                );
            }
        }
    }
}

#[test]
fn integers_are_what_rust_says() {
    for x in numbers() {
        for negative in [false, true] {
            let text =
                written(|sink| write_integer(negative, x, sink), |sink| write_integer(negative, x, sink));
            assert_eq!(text, if negative { format!("-{x}") } else { x.to_string() });
            for spaced in
                [text.clone(), format!(" \t{text}\n"), format!("{}0{x}", if negative { "-" } else { "+" })]
            {
                let read = |most, least| read_integer(spaced.as_bytes(), most, least);
                assert_eq!(read(u64::MAX, 0), (!negative || x == 0).then_some(x), "{spaced}");
                assert_eq!(
                    read(i64::MAX as u64, 1 << 63).map(|bits| bits as i64),
                    text.parse().ok(),
                    "{spaced}"
                );
                assert_eq!(read(127, 128).map(|bits| bits as i8), text.parse().ok(), "{spaced}");
            }
        }
    }
    let too_large = [
        "18446744073709551616",
        "18446744073709551620",
        "99999999999999999999",
        "184467440737095516150",
        "1000000000000000000000000",
    ];
    for text in too_large.into_iter().chain([
        "",
        " ",
        "+",
        "-",
        "1 2",
        "--1",
        "1.0",
        "12345678x",
        "1234567x1",
        "x",
        "1\u{b}",
        "\u{e9}",
    ]) {
        assert_eq!(read_integer(text.as_bytes(), u64::MAX, u64::MAX), None, "{text}");
    }
}

fn form(precision: u32, scale: i32) -> Form<U256> {
    let power = |exponent| (0..exponent).fold(U256::ONE, |power, _| power.wrapping_mul(U256::from_low(10)));
    Form { scale, tenth: power(precision - 1), greatest: power(precision).wrapping_sub(U256::ONE) }
}

#[test]
fn decimals_are_rounded_half_away_from_zero() {
    let cases: &[(&str, u32, i32, Option<i128>)] = &[
        ("1.005", 10, 2, Some(101)),
        ("-1.005", 10, 2, Some(-101)),
        ("1.00499999999999999999999999999999", 10, 2, Some(100)),
        ("5.", 10, 2, Some(500)),
        ("+.5", 10, 2, Some(50)),
        (".", 10, 2, None),
        ("", 10, 2, None),
        ("e5", 10, 2, None),
        ("1e", 10, 2, None),
        ("1e+", 10, 2, None),
        ("1e2.5", 10, 2, None),
        ("1.2.3", 10, 2, None),
        ("1e-2", 10, 2, Some(1)),
        (" 12E+1\n", 10, 2, Some(12000)),
        ("99999999.994", 10, 2, Some(9_999_999_999)),
        ("99999999.995", 10, 2, None),
        ("100000000", 10, 2, None),
        ("4825037936439135476E-14", 10, 2, Some(4_825_038)),
        ("0e99999999999999999999999", 10, 2, Some(0)),
        ("1e99999999999999999999999", 10, 2, None),
        ("1e-99999999999999999999999", 10, 2, Some(0)),
        ("149", 5, -2, Some(1)),
        ("150", 5, -2, Some(2)),
        ("49", 5, -2, Some(0)),
        ("50", 5, -2, Some(1)),
        ("9", 5, -2, Some(0)),
        ("9999949", 5, -2, Some(99999)),
        ("9999950", 5, -2, None),
        (
            "00000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
            1,
            0,
            Some(1),
        ),
    ];
    for (text, precision, scale, value) in cases {
        let wide = form(*precision, *scale);
        let narrow = Form { scale: *scale, tenth: wide.tenth.low, greatest: wide.greatest.low };
        let signed = |(negative, x): (bool, u128)| if negative { -(x as i128) } else { x as i128 };
        assert_eq!(read_decimal(text.as_bytes(), narrow).map(signed), *value, "{text}");
        let low = |(negative, x): (bool, U256)| (negative, x.low);
        assert_eq!(read_decimal(text.as_bytes(), wide).map(low).map(signed), *value, "{text}");
    }
    let nines = "9".repeat(76);
    assert_eq!(read_decimal(nines.as_bytes(), form(76, 0)), Some((false, form(76, 0).greatest)));
    assert_eq!(read_decimal(nines.as_bytes(), form(75, 0)), None);
    assert_eq!(read_decimal(format!("{nines}.5").as_bytes(), form(76, 0)), None);
}

#[test]
fn decimals_have_their_point_where_the_scale_says() {
    for x in numbers() {
        for scale in [-3, 0, 1, 2, 7, 8, 9, 16, 25, 40] {
            let digits = x.to_string();
            let expected = if scale <= 0 {
                digits.clone() + &"0".repeat(if x == 0 { 0 } else { -scale as usize })
            } else {
                let padded = format!("{digits:0>width$}", width = scale as usize + 1);
                let (whole, behind) = padded.split_at(padded.len() - scale as usize);
                format!("{whole}.{behind}")
            };
            let wide = U256::from_low(u128::from(x));
            let narrow = written(
                |sink| write_decimal(true, x, scale, sink),
                |sink| write_decimal(true, x, scale, sink),
            );
            assert_eq!(narrow, format!("-{expected}"), "{x} {scale}");
            let same = written(
                |sink| write_decimal(false, wide, scale, sink),
                |sink| write_decimal(false, wide, scale, sink),
            );
            assert_eq!(same, expected, "{x} {scale}");
        }
    }
    let x = 0x1234_5678_9abc_def0_1234_5678_9abc_def0u128;
    let text = |sink: &mut Text| write_decimal(false, x, 0, sink);
    assert_eq!(written(text, |sink| write_decimal(false, x, 0, sink)), x.to_string());
    let greatest = form(76, 0).greatest;
    let text = |sink: &mut Text| write_decimal(false, greatest, 0, sink);
    assert_eq!(written(text, |sink| write_decimal(false, greatest, 0, sink)), "9".repeat(76));
}

#[test]
fn booleans_are_words_and_their_beginnings() {
    let yes = [
        "t",
        "tr",
        "tru",
        "true",
        "y",
        "ye",
        "yes",
        "on",
        "1",
        "TRUE",
        "On",
        " true\t",
        "\u{a0}yes\u{3000}",
        "\u{85}1\u{2003}\u{b}",
    ];
    let no = [
        "f",
        "fa",
        "fal",
        "fals",
        "false",
        "n",
        "no",
        "of",
        "off",
        "0",
        "FaLsE",
        "\u{202f}off\u{205f}\u{1680}",
    ];
    let neither = [
        "",
        " ",
        "o",
        "truey",
        "falsey",
        "yess",
        "noo",
        "offf",
        "+1",
        "10",
        "tru e",
        "\u{200b}true",
        "true\u{e9}",
        "\u{e9}",
        "\u{3000}",
        "tru\u{2028}e",
        "01",
        "\u{feff}1",
    ];
    for (texts, value) in [(&yes[..], Some(true)), (&no[..], Some(false)), (&neither[..], None)] {
        for text in texts {
            assert_eq!(read_boolean(text.as_bytes()), value, "{text:?}");
        }
    }
    for value in [false, true] {
        assert_eq!(
            written(|sink| write_boolean(value, sink), |sink| write_boolean(value, sink)),
            value.to_string()
        );
    }
}
