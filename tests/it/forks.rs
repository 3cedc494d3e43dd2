//! Tests forking processes, as Python's `os.fork` and `multiprocessing` do: the child has one thread and goes
//! on using the library.

use arrow_array::{BooleanArray, Int32Array, Int64Array};
use arrow_schema::{DataType, Field};
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, null_count, take};
use bowstring::device::testing::ManualEvent;
use bowstring::exchange::{export_array, export_dlpack, from_arrow, import_array, to_arrow};
use bowstring::ffi::dlpack::DLManagedTensor;
use bowstring::{DeviceArray, Stream};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{children, work};

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;
    fn _exit(code: c_int) -> !;
}

/// Forks, runs `work` in the child, and returns the child's exit status; `None` if it did not end within
/// `limit`.
fn forked(limit: Duration, work: impl FnOnce()) -> Option<c_int> {
    // SAFETY: as for any program; the child only runs `work` and ends.
    let child = unsafe { fork() };
    assert!(child >= 0, "a child");
    if child == 0 {
        let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok();
        // SAFETY: ends the process at once.
        unsafe { _exit(if passed { 0 } else { 1 }) };
    }
    let begun = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: `status` is there to be written. 1 is WNOHANG.
        if unsafe { waitpid(child, &mut status, 1) } == child {
            return Some(status);
        }
        if begun.elapsed() > limit {
            // SAFETY: a process of ours, which is then waited for.
            unsafe { kill(child, 9) };
            // SAFETY: as above.
            unsafe { waitpid(child, &mut status, 0) };
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs each operation on enough rows for several threads.
fn operations(rows: usize) {
    let values: DeviceArray = from_arrow(&Int64Array::from_iter_values(0..rows as i64)).unwrap();
    let mask = from_arrow(&(0..rows).map(|row| Some(row % 2 == 0)).collect::<BooleanArray>()).unwrap();
    let stream = Stream::cpu();
    let kept = filter(&values, &mask, &stream).wait().unwrap();
    assert_eq!(kept.len(), rows.div_ceil(2));
    let taken = take(
        &kept,
        &from_arrow(&Int64Array::from_iter_values(0..kept.len() as i64)).unwrap(),
        &TakeOptions::default(),
        &stream,
    )
    .wait();
    let narrow = cast(&taken.unwrap(), &DataType::Int32, &CastOptions::default(), &stream).wait().unwrap();
    assert_eq!(null_count(&narrow, &stream).wait().unwrap(), 0);
    let expected = Int32Array::from_iter_values((0..rows as i32).step_by(2));
    assert_eq!(to_arrow(&narrow).unwrap().as_ref(), &expected);
}

/// Runs all operations and ignores their results.
fn all_operations(rows: usize) {
    for work in work::all(rows) {
        (work.run)().unwrap_or_else(|error| panic!("{}: {error}", work.name));
    }
    work::to_arrow_and_back(rows).unwrap();
}

/// This test forks, so it runs in a process of its own.
#[test]
fn a_child_computes_and_its_children_do() {
    const NAME: &str = "forks::a_child_computes_and_its_children_do";
    if children::case().is_none() {
        return children::run(NAME, "fork", None, 120, &[]);
    }
    let limit = Duration::from_secs(40);
    assert_eq!(forked(limit, || operations(500_000)), Some(0), "before any use");
    operations(500_000);
    assert_eq!(forked(limit, || operations(1000)), Some(0), "small");
    all_operations(300_000);
    assert_eq!(forked(limit, || all_operations(300_000)), Some(0), "all operations");
    let nested = || {
        operations(500_000);
        assert_eq!(forked(limit, || operations(500_000)), Some(0), "a child's child");
        operations(500_000);
    };
    assert_eq!(forked(limit, nested), Some(0), "after use");
    operations(500_000);
}

/// Another thread may be anywhere during a fork: inside the pool of host memory, or starting threads.
#[test]
fn a_fork_leaves_no_lock_behind() {
    const NAME: &str = "forks::a_fork_leaves_no_lock_behind";
    if children::case().is_none() {
        return children::run(NAME, "locks", None, 200, &[]);
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(bowstring::Device::cpu().host_pool().alloc(4096));
                }
            });
        }
        let work = || drop(bowstring::Device::cpu().host_pool().alloc(4096).unwrap());
        let hung = (0..500).filter(|_| forked(Duration::from_secs(10), work) != Some(0)).count();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(hung, 0, "children that did not end");
    });
}

/// Without threads, all work runs in the calling thread.
#[test]
fn threads_that_cannot_be_started_are_done_without() {
    const NAME: &str = "forks::threads_that_cannot_be_started_are_done_without";
    if children::case().is_none() {
        return children::run(NAME, "threads", Some(1500), 120, &[("RAYON_NUM_THREADS", "4000")]);
    }
    operations(500_000);
    all_operations(300_000);
}

/// Devices other than the CPU do not survive a fork; using one in the child is an error.
#[test]
fn a_gpu_that_the_parent_opened_is_an_error() {
    const NAME: &str = "forks::a_gpu_that_the_parent_opened_is_an_error";
    if children::case().is_none() {
        return children::run(NAME, "gpu", None, 60, &[]);
    }
    let stream = bowstring::Device::emulated().stream().unwrap();
    let values = from_arrow(&Int32Array::from(vec![1, 2])).unwrap();
    let there = stream.upload(&values).unwrap();
    there.wait().unwrap();
    let (event, field) = (ManualEvent::pending(), Field::new("x", DataType::Int32, true));
    let (mut exported, schema) = export_array(&there, &field).unwrap();
    // SAFETY: the field of the event comes after 96 bytes of others.
    unsafe { (&raw mut exported).cast::<u8>().add(96).cast::<*mut c_void>().write(event.pointer()) };
    // SAFETY: the library's own structs, with another event.
    let (_, foreign) = unsafe { import_array(&mut exported, &schema, stream.device()) }.unwrap();
    let work = || {
        let refused = |error: Option<bowstring::Error>| {
            assert!(matches!(error, Some(bowstring::Error::NoDevice { .. })), "{error:?}");
        };
        refused(stream.upload(&values).err());
        refused(stream.copy(&there).err());
        refused(stream.synchronise().err());
        refused(stream.mark().err());
        refused(foreign.wait().err());
        refused(foreign.ready().unwrap().is_ready().err());
        refused(export_dlpack::<DLManagedTensor>(&foreign, Some(&stream)).err());
        // Nothing is asked of the device for an array that is known to be there.
        there.wait().unwrap();
    };
    assert_eq!(forked(Duration::from_secs(20), work), Some(0));
    // Another thread may hold any lock of the device's while a child is made that drops arrays.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    drop(stream.upload(&values).unwrap());
                }
            });
        }
        let hung = (0..100).filter(|_| {
            let taken = stream.upload(&values).unwrap();
            forked(Duration::from_secs(10), || drop((taken, there.clone()))) != Some(0)
        });
        let hung = hung.count();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(hung, 0, "children that did not end");
    });
}
