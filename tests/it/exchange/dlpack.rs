//! Tests tensors in and out: element types, shapes, strides, offsets; and arrays that cannot be tensors.

use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::*;
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use bowstring::array::Place;
use bowstring::compute::tensors::{export_tensor, import_tensor};
use bowstring::exchange::{export_dlpack, from_arrow, import_dlpack, to_arrow, validate};
use bowstring::ffi::DeviceType;
use bowstring::ffi::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor as _};
use bowstring::{DeviceArray, Error, Stream, interruptible};

use super::foreign::Releases;
use super::foreign_tensor::{Tensor, look};
use super::samples;
use crate::support::{devices, uncounted};

const INT: (u8, u8) = (0, 32);

fn bytes(numbers: impl IntoIterator<Item = i32>) -> Vec<u8> {
    numbers.into_iter().flat_map(i32::to_ne_bytes).collect()
}

#[test]
fn every_number_type_comes_in_and_goes_out() {
    use DataType::*;
    let types = [
        (0, 8, Int8),
        (0, 16, Int16),
        (0, 32, Int32),
        (0, 64, Int64),
        (1, 8, UInt8),
        (1, 16, UInt16),
        (1, 32, UInt32),
        (1, 64, UInt64),
        (2, 16, Float16),
        (2, 32, Float32),
        (2, 64, Float64),
        (6, 8, Boolean),
    ];
    let numbers = Int32Array::from_iter_values((0..40).map(|i| i * 7 % 5));
    for (code, bits, data_type) in types {
        let array = cast(&numbers, &data_type).unwrap();
        let releases = Releases::default();
        let ours = from_arrow(&array.slice(3, 30)).unwrap();
        let exported = export_dlpack::<DLManagedTensorVersioned>(&ours, None).unwrap();
        let (raw, shape, strides, data) = look(&exported);
        assert_eq!((raw.code, raw.bits, raw.lanes, raw.device_type, raw.device_id), (code, bits, 1, 1, 0));
        assert_eq!((shape, strides), (vec![30], vec![1]));
        let expected_flags = if data_type == Boolean { 2 } else { 1 };
        assert_eq!(exported.managed().flags(), expected_flags, "{data_type}");

        for misalignment in [0, 1] {
            let mut moved = vec![0; misalignment];
            moved.extend(&data);
            let tensor = Tensor::new((code, bits), &[30], None, moved, misalignment as u64, &releases);
            let back = import_dlpack(tensor.legacy(), &Stream::cpu()).unwrap();
            validate(&back).unwrap();
            assert_eq!(&to_arrow(&back).unwrap(), &array.slice(3, 30), "{data_type}");
        }
        assert_eq!(releases.count(), 2);
        let back = import_dlpack(exported, &Stream::cpu()).unwrap();
        drop(ours);
        assert_eq!(&to_arrow(&back).unwrap(), &array.slice(3, 30), "{data_type}");
    }
}

#[test]
fn memory_is_shared_and_deleted_with_its_last_user() {
    let releases = Releases::default();
    let tensor = Tensor::new(INT, &[6], Some(&[1]), bytes(0..6), 0, &releases);
    let address = tensor.raw.data as usize;
    let ours = import_dlpack(tensor.versioned(), &Stream::cpu()).unwrap();
    assert_eq!(ours.buffers()[0].address(), address);
    let part = ours.slice(2, 3).unwrap();
    drop(ours);
    let out = export_dlpack::<DLManagedTensor>(&part, None).unwrap();
    drop(part);
    assert_eq!(look(&out).3, bytes(2..5));
    assert_eq!((look(&out).0.data as usize, releases.count()), (address + 8, 0));
    drop(out);
    assert_eq!(releases.count(), 1);
}

fn pairs(rows: std::ops::Range<i32>, each: i32) -> FixedSizeListArray {
    let item = Arc::new(Field::new("item", DataType::Int32, false));
    let values = Int32Array::from_iter_values(rows.start * each..rows.end * each);
    FixedSizeListArray::new(item, each, Arc::new(values), None)
}

