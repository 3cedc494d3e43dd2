//! Tests which unused memory goes back to a runtime that frees memory only while the host waits.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::Int64Array;
use bowstring::device::testing;
use bowstring::exchange::from_arrow;
use bowstring::{DeviceArray, Stream};

use super::*;

fn upload(stream: &Stream, rows: i64) -> DeviceArray {
    let host: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
    stream.upload(&from_arrow(&host).unwrap()).unwrap()
}

#[test]
fn memory_of_passed_work_goes_first_and_a_wait_is_counted() {
    for native in Native::all() {
        let stranger = native.stranger();
        // SAFETY: the stranger's stream lives to the end of the test.
        let busy = unsafe { native.device.wrap_stream(std::ptr::without_provenance_mut(stranger)) }.unwrap();
        let idle = native.device.stream().unwrap();
        let small = upload(&idle, 500);
        small.wait().unwrap();
        let gate = native.gate(stranger);
        let (large, last) = (upload(&busy, 50_000), upload(&busy, 10));
        drop(large);
        native.device.set_memory_kept(native.device.memory_usage().kept);
        let waited = native.device.host_synchronisations();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                gate.open();
            });
            drop(small);
            assert!(!last.ready().unwrap().is_ready().unwrap(), "{native:?}: the drop has waited");
            assert_eq!(native.device.host_synchronisations(), waited, "{native:?}");
            // The rest is still in use.
            native.device.set_memory_kept(0);
            let more = native.device.host_synchronisations() - waited;
            // The stand-in's HIP has no memory in stream order.
            assert!(more > 0 || !native.is_rocm() || native.standin.is_none(), "{native:?}: {more}");
        });
        drop((last, busy, idle));
        testing::drain(&native.device);
        destroy_stream(&native, stranger);
        native.close();
    }
}
