use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use arrow_array::{ArrayRef, BooleanArray, Int64Array};
use bowstring_kernels::memory::{In, TableRow};
use bowstring_kernels::reduce::bitmap::{NULL_COUNT, NullCount, NullCountRow, null_count_parts};
use bowstring_kernels::target::find;

use super::*;
use crate::device::testing::{EmulatedDevice, EmulatorOptions, Fault, ManualEvent, adopt};
use crate::exchange::from_arrow;

fn device(delay: u64) -> EmulatedDevice {
    let delay = Duration::from_micros(delay);
    EmulatedDevice::new(EmulatorOptions { delay, seed: 3, keep: Some(0), ..Default::default() }).unwrap()
}

pub(super) fn sample(len: i64) -> (DeviceArray, u64) {
    let values: ArrayRef = Arc::new((0..len).map(|i| (i % 7 != 2).then_some(i)).collect::<Int64Array>());
    (from_arrow(&values).unwrap(), values.null_count() as u64)
}

/// Counts an array's nulls into a region.
pub(super) fn count(pass: &mut Pass, array: &DeviceArray, extent: Option<u64>) -> Result<Region> {
    pass.input(array)?;
    let (words, offset) = match extent {
        None => validity(array),
        Some(bytes) => In::bitmap(array.validity().unwrap().buffer.address() as u64, bytes, 0),
    };
    let len = array.len() as u64;
    let parts = null_count_parts(len, pass.width());
    if words.is_absent() {
        return pass.zeroed(8);
    }
    let maps = pass.upload(&NullCountRow { words, offset, len }.words())?;
    let nulls = pass.zeroed(8)?;
    let args = NullCount { maps: maps.input(), count: 1, parts, nulls: nulls.out() };
    pass.launch(find(NULL_COUNT, &[]).unwrap(), &args)?;
    Ok(nulls)
}

/// The count that a pass reads from a region, and then the end of the pass.
pub(super) fn counted(mut pass: Pass, region: Region) -> Pending<u64> {
    let stream = pass.stream().clone();
    Pending::begin(&stream, async move {
        let words = pass.read(&[&region]).await?;
        pass.finish().map(|()| words[0])
    })
}

fn null_count(array: &DeviceArray, stream: &Stream) -> Result<u64> {
    let mut pass = Pass::begin("null_count", stream)?;
    let nulls = count(&mut pass, array, None)?;
    let words = block_on(pass.read(&[&nulls]))?;
    pass.finish()?;
    Ok(words[0])
}

/// A copy of an array's values. Waiting for it fails if the array has more nulls than `limit`.
pub(super) fn checked(array: &DeviceArray, limit: u64, stream: &Stream) -> Result<DeviceArray> {
    let mut pass = Pass::begin("checked", stream)?;
    let nulls = count(&mut pass, array, None)?;
    pass.report(&nulls, move |words| match words[0] > limit {
        true => Err(Error::IndexOutOfBounds { row: 0, index: words[0].into(), len: limit as usize }),
        false => Ok(()),
    })?;
    let mut parts = pass.parts(DataType::UInt64, 1);
    parts.buffers = vec![nulls.buffer()];
    let copy = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(copy)
}

#[test]
fn one_pass_waits_once_and_leaves_nothing() {
    let device = device(100);
    let stream = device.device().stream().unwrap();
    for len in [1, 64, 100_000] {
        let (array, nulls) = sample(len);
        let uploaded = stream.upload(&array).unwrap();
        let before = device.device().host_synchronisations();
        assert_eq!(null_count(&uploaded, &stream).unwrap(), nulls);
        assert_eq!(device.device().host_synchronisations() - before, 1);
    }
    drop(stream);
    assert_eq!(device.faults(), []);
    let closed = device.close().alive();
    assert_eq!(closed, Default::default());
}

#[test]
fn errors_of_kernels_surface_where_somebody_waits_and_in_what_was_made_from_them() {
    let device = device(100);
    let stream = device.device().stream().unwrap();
    let other = device.device().stream().unwrap();
    let array = stream.upload(&sample(70).0).unwrap();
    let before = device.device().host_synchronisations();
    let bad = checked(&array, 3, &stream).unwrap();
    let from_bad = checked(&bad, 3, &other).unwrap();
    let good = checked(&array, 10, &stream).unwrap();
    assert_eq!(device.device().host_synchronisations(), before, "nobody has waited yet");
    let error = Error::IndexOutOfBounds { row: 0, index: 10, len: 3 };
    for _ in 0..2 {
        assert_eq!(from_bad.ready().unwrap().wait(), Err(error.clone()));
        assert_eq!(bad.ready().unwrap().wait(), Err(error.clone()));
        assert_eq!(good.ready().unwrap().wait(), Ok(()));
        assert_eq!(null_count(&bad, &other), Err(error.clone()), "at the next synchronisation");
    }
}

