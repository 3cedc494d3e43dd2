//! Tests every driver through the public API: the emulator's, CUDA's and HIP's on the stand-ins, and those of
//! installed GPUs.

mod captures;
mod equivalence;
mod errors;
mod foreign;
mod kept;
mod polls;
mod releases;
mod several;
mod shared;
mod stale;
mod tensors;
mod wakes;
mod work;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use bowstring::Device;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};

use crate::support::native::Native;
use crate::support::*;

/// Types with each kind of buffer: bits, values, offsets, views, children, a dictionary.
fn kinds_of_buffers() -> Vec<DataType> {
    let kinds = [
        "Boolean",
        "Int8",
        "Int32",
        "Int64",
        "Decimal128",
        "Utf8",
        "LargeBinary",
        "Utf8View",
        "List",
        "Struct",
        "Dictionary",
    ];
    let first = |kind: &&str| types().into_iter().find(|data_type| refusals::kind(data_type) == **kind);
    kinds.iter().map(|kind| first(kind).unwrap_or_else(|| panic!("there is no {kind}"))).collect()
}

/// Runs a test on each device, by name, including emulated ones of each width.
fn with_devices(run: impl Fn(&str, &Device)) {
    for width in [32, 64] {
        let options = EmulatorOptions { width, ..Default::default() };
        let device = EmulatedDevice::new(options).unwrap();
        run(&format!("emulator:{width}"), device.device());
        assert_eq!(device.faults(), []);
        assert_eq!(device.close().alive(), Default::default(), "emulator:{width}");
    }
    for native in Native::all() {
        run(&native.name, &native.device);
        native.close();
    }
}

/// A reproducible array of a type.
fn sample(data_type: &DataType, len: usize) -> ArrayRef {
    array(data_type, len, Nulls::Some, &mut Random::new(len as u64))
}

/// Destroys a stream that a test has made, on which nothing is any more.
fn destroy_stream(native: &Native, stream: usize) {
    // SAFETY: a stream of the test's, which it does not use after this.
    native.raw(|raw| unsafe { (raw.destroy_stream)(stream) });
}
