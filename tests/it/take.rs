//! Tests take beyond small arrays: many chunks on many threads, the first of many bad indices, and wrong
//! offsets. `equivalence_take.rs` compares every type with its definition at small lengths.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, RunArray, StringArray,
    UInt64Array, UnionArray,
};
use arrow_schema::{DataType, Field, Fields, Schema, UnionFields, UnionMode};
use bowstring::array::Parts;
use bowstring::compute::{OutOfBounds, TakeOptions, take};
use bowstring::exchange::{batch_from_arrow, from_arrow, to_arrow};
use bowstring::{DeviceArray, Error, Result, Stream};

use crate::support::*;

/// Enough rows for several threads, and not a multiple of any block size.
const LONG: usize = 300_007;

fn plain_take(values: &DeviceArray, indices: &dyn arrow_array::Array) -> Result<DeviceArray> {
    take(values, &from_arrow(indices).unwrap(), &TakeOptions::default(), &Stream::cpu()).wait()
}

#[test]
fn long_arrays_agree_with_arrow_rs() {
    let types = [
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
        DataType::Struct(vec![Field::new("text", DataType::Utf8, true)].into()),
    ];
    let index_types = [DataType::Int32, DataType::UInt64, DataType::Int16];
    for (seed, data_type) in (1..).zip(types) {
        for (turn, (nulls, index_nulls)) in
            [(Nulls::None, Nulls::None), (Nulls::Some, Nulls::None), (Nulls::Some, Nulls::Some)]
                .into_iter()
                .enumerate()
        {
            // Each type meets each index type, but not with all kinds of nulls.
            let index_type = &index_types[(seed as usize + turn) % 3];
            let mut random = Random::new(seed);
            let values = array(&data_type, 50_031, nulls, &mut random).slice(31, 50_000);
            let indices =
                indices(index_type, LONG + 7, values.len(), index_nulls, &mut random).slice(7, LONG);
            let theirs = arrow_select::take::take(&values, &indices, None).unwrap();
            let ours = to_arrow(&plain_take(&from_arrow(&values).unwrap(), &indices).unwrap()).unwrap();
            assert_eq!(ours.null_count(), theirs.null_count());
            assert!(ours == theirs, "{data_type} by {index_type}, {nulls:?} {index_nulls:?}");
        }
    }
}

#[test]
fn the_first_bad_index_is_named_wherever_it_is() {
    let types = [DataType::Int8, DataType::Int32, DataType::Int64, DataType::Utf8, DataType::Boolean];
    for data_type in types.iter().chain(&[DataType::Null, DataType::Struct(Fields::empty())]) {
        let values = array(data_type, 1000, Nulls::None, &mut Random::new(1));
        let values = from_arrow(&values).unwrap();
        for (bad, row) in [(1000, 0), (-1, 200_000), (i32::MIN, LONG - 5), (i32::MAX, 77)] {
            let mut indices = vec![999; LONG];
            (indices[row], indices[LONG - 1]) = (bad, -7);
            let result = plain_take(&values, &Int32Array::from(indices));
            let expected = Error::IndexOutOfBounds { row, index: bad.into(), len: 1000 };
            assert_eq!(result.unwrap_err(), expected, "{data_type}");
        }
    }
}

#[test]
fn negative_and_huge_indices_never_wrap() {
    let values = from_arrow(&Int64Array::from_iter_values(0..300)).unwrap();
    let index_of = |result: Result<DeviceArray>| match result {
        Err(Error::IndexOutOfBounds { index, .. }) => index,
        other => panic!("{other:?}"),
    };
    assert_eq!(index_of(plain_take(&values, &Int8Array::from(vec![0, -1]))), -1);
    assert_eq!(index_of(plain_take(&values, &Int64Array::from(vec![i64::MIN]))), i128::from(i64::MIN));
    assert_eq!(index_of(plain_take(&values, &Int64Array::from(vec![1 << 32]))), 1 << 32);
    assert_eq!(index_of(plain_take(&values, &UInt64Array::from(vec![u64::MAX]))), i128::from(u64::MAX));
}

