//! Tests lists as text: every device prints them as arrow's display does, with any items, and invalid
//! contents are an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, Field, TimeUnit};
use bowstring::Error;
use bowstring::compute::{FormatOptions, cast};
use proptest::prelude::*;

use crate::support::*;

const TEXTS: [DataType; 3] = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View];

/// The list layouts that can be cast to text.
const LAYOUTS: [fn(Arc<Field>) -> DataType; 4] =
    [DataType::List, DataType::LargeList, DataType::ListView, DataType::LargeListView];

fn options(safe: bool) -> CastOptions<'static> {
    CastOptions { safe, ..CastOptions::default() }
}

fn item(of: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", of, true))
}

fn dictionary(of: DataType) -> DataType {
    DataType::Dictionary(Box::new(DataType::Int8), Box::new(of))
}

fn runs(of: DataType) -> DataType {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", of, true)))
}

/// Fails if a device prints differently from arrow, or has no error where arrow has one.
fn assert_alike(target: &Target, values: &ArrayRef, to: &DataType, safe: bool) {
    let context = format!("{} to {to}, safe: {safe}", values.data_type());
    let ours = cast(&target.import(values), to, &options(safe), &target.stream).wait();
    let ours = ours.and_then(|ours| ours.wait().map(|()| ours));
    match (ours, cast_with_options(values, to, &options(safe))) {
        (ours, Ok(theirs)) => {
            let Some(ours) = target.answer(ours, &context) else { return };
            target.assert_same(&ours, &theirs, &context);
        }
        (ours, Err(theirs)) => {
            assert!(matches!(ours, Err(Error::Arrow { .. })), "{context}: {ours:?}, and there {theirs}");
        }
    }
}

/// The item types of lists that can be cast to text, more than in `types`.
fn items() -> Vec<DataType> {
    use DataType::*;
    let zoned = |unit, zone: &str| Timestamp(unit, Some(zone.into()));
    let mut all = types();
    all.extend([
        zoned(TimeUnit::Second, "-07:30"),
        zoned(TimeUnit::Millisecond, "Europe/Berlin"),
        zoned(TimeUnit::Nanosecond, "Australia/Lord_Howe"),
        Decimal128(10, -3),
        FixedSizeList(item(Int64), 1),
        FixedSizeList(item(Date32), 1),
        FixedSizeList(item(FixedSizeList(item(Binary), 1)), 1),
        List(item(Utf8View)),
        LargeList(item(List(item(Time32(TimeUnit::Second))))),
        ListView(item(Boolean)),
        LargeListView(item(Null)),
        dictionary(Int16),
        dictionary(Date64),
        dictionary(LargeBinary),
        dictionary(BinaryView),
        dictionary(dictionary(Utf8)),
        dictionary(List(item(Float32))),
        runs(Utf8View),
        runs(Time64(TimeUnit::Nanosecond)),
        runs(ListView(item(LargeUtf8))),
        runs(runs(runs(Null))),
        runs(runs(Date32)),
        runs(dictionary(Utf8View)),
        dictionary(runs(runs(Binary))),
        List(item(runs(dictionary(Interval(arrow_schema::IntervalUnit::DayTime))))),
    ]);
    all.retain(|of| can_cast_types(&DataType::List(item(of.clone())), &TEXTS[0]) && !has_unions(of));
    all
}

fn has_unions(data_type: &DataType) -> bool {
    data_type.to_string().contains("Union")
}

