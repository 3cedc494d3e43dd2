//! Tests fields inside nested types that are not nullable: on every device a cast leaves no nulls there
//! except those hidden by null rows, or it fails.

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeListArray, Int8Array, ListArray, StructArray,
    UInt32Array, UInt64Array, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Fields};
use bowstring::array::Place;
use bowstring::compute::{SortOptions, cast, group, partition_by_hash, sort_to_indices};
use bowstring::exchange::{to_arrow, validate};
use bowstring::{DeviceArray, Error};

use crate::support::*;

fn options(safe: bool) -> CastOptions<'static> {
    CastOptions { safe, ..CastOptions::default() }
}

fn item(of: DataType, nullable: bool) -> FieldRef {
    Arc::new(Field::new_list_field(of, nullable))
}

fn list(of: DataType, nullable: bool) -> DataType {
    DataType::List(item(of, nullable))
}

fn large_list(of: DataType, nullable: bool) -> DataType {
    DataType::LargeList(item(of, nullable))
}

fn fixed(of: DataType, size: i32, nullable: bool) -> DataType {
    DataType::FixedSizeList(item(of, nullable), size)
}

fn fields(of: [DataType; 2], nullable: bool) -> DataType {
    let names = ["a", "b"].into_iter().zip(of);
    DataType::Struct(names.map(|(name, of)| Field::new(name, of, nullable)).collect())
}

fn map(of: DataType, nullable: bool) -> DataType {
    let entries = [Field::new("keys", DataType::Utf8, false), Field::new("values", of, nullable)];
    let entries = Field::new("entries", DataType::Struct(Fields::from(entries.to_vec())), false);
    DataType::Map(Arc::new(entries), false)
}

/// Pairs of types: fields that are nullable in the first are not in the second.
fn pairs() -> Vec<(DataType, DataType)> {
    use DataType::*;
    vec![
        (list(Int8, true), list(Int8, false)),
        (list(Int8, true), large_list(Int8, false)),
        (large_list(Int8, true), list(Int64, false)),
        (list(Int32, true), list(Int8, false)),
        (list(Utf8, true), list(LargeUtf8, false)),
        (list(Null, true), large_list(Null, false)),
        (list(fields([Int8, Utf8], true), true), list(fields([Int16, LargeUtf8], false), true)),
        (list(list(Int8, true), true), large_list(list(Int8, false), false)),
        (fixed(Int8, 1, true), fixed(Int8, 1, false)),
        (fixed(Int8, 3, true), fixed(Int64, 3, false)),
        (fixed(Int8, 3, true), fixed(Int8, 3, false)),
        (fixed(Null, 2, true), fixed(Null, 2, false)),
        (fixed(Int8, 2, true), list(Int8, false)),
        (fixed(fixed(Int8, 2, true), 2, true), large_list(fixed(Int8, 2, false), false)),
        (fixed(fields([Int8, Int8], true), 2, true), fixed(fields([Int8, Int16], false), 2, false)),
        (fields([Int8, Utf8], true), fields([Int64, LargeUtf8], false)),
        (fields([Int8, Null], true), fields([Int64, Null], false)),
        (fields([Int32, fixed(Int8, 2, true)], true), fields([Int8, fixed(Int8, 2, false)], false)),
        (map(Int8, true), map(Int8, false)),
        (map(Int8, true), map(Int64, false)),
        (Int8, list(Int8, false)),
        (Int8, large_list(Int64, false)),
        (Int8, fixed(Int64, 1, false)),
    ]
}

/// Rows of a type, with several kinds of nulls. In the last kind only rows are null, and they hide nulls if
/// the type can hide any.
fn rows_of(of: &DataType, kind: usize, offset: usize, len: usize, rng: &mut Random) -> ArrayRef {
    let all = |nulls, rng: &mut Random| array(of, offset + len, nulls, rng);
    let whole = match Nulls::ALL.get(kind) {
        Some(nulls) => all(*nulls, rng),
        None => {
            let plain = all(Nulls::None, rng);
            let at = (0..plain.len() as u32).map(|i| (rng.below(3) > 0).then_some(i));
            arrow_select::take::take(&plain, &UInt32Array::from_iter(at), None).unwrap()
        }
    };
    sliced(&whole, offset, len)
}

