//! Tests devices from a user's view: copies in both directions, memory and its limits, allocators, several
//! devices at once.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use bowstring::compute::{CastOptions, cast, filter};
use bowstring::device::Allocator;
use bowstring::device::testing::{self, EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, to_arrow};
use bowstring::{Device, DeviceBatch, Error, Result, Stream};

use crate::support::*;

fn emulated() -> EmulatedDevice {
    EmulatedDevice::new(EmulatorOptions::default()).unwrap()
}

/// Several columns of every type, 100 in total.
fn wide(rows: usize) -> RecordBatch {
    let columns: Vec<ArrayRef> = (0..100)
        .zip(types().iter().cycle())
        .map(|(seed, data_type)| array(data_type, rows, Nulls::Some, &mut Random::new(seed)))
        .collect();
    let field =
        |(i, column): (usize, &ArrayRef)| Field::new(format!("{i}"), column.data_type().clone(), true);
    let schema = Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

#[test]
fn a_hundred_columns_move_in_one_copy_each_way() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let host = wide(50);
    let calls = |name| device.calls().get(name).copied().unwrap_or(0);
    let there = stream.upload(&batch_from_arrow(&host).unwrap()).unwrap();
    assert_eq!((calls("alloc"), calls("copy_in"), calls("copy_out")), (1, 1, 0));
    assert!(there.columns().iter().all(|column| column.place() == device.device().place()));
    let synchronised = device.device().host_synchronisations();
    let back = stream.download(&there).unwrap();
    assert_eq!(device.device().host_synchronisations(), synchronised, "downloads are asynchronous");
    assert_eq!(calls("copy_out"), 1);
    assert_eq!(calls("launch"), 1);
    for (ours, theirs) in back.columns().iter().zip(host.columns()) {
        assert_same_rows(&rows(&to_arrow(ours).unwrap()), &rows(theirs), &theirs.data_type());
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn large_columns_go_by_themselves_and_come_back_whole() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let column: ArrayRef =
        Arc::new((0..400_000i64).map(|i| (i % 3 != 0).then_some(i)).collect::<arrow_array::Int64Array>());
    let batch =
        RecordBatch::try_from_iter((0..5).map(|i| (format!("{i}"), column.slice(i, 399_000)))).unwrap();
    let there = stream.upload(&batch_from_arrow(&batch).unwrap()).unwrap();
    let back = stream.download(&there).unwrap();
    assert_eq!(batch_to_arrow(&back).unwrap(), batch);
    assert_eq!(device.calls()["copy_out"], 6, "five of values, one of all the bitmaps");
}

#[test]
fn what_is_on_a_device_stays_there_and_what_is_elsewhere_is_refused() {
    let (one, two) = (emulated(), emulated());
    let (one, two) = (one.device().stream().unwrap(), two.device().stream().unwrap());
    let host = from_arrow(&array(&types()[5], 10, Nulls::Some, &mut Random::new(1))).unwrap();
    let there = one.upload(&host).unwrap();
    assert_eq!(one.upload(&there).unwrap().buffers()[0].address(), there.buffers()[0].address());
    assert_eq!(Stream::cpu().upload(&host).unwrap().buffers()[0].address(), host.buffers()[0].address());
    for wrong in [two.upload(&there).err(), two.download(&there).err(), Stream::cpu().download(&there).err()]
    {
        assert!(matches!(wrong, Some(Error::Invalid { .. })), "{wrong:?}");
    }
}

#[test]
fn memory_is_bounded_used_again_and_given_back() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let host =
        from_arrow(&array(&arrow_schema::DataType::Int64, 10_000, Nulls::None, &mut Random::new(1))).unwrap();
    for _ in 0..100 {
        stream.upload(&host).unwrap();
    }
    let usage = device.device().memory_usage();
    assert_eq!((usage.misses, usage.hits), (1, 99), "in one stream memory is free at once");
    assert_eq!(usage.in_use, 0);
    assert_eq!(device.alive().allocations, 1);

    device.device().set_memory_limit(3 * usage.kept);
    let held: Vec<_> = (0..3).map(|_| stream.upload(&host).unwrap()).collect();
    let bytes = match stream.upload(&host) {
        Err(Error::OutOfMemory { bytes, device: bowstring::ffi::DeviceType::Emulated }) => bytes,
        other => panic!("{other:?}"),
    };
    assert!((80_000..90_000).contains(&bytes), "{bytes}");
    drop(held);
    stream.upload(&host).unwrap();
    device.device().set_memory_kept(0);
    stream.synchronise().unwrap();
    assert_eq!(device.device().memory_usage().kept, 0);
    drop(stream);
    assert_eq!(device.close().alive(), Default::default());
}