#[test]
fn lists_of_everything_are_printed_as_arrow_prints_them() {
    let targets = devices();
    for (i, of) in items().into_iter().enumerate() {
        for (j, layout) in LAYOUTS.iter().enumerate() {
            for (k, to) in TEXTS.iter().enumerate() {
                let sample = Sample {
                    data_type: layout(item(of.clone())),
                    len: if (i + j + k) % 3 == 0 { 130 } else { LENGTHS[(i + j + k) % 8].min(70) },
                    nulls: Nulls::ALL[(i + 2 * j + k) % 5],
                    offset: OFFSETS[(i + j) % OFFSETS.len()].min(80),
                    seed: (100 * i + 10 * j + k) as u64,
                };
                for target in &targets {
                    assert_alike(target, &sample.array(), to, (i + k) % 2 == 0);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn lists_of_anything_are_printed_as_arrow_prints_them(
        of in data_type(),
        (layout, to) in (proptest::sample::select(LAYOUTS.to_vec()), proptest::sample::select(TEXTS.to_vec())),
        template in sample_of(Just(DataType::Null), 60),
        safe in any::<bool>(),
    ) {
        let data_type = layout(item(of));
        if can_cast_types(&data_type, &to) && !has_unions(&data_type) {
            let values = Sample { data_type, ..template }.array();
            for target in &devices() {
                assert_alike(target, &values, &to, safe);
            }
        }
    }
}

/// Lists inside other arrays that are cast, and text that is cast on to another type.
#[test]
fn lists_are_printed_wherever_they_are() {
    use DataType::*;
    let numbers = || List(item(Int32));
    let pairs = [
        (dictionary(numbers()), Utf8),
        (runs(LargeListView(item(Utf8))), LargeUtf8),
        (FixedSizeList(item(numbers()), 1), Utf8View),
        (numbers(), dictionary(Utf8)),
        (ListView(item(Int8)), dictionary(Utf8View)),
        (LargeList(item(Boolean)), runs(Utf8View)),
        (List(item(numbers())), LargeList(item(Utf8))),
        (FixedSizeList(item(ListView(item(Date32))), 3), List(item(LargeUtf8))),
        (Struct(vec![item(numbers())].into()), Struct(vec![item(Utf8)].into())),
    ];
    let targets = devices();
    for (i, (from, to)) in pairs.into_iter().enumerate() {
        assert!(can_cast_types(&from, &to), "{from} to {to}");
        for nulls in [Nulls::None, Nulls::Some] {
            let sample = Sample { data_type: from.clone(), len: 90, nulls, offset: 5, seed: i as u64 };
            for target in &targets {
                assert_alike(target, &sample.array(), &to, true);
                assert_alike(target, &sample.array(), &to, false);
            }
        }
    }
}

/// The expected text of nulls over bytes, of bytes, of lists in lists, and of values without text.
#[test]
fn what_is_printed_is_this() {
    let three = |items: ArrayRef| -> ArrayRef {
        let offsets = OffsetBuffer::new(vec![0, 2, 2, 3, 3].into());
        let valid = NullBuffer::from(vec![true, true, true, false]);
        let field = item(items.data_type().clone());
        Arc::new(ListArray::new(field, offsets, items, Some(valid)))
    };
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), Some(i32::MIN), None]));
    let hidden = StringArray::new(
        OffsetBuffer::new(vec![0, 2, 6, 9].into()),
        "abjunkxyz".as_bytes().into(),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), None, Some(7)]));
    let cases: [(ArrayRef, [&str; 3]); 5] = [
        (numbers.clone(), ["[-1, ]", "[]", "[7]"]),
        (Arc::new(hidden), ["[ab, ]", "[]", "[xyz]"]),
        (Arc::new(BinaryArray::from_vec(vec![&[0, 255], &[], b"az"])), ["[00ff, ]", "[]", "[617a]"]),
        (three(numbers).slice(0, 3), ["[[-1, ], []]", "[]", "[[7]]"]),
        (
            dates,
            [
                "[1970-01-01, ERROR: Cast error: Failed to convert -2147483648 to temporal for Date32]",
                "[]",
                "[]",
            ],
        ),
    ];
    for (items, texts) in cases {
        let expected: Vec<_> = texts.into_iter().map(Some).chain([None]).collect();
        for target in &devices() {
            for safe in [true, false] {
                let ours =
                    cast(&target.import(&three(items.clone())), &TEXTS[0], &options(safe), &target.stream);
                let ours = target.export(&ours.wait().unwrap());
                assert_eq!(
                    ours.as_any().downcast_ref::<StringArray>().unwrap(),
                    &StringArray::from(expected.clone()),
                    "{target:?}"
                );
            }
        }
    }
}

