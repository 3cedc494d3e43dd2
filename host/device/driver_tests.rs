//! The behaviour that every driver must have, as a function over a driver. Each driver's tests call it.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowstring_kernels::memory::{In, Out, TableRow};
use bowstring_kernels::reduce::bitmap::{NULL_COUNT, NullCount, NullCountRow};
use bowstring_kernels::target::AnyEntry;

use super::driver::{Driver, Launch, RawStream};

const BYTES: usize = 1 << 16;

/// Panics if the driver breaks the contract of [`Driver`].
pub(super) fn conforms(driver: &dyn Driver) {
    // SAFETY: all handles and addresses are the driver's own, used within their extents and until they are
    // freed or destroyed at the end; host memory outlives the synchronisation after the last copy.
    unsafe {
        assert!([32, 64].contains(&driver.width()));
        assert!(!driver.name().is_empty());
        let (first, second) = (driver.stream(0).unwrap(), driver.stream(-1).unwrap());
        assert_ne!(first, second);
        driver.check_stream(first).unwrap();
        let id = driver.place().device_id;

        let device = driver.alloc(BYTES, first).unwrap();
        let other = driver.alloc(100, first).unwrap();
        assert!(device % 256 == 0 && other % 256 == 0, "aligned to 256");
        assert!(other >= device + BYTES || device >= other + 100, "apart");
        let pinned = driver.alloc_pinned(2 * BYTES).unwrap();
        let host = std::slice::from_raw_parts_mut(pinned, 2 * BYTES);
        let (out, back) = host.split_at_mut(BYTES);
        out.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 7 + i / 256) as u8);

        // In, over itself, out: one stream runs in order.
        driver.copy_in(device, out.as_ptr(), BYTES, first).unwrap();
        driver.copy(other, device + 3, id, 100, first).unwrap();
        driver.fill(device, 0xEE, 10, first).unwrap();
        driver.copy(device + 5, other, id, 100, first).unwrap();
        driver.copy_out(back.as_mut_ptr(), device, BYTES, first).unwrap();
        driver.synchronise(first).unwrap();
        let mut expected = out.to_vec();
        expected[..10].fill(0xEE);
        expected[5..105].copy_from_slice(&out[3..103]);
        assert!(back == expected, "copies and fills in order");

        // An event that was never recorded has passed; one stream waits for another's.
        let event = driver.event().unwrap();
        assert!(driver.query(event).unwrap());
        driver.wait(second, event).unwrap();
        for round in 0..10u8 {
            driver.fill(device, round, BYTES, first).unwrap();
            driver.record(event, first).unwrap();
            driver.wait(second, event).unwrap();
            driver.copy_out(back.as_mut_ptr(), device, BYTES, second).unwrap();
            driver.record(event, second).unwrap();
            driver.wait(first, event).unwrap();
            driver.synchronise_event(event).unwrap();
            assert!(driver.query(event).unwrap());
            assert!(back.iter().all(|byte| *byte == round), "round {round}");
        }

        // A wait is for the event's recording at that moment, even if the event is recorded again later.
        driver.fill(device, 0x11, BYTES, first).unwrap();
        driver.record(event, first).unwrap();
        driver.wait(second, event).unwrap();
        let third = driver.stream(0).unwrap();
        driver.record(event, third).unwrap();
        driver.copy_out(back.as_mut_ptr(), device, BYTES, second).unwrap();
        driver.synchronise(second).unwrap();
        assert!(back.iter().all(|byte| *byte == 0x11));

        // A host function runs after the work before it.
        let called = Arc::new(AtomicBool::new(false));
        let by = called.clone();
        driver.call(second, Box::new(move || by.store(true, Ordering::Release))).unwrap();
        driver.synchronise(second).unwrap();
        assert!(called.load(Ordering::Acquire));

        assert_eq!(driver.classify(device + 17).unwrap(), Some(driver.place()));
        assert!(
            driver.classify(pinned.addr()).unwrap().is_none_or(|place| place.device_type.host_accessible())
        );
        let local = 0u64;
        assert!(
            driver
                .classify(std::ptr::from_ref(&local).addr())
                .unwrap()
                .is_none_or(|place| place.device_type.host_accessible())
        );

        launches(driver, device, back);

        driver.discard(device, BYTES, first).unwrap();
        driver.destroy_event(event).unwrap();
        for address in [device, other] {
            driver.free(address, first).unwrap();
        }
        for stream in [first, second, third] {
            driver.synchronise(stream).unwrap();
            driver.destroy_stream(stream).unwrap();
        }
        driver.free_pinned(pinned).unwrap();
    }
}

