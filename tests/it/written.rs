//! Tests text to values and back: every device gives arrow-cast's answer, for difficult texts and for nearly
//! valid ones.

use std::sync::Arc;

use arrow_array::*;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bowstring::Error;
use bowstring::array::Place;
use bowstring::compute::cast;
use bowstring::exchange::to_arrow;

use crate::support::*;

/// The texts that mutations start from: each is valid for some type, or nearly.
const SEEDS: &[&str] = &[
    "",
    " ",
    "0",
    "-0",
    "+0",
    "1",
    "-1",
    "+1",
    "127",
    "128",
    "-128",
    "-129",
    "255",
    "256",
    "32767",
    "-32769",
    "65536",
    "2147483647",
    "2147483648",
    "-2147483648",
    "4294967295",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "00000000000000000000000000012",
    " 12",
    "12 ",
    "\t12\n",
    "1 2",
    "--1",
    "+-1",
    "1_000",
    "1,000",
    "0x10",
    "1.",
    ".5",
    ".",
    "1.0",
    "-1.5",
    "1e5",
    "1E+5",
    "1e-5",
    "1e",
    "e5",
    "1e400",
    "-1e400",
    "1e-400",
    "inf",
    "-inf",
    "Infinity",
    "nan",
    "NaN",
    "+nan",
    "1d",
    "1.005",
    "1.004999",
    "-1.005",
    "5.",
    "+.5",
    "0.5e1",
    "12345678901234567890.12345",
    "99999999999999999999999999999999999999",
    "100000000000000000000000000000000000000",
    "1e37",
    "1e38",
    "4825037936439135476E-14",
    "0e999999999999999999999",
    "1e-99999999999999999999",
    "0.1",
    "0.30000000000000004",
    "9007199254740993",
    "9007199254740992.5",
    "2.2250738585072011e-308",
    "4.9e-324",
    "2.4703282292062327e-324",
    "2.4703282292062328e-324",
    "1.7976931348623157e308",
    "1.7976931348623158e308",
    "1.7976931348623159e308",
    "3.4028235e38",
    "3.4028236e38",
    "1.17549435e-38",
    "7.006492321624085e-46",
    "65504",
    "65519.99",
    "65520",
    "5.96e-8",
    "2.98e-8",
    "123456789012345678901234567890e-10",
    "8.41",
    "123.456",
    "true",
    "false",
    "T",
    "yes",
    "no",
    "on",
    "off",
    "tru",
    "of",
    " true ",
    "\u{a0}true\u{3000}",
    "\u{85}no\u{2003}",
    "truey",
    "2020-01-01",
    "2020-1-1",
    "20200101",
    " 2020-01-01 ",
    "+10000-01-01",
    "-0001-01-01",
    "2020-02-29",
    "2019-02-29",
    "2020-13-01",
    "2020-01-01 00:00:00+01:00",
    "2020-01-01T12:34:56Z",
    "2020-01-01t12:34:56.789",
    "2020-01-01 12:34:56.123456789123",
    "2020-01-01 123456",
    "2020-01-01 12:34",
    "2020-01-01 23:59:60",
    "2020-01-01 23:59:60.5",
    "1677-09-21T00:12:43.145224192",
    "2262-04-11T23:47:16.854775807",
    "2262-04-11T23:47:16.854775808",
    "9999-12-31T23:59:59.999999999",
    "2020-06-15 12:00:00 Europe/Berlin",
    "2020-06-15 12:00:00+0530",
    "2020-06-15 12:00:00-05",
    "2020-06-15 12:00:00 +05:30",
    // White space ends a row, and begins the next.
    "2020-06-15 12:00:00 ",
    " 2020-06-15",
    "12:34",
    "12:34:56",
    "12:34:56.789",
    "1:02:03 PM",
    "12:00 AM",
    "12:00:00 pm",
    "23:59:60",
    "24:00:00",
    "86399",
    "86400",
    "1 year",
    "1 year 2 months",
    "-1 mon 3 days",
    "1.5 days",
    "1 day 02:03:04.5",
    "5",
    "1 month -1 second",
    "3 weeks",
    "2 hours 30 minutes",
    "1.123456789 seconds",
    "P1Y",
    "\u{e9}",
    "1\u{e9}",
];

const LETTERS: &[char] = &[
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '0', '9', '+', '-', '.', 'e', 'E', ' ', ':', 'T', 'Z',
    '/', 'n', 'a', 'i', 'f', 't', '\u{e9}', '_', 'M', 'P',
];

/// A mutated text, which a person might have written, or not quite.
fn mutated(random: &mut Random) -> String {
    let mut text: Vec<char> = random.pick(SEEDS).chars().collect();
    for _ in 0..random.below(4) {
        let at = random.below(text.len() + 1);
        let letter = LETTERS[random.below(LETTERS.len())];
        match random.below(4) {
            0 if at < text.len() => text[at] = letter,
            1 if at < text.len() => drop(text.remove(at)),
            2 => {
                let digits = 1 + random.below(30);
                let more: Vec<char> =
                    (0..digits).map(|_| char::from(b'0' + random.below(10) as u8)).collect();
                drop(text.splice(at..at, more));
            }
            _ => text.insert(at, letter),
        }
    }
    text.into_iter().collect()
}

