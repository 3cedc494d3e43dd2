//! Groups on every device: rows are in a group if arrow-row has the same bytes for them, and groups are
//! numbered in the order of their first rows, whatever the hashes are.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt32Array};
use arrow_row::{RowConverter, SortField};
use arrow_schema::DataType;
use bowstring::DeviceArray;
use bowstring::compute::{JoinTable, filter, group};
use bowstring::internals::{Hashes, set_hashes};

use crate::support::*;

/// The group of each row, and the first row of each group.
fn expected(columns: &[ArrayRef]) -> (Vec<u32>, Vec<u32>) {
    let fields = columns.iter().map(|values| SortField::new(values.data_type().clone())).collect();
    let bytes = RowConverter::new(fields).unwrap().convert_columns(columns).unwrap();
    let (mut groups, mut ids, mut firsts) = (HashMap::new(), vec![], vec![]);
    for (row, bytes) in bytes.iter().enumerate() {
        let id = *groups.entry(bytes.owned()).or_insert_with(|| {
            firsts.push(row as u32);
            firsts.len() as u32 - 1
        });
        ids.push(id);
    }
    (ids, firsts)
}

fn assert_groups(columns: &[ArrayRef], form: Form, offset: usize, context: &str) {
    let len = columns[0].len() - offset;
    let expected = expected(&columns.iter().map(|values| values.slice(offset, len)).collect::<Vec<_>>());
    for target in &devices() {
        let there: Vec<DeviceArray> =
            columns.iter().map(|values| target.import_as(form, values, offset, len)).collect();
        let found = group(&there, &target.stream).wait();
        let found = found.unwrap_or_else(|error| panic!("{context} on {target:?}: {error}"));
        let numbers = |array: &DeviceArray| {
            let array = target.export(array);
            array.as_any().downcast_ref::<UInt32Array>().unwrap().values().to_vec()
        };
        assert_eq!(numbers(found.ids()), expected.0, "{context} on {target:?}");
        assert_eq!(numbers(found.firsts()), expected.1, "{context} on {target:?}");
    }
}

/// Some rows of a type, of which most are equal to others.
fn repeated(of: &DataType, len: usize, distinct: usize, random: &mut Random) -> ArrayRef {
    let nulls = if has_nulls(of) { Nulls::Some } else { Nulls::None };
    let few = array(of, distinct, nulls, random);
    some_of(&few, len, random)
}

#[test]
fn rows_of_every_type_are_grouped() {
    let mut random = Random::new(30);
    for data_type in types_to_launch() {
        for (len, distinct) in [(1, 1), (90, 12), (2500, 700)] {
            let values = repeated(&data_type, len + 9, distinct, &mut random);
            let flags = array(&DataType::Boolean, len + 9, Nulls::Some, &mut random);
            for form in Form::ALL {
                let context = format!("{len} rows of {data_type}, {form:?}");
                assert_groups(std::slice::from_ref(&values), form, 5, &context);
                assert_groups(&[flags.clone(), values.clone()], form, 5, &context);
            }
        }
    }
}

#[test]
fn numbers_of_groups_do_not_depend_on_the_hashes() {
    let mut random = Random::new(31);
    let len = 300;
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(
        (0..len).map(|_| format!("a text of some length {}", random.below(40))),
    ));
    let wide: ArrayRef =
        Arc::new(Int64Array::from_iter((0..len).map(|i| (i % 7 != 0).then_some(i as i64 % 20))));
    for weak_rounds in [1, 3] {
        set_hashes(Hashes { seed: Some(7), weak_rounds });
        for columns in [vec![texts.clone()], vec![wide.clone()], vec![wide.clone(), texts.clone()]] {
            assert_groups(&columns, Form::ALL[0], 3, &format!("{weak_rounds} weak rounds"));
        }
    }
    set_hashes(Hashes::default());
}

#[test]
fn all_rows_may_be_equal_or_different() {
    for len in [1, 64, 5000] {
        let same: ArrayRef = Arc::new(Int64Array::from(vec![3; len]));
        let other: ArrayRef = Arc::new(Int64Array::from_iter_values((0..len as i64).map(|i| i << 32)));
        let null = arrow_array::new_null_array(&DataType::Null, len);
        for columns in [vec![same.clone()], vec![other.clone()], vec![null.clone()], vec![same, null, other]]
        {
            assert_groups(&columns, Form::ALL[0], 0, &format!("{len} rows"));
        }
    }
}

/// Texts around the length up to which the CPU keeps copies of them, which differ in their last byte, in
/// zeros, or in length only.
#[test]
fn short_and_long_texts_are_told_apart() {
    let mut random = Random::new(33);
    let mut text = || match random.below(9) {
        0 => None,
        1 => Some(String::new()),
        2 => Some("\0".repeat(random.below(18))),
        _ => Some(format!("{}{}", "a".repeat(13 + random.below(5)), ["", "b", "c", "\0"][random.below(4)])),
    };
    let texts: Vec<Option<String>> = (0..3000).map(|_| text()).collect();
    let utf8: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    for of in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary] {
        let values = arrow_cast::cast(&utf8, &of).unwrap();
        assert_groups(std::slice::from_ref(&values), Form::ALL[0], 7, &format!("{of}"));
        assert_groups(&[values.clone(), values], Form::ALL[0], 7, &format!("{of}, twice"));
    }
}

/// A filter may leave an array without offsets if it keeps no rows.
#[test]
fn arrays_without_rows_have_no_groups() {
    let mut random = Random::new(34);
    for target in &devices() {
        for data_type in types() {
            let values = target.import(&array(&data_type, 0, Nulls::None, &mut random));
            let mask = target.import(&(Arc::new(BooleanArray::from(Vec::<bool>::new())) as ArrayRef));
            let none = filter(&values, &mask, &target.stream).wait().unwrap();
            let groups = group(std::slice::from_ref(&none), &target.stream).wait().unwrap();
            assert!(groups.is_empty(), "{data_type} on {target:?}");
            let table = JoinTable::new(std::slice::from_ref(&none), false, &target.stream).wait().unwrap();
            let pairs = table.find(&[none], &target.stream).wait().unwrap().pairs(&target.stream).wait();
            assert_eq!(pairs.unwrap().right.len(), 0, "{data_type} on {target:?}");
        }
    }
}