/// Queues a launch that reads an address that nothing is at and that no extent covers. `memory` holds 256
/// bytes, which become a table of one row.
///
/// # Safety
///
/// Both must be the driver's.
pub(super) unsafe fn fault(driver: &dyn Driver, stream: RawStream, memory: usize) {
    // SAFETY: the copy and the launch stay within `memory`, but for the one read that must fail.
    unsafe {
        let entry = &NULL_COUNT[0];
        let loaded = driver.entry(entry.family(), entry.name()).unwrap();
        let row = NullCountRow { words: In::new(1 << 40, 0), offset: 0, len: 1000 }.words();
        let pinned = driver.alloc_pinned(256).unwrap();
        let host = std::slice::from_raw_parts_mut(pinned, 256);
        for (to, word) in host.chunks_exact_mut(8).zip(row) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        driver.copy_in(memory, pinned, 256, stream).unwrap();
        driver.synchronise(stream).unwrap();
        driver.free_pinned(pinned).unwrap();
        let nulls = Out::new(memory as u64 + 128, 8);
        let args = NullCount { maps: In::new(memory as u64, 32), count: 1, parts: 1, nulls };
        driver.launch(&Launch { entry: loaded, kernel: entry, waves: 1, args: &args }, stream).unwrap();
    }
}

/// A launch of many waves over a table in device memory.
///
/// # Safety
///
/// `device` must be `BYTES` of the driver's memory that nothing uses, `host` as long.
unsafe fn launches(driver: &dyn Driver, device: usize, host: &mut [u8]) {
    // SAFETY: the caller's promise; the launch reads and writes within `device`.
    unsafe {
        let stream = driver.stream(0).unwrap();
        let entry = &NULL_COUNT[0];
        let loaded = driver.entry(entry.family(), entry.name()).unwrap();
        let (table, nulls, bits, waves) = (device, device + 4096, device + 8192, 3);
        let (len, offset) = (300_001u64, 5u64);
        for (i, byte) in host[8192..].iter_mut().enumerate() {
            *byte = (i * 37 % 251) as u8;
        }
        host[4096..4104].fill(0);
        let (words, offset) = In::bitmap(bits as u64, (BYTES - 8192) as u64, offset);
        for (to, word) in host.chunks_exact_mut(8).zip(NullCountRow { words, offset, len }.words()) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        let bit = |i: u64| host[8192 + (i / 8) as usize] >> (i % 8) & 1 != 0;
        let expected = (5..5 + len).filter(|i| !bit(*i)).count() as u64;
        driver.copy_in(device, host.as_ptr(), BYTES, stream).unwrap();
        let args = NullCount {
            maps: In::new(table as u64, 32),
            count: 1,
            parts: waves,
            nulls: Out::new(nulls as u64, 8),
        };
        driver.launch(&Launch { entry: loaded, kernel: entry, waves, args: &args }, stream).unwrap();
        driver.copy_out(host.as_mut_ptr(), device, BYTES, stream).unwrap();
        driver.synchronise(stream).unwrap();
        assert_eq!(host[4096..4104], expected.to_ne_bytes());
        driver.destroy_stream(stream).unwrap();
    }
}
