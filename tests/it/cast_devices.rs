//! Tests casts on devices that change the structure of an array: no pair is refused, the number of host
//! synchronisations, and the treatment of bad offsets, views, keys and bytes.

mod bad;

use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use bowstring::array::{Buffer, Place};
use bowstring::compute::cast;
use bowstring::exchange::to_arrow;
use bowstring::{DeviceArray, Error};

use crate::support::*;

fn options(safe: bool) -> CastOptions<'static> {
    CastOptions { safe, ..CastOptions::default() }
}

fn gpus() -> impl Iterator<Item = Target> {
    devices().into_iter().filter(|target| target.stream.device().place() != Place::CPU)
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

fn large_list(of: DataType) -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(of, true)))
}

fn fixed(of: DataType, size: i32) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new_list_field(of, true)), size)
}

fn fields(of: &[(&str, DataType)]) -> DataType {
    DataType::Struct(Fields::from_iter(of.iter().map(|(name, of)| Field::new(*name, of.clone(), true))))
}

fn dictionary(key: DataType, of: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(of))
}

/// Pairs of types that no device may refuse.
fn pairs() -> Vec<(DataType, DataType)> {
    use DataType::*;
    let text = [Utf8, LargeUtf8, Utf8View, Binary, LargeBinary, BinaryView];
    let mut pairs: Vec<_> =
        text.iter().flat_map(|from| text.iter().map(move |to| (from.clone(), to.clone()))).collect();
    pairs.extend(text.iter().map(|to| (dictionary(UInt8, Utf8), to.clone())));
    pairs.extend(text.iter().map(|to| (dictionary(Int64, Binary), to.clone())));
    pairs.extend(text[3..].iter().map(|to| (FixedSizeBinary(7), to.clone())));
    let zoned = |zone: &str| Timestamp(TimeUnit::Second, Some(zone.into()));
    pairs.extend([
        (list(Int64), large_list(Int8)),
        (large_list(Utf8), list(LargeUtf8)),
        (list(Int16), list(Float32)),
        (list(list(Int32)), large_list(large_list(Int64))),
        (large_list(BinaryView), list(Utf8)),
        (fixed(Int32, 3), list(Int64)),
        (fixed(Utf8, 2), fixed(Utf8View, 2)),
        (fixed(Int8, 1), Int64),
        (Utf8, list(LargeUtf8)),
        (Int32, large_list(Int8)),
        (Float64, fixed(Float32, 1)),
        (UInt16, Binary),
        (Int64, LargeBinary),
        (dictionary(Int8, Int64), Int16),
        (dictionary(Int32, Float64), dictionary(UInt8, Float32)),
        (dictionary(Int16, Utf8), dictionary(UInt64, Utf8)),
        (dictionary(Int16, list(Int32)), large_list(Int8)),
        (fields(&[("a", Int64), ("b", Utf8)]), fields(&[("a", Int8), ("b", LargeUtf8)])),
        (fields(&[("a", Int64), ("b", Int8)]), fields(&[("b", Int16), ("a", Int32)])),
        (fields(&[("a", list(Int64))]), fields(&[("z", large_list(UInt8))])),
        (Null, Int32),
        (Null, Utf8),
        (Null, Utf8View),
        (Null, list(Int8)),
        (Null, fields(&[("a", fixed(Boolean, 3))])),
        (Null, dictionary(Int8, Utf8)),
        (zoned("+00:00"), Date32),
        (Date64, zoned("+00:00")),
    ]);
    pairs
}

#[test]
fn these_are_cast_on_every_device() {
    for (seed, (from, to)) in (0..).zip(pairs()) {
        for (offset, len) in [(0, 0), (0, 1), (7, 40), (1, 1500)] {
            let values = array(&from, 1600, Nulls::ALL[seed as usize % 5], &mut Random::new(seed));
            let values = sliced(&values, offset, len);
            for safe in [true, false] {
                let theirs = cast_with_options(&values, &to, &options(safe));
                for target in gpus() {
                    let context = format!("{from} to {to}, safe {safe}, {offset}+{len}");
                    let ours = cast(&target.import(&values), &to, &options(safe), &target.stream)
                        .wait()
                        .and_then(|ours| to_arrow(&target.stream.download(&ours)?).map(|_| ours));
                    match (ours, &theirs) {
                        (Ok(ours), Ok(theirs)) => target.assert_same(&ours, theirs, &context),
                        (Err(Error::Cast { .. }), Err(_)) => {}
                        (ours, theirs) => panic!("{context}: {ours:?}, arrow-rs {theirs:?}"),
                    }
                }
            }
        }
    }
}

