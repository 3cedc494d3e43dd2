//! Tests several devices, streams and threads at once, and streams of the caller.

use std::ptr::without_provenance_mut;

use bowstring::compute::null_count;
use bowstring::device::testing;
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, export_batch, from_arrow, to_arrow};
use bowstring::ffi::DeviceType;
use bowstring::{DeviceBatch, Error};

use super::*;

/// A batch with a column of each kind of buffer.
fn batch(rows: usize) -> arrow_array::RecordBatch {
    let columns = kinds_of_buffers().into_iter().enumerate();
    let columns = columns.map(|(i, data_type)| (format!("{i}"), sample(&data_type, rows), true));
    arrow_array::RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn a_batch_moves_across_devices_with_one_copy() {
    let (emulated, other) = ([0, 1].map(|_| EmulatedDevice::new(EmulatorOptions::default()).unwrap())).into();
    let emulated: [EmulatedDevice; 2] = [emulated, other];
    let standins = [DeviceType::Cuda, DeviceType::Rocm].map(|of| [0, 1].map(|i| Native::standin(of, i)));
    let mut pairs = vec![("emulator".to_owned(), emulated.each_ref().map(|device| device.device().clone()))];
    pairs.extend(
        standins.iter().map(|pair| (pair[0].name.clone(), pair.each_ref().map(|n| n.device.clone()))),
    );
    for (name, [from, to]) in &pairs {
        let (there, here) = (from.stream().unwrap(), to.stream().unwrap());
        let host = batch(100);
        let source = there.upload(&batch_from_arrow(&host).unwrap()).unwrap();
        let waited = (from.host_synchronisations(), to.host_synchronisations());
        let moved = here.transfer(&source, &there).unwrap();
        drop(source);
        if name == "emulator" {
            let copies = |device: &EmulatedDevice| device.calls().get("copy").copied().unwrap_or(0);
            assert_eq!(emulated.each_ref().map(copies), [0, 1], "one copy for all columns");
        }
        assert_eq!((from.host_synchronisations(), to.host_synchronisations()), waited, "{name}");
        assert!(moved.columns().iter().all(|column| column.place() == to.place()));
        let back = here.download(&moved).unwrap();
        for (ours, theirs) in back.columns().iter().zip(host.columns()) {
            assert_same_rows(&rows(&to_arrow(ours).unwrap()), &rows(theirs), &format_args!("{name}"));
        }
        // A column that is already here stays, and transfers between two runtimes are refused.
        let again = here.transfer(&moved.columns()[1], &there).unwrap();
        assert_eq!(again.buffers()[0].address(), moved.columns()[1].buffers()[0].address());
        // So does one beside another that comes.
        let all = there.upload(&batch_from_arrow(&host).unwrap()).unwrap();
        let mut mixed = all.columns().to_vec();
        mixed[1] = again.clone();
        let mixed = DeviceBatch::try_new(all.schema().clone(), mixed, all.len()).unwrap();
        let mixed = here.transfer(&mixed, &there).unwrap();
        assert_eq!(mixed.columns()[1].buffers()[0].address(), again.buffers()[0].address(), "{name}");
        assert!(mixed.columns().iter().all(|column| column.place() == to.place()), "{name}");
        let back = here.download(&mixed).unwrap();
        for (ours, theirs) in back.columns().iter().zip(host.columns()) {
            assert_same_rows(&rows(&to_arrow(ours).unwrap()), &rows(theirs), &format_args!("{name}"));
        }
        drop((all, mixed));
        let cpu = bowstring::Stream::cpu();
        assert!(matches!(cpu.transfer(&again, &here), Err(Error::Invalid { .. })));
        drop((moved, back, again, there, here));
        testing::drain(from);
        testing::drain(to);
    }
    drop(pairs);
    for device in emulated {
        assert_eq!(device.faults(), []);
        assert_eq!(device.close().alive(), Default::default());
    }
    standins.into_iter().flatten().for_each(Native::close);
}

#[test]
fn an_export_joins_several_events_without_the_host() {
    for native in Native::all() {
        let strangers = [native.stranger(), native.stranger()];
        // SAFETY: the strangers' streams live to the end of the test.
        let wrap = |handle| unsafe { native.device.wrap_stream(without_provenance_mut(handle)) }.unwrap();
        let streams = strangers.map(wrap);
        let host = sample(&DataType::Int64, 500);
        let gates = strangers.map(|stranger| native.gate(stranger));
        let columns = streams.each_ref().map(|stream| stream.upload(&from_arrow(&host).unwrap()).unwrap());
        let field = |name: &str| arrow_schema::Field::new(name, DataType::Int64, true);
        let schema = arrow_schema::Schema::new(vec![field("a"), field("b")]);
        let both = DeviceBatch::try_new(schema.into(), columns.into(), 500).unwrap();
        let waited = native.device.host_synchronisations();
        let (mut exported, schema) = export_batch(&both).unwrap();
        assert_eq!(native.device.host_synchronisations(), waited, "{native:?}");
        drop(both);
        // Its consumer waits for the one event; both columns are complete only when both gates are open.
        // SAFETY: the library's own structs.
        let again =
            unsafe { bowstring::exchange::import_batch(&mut exported, &schema, &native.device) }.unwrap();
        let reader = native.device.stream().unwrap();
        let back = reader.download_later(&again).unwrap();
        let [first, second] = gates;
        first.open();
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(!again.columns()[0].ready().unwrap().is_ready().unwrap(), "{native:?}");
        second.open();
        let back = back.wait().unwrap();
        for column in back.columns() {
            assert_same_rows(&rows(&to_arrow(column).unwrap()), &rows(&host), &native.name);
        }
        drop((again, back, reader, streams));
        testing::drain(&native.device);
        for stranger in strangers {
            destroy_stream(&native, stranger);
        }
        native.close();
    }
}

#[test]
fn default_streams_are_streams_also_from_many_threads() {
    for native in Native::all() {
        for handle in [0, 1, 2] {
            // SAFETY: default streams always live.
            let stream = unsafe { native.device.wrap_stream(without_provenance_mut(handle)) }.unwrap();
            assert_eq!(stream.native_handle().unwrap().addr(), handle);
            let host = sample(&DataType::Utf8, 200);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        for _ in 0..5 {
                            let there = stream.upload(&from_arrow(&host).unwrap()).unwrap();
                            assert_eq!(null_count(&there, &stream).wait().unwrap(), host.null_count());
                            let back = to_arrow(&stream.download(&there).unwrap()).unwrap();
                            assert_same_rows(
                                &rows(&back),
                                &rows(&host),
                                &format_args!("{native:?} {handle}"),
                            );
                        }
                    });
                }
            });
            stream.synchronise().unwrap();
        }
        testing::drain(&native.device);
        native.close();
    }
}