#[test]
fn nulls_that_show_are_errors_on_every_device() {
    for (i, (from, to)) in pairs().into_iter().enumerate() {
        let mut right = 0;
        for case in 0..24 {
            let (kind, (offset, len)) = (case % 6, [(0, 70), (5, 3), (37, 200), (1, 1)][case / 6]);
            let values = rows_of(&from, kind, offset, len, &mut Random::new((100 * i + case) as u64));
            for safe in [true, false] {
                // arrow-rs does not check this when it makes lists of lists of fixed size.
                let theirs = cast_with_options(&values, &to, &options(safe)).and_then(|theirs| {
                    theirs.to_data().validate_full()?;
                    Ok(theirs)
                });
                right += usize::from(theirs.is_ok() && len > 3);
                for target in devices() {
                    let context = format!("{from} to {to}, safe {safe}, kind {kind}, {offset}+{len}");
                    let ours = cast(&target.import(&values), &to, &options(safe), &target.stream)
                        .wait()
                        .and_then(|ours| to_arrow(&target.stream.download(&ours)?).map(|_| ours));
                    match (ours, &theirs) {
                        (Ok(ours), Ok(theirs)) => target.assert_same(&ours, theirs, &context),
                        (Err(Error::Cast { .. } | Error::Arrow { .. }), Err(_)) => {}
                        (ours, theirs) => panic!("{context}, on {target:?}: {ours:?}, arrow-rs {theirs:?}"),
                    }
                }
            }
        }
        // If values fit, and some items are not null or are hidden, the cases must contain both valid and
        // invalid arrays.
        let fits = !from.to_string().contains("Int32") && from != list(DataType::Null, true);
        assert!((usize::from(fits)..36).contains(&right), "{from} to {to}: {right} of 36 are right");
    }
}

/// A case that the fuzzer found: nulls hidden by a null list become visible in the result.
#[test]
fn no_unsound_lists_come_of_lists_of_fixed_size() {
    let empty = |rows| -> ArrayRef {
        let none = Arc::new(Int8Array::from(Vec::<i8>::new()));
        let hidden = NullBuffer::from_iter((0..rows).map(|i| i >= rows / 2));
        Arc::new(FixedSizeListArray::new(item(DataType::Int8, true), 0, none, Some(hidden)))
    };
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![None, None, Some(3), Some(4)]));
    for items in [empty(4), numbers] {
        let of = items.data_type().clone();
        let nulls = Some(NullBuffer::from(vec![false, true]));
        let values: ArrayRef =
            Arc::new(FixedSizeListArray::new(item(of.clone(), false), 2, items, nulls.clone()));
        let inside: ArrayRef = Arc::new(StructArray::new(
            vec![Field::new("a", values.data_type().clone(), true)].into(),
            vec![values.clone()],
            None,
        ));
        for target in devices() {
            for to in [list(of.clone(), false), large_list(of.clone(), false)] {
                let into = DataType::Struct(vec![Field::new("a", to.clone(), true)].into());
                for (values, to) in [(&values, &to), (&inside, &into)] {
                    let casted = cast(&target.import(values), to, &options(true), &target.stream).wait();
                    let there = casted.and_then(|casted| target.stream.download(&casted));
                    assert!(matches!(there, Err(Error::Arrow { .. })), "{to} on {target:?}: {there:?}");
                }
            }
            // Nullable items need no error.
            let to = large_list(of.clone(), true);
            let casted = cast(&target.import(&values), &to, &options(true), &target.stream).wait().unwrap();
            validate(&target.stream.download(&casted).unwrap()).unwrap();
        }
    }
}

