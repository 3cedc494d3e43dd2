//! Arrays and devices.

use std::sync::Arc;

// ANCHOR: host
use arrow_array::{ArrayRef, Int32Array};
use bowstring::array::Place;
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Device, DeviceArray, Result};

pub fn in_host_memory() -> Result<()> {
    let theirs = Int32Array::from(vec![Some(1), None, Some(300), Some(4)]);
    let ours: DeviceArray = from_arrow(&theirs)?; // the same memory: nothing is copied
    assert_eq!((ours.len(), ours.place()), (4, Place::CPU));

    let part = ours.slice(1, 2)?; // a view of two rows, of the same memory too
    drop((theirs, ours)); // `part` keeps it
    assert_eq!(to_arrow(&part)?.as_ref(), &Int32Array::from(vec![None, Some(300)]));
    Ok(())
}
// ANCHOR_END: host

// ANCHOR: device
pub fn on_a_device() -> Result<()> {
    let device = Device::emulated(); // with a GPU: Device::open(DeviceType::Cuda, 0)?
    let stream = device.stream()?;

    let values: ArrayRef = Arc::new(Int32Array::from_iter_values(0..1_000));
    let there = stream.upload(&DeviceArray::try_from(&values)?)?; // one copy
    assert_eq!(there.place(), device.place());

    let back = stream.download(&there)?; // another
    assert_eq!(&ArrayRef::try_from(&back)?, &values);
    Ok(())
}
// ANCHOR_END: device

// ANCHOR: elsewhere
pub fn nothing_moves_by_itself() -> Result<()> {
    let here = from_arrow(&Int32Array::from(vec![1, 2, 3]))?;
    let stream = Device::emulated().stream()?;
    let refused = bowstring::compute::is_null(&here, &stream).wait();
    assert!(matches!(refused, Err(bowstring::Error::Invalid { .. })));
    Ok(())
}
// ANCHOR_END: elsewhere

// ANCHOR: memory
pub fn bounded_memory() -> Result<()> {
    let device = Device::emulated();
    device.set_memory_limit(1 << 20); // 1 MiB, in use or kept for later
    let stream = device.stream()?;
    let large = from_arrow(&Int32Array::from_iter_values(0..1_000_000))?;
    assert!(matches!(stream.upload(&large), Err(bowstring::Error::OutOfMemory { .. })));
    device.set_memory_limit(usize::MAX);
    Ok(())
}
// ANCHOR_END: memory
