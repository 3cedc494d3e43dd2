use std::time::Duration;

use super::super::driver::{Driver, RawEvent, RawStream};
use super::super::driver_tests::conforms;
use super::testing::EmulatorOptions;
use super::{Emulator, FAULT, INVALID_HANDLE, MemoryFault, testing::Fault};

fn emulator(width: u32, delay: Duration) -> Emulator {
    Emulator::new(EmulatorOptions { width, delay, seed: 7, ..Default::default() }, 900)
}

#[test]
fn the_emulator_conforms() {
    for (width, delay) in [(32, Duration::ZERO), (64, Duration::from_micros(300))] {
        let emulator = emulator(width, delay);
        conforms(&emulator);
        let faults = super::lock(&emulator.0.memory).check();
        assert_eq!(faults, Ok(()));
        assert_eq!(emulator.0.alive().allocations, 0);
        assert_eq!(emulator.0.alive().events, 0);
        assert_eq!(emulator.0.alive().pinned, 0);
    }
}

#[test]
fn stale_handles_are_errors() {
    let emulator = emulator(32, Duration::ZERO);
    // SAFETY: the emulator looks every handle up.
    unsafe {
        let stream = emulator.stream(0).unwrap();
        emulator.destroy_stream(stream).unwrap();
        assert_eq!(emulator.synchronise(stream).unwrap_err().code, INVALID_HANDLE);
        assert_eq!(emulator.alloc(1, RawStream(0)).unwrap_err().code, INVALID_HANDLE);
        let event = emulator.event().unwrap();
        emulator.destroy_event(event).unwrap();
        assert_eq!(emulator.query(event).unwrap_err().code, INVALID_HANDLE);
        assert_eq!(emulator.query(RawEvent(usize::MAX)).unwrap_err().code, INVALID_HANDLE);
    }
}

#[test]
fn misused_memory_is_seen() {
    let emulator = emulator(32, Duration::ZERO);
    // SAFETY: misused memory is refused before it is touched, except for a red zone, which is the emulator's
    // own memory.
    unsafe {
        let stream = emulator.stream(0).unwrap();
        let address = emulator.alloc(100, stream).unwrap();
        emulator.fill(address, 1, 101, stream).unwrap();
        assert_eq!(emulator.synchronise(stream).unwrap_err().code, FAULT, "past the end");

        let stream = emulator.stream(0).unwrap();
        let event = emulator.event().unwrap();
        emulator.free(address, stream).unwrap();
        emulator.fill(address, 1, 1, stream).unwrap();
        emulator.record(event, stream).unwrap();
        assert_eq!(emulator.synchronise_event(event).unwrap_err().code, FAULT, "after free");
        let waiting = emulator.stream(0).unwrap();
        emulator.wait(waiting, event).unwrap();
        assert_eq!(emulator.synchronise(waiting).unwrap_err().code, FAULT, "who waits has failed too");

        let stream = emulator.stream(0).unwrap();
        let address = emulator.alloc(100, stream).unwrap();
        std::ptr::with_exposed_provenance_mut::<u8>(address - 1).write(0);
        emulator.free(address, stream).unwrap();
        assert_eq!(emulator.synchronise(stream).unwrap_err().code, FAULT, "the red zone was written");
        emulator.destroy_event(event).unwrap();
    }
    let outside = |call| Fault::Memory { call, fault: MemoryFault::OutsideAllocation };
    let zone = Fault::Memory { call: "free", fault: MemoryFault::RedZoneWritten };
    assert_eq!(emulator.0.injector.put_down_so_far(), [outside("fill"), outside("fill"), zone]);
}