#[test]
fn out_of_bounds_may_be_null() {
    let options = TakeOptions { out_of_bounds: OutOfBounds::Null };
    let indices = Int32Array::from(vec![Some(1), Some(-1), None, Some(2), Some(3)]);
    let indices = from_arrow(&indices).unwrap();
    let values = from_arrow(&StringArray::from(vec!["a", "b", "c"])).unwrap();
    let taken = to_arrow(&take(&values, &indices, &options, &Stream::cpu()).wait().unwrap()).unwrap();
    assert_eq!(taken.as_ref(), &StringArray::from(vec![Some("b"), None, None, Some("c"), None]));

    let fields = vec![Field::new("n", DataType::Int32, true)];
    let column = Arc::new(Int32Array::from(vec![10, 20, 30]));
    let batch = arrow_array::RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![column]).unwrap();
    let batch = batch_from_arrow(&batch).unwrap();
    let taken = take(&batch, &indices, &options, &Stream::cpu()).wait().unwrap();
    let column = to_arrow(&taken.columns()[0]).unwrap();
    assert_eq!(column.as_ref(), &Int32Array::from(vec![Some(20), None, None, Some(30), None]));
    let strict = take(&batch, &indices, &TakeOptions::default(), &Stream::cpu()).wait();
    assert_eq!(strict.unwrap_err(), Error::IndexOutOfBounds { row: 1, index: -1, len: 3 });
}

#[test]
fn indices_must_be_integers() {
    let values = from_arrow(&Int32Array::from(vec![1, 2])).unwrap();
    let result = plain_take(&values, &arrow_array::Float64Array::from(vec![0.0]));
    assert!(matches!(result, Err(Error::Invalid { operation: "take", .. })), "{result:?}");
}

#[test]
fn offsets_that_lie_are_errors_and_nothing_is_read_through_them() {
    let text = StringArray::from(vec!["aa", "bb", "cc"]);
    let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        [[1, 2], [3, 4], [5, 6]].map(|row| Some(row.map(Some))),
    );
    let indices = Int32Array::from(vec![2, 0]);
    for offsets in [[0, 2, 4, 7], [0, 2, 4, i32::MAX], [-1, 2, 4, 6], [0, 2, 6, 4], [i32::MIN, 0, 0, 0]] {
        let lying = from_arrow(&Int32Array::from(offsets.to_vec())).unwrap();
        for array in [from_arrow(&text).unwrap(), from_arrow(&list).unwrap()] {
            let mut parts: Parts = array.into_parts();
            parts.buffers[0] = lying.buffers()[0].clone();
            let result = plain_take(&DeviceArray::try_new(parts).unwrap(), &indices);
            assert!(matches!(result, Err(Error::OutOfSpec { .. })), "{offsets:?}: {result:?}");
        }
    }
}

#[test]
fn a_result_that_is_too_long_for_its_offsets_is_an_error() {
    let values = from_arrow(&StringArray::from(vec!["x".repeat(1 << 20)])).unwrap();
    let result = plain_take(&values, &Int32Array::from(vec![0; 2048]));
    assert!(matches!(result, Err(Error::Invalid { operation: "take", .. })), "{result:?}");
}

/// A union may be unable to represent a null index; an index out of bounds is reported before that.
#[test]
fn an_index_that_is_no_row_is_said_before_a_null_that_cannot_be() {
    let member = |name| Field::new(name, DataType::Int32, false);
    for mode in [UnionMode::Sparse, UnionMode::Dense] {
        let of = DataType::Union(UnionFields::try_new([0, 1], [member("a"), member("b")]).unwrap(), mode);
        for rows in [0, 5] {
            let values = array(&of, rows, Nulls::None, &mut Random::new(3));
            let indices: ArrayRef = Arc::new(Int32Array::from(vec![None, Some(7)]));
            for target in devices() {
                let (values, indices) = (target.import(&values), target.import(&indices));
                let taken = take(&values, &indices, &TakeOptions::default(), &target.stream).wait();
                let expected = Error::IndexOutOfBounds { row: 1, index: 7, len: rows };
                match taken {
                    Err(Error::Unsupported { .. }) if rows > 0 && target.name != "cpu" => {}
                    taken => assert_eq!(taken.unwrap_err(), expected, "{mode:?} on {target:?}"),
                }
            }
        }
    }
}