#[test]
fn the_calling_threads_default_stream_is_waited_for_and_waits() {
    for native in Native::all() {
        // SAFETY: default streams always live.
        let stream = unsafe { native.device.wrap_stream(without_provenance_mut(2)) }.unwrap();
        let host = sample(&DataType::Int64, 300);
        let gate = native.gate(2);
        let there = stream.upload(&from_arrow(&host).unwrap()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(!there.ready().unwrap().is_ready().unwrap(), "{native:?}: behind what was on it before");
        // Later work on the caller's stream comes after the upload.
        let behind = native.recorded(2);
        gate.open();
        let mut first = [0u8; 8];
        let address = there.buffers()[0].address();
        native.raw(|raw| {
            // SAFETY: the column has 300 values, which the stream has written by then.
            unsafe {
                assert_eq!((raw.copy_out)(first.as_mut_ptr(), address, 8, 2), 0);
                assert_eq!((raw.synchronise)(2), 0);
                assert_eq!((raw.destroy_event)(behind), 0);
            }
        });
        let values = arrow_array::cast::AsArray::as_primitive::<arrow_array::types::Int64Type>(&host);
        assert_eq!(i64::from_ne_bytes(first), values.value(0), "{native:?}");
        drop((there, stream));
        testing::drain(&native.device);
        native.close();
    }
}

#[test]
fn only_streams_that_say_so_wait_for_the_legacy_default_stream() {
    for native in Native::standins() {
        let host = sample(&DataType::Int64, 300);
        let blocking = native.stranger_with(0);
        // SAFETY: the streams live to the end of the test.
        let wrap = |handle| unsafe { native.device.wrap_stream(without_provenance_mut(handle)) }.unwrap();
        let (ours, theirs, legacy) = (native.device.stream().unwrap(), wrap(blocking), wrap(0));
        let up = |stream: &bowstring::Stream| stream.upload(&from_arrow(&host).unwrap()).unwrap();
        let passed = |array: &bowstring::DeviceArray| array.ready().unwrap().is_ready().unwrap();
        // Work on the legacy stream blocks blocking streams, and none of ours.
        let gate = native.gate(0);
        let (free, held) = (up(&ours), up(&theirs));
        free.wait().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert!(!passed(&held), "{native:?}");
        gate.open();
        held.wait().unwrap();
        drop((free, held));
        // Blocking streams block the legacy stream, too.
        let gate = native.gate(blocking);
        let (free, held) = (up(&ours), up(&legacy));
        free.wait().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert!(!passed(&held), "{native:?}");
        gate.open();
        held.wait().unwrap();
        drop((free, held, ours, theirs, legacy));
        testing::drain(&native.device);
        destroy_stream(&native, blocking);
        native.close();
    }
}

/// Counts the arrivals, and waits until both have arrived; returns whether they met.
fn meet(place: &std::sync::Mutex<usize>, came: &std::sync::Condvar) -> bool {
    let mut there = place.lock().unwrap();
    *there += 1;
    came.notify_all();
    let patience = std::time::Duration::from_secs(20);
    *came.wait_timeout_while(there, patience, |there| *there < 2).unwrap().0 == 2
}

/// On stand-ins: no runtime promises that two functions of the host run at the same time.
#[test]
fn two_streams_work_at_the_same_time() {
    for native in Native::standins() {
        let strangers = [native.stranger(), native.stranger()];
        let meeting = std::sync::Arc::new((std::sync::Mutex::new(0), std::sync::Condvar::new()));
        let (tell, told) = std::sync::mpsc::channel();
        // SAFETY: the strangers' streams live to the end of the test.
        let wrap = |handle| unsafe { native.device.wrap_stream(without_provenance_mut(handle)) }.unwrap();
        let streams = strangers.map(wrap);
        let host = sample(&DataType::Int64, 1000);
        let mut parts =
            streams.each_ref().map(|stream| uncounted(stream.upload(&from_arrow(&host).unwrap()).unwrap()));
        // Each stream's operation is between work that continues only when both are in the middle of it. If
        // any work of ours waited for the other stream, or the host waited for the first of them, the two
        // would never meet.
        for (i, stream) in streams.iter().enumerate() {
            let (meeting, tell) = (meeting.clone(), tell.clone());
            native.call(strangers[i], move || tell.send(meet(&meeting.0, &meeting.1)).unwrap());
            parts[i] = bowstring::compute::is_null(&parts[i], stream).wait().unwrap();
        }
        assert_eq!((told.recv(), told.recv()), (Ok(true), Ok(true)), "{native:?}");
        for (part, stream) in parts.iter().zip(&streams) {
            let nulls = to_arrow(&stream.download(part).unwrap()).unwrap();
            let nulls = arrow_array::cast::AsArray::as_boolean(&nulls).true_count();
            assert_eq!(nulls, host.null_count(), "{native:?}");
        }
        drop((parts, streams));
        testing::drain(&native.device);
        for stranger in strangers {
            destroy_stream(&native, stranger);
        }
        native.close();
    }
}

#[test]
fn priorities_are_the_runtimes() {
    for native in Native::standins() {
        let range = if native.is_rocm() { [-1, 1] } else { [-2, 0] };
        for (asked, given) in [(0, 0), (-1, -1), (i32::MIN, range[0]), (i32::MAX, range[1])] {
            let stream = native.device.stream_with_priority(asked).unwrap();
            let (handle, mut priority) = (stream.native_handle().unwrap().addr(), 77);
            // SAFETY: a live stream.
            native.raw(|raw| unsafe { (raw.priority)(handle, &mut priority) });
            assert_eq!(priority, given, "{native:?}: {asked}");
        }
        native.close();
    }
}

#[test]
fn a_thread_keeps_what_was_current_on_it() {
    for of in [DeviceType::Cuda, DeviceType::Rocm] {
        let (one, other) = (Native::standin(of, 0), Native::standin(of, 0));
        let stream = one.device.stream().unwrap();
        let nothing = one.current();
        let run =
            || stream.download(&stream.upload(&from_arrow(&sample(&DataType::Utf8, 9)).unwrap()).unwrap());
        run().unwrap();
        assert_eq!(one.current(), nothing);
        let (theirs, after) = other.raw(|_| {
            let theirs = other.current();
            run().unwrap();
            (theirs, other.current())
        });
        assert_eq!(theirs, after);
        assert_ne!(theirs, nothing);
        drop(stream);
        testing::drain(&one.device);
        one.close();
        other.close();
    }
}

#[test]
fn a_batch_round_trips_through_many_streams_at_once() {
    with_devices(|name, device| {
        let host = batch(40);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let stream = device.stream().unwrap();
                    for _ in 0..4 {
                        let there = stream.upload(&batch_from_arrow(&host).unwrap()).unwrap();
                        let reader = device.stream().unwrap();
                        let back = reader.download_later(&there).unwrap();
                        drop((there, reader));
                        assert_eq!(batch_to_arrow(&back.wait().unwrap()).unwrap(), host, "{name}");
                    }
                });
            }
        });
        testing::drain(device);
    });
}
