//! Arrays of other libraries.

use arrow_array::{Array as _, BinaryArray};
use arrow_data::ArrayData;

// ANCHOR: both
use arrow_array::Int64Array;
use arrow_schema::{DataType, Field};
use bowstring::compute::{CastOptions, cast};
use bowstring::exchange::{export_array, from_arrow, from_arrow_data, import_array, validate};
use bowstring::ffi::DeviceType;
use bowstring::{Device, Error, Result};

pub fn a_producer_and_a_consumer() -> Result<()> {
    let device = Device::emulated();
    // The producer's side: an array on a GPU that a stream is still writing, and an event for its completion.
    let theirs = device.stream()?;
    let made = theirs.upload(&from_arrow(&Int64Array::from(vec![1, 2, 300]))?)?;
    let (mut array, schema) = export_array(&made, &Field::new("n", DataType::Int64, true))?;

    // Our side: the struct is moved, no byte of the data is read, and the host does not wait.
    let ours = device.stream()?;
    let before = device.host_synchronisations();
    // SAFETY: these are the structs that were just exported.
    let (field, values) = unsafe { import_array(&mut array, &schema, &device) }?;
    assert!(array.is_released()); // moved, and so was its event, if the work has not passed yet

    // Our stream waits for their event; the host goes on.
    let small = cast(&values, &DataType::Int8, &CastOptions::default(), &ours).wait()?;
    let (out, _schema) = export_array(&small, &field.with_data_type(DataType::Int8))?; // with an event of ours
    assert_eq!(DeviceType::from_abi(out.device_type()), Some(device.place().device_type));
    assert_eq!(device.host_synchronisations(), before);
    Ok(())
}
// ANCHOR_END: both

// ANCHOR: checked
pub fn strangers_are_checked() -> Result<()> {
    // Bytes that claim to be text, as a careless producer might send them.
    let bytes = BinaryArray::from(vec![b"one".as_slice(), b"\xff"]).to_data();
    // SAFETY: offsets and bytes are sound; only that they are text is not true.
    let claimed = unsafe {
        ArrayData::new_unchecked(DataType::Utf8, 2, None, None, 0, bytes.buffers().to_vec(), vec![])
    };
    let array = from_arrow_data(&claimed)?; // believed: to look would cost reading all of it
    assert!(matches!(validate(&array), Err(Error::OutOfSpec { .. }))); // on request everything is read
    Ok(())
}
// ANCHOR_END: checked
