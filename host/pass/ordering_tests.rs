//! Tests of the ordering between passes. Each test removes one guarantee, with a driver that breaks a promise
//! or inputs that are dropped too early, and expects wrong answers. Other tests let the runtime's calls fail
//! one after another.

use std::time::Duration;

use super::tests::{count, sample};
use super::*;
use crate::array::Bitmap;
use crate::device::faulty::Break;
use crate::device::testing::{EmulatedDevice, EmulatorOptions, INJECTED};
use crate::exchange::to_arrow;

/// Sends an array over three streams: it is uploaded on the first, its nulls are counted on the second, and
/// the count's bits on the third. The host does not wait in between, and drops everything at once.
pub(super) fn three_streams(device: &EmulatedDevice, len: i64) -> Result<bool> {
    three_streams_and(device, len, || ())
}

/// Like `three_streams`; calls `dropped` whenever an input has been dropped.
pub(super) fn three_streams_and(device: &EmulatedDevice, len: i64, dropped: impl Fn()) -> Result<bool> {
    let streams = [(); 3].map(|()| device.device().stream());
    let [first, second, third] = streams.each_ref().map(|stream| stream.as_ref().map_err(Error::clone));
    let (array, nulls) = sample(len);
    let uploaded = first?.upload(&array)?;
    drop(array);
    let mut pass = Pass::begin("count", second?)?;
    let region = count(&mut pass, &uploaded, None)?;
    let mut parts = pass.parts(DataType::UInt64, 1);
    parts.buffers = vec![region.buffer()];
    drop(region);
    parts.validity = Some(Bitmap { buffer: parts.buffers[0].clone(), offset: 0 });
    let counted =
        DeviceArray::try_new(Parts { data_type: DataType::Boolean, len: 64, null_count: None, ..parts })?;
    pass.finish()?;
    drop(uploaded);
    dropped();
    let mut pass = Pass::begin("count", third?)?;
    let region = count(&mut pass, &counted, None)?;
    drop(counted);
    let words = block_on(pass.read(&[&region]))?;
    pass.finish()?;
    Ok(words[0] == 64 - u64::from(nulls.count_ones()))
}

fn delays(seed: u64) -> EmulatorOptions {
    let delay = Duration::from_micros(400);
    EmulatorOptions { delay, seed, keep: Some(0), width: 64, ..Default::default() }
}

#[test]
fn nothing_goes_wrong_at_random_delays() {
    for seed in 0..20 {
        let device = EmulatedDevice::new(delays(seed)).unwrap();
        for len in [3, 65, 5000] {
            assert_eq!(three_streams(&device, len), Ok(true), "seed {seed}");
        }
        assert_eq!(device.faults(), []);
        assert_eq!(device.close().alive(), Default::default());
    }
}

/// Whether any of many runs gives a wrong answer, fails, or leaves a fault.
fn goes_wrong(
    device: impl Fn(u64) -> Result<EmulatedDevice>,
    run: impl Fn(&EmulatedDevice) -> Result<bool>,
) -> bool {
    (0..50).any(|seed| {
        let device = device(seed).unwrap();
        (0..5).any(|_| run(&device) != Ok(true)) || !device.faults().is_empty()
    })
}

fn goes_wrong_with(breaks: Break) -> bool {
    goes_wrong(|seed| EmulatedDevice::faulty(delays(seed), breaks), |device| three_streams(device, 5000))
}

#[test]
fn a_skipped_wait_is_noticed() {
    assert!(goes_wrong_with(Break::Waits));
}

#[test]
fn an_event_recorded_too_early_is_noticed() {
    assert!(goes_wrong_with(Break::Records));
}

#[test]
fn an_input_freed_too_early_is_noticed() {
    assert!(goes_wrong(
        |seed| EmulatedDevice::new(delays(seed)),
        |device| {
            let let_go = || device.device().as_gpu().map_or((), |gpu| gpu.let_go_too_early());
            three_streams_and(device, 5000, let_go)
        }
    ));
}

/// Runs everything that a pass can do, and both copies.
fn everything(device: &EmulatedDevice) -> Result<()> {
    assert!(three_streams(device, 500)?);
    let (first, second) = (device.device().stream()?, device.device().stream()?);
    let (array, _) = sample(500);
    let uploaded = first.upload(&array)?;
    let checked = super::tests::checked(&uploaded, 500, &second)?;
    let back = second.download(&uploaded)?;
    assert_eq!(to_arrow(&back)?.to_data(), to_arrow(&array)?.to_data());
    checked.ready().map_or(Ok(()), |ready| ready.wait())
}

/// Lets call `n` of the runtime and the `times - 1` calls after it fail. Returns whether any call failed.
fn fails_cleanly(call: Option<&'static str>, n: u64, times: u64) -> bool {
    let options = EmulatorOptions { keep: n.is_multiple_of(2).then_some(0), ..Default::default() };
    let device = EmulatedDevice::new(options).unwrap();
    device.fail(call, n, times);
    let result = everything(&device);
    let failed = device.stop_failing();
    match &result {
        Ok(()) => {}
        Err(Error::OutOfMemory { bytes, .. }) => assert!(*bytes > 0),
        Err(Error::Driver { code: INJECTED, call, .. }) => assert!(!call.is_empty()),
        Err(other) => panic!("call {n}: {other}"),
    }
    assert_eq!(everything(&device), Ok(()), "usable after call {n} failed: {result:?}");
    assert_eq!(device.faults(), [], "call {n}");
    assert_eq!(device.close().alive(), Default::default(), "call {n} failed: {result:?}");
    failed > 0
}

#[test]
fn every_call_may_fail() {
    for times in [1, 2, 5] {
        let calls = (1..).take_while(|n| fails_cleanly(None, *n, times)).count();
        assert!(calls > 30, "{calls} calls only");
    }
}

#[test]
fn every_function_may_fail() {
    let device = EmulatedDevice::new(EmulatorOptions { keep: Some(0), ..Default::default() }).unwrap();
    everything(&device).unwrap();
    let calls = device.calls();
    assert!(calls.len() >= 12, "{calls:?}");
    for (call, count) in calls {
        for n in 1..=count {
            fails_cleanly(Some(call), n, 1);
        }
    }
}

#[test]
fn a_device_may_be_lost() {
    for n in [1, 5, 10, 20, 30, 40] {
        let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
        device.fail(None, n, u64::MAX);
        assert!(everything(&device).is_err());
        assert!(everything(&device).is_err());
        let closed = device.close();
        assert_eq!(closed.alive(), Default::default());
    }
}
