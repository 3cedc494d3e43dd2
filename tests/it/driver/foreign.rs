//! Tests arrays that come from and go to another library on the same runtime, which uses only the C structs
//! and the runtime's own functions.

use std::ffi::c_void;
use std::ptr::without_provenance;
use std::rc::Rc;

use arrow_schema::Field;
use bowstring::compute::{CastOptions, cast, filter, null_count};
use bowstring::device::testing;
use bowstring::exchange::{export_array, from_arrow, import_array, to_arrow};
use bowstring::ffi::{ArrowDeviceArray, DeviceType};

use super::*;
use crate::exchange::foreign::{Elsewhere, RawArray, RawDeviceArray, Releases, produce_in, schema, structs};
use crate::support::native::Gate;

/// An array of another library. Its own stream fills the memory, after a gate, and records the array's event;
/// release overwrites the memory.
pub(super) struct Stranger {
    array: ArrowDeviceArray,
    pub(super) gate: Gate,
    stream: usize,
    event: Box<usize>,
    memory: Vec<usize>,
    kind: DeviceType,
}

impl Stranger {
    pub(super) fn new(
        native: &Rc<Native>,
        array: &ArrayRef,
        kind: DeviceType,
        releases: &Releases,
    ) -> Stranger {
        let stream = native.stranger();
        let gate = native.gate(stream);
        let mut memory = vec![];
        let mut put = |bytes: &[u8]| {
            let len = bytes.len();
            // SAFETY: the functions write an address.
            let address = native.made(|raw, to| unsafe {
                match kind {
                    DeviceType::CudaManaged => (raw.alloc_managed)(to, len, 1),
                    DeviceType::CudaHost | DeviceType::RocmHost => (raw.alloc_pinned)(to, len, 1),
                    _ => (raw.alloc)(to, len),
                }
            });
            // SAFETY: the stranger keeps the bytes until release, and the memory to the end of the test.
            let copied = native.raw(|raw| unsafe { (raw.copy_in)(address, bytes.as_ptr(), len, stream) });
            assert_eq!(copied, 0);
            memory.push(address);
            let owner = native.clone();
            // Overwrites the memory on a stream of its own: a late reader sees the damage.
            let spoil = move || {
                // SAFETY: the memory is there to the end of the test.
                owner.raw(|raw| unsafe {
                    let mut stream = 0;
                    (raw.stream)(&mut stream, 1, 0);
                    (raw.fill)(address, 0xdb, len, stream);
                    (raw.synchronise)(stream);
                    (raw.destroy_stream)(stream);
                });
            };
            Elsewhere { pointer: without_provenance(address), spoil: Box::new(spoil) }
        };
        let made: RawArray = produce_in(&array.to_data(), 0, releases, Some(&mut put));
        let event = Box::new(native.recorded(stream));
        let raw = RawDeviceArray {
            device_id: native.device.place().device_id,
            device_type: kind as i32,
            sync_event: std::ptr::from_ref(&*event).cast_mut().cast::<c_void>(),
            ..made.on_cpu()
        };
        Stranger { array: raw.into_ours(), gate, stream, event, memory, kind }
    }

    /// Writes to the array's memory on its own stream, after the gate, and records its event again after the
    /// write. The bytes must stay valid until then.
    fn write(&self, native: &Native, address: usize, bytes: &[u8]) {
        // SAFETY: the memory and the event are the stranger's own; no consumer waits for the event before the
        // import.
        let done = native.raw(|raw| unsafe {
            [
                (raw.copy_in)(address, bytes.as_ptr(), bytes.len(), self.stream),
                (raw.record)(*self.event, self.stream),
            ]
        });
        assert_eq!(done, [0; 2]);
    }

    pub(super) fn import(&mut self, native: &Native, data_type: &DataType) -> bowstring::DeviceArray {
        // SAFETY: a valid struct, with an event that lives to the end of the test.
        unsafe { import_array(&mut self.array, &schema(data_type), &native.device) }.unwrap().1
    }

    /// Destroys the event and creates another, which is destroyed as usual.
    pub fn destroy_event(&mut self, native: &Native) {
        // SAFETY: its own event.
        assert_eq!(native.raw(|raw| unsafe { (raw.destroy_event)(*self.event) }), 0);
        // SAFETY: the function writes a handle.
        *self.event = native.made(|raw, event| unsafe { (raw.event)(event, 2) });
    }

