//! Tests how devices encode and decode, beyond equal rows: dictionaries in arrow-rs' order, runs as on the
//! CPU, too narrow key types, and the number of host synchronisations.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, is_null, take};
use bowstring::exchange::to_arrow;
use bowstring::{DeviceArray, Error};

use crate::support::*;

fn dictionary(key: DataType, of: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(of))
}

fn runs(of: DataType) -> DataType {
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    DataType::RunEndEncoded(ends, Arc::new(Field::new("values", of, true)))
}

/// Downloads an array as arrow-rs' type.
fn down(target: &Target, array: &DeviceArray) -> ArrayRef {
    to_arrow(&target.stream.download(array).unwrap()).unwrap()
}

/// Numbers with many duplicates, also as text.
fn samples(rows: usize, distinct: usize) -> Vec<ArrayRef> {
    let mut random = Random::new(rows as u64);
    let numbers: Vec<Option<i64>> =
        (0..rows).map(|_| (random.below(7) > 0).then(|| random.below(distinct) as i64)).collect();
    let text = |n: &Option<i64>| n.map(|n| format!("the {n}th text, which no view holds"));
    let text = StringArray::from_iter(numbers.iter().map(text));
    let numbers: ArrayRef = Arc::new(Int64Array::from(numbers));
    [DataType::Int8, DataType::Int16, DataType::Decimal128(20, 2), DataType::Decimal256(20, 2)]
        .iter()
        .map(|to| arrow_cast::cast(&numbers, to).unwrap())
        .chain([numbers.clone(), arrow_cast::cast(&text, &DataType::Utf8View).unwrap(), Arc::new(text)])
        .collect()
}

#[test]
fn dictionaries_have_their_values_in_the_order_in_which_they_are_met() {
    for target in devices() {
        for (rows, distinct) in [(1, 1), (1000, 5), (3000, 100_000), (5000, 1)] {
            for values in samples(rows, distinct) {
                let to = dictionary(DataType::UInt16, values.data_type().clone());
                let theirs = arrow_cast::cast(&values, &to).unwrap();
                let ours = cast(&target.import(&values), &to, &CastOptions::default(), &target.stream);
                let ours = down(&target, &ours.wait().unwrap());
                assert!(ours == theirs, "{to}, {distinct} of {rows} rows, on {target:?}");
            }
        }
    }
}

#[test]
fn runs_are_those_of_rows_that_are_alike() {
    for target in devices() {
        for values in samples(2000, 2) {
            let to = runs(values.data_type().clone());
            let theirs = arrow_cast::cast(&values, &to).unwrap();
            let ours = cast(&target.import(&values), &to, &CastOptions::default(), &target.stream);
            let ours = down(&target, &ours.wait().unwrap());
            let of_runs =
                |array: &ArrayRef| array.as_any().downcast_ref::<RunArray<Int32Type>>().unwrap().clone();
            let (ours, theirs) = (of_runs(&ours), of_runs(&theirs));
            assert_eq!(ours.run_ends().values(), theirs.run_ends().values(), "{to} on {target:?}");
            assert_eq!(ours.values(), theirs.values(), "{to} on {target:?}");
        }
    }
}

#[test]
fn keys_that_do_not_tell_values_apart_are_an_error() {
    let rows = |rows: i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(0..rows)) };
    for target in devices() {
        for (values, key, good) in [(128, DataType::Int8, true), (129, DataType::Int8, false)] {
            let to = dictionary(key, DataType::Int32);
            for safe in [true, false] {
                let options = CastOptions { safe, ..CastOptions::default() };
                let encoded = cast(&target.import(&rows(values)), &to, &options, &target.stream).wait();
                match encoded {
                    Ok(encoded) if good => assert_eq!(encoded.len(), 128),
                    Err(Error::Arrow { .. }) if !good => {}
                    other => panic!("{values} values, on {target:?}: {other:?}"),
                }
            }
        }
    }
}

