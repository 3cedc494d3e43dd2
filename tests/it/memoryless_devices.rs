//! Tests arrays of more rows than bytes, on a GPU: rows of no bytes cost nothing, so a foreign array of few
//! bytes may claim 2^62 rows. Operations with a small answer give it quickly; the others fail with an error.
//! No arithmetic overflows, with overflow checks on or off.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array};
use arrow_schema::{DataType, Field, Fields};
use bowstring::array::{Buffer, Parts};
use bowstring::compute::*;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{export_array, from_arrow, import_array};
use bowstring::{DeviceArray, Error, Result, Stream};

/// Enough for the possible answers, and too little for the impossible ones.
const MEMORY: usize = 16 << 20;

fn fixed(of: DataType, size: i32) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new_list_field(of, true)), size)
}

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

fn large_list(of: DataType) -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(of, true)))
}

fn fields(of: &[DataType]) -> DataType {
    DataType::Struct(of.iter().map(|of| Field::new("a", of.clone(), true)).collect::<Fields>())
}

/// This many rows of a type without bytes; `None` if the type cannot have that many.
fn rows_of(data_type: &DataType, len: usize, stream: &Stream) -> Option<DeviceArray> {
    let mut parts = Parts::new(data_type.clone(), len);
    parts.place = stream.device().place();
    parts.buffers = match data_type {
        DataType::FixedSizeBinary(0) => vec![Buffer::empty()],
        _ => vec![],
    };
    parts.children = match data_type {
        DataType::Struct(fields) => {
            fields.iter().map(|field| rows_of(field.data_type(), len, stream)).collect::<Option<_>>()?
        }
        DataType::FixedSizeList(item, size) => {
            let rows = len.checked_mul(*size as usize).filter(|rows| *rows <= i64::MAX as usize)?;
            vec![rows_of(item.data_type(), rows, stream)?]
        }
        _ => vec![],
    };
    Some(DeviceArray::try_new(parts).unwrap())
}

fn types() -> Vec<DataType> {
    use DataType::*;
    vec![
        Null,
        FixedSizeBinary(0),
        fixed(Null, 0),
        fixed(Null, 1),
        fixed(Null, 1 << 20),
        fixed(fixed(Null, i32::MAX), i32::MAX),
        fixed(FixedSizeBinary(0), 3),
        fields(&[]),
        fields(&[Null, FixedSizeBinary(0), fixed(FixedSizeBinary(0), 7)]),
    ]
}

/// Consecutive lists of items without bytes.
fn lists(to: &DataType, of: &DataType, items: usize, stream: &Stream) -> Option<DeviceArray> {
    let ends = [0, items / 2, items];
    let offsets: ArrayRef = Arc::new(Int64Array::from_iter_values(ends.map(|end| end as i64)));
    let offsets = stream.upload(&from_arrow(&offsets).unwrap()).unwrap();
    let offsets = match to {
        DataType::List(_) if items > i32::MAX as usize => return None,
        DataType::List(_) => {
            cast(&offsets, &DataType::Int32, &CastOptions::default(), stream).wait().unwrap()
        }
        _ => offsets,
    };
    let mut parts = Parts::new(to.clone(), ends.len() - 1);
    (parts.place, parts.ready) = (offsets.place(), offsets.ready().cloned());
    (parts.buffers, parts.children) = (offsets.buffers().to_vec(), vec![rows_of(of, items, stream)?]);
    Some(DeviceArray::try_new(parts).unwrap())
}

fn arrays(stream: &Stream) -> Vec<DeviceArray> {
    let lens = [1, 3, 1000, 1 << 31, 1 << 40, (1 << 60) - 1, 1 << 62];
    let of = |len: usize| {
        let lists_of = |of: DataType| {
            let made = [list(of.clone()), large_list(of.clone())].map(|to| lists(&to, &of, len, stream));
            made.into_iter().flatten().collect::<Vec<_>>()
        };
        let flat = types().into_iter().filter_map(|of| rows_of(&of, len, stream)).collect::<Vec<_>>();
        [flat, types().into_iter().flat_map(lists_of).collect()].concat()
    };
    lens.into_iter().flat_map(of).collect()
}

/// Accepts an answer, or an error that blames memory or the caller; anything else fails the test.
fn settled<T>(what: &str, array: &DeviceArray, result: Result<T>) -> Option<T> {
    match result {
        Ok(answer) => Some(answer),
        Err(
            Error::OutOfMemory { .. }
            | Error::Unsupported { .. }
            | Error::Invalid { .. }
            | Error::Arrow { .. },
        ) => None,
        Err(error) => panic!("{what} of {} rows of {}: {error:?}", array.len(), array.data_type()),
    }
}

fn waited(array: DeviceArray) -> Result<DeviceArray> {
    array.wait().map(|()| array)
}