/// A single list of all items, lists of one item, empty lists, and list views that all see the same items: a
/// wave's output begins and ends anywhere.
#[test]
fn long_lists_and_many_are_printed() {
    let items: ArrayRef = Arc::new(
        (0..40_000i64).map(|i| (i % 9 != 3).then(|| i.wrapping_mul(i) >> (i % 30))).collect::<Int64Array>(),
    );
    let list = |ends: Vec<i32>| -> ArrayRef {
        Arc::new(ListArray::new(item(DataType::Int64), OffsetBuffer::new(ends.into()), items.clone(), None))
    };
    let views = |starts: Vec<i32>, sizes: Vec<i32>| -> ArrayRef {
        Arc::new(ListViewArray::new(item(DataType::Int64), starts.into(), sizes.into(), items.clone(), None))
    };
    let all = [
        list(vec![0, 40_000]),
        list(vec![7, 7, 39_990, 39_990]),
        list((0..=40_000).collect()),
        list(vec![5; 9000]),
        views(vec![100; 50], (0..50).map(|i| 97 * i).collect()),
        views((0..3000).rev().collect(), vec![3; 3000]),
    ];
    for target in devices() {
        for (values, to) in all.iter().zip(TEXTS.iter().cycle()) {
            assert_alike(&target, values, to, true);
            assert_alike(&target, &values.slice(values.len() / 3, values.len() / 2), to, true);
        }
    }
}

/// List views that all see the same items, with more text than 32-bit offsets can express: the length is
/// checked before anything is written.
#[test]
fn too_much_text_is_an_error() {
    let items: ArrayRef = Arc::new(Int8Array::from(vec![Some(-100); 50_000]));
    let (rows, count) = (8000, 50_000);
    let field = item(DataType::Int8);
    let views = ListViewArray::new(field, vec![0; rows].into(), vec![count; rows].into(), items, None);
    let views: ArrayRef = Arc::new(views);
    for target in devices().into_iter().filter(|target| target.name != "cpu") {
        let printed = cast(&target.import(&views), &DataType::Utf8, &options(true), &target.stream).wait();
        assert!(matches!(printed, Err(Error::Invalid { .. })), "{printed:?} on {target:?}");
    }
}

/// Local times beyond the last date, for which arrow has no text, and an unknown time zone are errors, even
/// if the lists are empty.
#[test]
fn what_cannot_be_printed_is_an_error() {
    let zoned = |zone: &str, seconds: i64| -> ArrayRef {
        let items = TimestampSecondArray::from(vec![seconds]).with_timezone(zone);
        let field = item(items.data_type().clone());
        let offsets = OffsetBuffer::new(vec![0, 1].into());
        Arc::new(ListArray::new(field, offsets, Arc::new(items), None))
    };
    let last = 8_210_266_876_799;
    for target in &devices() {
        for (zone, seconds) in [("+02:00", last), ("+02:00", last + 1), ("-02:00", last), ("Nowhere/Else", 0)]
        {
            let values = zoned(zone, seconds);
            // arrow-rs panics on such a time.
            let theirs =
                catch_unwind(AssertUnwindSafe(|| cast_with_options(&values, &TEXTS[0], &options(true))));
            match theirs {
                Ok(_) => assert_alike(target, &values, &TEXTS[0], true),
                Err(_) => {
                    let ours = cast(&target.import(&values), &TEXTS[0], &options(true), &target.stream);
                    assert!(matches!(ours.wait(), Err(Error::Arrow { .. })), "{zone} on {target:?}");
                }
            }
        }
        assert_alike(target, &zoned("Nowhere/Else", 0).slice(0, 0), &TEXTS[1], false);
    }
}

