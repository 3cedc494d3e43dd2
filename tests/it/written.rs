//! Tests text to values and back: every device gives arrow-cast's answer, for difficult texts and for nearly
//! valid ones.

mod samples;

use std::sync::Arc;

use arrow_array::*;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::DataType;
use bowstring::Error;
use bowstring::array::Place;
use bowstring::compute::cast;
use bowstring::exchange::to_arrow;

use crate::support::*;
use samples::{SEEDS, mutated, plain_types};

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