    /// Frees everything, once all work has passed.
    pub(super) fn end(self, native: &Native) {
        let pinned = matches!(self.kind, DeviceType::CudaHost | DeviceType::RocmHost);
        native.raw(|raw| {
            // SAFETY: the stranger's own, and no other code uses any of it any more.
            unsafe {
                // This stream's own work may be all that was ever done with the array.
                assert_eq!((raw.synchronise)(self.stream), 0);
                for address in self.memory {
                    let freed = if pinned { (raw.free_pinned)(address) } else { (raw.free)(address) };
                    assert_eq!(freed, 0);
                }
                assert_eq!((raw.destroy_event)(*self.event), 0);
                assert_eq!((raw.destroy_stream)(self.stream), 0);
            }
        });
    }
}

/// The device types of a runtime, except for managed memory on a real GPU, which can hang some machines.
pub(super) fn kinds(native: &Native) -> Vec<DeviceType> {
    match (native.is_rocm(), native.standin) {
        (true, _) => vec![DeviceType::Rocm, DeviceType::RocmHost],
        (false, Some(_)) => vec![DeviceType::Cuda, DeviceType::CudaHost, DeviceType::CudaManaged],
        (false, None) => vec![DeviceType::Cuda, DeviceType::CudaHost],
    }
}

pub(super) fn close(native: Rc<Native>) {
    Rc::into_inner(native).expect("nothing of the stranger is left").close();
}

#[test]
fn an_import_waits_for_nothing_and_its_use_waits_on_the_stream() {
    for native in Native::all().into_iter().map(Rc::new) {
        for data_type in kinds_of_buffers() {
            for kind in kinds(&native) {
                let context = format!("{native:?}: {data_type} in {kind}");
                let (theirs, releases) = (sample(&data_type, 90), Releases::default());
                let mut stranger = Stranger::new(&native, &theirs, kind, &releases);
                let waited = native.device.host_synchronisations();
                let ours = stranger.import(&native, &data_type);
                assert_eq!(ours.place().device_type, kind, "{context}");
                let field = Field::new("x", data_type.clone(), true);
                let schema = std::sync::Arc::new(arrow_schema::Schema::new(vec![field]));
                let batch = bowstring::DeviceBatch::try_new(schema, vec![ours], 90).unwrap();
                let stream = native.device.stream().unwrap();
                let back = stream.download_later(&batch).unwrap();
                assert_eq!(native.device.host_synchronisations(), waited, "{context}");
                // The batch is dropped before any read: its source must stay until the work has passed.
                drop(batch);
                assert_eq!(releases.count(), 0, "{context}");
                stranger.gate.open();
                let back = back.wait().unwrap();
                // The one synchronisation reads sizes that only the device knows: the ends of strings, the
                // lengths of a view's data.
                let unknown = matches!(
                    data_type,
                    DataType::Utf8
                        | DataType::LargeBinary
                        | DataType::Utf8View
                        | DataType::Struct(_)
                        | DataType::Dictionary(..)
                );
                let looks = native.device.host_synchronisations() - waited;
                assert_eq!(looks, u64::from(unknown), "{context}");
                assert_same_rows(&rows(&to_arrow(&back.columns()[0]).unwrap()), &rows(&theirs), &context);
                drop((back, stream));
                testing::drain(&native.device);
                assert_eq!(releases.count(), structs(&theirs.to_data()), "{context}");
                stranger.end(&native);
            }
        }
        close(native);
    }
}