#[test]
fn inputs_elsewhere_are_refused() {
    let (ours, theirs) = (device(0), device(0));
    let (ours, theirs) = (ours.device().stream().unwrap(), theirs.device().stream().unwrap());
    let array = theirs.upload(&sample(5).0).unwrap();
    assert!(matches!(null_count(&array, &ours), Err(Error::Invalid { .. })));
    assert!(matches!(null_count(&sample(5).0, &ours), Err(Error::Invalid { .. })));
    assert!(matches!(null_count(&array, &Stream::cpu()), Err(Error::Invalid { .. })));
}

#[test]
fn an_access_outside_is_a_fault_and_an_error() {
    let device = device(0);
    let stream = device.device().stream().unwrap();
    let array = stream.upload(&sample(4096).0).unwrap();
    let mut pass = Pass::begin("count", &stream).unwrap();
    let nulls = count(&mut pass, &array, Some(100)).unwrap();
    assert!(matches!(block_on(pass.read(&[&nulls])), Err(Error::Driver { call: "null_count", .. })));
    drop(pass);
    assert!(matches!(device.faults()[..], [Fault::Kernel { entry: "null_count", argument: "maps", .. }]));
    drop((array, nulls, stream));
    assert_eq!(device.close().alive(), Default::default());
}

#[test]
fn a_pass_that_is_dropped_half_way_is_safe() {
    let device = device(300);
    let stream = device.device().stream().unwrap();
    let (host, _) = sample(10_000);
    for _ in 0..20 {
        let event = ManualEvent::pending();
        // SAFETY: the event lives until it is fired below, and the array is gone by then.
        let array = unsafe { behind(&device, &event, &host) };
        let mut pass = Pass::begin("count", &stream).unwrap();
        let nulls = count(&mut pass, &array, None).unwrap();
        drop((array, pass, nulls));
        event.fire();
        stream.synchronise().unwrap();
    }
    assert_eq!(device.faults(), []);
    drop(stream);
    assert_eq!(device.close().alive(), Default::default());
}

/// # Safety
///
/// The event must outlive the result.
unsafe fn event_of(device: &EmulatedDevice, event: &ManualEvent) -> Arc<dyn Ready> {
    let pointer = std::ptr::NonNull::new(event.pointer()).unwrap();
    // SAFETY: the caller's promise.
    unsafe { device.device().import_event(pointer, Arc::new(())) }.unwrap()
}

