//! Tests sorting: the plain definition, arrow-ord, arrow-row and every device agree. arrow-ord's order of
//! equal rows is its own, so its sorted values are compared; ours is that of the definition, row by row.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int8Array, ListArray, RecordBatch, UInt32Array, new_empty_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Field, IntervalUnit, Schema, SortOptions, UnionFields, UnionMode};
use bowstring::compute::{
    SortColumn, Ties, lexsort_to_indices, partition, rank, sort, sort_by, sort_to_indices,
};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, to_arrow};
use bowstring::{DeviceArray, Error, Stream};
use proptest::prelude::*;

use crate::support::ordered::{between, order};
use crate::support::*;

const OPTIONS: [SortOptions; 4] = [
    SortOptions { descending: false, nulls_first: true },
    SortOptions { descending: false, nulls_first: false },
    SortOptions { descending: true, nulls_first: true },
    SortOptions { descending: true, nulls_first: false },
];

type Columns = Vec<(Vec<Value>, DataType, SortOptions)>;

/// The columns as the definition reads them.
fn plain(columns: &[(ArrayRef, SortOptions)]) -> Columns {
    columns.iter().map(|(array, options)| (rows(array), array.data_type().clone(), *options)).collect()
}

fn numbers_of(target: &Target, array: &DeviceArray) -> Vec<u32> {
    target.export(array).as_primitive::<UInt32Type>().values().to_vec()
}

/// Whether arrow-row orders the type as it says that it does.
fn in_rows(of: &DataType, options: SortOptions) -> bool {
    let inner = match of {
        // It turns around the types of a union, but not the values.
        DataType::Union(..) if options.descending => return false,
        DataType::Dictionary(_, of) => vec![&**of],
        of => bowstring::device::testing::children(of),
    };
    inner.into_iter().all(|of| in_rows(of, options))
}

/// Whether arrow-ord answers for a type: it panics on lists, runs and dictionaries of types that it does not
/// sort.
fn arrow_sorts(of: &DataType) -> bool {
    match of {
        DataType::Dictionary(_, of) => {
            !matches!(**of, DataType::Dictionary(..) | DataType::RunEndEncoded(..)) && arrow_sorts(of)
        }
        DataType::RunEndEncoded(_, of) => {
            let of = of.data_type();
            !of.is_nested() && !matches!(of, DataType::Null | DataType::Dictionary(..)) && arrow_sorts(of)
        }
        of => bowstring::device::testing::children(of).into_iter().all(|of| {
            !of.is_nested()
                && !matches!(of, DataType::Null | DataType::Dictionary(..) | DataType::RunEndEncoded(..))
        }),
    }
}

/// The order of arrow-row's rows.
fn order_of_rows(columns: &[(ArrayRef, SortOptions)]) -> Option<Vec<u32>> {
    if !columns.iter().all(|(array, options)| in_rows(array.data_type(), *options)) {
        return None;
    }
    let field = |(array, options): &(ArrayRef, SortOptions)| {
        SortField::new_with_options(array.data_type().clone(), *options)
    };
    let converter = RowConverter::new(columns.iter().map(field).collect()).ok()?;
    let arrays: Vec<ArrayRef> = columns.iter().map(|(array, _)| array.clone()).collect();
    let rows = converter.convert_columns(&arrays).ok()?;
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by(|a, b| rows.row(*a as usize).cmp(&rows.row(*b as usize)));
    Some(order)
}

/// Compares every device's order of columns with the definition and with arrow-rs.
fn agrees(samples: &[(Sample, SortOptions)], limit: Option<usize>) {
    let columns: Vec<_> = samples.iter().map(|(sample, options)| (sample.array(), *options)).collect();
    let context = format!("{samples:?}, limit {limit:?}");
    let expected = order(&plain(&columns));
    if let Some(theirs) = order_of_rows(&columns) {
        assert_eq!(theirs, expected, "arrow-row and the definition, {context}");
    }
    if let [(array, options)] = &columns[..]
        && arrow_sorts(array.data_type())
        && let Ok(theirs) = arrow_ord::sort::sort_to_indices(array, Some(*options), limit)
    {
        let sorted = |by: &UInt32Array| rows(&arrow_select::take::take(array, by, None).unwrap());
        let mine = UInt32Array::from(expected[..theirs.len()].to_vec());
        assert_same_rows(&sorted(&theirs), &sorted(&mine), &format_args!("arrow-ord, {context}"));
    }
    let expected = &expected[..limit.unwrap_or(usize::MAX).min(expected.len())];
    for target in &devices() {
        for form in Form::ALL {
            let import = |sample: &Sample| {
                uncounted(target.import_as(form, &sample.longer(), sample.offset, sample.len))
            };
            let arrays: Vec<DeviceArray> = samples.iter().map(|(sample, _)| import(sample)).collect();
            let by: Vec<_> = arrays
                .iter()
                .zip(samples)
                .map(|(array, (_, options))| SortColumn::new(array, *options))
                .collect();
            let ours = lexsort_to_indices(&by, limit, &target.stream).wait();
            let ours = ours.unwrap_or_else(|error| panic!("{context}, on {target:?}: {error}"));
            assert_eq!(numbers_of(target, &ours), expected, "{form:?}, {context}, on {target:?}");
        }
    }
}