/// Types that text is cast to and from, more than in `types`.
fn plain_types() -> Vec<DataType> {
    use DataType::*;
    let zoned = |unit, zone: &str| Timestamp(unit, Some(zone.into()));
    let mut all = vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Decimal32(9, 2),
        Decimal32(5, -2),
        Decimal64(18, 4),
        Decimal64(3, 3),
        Decimal128(38, 10),
        Decimal128(10, 2),
        Decimal128(1, 0),
        Decimal128(38, -5),
        Decimal256(76, 20),
        Decimal256(76, 76),
        Decimal256(5, 0),
        Date32,
        Date64,
        Time32(TimeUnit::Second),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
    ];
    for unit in [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond] {
        all.extend([Timestamp(unit, None), Duration(unit), zoned(unit, "+02:00"), zoned(unit, "-07:30")]);
        all.extend([
            zoned(unit, "Europe/Berlin"),
            zoned(unit, "America/New_York"),
            zoned(unit, "Australia/Lord_Howe"),
        ]);
    }
    all.extend([IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval));
    all
}

fn as_text(texts: Vec<Option<String>>, to: &DataType) -> ArrayRef {
    match to {
        DataType::Utf8 => Arc::new(StringArray::from(texts)),
        DataType::LargeUtf8 => Arc::new(LargeStringArray::from(texts)),
        _ => Arc::new(StringViewArray::from(texts)),
    }
}

fn options(safe: bool) -> CastOptions<'static> {
    CastOptions { safe, ..CastOptions::default() }
}

/// Whether a text may name a time zone, which only the CPU looks up: anything but a Z after its time.
fn may_name_a_zone(text: &str) -> bool {
    let behind: String = text.chars().skip(11).collect();
    let name = behind.strip_suffix(['Z', 'z']).unwrap_or(&behind);
    name.contains(|letter: char| letter.is_alphabetic() || "/_".contains(letter))
}

/// Keeps the texts that a target can read as a type.
fn readable(target: &Target, to: &DataType, texts: Vec<Option<String>>) -> Vec<Option<String>> {
    let instants = matches!(to, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    let all = !instants || is_host(target);
    texts.into_iter().filter(|text| all || !text.as_deref().is_some_and(may_name_a_zone)).collect()
}

fn is_host(target: &Target) -> bool {
    target.stream.device().place() == Place::CPU
}

/// Fails if a device's answer differs from arrow-cast's: the rows, or the message about the first failing
/// row.
fn assert_alike(target: &Target, values: &ArrayRef, to: &DataType, safe: bool) {
    let theirs = cast_with_options(values, to, &options(safe));
    let context = format!("{} to {to}, safe: {safe}", values.data_type());
    let ours = cast(&target.import(values), to, &options(safe), &target.stream).wait();
    let ours = ours.and_then(|ours| to_arrow(&target.stream.download(&ours)?).map(|_| ours));
    match (ours, theirs) {
        (Err(Error::Cast { row, problem, .. }), Err(theirs)) => {
            let one = |row: usize| cast_with_options(&values.slice(row, 1), to, &options(safe));
            assert_eq!(
                (0..values.len()).find(|row| one(*row).is_err()),
                Some(row),
                "{context}, on {target:?}"
            );
            assert_eq!(problem, one(row).unwrap_err().to_string(), "{context}, on {target:?}: {theirs}");
        }
        (ours, Ok(theirs)) => {
            let Some(ours) = target.answer(ours, &context) else { return };
            let ours = target.export(&ours);
            if let Some(row) = (0..values.len()).find(|row| ours.slice(*row, 1) != theirs.slice(*row, 1)) {
                let (value, ours, theirs) = (values.slice(row, 1), ours.slice(row, 1), theirs.slice(row, 1));
                panic!("{context}, on {target:?}: {value:?} is {ours:?} here and {theirs:?} there");
            }
            assert_eq!(&ours, &theirs, "{context}, on {target:?}");
        }
        // An error in arrow-cast's own words.
        (Err(Error::Arrow { .. }), Err(_)) => {}
        (ours, Err(theirs)) => {
            let ours = target.answer(ours, &context);
            assert!(ours.is_none(), "{context}, on {target:?}: no error where arrow-cast says {theirs}");
        }
    }
}

const TEXTS: [DataType; 3] = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View];

fn nulls(texts: Vec<String>) -> Vec<Option<String>> {
    texts.into_iter().enumerate().map(|(i, text)| (i % 11 != 3).then_some(text)).collect()
}

