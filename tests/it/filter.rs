//! Tests filter beyond small arrays: many chunks on many threads, edges between them, shared outputs, and
//! wrong offsets. `equivalence_filter.rs` compares every type with its definition at small lengths.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BooleanArray, Int8Array, Int32Array, LargeListArray, ListArray, StringArray,
};
use arrow_buffer::{BooleanBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Schema};
use bowstring::array::Parts;
use bowstring::compute::{Selection, filter};
use bowstring::exchange::{batch_from_arrow, from_arrow, to_arrow};
use bowstring::{Device, DeviceArray, Error, Stream};

use crate::support::*;

/// Enough rows for several threads, and not a multiple of any block size.
const LONG: usize = 300_007;

fn long_types() -> Vec<DataType> {
    let text = Field::new("text", DataType::Utf8, true);
    vec![
        DataType::Boolean,
        DataType::UInt8,
        DataType::Int16,
        DataType::Int32,
        DataType::Float64,
        DataType::Decimal128(38, 10),
        DataType::Decimal256(76, 20),
        DataType::FixedSizeBinary(5),
        DataType::Utf8,
        DataType::LargeBinary,
        DataType::Utf8View,
        DataType::List(Arc::new(Field::new("item", DataType::Int32, true))),
        DataType::FixedSizeList(Arc::new(Field::new("item", DataType::Int16, true)), 3),
        DataType::Struct(vec![text].into()),
    ]
}

#[test]
fn long_arrays_agree_with_arrow_rs() {
    let stream = Stream::cpu();
    for (seed, data_type) in (1..).zip(long_types()) {
        let mut random = Random::new(seed);
        let values = array(&data_type, LONG + 64, Nulls::Some, &mut random).slice(31, LONG);
        for (percent, run) in [(0.01, 1), (1.0, 1), (6.0, 1), (50.0, 1), (50.0, 5_000), (99.0, 1), (99.99, 1)]
        {
            let kind = Mask { percent, run, nulls: Nulls::None };
            let keep = mask(kind, LONG + 9, &mut random).slice(9, LONG);
            let theirs = arrow_select::filter::filter(&values, &keep).unwrap();
            let ours =
                filter(&from_arrow(&values).unwrap(), &from_arrow(&keep).unwrap(), &stream).wait().unwrap();
            let ours = to_arrow(&ours).unwrap();
            assert_eq!(ours.null_count(), theirs.null_count());
            assert!(ours == theirs, "{data_type}, {percent} % in runs of {run}");
        }
    }
}

#[test]
fn a_row_at_every_edge_of_a_chunk() {
    let stream = Stream::cpu();
    let values: ArrayRef =
        Arc::new(Int32Array::from_iter((0..LONG as i32).map(|i| (i % 7 != 0).then_some(i))));
    for rows in [vec![0], vec![16_383, 16_384], vec![63, 64, 131_071, 131_072], vec![LONG - 1]] {
        let keep = BooleanArray::from(BooleanBuffer::collect_bool(LONG, |i| rows.contains(&i)));
        let theirs = arrow_select::filter::filter(&values, &keep).unwrap();
        let ours =
            filter(&from_arrow(&values).unwrap(), &from_arrow(&keep).unwrap(), &stream).wait().unwrap();
        assert_eq!(to_arrow(&ours).unwrap().as_ref(), theirs.as_ref());
    }
}

#[test]
fn one_selection_serves_many_arrays() {
    let stream = Stream::cpu();
    let keep = from_arrow(&BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])).unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3), None]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let selection = Selection::of_mask(&keep, &stream).wait().unwrap();
    assert_eq!((selection.len(), selection.is_empty()), (2, false));
    let kept = to_arrow(&selection.filter(&from_arrow(&numbers).unwrap()).wait().unwrap()).unwrap();
    assert_eq!(kept.as_ref(), &Int32Array::from(vec![Some(1), None]));

    let fields = vec![Field::new("n", DataType::Int32, true), Field::new("t", DataType::Utf8, false)];
    let batch =
        arrow_array::RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![numbers, text]).unwrap();
    let kept = filter(&batch_from_arrow(&batch).unwrap(), &keep, &stream).wait().unwrap();
    assert_eq!(kept.len(), 2);
    let text = to_arrow(&kept.columns()[1]).unwrap();
    assert_eq!(text.as_ref(), &StringArray::from(vec!["a", "d"]));
}

#[test]
fn all_rows_are_the_array_itself_and_views_share_their_data() {
    let stream = Stream::cpu();
    let values = from_arrow(&Int32Array::from_iter_values(0..100)).unwrap();
    let all = from_arrow(&BooleanArray::from(vec![true; 100])).unwrap();
    let same = filter(&values, &all, &stream).wait().unwrap();
    assert_eq!(same.buffers()[0].address(), values.buffers()[0].address());

    let long = "longer than what a view holds inline";
    let views = from_arrow(&arrow_array::StringViewArray::from(vec![long, "short", long])).unwrap();
    let keep = from_arrow(&BooleanArray::from(vec![true, false, true])).unwrap();
    let kept = filter(&views, &keep, &stream).wait().unwrap();
    assert_eq!(kept.buffers()[1].address(), views.buffers()[1].address());
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let stream = Stream::cpu();
    let values = from_arrow(&Int32Array::from(vec![1, 2, 3])).unwrap();
    let keep = from_arrow(&BooleanArray::from(vec![true, false])).unwrap();
    let wrong = [filter(&values, &keep, &stream).wait(), filter(&values, &values, &stream).wait()];
    for result in wrong {
        assert!(matches!(result, Err(Error::Invalid { operation: "filter", .. })), "{result:?}");
    }
}

