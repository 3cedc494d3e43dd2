//! Window functions, and rows of several arrays: every device gives what a plain evaluator gives.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int64Type};
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::{DataType, Field};
use bowstring::compute::{SortColumn, SortOptions, Windows, interleave, value_counts, zip as zip_rows};
use bowstring::expr::{Options, col, count_all, max, nth, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Stream};

use crate::groups::{batch_on, each, grouped, value};
use crate::support::*;

/// The rows of each part in their order, and the numbers of equal ones among them.
struct Plain {
    parts: Vec<Vec<usize>>,
    key: Vec<OwnedRow>,
}

impl Plain {
    fn new(by: &ArrayRef, order: &[(ArrayRef, SortOptions)]) -> Plain {
        let mut parts = grouped(std::slice::from_ref(by));
        let fields = order
            .iter()
            .map(|(values, options)| SortField::new_with_options(values.data_type().clone(), *options));
        let values: Vec<ArrayRef> = order.iter().map(|(values, _)| values.clone()).collect();
        let converter = RowConverter::new(fields.collect()).unwrap();
        let key: Vec<OwnedRow> =
            converter.convert_columns(&values).unwrap().iter().map(|row| row.owned()).collect();
        parts.iter_mut().for_each(|part| part.sort_by(|a, b| key[*a].cmp(&key[*b])));
        Plain { parts, key }
    }

    /// A value for each row, of its part and its place there.
    fn each<T: Clone>(&self, rows: usize, of: impl Fn(&[usize], usize) -> T) -> Vec<T> {
        let mut all = vec![None; rows];
        for part in &self.parts {
            for (place, row) in part.iter().enumerate() {
                all[*row] = Some(of(part, place));
            }
        }
        all.into_iter().map(Option::unwrap).collect()
    }

    fn numbers(&self, rows: usize, of: impl Fn(&[usize], usize) -> usize) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(self.each(rows, |part, place| of(part, place) as u64)))
    }

    fn rank(&self, part: &[usize], place: usize) -> usize {
        1 + part[..place].iter().filter(|row| self.key[**row] != self.key[part[place]]).count()
    }

    fn dense(&self, part: &[usize], place: usize) -> usize {
        1 + (1..=place).filter(|i| self.key[part[i - 1]] != self.key[part[*i]]).count()
    }
}

#[test]
fn windows_of_the_definition() {
    let mut random = Random::new(70);
    let orders: [&[DataType]; 3] = [&[DataType::Int16], &[DataType::Utf8, DataType::Float64], &[]];
    for (len, distinct) in [(0, 1), (1, 1), (90, 7), (3000, 40)] {
        for of in orders {
            let by = some_of(&array(&DataType::Utf8, distinct, Nulls::Some, &mut random), len, &mut random);
            let order: Vec<(ArrayRef, SortOptions)> = of
                .iter()
                .map(|of| {
                    let few = array(of, 5, Nulls::Some, &mut random);
                    let options =
                        SortOptions { descending: random.below(2) > 0, nulls_first: random.below(2) > 0 };
                    (some_of(&few, len, &mut random), options)
                })
                .collect();
            let nothing: ArrayRef = Arc::new(BooleanArray::from(vec![true; len]));
            let key = if order.is_empty() { vec![(nothing, SortOptions::default())] } else { order.clone() };
            let plain = Plain::new(&by, &key);
            let values = array(&DataType::Utf8View, len, Nulls::Some, &mut random);
            let taken = |of: &dyn Fn(&[usize], usize) -> Option<usize>| {
                let rows = plain.each(len, |part, place| of(part, place).map(|row| row as u32));
                arrow_select::take::take(&values, &UInt32Array::from(rows), None).unwrap()
            };
            let before = |by: i64| {
                taken(&|part, place| {
                    usize::try_from((place as i64).saturating_sub(by)).ok().and_then(|i| part.get(i).copied())
                })
            };
            let numbers = [
                plain.numbers(len, |_, place| place + 1),
                plain.numbers(len, |part, place| plain.rank(part, place)),
                plain.numbers(len, |part, place| plain.dense(part, place)),
            ];
            let lags = [1, -2, 0, i64::MAX, i64::MIN].map(|by| (by, before(by)));
            let nths = [1, 3, 0, u64::MAX].map(|number: u64| {
                let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
                (number, taken(&|part, _| at.and_then(|at| part.get(at).copied())))
            });
            for target in &devices() {
                let context = format!("{len} rows by {of:?} on {target:?}");
                let there: Vec<_> =
                    order.iter().map(|(values, options)| (target.import(values), *options)).collect();
                let by_columns: Vec<_> =
                    there.iter().map(|(values, options)| SortColumn::new(values, *options)).collect();
                let windows = Windows::new(&[target.import(&by)], &by_columns, len, &target.stream);
                let windows = windows.wait().unwrap();
                let made = [windows.row_number(), windows.rank(), windows.dense_rank()];
                for (i, (made, expected)) in made.into_iter().zip(&numbers).enumerate() {
                    let made = made.wait().unwrap_or_else(|error| panic!("{error}: {context}"));
                    target.assert_same(&made, expected, &format_args!("number {i}, {context}"));
                }
                let ours = target.import(&values);
                for (by, expected) in &lags {
                    let made = windows.lag(&ours, *by).wait().unwrap();
                    target.assert_same(&made, expected, &format_args!("lag {by}, {context}"));
                }
                for (number, expected) in &nths {
                    let made = windows.nth_value(&ours, *number).wait().unwrap();
                    target.assert_same(&made, expected, &format_args!("nth {number}, {context}"));
                }
            }
        }
    }
}