/// Runs in a child process, because a device reads the variable when it is created.
#[test]
fn a_variable_bounds_what_is_kept() {
    if std::env::var_os("BOWSTRING_KEEP").is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "device::a_variable_bounds_what_is_kept"]).env("BOWSTRING_KEEP", "0");
        let said = again.output().unwrap();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
        assert!(String::from_utf8_lossy(&said.stdout).contains("1 passed"));
        return;
    }
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = device.device().stream().unwrap();
    let host =
        from_arrow(&array(&arrow_schema::DataType::Int64, 1000, Nulls::None, &mut Random::new(1))).unwrap();
    for _ in 0..3 {
        stream.upload(&host).unwrap();
    }
    let usage = device.device().memory_usage();
    assert_eq!((usage.kept, usage.misses), (0, 3), "each from the runtime, and back to it");
}

#[test]
fn the_runtime_may_run_out_of_memory() {
    let device = EmulatedDevice::new(EmulatorOptions { memory: 1 << 20, ..Default::default() }).unwrap();
    let stream = device.device().stream().unwrap();
    let host = from_arrow(&array(&arrow_schema::DataType::Int64, 100_000, Nulls::None, &mut Random::new(1)))
        .unwrap();
    let first = stream.upload(&host).unwrap();
    assert!(matches!(stream.upload(&host), Err(Error::OutOfMemory { bytes: 800_000, .. })));
    drop(first);
    stream.upload(&host).unwrap();
}

/// An engine's arena, represented by another emulated device that allocates host memory.
#[derive(Default)]
struct Arena {
    blocks: Mutex<Vec<(usize, Vec<u8>)>>,
    freed: AtomicUsize,
    limit: usize,
}

// SAFETY: blocks are kept to the end of the test, disjoint and aligned.
unsafe impl Allocator for Arena {
    fn alloc(&self, bytes: usize, stream: *mut c_void) -> Result<usize> {
        assert!(!stream.is_null());
        let mut blocks = self.blocks.lock().unwrap();
        if blocks.len() == self.limit {
            return Err(Error::OutOfMemory { bytes, device: bowstring::ffi::DeviceType::Emulated });
        }
        let block = vec![0u8; bytes + 256];
        let address = block.as_ptr().expose_provenance().next_multiple_of(256);
        blocks.push((address, block));
        Ok(address)
    }

