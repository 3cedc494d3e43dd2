//! Changes valid struct trees at random: arrays, schemas and streams. The outcome is always an array or an
//! error, without crash, panic, hang or leak, and each struct is released once. An accepted array is used,
//! validated or not. `BOWSTRING_CASES=1000000` runs that many cases instead of a few; a failure names its
//! case, and `BOWSTRING_FIRST` starts with a case.
//!
//! The changes leave out undetectable errors: a buffer smaller than the structs say. So if structs change,
//! nothing grows beyond the spare bytes after each buffer, and an array with another type than its schema
//! says is only imported. If contents change, buffers have no spare bytes.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int32Array};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bowstring::compute::*;
use bowstring::device::testing::{self, Alive, EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{export_array, from_arrow, to_arrow, validate, validate_on};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{DeviceArray, Stream};

use super::foreign::{RawArray, RawDeviceArray, Releases, import_on, produce, produce_with, schema, structs};
use super::foreign_schema::RawSchema;
use super::foreign_stream::{RawStream, Step, read};
use crate::support::*;

/// The spare bytes after the buffers of structs that may claim a little more than there is.
const SPARE: usize = 2048;

/// Selects any struct of a tree, with the data that it was made from.
fn somewhere<'a>(
    mut array: &'a mut RawArray,
    mut data: &'a ArrayData,
    rng: &mut Random,
) -> (&'a mut RawArray, &'a ArrayData) {
    while !data.child_data().is_empty() && !rng.percent(40.0) {
        let child = rng.below(data.child_data().len());
        array = match data.data_type() {
            DataType::Dictionary(..) => array.dictionary(),
            _ => array.child(child),
        };
        data = &data.child_data()[child];
    }
    (array, data)
}

/// Changes the fields of a struct.
fn bend(array: &mut RawArray, data: &ArrayData, rng: &mut Random) {
    let views = matches!(data.data_type(), DataType::Utf8View | DataType::BinaryView);
    let wild = [-1, -2, i64::MIN, i64::MAX, i64::MAX / 2];
    // Arrays without memory may have any length, but their rows cannot be written out.
    let limit = if *data.data_type() == DataType::Null { 0 } else { i64::MAX };
    let wild = wild[rng.below(wild.len())].min(limit);
    let buffers = array.n_buffers.max(0) as usize;
    match rng.below(12) {
        0 => array.length = if rng.percent(50.0) { wild } else { array.length + 1 },
        1 => array.length = rng.below(array.length.max(0) as usize + 1) as i64,
        2 => array.offset = if rng.percent(50.0) { wild } else { array.offset + 1 },
        3 => array.null_count = if rng.percent(50.0) { wild } else { rng.below(9) as i64 },
        // A wrong number of buffers cannot be detected.
        4 if !views => array.n_buffers = if rng.percent(30.0) { wild } else { rng.below(buffers + 1) as i64 },
        5 => array.n_children = if rng.percent(30.0) { wild } else { rng.below(4) as i64 },
        6 => array.buffers = std::ptr::null_mut(),
        7 | 8 if buffers > 0 && !array.buffers.is_null() => *array.buffer(rng.below(buffers)) = null(),
        9 => array.children = std::ptr::null_mut(),
        10 => array.dictionary = std::ptr::null_mut(),
        _ => array.null_count = -1,
    }
}

