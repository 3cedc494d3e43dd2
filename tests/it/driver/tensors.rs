//! Tests DLPack tensors in every kind of memory that a runtime has: another library's tensor comes in as
//! Arrow, goes out as a tensor with its device, and comes in again, without a copy.

use std::rc::Rc;
use std::sync::Arc;

use arrow_array::{BooleanArray, Int64Array};
use bowstring::compute::tensors::{export_tensor, import_tensor};
use bowstring::device::testing;
use bowstring::exchange::to_arrow;
use bowstring::ffi::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor};

use super::foreign::{Stranger, close, kinds};
use super::*;
use crate::exchange::foreign::{Releases, structs};

fn through<T: ManagedTensor>(
    native: &Native,
    ours: &bowstring::DeviceArray,
) -> (i32, i32, usize, bowstring::DeviceArray) {
    // The CPU can work on memory that the host can access; the tensor still names its device.
    let stream = native.device.stream().unwrap();
    let tensor = export_tensor::<T>(ours, &stream, None).unwrap();
    let said = *tensor.managed().tensor();
    let again = import_tensor(tensor, &stream).unwrap();
    (said.device.device_type, said.device.device_id, said.data.addr(), again)
}

#[test]
fn tensors_of_every_kind_of_memory_say_so_and_come_back() {
    for native in Native::all().into_iter().map(Rc::new) {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..90));
        let booleans: ArrayRef = Arc::new(BooleanArray::from_iter((0..90).map(|i| Some(i % 3 == 1))));
        let own = native.device.place();
        for kind in kinds(&native) {
            for theirs in [&numbers, &booleans] {
                let context = format!("{native:?}: {} in {kind}", theirs.data_type());
                let releases = Releases::default();
                let mut stranger = Stranger::new(&native, theirs, kind, &releases);
                let ours = stranger.import(&native, theirs.data_type());
                stranger.gate.open();
                let shared = theirs.data_type() == &DataType::Int64;
                for (there, id, address, again) in [
                    through::<DLManagedTensor>(&native, &ours),
                    through::<DLManagedTensorVersioned>(&native, &ours),
                ] {
                    // Booleans are rebuilt if the stream's device has its own memory.
                    let expected = if shared { kind } else { own.device_type };
                    assert_eq!((there, i64::from(id)), (expected as i32, own.device_id), "{context}");
                    assert_eq!(address == ours.buffers()[0].address(), shared, "{context}");
                    assert_eq!(again.place().device_type, expected, "{context}");
                    let stream = native.device.stream().unwrap();
                    let back = to_arrow(&stream.download(&again).unwrap()).unwrap();
                    assert_same_rows(&rows(&back), &rows(theirs), &context);
                }
                drop(ours);
                testing::drain(&native.device);
                assert_eq!(releases.count(), structs(&theirs.to_data()), "{context}");
                stranger.end(&native);
            }
        }
        close(native);
    }
}