#[test]
fn every_type_at_every_length_and_offset() {
    for (seed, data_type) in (0..).zip(types()) {
        for (i, &len) in LENGTHS.iter().enumerate() {
            let turn = i + seed as usize;
            let (nulls, offset) = (Nulls::ALL[turn % 5], OFFSETS[turn % OFFSETS.len()]);
            let sample = Sample { data_type: data_type.clone(), len, nulls, offset, seed };
            let limit = [None, Some(0), Some(1), Some(len / 20), Some(len), Some(len + 1)][turn % 6];
            agrees(&[(sample, OPTIONS[turn % 4])], limit);
        }
    }
}

#[test]
fn structs_and_unions_of_every_type_as_it_is_in_a_dictionary_and_in_runs() {
    let within = |of: &DataType| DataType::Struct(vec![Field::new("f", of.clone(), true)].into());
    let union = |of: &DataType, mode| {
        let fields = [("f", of.clone()), ("g", DataType::Int8)].map(|(name, of)| Field::new(name, of, true));
        DataType::Union(UnionFields::try_new([3, 5], fields).unwrap(), mode)
    };
    for (seed, of) in (0..).zip(types()) {
        let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
        let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(of.clone()));
        let runs = DataType::RunEndEncoded(ends, Arc::new(Field::new("values", of.clone(), true)));
        for (i, of) in [of, dictionary, runs].iter().enumerate() {
            let types = [
                if seed % 2 == 0 { within(of) } else { within(&within(of)) },
                union(of, UnionMode::Dense),
                union(of, UnionMode::Sparse),
            ];
            for data_type in types {
                let sample = Sample { data_type, len: 41, nulls: Nulls::Some, offset: 3, seed };
                agrees(&[(sample, OPTIONS[(i + seed as usize) % 4])], None);
            }
        }
    }
}

/// Items and dictionaries without values, of types whose values have several words.
#[test]
fn types_of_several_words_are_inside_of_others_without_values() {
    use DataType::*;
    for of in [Decimal128(9, 2), Decimal256(50, 3), Interval(IntervalUnit::MonthDayNano)] {
        let item = Arc::new(Field::new_list_field(of.clone(), true));
        let lists: ArrayRef = Arc::new(ListArray::new(
            item,
            OffsetBuffer::new(vec![0, 0, 0, 0].into()),
            new_empty_array(&of),
            Some(NullBuffer::from(vec![true, false, true])),
        ));
        let keys = Int8Array::from(vec![None; 3]);
        let names: ArrayRef = Arc::new(DictionaryArray::new(keys, new_empty_array(&of)));
        for target in &devices() {
            let order = |values: &ArrayRef| {
                let order = sort_to_indices(&target.import(values), OPTIONS[0], None, &target.stream);
                numbers_of(target, &order.wait().unwrap())
            };
            assert_eq!((order(&lists), order(&names)), (vec![1, 0, 2], vec![0, 1, 2]), "{of} on {target:?}");
        }
    }
}

fn options() -> impl Strategy<Value = SortOptions> {
    proptest::sample::select(&OPTIONS)
}