#[test]
fn dimensions_are_fixed_size_lists() {
    let releases = Releases::default();
    let matrix = |strides| Tensor::new(INT, &[4, 3], strides, bytes(0..12), 0, &releases);
    for strides in [None, Some(&[3i64, 1][..])] {
        let ours = import_dlpack(matrix(strides).versioned(), &Stream::cpu()).unwrap();
        assert_eq!(&to_arrow(&ours).unwrap(), &(Arc::new(pairs(0..4, 3)) as ArrayRef));
        let out = export_dlpack::<DLManagedTensorVersioned>(&ours.slice(1, 2).unwrap(), None).unwrap();
        let (_, shape, strides, data) = look(&out);
        assert_eq!((shape, strides, data), (vec![2, 3], vec![3, 1], bytes(3..9)));
    }
    let cube = Tensor::new(INT, &[2, 3, 4], None, bytes(0..24), 0, &releases);
    let ours = import_dlpack(cube.versioned(), &Stream::cpu()).unwrap();
    validate(&ours).unwrap();
    let out = export_dlpack::<DLManagedTensor>(&ours.slice(1, 1).unwrap(), None).unwrap();
    let (_, shape, strides, data) = look(&out);
    assert_eq!((shape, strides, data), (vec![1, 3, 4], vec![12, 4, 1], bytes(12..24)));
    drop((out, ours));
    // The stride of a dimension of size one is not used.
    let row = Tensor::new(INT, &[1, 5], Some(&[-77, 1]), bytes(0..5), 0, &releases);
    let ours = import_dlpack(row.legacy(), &Stream::cpu()).unwrap();
    assert_eq!(&to_arrow(&ours).unwrap(), &(Arc::new(pairs(0..1, 5)) as ArrayRef));
    drop(ours);
    assert_eq!(releases.count(), 4);
}

#[test]
fn tensors_of_no_elements_need_no_memory() {
    let releases = Releases::default();
    for shape in [&[0i64][..], &[0, 3], &[3, 0], &[0, 0]] {
        let mut tensor = Tensor::new(INT, shape, Some(&vec![9; shape.len()]), vec![], 0, &releases);
        tensor.raw.data = null_mut();
        let ours = import_dlpack(tensor.versioned(), &Stream::cpu()).unwrap();
        assert_eq!(ours.len(), shape[0] as usize);
        validate(&ours).unwrap();
        let out = export_dlpack::<DLManagedTensorVersioned>(&ours, None).unwrap();
        assert_eq!(look(&out).1, shape);
    }
    assert_eq!(releases.count(), 4);
}

#[test]
fn what_is_no_array_is_refused_and_deleted_once() {
    type Bend = fn(&mut Tensor);
    let wrong: &[(Bend, &str)] = &[
        (|t| t.raw.ndim = 0, "tensor.ndim"),
        (|t| t.raw.ndim = -1, "tensor.ndim"),
        (|t| t.raw.ndim = i32::MAX, "tensor.ndim"),
        (|t| t.raw.shape = null_mut(), "tensor.shape"),
        (|t| t.raw.data = null_mut(), "tensor.data"),
        (|t| t.raw.byte_offset = u64::MAX, "tensor.shape"),
        (|t| t.raw.byte_offset = 1 << 63, "tensor.data"),
        (|t| t.raw.lanes = 4, "lanes"),
        (|t| t.raw.bits = 24, "24 bits"),
        (|t| (t.raw.code, t.raw.bits) = (4, 16), "code 4"),
        (|t| t.raw.code = 5, "code 5"),
        (|t| t.raw.device_type = 2, "device type 2"),
        (|t| t.raw.device_type = 99, "device type 99"),
        (|t| t.major = 2, "version 2.3"),
    ];
    for (i, (bend, named)) in wrong.iter().enumerate() {
        let releases = Releases::default();
        let mut tensor = Tensor::new(INT, &[6], None, bytes(0..6), 0, &releases);
        bend(&mut tensor);
        let error = import_dlpack(tensor.versioned(), &Stream::cpu()).unwrap_err();
        assert!(error.to_string().contains(named), "{i}: {error}");
        assert_eq!(releases.count(), 1, "{i}");
    }
    let shapes: &[(&[i64], Option<&[i64]>)] = &[
        (&[-1], None),
        (&[i64::MAX], None),
        (&[1 << 40, 1 << 40], None),
        (&[1 << 31, 1 << 30, 1 << 30], None),
        (&[3, -2], None),
        (&[6], Some(&[2])),
        (&[6], Some(&[-1])),
        (&[6], Some(&[0])),
        (&[2, 3], Some(&[1, 2])),
        (&[2, 3], Some(&[4, 1])),
    ];
    for (shape, strides) in shapes {
        let releases = Releases::default();
        let tensor = Tensor::new(INT, shape, *strides, bytes(0..6), 0, &releases);
        let error = import_dlpack(tensor.legacy(), &Stream::cpu()).unwrap_err();
        let expected = match strides {
            Some(_) => matches!(&error, Error::Invalid { problem, .. } if problem.contains("stride")),
            None => matches!(&error, Error::OutOfSpec { at, .. } if at.starts_with("tensor.")),
        };
        assert!(expected, "{shape:?} {strides:?}: {error}");
        assert_eq!(releases.count(), 1, "{shape:?}");
    }
}