#[test]
fn a_row_is_in_its_run_whatever_the_width_of_the_ends() {
    let values = StringArray::from(vec!["a", "b"]);
    let arrays: [ArrayRef; 3] = [
        Arc::new(RunArray::try_new(&Int16Array::from(vec![3, 300]), &values).unwrap()),
        Arc::new(RunArray::try_new(&Int32Array::from(vec![3, 300]), &values).unwrap()),
        Arc::new(RunArray::try_new(&Int64Array::from(vec![3, 300]), &values).unwrap()),
    ];
    let expected: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "b"]));
    for array in arrays {
        let taken = plain_take(&from_arrow(&array).unwrap(), &Int32Array::from(vec![2, 3, 299])).unwrap();
        assert_same_rows(&rows(&to_arrow(&taken).unwrap()), &rows(&expected), array.data_type());
    }
}

/// A null row becomes a row of the first member that can be null. Runs of values that are never null cannot,
/// whatever their field declares; in a sparse union they still get some row.
#[test]
fn null_rows_of_unions_are_of_members_that_can_be_null() {
    let ends = || Int32Array::from(vec![1, 3]);
    let never = RunArray::try_new(&ends(), &StringArray::from(vec!["x", "y"])).unwrap();
    let field = |values_nullable: bool| {
        let values = Field::new("values", DataType::Utf8, values_nullable);
        DataType::RunEndEncoded(Arc::new(Field::new("run_ends", DataType::Int32, false)), Arc::new(values))
    };
    let data = never.to_data().into_builder().data_type(field(false)).build().unwrap();
    let runs: ArrayRef = arrow_array::make_array(data);
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let fields = UnionFields::try_new(
        [3, 7],
        [Field::new("runs", field(false), true), Field::new("numbers", DataType::Int64, true)],
    )
    .unwrap();
    let indices: ArrayRef = Arc::new(Int32Array::from(vec![Some(2), None, Some(0), None, Some(1), Some(1)]));
    for target in &devices() {
        for offsets in [None, Some(vec![0, 1, 1])] {
            let ids = vec![3, 7, 3].into();
            let children = vec![runs.clone(), numbers.clone()];
            let union = UnionArray::try_new(fields.clone(), ids, offsets.map(Into::into), children).unwrap();
            let theirs: ArrayRef = Arc::new(union);
            let expected = arrow_select::take::take(&theirs, &indices, None).unwrap();
            let (values, at) = (target.import(&theirs), target.import(&indices));
            let taken = take(&values, &at, &TakeOptions::default(), &target.stream).wait().unwrap();
            target.assert_same(&taken, &expected, theirs.data_type());
        }
        // Without rows there is none to point to, as when a side of an outer join is empty.
        let offsets = Some(vec![0, 1, 1].into());
        let union = UnionArray::try_new(
            fields.clone(),
            vec![3, 7, 3].into(),
            offsets,
            vec![runs.clone(), numbers.clone()],
        );
        let (none, nulls): (ArrayRef, ArrayRef) =
            (Arc::new(union.unwrap().slice(0, 0)), Arc::new(Int32Array::from(vec![None, None])));
        let expected = arrow_select::take::take(&none, &nulls, None).unwrap();
        let (values, at) = (target.import(&none), target.import(&nulls));
        let taken = take(&values, &at, &TakeOptions::default(), &target.stream).wait().unwrap();
        target.assert_same(&taken, &expected, &"no rows");
    }
}

/// Null indices into a sparse union select its nullable member, and leave all other rows alone: of indices of
/// every type, whether signed or not.
#[test]
fn null_indices_leave_the_other_rows_of_unions_alone() {
    let mut rng = Random::new(9);
    let fields = [Field::new("s", DataType::Utf8, false), Field::new("n", DataType::Null, true)];
    let of = DataType::Union(UnionFields::try_new([5, 0], fields).unwrap(), UnionMode::Sparse);
    let theirs = array(&of, 30, Nulls::None, &mut rng);
    let indices: ArrayRef =
        Arc::new((0..60).map(|i| (i % 7 != 1).then(|| rng.below(30) as u64)).collect::<UInt64Array>());
    use DataType::*;
    for index in [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64] {
        let indices = arrow_cast::cast(&indices, &index).unwrap();
        let expected = arrow_select::take::take(&theirs, &indices, None).unwrap();
        for target in devices() {
            let (values, indices) = (target.import(&theirs), target.import(&indices));
            let taken = take(&values, &indices, &TakeOptions::default(), &target.stream).wait().unwrap();
            target.assert_same(&taken, &expected, &format!("{index} on {target:?}"));
        }
    }
}
