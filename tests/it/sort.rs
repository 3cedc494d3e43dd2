//! Tests sorting beyond small arrays: many threads, keys that agree in their first bits, and wrong contents.
//! `equivalence_sort.rs` compares every type with its definition at small lengths.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array as _, ArrayRef, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int16Array,
    Int32Array, Int64Array, NullArray, StringArray, StringViewArray, StructArray, UInt8Array, UInt32Array,
};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Field, SortOptions};
use bowstring::compute::{SortColumn, Ties, group, lexsort_to_indices, partition, rank, sort_to_indices};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{DeviceArray, Error, Stream};

use crate::support::*;

/// Enough rows for several threads and buckets, and not a multiple of any block size.
const LONG: usize = 300_007;

const UP: SortOptions = SortOptions { descending: false, nulls_first: true };
const UP_LAST: SortOptions = SortOptions { descending: false, nulls_first: false };
const DOWN: SortOptions = SortOptions { descending: true, nulls_first: true };

fn ours(columns: &[(ArrayRef, SortOptions)], limit: Option<usize>) -> Vec<u32> {
    let arrays: Vec<_> = columns.iter().map(|(array, _)| from_arrow(array).unwrap()).collect();
    let by = arrays.iter().zip(columns).map(|(array, (_, options))| SortColumn::new(array, *options));
    let order = lexsort_to_indices(&by.collect::<Vec<_>>(), limit, &Stream::cpu()).wait().unwrap();
    to_arrow(&order).unwrap().as_primitive::<UInt32Type>().values().to_vec()
}

fn by_rows(columns: &[(ArrayRef, SortOptions)]) -> Vec<u32> {
    let fields = columns
        .iter()
        .map(|(array, options)| SortField::new_with_options(array.data_type().clone(), *options));
    let converter = RowConverter::new(fields.collect()).unwrap();
    let arrays: Vec<ArrayRef> = columns.iter().map(|(array, _)| array.clone()).collect();
    let rows = converter.convert_columns(&arrays).unwrap();
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    order
}

/// Compares the orders, whole and limited, with those of arrow-row.
fn agrees(name: &str, columns: &[(ArrayRef, SortOptions)]) {
    let expected = by_rows(columns);
    let rows = expected.len();
    for limit in [None, Some(1), Some(100), Some(rows / 20), Some(rows / 2), Some(rows + 1)] {
        let wanted = &expected[..limit.unwrap_or(rows).min(rows)];
        let ours = ours(columns, limit);
        assert!(ours == wanted, "{name}, limit {limit:?}, {:?}", columns[0].1);
    }
}

/// Long arrays that make trouble for sorting by digits.
fn arrays() -> Vec<(&'static str, ArrayRef)> {
    let mut rng = Random::new(1);
    let mut numbers = |below: usize| -> Vec<usize> { (0..LONG).map(|_| rng.below(below)).collect() };
    let few = numbers(3);
    let many = numbers(usize::MAX);
    let some = numbers(LONG / 3);
    let int = |of: &[usize]| Arc::new(Int32Array::from_iter_values(of.iter().map(|x| *x as i32))) as ArrayRef;
    let text = |write: &dyn Fn(usize) -> String| {
        Arc::new(StringArray::from_iter_values(some.iter().map(|x| write(*x)))) as ArrayRef
    };
    let prefix = "a prefix that is longer than an item holds, and than two, /";
    vec![
        ("random Int32", int(&many)),
        ("few Int32", int(&few)),
        ("equal Int32", int(&vec![7; LONG])),
        ("ascending", int(&(0..LONG).collect::<Vec<_>>())),
        ("descending", int(&(0..LONG).rev().collect::<Vec<_>>())),
        (
            "one large",
            int(&(0..LONG).map(|i| if i == 5 { i32::MAX as usize } else { i % 1000 }).collect::<Vec<_>>()),
        ),
        ("random Int64", Arc::new(Int64Array::from_iter_values(many.iter().map(|x| *x as i64)))),
        (
            "Int64 in two heaps",
            Arc::new(Int64Array::from_iter_values(
                many.iter().map(|x| (*x as i64 >> 40) - (*x as i64 & 1) * (1 << 60)),
            )),
        ),
        (
            "Float64 in [0, 1)",
            Arc::new(Float64Array::from_iter_values(many.iter().map(|x| *x as f64 / usize::MAX as f64))),
        ),
        (
            "Int16 with nulls",
            Arc::new(Int16Array::from_iter(many.iter().map(|x| (x % 5 > 0).then_some(*x as i16)))),
        ),
        (
            "decimals",
            Arc::new(Decimal128Array::from_iter_values(
                many.iter().map(|x| (*x as i128 - (1 << 63)) * 1_000_003),
            )),
        ),
        ("short text", text(&|x| format!("{x}"))),
        ("text of 12 bytes", text(&|x| format!("{x:012}"))),
        ("text that begins alike", text(&|x| format!("{prefix}{x}"))),
        ("long text in groups", text(&|x| format!("{:03}{prefix}{}", x % 7, x / 7))),
        ("text of zeros", text(&|x| "\0".repeat(x % 40))),
        (
            "views",
            Arc::new(StringViewArray::from_iter(
                some.iter().map(|x| (x % 9 > 0).then(|| format!("{prefix}{}", x / 9))),
            )),
        ),
    ]
}

