//! Tests copies of many bytes between the host and a device: they go part by part, by way of little pinned
//! memory, and whatever fails, nothing leaks and nothing is read too early.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch};
use bowstring::device::interruptible;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, to_arrow};
use bowstring::{DeviceArray, Error};

fn emulated() -> EmulatedDevice {
    EmulatedDevice::new(EmulatorOptions::default()).unwrap()
}

/// Parts of 16 MiB, whose ends are inside of columns, and columns without bytes between them.
#[test]
fn large_uploads_are_copied_in_parts() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let calls = |name| device.calls().get(name).copied().unwrap_or(0);
    let numbers: ArrayRef = Arc::new((0..3_000_001i64).collect::<arrow_array::Int64Array>());
    let some: ArrayRef = Arc::new(
        (0..3_000_001i64).map(|i| (i % 5 != 0).then_some(i * 3)).collect::<arrow_array::Int64Array>(),
    );
    let none: ArrayRef = Arc::new(arrow_array::NullArray::new(3_000_001));
    let texts: ArrayRef = Arc::new(arrow_array::StringArray::from_iter_values(
        (0..3_000_001).map(|i| if i % 1000 == 0 { "a text of some bytes" } else { "" }),
    ));
    let columns = [("a", numbers), ("b", none), ("c", some), ("d", texts)];
    let batch = batch_from_arrow(
        &RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap(),
    )
    .unwrap();
    let there = stream.upload(&batch).unwrap();
    assert_eq!((calls("alloc"), calls("copy_in")), (1, 4));
    let back = stream.download(&there).unwrap();
    assert_eq!(batch_to_arrow(&back).unwrap(), batch_to_arrow(&batch).unwrap());
    assert_eq!(device.faults(), []);
}

/// 256 MiB of spare pinned memory are kept: blocks of a new size take the place of those not used since.
#[test]
fn staging_keeps_what_was_used_last() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let pinned = || device.calls().get("alloc_pinned").copied().unwrap_or(0);
    let upload = |mebibytes: usize| {
        let bytes = arrow_array::UInt8Array::from(vec![7; mebibytes << 20]);
        let there = stream.upload(&from_arrow(&bytes).unwrap()).unwrap();
        stream.synchronise().unwrap();
        drop(there);
        pinned()
    };
    // Parts of 16 MiB, and a smaller one at the end.
    assert_eq!([100, 120, 60].map(upload), [7, 9, 10]);
    assert_eq!([60, 120, 100].map(upload), [10; 3], "kept");
    // The last part of so much is in a block that was used before.
    assert_eq!([300, 300].map(upload), [19; 2], "no more than 16 blocks at once");
    assert_eq!(upload(100), 20, "the block of 4 MiB was freed for the others");
}

/// Bytes that differ from those of a neighbouring part.
fn bytes(mebibytes: usize) -> DeviceArray {
    let bytes = (0..mebibytes << 20).map(|i| (i >> 12) as u8 ^ i as u8);
    from_arrow(&arrow_array::UInt8Array::from_iter_values(bytes)).unwrap()
}

fn assert_same(a: &DeviceArray, b: &DeviceArray) {
    assert!(*to_arrow(a).unwrap() == *to_arrow(b).unwrap(), "the bytes differ");
}

#[test]
fn much_is_copied_by_way_of_little_pinned_memory() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let calls = |name| device.calls().get(name).copied().unwrap_or(0);
    let synchronised = || device.device().host_synchronisations();
    let (some, much) = (bytes(192), bytes(300));
    let before = synchronised();
    drop(stream.upload(&some).unwrap());
    assert_eq!(synchronised(), before, "an upload of 192 MiB waits for nothing");
    stream.synchronise().unwrap();
    let there = stream.upload(&much).unwrap();
    assert!(calls("alloc_pinned") <= 16 && device.alive().pinned <= 16, "256 MiB are pinned");
    let back = stream.download(&there).unwrap();
    assert!(device.alive().pinned <= 16, "the result is in ordinary memory");
    assert_same(&back, &much);
    assert_eq!(device.faults(), []);
}