/// The number of host synchronisations during a cast.
fn waits(target: &Target, values: &ArrayRef, to: &DataType, safe: bool) -> u64 {
    let ours = target.import(values);
    target.stream.synchronise().unwrap();
    let before = target.stream.device().host_synchronisations();
    let casted = cast(&ours, to, &options(safe), &target.stream).wait().unwrap();
    let after = target.stream.device().host_synchronisations();
    target.assert_same(&casted, &cast_with_options(values, to, &options(safe)).unwrap(), to);
    after - before
}

#[test]
fn the_host_waits_only_for_sizes() {
    use DataType::*;
    let strings: ArrayRef = Arc::new(StringArray::from_iter(
        (0..3000).map(|i| (i % 7 > 0).then(|| "long enough for a view to point to".repeat(i % 3))),
    ));
    let to = |to| arrow_cast::cast(&strings, &to).unwrap();
    let bad: ArrayRef =
        Arc::new(BinaryArray::from_iter((0..900).map(|i| Some([if i == 700 { 0xff } else { 65 }]))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<types::Int64Type, _, _>(
        (0..999).map(|i| Some((0..i % 4).map(Some).collect::<Vec<_>>())),
    ));
    for target in gpus() {
        for (values, into, safe, expected) in [
            (&strings, LargeUtf8, true, 0),
            (&strings, Utf8View, false, 0),
            (&strings, BinaryView, false, 0),
            (&to(LargeUtf8), Binary, true, 0),
            (&to(Utf8View), Utf8, true, 1),
            (&to(Binary), Utf8, false, 0),
            (&to(Binary), Utf8, true, 1),
            (&to(LargeBinary), Utf8View, true, 0),
            (&bad, Utf8, true, 2),
            (&lists, large_list(Int64), false, 0),
            (&lists, large_list(Int32), true, 0),
            (&lists, large_list(Int32), false, 1),
            (&lists, list(list(Int64)), false, 1),
            (&lists, list(list(Int64)), true, 0),
            (&to(dictionary(Int32, Utf8)), Utf8, true, 1),
            (&to(dictionary(Int32, Utf8)), Utf8View, true, 0),
        ] {
            // arrow-rs does not wrap a list in another list.
            if arrow_cast::can_cast_types(values.data_type(), &into) {
                let context = format!("{} to {into}, safe {safe}, {target:?}", values.data_type());
                assert_eq!(waits(&target, values, &into, safe), expected, "{context}");
            }
        }
    }
}

#[test]
fn utc_is_no_way_from_itself() {
    let zoned = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
    let values: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(-1), None, Some(86_400 * 365)]));
    for target in devices() {
        let naive = target.import(&values);
        let cast = |values: &DeviceArray, to: &DataType| {
            cast(values, to, &options(false), &target.stream).wait().unwrap()
        };
        for zone in ["UTC", "Etc/UTC"] {
            let there = cast(&naive, &zoned(zone));
            target.assert_same(
                &cast(&there, &zoned("+00:00")),
                &cast_with_options(&values, &zoned("+00:00"), &options(false)).unwrap(),
                &zone,
            );
            for to in [DataType::Date32, DataType::Time32(TimeUnit::Second), DataType::Date64] {
                let theirs = cast_with_options(&values, &to, &options(false)).unwrap();
                target.assert_same(&cast(&there, &to), &theirs, &zone);
            }
        }
    }
}