/// Samples of a few columns of one length.
fn columns(longest: usize) -> impl Strategy<Value = Vec<(Sample, SortOptions)>> {
    prop::collection::vec((sample(longest), options()), 1..4).prop_map(|mut columns| {
        let len = columns[0].0.len;
        columns.iter_mut().for_each(|(sample, _)| sample.len = len);
        columns
    })
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_nested_type(column in sample(300), options in options(), limit in prop::option::of(0usize..300)) {
        agrees(&[(column, options)], limit);
    }

    #[test]
    fn several_columns(columns in columns(200), limit in prop::option::of(0usize..200)) {
        agrees(&columns, limit);
    }

    #[test]
    fn ranks_and_groups_are_those_of_the_definition(columns in columns(120)) {
        let (sample, options) = &columns[0];
        let arrays: Vec<_> = columns.iter().map(|(sample, options)| (sample.array(), *options)).collect();
        let (all, one) = (plain(&arrays), plain(&arrays[..1]));
        let order = order(&one);
        for ties in [Ties::Highest, Ties::Lowest, Ties::Dense] {
            let place = |row: usize| -> u32 {
                let before = order.iter().filter(|other| between(&one, **other as usize, row).is_lt());
                let equal = order.iter().filter(|other| between(&one, **other as usize, row).is_eq());
                match ties {
                    Ties::Lowest => 1 + before.count() as u32,
                    Ties::Highest => (before.count() + equal.count()) as u32,
                    Ties::Dense => {
                        let mut before: Vec<usize> = before.map(|row| *row as usize).collect();
                        before.dedup_by(|a, b| between(&one, *a, *b).is_eq());
                        1 + before.len() as u32
                    }
                }
            };
            let expected: Vec<u32> = (0..sample.len).map(place).collect();
            for target in &devices() {
                let values = target.import(&arrays[0].0);
                let ours = numbers_of(target, &rank(&values, *options, ties, &target.stream).wait().unwrap());
                prop_assert_eq!(ours, expected.clone(), "{:?} on {:?}", ties, target);
            }
            let theirs = arrow_ord::rank::rank(&arrays[0].0, Some(*options));
            if let (Ok(theirs), Ties::Highest) = (theirs, ties) {
                prop_assert_eq!(theirs, expected, "arrow-ord");
            }
        }
        let starts = (0..sample.len as u32).filter(|row| *row == 0 || between(&all, *row as usize - 1, *row as usize).is_ne());
        let starts: Vec<u32> = starts.collect();
        for target in &devices() {
            let values: Vec<_> = arrays.iter().map(|(array, _)| target.import(array)).collect();
            let ours = numbers_of(target, &partition(&values, &target.stream).wait().unwrap());
            prop_assert_eq!(&ours, &starts, "on {:?}", target);
        }
    }

    #[test]
    fn sorted_rows_are_those_that_are_taken(columns in columns(100), limit in prop::option::of(0usize..100)) {
        let arrays: Vec<_> = columns.iter().map(|(sample, options)| (sample.array(), *options)).collect();
        let field = |(i, (array, _)): (usize, &(ArrayRef, SortOptions))| {
            Field::new(i.to_string(), array.data_type().clone(), true)
        };
        let schema = Schema::new(arrays.iter().enumerate().map(field).collect::<Vec<_>>());
        let batch = RecordBatch::try_new(Arc::new(schema), arrays.iter().map(|(array, _)| array.clone()).collect());
        let batch = batch_from_arrow(&batch.unwrap()).unwrap();
        let by: Vec<_> = batch.columns().iter().zip(&arrays).map(|(array, (_, options))| SortColumn::new(array, *options)).collect();
        let ours = batch_to_arrow(&sort_by(&batch, &by, limit, &Stream::cpu()).wait().unwrap()).unwrap();
        let order = order(&plain(&arrays));
        let order = &order[..limit.unwrap_or(usize::MAX).min(order.len())];
        for ((array, _), ours) in arrays.iter().zip(ours.columns()) {
            let values = rows(array);
            let expected: Vec<Value> = order.iter().map(|row| values[*row as usize].clone()).collect();
            assert_same_rows(&rows(ours), &expected, &format_args!("{columns:?}"));
        }
        if limit.is_none() && columns.len() == 1 {
            let one = to_arrow(&sort(&batch.columns()[0], columns[0].1, &Stream::cpu()).wait().unwrap()).unwrap();
            assert_same_rows(&rows(&one), &rows(&ours.columns()[0]), &"sort");
        }
    }
}

#[test]
fn bad_arguments_are_errors() {
    let [long, short] = [4, 3].map(|len| from_arrow(&UInt32Array::from(vec![1; len])).unwrap());
    let stream = Stream::cpu();
    let by = |array| SortColumn::new(array, SortOptions::default());
    let invalid = |error: Error| assert!(matches!(error, Error::Invalid { .. }), "{error}");
    invalid(lexsort_to_indices(&[], None, &stream).wait().unwrap_err());
    invalid(lexsort_to_indices(&[by(&long), by(&short)], None, &stream).wait().unwrap_err());
    invalid(sort_by(&long, &[by(&short)], None, &stream).wait().unwrap_err());
    invalid(partition(&[], &stream).wait().unwrap_err());
    invalid(partition(&[long.clone(), short], &stream).wait().unwrap_err());
    for target in devices().iter().filter(|target| target.name != "cpu") {
        let there = sort_to_indices(&long, SortOptions::default(), None, &target.stream).wait();
        invalid(there.unwrap_err());
    }
}