#[test]
fn only_numbers_without_nulls_become_tensors() {
    for array in samples::all() {
        let exported = export_dlpack::<DLManagedTensorVersioned>(&from_arrow(&array).unwrap(), None);
        match exported {
            Ok(_) => {
                assert!(array.nulls().is_none());
                assert!(
                    matches!(array.data_type(), DataType::FixedSizeList(..))
                        || array.data_type().is_numeric()
                );
            }
            Err(Error::Invalid { problem, .. }) => assert!(array.is_nullable() && problem.contains("null")),
            Err(Error::Unsupported { .. }) => {
                assert!(!array.data_type().is_numeric() || array.data_type().is_decimal())
            }
            Err(other) => panic!("{}: {other}", array.data_type()),
        }
    }
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let inner = Int32Array::from(vec![Some(1), Some(2), None, Some(4), Some(5), Some(6)]);
    let lists = from_arrow(&FixedSizeListArray::new(item, 2, Arc::new(inner), None)).unwrap();
    assert!(matches!(export_dlpack::<DLManagedTensor>(&lists, None), Err(Error::Invalid { .. })));
    // The slice does not contain the null.
    let out = export_dlpack::<DLManagedTensor>(&lists.slice(2, 1).unwrap(), None).unwrap();
    assert_eq!(look(&out).3, bytes(5..7));
}

#[test]
fn tensors_come_and_go_on_every_device() {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1000));
    for target in devices() {
        let there = target.import(&numbers);
        let out = export_dlpack::<DLManagedTensorVersioned>(&there, Some(&target.stream)).unwrap();
        let place = there.place();
        let device = out.managed().tensor().device;
        assert_eq!(
            (device.device_type, device.device_id),
            (place.device_type as i32, place.device_id.max(0) as i32)
        );
        let back = import_dlpack(out, &target.stream).unwrap();
        drop(there);
        assert_eq!(back.place(), place);
        target.assert_same(&back, &numbers, &"tensor");
    }
}

/// Booleans as rows of `each` items, or plain ones.
fn booleans(rows: usize, each: Option<i32>) -> ArrayRef {
    let values = |n: usize| BooleanArray::from_iter((0..n).map(|i| Some(i * i % 7 < 3)));
    match each {
        None => Arc::new(values(rows)),
        Some(each) => {
            let item = Arc::new(Field::new("item", DataType::Boolean, false));
            Arc::new(FixedSizeListArray::new(item, each, Arc::new(values(rows * each as usize)), None))
        }
    }
}

#[test]
fn booleans_are_bytes_and_bits_on_every_device() {
    for target in devices() {
        for (each, at, len) in
            [(None, 0, 100), (None, 3, 70), (None, 5, 0), (Some(5), 0, 20), (Some(3), 2, 9), (Some(1), 4, 0)]
        {
            let array = booleans(100, each);
            let there = target.import(&array).slice(at, len).unwrap();
            let out = export_tensor::<DLManagedTensorVersioned>(&there, &target.stream, None).unwrap();
            let shape: Vec<i64> = [len as i64].into_iter().chain(each.map(i64::from)).collect();
            let dtype = out.managed().tensor().dtype;
            assert_eq!((dtype.code, dtype.bits, out.managed().flags()), (6, 8, 2));
            assert_eq!(out.managed().tensor().ndim as usize, shape.len());
            let back = import_tensor(out, &target.stream).unwrap();
            assert_eq!(back.place(), there.place());
            target.assert_same(&back, &array.slice(at, len), &format_args!("{each:?} {at}+{len}"));

            let out = export_tensor::<DLManagedTensor>(&there, &target.stream, Some(&target.stream));
            let back = import_tensor(out.unwrap(), &target.stream).unwrap();
            target.assert_same(&back, &array.slice(at, len), &"legacy");
        }
    }
}

