//! Tests that copies, operations, streams, events and host functions work, in order, and wait no more than
//! documented.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int32Array, RecordBatch};
use arrow_schema::DataType;
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, null_count, take};
use bowstring::device::testing;
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, to_arrow};

use super::*;

#[test]
fn every_type_goes_there_and_back() {
    with_devices(|name, device| {
        let stream = device.stream().unwrap();
        for data_type in types() {
            let host = sample(&data_type, 70);
            let there = stream.upload(&from_arrow(&host).unwrap()).unwrap();
            assert_eq!(there.place(), device.place());
            let waited = device.host_synchronisations();
            let back = stream.download(&there).unwrap();
            assert_eq!(device.host_synchronisations(), waited, "{name}: {data_type}");
            assert_same_rows(
                &rows(&to_arrow(&back).unwrap()),
                &rows(&host),
                &format_args!("{name}: {data_type}"),
            );
        }
    });
}

#[test]
fn operations_give_what_the_cpu_gives_and_wait_once_at_most() {
    with_devices(|name, device| {
        let stream = device.stream().unwrap();
        for data_type in kinds_of_buffers() {
            let host = sample(&data_type, 300);
            let mask = BooleanArray::from_iter((0..300).map(|i| (i % 11 != 0).then_some(i % 3 == 0)));
            let indices = Int32Array::from_iter((0..200).map(|i| (i % 7 != 0).then_some(i * 31 % 300)));
            let there = stream.upload(&from_arrow(&host).unwrap()).unwrap();
            let on = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
            let (mask_there, indices_there) = (on(Arc::new(mask.clone())), on(Arc::new(indices.clone())));
            let same = |ours: bowstring::DeviceArray, theirs: ArrayRef, what: &str| {
                let ours = to_arrow(&stream.download(&ours).unwrap()).unwrap();
                let context = format!("{name}: {what} of {data_type}");
                assert_same_rows(&rows(&ours), &rows(&theirs), &context);
            };
            let waited = |most: u64, what: &str, before: u64| {
                let waited = device.host_synchronisations() - before;
                assert!(waited <= most, "{name}: {what} of {data_type} waited {waited} times");
            };
            let before = device.host_synchronisations();
            let ours = filter(&there, &mask_there, &stream).wait().unwrap();
            waited(1, "filter", before);
            same(ours, arrow_select::filter::filter(&host, &mask).unwrap(), "filter");

            let before = device.host_synchronisations();
            let ours = take(&there, &indices_there, &TakeOptions::default(), &stream).wait().unwrap();
            waited(1, "take", before);
            same(ours, arrow_select::take::take(&host, &indices, None).unwrap(), "take");

            let before = device.host_synchronisations();
            assert_eq!(null_count(&there, &stream).wait().unwrap(), host.null_count(), "{name}: {data_type}");
            waited(1, "null_count", before);

            if matches!(data_type, DataType::Int8 | DataType::Int32 | DataType::Int64) {
                let before = device.host_synchronisations();
                let ours = cast(&there, &DataType::Int16, &CastOptions::default(), &stream).wait().unwrap();
                waited(0, "cast", before);
                same(ours, arrow_cast::cast(&host, &DataType::Int16).unwrap(), "cast");
            }
        }
    });
}

#[test]
fn streams_wait_for_each_other_and_not_for_the_host() {
    with_devices(|name, device| {
        let column: ArrayRef = Arc::new(Int32Array::from_iter((0..5000).map(|i| (i % 5 != 0).then_some(i))));
        let batch = RecordBatch::try_from_iter([("a", column.clone()), ("b", column)]).unwrap();
        let streams: Vec<_> = (0..3).map(|i| device.stream_with_priority(i - 1).unwrap()).collect();
        for round in 0..10 {
            let there = streams[0].upload(&batch_from_arrow(&batch).unwrap()).unwrap();
            // The host does not wait in between, and every input is dropped right after its use.
            let waited = device.host_synchronisations();
            let back = streams[(round + 1) % 3].download_later(&there).unwrap();
            drop(there);
            assert_eq!(device.host_synchronisations(), waited);
            assert_eq!(batch_to_arrow(&back.wait().unwrap()).unwrap(), batch, "{name}");
        }
        drop(streams);
        testing::drain(device);
    });
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

#[test]
fn a_result_to_come_wakes_its_task() {
    for native in Native::all() {
        let stranger = native.stranger();
        // SAFETY: the stranger's stream lives to the end of the test.
        let stream =
            unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(stranger)) }.unwrap();
        let host: ArrayRef = Arc::new(Int32Array::from_iter((0..100).map(|i| (i % 4 != 0).then_some(i))));
        let batch = RecordBatch::try_from_iter([("a", host)]).unwrap();
        let there = stream.upload(&batch_from_arrow(&batch).unwrap()).unwrap();
        let gate = native.gate(stranger);
        let waited = native.device.host_synchronisations();
        let mask: ArrayRef = Arc::new(BooleanArray::from(vec![true; 100]));
        let mask = stream.upload(&from_arrow(&mask).unwrap()).unwrap();
        let later = filter(&there.columns()[0], &mask, &stream);
        let woken = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut later = pin!(later);
        assert!(later.as_mut().poll(&mut context).is_pending(), "{native:?}");
        assert_eq!(woken.0.load(Ordering::Acquire), 0);
        gate.open();
        while woken.0.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        let Poll::Ready(kept) = later.as_mut().poll(&mut context) else { panic!("it was woken") };
        assert_eq!(kept.unwrap().len(), 100);
        assert_eq!(native.device.host_synchronisations(), waited, "{native:?}");
        drop((there, mask, later, stream));
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}

/// A stream may go before its results, and before its work.
#[test]
fn streams_go_before_their_work() {
    with_devices(|name, device| {
        let host = from_arrow(&sample(&DataType::Int64, 5000)).unwrap();
        let mut last = vec![];
        for _ in 0..20 {
            let stream = device.stream().unwrap();
            let there = stream.upload(&host).unwrap();
            let order: ArrayRef = Arc::new(arrow_array::UInt32Array::from_iter_values((0..5000).rev()));
            let order = stream.upload(&from_arrow(&order).unwrap()).unwrap();
            let taken = take(&there, &order, &TakeOptions::default(), &stream);
            drop(stream);
            last.push(taken);
        }
        let other = device.stream().unwrap();
        for taken in last {
            let back = other.download(&taken.wait().unwrap()).unwrap();
            assert_eq!(back.len(), 5000, "{name}");
        }
    });
}
