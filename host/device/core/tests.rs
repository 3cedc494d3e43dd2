use std::sync::Arc;

use super::super::emu::testing::{EmulatedDevice, EmulatorOptions};
use super::super::released::Released;
use crate::exchange::from_arrow;

/// A thread may take what consumers have released just before the device is closed, and record its events
/// only then.
#[test]
fn memory_that_is_fenced_after_the_end_is_freed() {
    let emulated = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = emulated.device().stream().unwrap();
    let rows = from_arrow(&arrow_array::Int32Array::from_iter_values(0..100)).unwrap();
    let there = stream.upload(&rows).unwrap();
    crate::array::Ready::wait(&**there.ready().unwrap()).unwrap();
    let (gpu, queue) = stream.as_gpu().unwrap();
    let (core, reader) = (gpu.core().clone(), queue.reader());
    drop(stream);
    let closed = emulated.close();
    core.fence_these(vec![Released::new(there, reader)]);
    assert!(core.held.lock().unwrap().is_empty(), "nobody lets go of it");
    assert!(Arc::strong_count(&core) == 1, "something keeps the device for ever");
    drop(core);
    assert_eq!(closed.alive(), Default::default());
}