/// If values outnumber keys, or have no text, even a safe cast fails, but only because of items that some row
/// has.
#[test]
fn items_that_no_row_sees_fail_no_safe_cast() {
    let item = |of: &DataType| Arc::new(Field::new_list_field(of.clone(), true));
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..900));
    let nowhere = |n| if (300..310).contains(&n) { n } else { i64::MAX };
    let days: ArrayRef = Arc::new(Date64Array::from_iter_values((0..900).map(nowhere)));
    let lists = |items: &ArrayRef, rows: &[usize]| -> Vec<ArrayRef> {
        let lists = ListArray::new(
            item(items.data_type()),
            OffsetBuffer::from_lengths(rows.iter().copied()),
            items.clone(),
            None,
        );
        let lists: ArrayRef = Arc::new(lists);
        let views = DataType::ListView(item(items.data_type()));
        vec![arrow_cast::cast(&lists, &views).unwrap(), lists]
    };
    let few = dictionary(DataType::Int8, DataType::Int32);
    let inside = DataType::Struct(vec![Field::new("few", few.clone(), true)].into());
    let ones: ArrayRef = Arc::new(StructArray::new(
        vec![Field::new("few", DataType::Int32, true)].into(),
        vec![numbers.clone()],
        None,
    ));
    for (items, to) in [(&numbers, &few), (&ones, &inside), (&days, &DataType::Utf8)] {
        let seen = lists(&items.slice(300, 10), &[4, 6]);
        for (lists, seen) in lists(items, &[300, 4, 6, 590]).iter().zip(seen) {
            for to in [DataType::List(item(to)), DataType::LargeListView(item(to))] {
                let theirs = arrow_cast::cast(&seen, &to).unwrap();
                for target in devices() {
                    let ours = target.import(lists).slice(1, 2).unwrap();
                    let ours = cast(&ours, &to, &CastOptions::default(), &target.stream).wait();
                    let context = format!("{} to {to}", lists.data_type());
                    target.assert_same(&ours.expect(&context), &theirs, &context);
                }
            }
        }
    }
}

/// Casting a dictionary casts all its values, whether rows use them or not, also in lists without rows.
#[test]
fn values_that_no_row_has_fail_a_strict_cast() {
    let words: ArrayRef = Arc::new(StringArray::from(vec!["7", "seven"]));
    let keys = Int8Array::from(vec![0]);
    let items: ArrayRef = Arc::new(DictionaryArray::new(keys, words));
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let lists: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1]), items, None));
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let item = Arc::new(Field::new_list_field(dictionary(DataType::Int8, DataType::Int32), true));
    for to in [
        DataType::LargeList(item.clone()),
        DataType::ListView(item.clone()),
        DataType::FixedSizeList(item, 1),
    ] {
        for rows in [1, 0] {
            arrow_cast::cast_with_options(&lists.slice(0, rows), &to, &strict).unwrap_err();
            for target in devices() {
                let ours =
                    cast(&target.import(&lists).slice(0, rows).unwrap(), &to, &strict, &target.stream).wait();
                let ours = ours.and_then(|ours| to_arrow(&target.stream.download(&ours)?));
                assert!(ours.is_err(), "{rows} rows to {to} on {target:?}: {ours:?}");
            }
        }
    }
}

/// A filter uses nothing that it has read about the values of runs if it keeps all runs, or none. That must
/// not shift the words of other columns.
#[test]
fn a_filter_of_several_runs_may_keep_each_run_of_one() {
    let rows = 400;
    let of = |run: i32| -> ArrayRef {
        let values = Int64Array::from_iter((0..rows / run).map(|i| (i % 3 > 0).then_some(i64::from(i))));
        let ends = Int32Array::from_iter_values((1..=rows / run).map(|i| i * run));
        Arc::new(RunArray::<Int32Type>::try_new(&ends, &values).unwrap())
    };
    let columns = [("a", of(4), true), ("b", of(1), true), ("c", of(2), true), ("d", of(400), true)];
    let columns = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let columns: ArrayRef = Arc::new(StructArray::from(columns));
    for every in [4, 2, 3] {
        let keep = BooleanArray::from_iter((0..rows).map(|row| Some(row % every == 0)));
        let theirs = arrow_select::filter::filter(&columns, &keep).unwrap();
        let keep: ArrayRef = Arc::new(keep);
        for target in devices() {
            let ours =
                filter(&target.import(&columns), &target.import(&keep), &target.stream).wait().unwrap();
            target.assert_same(&ours, &theirs, &format!("every {every}th row"));
        }
    }
}

/// A pair of types that arrow-rs refuses for any values is refused for an empty array, too.
#[test]
fn what_is_refused_is_refused_of_no_items() {
    let item = |of: DataType| Arc::new(Field::new_list_field(of, true));
    let twice = dictionary(DataType::UInt16, dictionary(DataType::Int32, DataType::Utf8));
    let none = new_empty_array(&DataType::Int32);
    let field = item(DataType::Int32);
    let empty: ArrayRef =
        Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([0, 0]), none.clone(), None));
    for values in [empty.slice(0, 0), empty, none] {
        let to = match values.data_type() {
            DataType::Int32 => twice.clone(),
            _ => DataType::LargeListView(item(twice.clone())),
        };
        let theirs = arrow_cast::cast(&values, &to).unwrap_err().to_string();
        for target in devices() {
            let ours = cast(&target.import(&values), &to, &CastOptions::default(), &target.stream).wait();
            let Err(Error::Arrow { problem, .. }) = ours else { panic!("{to} on {target:?}: {ours:?}") };
            assert_eq!(problem, theirs, "{to} on {target:?}");
        }
    }
}