#[test]
fn hard_texts_are_read_as_arrow_reads_them() {
    let texts: Vec<String> = SEEDS.iter().map(|seed| (*seed).to_owned()).collect();
    for from in TEXTS {
        for to in plain_types().iter().filter(|to| can_cast_types(&from, to)) {
            for target in &devices() {
                let texts = readable(target, to, nulls(texts.clone()));
                assert_alike(target, &as_text(texts.clone(), &from), to, true);
                // Strict casts of single rows, if they are cheap.
                let step = if !is_host(target) {
                    16
                } else if from == DataType::Utf8 {
                    1
                } else {
                    8
                };
                for text in texts.into_iter().step_by(step) {
                    assert_alike(target, &as_text(vec![None, text], &from), to, false);
                }
            }
        }
    }
}

#[test]
fn random_texts_are_read_as_arrow_reads_them() {
    let mut random = Random::new(15);
    for (i, to) in plain_types().iter().enumerate() {
        let from = &TEXTS[i % 3];
        if !can_cast_types(from, to) {
            continue;
        }
        for target in &devices() {
            let count = if is_host(target) { 5000 } else { 400 } * cases(1) as usize;
            let texts = (0..count).map(|_| mutated(&mut random)).collect();
            assert_alike(target, &as_text(readable(target, to, nulls(texts)), from), to, true);
        }
    }
}

/// A device reports what it cannot look up, and does not guess.
#[test]
fn a_text_that_names_a_zone_is_unsupported_on_devices() {
    let texts = as_text(
        vec![Some("2020-06-15".into()), Some("2020-06-15 12:00:00 Europe/Berlin".into())],
        &DataType::Utf8,
    );
    for target in &devices() {
        for safe in [true, false] {
            let read = cast(&target.import(&texts), &DataType::Date32, &options(safe), &target.stream).wait();
            let read = read.and_then(|read| to_arrow(&target.stream.download(&read)?));
            match is_host(target) {
                true => assert_eq!(read.unwrap().null_count(), 0),
                false => {
                    assert!(matches!(read, Err(Error::Unsupported { operation: "cast", .. })), "{read:?}")
                }
            }
        }
    }
}

/// Values of a type, of every magnitude.
fn values(of: &DataType, seed: u64) -> ArrayRef {
    let mut random = Random::new(seed);
    let numbers = (0..700).map(|i| {
        let number = random.bits() as i64 >> random.below(64);
        (i % 9 != 4).then_some(number)
    });
    let numbers: ArrayRef = Arc::new(numbers.collect::<Int64Array>());
    let sample = Sample { data_type: of.clone(), len: 700, nulls: Nulls::Some, offset: 3, seed };
    // Casts the numbers as the stored bits of a time: casting them to a type with a zone would read them as
    // local times.
    let counted = match of {
        DataType::Date32 | DataType::Time32(_) => {
            cast_with_options(&numbers, &DataType::Int32, &options(true))
        }
        _ => Ok(numbers),
    };
    let cast = |counted: ArrayRef| cast_with_options(&counted, of, &options(true));
    counted.and_then(cast).unwrap_or_else(|_| sample.array())
}

#[test]
fn values_are_written_as_arrow_writes_them_and_come_back() {
    for (i, from) in plain_types().iter().enumerate() {
        for (j, to) in TEXTS.iter().enumerate() {
            if !can_cast_types(from, to) {
                continue;
            }
            let sample = Sample { data_type: from.clone(), len: 300, nulls: Nulls::Some, offset: 3, seed: 5 };
            for values in [sample.array(), values(from, (3 * i + j) as u64)] {
                let one = |row| cast_with_options(&values.slice(row, 1), to, &options(true)).is_ok();
                let writable: BooleanArray = (0..values.len()).map(|row| Some(one(row))).collect();
                let good =
                    arrow_select::filter::filter(&values, &writable).expect("arrow-rs filters every type");
                let written = cast_with_options(&good, to, &options(false)).expect("each is written");
                for target in &devices() {
                    assert_alike(target, &values, to, true);
                    assert_alike(target, &good, to, false);
                    if can_cast_types(to, from) {
                        assert_alike(target, &written, from, true);
                        assert_alike(target, &written, from, false);
                    }
                }
            }
        }
    }
}

/// More rows than one part, whole and in slices, on the CPU.
#[test]
fn long_columns_are_written_and_read_in_parts() {
    let target = &devices()[0];
    let numbers: Int64Array =
        (0..50_000i64).map(|i| (i % 7 != 0).then(|| (i * i * i - 9).wrapping_mul(i << (i % 40)))).collect();
    let numbers: ArrayRef = Arc::new(numbers);
    for to in TEXTS {
        for (offset, len) in [(0, 50_000), (1, 49_999), (4095, 4098), (70, 64), (9, 0)] {
            let values = numbers.slice(offset, len);
            assert_alike(target, &values, &to, true);
            let texts = cast_with_options(&values, &to, &options(true)).unwrap();
            assert_alike(target, &texts, &DataType::Int64, false);
            assert_alike(target, &texts, &DataType::Decimal128(20, 1), true);
        }
    }
}