#[test]
fn operations_take_memory_of_every_kind() {
    for native in Native::all().into_iter().map(Rc::new) {
        let kinds = kinds(&native);
        let types = [DataType::Int64, DataType::Utf8, DataType::Utf8View, list_of_text(), runs_of_text()];
        let on_gpus = |data_type: &DataType| !matches!(data_type, DataType::RunEndEncoded(..));
        for (kind, data_type) in kinds.iter().flat_map(|kind| types.clone().map(|of| (*kind, of))) {
            let context = format!("{native:?}: {data_type} in {kind}");
            let (theirs, releases) = (sample(&data_type, 200), Releases::default());
            let mut stranger = Stranger::new(&native, &theirs, kind, &releases);
            let ours = stranger.import(&native, &data_type);
            stranger.gate.open();
            let stream = native.device.stream().unwrap();
            let mask = arrow_array::BooleanArray::from_iter((0..200).map(|i| Some(i % 3 != 1)));
            let there: ArrayRef = std::sync::Arc::new(mask.clone());
            let there = stream.upload(&from_arrow(&there).unwrap()).unwrap();
            let expected = arrow_select::filter::filter(&theirs, &mask).unwrap();
            if on_gpus(&data_type) {
                let kept = filter(&ours, &there, &stream).wait().unwrap();
                let back = to_arrow(&stream.download(&kept).unwrap()).unwrap();
                assert_same_rows(&rows(&back), &rows(&expected), &context);
            }
            // The same array on the CPU: the host waits for its event once, then checks the ends that an
            // import before the event could not see.
            if kind.host_accessible() {
                let cpu = bowstring::Stream::cpu();
                for same in [cpu.upload(&ours).unwrap(), cpu.download(&ours).unwrap()] {
                    assert_eq!((same.place(), same.len()), (ours.place(), ours.len()), "{context}");
                }
                assert_eq!(
                    null_count(&ours, &cpu).wait().unwrap(),
                    theirs.null_count(),
                    "{context} on the CPU"
                );
                let kept = filter(&ours, &from_arrow(&mask).unwrap(), &cpu).wait().unwrap();
                assert_same_rows(&rows(&to_arrow(&kept).unwrap()), &rows(&expected), &context);
                assert_same_rows(&rows(&to_arrow(&ours).unwrap()), &rows(&theirs), &context);
                let sliced = ours.slice(3, 150).unwrap();
                let kept = cast(&sliced, &data_type, &CastOptions::default(), &cpu).wait().unwrap();
                assert_same_rows(&rows(&to_arrow(&kept).unwrap()), &rows(&theirs.slice(3, 150)), &context);
            }
            drop((ours, there, stream));
            testing::drain(&native.device);
            assert_eq!(releases.count(), structs(&theirs.to_data()), "{context}");
            stranger.end(&native);
        }
        close(native);
    }
}

fn list_of_text() -> DataType {
    DataType::new_list(DataType::Utf8, true)
}

fn runs_of_text() -> DataType {
    let ends = Field::new("run_ends", DataType::Int32, false);
    DataType::RunEndEncoded(ends.into(), Field::new("values", DataType::Utf8, true).into())
}

#[test]
fn a_host_that_waits_for_memory_it_shares_counts_that_once() {
    let native = Rc::new(Native::standin(DeviceType::Cuda, 0));
    let (theirs, releases) = (sample(&DataType::Utf8, 60), Releases::default());
    let mut stranger = Stranger::new(&native, &theirs, DeviceType::CudaHost, &releases);
    let ours = stranger.import(&native, &DataType::Utf8);
    stranger.gate.open();
    let waited = native.device.host_synchronisations();
    for _ in 0..3 {
        let same =
            cast(&ours, &DataType::LargeUtf8, &CastOptions::default(), &bowstring::Stream::cpu()).wait();
        assert_same_rows(&rows(&to_arrow(&same.unwrap()).unwrap()), &rows(&theirs), &"cast");
    }
    assert_eq!(native.device.host_synchronisations() - waited, 1);
    drop(ours);
    stranger.end(&native);
    close(native);
}

#[test]
fn ends_that_are_wrong_are_seen_when_the_host_may_look() {
    let native = Rc::new(Native::standin(DeviceType::Cuda, 0));
    let (text, list) = (DataType::Utf8, list_of_text());
    for (data_type, buffer, at) in [(&text, 1, "array.buffers[1]"), (&list, 1, "array.children[0]")] {
        let (theirs, releases) = (sample(data_type, 60), Releases::default());
        let mut stranger = Stranger::new(&native, &theirs, DeviceType::CudaHost, &releases);
        let raw = RawDeviceArray::of(&stranger.array);
        // SAFETY: the array has offsets, after a gate that no one waits for yet.
        let offsets = unsafe { (*raw.array.buffers.add(buffer)).addr() };
        // The value is read once the gate opens.
        let last = if *data_type == text { -1 } else { i32::MAX };
        let last = last.to_ne_bytes();
        let end = offsets + 60 * 4;
        // The last of 61 offsets.
        stranger.write(&native, end, &last);
        let ours = stranger.import(&native, data_type);
        stranger.gate.open();
        let error = null_count(&ours, &bowstring::Stream::cpu()).wait().unwrap_err();
        assert!(matches!(&error, bowstring::Error::OutOfSpec { at: found, .. } if found == at), "{error:?}");
        assert!(to_arrow(&ours).is_err());
        drop(ours);
        stranger.end(&native);
    }
    close(native);
}