/// Times around the days on which clocks change, far ones and nulls, out of zones and into them.
#[test]
fn devices_read_the_clocks_of_zones_as_arrow_does() {
    use TimeUnit::*;
    let mut rng = Random::new(8);
    let changes = [-1_633_273_200, 0, 1_711_846_800, 1_729_989_000, 1_712_412_000, 253_402_300_799_i64];
    let seconds: Vec<Option<i64>> = (0..700)
        .map(|_| {
            let near = changes[rng.below(changes.len())] + rng.below(14_400) as i64 - 7_200;
            (!rng.percent(10.0)).then_some(near)
        })
        .collect();
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(seconds));
    let cast_there = |target: &Target, values: &ArrayRef, to: &DataType, safe: bool| {
        let casted = cast(&target.import(values), to, &options(safe), &target.stream).wait();
        casted.and_then(|casted| casted.wait().map(|()| casted))
    };
    for (unit, zone) in [
        (Second, "Europe/Berlin"),
        (Millisecond, "America/New_York"),
        (Microsecond, "Australia/Lord_Howe"),
        (Nanosecond, "+05:30"),
    ] {
        let (plain, zoned) = (DataType::Timestamp(unit, None), DataType::Timestamp(unit, Some(zone.into())));
        let naive = cast_with_options(&seconds, &plain, &options(true)).unwrap();
        let utc = DataType::Timestamp(unit, Some("+00:00".into()));
        let there = cast_with_options(&naive, &utc, &options(true)).unwrap();
        let there = cast_with_options(&there, &zoned, &options(true)).unwrap();
        let days = cast_with_options(&seconds, &DataType::Date32, &options(true)).unwrap();
        for (values, to) in [
            (&naive, &zoned),
            (&days, &zoned),
            (&there, &plain),
            (&there, &DataType::Date32),
            (&there, &DataType::Time64(Nanosecond)),
            (&there, &DataType::Timestamp(Second, None)),
        ] {
            for safe in [true, false] {
                let theirs = cast_with_options(values, to, &options(safe));
                for target in devices() {
                    let context = format!("{} to {to}, safe {safe}, on {target:?}", values.data_type());
                    match (cast_there(&target, values, to, safe), &theirs) {
                        (Ok(ours), Ok(theirs)) => target.assert_same(&ours, theirs, &context),
                        (Err(_), Err(_)) => {}
                        (ours, theirs) => panic!("{context}: {ours:?}, arrow-cast {theirs:?}"),
                    }
                }
            }
        }
    }
}

/// The first error that a caller who awaits the cast gets.
fn problem(target: &Target, values: &DeviceArray, to: &DataType, safe: bool) -> Option<Error> {
    let casted = cast(values, to, &options(safe), &target.stream).wait();
    casted.and_then(|casted| to_arrow(&target.stream.download(&casted)?)).err()
}

#[test]
fn what_rows_do_not_see_cannot_fail() {
    // The first and last items belong to no row; the items of the null row are cast, as in arrow-rs.
    let items = Int64Array::from(vec![i64::MAX, 1, 2, 3, i64::MAX]);
    let field = Arc::new(Field::new_list_field(DataType::Int64, true));
    let of = |nulls: Option<NullBuffer>| -> ArrayRef {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![1, 2, 2, 4]));
        Arc::new(ListArray::new(field.clone(), offsets, Arc::new(items.clone()), nulls))
    };
    let nulls = NullBuffer::from(vec![true, false, true]);
    for target in gpus() {
        for values in [of(None), of(Some(nulls.clone()))] {
            for to in [list(DataType::Int8), large_list(DataType::Int8)] {
                let casted =
                    cast(&target.import(&values), &to, &options(false), &target.stream).wait().unwrap();
                target.assert_same(&casted, &cast_with_options(&values, &to, &options(false)).unwrap(), &to);
            }
        }
        let seen = sliced(&of(None), 0, 3);
        let wide = ListArray::new(
            field.clone(),
            OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 2, 4])),
            Arc::new(items.clone()),
            None,
        );
        assert!(problem(&target, &target.import(&seen), &list(DataType::Int8), false).is_none());
        let wide: ArrayRef = Arc::new(wide);
        let error = problem(&target, &target.import(&wide), &list(DataType::Int8), false);
        assert!(matches!(error, Some(Error::Cast { row: 0, .. })), "{error:?}");
    }
}

/// A null row of a list view has no items; its offset and size are not read.
#[test]
fn null_rows_of_list_views_may_point_anywhere() {
    for target in gpus() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
        let item = Arc::new(Field::new_list_field(DataType::Int32, true));
        let views = ListViewArray::new(
            item,
            ScalarBuffer::from(vec![2, 0, 0]),
            ScalarBuffer::from(vec![2, 0, 1]),
            values,
            Some(NullBuffer::from(vec![true, false, true])),
        );
        let expected = cast_with_options(&views, &list(DataType::Int64), &options(false)).unwrap();
        let theirs: ArrayRef = Arc::new(views);
        let mut parts = target.import(&theirs).into_parts();
        let far: ArrayRef = Arc::new(Int32Array::from(vec![2, 1_000_000, 0]));
        let many: ArrayRef = Arc::new(Int32Array::from(vec![2, 1000, 1]));
        parts.buffers = [far, many].map(|of| target.import(&of).buffers()[0].clone()).to_vec();
        let views = DeviceArray::try_new(parts).unwrap();
        let casted = cast(&views, &list(DataType::Int64), &options(false), &target.stream).wait().unwrap();
        assert_eq!(casted.children()[0].len(), 3, "{target:?}");
        target.assert_same(&casted, &expected, &"views to lists");
    }
}

