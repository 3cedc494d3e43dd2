//! Tests consumers that release our memory while their own work still reads it: new data must not be put
//! there before that work has passed.

use std::ffi::c_void;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::Field;
use bowstring::compute::tensors::export_tensor;
use bowstring::device::testing;
use bowstring::exchange::{Lent, export_array, from_arrow, import_array};
use bowstring::ffi::dlpack::{DLManagedTensor, ManagedTensor};
use bowstring::{DeviceArray, Stream};

use super::*;

const ROWS: i64 = 5000;
/// The handle of the legacy default stream.
const LEGACY: usize = 0;

/// A consumer, by the way in which it got the memory.
#[derive(Clone, Copy, Debug)]
enum Consumer {
    /// Through DLPack, on the legacy default stream, which it named.
    Legacy,
    /// The same, without naming a stream.
    Silent,
    /// Through DLPack, on a stream of its own that waits for no other, and that it still holds wrapped.
    Wrapped,
    /// The same on one of our streams.
    Ours,
    /// Through Arrow's interface, which names no streams, on a stream that the legacy default stream waits
    /// for.
    Arrow,
    /// By its address, which is all that the CUDA array interface gives.
    Address,
}

fn upload(stream: &Stream, first: i64) -> DeviceArray {
    let host: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + ROWS));
    stream.upload(&from_arrow(&host).unwrap()).unwrap()
}

fn wrapped(device: &Device, handle: usize) -> Stream {
    // SAFETY: the tests keep their streams to the end, and the default stream is there for ever.
    unsafe { device.wrap_stream(std::ptr::without_provenance_mut(handle)) }.unwrap()
}

/// Exported memory: its keeper, its address, and the native stream that reads it.
struct Reads {
    kept: Box<dyn Send>,
    address: usize,
    stream: usize,
    handle: Option<Stream>,
}

impl Consumer {
    fn reads(self, native: &Native, device: &Device, array: &DeviceArray) -> Reads {
        let (stream, handle) = match self {
            Consumer::Legacy => (LEGACY, Some(wrapped(device, LEGACY))),
            Consumer::Silent => (LEGACY, None),
            Consumer::Wrapped => {
                let stranger = native.stranger();
                (stranger, Some(wrapped(device, stranger)))
            }
            Consumer::Ours => {
                let ours = device.stream().unwrap();
                (ours.native_handle().map(<*mut c_void>::addr).unwrap(), Some(ours))
            }
            Consumer::Arrow | Consumer::Address => (native.stranger_with(0), None),
        };
        if let Consumer::Arrow = self {
            let field = Field::new("x", array.data_type().clone(), false);
            let (exported, _) = export_array(array, &field).unwrap();
            let address = array.buffers()[0].address();
            array.wait().unwrap();
            return Reads { kept: Box::new(exported), address, stream, handle };
        }
        if let Consumer::Address = self {
            let address = array.buffers()[0].address();
            array.wait().unwrap();
            return Reads { kept: Box::new(Lent::new(array.clone())), address, stream, handle };
        }
        let own = device.stream().unwrap();
        // The consumer names the stream by a handle that lives as long as the tensor, as in Python.
        let named = handle.as_ref().map(|held| match self {
            Consumer::Ours => held.clone(),
            _ => wrapped(device, stream),
        });
        let tensor = export_tensor::<DLManagedTensor>(array, &own, named.as_ref()).unwrap();
        let address = tensor.managed().tensor().data.addr();
        Reads { kept: Box::new(tensor), address, stream, handle }
    }
}