/// A filter of runs synchronises once, like any other filter. A take of runs, or of a dense union's members,
/// synchronises for their number, and then as the parts do. Finding null rows needs no synchronisation.
#[test]
fn the_host_waits_no_more_than_is_said() {
    let numbers: ArrayRef = samples(500, 2).remove(4);
    let encoded = arrow_cast::cast(&numbers, &runs(DataType::Int64)).unwrap();
    let of = types().into_iter().find(|of| matches!(of, DataType::Union(_, arrow_schema::UnionMode::Dense)));
    let union = array(&of.unwrap(), 500, Nulls::Some, &mut Random::new(5));
    let mask: ArrayRef = Arc::new(BooleanArray::from_iter((0..500).map(|row| Some(row % 3 == 0))));
    let indices: ArrayRef = Arc::new(Int32Array::from_iter_values((0..300).rev()));
    for target in devices().into_iter().filter(|target| target.name != "cpu") {
        let waits = || target.stream.device().host_synchronisations();
        let (runs, union) = (target.import(&encoded), target.import(&union));
        let (mask, indices) = (target.import(&mask), target.import(&indices));
        let counted = |what: &str, most: u64, run: &dyn Fn()| {
            let before = waits();
            run();
            assert!(waits() - before <= most, "{what}: {} on {target:?}", waits() - before);
        };
        let by = TakeOptions::default();
        counted("filter of runs", 1, &|| drop(filter(&runs, &mask, &target.stream).wait().unwrap()));
        counted("take of runs", 1, &|| drop(take(&runs, &indices, &by, &target.stream).wait().unwrap()));
        // A union's text needs one more synchronisation.
        counted("take of a union", 2, &|| drop(take(&union, &indices, &by, &target.stream).wait().unwrap()));
        counted("nulls of runs", 0, &|| drop(is_null(&runs, &target.stream).wait().unwrap()));
        counted("nulls of a union", 0, &|| drop(is_null(&union, &target.stream).wait().unwrap()));
        let to = dictionary(DataType::Int32, DataType::Int32);
        let options = CastOptions::default();
        let plain = target.import(&arrow_cast::cast(&numbers, &DataType::Int32).unwrap());
        counted("a dictionary", 1, &|| drop(cast(&plain, &to, &options, &target.stream).wait().unwrap()));
    }
}

/// Rows that no run covers: bounds are checked inside encoded arrays too.
#[test]
fn what_lies_is_an_error_inside_too() {
    let ends: ArrayRef = Arc::new(Int32Array::from(vec![2, 4, 9]));
    let values: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let honest: ArrayRef =
        Arc::new(RunArray::<Int32Type>::try_new(ends.as_any().downcast_ref().unwrap(), &values).unwrap());
    for target in devices().into_iter().filter(|target| target.name != "cpu") {
        for lie in [[2i32, 4, 8], [2, 4, -9], [0, 0, 0]] {
            let bytes: Vec<u8> = lie.iter().flat_map(|end| end.to_le_bytes()).collect();
            let mut parts = target.import(&honest).into_parts();
            parts.children[0] = target.forged(&ends, &bytes);
            let ours = DeviceArray::try_new(parts).unwrap();
            let all: ArrayRef = Arc::new(UInt8Array::from_iter_values(0..9));
            let keep: ArrayRef = Arc::new(BooleanArray::from_iter((0..9).map(|row| Some(row != 1))));
            let results = [
                take(&ours, &target.import(&all), &TakeOptions::default(), &target.stream).wait(),
                filter(&ours, &target.import(&keep), &target.stream).wait(),
                cast(&ours, &DataType::Utf8View, &CastOptions::default(), &target.stream).wait(),
                cast(&ours, &runs(DataType::LargeUtf8), &CastOptions::default(), &target.stream).wait(),
            ];
            for (i, result) in results.into_iter().enumerate() {
                let waited = result.and_then(|array| array.wait());
                assert!(matches!(waited, Err(Error::OutOfSpec { .. })), "{lie:?}, {i}: {waited:?}");
            }
        }
    }
}