    unsafe fn free(&self, address: usize, bytes: usize, _stream: *mut c_void) {
        let blocks = self.blocks.lock().unwrap();
        assert!(blocks.iter().any(|(start, block)| *start == address && block.len() == bytes + 256));
        self.freed.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn an_allocator_of_the_users_is_used() {
    let arena = Arc::new(Arena { limit: 3, ..Default::default() });
    let device = emulated();
    let with_arena = device.device().with_allocator(arena.clone()).unwrap();
    let (stream, plain) = (with_arena.stream().unwrap(), device.device().stream().unwrap());
    let theirs = array(&types()[4], 100, Nulls::Some, &mut Random::new(1));
    let host = from_arrow(&theirs).unwrap();
    let there = stream.upload(&host).unwrap();
    assert_eq!(there.buffers()[0].address(), arena.blocks.lock().unwrap()[0].0);
    let back = plain.download(&there).unwrap();
    assert_same_rows(&rows(&to_arrow(&back).unwrap()), &rows(&theirs), &"through the arena");
    let more = [stream.upload(&host).unwrap(), stream.upload(&host).unwrap()];
    assert!(matches!(stream.upload(&host), Err(Error::OutOfMemory { .. })));
    drop((there, more, back));
    testing::drain(device.device());
    testing::drain(&with_arena);
    assert_eq!(arena.freed.load(Ordering::SeqCst), 3);
    assert!(Device::cpu().with_allocator(arena).is_err());
}

#[test]
fn a_wrapped_stream_is_the_callers() {
    let device = emulated();
    let own = device.device().stream().unwrap();
    let handle = own.native_handle().unwrap();
    // SAFETY: `own` outlives it, and bad handles are what the emulator can tell.
    let (wrapped, bad, cpu) = unsafe {
        (
            device.device().wrap_stream(handle).unwrap(),
            device.device().wrap_stream(std::ptr::without_provenance_mut(0xbad)),
            Device::cpu().wrap_stream(handle),
        )
    };
    assert!(matches!(bad, Err(Error::Driver { call: "check_stream", .. })));
    assert!(matches!(cpu, Err(Error::Invalid { .. })));
    let host = from_arrow(&array(&types()[3], 9, Nulls::Some, &mut Random::new(1))).unwrap();
    let there = wrapped.upload(&host).unwrap();
    drop(wrapped);
    drop(there);
    own.synchronise().unwrap();
    // A stream of ours is used again once it has no handle, and one of the caller's is not.
    let other = device.device().stream().unwrap();
    assert_ne!(other.native_handle(), Some(handle));
    drop(own);
    let streams = device.alive().streams;
    for _ in 0..100 {
        device.device().stream().unwrap().synchronise().unwrap();
    }
    let more = device.alive().streams - streams;
    assert!(more < 50, "{more} of 100 streams are new");
}

#[test]
fn devices_are_opened_by_type_and_number() {
    use bowstring::ffi::DeviceType::*;
    for id in [-1, 0, 7] {
        assert_eq!(Device::open(Cpu, id).unwrap().place(), Device::cpu().place());
    }
    assert_eq!(Device::open(Emulated, 0).unwrap().place(), Device::emulated().place());
    let none = i64::from(i32::MAX);
    for (kind, id) in
        [(Emulated, 1), (CudaHost, 0), (CudaManaged, 0), (RocmHost, 0), (Cuda, none), (Rocm, -1)]
    {
        let none = Device::open(kind, id);
        assert!(matches!(&none, Err(Error::NoDevice { device, .. }) if *device == kind), "{none:?}");
    }
}

#[test]
fn many_threads_and_streams_at_once() {
    let device = emulated();
    let batch = wide(20);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let stream = device.device().stream().unwrap();
                let ours: DeviceBatch = batch_from_arrow(&batch).unwrap();
                for _ in 0..10 {
                    let there = stream.upload(&ours).unwrap();
                    let other = device.device().stream().unwrap();
                    let back = other.download_later(&there).unwrap();
                    drop((there, other));
                    let back = back.wait().unwrap();
                    assert_same_rows(
                        &rows(&to_arrow(&back.columns()[7]).unwrap()),
                        &rows(batch.column(7)),
                        &"a column of many",
                    );
                }
            });
        }
    });
    assert_eq!(device.faults(), []);
    assert_eq!(device.close().alive(), Default::default());
}

#[test]
fn small_batches_ask_the_runtime_for_no_memory_once_they_have_run() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let columns = |n: u64| {
        let column = |seed| array(&arrow_schema::DataType::Int64, 8192, Nulls::Some, &mut Random::new(seed));
        RecordBatch::try_from_iter((0..n).map(|seed| (format!("{seed}"), column(seed)))).unwrap()
    };
    let calls = |name| device.calls().get(name).copied().unwrap_or(0);
    let mut launches = vec![];
    for n in [1, 10] {
        let there = stream.upload(&batch_from_arrow(&columns(n)).unwrap()).unwrap();
        let kind = Mask { percent: 50.0, run: 1, nulls: Nulls::Some };
        let keep: ArrayRef = Arc::new(mask(kind, 8192, &mut Random::new(1)));
        let keep = stream.upload(&from_arrow(&keep).unwrap()).unwrap();
        let work = || {
            drop(filter(&there, &keep, &stream).wait().unwrap());
            let column = &there.columns()[0];
            drop(
                cast(column, &arrow_schema::DataType::Int32, &CastOptions::default(), &stream)
                    .wait()
                    .unwrap(),
            );
            stream.synchronise().unwrap();
        };
        // Staging memory is still in flight when the second round wants some.
        (0..3).for_each(|_| work());
        let (allocs, pinned, events) = (calls("alloc"), calls("alloc_pinned"), calls("event"));
        let (before, waited) = (calls("launch"), device.device().host_synchronisations());
        for _ in 0..20 {
            work();
        }
        assert_eq!(calls("alloc"), allocs, "{n} columns");
        assert_eq!(calls("alloc_pinned"), pinned, "{n} columns");
        assert_eq!(calls("event"), events, "{n} columns");
        // The filter's total, and what the test itself waits for.
        assert_eq!(device.device().host_synchronisations() - waited, 2 * 20, "{n} columns");
        launches.push((calls("launch") - before) / 20);
    }
    assert_eq!(launches[0], launches[1], "columns of one width go together");
}