/// An array on a device that may be read once an event has occurred.
///
/// # Safety
///
/// The event must outlive the array.
unsafe fn behind(device: &EmulatedDevice, event: &ManualEvent, host: &DeviceArray) -> DeviceArray {
    let mut parts = adopt(host, device.device()).unwrap().into_parts();
    // SAFETY: the caller's promise.
    parts.ready = Some(unsafe { event_of(device, event) });
    DeviceArray::try_new(parts).unwrap()
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_pending_result_is_a_future_that_blocks_nobody() {
    let device = device(0);
    let stream = device.device().stream().unwrap();
    let event = ManualEvent::pending();
    let (host, nulls) = sample(1000);
    // SAFETY: the event lives to the end of the test.
    let array = unsafe { behind(&device, &event, &host) };
    let later = |then: u64| {
        let mut pass = Pass::begin("null_count", &stream).unwrap();
        let region = count(&mut pass, &array, None).unwrap();
        counted(pass, region).map(move |nulls| Ok(nulls + then))
    };
    let (mut first, mut second, dropped) = (later(0), later(1), later(2));
    let before = device.device().host_synchronisations();
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut context = Context::from_waker(&waker);
    let mut poll = |pending: &mut Pending<u64>| std::pin::Pin::new(pending).poll(&mut context);
    assert!(poll(&mut first).is_pending() && poll(&mut first).is_pending());
    assert!(!second.is_ready().unwrap());
    assert_eq!(woken.0.load(Ordering::Acquire), 0);
    drop(dropped);
    event.fire();
    while woken.0.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(device.device().host_synchronisations(), before);
    assert_eq!(poll(&mut first), Poll::Ready(Ok(nulls)));
    assert_eq!(second.map(|nulls| Ok(nulls * 2)).wait(), Ok(2 * nulls + 2));
    assert!(matches!(poll(&mut first), Poll::Ready(Err(Error::Invalid { .. }))));
}

#[test]
fn a_task_is_woken_at_once_without_a_thread_to_wake_it_later() {
    let device = device(0);
    let stream = device.device().stream().unwrap();
    device.device().as_gpu().unwrap().wakes().refuse();
    let event = ManualEvent::pending();
    let (host, nulls) = sample(1000);
    // SAFETY: the event lives to the end of the test.
    let array = unsafe { behind(&device, &event, &host) };
    let mut pass = Pass::begin("null_count", &stream).unwrap();
    let region = count(&mut pass, &array, None).unwrap();
    let mut counted = counted(pass, region);
    let before = device.device().host_synchronisations();
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut poll = || std::pin::Pin::new(&mut counted).poll(&mut Context::from_waker(&waker));
    assert!(poll().is_pending());
    assert_eq!(woken.0.load(Ordering::Acquire), 1);
    event.fire();
    let known = loop {
        if let Poll::Ready(known) = poll() {
            break known;
        }
        std::thread::yield_now();
    };
    assert_eq!((known, device.device().host_synchronisations()), (Ok(nulls), before));
}

/// Counts nulls again and again, each time after the count before it is known.
fn counted_often(mut pass: Pass, array: DeviceArray, times: u64) -> Pending<u64> {
    let stream = pass.stream().clone();
    Pending::begin(&stream, async move {
        let mut sum = 0;
        for _ in 0..times {
            let region = count(&mut pass, &array, None)?;
            sum += pass.read(&[&region]).await?[0];
        }
        pass.finish()?;
        Ok(sum)
    })
}

#[test]
fn operations_look_often_and_inside_others_without_blocking_a_poll() {
    let device = device(100);
    let stream = device.device().stream().unwrap();
    let (array, nulls) = sample(1000);
    let array = stream.upload(&array).unwrap();
    let begun = |times| counted_often(Pass::begin("null_count", &stream).unwrap(), array.clone(), times);
    let nested = || {
        let both = vec![begun(3), begun(1)];
        let one = begun(2);
        Pending::begin(&stream, async move {
            let before: u64 = all(both).await?.iter().sum();
            one.await.map(|nulls| before + nulls)
        })
    };
    let synchronisations = || device.device().host_synchronisations();
    let (mut task, mut asked, waited, dropped) = (nested(), nested(), nested(), nested());
    let before = synchronisations();
    let woken = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(woken.clone());
    let mut polls = 0;
    let known = loop {
        let seen = woken.0.load(Ordering::Acquire);
        match std::pin::Pin::new(&mut task).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(known) => break known,
            Poll::Pending => polls += 1,
        }
        while woken.0.load(Ordering::Acquire) == seen {
            std::thread::yield_now();
        }
    };
    assert_eq!((known, synchronisations()), (Ok(6 * nulls), before));
    assert!(polls >= 2, "each look wakes the task: {polls}");
    while !asked.is_ready().unwrap() {
        std::thread::yield_now();
    }
    assert_eq!((asked.wait(), synchronisations()), (Ok(6 * nulls), before));
    assert_eq!(waited.wait(), Ok(6 * nulls));
    assert!(synchronisations() > before);
    let side_by_side = Pending::begin(&stream, all(vec![begun(2), begun(2), begun(2)]));
    let before = synchronisations();
    assert_eq!(side_by_side.wait(), Ok(vec![2 * nulls; 3]));
    assert_eq!(synchronisations() - before, 2, "one for each look of all three");
    drop((dropped, array, stream));
    crate::device::testing::drain(device.device());
    assert_eq!(device.faults(), []);
    assert_eq!(device.close().alive(), Default::default());
}

#[test]
fn each_event_is_waited_for_once() {
    let device = device(0);
    let (stream, other) = (device.device().stream().unwrap(), device.device().stream().unwrap());
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
    let column = arrow_schema::Field::new("x", flags.data_type().clone(), true);
    let schema = Arc::new(arrow_schema::Schema::new(vec![column; 50]));
    let columns = vec![from_arrow(&flags).unwrap(); 50];
    let calls = |name| device.calls().get(name).copied().unwrap_or(0);
    let (allocs, copies) = (calls("alloc"), calls("copy_in"));
    let batch = stream.upload(&crate::DeviceBatch::try_new(schema, columns, 3).unwrap()).unwrap();
    assert_eq!((calls("alloc") - allocs, calls("copy_in") - copies), (1, 1), "one block, one copy");
    let event = ManualEvent::pending();
    // SAFETY: the event lives to the end of the test.
    let ready = unsafe { event_of(&device, &event) };
    let waits = calls("wait");
    let mut pass = Pass::begin("test", &other).unwrap();
    for column in batch.columns() {
        let parts = Parts { ready: Some(ready.clone()), ..column.clone().into_parts() };
        pass.input(&DeviceArray::try_new(parts).unwrap()).unwrap();
    }
    pass.finish().unwrap();
    assert_eq!(calls("wait") - waits, 1);
    event.fire();
    let copies = calls("copy_out");
    let back = other.download(&batch).unwrap();
    assert_eq!(calls("copy_out") - copies, 1);
    for column in back.columns() {
        assert_eq!(&crate::exchange::to_arrow(column).unwrap(), &flags);
    }
}