#[test]
fn parts_are_aggregated_for_each_row() {
    let mut random = Random::new(71);
    for (len, distinct) in [(0, 1), (200, 9)] {
        let by = some_of(&array(&DataType::Int8, distinct, Nulls::Some, &mut random), len, &mut random);
        let n = array(&DataType::Int64, len, Nulls::Some, &mut random);
        let n = arrow_cast::cast(&arrow_cast::cast(&n, &DataType::Int16).unwrap(), &DataType::Int64).unwrap();
        let groups = grouped(std::slice::from_ref(&by));
        let sums = each(&groups, value::<Int64Type>(&n), |values| values.iter().sum::<i64>());
        let most = each(&groups, value::<Int64Type>(&n), |values| *values.iter().max().unwrap());
        let mut expected: [Vec<Option<i64>>; 3] = [(); 3].map(|()| vec![None; len]);
        for (group, rows) in groups.iter().enumerate() {
            for row in rows {
                expected[0][*row] = sums[group];
                expected[1][*row] = most[group];
                expected[2][*row] = Some(rows.len() as i64);
            }
        }
        for target in &devices() {
            let batch = batch_on(target, &[("n", n.clone())]);
            let windows = Windows::new(&[target.import(&by)], &[], len, &target.stream).wait().unwrap();
            let all = [sum(col("n")), max(col("n")), count_all()];
            let made = windows.aggregate(&batch, all, &Options::default()).wait().unwrap();
            assert_eq!(made.schema().field(0).name(), "sum(n)");
            for (made, expected) in made.columns().iter().zip(&expected) {
                let expected: ArrayRef = Arc::new(Int64Array::from(expected.clone()));
                target.assert_same(made, &expected, &format_args!("{len} rows on {target:?}"));
            }
        }
    }
}

#[test]
fn rows_of_several_arrays_of_every_type() {
    let mut random = Random::new(72);
    for data_type in types() {
        for len in [0, 1, 77] {
            let context = format!("{len} rows of {data_type}");
            let [truthy, falsy] = [(); 2].map(|()| array(&data_type, len, Nulls::Some, &mut random));
            let mask = mask(Mask { percent: 50.0, run: 1, nulls: Nulls::Some }, len, &mut random);
            let theirs = arrow_select::zip::zip(&mask, &truthy, &falsy);
            let picks: Vec<(usize, usize)> = if len == 0 {
                vec![]
            } else {
                (0..50).map(|_| (random.below(3), random.below(len))).collect()
            };
            let parts = [&truthy, &falsy, &truthy];
            let picked = arrow_select::interleave::interleave(&parts.map(|part| &**part), &picks);
            let mask: ArrayRef = Arc::new(mask);
            for target in &devices() {
                let ours = [&truthy, &falsy].map(|side| target.import(side));
                let made = zip_rows(&target.import(&mask), &ours[0], &ours[1], &target.stream).wait();
                if let (Some(made), Ok(theirs)) = (target.answer(made, &context), &theirs) {
                    target.assert_same(&made, theirs, &context);
                }
                let made = interleave(&[&ours[0], &ours[1], &ours[0]], &picks, &target.stream).wait();
                if let (Some(made), Ok(picked)) = (target.answer(made, &context), &picked) {
                    target.assert_same(&made, picked, &context);
                }
            }
        }
    }
}