#[test]
fn views_whose_sizes_are_on_the_device_are_cast_and_passed_on() {
    for native in Native::all().into_iter().map(Rc::new) {
        let kind = native.device.place().device_type;
        let (theirs, releases) = (sample(&DataType::Utf8View, 90), Releases::default());
        let mut stranger = Stranger::new(&native, &theirs, kind, &releases);
        let ours = stranger.import(&native, &DataType::Utf8View);
        assert!(ours.buffers().iter().skip(1).any(|buffer| buffer.bytes().is_none()), "there is such data");
        // The array is passed on as it came, with its sizes, and without waiting.
        let waited = native.device.host_synchronisations();
        let field = Field::new("f", DataType::Utf8View, true);
        let (mut exported, schema) = export_array(&ours.slice(5, 80).unwrap(), &field).unwrap();
        // SAFETY: the library's own structs.
        let (_, again) = unsafe { import_array(&mut exported, &schema, &native.device) }.unwrap();
        assert_eq!(native.device.host_synchronisations(), waited, "{native:?}");
        stranger.gate.open();
        let stream = native.device.stream().unwrap();
        let down =
            |array: &bowstring::DeviceArray| rows(&to_arrow(&stream.download(array).unwrap()).unwrap());
        assert_same_rows(&down(&again), &rows(&theirs.slice(5, 80)), &native.name);
        let text = cast(&ours, &DataType::Utf8, &CastOptions::default(), &stream).wait().unwrap();
        assert_same_rows(&down(&text), &rows(&theirs), &native.name);
        drop((ours, again, text, stream));
        testing::drain(&native.device);
        assert_eq!(releases.count(), 1, "{native:?}");
        stranger.end(&native);
        close(native);
    }
}

/// Reads the first value of an array of 64-bit values as a consumer in C does: after its event, on its own
/// stream.
fn read(native: &Native, array: &ArrowDeviceArray) -> i64 {
    let raw_array = RawDeviceArray::of(array);
    let (stream, mut first) = (native.stranger(), [0u8; 8]);
    native.raw(|raw| {
        // SAFETY: the event is live until release; the array has a value at least.
        unsafe {
            let event = raw_array.sync_event.cast::<usize>();
            if !event.is_null() {
                assert_eq!((raw.wait)(stream, *event, 0), 0);
            }
            let values = (*raw_array.array.buffers.add(1)).addr();
            assert_eq!((raw.copy_out)(first.as_mut_ptr(), values, 8, stream), 0);
            assert_eq!((raw.synchronise)(stream), 0);
            assert_eq!((raw.destroy_stream)(stream), 0);
        }
    });
    i64::from_ne_bytes(first)
}

#[test]
fn exports_are_read_behind_their_event_and_released_in_any_order_on_any_thread() {
    for native in Native::all() {
        let stranger = native.stranger();
        // SAFETY: the stranger's stream lives to the end of the test.
        let stream =
            unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(stranger)) }.unwrap();
        let field = Field::new("f", DataType::Int64, true);
        let column = |i: i64| -> ArrayRef { std::sync::Arc::new(arrow_array::Int64Array::from(vec![i; 50])) };
        let gate = native.gate(stranger);
        let exported: Vec<_> = (0..6)
            .map(|i| {
                let there = stream.upload(&from_arrow(&column(i)).unwrap()).unwrap();
                export_array(&there, &field).unwrap().0
            })
            .collect();
        drop(stream);
        assert!(exported.iter().all(|array| !RawDeviceArray::of(array).sync_event.is_null()));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(3));
                gate.open();
            });
            for (i, array) in exported.iter().enumerate() {
                assert_eq!(read(&native, array), i as i64, "{native:?}");
            }
        });
        let [a, b, c, d, e, f]: [_; 6] = exported.try_into().unwrap_or_else(|_| panic!("six"));
        std::thread::scope(|scope| {
            scope.spawn(|| drop((d, a)));
            scope.spawn(|| drop(f));
            drop((e, b, c));
        });
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}
