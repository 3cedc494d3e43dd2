//! Runs a mixed load for a while: threads with streams of their own filter, take, cast and count random
//! arrays of random types, exchange results through the C structs, and drop things half way, while some calls
//! of the runtime fail. All answers are right or errors, all memory is returned, and memory use stays flat.
//! `BOWSTRING_SOAK=3600` runs for an hour.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use arrow_schema::Field;
use bowstring::device::testing::{self, Alive, EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{export_array, from_arrow, import_array, to_arrow};
use bowstring::ffi::{ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{Device, DeviceArray, Error, Result};

use crate::support::operations::{Answer, OPERATIONS};
use crate::support::*;

const THREADS: u64 = 4;

/// The load runs until it has this many right answers and failed calls.
const RIGHT: u64 = 51;
const FAILED: u64 = 6;

/// The additional time that a busy machine may take to get there.
const PATIENCE: Duration = Duration::from_secs(600);

/// An array on its way to another thread, with its expected rows.
type Parcel = (ArrowDeviceArray, FFI_ArrowSchema, Vec<Value>);

#[derive(Default)]
struct Tally {
    right: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

struct Worker<'a> {
    device: &'a Device,
    out: SyncSender<Parcel>,
    incoming: Receiver<Parcel>,
    tally: &'a Tally,
    rng: Random,
}

impl Worker<'_> {
    /// Runs one operation. Its result goes to another thread, is read here, or is dropped unread.
    fn turn(&mut self) -> Result<()> {
        let rng = &mut self.rng;
        let stream = self.device.stream_with_priority(rng.below(2) as i32 - 1)?;
        let types = types();
        let data_type = &types[rng.below(types.len())];
        let len = [rng.below(4), rng.below(300), rng.below(9000)][rng.below(3)];
        let longer = array(data_type, len + 5, Nulls::ALL[rng.below(5)], rng);
        let values = stream.upload(&from_arrow(&longer)?)?.slice(5, len)?;
        let plain = longer.slice(5, len);
        let operation = &OPERATIONS[rng.below(OPERATIONS.len())];
        let Some(argument) = (operation.argument)(data_type, len, rng) else { return Ok(()) };
        let Ok(right) = (operation.arrow)(&plain, &argument) else { return Ok(()) };
        let right = right.rows();
        let ours = match operation.run(&values, &argument, &stream)? {
            Answer::Array(ours) => ours,
            count => {
                assert_same_rows(&count.read(&stream)?, &right, &operation.name);
                self.tally.right.fetch_add(1, Ordering::Relaxed);
                return Ok(());
            }
        };
        match rng.below(3) {
            0 => drop(ours),
            1 => self.check(&ours, &right)?,
            _ => {
                let field = Field::new("f", ours.data_type().clone(), true);
                let (array, schema) = export_array(&ours, &field)?;
                // A slow receiver loses the array.
                let _ = self.out.try_send((array, schema, right));
            }
        }
        Ok(())
    }

    /// Reads the arrays from another thread, on a stream of this one.
    fn receive(&mut self) -> Result<()> {
        while let Ok((mut array, schema, right)) = self.incoming.try_recv() {
            // SAFETY: the library's own structs.
            let (_, array) = unsafe { import_array(&mut array, &schema, self.device) }?;
            self.check(&array, &right)?;
        }
        Ok(())
    }

    fn check(&self, ours: &DeviceArray, right: &[Value]) -> Result<()> {
        let back = self.device.stream()?.download(ours)?;
        assert_same_rows(&rows(&to_arrow(&back)?), right, ours.data_type());
        self.tally.right.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn work(mut self, goes_on: impl Fn() -> bool) {
        while goes_on() {
            for result in [self.turn(), self.receive()] {
                let counter = match result {
                    Ok(()) => continue,
                    Err(Error::Unsupported { .. }) => &self.tally.refused,
                    // A failure of the producer arrives through the stream's event, at any thread that waits
                    // for it.
                    Err(Error::Driver { .. } | Error::OutOfMemory { .. }) => &self.tally.failed,
                    Err(error) => panic!("{error:?}"),
                };
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The process's resident memory in MiB, if the system reports it.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

#[test]
fn a_mixed_load_leaves_nothing_behind() {
    let seconds = std::env::var("BOWSTRING_SOAK").map_or(4.0, |s| s.parse().expect("a number of seconds"));
    let options = EmulatorOptions { delay: Duration::from_micros(20), seed: 11, ..Default::default() };
    let emulated = EmulatedDevice::new(options).unwrap();
    emulated.device().set_memory_limit(256 << 20);
    let tally = Tally::default();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (start, length) = (Instant::now(), Duration::from_secs_f64(seconds));
    let goes_on = || {
        let enough = count(&tally.right) >= RIGHT && count(&tally.failed) >= FAILED;
        start.elapsed() < if enough { length } else { length + PATIENCE }
    };
    let mut early = 0;
    std::thread::scope(|scope| {
        let (outs, mut incomings): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| sync_channel(4)).unzip();
        incomings.rotate_left(1);
        for ((seed, out), incoming) in (0..).zip(outs).zip(incomings) {
            let (device, tally, rng) = (emulated.device(), &tally, Random::new(seed));
            let worker = Worker { device, out, incoming, tally, rng };
            scope.spawn(move || worker.work(goes_on));
        }
        // Now and then a call fails.
        let rng = &mut Random::new(99);
        while goes_on() {
            emulated.fail(None, 1 + rng.below(400) as u64, 1 + rng.below(3) as u64);
            std::thread::sleep(Duration::from_millis(20));
            if early == 0 && start.elapsed() > length / 3 {
                early = resident();
            }
        }
        emulated.stop_failing();
    });
    testing::drain(emulated.device());
    let (right, refused, failed) = (count(&tally.right), count(&tally.refused), count(&tally.failed));
    println!(
        "soak: {right} answers right, {refused} refused, {failed} failed as they were made to; {early} MiB, then {} MiB",
        resident()
    );
    assert!(right >= RIGHT && failed >= FAILED, "{right} right, {failed} failed");
    // AddressSanitizer keeps freed memory, and the stacks of threads that have ended.
    let kept = cfg!(sanitized);
    assert!(kept || resident() < early + 200, "{early} MiB grew to {} MiB", resident());
    assert_eq!(emulated.faults(), []);
    assert_eq!(emulated.close().alive(), Alive::default());
}
