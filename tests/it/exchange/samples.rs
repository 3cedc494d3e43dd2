//! One small arrow-rs array of every Arrow type, with nulls if the type has them, built by hand and the same
//! in every run.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryViewBuilder, FixedSizeBinaryBuilder, ListBuilder, MapBuilder, StringBuilder, StringViewBuilder,
};
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt16Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit, UnionFields};

/// The rows of every sample.
pub const ROWS: usize = 75;

fn nulls() -> NullBuffer {
    NullBuffer::from_iter((0..ROWS).map(|row| row % 3 != 1))
}

fn numbers() -> Int64Array {
    (0..ROWS as i64).map(|row| (row % 3 != 1).then_some(row % 61)).collect()
}

fn fixed_width() -> Vec<ArrayRef> {
    use DataType::*;
    let of_numbers = [
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float16,
        Float32,
        Float64,
        Boolean,
        Decimal32(7, 2),
        Decimal64(12, 3),
        Decimal128(18, 2),
        Decimal256(40, 4),
        Date64,
        Time64(TimeUnit::Microsecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into())),
        Duration(TimeUnit::Millisecond),
    ];
    let of_ints =
        [Date32, Time32(TimeUnit::Second), Time32(TimeUnit::Millisecond), Interval(IntervalUnit::YearMonth)];
    let ints = cast(&numbers(), &Int32).unwrap();
    let mut arrays: Vec<ArrayRef> = of_numbers.iter().map(|to| cast(&numbers(), to).unwrap()).collect();
    arrays.extend(of_ints.iter().map(|to| cast(&ints, to).unwrap()));
    arrays.push(Arc::new(IntervalDayTimeArray::new(
        (0..ROWS as i32).map(|row| arrow_buffer::IntervalDayTime::new(row, -row)).collect(),
        Some(nulls()),
    )));
    arrays.push(Arc::new(IntervalMonthDayNanoArray::new(
        (0..ROWS as i32).map(|row| arrow_buffer::IntervalMonthDayNano::new(row, -row, 7)).collect(),
        None,
    )));
    arrays
}

fn bytes() -> Vec<ArrayRef> {
    let text: StringArray = (0..ROWS).map(|row| (row % 3 != 1).then(|| "żółw ".repeat(row % 7))).collect();
    let mut fixed = FixedSizeBinaryBuilder::new(5);
    for row in 0..ROWS {
        fixed.append_value([row as u8; 5]).unwrap();
    }
    let mut views = StringViewBuilder::new().with_fixed_block_size(64);
    let mut binary_views = BinaryViewBuilder::new().with_fixed_block_size(32);
    for row in text.iter() {
        views.append_option(row);
        binary_views.append_option(row);
    }
    let mut arrays: Vec<ArrayRef> = [DataType::LargeUtf8, DataType::Binary, DataType::LargeBinary]
        .iter()
        .map(|to| cast(&text, to).unwrap())
        .collect();
    arrays.push(Arc::new(text));
    arrays.push(Arc::new(fixed.finish()));
    arrays.push(Arc::new(
        FixedSizeBinaryArray::try_new_with_len(0, arrow_buffer::Buffer::default(), None, ROWS).unwrap(),
    ));
    arrays.push(Arc::new(views.finish()));
    arrays.push(Arc::new(binary_views.finish()));
    arrays
}

fn lists() -> Vec<ArrayRef> {
    let item = Arc::new(Field::new("item", DataType::Utf8, true));
    let mut list = ListBuilder::new(StringBuilder::new()).with_field(item.clone());
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in 0..ROWS {
        for i in 0..row % 4 {
            list.values().append_option((i != 1).then(|| format!("{row}.{i}")));
            map.keys().append_value(format!("{i}"));
            map.values().append_option((i != 2).then(|| format!("{row}")));
        }
        list.append(row % 3 != 1);
        map.append(row % 5 != 1).unwrap();
    }
    let list = list.finish();
    let views = ListViewArray::new(
        item.clone(),
        (0..ROWS as i32).rev().collect::<ScalarBuffer<i32>>(),
        (0..ROWS as i32).map(|row| row % 3).collect(),
        list.values().clone(),
        Some(nulls()),
    );
    let large_views = LargeListViewArray::new(
        item.clone(),
        (0..ROWS as i64).rev().collect::<ScalarBuffer<i64>>(),
        (0..ROWS as i64).map(|row| row % 3).collect(),
        list.values().clone(),
        None,
    );
    let number = Arc::new(Field::new("n", DataType::Int64, true));
    let pairs = Int64Array::from_iter((0..2 * ROWS as i64).map(|row| (row % 7 != 1).then_some(row)));
    vec![
        cast(&list, &DataType::LargeList(item)).unwrap(),
        Arc::new(list),
        Arc::new(map.finish()),
        Arc::new(views),
        Arc::new(large_views),
        Arc::new(FixedSizeListArray::new(number.clone(), 2, Arc::new(pairs), Some(nulls()))),
        Arc::new(
            FixedSizeListArray::try_new_with_length(number, 0, Arc::new(Int64Array::new_null(0)), None, ROWS)
                .unwrap(),
        ),
    ]
}