/// Changes the contents of a buffer.
fn spoil(array: &mut RawArray, data: &ArrayData, rng: &mut Random) {
    let bitmap = usize::from(arrow_data::layout(data.data_type()).can_contain_null_mask);
    if data.buffers().is_empty() {
        return;
    }
    let which = rng.below(data.buffers().len());
    let len = data.buffers()[which].len();
    let address = array.buffer(bitmap + which).cast_mut().cast::<u8>();
    let width = [1, 2, 4, 8, 16][rng.below(5)];
    if len < width || address.is_null() {
        return;
    }
    let at = rng.below(len / width) * width;
    let extent = match data.data_type() {
        DataType::Utf8 | DataType::Binary => 4,
        DataType::LargeUtf8 | DataType::LargeBinary => 8,
        _ => 0,
    };
    let last = (data.offset() + data.len()) * extent;
    // The last offset determines the number of bytes: it may only get smaller.
    if which == 0 && extent > 0 && at + width > last {
        // SAFETY: the buffer has that many bytes.
        return unsafe { address.add(last).write_bytes(0, extent) };
    }
    let bytes = match rng.below(4) {
        0 => vec![0xff; width],
        1 => vec![0; width],
        2 => [vec![0xff; width - 1], vec![0x7f]].concat(),
        _ => rng.bytes(width),
    };
    // SAFETY: the buffer has that many bytes, and is `produce`'s.
    unsafe { address.add(at).copy_from_nonoverlapping(bytes.as_ptr(), width) };
}

/// Changes one field of a schema.
fn distort(schema: &mut FFI_ArrowSchema, rng: &mut Random) {
    // SAFETY: both have the ABI's layout.
    let mut at = unsafe { &mut *std::ptr::from_mut(schema).cast::<RawSchema>() };
    while at.n_children > 0 && rng.percent(50.0) {
        // SAFETY: the index is less than the number of children.
        at = unsafe { &mut **at.children.add(rng.below(at.n_children as usize)) };
    }
    // SAFETY: arrow-rs' formats are terminated strings of its own.
    let len = unsafe { std::ffi::CStr::from_ptr(at.format) }.to_bytes().len();
    match rng.below(4) {
        0 => at.flags = rng.bits() as i64,
        1 => at.n_children = [-1, i64::MIN, 0, 1, 2][rng.below(5)].min(at.n_children),
        _ if len > 0 => {
            let byte = if rng.percent(80.0) {
                b"nbcCsSiIlLefgzZuUvwdtTDm+:0123456789,Ylz"[rng.below(40)]
            } else {
                1 + rng.below(255) as u8
            };
            // SAFETY: inside the string, whose end stays.
            unsafe { at.format.cast_mut().add(rng.below(len)).write(byte as c_char) };
        }
        _ => {}
    }
}

/// Uses an array in every way.
fn exercise(array: &DeviceArray, stream: &Stream) {
    let on = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let len = array.len();
    if len <= 1000 {
        let mask = on(Arc::new(BooleanArray::from_iter((0..len).map(|row| Some(row % 3 != 0)))));
        let indices = on(Arc::new(Int32Array::from_iter((0..len as i32).rev())));
        let down = |result: bowstring::Result<DeviceArray>| {
            result.and_then(|array| to_arrow(&stream.download(&array)?))
        };
        let _ = down(filter(array, &mask, stream).wait()).map(|array| rows(&array));
        let _ = down(take(array, &indices, &TakeOptions::default(), stream).wait()).map(|array| rows(&array));
        for to in [DataType::Utf8, DataType::Int64, array.data_type().clone()] {
            let _ = down(cast(array, &to, &CastOptions::default(), stream).wait());
        }
        let _ = down(is_null(array, stream).wait());
        let _ = down(drop_nulls(array, &DropOptions::default(), stream).wait());
    }
    let _ = null_count(array, stream).wait();
    let _ = logical_null_count(array, stream).wait();
    let _ = validate_on(array, stream);
    let field = arrow_schema::Field::new("f", array.data_type().clone(), true);
    drop(export_array(array, &field));
}

