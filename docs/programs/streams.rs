//! Streams, events and `Pending`.

// ANCHOR: counted
use arrow_array::{BooleanArray, Int32Array, Int64Array};
use arrow_schema::DataType;
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, take};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Device, DeviceArray, Error, Result, Stream};

pub fn one_wait_for_a_filter_none_for_a_cast() -> Result<()> {
    let device = Device::emulated();
    let stream = device.stream()?;
    let values = stream.upload(&from_arrow(&Int64Array::from(vec![1, 2, 300]))?)?;
    let mask = stream.upload(&from_arrow(&BooleanArray::from(vec![true, false, true]))?)?;

    let before = device.host_synchronisations();
    let small = cast(&values, &DataType::Int8, &CastOptions::default(), &stream).wait()?; // has not run yet
    assert_eq!(device.host_synchronisations() - before, 0);

    let kept = filter(&small, &mask, &stream).wait()?; // how many rows are kept only the device knows
    assert_eq!(device.host_synchronisations() - before, 1);
    assert_eq!(kept.len(), 2);
    Ok(())
}
// ANCHOR_END: counted

// ANCHOR: two
pub fn two_streams_meet_by_an_event() -> Result<()> {
    let device = Device::emulated();
    let (first, second) = (device.stream()?, device.stream()?);
    let values = first.upload(&from_arrow(&Int32Array::from(vec![7, 8, 9]))?)?;
    let indices = second.upload(&from_arrow(&Int32Array::from(vec![2, 0]))?)?;

    let before = device.host_synchronisations();
    // `second` waits for the event that `values` carries. This thread does not.
    let taken = take(&values, &indices, &TakeOptions::default(), &second).wait()?;
    assert_eq!(device.host_synchronisations(), before);

    let here = second.download(&taken)?;
    assert_eq!(to_arrow(&here)?.as_ref(), &Int32Array::from(vec![9, 7]));
    Ok(())
}
// ANCHOR_END: two

// ANCHOR: awaited
async fn half(values: &DeviceArray, mask: &DeviceArray, stream: &Stream) -> Result<usize> {
    let kept = filter(values, mask, stream).await?; // the task sleeps, its thread does not
    Ok(kept.len())
}

pub fn a_pending_result_can_be_awaited() -> Result<()> {
    let stream = Device::emulated().stream()?;
    let values = stream.upload(&from_arrow(&Int32Array::from_iter_values(0..100))?)?;
    let mask = BooleanArray::from_iter((0..100).map(|row| Some(row % 2 == 0)));
    let mask = stream.upload(&from_arrow(&mask)?)?;
    assert_eq!(pollster::block_on(half(&values, &mask, &stream))?, 50); // or tokio, or any other executor
    Ok(())
}
// ANCHOR_END: awaited

// ANCHOR: late
pub fn what_only_the_data_shows_comes_late() -> Result<()> {
    let stream = Device::emulated().stream()?;
    let values = stream.upload(&from_arrow(&Int32Array::from(vec![7, 8, 9]))?)?;
    let indices = stream.upload(&from_arrow(&Int32Array::from(vec![0, 3]))?)?;

    let taken = take(&values, &indices, &TakeOptions::default(), &stream).wait()?; // launched: that is all so far
    match taken.wait() {
        Err(Error::IndexOutOfBounds { row, .. }) => assert_eq!(row, 1),
        other => panic!("row 1 asks for row 3 of 3: {other:?}"),
    }
    Ok(())
}
// ANCHOR_END: late
