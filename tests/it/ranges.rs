//! Tests strings and lists on devices: every type is supported, the number of host synchronisations, and
//! invalid offsets.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, LargeBinaryArray, ListArray, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields, Schema};
use bowstring::array::{Buffer, DeviceArray, Parts, Place};
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, take};
use bowstring::{DeviceBatch, Error};

use crate::support::*;

fn list(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

fn large_list(of: DataType) -> DataType {
    DataType::LargeList(Arc::new(Field::new_list_field(of, true)))
}

fn fixed(of: DataType, size: i32) -> DataType {
    DataType::FixedSizeList(Arc::new(Field::new_list_field(of, true)), size)
}

fn fields(of: &[DataType]) -> DataType {
    let fields = of.iter().enumerate().map(|(i, of)| Field::new(format!("f{i}"), of.clone(), true));
    DataType::Struct(Fields::from_iter(fields))
}

/// Types whose rows are ranges, three levels deep.
fn range_types() -> Vec<DataType> {
    use DataType::*;
    let bits = fields(&[Utf8, Boolean, Decimal256(40, 3)]);
    vec![
        Utf8,
        LargeUtf8,
        Binary,
        LargeBinary,
        list(Int8),
        large_list(Boolean),
        fixed(FixedSizeBinary(3), 2),
        fixed(Utf8, 3),
        list(Utf8),
        list(LargeUtf8),
        large_list(Binary),
        list(large_list(list(Utf8))),
        list(fixed(list(Int16), 2)),
        fixed(fixed(Boolean, 3), 2),
        list(bits.clone()),
        large_list(fixed(bits, 2)),
        list(Utf8View),
        list(Dictionary(Box::new(Int8), Box::new(Utf8))),
        fields(&[list(Utf8), Int32, fixed(Utf8, 1)]),
        list(Null),
    ]
}

fn gpus() -> impl Iterator<Item = Target> {
    devices().into_iter().filter(|target| target.stream.device().place() != Place::CPU)
}

/// Compares filters by masks of several percentages, and takes of random rows, with arrow-rs.
fn agrees(
    target: &Target,
    values: &ArrayRef,
    percents: &[f64],
    taken: usize,
    random: &mut Random,
    what: &dyn std::fmt::Display,
) {
    let ours = target.import(values);
    for percent in percents {
        let mask = BooleanArray::from(bitmap(values.len(), *percent, 1, random));
        let by = target.import(&(Arc::new(mask.clone()) as ArrayRef));
        let kept = filter(&ours, &by, &target.stream).wait().unwrap();
        let theirs = arrow_select::filter::filter(values, &mask).unwrap();
        target.assert_same(&kept, &theirs, &format!("filter, {what}"));
    }
    let by = indices(&DataType::Int32, taken, values.len(), Nulls::Some, random);
    let taken = take(&ours, &target.import(&by), &TakeOptions::default(), &target.stream).wait().unwrap();
    let theirs = arrow_select::take::take(values, &by, None).unwrap();
    target.assert_same(&taken, &theirs, &format!("take, {what}"));
}

#[test]
fn no_type_is_left_out() {
    for target in gpus() {
        for data_type in range_types() {
            let random = &mut Random::new(3);
            let values = sliced(&array(&data_type, 2400, Nulls::Some, random), 7, 2300);
            agrees(&target, &values, &[0.1, 50.0, 98.0], 3000, random, &data_type);
        }
    }
}

/// Devices copy ranges in one way if they are short, and in another if they are long or mostly empty, by runs
/// of 4 KiB. Each mix has several runs, and in some a run contains ranges unlike its others.
#[test]
fn strings_of_every_mix_of_lengths() {
    type Length = fn(&mut Random) -> usize;
    let mixes: [(&str, Length); 7] = [
        ("short", |random| random.below(25)),
        ("a byte or two", |random| 1 + random.below(2)),
        ("mostly nothing", |random| if random.below(40) == 0 { 1 + random.below(40) } else { 0 }),
        ("hardly anything", |random| usize::from(random.below(500) == 0)),
        ("whole slots", |random| 16 * random.below(3)),
        ("beyond three slots", |random| 20 + random.below(40)),
        (
            "short, and some long",
            |random| if random.below(150) == 0 { random.below(5000) } else { random.below(12) },
        ),
    ];
    for target in gpus() {
        for (name, len) in mixes {
            let random = &mut Random::new(5);
            let text: String = (0..5000).map(|i| char::from(b'!' + (i % 89) as u8)).collect();
            let rows: Vec<String> = (0..6000)
                .map(|_| {
                    let len = len(random);
                    let start = random.below(text.len() - len + 1);
                    text[start..start + len].to_owned()
                })
                .collect();
            let values = sliced(&(Arc::new(StringArray::from(rows)) as ArrayRef), 3, 5990);
            agrees(&target, &values, &[20.0, 97.0], 5000, random, &name);
        }
    }
}

#[test]
fn the_host_waits_once_for_a_batch_however_deep() {
    for width in [32, 64] {
        // A separate device, because other tests' synchronisations would count too.
        let target = Target::emulator(width);
        let random = &mut Random::new(4);
        let types = range_types();
        let columns: Vec<DeviceArray> = types
            .iter()
            .map(|data_type| target.import(&array(data_type, 500, Nulls::Some, random)))
            .collect();
        let fields = types.iter().enumerate().map(|(i, of)| Field::new(format!("c{i}"), of.clone(), true));
        let batch =
            DeviceBatch::try_new(Arc::new(Schema::new(Fields::from_iter(fields))), columns, 500).unwrap();
        let mask: ArrayRef = Arc::new(BooleanArray::from(bitmap(500, 40.0, 1, random)));
        let (mask, by) =
            (target.import(&mask), target.import(&indices(&DataType::UInt16, 700, 500, Nulls::Some, random)));
        let waits = || target.stream.device().host_synchronisations();
        let before = waits();
        filter(&batch, &mask, &target.stream).wait().unwrap();
        assert_eq!(waits() - before, 1, "filter on {target:?}");
        let before = waits();
        take(&batch, &by, &TakeOptions::default(), &target.stream).wait().unwrap();
        assert_eq!(waits() - before, 1, "take on {target:?}");
    }
}

#[test]
fn offsets_that_lie_are_errors() {
    let text = StringArray::from(vec!["aa", "bb", "cc"]);
    let list = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>(
        [[1, 2], [3, 4], [5, 6]].map(|row| Some(row.map(Some))),
    );
    for target in gpus() {
        let by = target.import(&(Arc::new(UInt64Array::from(vec![2, 0])) as ArrayRef));
        let mask = target.import(&(Arc::new(BooleanArray::from(vec![true, false, true])) as ArrayRef));
        for offsets in [[0, 2, 4, 7], [0, 2, 4, i32::MAX], [-1, 2, 4, 6], [0, 2, 6, 4], [i32::MIN, 0, 0, 0]] {
            let lying = target.import(&(Arc::new(Int32Array::from(offsets.to_vec())) as ArrayRef));
            for array in [Arc::new(text.clone()) as ArrayRef, Arc::new(list.clone())] {
                // The last work queued on the stream completes last.
                let mut parts: Parts = target.import(&array).into_parts();
                parts.buffers[0] = lying.buffers()[0].clone();
                let array = DeviceArray::try_new(parts).unwrap();
                let taken = take(&array, &by, &TakeOptions::default(), &target.stream).wait();
                assert!(matches!(taken, Err(Error::OutOfSpec { .. })), "{offsets:?}: {taken:?}");
                let kept = filter(&array, &mask, &target.stream).wait();
                assert!(matches!(kept, Err(Error::OutOfSpec { .. })), "{offsets:?}: {kept:?}");
            }
        }
    }
}

/// Bytes that are not valid text, in rows whose offsets are wrong in either direction: validation ends with
/// an error.
#[test]
fn text_behind_offsets_that_lie_is_an_error() {
    let bytes = [0xffu8; 48].repeat(20);
    let values: ArrayRef = Arc::new(LargeBinaryArray::from_iter_values(bytes.chunks(48)));
    let honest: Vec<i64> = (0..=20).map(|i| i * 48).collect();
    for target in gpus() {
        for (at, lie) in (1..20).flat_map(|at| [-1, -9, -20, i64::MIN, i64::MAX].map(|lie| (at, lie))) {
            let mut offsets = honest.clone();
            offsets[at] = lie;
            let lying = target.import(&(Arc::new(Int64Array::from(offsets)) as ArrayRef));
            let mut parts: Parts = target.import(&values).into_parts();
            parts.buffers[0] = lying.buffers()[0].clone();
            let array = DeviceArray::try_new(parts).unwrap();
            for safe in [true, false] {
                let options = CastOptions { safe, ..CastOptions::default() };
                let text =
                    cast(&array, &DataType::LargeUtf8, &options, &target.stream).wait().and_then(|text| {
                        target.stream.download(&text).and_then(|text| text.wait().map(|()| text))
                    });
                assert!(text.is_err(), "offset {at} is {lie}: {text:?}");
            }
        }
    }
}

#[test]
fn a_result_that_is_too_long_for_its_offsets_is_an_error() {
    for target in gpus() {
        let values: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
        let by: ArrayRef = Arc::new(Int32Array::from(vec![0; 2048]));
        let result =
            take(&target.import(&values), &target.import(&by), &TakeOptions::default(), &target.stream)
                .wait();
        assert!(matches!(result, Err(Error::Invalid { operation: "take", .. })), "{result:?}");
    }
}

/// Elements that take no memory, or that only offsets describe, in impossible numbers.
#[test]
fn sums_of_lengths_do_not_wrap() {
    const HUGE: i64 = 1 << 62;
    for target in gpus() {
        let empty =
            |data_type: &DataType| target.import(&arrow_array::new_empty_array(data_type)).into_parts();
        let of_len = |len: usize, mut parts: Parts| {
            (parts.len, parts.null_count) = (len, None);
            DeviceArray::try_new(parts).unwrap()
        };
        let nulls = |len: i64| of_len(len as usize, empty(&DataType::Null));
        let large = |offsets: &[i64], of: DeviceArray| {
            let mut parts = empty(&large_list(of.data_type().clone()));
            let offsets: ArrayRef = Arc::new(Int64Array::from(offsets.to_vec()));
            (parts.buffers, parts.children) = (target.import(&offsets).buffers().to_vec(), vec![of]);
            of_len(offsets.len() - 1, parts)
        };
        let fixed = |size: i32, len: usize, of: DeviceArray| {
            let mut parts = empty(&fixed(of.data_type().clone(), size));
            parts.children = vec![of];
            of_len(len, parts)
        };
        // Text whose extent is known only from its offsets.
        let text = |offsets: &[i64]| {
            let mut parts = target
                .import(&(Arc::new(LargeBinaryArray::from_vec(vec![b"abcd"])) as ArrayRef))
                .into_parts();
            let offsets: ArrayRef = Arc::new(Int64Array::from(offsets.to_vec()));
            parts.buffers[0] = target.import(&offsets).buffers()[0].clone();
            let bytes = &parts.buffers[1];
            // SAFETY: the same memory and owner. No byte of it is read: its rows are refused for their
            // lengths.
            parts.buffers[1] = unsafe { Buffer::new(bytes.address(), None, bytes.owner().clone()) };
            of_len(offsets.len() - 1, parts)
        };
        // Rows 0, 2, 4 ... have all elements; the other rows have negative lengths, and are not requested.
        let overlapping: Vec<i64> = (0..3001).map(|i| i % 2 * HUGE).chain([HUGE]).collect();
        let narrow = |len: i32| {
            let mut parts = empty(&list(DataType::Null));
            let offsets: ArrayRef = Arc::new(Int32Array::from(vec![0, len]));
            (parts.buffers, parts.children) =
                (target.import(&offsets).buffers().to_vec(), vec![nulls(len.into())]);
            of_len(1, parts)
        };
        let arrays = [
            ("a list", large(&overlapping, nulls(HUGE)), true),
            ("text", text(&overlapping), true),
            ("a list inside", fixed(1, 3000, large(&overlapping, nulls(HUGE))), false),
            ("text inside", large(&[0, 1], text(&[0, HUGE])), false),
            ("items of items", large(&[0, HUGE / 16], fixed(16, HUGE as usize / 16, nulls(HUGE))), false),
            ("32 bits", narrow(i32::MAX), false),
        ];
        for (what, array, filtered) in arrays {
            for times in [4, 5, 8, 1500] {
                let by: ArrayRef = Arc::new(Int32Array::from(vec![0; times]));
                let taken = take(&array, &target.import(&by), &TakeOptions::default(), &target.stream).wait();
                // A sum beyond the range of offsets is the caller's error; a product of lengths exceeds any
                // memory.
                let refused = match what {
                    // A few ranges exceed memory by their product, many already by their sum.
                    "items of items" => {
                        matches!(taken, Err(Error::OutOfMemory { .. } | Error::Invalid { .. }))
                    }
                    _ => matches!(taken, Err(Error::Invalid { .. })),
                };
                assert!(refused, "{times} times {what}: {taken:?}");
                let mask =
                    BooleanArray::from_iter((0..array.len()).map(|i| Some(i % 2 == 0 && i < 2 * times)));
                if filtered {
                    let mask = target.import(&(Arc::new(mask) as ArrayRef));
                    let kept = filter(&array, &mask, &target.stream).wait();
                    assert!(matches!(kept, Err(Error::Invalid { .. })), "{times} rows of {what}: {kept:?}");
                }
            }
        }
        let by = target.import(&(Arc::new(Int32Array::from(vec![0])) as ArrayRef));
        let one = take(&large(&[0, HUGE], nulls(HUGE)), &by, &TakeOptions::default(), &target.stream)
            .wait()
            .unwrap();
        assert_eq!(one.children()[0].len(), HUGE as usize, "as many as there are");
    }
}

#[test]
fn bytes_of_unknown_extent_end_with_the_last_offset() {
    let values: ArrayRef = Arc::new(StringArray::from_iter_values((0..300).map(|i| "ab".repeat(i % 9))));
    for target in gpus() {
        let mut parts = target.import(&values).into_parts();
        let bytes = &parts.buffers[1];
        // SAFETY: the same memory and owner; the offsets say how far it reaches.
        parts.buffers[1] = unsafe { Buffer::new(bytes.address(), None, bytes.owner().clone()) };
        let ours = DeviceArray::try_new(parts).unwrap();
        let by = indices(&DataType::UInt8, 900, 256, Nulls::Some, &mut Random::new(6));
        let taken = take(&ours, &target.import(&by), &TakeOptions::default(), &target.stream).wait().unwrap();
        target.assert_same(&taken, &arrow_select::take::take(&values, &by, None).unwrap(), &"unknown extent");
    }
}