/// Columns of all sizes in one block, of which large ones are divided, and small ones are gathered.
#[test]
fn many_columns_are_downloaded_in_parts() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let rows = 9_000_000;
    let numbers: ArrayRef =
        Arc::new((0..rows).map(|i| (i % 7 != 0).then_some(i)).collect::<arrow_array::Int64Array>());
    let flags: ArrayRef =
        Arc::new((0..rows).map(|i| Some(i % 3 == 0)).collect::<arrow_array::BooleanArray>());
    let texts: ArrayRef = Arc::new(arrow_array::LargeStringArray::from_iter_values(
        (0..rows).map(|i| if i % 3 == 0 { "a text of some bytes" } else { "" }),
    ));
    let none: ArrayRef = Arc::new(arrow_array::NullArray::new(rows as usize));
    let dictionary: ArrayRef = Arc::new(arrow_array::DictionaryArray::new(
        arrow_array::Int8Array::from_iter_values((0..rows).map(|i| (i % 2) as i8)),
        Arc::new(arrow_array::StringArray::from(vec!["x", "y"])),
    ));
    let columns =
        [("a", numbers.clone()), ("b", flags), ("c", texts), ("d", none), ("e", dictionary), ("f", numbers)];
    let columns = columns.into_iter().map(|(name, column)| (name, column, true));
    let batch = batch_from_arrow(&RecordBatch::try_from_iter_with_nullable(columns).unwrap()).unwrap();
    let there = stream.upload(&batch).unwrap();
    let back = stream.download(&there).unwrap();
    assert!(device.alive().pinned <= 17, "17 blocks hold 256 MiB and the small ones");
    assert_eq!(batch_to_arrow(&back).unwrap(), batch_to_arrow(&batch).unwrap());
    assert_eq!(device.faults(), []);
}

/// With one block, each part waits for the one before it.
#[test]
fn uploads_and_downloads_do_with_one_pinned_block() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let much = bytes(70);
    device.fail(Some("alloc_pinned"), 2, u64::MAX);
    let there = stream.upload(&much).unwrap();
    assert_eq!(device.alive().pinned, 1);
    device.stop_failing();
    let back = stream.download(&there).unwrap();
    assert_same(&back, &much);
    let much = bytes(270);
    stream.synchronise().unwrap();
    device.fail(Some("alloc_pinned"), 2, u64::MAX);
    let there = stream.upload(&much).unwrap();
    stream.synchronise().unwrap();
    let back = stream.download(&there).unwrap();
    device.stop_failing();
    assert_same(&back, &much);
    assert_eq!(device.faults(), []);
}

fn all_is_released(device: EmulatedDevice, what: &str) {
    assert_eq!(device.faults(), [], "{what}");
    assert_eq!(device.close().alive(), Default::default(), "{what}");
}

#[test]
fn calls_that_fail_among_parts_leak_nothing() {
    let (some, much) = (bytes(40), bytes(270));
    for nth in 1.. {
        let device = emulated();
        let stream = device.device().stream().unwrap();
        device.fail(None, nth, 1);
        let there = stream.upload(&some);
        let failed = device.stop_failing();
        assert!(failed > 0 || there.is_ok(), "call {nth}");
        drop((there, stream));
        all_is_released(device, &format!("call {nth} of an upload"));
        if failed == 0 {
            break;
        }
    }
    for (call, nth) in
        [("copy_out", 1), ("copy_out", 17), ("event", 5), ("alloc_pinned", 3), ("copy_out", 18)]
    {
        let device = emulated();
        let stream = device.device().stream().unwrap();
        let there = stream.upload(&much).unwrap();
        stream.synchronise().unwrap();
        device.fail(Some(call), nth, 1);
        let back = stream.download(&there);
        device.stop_failing();
        match &back {
            Ok(back) => assert_same(back, &much),
            Err(error) => assert!(matches!(error, Error::Driver { .. }), "{call} {nth}: {error}"),
        }
        drop((there, back, stream));
        all_is_released(device, &format!("{call} {nth}"));
    }
}

/// The host copies in parts, and looks between them whether it is interrupted.
#[test]
fn copies_end_when_they_are_interrupted() {
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let much = bytes(270);
    let there = stream.upload(&much).unwrap();
    let up = interruptible(Duration::ZERO, || true, || stream.upload(&much));
    assert!(matches!(up, Err(Error::Interrupted)), "{up:?}");
    let down = interruptible(Duration::ZERO, || true, || stream.download(&there));
    assert!(matches!(down, Err(Error::Interrupted)), "{down:?}");
    assert_same(&stream.download(&there).unwrap(), &much);
    drop((there, stream));
    all_is_released(device, "interrupted");
}

/// A download that is dropped keeps the blocks that its copies write.
#[test]
fn downloads_may_be_dropped_on_the_way() {
    let much = bytes(270);
    let device = emulated();
    let stream = device.device().stream().unwrap();
    let there = stream.upload(&much).unwrap();
    drop(stream.download_later(&there).unwrap());
    let back = stream.download(&there).unwrap();
    assert_same(&back, &much);
    drop((there, back, stream));
    all_is_released(device, "dropped");
}