#[test]
fn what_was_asked_for_comes_with_one_copy_and_lies_apart() {
    const SHARED: usize = 128 << 10;
    let device = device(0);
    let stream = device.device().stream().unwrap();
    let calls = |name| device.calls().get(name).copied().unwrap_or(0);
    // Ten bitmaps are sent with the rest, or one call fills them on the device, or one call each.
    for (bitmap, fills_expected) in [(800, 0), (80_000, 1), (800_000, 10)] {
        let mut pass = Pass::begin("test", &stream).unwrap();
        let mut requests = Requests::default();
        let (sum, first, sums) = (requests.sum(), requests.first_row(), requests.sums(2));
        let zeros: Vec<Request> = (0..10).map(|_| requests.zeros(bitmap)).collect();
        let outputs = [0, 1, SHARED + 1, 1000, SHARED].map(|bytes| requests.output(bytes));
        let scratch = [requests.scratch(100), requests.scratch(1 << 20)];
        let (copies, fills) = (calls("copy_in"), calls("fill"));
        let granted = requests.grant(&mut pass, 64).unwrap();
        let table = pass.upload(&[7; 8]).unwrap();
        let words = block_on(pass.read(&[granted.counters()])).unwrap();
        assert_eq!(words, [0, u64::MAX, 0, 0]);
        assert_eq!((sum.of(&words), first.of(&words), sums.plus(1).of(&words)), (0, u64::MAX, 0));
        assert_eq!(block_on(pass.read(&[&table])).unwrap(), [7; 8]);
        for zeros in &zeros {
            assert_eq!(block_on(pass.read(&[&granted[*zeros]])).unwrap(), vec![0; bitmap / 8]);
        }
        assert_eq!((calls("copy_in") - copies, calls("fill") - fills), (1, fills_expected), "{bitmap}");
        // Regions of the device, empty ones too, are read together with words that are on the host.
        let (near, empty) = (pass.first_rows(2, 10).unwrap(), &granted[outputs[0]]);
        assert_eq!(block_on(pass.read(&[empty])).unwrap(), [0; 0]);
        let words = block_on(pass.read(&[&near, empty, granted.counters(), &near])).unwrap();
        assert_eq!(words, [u64::MAX, u64::MAX, 0, u64::MAX, 0, 0, u64::MAX, u64::MAX]);
        let place = |region: &Region| (region.address(), region.address() + region.bytes());
        assert_eq!(granted[outputs[3]].address() - granted[outputs[1]].address(), 256, "they share a block");
        let requests = zeros.into_iter().chain(outputs).chain(scratch);
        let all = requests.map(|request| place(&granted[request])).chain([place(&table)]);
        let mut all: Vec<_> = all.chain([place(granted.counters())]).filter(|(from, to)| from < to).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[0].1 <= two[1].0), "{all:?}");
        pass.finish().unwrap();
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn full_blocks_of_small_uploads_are_kept_until_they_are_copied() {
    let device = device(0);
    let stream = device.device().stream().unwrap();
    let event = ManualEvent::pending();
    let mut parts = adopt(&sample(5).0, device.device()).unwrap().into_parts();
    // SAFETY: the event lives to the end of the test.
    parts.ready = Some(unsafe { event_of(&device, &event) });
    let mut pass = Pass::begin("test", &stream).unwrap();
    pass.input(&DeviceArray::try_new(parts).unwrap()).unwrap();
    // One KiB each, so several blocks. A block that was reused before its copy has run would be overwritten.
    let tables = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| pass.upload(&[i; 128]).unwrap());
    event.fire();
    for (i, table) in (0..).zip(&tables) {
        assert_eq!(block_on(pass.read(&[table])).unwrap(), [i; 128]);
    }
    pass.finish().unwrap();
    assert_eq!(device.faults(), []);
}

#[test]
fn marks_are_reached_behind_the_work_before_them_and_launches_are_counted() {
    let device = device(0);
    let stream = device.device().stream().unwrap();
    let event = ManualEvent::pending();
    let (host, nulls) = sample(1000);
    // SAFETY: the event lives to the end of the test.
    let array = unsafe { behind(&device, &event, &host) };
    let before = stream.mark().unwrap();
    let mut pass = Pass::begin("null_count", &stream).unwrap();
    let region = count(&mut pass, &array, None).unwrap();
    let counted = counted(pass, region);
    let behind = stream.mark().unwrap();
    assert_eq!((stream.launches(), behind.reached()), (1, None), "the event has not passed");
    event.fire();
    assert_eq!(counted.wait().unwrap(), nulls);
    stream.synchronise().unwrap();
    assert!(before.reached().unwrap() <= behind.reached().unwrap());
    let cpu = Stream::cpu();
    assert!(cpu.mark().unwrap().reached().is_some() && cpu.launches() == 0);
}