/// A cast to a struct with fewer names drops the other fields; with different names it drops all but the
/// first. arrow-cast denies that it can do this, but does it.
#[test]
fn structs_lose_fields() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["4", "5", "6"]));
    let names = Fields::from(vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("c", DataType::Int32, true),
    ]);
    let nulls = Some(NullBuffer::from(vec![true, true, false]));
    let item = Arc::new(Field::new_list_field(DataType::Struct(names.clone()), true));
    let rows = StructArray::new(names, vec![numbers.clone(), texts, numbers], nulls);
    let ends = OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 3]));
    let lists: ArrayRef = Arc::new(ListArray::new(item, ends, Arc::new(rows.clone()), None));
    let rows: ArrayRef = Arc::new(rows);
    use DataType::*;
    let some = [("c", Int64), ("b", Int8)];
    for target in &devices() {
        for (from, to) in [
            (&rows, fields(&some)),
            (&rows, fields(&[("b", LargeUtf8)])),
            (&rows, fields(&[("x", Int64), ("y", Int32)])),
            (&lists, list(fields(&some))),
            (&lists, large_list(fields(&some[..1]))),
        ] {
            let expected = cast_with_options(from, &to, &options(false)).unwrap();
            let casted = cast(&target.import(from), &to, &options(false), &target.stream).wait();
            target.assert_same(&casted.unwrap(), &expected, &to);
        }
        for to in [fields(&[("x", Int64), ("a", list(Int8)), ("c", Int8), ("d", Int8)]), fields(&[])] {
            let refused = cast(&target.import(&rows), &to, &options(false), &target.stream).wait();
            assert!(matches!(refused, Err(Error::Unsupported { .. })), "{to}: {refused:?}");
        }
    }
}

#[test]
fn lists_of_unions_that_lack_items_and_a_null_fail_as_casts_do() {
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
    let members = [(0, Arc::new(Field::new("n", DataType::Int32, false)))].into_iter().collect();
    let union = UnionArray::try_new(members, vec![0; 3].into(), Some(vec![0, 1, 2].into()), vec![numbers]);
    let union = union.unwrap();
    let item = Arc::new(Field::new_list_field(union.data_type().clone(), true));
    let ends = OffsetBuffer::new(ScalarBuffer::from(vec![0, 2, 3]));
    let lists: ArrayRef = Arc::new(ListArray::new(item.clone(), ends, Arc::new(union), None));
    let to = DataType::FixedSizeList(item, 2);
    for target in &devices() {
        let refused = cast(&target.import(&lists), &to, &options(true), &target.stream).wait();
        assert!(matches!(refused, Err(Error::Arrow { operation: "cast", .. })), "{target:?}: {refused:?}");
    }
}

/// Rows at the end that are null need no key.
#[test]
fn structs_have_a_key_for_each_row_but_null_ones_at_the_end() {
    let of = fields(&[("n", DataType::Int32)]);
    for (key, most) in [(DataType::Int8, 128), (DataType::UInt8, 256)] {
        let to = dictionary(key, of.clone());
        for (valid, nulls) in [(most, 0), (most, 1), (most, 300), (most + 1, 0), (most - 1, 70)] {
            let rows = valid + nulls;
            let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..rows));
            let bits = (0..rows).map(|row| row < valid && row != 5).collect::<Vec<_>>();
            let DataType::Struct(names) = of.clone() else { unreachable!() };
            let structs: ArrayRef = Arc::new(StructArray::new(names, vec![numbers], Some(bits.into())));
            let expected = cast_with_options(&structs, &to, &options(true));
            for target in &devices() {
                let casted = cast(&target.import(&structs), &to, &options(true), &target.stream).wait();
                match &expected {
                    Ok(expected) => {
                        target.assert_same(&casted.unwrap(), expected, &format!("{valid} and {nulls}"))
                    }
                    Err(_) => assert!(casted.is_err(), "{valid} and {nulls} on {target:?}"),
                }
            }
        }
    }
}