/// Items that no row uses are not checked.
#[test]
fn nulls_outside_of_all_rows_are_nobodys() {
    let lists = array(&list(DataType::Int8, true), 60, Nulls::None, &mut Random::new(1));
    let nulls = array(&list(DataType::Int8, true), 60, Nulls::Some, &mut Random::new(2));
    let parts: [&dyn arrow_array::Array; 3] = [&nulls, &lists, &nulls];
    let both = arrow_select::concat::concat(&parts).unwrap();
    let seen = sliced(&both, 60, 60);
    for target in devices() {
        for to in [DataType::Int8, DataType::Int64] {
            let to = large_list(to, false);
            let ours = cast(&target.import(&seen), &to, &options(true), &target.stream).wait().unwrap();
            target.assert_same(&ours, &cast_with_options(&seen, &to, &options(true)).unwrap(), &to);
        }
    }
}

/// A case that the fuzzer found: if outer lists get a fixed size, arrow-cast checks the items that null inner
/// lists hide. Devices do not move such items, and so agree with arrow-cast's result for the same rows
/// without them.
#[test]
fn items_of_null_inner_lists_fail_no_cast_on_devices() {
    let offsets = |of: &[i32]| OffsetBuffer::new(of.to_vec().into());
    let numbers = Arc::new(UInt64Array::from(vec![u64::MAX, 1, 2]));
    let nulls = Some(NullBuffer::from(vec![false, true]));
    let inner = ListArray::new(item(DataType::UInt64, false), offsets(&[0, 1, 3]), numbers, nulls);
    let item_of_outer = item(inner.data_type().clone(), true);
    let rows: ArrayRef = Arc::new(ListArray::new(item_of_outer, offsets(&[0, 2]), Arc::new(inner), None));
    let to = fixed(list(DataType::Int64, false), 2, true);
    let fewer = make_array(hiding_no_items(&rows.to_data()));
    let expected = cast_with_options(&fewer, &to, &options(true)).unwrap();
    cast_with_options(&rows, &to, &options(true)).unwrap_err();
    for target in devices() {
        let ours = cast(&target.import(&rows), &to, &options(true), &target.stream).wait();
        match (ours, target.stream.device().place() == Place::CPU) {
            (ours, true) => assert!(matches!(ours, Err(Error::Arrow { .. })), "{ours:?}"),
            (ours, false) => target.assert_same(&ours.unwrap(), &expected, &to),
        }
    }
}

/// Lists of a fixed size have items below their null rows too, which may be null although no item of a list
/// that is there may be. Operations that read such lists as others do not see those items.
#[test]
fn null_lists_of_a_fixed_size_may_have_null_items() {
    let numbers: ArrayRef = Arc::new(Int8Array::from(vec![Some(2), Some(1), None, None, Some(1), Some(5)]));
    let keys: ArrayRef = Arc::new(
        numbers
            .as_any()
            .downcast_ref::<Int8Array>()
            .unwrap()
            .iter()
            .map(|x| x.map(|x| if x > 1 { "more" } else { "one" }))
            .collect::<DictionaryArray<Int8Type>>(),
    );
    for items in [numbers, keys] {
        let valid = Some(NullBuffer::from(vec![true, false, true]));
        let of = |nullable: bool| -> ArrayRef {
            let item = item(items.data_type().clone(), nullable);
            Arc::new(FixedSizeListArray::new(item, 2, items.clone(), valid.clone()))
        };
        for target in &devices() {
            let [ours, same] = [of(false), of(true)].map(|values| target.import(&values));
            let order = |values: &DeviceArray| {
                let order = sort_to_indices(values, SortOptions::default(), None, &target.stream);
                rows(&target.export(&order.wait().unwrap()))
            };
            assert_eq!(order(&ours), order(&same), "{target:?}");
            let hashed = |values: &DeviceArray| {
                let parts = partition_by_hash(std::slice::from_ref(values), 16, &target.stream);
                let parts = parts.wait().unwrap();
                (parts.starts().to_vec(), rows(&target.export(parts.order())))
            };
            assert_eq!(hashed(&ours), hashed(&same), "{target:?}");
            let groups = |values: &DeviceArray| {
                let groups = group(std::slice::from_ref(values), &target.stream).wait().unwrap();
                rows(&target.export(groups.ids()))
            };
            assert_eq!(groups(&ours), groups(&same), "{target:?}");
        }
    }
}