#[test]
fn long_arrays_have_arrow_rows_order() {
    for (name, array) in arrays() {
        for options in [UP, SortOptions { nulls_first: false, ..DOWN }] {
            agrees(name, &[(array.clone(), options)]);
        }
        let sliced = array.slice(1001, 70_000);
        agrees(name, &[(sliced, DOWN)]);
    }
}

#[test]
fn long_columns_after_each_other_have_arrow_rows_order() {
    let arrays = arrays();
    for (i, (name, first)) in arrays.iter().enumerate() {
        let (second, third) = (&arrays[(i * 5 + 3) % arrays.len()], &arrays[(i * 3 + 1) % arrays.len()]);
        let few: ArrayRef =
            Arc::new(UInt8Array::from_iter((0..LONG).map(|i| (i % 7 > 0).then_some((i % 4) as u8))));
        let name = format!("few, {name}, {}, {}", second.0, third.0);
        let columns = [(few, DOWN), (first.clone(), UP), (second.1.clone(), DOWN), (third.1.clone(), UP)];
        agrees(&name, &columns[..3 + i % 2]);
    }
}

#[test]
fn long_values_that_rows_refer_to_have_arrow_rows_order() {
    let mut rng = Random::new(2);
    let values = array(&DataType::Utf8, 1000, Nulls::Some, &mut rng);
    let keys = Int32Array::from_iter((0..LONG).map(|_| (rng.below(9) > 0).then(|| rng.below(1000) as i32)));
    let dictionary: ArrayRef = Arc::new(DictionaryArray::new(keys, values));
    let item = Arc::new(arrow_schema::Field::new("item", DataType::Utf8, true));
    let lists = array(&DataType::List(item), LONG / 4, Nulls::Some, &mut rng);
    for options in [UP, DOWN] {
        agrees("dictionary", &[(dictionary.clone(), options)]);
        agrees("lists", &[(lists.clone(), options)]);
    }
}

#[test]
fn ranks_and_groups_of_long_arrays_are_those_of_the_order() {
    for (name, array) in arrays() {
        let values = from_arrow(&array).unwrap();
        let ranks = to_arrow(&rank(&values, DOWN, Ties::Highest, &Stream::cpu()).wait().unwrap()).unwrap();
        let theirs = arrow_ord::rank::rank(&array, Some(DOWN)).unwrap();
        assert!(ranks.as_primitive::<UInt32Type>().values()[..] == theirs, "{name}");
        let order = UInt32Array::from(ours(&[(array.clone(), UP)], None));
        let sorted = arrow_select::take::take(&array, &order, None).unwrap();
        let groups = arrow_ord::partition::partition(std::slice::from_ref(&sorted)).unwrap();
        let starts: Vec<u32> = groups.ranges().iter().map(|range| range.start as u32).collect();
        let ours =
            to_arrow(&partition(&[from_arrow(&sorted).unwrap()], &Stream::cpu()).wait().unwrap()).unwrap();
        assert!(ours.as_primitive::<UInt32Type>().values()[..] == starts, "{name}");
    }
}

/// An array whose first buffer has other bytes, which nothing has checked.
fn forged(like: &dyn arrow_array::Array, first: Vec<i32>) -> DeviceArray {
    let mut parts = from_arrow(like).unwrap().into_parts();
    parts.buffers[0] = from_arrow(&Int32Array::from(first)).unwrap().buffers()[0].clone();
    DeviceArray::try_new(parts).unwrap()
}