/// Keys need to number only the values of the rows that are taken.
#[test]
fn rows_of_dictionaries_that_no_keys_could_number_together() {
    let of = |from: usize| -> ArrayRef {
        let texts = (from..from + 100).map(|i| format!("value {i}")).collect::<Vec<_>>();
        Arc::new(texts.iter().map(String::as_str).collect::<DictionaryArray<Int8Type>>())
    };
    let picks = [(0, 0), (1, 0), (1, 99), (0, 0), (0, 50)];
    let structs = |part: ArrayRef| -> ArrayRef {
        let field = Arc::new(Field::new("d", part.data_type().clone(), true));
        Arc::new(StructArray::from(vec![(field, part)]))
    };
    let lists = |part: ArrayRef| -> ArrayRef {
        let item = Arc::new(Field::new_list_field(part.data_type().clone(), true));
        let ends = OffsetBuffer::from_lengths(vec![1; part.len()]);
        Arc::new(ListArray::new(item, ends, part, None))
    };
    let dictionaries = [of(0), of(100)];
    for parts in [dictionaries.clone(), dictionaries.clone().map(structs), dictionaries.map(lists)] {
        let picked = arrow_select::interleave::interleave(&[&parts[0], &parts[1]], &picks).unwrap();
        for target in &devices() {
            let ours = [&parts[0], &parts[1]].map(|part| target.import(part));
            let made = interleave(&[&ours[0], &ours[1]], &picks, &target.stream).wait().unwrap();
            target.assert_same(&made, &picked, &"dictionaries");
            let batches = [&parts[0], &parts[1]].map(|part| batch_on(target, &[("k", part.clone())]));
            let made = interleave(&[&batches[0], &batches[1]], &picks, &target.stream).wait().unwrap();
            target.assert_same(&made.columns()[0], &picked, &"a batch");
        }
    }
}

#[test]
fn values_are_counted() {
    let mut random = Random::new(73);
    for data_type in types() {
        let values = some_of(&array(&data_type, 6, Nulls::Some, &mut random), 100, &mut random);
        let groups = grouped(std::slice::from_ref(&values));
        let firsts = UInt32Array::from_iter_values(groups.iter().map(|rows| rows[0] as u32));
        let distinct = arrow_select::take::take(&values, &firsts, None).unwrap();
        let counts = Int64Array::from_iter_values(groups.iter().map(|rows| rows.len() as i64));
        let counts: ArrayRef = Arc::new(counts);
        for target in &devices() {
            let context = format!("{data_type} on {target:?}");
            let made = value_counts(&target.import(&values), &target.stream).wait().unwrap();
            let names: Vec<&str> = made.schema().fields().iter().map(|field| field.name().as_str()).collect();
            assert_eq!(names, ["values", "counts"]);
            target.assert_same(&made.columns()[0], &distinct, &context);
            target.assert_same(&made.columns()[1], &counts, &context);
        }
    }
}

#[test]
fn wrong_arguments_are_errors() {
    let here = |values: ArrayRef| DeviceArray::try_from(&values).unwrap();
    let (three, two) =
        (here(Arc::new(Int32Array::from(vec![1, 2, 3]))), here(Arc::new(Int32Array::from(vec![1, 2]))));
    let mask = here(Arc::new(BooleanArray::from(vec![true, false, true])));
    let cpu = Stream::cpu();
    fn invalid<T: std::fmt::Debug>(result: Result<T, Error>) {
        assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    }
    let text = here(Arc::new(StringArray::from(vec!["a", "b", "c"])));
    invalid(zip_rows(&mask, &three, &two, &cpu).wait());
    invalid(zip_rows(&mask, &three, &text, &cpu).wait());
    invalid(zip_rows(&three, &three, &three, &cpu).wait());
    invalid(interleave::<DeviceArray>(&[], &[], &cpu).wait());
    invalid(interleave(&[&two], &[(0, 2)], &cpu).wait());
    invalid(interleave(&[&two], &[(1, 0)], &cpu).wait());
    invalid(Windows::new(std::slice::from_ref(&two), &[], 3, &cpu).wait());
    let order = [SortColumn::new(&two, SortOptions::default())];
    invalid(Windows::new(&[], &order, 3, &cpu).wait());
    let windows = Windows::new(&[], &[], 3, &cpu).wait().unwrap();
    invalid(windows.lag(&two, 1).wait());
    invalid(windows.nth_value(&two, 1).wait());
    let batch = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as _)]).unwrap();
    let batch = DeviceBatch::try_from(&batch).unwrap();
    invalid(windows.aggregate(&batch, [sum(col("n"))], &Options::default()).wait());
    let windows = Windows::new(&[], &[], batch.len(), &cpu).wait().unwrap();
    for missing in [sum(col("part")), sum(nth(batch.columns().len()))] {
        let made = windows.aggregate(&batch, [missing], &Options::default()).wait();
        assert!(matches!(made, Err(Error::NoColumn { .. } | Error::Invalid { .. })), "{made:?}");
    }
}
