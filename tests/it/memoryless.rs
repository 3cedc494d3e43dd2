//! Tests arrays of few bytes and any number of rows: nulls of type Null, values of no bytes, runs, and
//! repeated references to the same bytes. All are valid. Any operation on them ends, with little memory and
//! time, with a result or an error of ours: no abort, no signal, no panic, no hang.
//!
//! The one idea: each array has a child process of its own, with a limited address space, which runs all
//! operations.

use std::sync::Arc;

use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::*;
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields, UnionFields, UnionMode};
use bowstring::array::{Buffer as Bytes, Parts};
use bowstring::compute::{
    CastOptions, DropOptions, Scalar, Selection, TakeOptions, can_cast, cast, concat, drop_nulls, fill_null,
    filter, is_not_null, is_null, logical_null_count, null_count, take,
};
use bowstring::exchange::{from_arrow, to_arrow, validate};
use bowstring::{DeviceArray, Error, Stream};

use crate::support::{children, types};

/// More rows than memory could hold at one bit each.
const MANY: usize = 1 << 40;

fn item(data_type: &DataType, nullable: bool) -> Arc<Field> {
    Arc::new(Field::new("item", data_type.clone(), nullable))
}

fn ours(array: &dyn arrow_array::Array) -> DeviceArray {
    from_arrow(array).unwrap()
}

fn large_list(offsets: [i64; 4], values: ArrayRef) -> ArrayRef {
    let item = item(values.data_type(), true);
    Arc::new(LargeListArray::new(item, OffsetBuffer::new(ScalarBuffer::from(offsets.to_vec())), values, None))
}

fn fixed_lists(size: i32, nulls: Option<Vec<bool>>, nullable: bool, values: ArrayRef) -> ArrayRef {
    let rows = if size == 0 { MANY } else { values.len() / size as usize };
    let item = item(values.data_type(), nullable);
    let nulls = nulls.map(NullBuffer::from);
    let data_type = DataType::FixedSizeList(item, size);
    let data = ArrayData::builder(data_type).len(rows).nulls(nulls).add_child_data(values.to_data());
    // SAFETY: the child has as many items as required. The safe constructor of arrow-rs would make a bitmap
    // of all items to check their nulls.
    make_array(unsafe { data.build_unchecked() })
}

fn nulls(rows: usize) -> ArrayRef {
    Arc::new(NullArray::new(rows))
}

/// Values of no bytes, which arrow-rs cannot count.
fn no_bytes(rows: usize, validity: bool) -> DeviceArray {
    let mut parts = Parts::new(DataType::FixedSizeBinary(0), rows);
    parts.buffers = vec![Bytes::empty()];
    if validity {
        let bits = ours(&BooleanArray::from_iter((0..rows).map(|row| Some(row % 3 == 0))));
        parts.validity =
            Some(bowstring::array::Bitmap { buffer: bits.buffers()[0].clone(), offset: bits.offset() });
        parts.null_count = None;
    }
    DeviceArray::try_new(parts).unwrap()
}

fn runs<R: arrow_array::types::RunEndIndexType>(end: R::Native, values: &dyn arrow_array::Array) -> ArrayRef {
    let ends = PrimitiveArray::<R>::from_iter_values([end]);
    Arc::new(RunArray::<R>::try_new(&ends, values).unwrap())
}

/// A dictionary array whose keys are all 0.
fn keys(rows: usize, values: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::from_iter_values((0..rows).map(|_| 0)), values))
}

fn list_views(rows: usize, size: i32, values: ArrayRef) -> ArrayRef {
    let item = item(values.data_type(), true);
    let (offsets, sizes) = (ScalarBuffer::from(vec![0; rows]), ScalarBuffer::from(vec![size; rows]));
    Arc::new(ListViewArray::new(item, offsets, sizes, values, None))
}

fn structs(fields: Vec<ArrayRef>, rows: usize) -> ArrayRef {
    let named = |(i, field): (usize, &ArrayRef)| Field::new(format!("f{i}"), field.data_type().clone(), true);
    let names: Fields = fields.iter().enumerate().map(named).collect();
    Arc::new(StructArray::try_new_with_length(names, fields, None, rows).unwrap())
}