fn unions(text: ArrayRef) -> Vec<ArrayRef> {
    let fields: UnionFields = [(5, "a", DataType::Int64), (9, "b", DataType::Utf8)]
        .into_iter()
        .map(|(id, name, data_type)| (id, Arc::new(Field::new(name, data_type, true))))
        .collect();
    let ids: ScalarBuffer<i8> = (0..ROWS).map(|row| if row % 2 == 0 { 5 } else { 9 }).collect();
    let dense: ScalarBuffer<i32> = (0..ROWS as i32).map(|row| row / 2).collect();
    let children = || vec![Arc::new(numbers()) as ArrayRef, text.clone()];
    vec![
        Arc::new(UnionArray::try_new(fields.clone(), ids.clone(), None, children()).unwrap()),
        Arc::new(UnionArray::try_new(fields, ids, Some(dense), children()).unwrap()),
    ]
}

fn encoded(text: &ArrayRef) -> Vec<ArrayRef> {
    use DataType::*;
    let keys = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
    let dictionary = |key: &DataType| cast(text, &Dictionary(Box::new(key.clone()), Box::new(Utf8))).unwrap();
    let mut arrays: Vec<ArrayRef> = keys.iter().map(dictionary).collect();
    let ends = |step: i64| (1..).map(move |run| run * step).take_while(|end| *end < 75).chain([75]);
    let values = |step: i64| text.slice(0, ends(step).count());
    let short = Int16Array::from_iter_values(ends(10).map(|end| end as i16));
    let middle = Int32Array::from_iter_values(ends(4).map(|end| end as i32));
    let long = Int64Array::from_iter_values(ends(1));
    arrays.push(Arc::new(RunArray::<Int16Type>::try_new(&short, &values(10)).unwrap()));
    arrays.push(Arc::new(RunArray::<Int32Type>::try_new(&middle, &values(4)).unwrap()));
    arrays.push(Arc::new(RunArray::<Int64Type>::try_new(&long, &values(1)).unwrap()));
    arrays
}

fn nested(inner: &[ArrayRef]) -> Vec<ArrayRef> {
    let structure = |inner: &[ArrayRef], nulls| {
        let fields = inner
            .iter()
            .enumerate()
            .map(|(i, array)| Field::new(format!("f{i}"), array.data_type().clone(), true));
        Arc::new(StructArray::new(fields.collect(), inner.to_vec(), nulls)) as ArrayRef
    };
    let all = structure(inner, Some(nulls()));
    let none = Arc::new(StructArray::new_empty_fields(ROWS, Some(nulls())));
    let item = Arc::new(Field::new("item", all.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths((0..ROWS).map(|row| usize::from(row % 5 != 2)).chain([0; 0]));
    let list = Arc::new(ListArray::new(item, offsets, all.clone(), Some(nulls())));
    let keys = UInt16Array::from_iter((0..ROWS as u16).map(|row| (row % 4 != 0).then_some(row / 2)));
    let of_structs = DictionaryArray::<UInt16Type>::new(keys, all.clone());
    let keys = Int8Array::from_iter_values((0..ROWS as i8).rev());
    let of_lists = DictionaryArray::<Int8Type>::new(keys, list.clone());
    vec![all, none, list, Arc::new(of_structs), Arc::new(of_lists)]
}

/// One array of every type; nested ones contain all the others.
pub fn all() -> Vec<ArrayRef> {
    let bytes = bytes();
    let text = bytes.iter().find(|array| *array.data_type() == DataType::Utf8).unwrap().clone();
    let mut arrays = fixed_width();
    arrays.push(Arc::new(NullArray::new(ROWS)));
    arrays.extend(lists());
    arrays.extend(unions(text.clone()));
    arrays.extend(encoded(&text));
    arrays.extend(bytes);
    arrays.extend(nested(&arrays));
    arrays
}

/// The slices `(start, length)` that tests make of every sample.
pub const SLICES: &[(usize, usize)] =
    &[(0, ROWS), (0, 0), (ROWS, 0), (1, 1), (7, 20), (8, 64), (9, 31), (31, 44), (33, 0), (63, 12)];