/// The array with other offsets, whose first and last values are valid.
fn with_offsets(array: &dyn arrow_array::Array, offsets: &[i32]) -> DeviceArray {
    let offsets = from_arrow(&Int32Array::from(offsets.to_vec())).unwrap();
    let mut parts: Parts = from_arrow(array).unwrap().into_parts();
    parts.buffers[0] = offsets.buffers()[0].clone();
    DeviceArray::try_new(parts).unwrap()
}

#[test]
fn offsets_that_lie_are_errors_and_nothing_is_read_through_them() {
    let stream = Stream::cpu();
    let text = StringArray::from(vec!["aa", "bb", "cc"]);
    let list = arrow_array::ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        [[1, 2], [3, 4], [5, 6]].map(|row| Some(row.map(Some))),
    );
    let keep = from_arrow(&BooleanArray::from(vec![true, false, true])).unwrap();
    for offsets in
        [[0, 2, 4, 7], [0, 2, 4, i32::MAX], [-1, 2, 4, 6], [0, 2, 6, 4], [4, 6, 0, 2], [i32::MIN, 0, 0, 0]]
    {
        for array in [with_offsets(&text, &offsets), with_offsets(&list, &offsets)] {
            let result = filter(&array, &keep, &stream).wait();
            assert!(matches!(result, Err(Error::OutOfSpec { .. })), "{offsets:?}: {result:?}");
        }
    }
}

#[test]
fn runs_that_end_too_early_are_an_error() {
    let stream = Stream::cpu();
    let ends = from_arrow(&Int32Array::from(vec![2, 4])).unwrap();
    let values = from_arrow(&Int32Array::from(vec![10, 20])).unwrap();
    let run_ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let data_type = DataType::RunEndEncoded(run_ends, Arc::new(Field::new("values", DataType::Int32, true)));
    let mut parts = Parts::new(data_type, 5);
    parts.children = vec![ends, values];
    let array = DeviceArray::try_new(parts).unwrap();
    let keep = from_arrow(&BooleanArray::from(vec![true, false, true, true, true])).unwrap();
    let result = filter(&array, &keep, &stream).wait();
    assert!(matches!(result, Err(Error::OutOfSpec { .. })), "{result:?}");
}

/// The items of other lists need no memory.
#[test]
fn few_lists_of_many_are_filtered_in_little_memory() {
    const NAME: &str = "filter::few_lists_of_many_are_filtered_in_little_memory";
    if children::case().is_none() {
        return children::run(NAME, "few", None, 60, &[]);
    }
    const LISTS: usize = 1 << 18;
    const ITEMS: usize = 64;
    let (device, stream) = (Device::cpu(), Stream::cpu());
    let pool = device.host_pool();
    let items = || Arc::new(Int8Array::from_iter_values((0..LISTS * ITEMS).map(|item| (item / 64) as i8)));
    let field = |of: DataType| Arc::new(Field::new_list_field(of, true));
    let offsets = OffsetBuffer::from_repeated_length(ITEMS, LISTS);
    let flat: ArrayRef = Arc::new(LargeListArray::new(field(DataType::Int8), offsets, items(), None));
    let twos = OffsetBuffer::<i32>::from_repeated_length(2, LISTS / 2);
    let deep: ArrayRef = Arc::new(ListArray::new(field(flat.data_type().clone()), twos, flat.clone(), None));
    let empty = OffsetBuffer::<i64>::from_lengths((0..LISTS).map(|row| if row == 9 { 64 } else { 0 }));
    let some: ArrayRef =
        Arc::new(LargeListArray::new(field(DataType::Int8), empty, Arc::new(items().slice(0, 64)), None));
    for lists in [flat, deep, some] {
        for keep in [[5, 6, 7, 8, 9], [5, 6, 8, 11, 13], [2, 3, 10, 11, 14], [0, 1, 2, 3, 4]] {
            for first in [0, 5, lists.len() - 15] {
                let keep = BooleanArray::from_iter((0..15).map(|row| Some(keep.contains(&row))));
                let theirs = arrow_select::filter::filter(&lists.slice(first, 15), &keep).unwrap();
                let (values, keep) =
                    (from_arrow(&lists.slice(first, 15)).unwrap(), from_arrow(&keep).unwrap());
                let before = pool.usage().in_use;
                pool.set_limit(before + (1 << 20));
                let ours = filter(&values, &keep, &stream).wait();
                pool.set_limit(usize::MAX);
                let ours = ours.unwrap();
                // They are copied, so that they do not keep those of other lists.
                drop(values);
                assert!(held(&ours) < 1 << 16, "{} bytes", held(&ours));
                assert_eq!(to_arrow(&ours).unwrap().as_ref(), theirs.as_ref(), "from row {first}");
            }
        }
    }
}

/// The bytes of an array's buffers.
fn held(array: &DeviceArray) -> usize {
    let own: usize = array.buffers().iter().filter_map(|buffer| buffer.bytes()).sum();
    own + array.children().iter().map(held).sum::<usize>()
}