#[test]
fn offsets_and_keys_that_lie_are_errors() {
    let text = StringArray::from(vec!["aa", "bb", "cc"]);
    let dictionary: DictionaryArray<arrow_array::types::Int32Type> =
        vec!["a", "b", "a"].into_iter().collect();
    let lying = [
        forged(&text, vec![0, 4, 2, 6]),
        forged(&text, vec![0, 2, 1 << 20, 6]),
        forged(&text, vec![0, -1, 2, 6]),
        forged(&dictionary, vec![0, 2, 1]),
        forged(&dictionary, vec![0, -1, 1]),
    ];
    for (i, array) in lying.iter().enumerate() {
        let stream = Stream::cpu();
        let is_wrong = |result: Result<DeviceArray, Error>| {
            assert!(matches!(result, Err(Error::OutOfSpec { .. })), "{i}: {result:?}");
        };
        is_wrong(sort_to_indices(array, UP, None, &stream).wait());
        is_wrong(rank(array, UP, Ties::Dense, &stream).wait());
        is_wrong(partition(std::slice::from_ref(array), &stream).wait());
    }
}

#[test]
fn equal_text_of_any_length_does_not_exhaust_the_stack() {
    // Each text ends where the longer ones go on: the deepest nesting of groups.
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..2000).map(|i| "x".repeat(4 * i))));
    agrees("texts in each other", &[(text, DOWN)]);
}

/// Columns that have only null bits, and no values, before others.
#[test]
fn nothing_but_nulls_before_another_column() {
    let nothing = |names: &[&str]| -> ArrayRef {
        let nulls = Some(vec![false, false, true, true, false].into());
        let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Null, true)).collect();
        let children: Vec<ArrayRef> = names.iter().map(|_| Arc::new(NullArray::new(5)) as ArrayRef).collect();
        match names {
            [] => Arc::new(StructArray::new_empty_fields(5, nulls)),
            _ => Arc::new(StructArray::new(fields.into(), children, nulls)),
        }
    };
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![5, 4, 3, 2, 1]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["e", "d", "c", "b", "a"]));
    for names in [&[][..], &["x"]] {
        for second in [&numbers, &texts] {
            for (options, expected) in [(UP, [4, 1, 0, 3, 2]), (UP_LAST, [3, 2, 4, 1, 0])] {
                let columns = [(nothing(names), options), (second.clone(), UP)];
                for target in &devices() {
                    let arrays = columns.each_ref().map(|(array, _)| target.import(array));
                    let by = arrays.iter().zip(&columns).map(|(array, (_, by))| SortColumn::new(array, *by));
                    let order = lexsort_to_indices(&by.collect::<Vec<_>>(), None, &target.stream).wait();
                    let expected: ArrayRef = Arc::new(UInt32Array::from(expected.to_vec()));
                    target.assert_same(&order.unwrap(), &expected, &format_args!("{names:?}"));
                }
            }
        }
    }
}

/// Wider values than a sort has words for order on every device as text does.
#[test]
fn wide_binaries_order_as_their_bytes_do() {
    const WIDTH: usize = 65;
    let value = |row: usize| {
        (row % 7 != 3).then(|| [vec![0xff; WIDTH - 2], vec![(row * 5 % 3) as u8, (row % 5) as u8]].concat())
    };
    let wide = FixedSizeBinaryArray::try_from_sparse_iter_with_size((0..200).map(value), WIDTH as i32);
    let wide: ArrayRef = Arc::new(wide.unwrap());
    let field = Field::new("w", wide.data_type().clone(), true);
    let within: ArrayRef = Arc::new(StructArray::new(vec![field].into(), vec![wide.clone()], None));
    for target in devices() {
        for column in [&wide, &within] {
            let there = target.import(column);
            for options in [UP, UP_LAST, DOWN] {
                let order = sort_to_indices(&there, options, None, &target.stream).wait().unwrap();
                let order = target.export(&order).as_primitive::<UInt32Type>().values().to_vec();
                assert_eq!(order, by_rows(&[(column.clone(), options)]), "{target:?}: {options:?}");
                let [ranks, expected] =
                    [(&target.stream, &there), (&Stream::cpu(), &from_arrow(column).unwrap())]
                        .map(|(stream, values)| rank(values, options, Ties::Dense, stream).wait().unwrap());
                assert_eq!(&target.export(&ranks), &to_arrow(&expected).unwrap(), "{target:?}");
            }
            let starts = partition(std::slice::from_ref(&there), &target.stream).wait().unwrap();
            let expected = partition(&[from_arrow(column).unwrap()], &Stream::cpu()).wait().unwrap();
            assert_eq!(&target.export(&starts), &to_arrow(&expected).unwrap(), "{target:?}");
            let groups = group(std::slice::from_ref(&there), &target.stream).wait().unwrap();
            assert_eq!(groups.len(), 16, "{target:?}");
        }
    }
}