/// Runs one case; returns whether it ended with an array.
fn one(case: u64, emulator: &EmulatedDevice) -> bool {
    let rng = &mut Random::new(case);
    let types = types();
    let data_type = match rng.percent(60.0) {
        true => types[rng.below(types.len())].clone(),
        false => nested(&types, rng),
    };
    let nulls = Nulls::ALL[rng.below(5)];
    let values = array(&data_type, 3 + rng.below(40), nulls, rng);
    let values = values.slice(rng.below(3), values.len() - 2);
    let data = values.to_data();
    let (releases, mut said) = (Releases::default(), schema(&data_type));
    let (contents, mut distorted) = (rng.percent(50.0), false);
    let spare = if contents { 0 } else { SPARE };
    let mut raw = produce_with(&data, (rng.below(2) * 3, spare), &releases, None);
    for _ in 0..1 + rng.below(3) {
        // Only one kind of change: with other rows, another offset would be the last.
        match contents {
            true => {
                let (at, of) = somewhere(&mut raw, &data, rng);
                spoil(at, of, rng);
            }
            false if rng.percent(80.0) => {
                // Only one struct: a change may hide its children.
                let (at, of) = somewhere(&mut raw, &data, rng);
                bend(at, of, rng);
                break;
            }
            false => {
                distort(&mut said, rng);
                distorted = true;
            }
        }
    }
    let on_emulator = rng.percent(30.0) && contents;
    let device = if on_emulator { emulator.device().clone() } else { bowstring::Device::cpu() };
    let place = device.place();
    let foreign =
        RawDeviceArray { device_id: place.device_id, device_type: place.device_type as i32, ..raw.on_cpu() };
    let stream = device.stream().unwrap();
    if rng.percent(15.0) && !on_emulator {
        let valid = produce(&data, 0, &releases).on_cpu();
        let steps = vec![Step::Give(valid), Step::Give(foreign), Step::End];
        let mut given = RawStream::new(data_type, steps, &releases).into_ours();
        for array in read(&mut given, &device).into_iter().flatten() {
            let Ok(array) = array else { break };
            exercise(&array, &stream);
        }
        drop(given);
        assert_eq!(releases.count(), 2 * structs(&data) + 1, "released");
        return false;
    }
    let mut foreign = foreign.into_ours();
    let imported = import_on(&device, &mut foreign, &said);
    let passed = imported.is_ok();
    if let (Ok((_, array)), false) = (imported, distorted) {
        if place == bowstring::array::Place::CPU && array.len() <= 1000 && validate(&array).is_ok() {
            rows(&to_arrow(&array).unwrap());
        }
        exercise(&array, &stream);
        let _ = array.slice(1, array.len().saturating_sub(1)).map(|array| exercise(&array, &stream));
    }
    drop(foreign);
    testing::drain(&device);
    assert_eq!(releases.count(), structs(&data), "released");
    passed
}

fn nested(types: &[DataType], rng: &mut Random) -> DataType {
    let field = |name: &str, rng: &mut Random| {
        arrow_schema::Field::new(name, types[rng.below(types.len())].clone(), true)
    };
    match rng.below(3) {
        0 => DataType::List(Arc::new(field("item", rng))),
        1 => DataType::Struct(vec![field("a", rng), field("b", rng)].into()),
        _ => DataType::FixedSizeList(Arc::new(field("item", rng)), 2),
    }
}

#[test]
fn changed_structs_are_arrays_or_errors() {
    let number =
        |name: &str, otherwise| std::env::var(name).map_or(otherwise, |n| n.parse().expect("a number"));
    let (first, cases) = (number("BOWSTRING_FIRST", 0), number("BOWSTRING_CASES", 4000));
    let emulator = EmulatedDevice::new(EmulatorOptions { keep: Some(0), ..Default::default() }).unwrap();
    let (mut passed, mut failed) = (0, vec![]);
    for case in first..first + cases {
        if case % 10_000 == 0 && case > 0 {
            println!("case {case}, {} failed", failed.len());
        }
        match catch_unwind(AssertUnwindSafe(|| one(case, &emulator))) {
            Ok(array) => passed += u64::from(array),
            Err(_) => failed.push(case),
        }
    }
    println!("fuzz: {cases} cases, {passed} arrays in the end");
    // Both rejection and acceptance must occur often enough; a few cases alone may all have the same outcome.
    let both = passed * 10 > cases && passed * 10 < cases * 9;
    assert!(both || cases < 100, "{passed} of {cases} are arrays in the end");
    assert_eq!(emulator.faults(), []);
    assert_eq!(emulator.close().alive(), Alive::default());
    assert!(
        failed.is_empty(),
        "{} of {cases} cases, BOWSTRING_FIRST={}: {failed:?}",
        failed.len(),
        failed[0]
    );
}
