//! Tests arrays that go out and come in again many times: what keeps their memory does not grow with each
//! round.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int32Array};
use arrow_schema::Field;
use bowstring::exchange::{export_array, from_arrow, import_array, to_arrow};
use bowstring::{Device, DeviceArray, Stream};

use super::samples;
use crate::support::devices;

/// So many nested owners would overflow the stack of the thread that drops them.
const ROUNDS: usize = 300;
const STACK: usize = 48 << 10;

fn again(array: &DeviceArray, field: &Field, device: &Device) -> DeviceArray {
    let (mut exported, schema) = export_array(array, field).unwrap();
    // SAFETY: the library's own structs.
    unsafe { import_array(&mut exported, &schema, device) }.unwrap().1
}

fn rounds(array: DeviceArray, rounds: usize, device: &Device) -> DeviceArray {
    let field = Field::new("x", array.data_type().clone(), true);
    (0..rounds).fold(array, |array, _| again(&array, &field, device))
}

fn dropped_on_a_small_stack(array: DeviceArray) {
    let small = std::thread::Builder::new().stack_size(STACK);
    small.spawn(move || drop(array)).unwrap().join().unwrap();
}

#[test]
fn an_array_that_comes_and_goes_often_is_dropped_at_once() {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter((0..100).map(|i| (i % 7 != 0).then_some(i))));
    for array in samples::all().into_iter().chain([numbers]) {
        for array in [array.clone(), array.slice(array.len() / 3, array.len() / 2), array.slice(0, 0)] {
            let last = rounds(from_arrow(&array).unwrap(), ROUNDS, &Device::cpu());
            assert_eq!(&to_arrow(&last).unwrap(), &array, "{}", array.data_type());
            dropped_on_a_small_stack(last);
        }
    }
}

#[test]
fn an_array_on_a_device_does_too() {
    for target in devices() {
        let stream: &Stream = &target.stream;
        for array in samples::all() {
            let there = stream.upload(&from_arrow(&array).unwrap()).unwrap();
            there.wait().unwrap();
            let last = rounds(there, 20, stream.device());
            assert_eq!(&to_arrow(&stream.download(&last).unwrap()).unwrap(), &array, "{}", array.data_type());
        }
    }
    let stream = Device::emulated().stream().unwrap();
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
    let there = stream.upload(&from_arrow(&numbers).unwrap()).unwrap();
    there.wait().unwrap();
    let last = rounds(there, ROUNDS, stream.device());
    assert_eq!(&to_arrow(&stream.download(&last).unwrap()).unwrap(), &numbers);
    dropped_on_a_small_stack(last);
}