fn unions(mode: UnionMode, rows: usize, member: ArrayRef) -> ArrayRef {
    let fields = UnionFields::try_new([5], [Field::new("a", member.data_type().clone(), true)]).unwrap();
    let offsets = (mode == UnionMode::Dense).then(|| ScalarBuffer::from(vec![0; rows]));
    Arc::new(UnionArray::try_new(fields, ScalarBuffer::from(vec![5i8; rows]), offsets, vec![member]).unwrap())
}

fn text(bytes: usize) -> ArrayRef {
    Arc::new(StringArray::from(vec!["x".repeat(bytes)]))
}

/// This many views of the same bytes.
fn views(rows: usize, bytes: usize) -> ArrayRef {
    let mut view = [0u8; 16];
    view[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    view[4..8].copy_from_slice(b"xxxx");
    let data = ArrayData::builder(DataType::Utf8View)
        .len(rows)
        .add_buffer(Buffer::from(view.repeat(rows)))
        .add_buffer(Buffer::from(vec![b'x'; bytes]))
        .build();
    make_array(data.unwrap())
}

/// An array's name, with the function that makes it.
type Named = (&'static str, fn() -> DeviceArray);

/// The arrays under test.
fn arrays() -> Vec<Named> {
    const HALF: i64 = MANY as i64 / 2;
    vec![
        ("nulls", || ours(&nulls(MANY))),
        ("lists of nulls", || ours(&large_list([0, HALF, HALF, MANY as i64], nulls(MANY)))),
        ("short lists of many nulls", || ours(&large_list([7, 8, 8, 11], nulls(MANY)))),
        ("lists of lists of nulls", || {
            ours(&large_list([0, 1, 1, 3], large_list([0, HALF, HALF, MANY as i64], nulls(MANY))))
        }),
        ("lists of empty structs", || ours(&large_list([0, HALF, HALF, MANY as i64], structs(vec![], MANY)))),
        ("lists of structs of nulls and runs", || {
            let runs = runs::<Int64Type>(MANY as i64, &Int32Array::from(vec![7]));
            ours(&large_list([0, HALF, HALF, MANY as i64], structs(vec![nulls(MANY), runs], MANY)))
        }),
        ("lists of runs", || {
            let runs = runs::<Int64Type>(MANY as i64, &text(100));
            ours(&large_list([0, HALF, HALF, MANY as i64], runs))
        }),
        ("fixed lists of nulls", || {
            ours(&fixed_lists(i32::MAX, None, true, nulls(1000 * i32::MAX as usize)))
        }),
        ("fixed lists of nulls, some null, of items that are not", || {
            let some = Some((0..1000).map(|row| row % 3 == 0).collect());
            ours(&fixed_lists(i32::MAX, some, false, nulls(1000 * i32::MAX as usize)))
        }),
        ("fixed lists beyond 32-bit offsets", || ours(&fixed_lists(1 << 20, None, true, nulls(1 << 32)))),
        ("fixed lists of runs", || {
            ours(&fixed_lists(
                i32::MAX,
                None,
                true,
                runs::<Int64Type>(1000 * i64::from(i32::MAX), &text(1000)),
            ))
        }),
        ("fixed lists of nothing", || ours(&fixed_lists(0, None, true, Arc::new(Int32Array::new_null(0))))),
        ("values of no bytes", || no_bytes(MANY, false)),
        ("values of no bytes, some null", || no_bytes(1000, true)),
        ("empty structs", || ours(&structs(vec![], MANY))),
        ("structs of nulls", || ours(&structs(vec![nulls(MANY), structs(vec![nulls(MANY)], MANY)], MANY))),
        ("a run of numbers", || ours(&runs::<Int64Type>(MANY as i64, &Int32Array::from(vec![7])))),
        ("a run of 32-bit ends", || ours(&runs::<Int32Type>(i32::MAX, &text(1 << 20)))),
        ("a run of 16-bit ends", || ours(&runs::<Int16Type>(i16::MAX, &text(1 << 20)))),
        ("a run of null", || ours(&runs::<Int64Type>(MANY as i64, &Int32Array::new_null(1)))),
        ("a run of lists", || {
            ours(&runs::<Int64Type>(MANY as i64, &large_list([0, HALF, HALF, HALF], nulls(MANY)).slice(0, 1)))
        }),
        ("keys of one long text", || ours(&keys(100_000, text(1 << 20)))),
        ("keys of one long list", || ours(&keys(100_000, large_list([0, HALF, HALF, HALF], nulls(MANY))))),
        ("keys of one long list of numbers", || {
            let numbers = Arc::new(Int32Array::from(vec![1; 1 << 20]));
            ours(&keys(100_000, large_list([0, 1 << 20, 1 << 20, 1 << 20], numbers)))
        }),
        ("list views of the same numbers", || {
            ours(&list_views(100_000, 1 << 20, Arc::new(Int32Array::from(vec![1; 1 << 20]))))
        }),
        ("list views of the same text", || ours(&list_views(100_000, 1, text(1 << 20)))),
        ("list views of the same nulls", || ours(&list_views(1000, i32::MAX, nulls(i32::MAX as usize)))),
        ("views of the same text", || ours(&views(2100, 1 << 20))),
        ("a sparse union of nulls", || ours(&unions(UnionMode::Sparse, 100_000, nulls(100_000)))),
        ("a dense union of the same text", || ours(&unions(UnionMode::Dense, 100_000, text(1 << 20)))),
        ("a dense union of many nulls", || ours(&unions(UnionMode::Dense, 1000, nulls(MANY)))),
    ]
}

/// The target types of casts: those of the suites, and more that expand small arrays.
fn targets() -> Vec<DataType> {
    use DataType::*;
    let ends = |data_type| Arc::new(Field::new("run_ends", data_type, false));
    let nested = [Null, Int32, Utf8, Utf8View].map(|of| {
        let of = || item(&of, true);
        let structs = Struct(Fields::from(vec![Field::new("f0", of().data_type().clone(), true)]));
        [
            List(of()),
            LargeList(of()),
            ListView(of()),
            FixedSizeList(of(), 1),
            FixedSizeList(of(), i32::MAX),
            structs,
        ]
    });
    let more = [
        FixedSizeBinary(0),
        FixedSizeBinary(i32::MAX),
        FixedSizeList(item(&Null, true), 0),
        FixedSizeList(item(&Null, true), 1 << 20),
        LargeList(item(&LargeList(item(&Int32, true)), true)),
        List(item(&FixedSizeList(item(&Int64, true), 1000), true)),
        RunEndEncoded(ends(Int16), item(&Int32, true)),
        RunEndEncoded(ends(Int64), item(&Utf8, true)),
        Dictionary(Box::new(Int8), Box::new(LargeUtf8)),
        Dictionary(Box::new(Int64), Box::new(Int32)),
        Union(UnionFields::empty(), UnionMode::Sparse),
        Union(UnionFields::empty(), UnionMode::Dense),
    ];
    types().into_iter().chain(nested.into_iter().flatten()).chain(more).collect()
}

/// Prints the step before running it, so that a crash can be located, and prints the outcome.
fn attempt<T>(what: String, work: impl FnOnce() -> Result<T, Error>) -> Option<T> {
    println!("{what}");
    match work() {
        Ok(result) => Some(result),
        Err(error) => {
            println!("    {error}");
            None
        }
    }
}

fn all_operations(array: &DeviceArray) {
    let (stream, options) = (Stream::cpu(), TakeOptions::default());
    attempt("validate".into(), || validate(array));
    attempt("to_arrow".into(), || to_arrow(array));
    attempt("null_count".into(), || null_count(array, &stream).wait());
    attempt("logical_null_count".into(), || logical_null_count(array, &stream).wait());
    attempt("is_null".into(), || is_null(array, &stream).wait());
    attempt("is_not_null".into(), || is_not_null(array, &stream).wait());
    attempt("drop_nulls".into(), || drop_nulls(array, &DropOptions::default(), &stream).wait());
    let len = array.len();
    // Some of its rows; all rows if a mask can be that long.
    let some = array.slice(0, len.min(3000)).unwrap();
    let last = array.slice(len - len.min(3), len.min(3)).unwrap();
    for (name, rows) in [("first", &some), ("last", &last)] {
        let mask = ours(&BooleanArray::from_iter((0..rows.len()).map(|row| Some(row % 3 != 1))));
        let kept = attempt(format!("filter the {name}"), || filter(rows, &mask, &stream).wait());
        assert!(kept.is_none_or(|kept| kept.len() == rows.len().div_ceil(3) + rows.len() / 3));
        attempt(format!("select the {name}"), || {
            Selection::of_mask(&mask, &stream).wait()?.filter(rows).wait()
        });
        attempt(format!("is_null of the {name}"), || is_null(rows, &stream).wait());
        attempt(format!("drop_nulls of the {name}"), || {
            drop_nulls(rows, &DropOptions::default(), &stream).wait()
        });
    }
    let indices = Int64Array::from(vec![Some(0), None, Some(len as i64 - 1), Some(len as i64 / 2), Some(0)]);
    let taken = attempt("take".into(), || take(array, &ours(&indices), &options, &stream).wait());
    if let Some(taken) = &taken {
        assert_eq!(taken.len(), 5);
        attempt("validate what was taken".into(), || validate(taken));
        attempt("take again".into(), || take(taken, &ours(&indices.slice(0, 2)), &options, &stream).wait());
    }
    let joined = attempt("concat".into(), || concat(&[&last, array, &last], &stream).wait());
    assert!(joined.is_none_or(|joined| joined.len() == len + 2 * last.len()));
    attempt("fill_null".into(), || fill_null(array, &Scalar::try_new(&array.slice(0, 1)?)?, &stream).wait());
    let none = Int64Array::new_null(3);
    attempt("take nulls of none".into(), || {
        take(&array.slice(0, 0)?, &ours(&none), &options, &stream).wait()
    });
    let from = array.data_type();
    // Parsing gigabytes of text takes too long.
    let parsed = |to: &DataType| *from == DataType::Utf8View && !to.is_string() && !to.is_binary();
    for to in targets().iter().filter(|to| can_cast(from, to) && !parsed(to)) {
        for safe in [true, false] {
            let options = CastOptions { safe, ..CastOptions::default() };
            for (name, rows) in [("all", array), ("the last", &last)] {
                let casted = attempt(format!("cast {name} to {to}, safe {safe}"), || {
                    cast(rows, to, &options, &stream).wait()
                });
                assert!(casted.is_none_or(|casted| casted.len() == rows.len()), "length");
            }
        }
    }
}

#[test]
fn every_operation_ends_with_a_result_or_an_error() {
    const NAME: &str = "memoryless::every_operation_ends_with_a_result_or_an_error";
    if let Some(case) = children::case() {
        let (_, make) = arrays().into_iter().find(|(name, _)| *name == case).unwrap();
        return all_operations(&make());
    }
    for (case, _) in arrays() {
        children::run(NAME, case, Some(1200), 120, &[]);
    }
}

/// Operations that must succeed, because a few bytes describe the result.
#[test]
fn rows_without_memory_are_filtered_and_taken() {
    const NAME: &str = "memoryless::rows_without_memory_are_filtered_and_taken";
    if children::case().is_none() {
        return children::run(NAME, "works", Some(1200), 60, &[]);
    }
    const HALF: usize = MANY / 2;
    let stream = Stream::cpu();
    let mask = ours(&BooleanArray::from(vec![false, true, true]));
    let indices = ours(&Int32Array::from(vec![Some(2), None, Some(2)]));
    let take = |array: &DeviceArray| take(array, &indices, &TakeOptions::default(), &stream).wait().unwrap();
    let offsets = [0, HALF as i64, HALF as i64, MANY as i64];
    let kinds: [(&str, ArrayRef); 3] = [
        ("nulls", nulls(MANY)),
        ("structs", structs(vec![nulls(MANY), structs(vec![], MANY)], MANY)),
        ("runs", runs::<Int64Type>(MANY as i64, &Int32Array::from(vec![7]))),
    ];
    for (name, items) in kinds {
        let lists = ours(&large_list(offsets, items.clone()));
        let kept = filter(&lists, &mask, &stream).wait().unwrap();
        assert_eq!(
            to_arrow(&kept).unwrap().as_ref(),
            large_list(offsets, items.clone()).slice(1, 2).as_ref(),
            "{name}"
        );
        let taken = take(&lists);
        assert_eq!((taken.children()[0].len(), taken.known_null_count()), (MANY, Some(1)), "{name}");
        validate(&taken).unwrap();

        let fixed = ours(&fixed_lists(1 << 30, None, true, items.slice(0, 3 << 30)));
        let kept = filter(&fixed, &mask, &stream).wait().unwrap();
        assert_eq!((kept.len(), kept.children()[0].len()), (2, 2 << 30), "{name}");
        validate(&kept).unwrap();
        let taken = take(&fixed);
        assert_eq!((taken.children()[0].len(), taken.known_null_count()), (3 << 30, Some(1)), "{name}");
        validate(&taken).unwrap();
    }
    // The ranges contain several runs; a run that occurs again directly after itself stays one.
    let ends = Int64Array::from(vec![10, 20, MANY as i64]);
    let many = RunArray::try_new(&ends, &StringArray::from(vec![Some("a"), None, Some("c")])).unwrap();
    let lists = ours(&large_list([0, 15, 15, 25], Arc::new(many.clone())));
    let taken = take(&lists);
    let expected = LargeListArray::new(
        item(arrow_array::Array::data_type(&many), true),
        OffsetBuffer::new(ScalarBuffer::from(vec![0i64, 10, 10, 20])),
        Arc::new({
            let ends = Int64Array::from(vec![5, 10, 15, 20]);
            RunArray::try_new(&ends, &StringArray::from(vec![None, Some("c"), None, Some("c")])).unwrap()
        }),
        Some(NullBuffer::from(vec![true, false, true])),
    );
    assert_eq!(to_arrow(&taken).unwrap().as_ref(), &expected);
    let kept = to_arrow(&filter(&lists, &mask, &stream).wait().unwrap()).unwrap();
    let ends = Int64Array::from(vec![5, 10]);
    let part = RunArray::try_new(&ends, &StringArray::from(vec![None, Some("c")])).unwrap();
    assert_eq!(
        kept.as_ref(),
        &LargeListArray::new(
            item(arrow_array::Array::data_type(&many), true),
            OffsetBuffer::new(ScalarBuffer::from(vec![0i64, 0, 10])),
            Arc::new(part),
            None,
        )
    );
    assert_eq!(drop_nulls(&ours(&nulls(MANY)), &DropOptions::default(), &stream).wait().unwrap().len(), 0);
}

/// Ordinary arrays in little memory: a failing allocation becomes an error there too.
#[test]
fn memory_that_runs_out_is_an_error() {
    const NAME: &str = "memoryless::memory_that_runs_out_is_an_error";
    if children::case().is_none() {
        return children::run(NAME, "little memory", Some(1200), 300, &[("RAYON_NUM_THREADS", "2")]);
    }
    let (stream, options) = (Stream::cpu(), CastOptions::default());
    let rows = 50_000_000;
    let numbers = Int32Array::from_iter_values(0..rows);
    let refused = cast(&ours(&numbers), &DataType::Utf8, &options, &stream).wait();
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    let pairs = fixed_lists(2, None, true, Arc::new(numbers));
    let indices = ours(&UInt32Array::from_iter_values(0..rows as u32));
    let twice = take(
        &ours(&pairs),
        &ours(&UInt32Array::from_iter_values((0..rows as u32).map(|i| i / 2))),
        &TakeOptions::default(),
        &stream,
    )
    .wait();
    assert!(matches!(twice, Err(Error::OutOfMemory { .. })), "{:?}", twice.map(|a| a.len()));
    drop(indices);
    // The library works afterwards.
    assert_eq!(
        cast(&ours(&Int32Array::from(vec![1])), &DataType::Utf8, &options, &stream).wait().unwrap().len(),
        1
    );
}