#[test]
fn rows_of_no_bytes_are_answered_or_refused() {
    for width in [32, 64] {
        let options = EmulatorOptions { width, memory: MEMORY, ..EmulatorOptions::default() };
        let emulated =
            [0, 1].map(|seed| EmulatedDevice::new(EmulatorOptions { seed, ..options.clone() }).unwrap());
        let [stream, other] = [&emulated[0], &emulated[1]].map(|one| one.device().stream().unwrap());
        let on = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
        for array in arrays(&stream) {
            let (len, context) = (array.len(), format!("{} rows of {}", array.len(), array.data_type()));
            let half = array.slice(len / 3, len / 2).unwrap();
            for few in [vec![0, len - 1, 0], vec![len / 2; 40]] {
                let by = on(Arc::new(Int64Array::from_iter_values(few.iter().map(|row| *row as i64))));
                let taken = take(&array, &by, &TakeOptions::default(), &stream).wait().and_then(waited);
                if let Some(taken) = settled("take", &array, taken) {
                    assert_eq!(taken.len(), few.len(), "{context}");
                }
                let options = TakeOptions { out_of_bounds: OutOfBounds::Null };
                settled("take", &half, take(&half, &by, &options, &stream).wait().and_then(waited));
            }
            let (first, some) = (len / 2, (len - len / 2).min(100));
            let mask = on(Arc::new(BooleanArray::from_iter((0..some).map(|row| Some(row % 3 == 0)))));
            let kept = filter(&array.slice(first, some).unwrap(), &mask, &stream).wait().and_then(waited);
            if let Some(kept) = settled("filter", &array, kept) {
                assert_eq!(kept.len(), some.div_ceil(3), "{context}");
            }
            assert_eq!(null_count(&half, &stream).wait().unwrap(), 0, "{context}");
            settled("logical_null_count", &half, logical_null_count(&half, &stream).wait());
            settled("is_null", &half, is_null(&half, &stream).wait().and_then(waited));
            settled("is_not_null", &half, is_not_null(&half, &stream).wait().and_then(waited));
            settled(
                "drop_nulls",
                &half,
                drop_nulls(&half, &DropOptions::default(), &stream).wait().and_then(waited),
            );
            let joined = concat(&[&half, &array, &half], &stream).wait().and_then(waited);
            if let Some(joined) = settled("concat", &half, joined) {
                assert_eq!(joined.len(), 2 * half.len() + len, "{context}");
            }
            let row = Scalar::try_new(&stream.download(&array.slice(0, 1).unwrap()).unwrap()).unwrap();
            settled("fill_null", &half, fill_null(&half, &row, &stream).wait().and_then(waited));
            for to in casts() {
                settled(
                    &format!("cast to {to}"),
                    &half,
                    cast(&half, &to, &CastOptions::default(), &stream).wait().and_then(waited),
                );
            }
            let back = stream.download(&half).and_then(waited).unwrap();
            assert_eq!(back.len(), half.len(), "{context}");
            assert_eq!(stream.upload(&back).and_then(waited).unwrap().len(), half.len(), "{context}");
            assert_eq!(stream.copy(&half).and_then(waited).unwrap().len(), half.len(), "{context}");
            assert_eq!(
                other.transfer(&half, &stream).and_then(waited).unwrap().len(),
                half.len(),
                "{context}"
            );
            let field = Field::new("f", half.data_type().clone(), true);
            let (mut raw, schema) = export_array(&half, &field).unwrap();
            // SAFETY: the library's own structs.
            let again = unsafe { import_array(&mut raw, &schema, stream.device()) }.unwrap().1;
            assert_eq!(again.len(), half.len(), "{context}");
        }
        drop((stream, other));
        assert!(emulated.iter().all(|emulated| emulated.faults().is_empty()));
    }
}

fn casts() -> Vec<DataType> {
    use DataType::*;
    vec![
        Null,
        Int8,
        Decimal256(50, 2),
        Boolean,
        Utf8,
        LargeBinary,
        Utf8View,
        FixedSizeBinary(0),
        FixedSizeBinary(i32::MAX),
        fixed(Null, 0),
        fixed(Null, i32::MAX),
        fixed(Int64, i32::MAX),
        list(Null),
        large_list(Null),
        large_list(fixed(FixedSizeBinary(0), 3)),
        list(Int32),
        fields(&[]),
        fields(&[Null]),
        Dictionary(Box::new(Int8), Box::new(Utf8)),
    ]
}

/// A take of few rows gives the right result: items without bytes, but in the right number.
#[test]
fn few_of_many_rows_are_right() {
    let options = EmulatorOptions { memory: MEMORY, ..EmulatorOptions::default() };
    let emulated = EmulatedDevice::new(options).unwrap();
    let stream = emulated.device().stream().unwrap();
    let by: ArrayRef = Arc::new(Int64Array::from(vec![1 << 39, 0, (1 << 40) - 1]));
    let by = stream.upload(&from_arrow(&by).unwrap()).unwrap();
    let few = |array: &DeviceArray| take(array, &by, &TakeOptions::default(), &stream).wait();
    let pairs = few(&rows_of(&fixed(DataType::Null, 1 << 20), 1 << 40, &stream).unwrap()).unwrap();
    assert_eq!((pairs.len(), pairs.children()[0].len()), (3, 3 << 20));
    let structs = few(&rows_of(&fields(&[DataType::FixedSizeBinary(0)]), 1 << 40, &stream).unwrap()).unwrap();
    assert_eq!((structs.len(), structs.children()[0].len()), (3, 3));
    // More items than a length can express are refused; fewer are not.
    let vast = fixed(fixed(DataType::Null, i32::MAX), i32::MAX);
    let one = rows_of(&vast, 1, &stream).unwrap();
    let times = |rows: usize| {
        let by: ArrayRef = Arc::new(Int64Array::from(vec![0; rows]));
        take(&one, &stream.upload(&from_arrow(&by)?)?, &TakeOptions::default(), &stream).wait()
    };
    let items = (i32::MAX as usize).pow(2);
    assert_eq!(times(2).unwrap().children()[0].children()[0].len(), 2 * items);
    for rows in [3, 4, 5, 1000] {
        assert!(matches!(times(rows), Err(Error::OutOfMemory { .. })), "{rows} rows");
    }
}