/// Unchecked offsets, of the lists and of the text in them: only those that rows use matter.
#[test]
fn what_lies_is_an_error_where_it_is_seen() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "bc", "d", "e"]));
    let field = item(DataType::Utf8);
    let offsets = OffsetBuffer::new(vec![0, 1, 2, 4].into());
    let lists: ArrayRef = Arc::new(ListArray::new(field, offsets, texts.clone(), None));
    let raw =
        |offsets: &[i32]| -> Vec<u8> { offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect() };
    for target in devices().into_iter().filter(|target| target.name != "cpu") {
        let printed =
            |lists: &bowstring::DeviceArray, to| cast(lists, to, &options(true), &target.stream).wait();
        for to in &TEXTS {
            for lie in [[0, 1, 9, 4], [0, 2, 1, 4], [-1, 1, 2, 4], [0, 1, 2, i32::MAX]] {
                let lists = target.forged(&lists, &raw(&lie));
                let answer = printed(&lists, to);
                assert!(matches!(answer, Err(Error::OutOfSpec { .. })), "{lie:?}: {answer:?}");
            }
            for lie in [[0, 1, 3, 2, 5], [0, 1, 3, 4, 6], [0, 1, 3, -4, 5], [0, 1, 3, i32::MAX, 5]] {
                let mut parts = target.import(&lists).into_parts();
                parts.children[0] = target.forged(&texts, &raw(&lie));
                let lists = bowstring::DeviceArray::try_new(parts).unwrap();
                let answer = printed(&lists, to);
                assert!(matches!(answer, Err(Error::OutOfSpec { .. })), "{lie:?}: {answer:?}");
                let seen = target.export(&printed(&lists.slice(0, 2).unwrap(), to).unwrap());
                assert_eq!(
                    rows(&seen),
                    rows(
                        &cast_with_options(
                            &["[a]", "[bc]"].map(Some).into_iter().collect::<StringArray>(),
                            to,
                            &options(true)
                        )
                        .unwrap()
                    )
                );
            }
        }
    }
}

/// The host waits once for the items' places, once for their text, and once for that of the lists; for text
/// items, twice in total.
#[test]
fn the_host_waits_no_more_than_is_said() {
    let sample = |of: DataType| {
        Sample { data_type: DataType::List(item(of)), len: 200, nulls: Nulls::Some, offset: 3, seed: 1 }
            .array()
    };
    for target in devices().into_iter().filter(|target| target.name != "cpu") {
        for (of, most) in [(DataType::Utf8, 2), (DataType::Binary, 2), (DataType::Int32, 3)] {
            let values = target.import(&sample(of.clone()));
            let before = target.stream.device().host_synchronisations();
            drop(cast(&values, &TEXTS[0], &options(false), &target.stream).wait().unwrap());
            let waits = target.stream.device().host_synchronisations() - before;
            assert!(waits <= most, "{of}: {waits} on {target:?}");
        }
    }
}

/// Lists of unions, and custom formats.
#[test]
fn what_devices_do_not_print_they_say() {
    let union = types().into_iter().find(|of| matches!(of, DataType::Union(..))).unwrap();
    let chosen =
        CastOptions { format_options: FormatOptions::new().with_null("nothing"), ..CastOptions::default() };
    for target in devices().into_iter().filter(|target| target.name != "cpu") {
        for (of, options) in [(union.clone(), options(true)), (DataType::Int32, chosen.clone())] {
            let sample = Sample {
                data_type: DataType::List(item(dictionary(of))),
                len: 5,
                nulls: Nulls::Some,
                offset: 0,
                seed: 3,
            };
            let printed = cast(&target.import(&sample.array()), &TEXTS[0], &options, &target.stream).wait();
            assert!(matches!(printed, Err(Error::Unsupported { .. })), "{printed:?}");
        }
    }
}