/// Queues a copy of the memory after a gate, releases the memory at once, runs `next`, and returns the copied
/// values.
fn read_late(native: &Native, reads: Reads, next: impl FnOnce()) -> Vec<i64> {
    let bytes = 8 * ROWS as usize;
    // A copy to other memory would wait for the gate.
    // SAFETY: the function writes an address.
    let pinned = native.made(|raw, to| unsafe { (raw.alloc_pinned)(to, bytes, 1) });
    let to = std::ptr::with_exposed_provenance_mut::<u8>(pinned);
    let gate = native.gate(reads.stream);
    // SAFETY: memory of as many rows, which is there until the stream was waited for.
    let queued = native.raw(|raw| unsafe { (raw.copy_out)(to, reads.address, bytes, reads.stream) });
    assert_eq!(queued, 0);
    // If freeing memory waits for queued work, the last owner of a device waits for its consumer. So the
    // release runs on another thread, because this one opens the gate.
    let kept = reads.kept;
    let release = std::thread::spawn(move || drop(kept));
    for _ in 0..100 {
        if release.is_finished() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    next();
    gate.open();
    release.join().unwrap();
    // SAFETY: a live stream.
    assert_eq!(native.raw(|raw| unsafe { (raw.synchronise)(reads.stream) }), 0);
    // SAFETY: memory that has been written.
    let copied = unsafe { std::slice::from_raw_parts(to.cast::<i64>(), ROWS as usize) }.to_vec();
    // SAFETY: nothing uses it any more.
    assert_eq!(native.raw(|raw| unsafe { (raw.free_pinned)(pinned) }), 0);
    copied
}

#[test]
fn what_a_consumer_still_reads_is_not_overwritten() {
    let expected: Vec<i64> = (0..ROWS).collect();
    for native in Native::all() {
        use Consumer::*;
        for consumer in [Legacy, Silent, Wrapped, Ours, Arrow, Address] {
            let (stream, device) = (native.device.stream().unwrap(), &native.device);
            let array = upload(&stream, 0);
            let mut reads = consumer.reads(&native, device, &array);
            let (its_stream, handle) = (reads.stream, reads.handle.take());
            let copied = read_late(&native, reads, || {
                drop(array);
                for round in 1..4 {
                    upload(&stream, round * ROWS).wait().unwrap();
                }
            });
            assert_eq!(copied, expected, "{native:?}: {consumer:?}");
            drop(handle);
            // Memory that was kept for the consumer is returned.
            testing::drain(device);
            assert_eq!(device.memory_usage().in_use, 0, "{native:?}: {consumer:?}");
            if let Wrapped | Arrow | Address = consumer {
                destroy_stream(&native, its_stream);
            }
        }
        native.close();
    }
}

/// An array of another library's is passed on to a consumer that has named a stream, for which no other
/// waits.
#[test]
fn what_is_passed_on_is_kept_for_its_reader_too() {
    for native in Native::all() {
        let owner = testing::separate(&native.device).unwrap();
        let stream = owner.stream().unwrap();
        let array = upload(&stream, 0);
        let field = Field::new("x", array.data_type().clone(), false);
        let (mut exported, schema) = export_array(&array, &field).unwrap();
        // SAFETY: the library's own structs.
        let (_, passed_on) = unsafe { import_array(&mut exported, &schema, &native.device) }.unwrap();
        drop((array, exported));
        let mut reads = Consumer::Wrapped.reads(&native, &native.device, &passed_on);
        let (its_stream, handle) = (reads.stream, reads.handle.take());
        let copied = read_late(&native, reads, || {
            drop(passed_on);
            for round in 1..4 {
                upload(&stream, round * ROWS).wait().unwrap();
            }
        });
        assert_eq!(copied, (0..ROWS).collect::<Vec<_>>(), "{native:?}");
        drop(handle);
        testing::drain(&native.device);
        drop((stream, owner));
        destroy_stream(&native, its_stream);
        native.close();
    }
}

/// The consumer's stream was wrapped through another handle of the GPU than the one whose memory it reads.
#[test]
fn a_wrapped_stream_is_known_to_every_handle_of_its_gpu() {
    for native in Native::all() {
        let owner = testing::separate(&native.device).unwrap();
        let stream = owner.stream().unwrap();
        let array = upload(&stream, 0);
        let mut reads = Consumer::Wrapped.reads(&native, &native.device, &array);
        let (its_stream, handle) = (reads.stream, reads.handle.take());
        let copied = read_late(&native, reads, || {
            drop(array);
            for round in 1..4 {
                upload(&stream, round * ROWS).wait().unwrap();
            }
        });
        assert_eq!(copied, (0..ROWS).collect::<Vec<_>>(), "{native:?}");
        drop((handle, stream, owner));
        destroy_stream(&native, its_stream);
        native.close();
    }
}

/// Pinned memory beyond what is kept is not freed where a consumer releases it, but by the next download.
#[test]
fn large_downloads_are_let_go_of_in_callbacks_too() {
    for native in Native::standins() {
        let stream = native.device.stream().unwrap();
        let stranger = native.stranger();
        let large: ArrayRef = Arc::new(arrow_array::UInt8Array::from(vec![7; 300 << 20]));
        let there = stream.upload(&from_arrow(&large).unwrap()).unwrap();
        let down = stream.download(&there).unwrap();
        let (exported, _) = export_array(&down, &Field::new("x", down.data_type().clone(), false)).unwrap();
        drop(down);
        native.call(stranger, move || drop(exported));
        // SAFETY: a live stream.
        assert_eq!(native.raw(|raw| unsafe { (raw.synchronise)(stranger) }), 0);
        assert_eq!(stream.download(&there.slice(0, 1).unwrap()).unwrap().len(), 1);
        drop((there, stream));
        destroy_stream(&native, stranger);
        native.close();
    }
}

#[test]
fn without_the_fence_the_next_operation_overwrites_it() {
    for native in Native::standins() {
        let stream = native.device.stream().unwrap();
        native.device.set_export_fence(false);
        let array = upload(&stream, 0);
        let reads = Consumer::Silent.reads(&native, &native.device, &array);
        let copied = read_late(&native, reads, || {
            drop(array);
            upload(&stream, ROWS).wait().unwrap();
        });
        assert_eq!(copied, (ROWS..2 * ROWS).collect::<Vec<_>>(), "{native:?}");
        drop(stream);
        native.close();
    }
}

#[test]
fn what_outlives_its_device_is_kept_for_its_consumer_too() {
    for native in Native::all() {
        let other = testing::separate(&native.device).unwrap();
        let array = upload(&other.stream().unwrap(), 0);
        let reads = Consumer::Silent.reads(&native, &other, &array);
        drop((array, other));
        let copied = read_late(&native, reads, || {});
        assert_eq!(copied, (0..ROWS).collect::<Vec<_>>(), "{native:?}");
        native.close();
    }
}

#[test]
fn memory_is_let_go_of_in_callbacks_too_and_at_once_where_that_is_asked_for() {
    for native in Native::all() {
        let (device, stranger) = (&native.device, native.stranger());
        let stream = device.stream().unwrap();
        let release = |array: DeviceArray| {
            let reads = Consumer::Silent.reads(&native, device, &array);
            drop(array);
            reads.kept
        };
        let kept = release(upload(&stream, 0));
        native.call(stranger, move || drop(kept));
        // SAFETY: a live stream.
        assert_eq!(native.raw(|raw| unsafe { (raw.synchronise)(stranger) }), 0);
        assert!(
            device.memory_usage().in_use > 0,
            "{native:?}: until somebody looks at the consumer's stream"
        );
        testing::drain(device);
        assert_eq!(device.memory_usage().in_use, 0, "{native:?}");
        device.set_export_fence(false);
        drop(release(upload(&stream, 0)));
        assert_eq!(device.memory_usage().in_use, 0, "{native:?}");
        drop(stream);
        destroy_stream(&native, stranger);
        native.close();
    }
}