/// More booleans than a thread converts at once; their number is no whole number of bytes.
#[test]
fn many_booleans_are_converted_in_parts_which_can_be_interrupted() {
    let rows = (2 << 20) + 13;
    let array: ArrayRef = Arc::new(BooleanArray::from_iter((0..rows).map(|i| Some(i % 7 < 3))));
    let ours = from_arrow(&array).unwrap().slice(5, rows - 5).unwrap();
    let export = || export_dlpack::<DLManagedTensorVersioned>(&ours, None);
    let import = |tensor| import_dlpack(tensor, &Stream::cpu());
    let back = import(export().unwrap()).unwrap();
    assert_eq!(&to_arrow(&back).unwrap(), &array.slice(5, rows - 5));
    let tensor = export().unwrap();
    let interrupted = |work: &dyn Fn() -> Option<Error>| interruptible(Duration::ZERO, || true, work);
    assert_eq!(interrupted(&|| export().err()), Some(Error::Interrupted));
    let tensor = Cell::new(Some(tensor));
    assert_eq!(interrupted(&|| import(tensor.take().unwrap()).err()), Some(Error::Interrupted));
}

#[test]
fn nulls_that_are_not_counted_are_where_a_device_can() {
    for target in devices() {
        let array: ArrayRef = Arc::new(Int32Array::from_iter((0..50).map(|i| (i != 7).then_some(i))));
        let item = Arc::new(Field::new("item", DataType::Int32, true));
        let lists: ArrayRef = Arc::new(FixedSizeListArray::new(item, 2, array.clone(), None));
        for (whole, clean, dirty) in [(array, 8..50, 0..8), (lists, 4..25, 3..5)] {
            let part = |rows: std::ops::Range<usize>| {
                uncounted(target.import(&whole).slice(rows.start, rows.len()).unwrap())
            };
            let export =
                |array: &DeviceArray| export_tensor::<DLManagedTensorVersioned>(array, &target.stream, None);
            match export(&part(dirty)) {
                Err(Error::Invalid { problem, .. }) => assert!(problem.contains("nulls"), "{problem}"),
                other => panic!("{other:?}"),
            }
            let there = part(clean.clone());
            let tensor = export(&there).unwrap();
            assert_eq!(tensor.managed().tensor().ndim, if clean.start == 8 { 1 } else { 2 });
            // This copies nothing.
            let values = if there.children().is_empty() { there } else { there.child_rows(0).unwrap() };
            let first = values.buffers()[0].address() + values.offset() * 4;
            assert_eq!(tensor.managed().tensor().data as usize, first);
        }
    }
}

#[test]
fn copies_on_a_device_share_nothing() {
    for target in devices().iter().filter(|target| target.name != "cpu") {
        for array in samples::all() {
            for &(at, len) in samples::SLICES {
                let there = target.import(&array.slice(at, len));
                let Some(copy) = target.answer(target.stream.copy(&there), array.data_type()) else {
                    continue;
                };
                target.assert_same(&copy, &array.slice(at, len), &format_args!("{at}+{len}"));
                for buffer in copy.buffers().iter().filter(|buffer| buffer.bytes() != Some(0)) {
                    assert!(there.buffers().iter().all(|other| other.address() != buffer.address()));
                }
            }
        }
    }
    assert!(matches!(
        Stream::cpu().copy(&from_arrow(&booleans(3, None)).unwrap()),
        Err(Error::Invalid { .. })
    ));
}

#[test]
fn addresses_that_are_nobodys_are_refused() {
    let releases = Releases::default();
    for (address, elements) in [(usize::MAX / 2 - 7, 2i64), (1 << 46, 1 << 56), (usize::MAX - 64, 1)] {
        let mut tensor = Tensor::new(INT, &[elements], None, bytes(0..2), 0, &releases);
        tensor.raw.data = std::ptr::without_provenance_mut(address);
        let error = import_dlpack(tensor.legacy(), &Stream::cpu()).unwrap_err();
        assert!(error.to_string().contains("past the end of memory"), "{error}");
    }
    assert_eq!(releases.count(), 3);
}

#[test]
fn tensors_say_where_their_memory_is() {
    // Export from memory that a device shares with the host, to the host: booleans get bytes of their own.
    let pinned = |array: ArrayRef| {
        let mut parts = from_arrow(&array).unwrap().into_parts();
        parts.place = Place { device_type: DeviceType::CudaHost, device_id: 0 };
        DeviceArray::try_new(parts).unwrap()
    };
    for (array, device_type) in [(booleans(9, None), 1), (Arc::new(Int32Array::from(vec![1, 2])) as _, 3)] {
        let array = pinned(array);
        let tensor = export_tensor::<DLManagedTensor>(&array, &Stream::cpu(), None).unwrap();
        assert_eq!(tensor.managed().tensor().device.device_type, device_type);
    }
    let refused = export_dlpack::<DLManagedTensor>(&pinned(booleans(9, None)), None);
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
}
