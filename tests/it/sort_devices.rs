//! Sorts on every device: since equal rows keep their order, all devices give the same
//! rows as the CPU.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, UInt16Array, UInt32Array};
use arrow_schema::DataType;
use bowstring::compute::{
    SortColumn, SortOptions, Ties, lexsort_to_indices, partition, rank, sort_to_indices,
};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{DeviceArray, Stream};

use crate::support::*;

const OPTIONS: [SortOptions; 4] = [
    SortOptions { descending: false, nulls_first: true },
    SortOptions { descending: false, nulls_first: false },
    SortOptions { descending: true, nulls_first: true },
    SortOptions { descending: true, nulls_first: false },
];

/// The rows in order, on the CPU.
fn on_cpu(columns: &[(ArrayRef, SortOptions)], limit: Option<usize>) -> Vec<Value> {
    let arrays: Vec<DeviceArray> = columns.iter().map(|(values, _)| from_arrow(values).unwrap()).collect();
    let by: Vec<SortColumn<'_>> =
        arrays.iter().zip(columns).map(|(values, (_, options))| SortColumn::new(values, *options)).collect();
    rows(&to_arrow(&lexsort_to_indices(&by, limit, &Stream::cpu()).wait().unwrap()).unwrap())
}

#[test]
fn every_type_sorts_as_on_the_cpu() {
    let mut random = Random::new(20);
    for data_type in types_to_launch() {
        for (len, nulls) in [(0, Nulls::Some), (1, Nulls::None), (77, Nulls::Some), (700, Nulls::None)] {
            let nulls = if has_nulls(&data_type) { nulls } else { Nulls::None };
            let longer = array(&data_type, len + 9, nulls, &mut random);
            for (options, limit) in OPTIONS.into_iter().zip([None, Some(0), Some(5), Some(10_000)]) {
                let expected = on_cpu(&[(longer.slice(5, len), options)], limit);
                for target in &devices() {
                    for form in Form::ALL {
                        let context = format!("{len} rows of {data_type}, {options:?}, {form:?}");
                        let values = target.import_as(form, &longer, 5, len);
                        let sorted = sort_to_indices(&values, options, limit, &target.stream).wait();
                        let order = sorted.unwrap_or_else(|error| panic!("{context} on {target:?}: {error}"));
                        assert_same_rows(&rows(&target.export(&order)), &expected, &context);
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_and_groups_are_those_of_the_cpu() {
    let mut random = Random::new(23);
    let cpu = Stream::cpu();
    for data_type in types_to_launch() {
        for (len, options) in [0, 1, 60, 2500, 300].into_iter().zip(OPTIONS.into_iter().cycle()) {
            let few = array(
                &data_type,
                12,
                if has_nulls(&data_type) { Nulls::Some } else { Nulls::None },
                &mut random,
            );
            let many = UInt32Array::from_iter_values((0..len).map(|_| random.below(12) as u32));
            let values = arrow_select::take::take(&few, &many, None).unwrap();
            let flags = array(&DataType::Boolean, len, Nulls::Some, &mut random);
            let here: Vec<DeviceArray> = [&values, &flags].map(|values| from_arrow(values).unwrap()).into();
            let groups = |on: &[DeviceArray], stream: &Stream| partition(on, stream).wait().unwrap();
            let expected =
                [&here[..1], &here].map(|columns| rows(&to_arrow(&groups(columns, &cpu)).unwrap()));
            for target in &devices() {
                let context = format!("{len} rows of {data_type}, {options:?}, on {target:?}");
                let there: Vec<DeviceArray> = [&values, &flags].map(|values| target.import(values)).into();
                for (columns, expected) in [&there[..1], &there].into_iter().zip(&expected) {
                    let found = groups(columns, &target.stream);
                    assert_same_rows(&rows(&target.export(&found)), expected, &context);
                }
                for ties in [Ties::Highest, Ties::Lowest, Ties::Dense] {
                    let expected = to_arrow(&rank(&here[0], options, ties, &cpu).wait().unwrap()).unwrap();
                    let found = rank(&there[0], options, ties, &target.stream).wait().unwrap();
                    assert_same_rows(&rows(&target.export(&found)), &rows(&expected), &context);
                }
            }
        }
    }
}

#[test]
fn columns_settle_the_ties_of_those_before_them() {
    let mut random = Random::new(21);
    for len in [2, 33, 4096, 10_000] {
        let few: Vec<Option<u16>> = (0..len).map(|i| (i % 11 != 0).then(|| random.below(7) as u16)).collect();
        let wide: Vec<i64> = (0..len).map(|_| random.below(50) as i64 * (1 << 35) - (1 << 39)).collect();
        let few: ArrayRef = Arc::new(UInt16Array::from(few));
        let wide: ArrayRef = Arc::new(Int64Array::from(wide));
        let flags = array(&DataType::Boolean, len, Nulls::Some, &mut random);
        let floats = array(&DataType::Float64, len, Nulls::Some, &mut random);
        let columns: Vec<(ArrayRef, SortOptions)> =
            [few, flags, wide, floats].into_iter().zip(OPTIONS).collect();
        let expected = on_cpu(&columns, None);
        for target in &devices() {
            let there: Vec<DeviceArray> = columns.iter().map(|(values, _)| target.import(values)).collect();
            let by: Vec<SortColumn<'_>> = there
                .iter()
                .zip(&columns)
                .map(|(values, (_, options))| SortColumn::new(values, *options))
                .collect();
            let order = lexsort_to_indices(&by, None, &target.stream).wait().unwrap();
            assert_same_rows(
                &rows(&target.export(&order)),
                &expected,
                &format_args!("{len} rows on {target:?}"),
            );
        }
    }
}

/// Texts that are equal for long, end in each other, and have zeros.
#[test]
fn texts_with_equal_beginnings_sort_as_on_the_cpu() {
    let mut random = Random::new(22);
    for len in [2, 40, 3000] {
        let text = |random: &mut Random| {
            let mut text = "a".repeat([0, 6, 7, 8, 14, 40][random.below(6)]);
            text.push_str(["", "\0", "b", "\0\0", "é"][random.below(5)]);
            (random.below(9) != 0).then_some(text)
        };
        let texts: Vec<Option<String>> = (0..len).map(|_| text(&mut random)).collect();
        let texts: ArrayRef = Arc::new(StringArray::from(texts));
        let views = arrow_cast::cast(&texts, &DataType::Utf8View).unwrap();
        let few: ArrayRef = Arc::new(UInt16Array::from_iter_values((0..len).map(|_| random.below(3) as u16)));
        for (options, others) in
            OPTIONS.into_iter().zip([SortOptions::default(), OPTIONS[3], OPTIONS[2], OPTIONS[1]])
        {
            for columns in [
                vec![(texts.clone(), options)],
                vec![(texts.clone(), options), (few.clone(), others)],
                vec![(few.clone(), others), (views.clone(), options), (few.clone(), options)],
                vec![(views.clone(), options), (texts.clone(), others), (few.clone(), options)],
            ] {
                let expected = on_cpu(&columns, None);
                for target in &devices() {
                    let there: Vec<DeviceArray> =
                        columns.iter().map(|(values, _)| target.import(values)).collect();
                    let by: Vec<SortColumn<'_>> = there
                        .iter()
                        .zip(&columns)
                        .map(|(values, (_, options))| SortColumn::new(values, *options))
                        .collect();
                    let order = lexsort_to_indices(&by, None, &target.stream).wait().unwrap();
                    let context = format!("{len} rows on {target:?}, {options:?}, {} columns", columns.len());
                    assert_same_rows(&rows(&target.export(&order)), &expected, &context);
                }
            }
        }
    }
}
