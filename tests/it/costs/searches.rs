//! A search of a text that nearly contains the needle everywhere executes a bounded number of instructions
//! for each byte.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bowstring::DeviceBatch;
use bowstring::compute::Query;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::expr::{Options, col};
use bowstring_amdi::Target;

use super::Ran;
use crate::support::amd::Objects;
use crate::support::ptx::Images;

/// The most instructions for a byte, if bytes are compared, and if characters are.
const OF_BYTES: u64 = 200;
const OF_CHARACTERS: u64 = 600;

/// Searches a text of so many bytes on a device.
fn search(device: &EmulatedDevice, bytes: usize, ran: impl Fn() -> Ran) {
    let stream = device.device().stream().unwrap();
    let (text, half) = ("a".repeat(bytes), "a".repeat(1000));
    let ours = stream.upload(&from_arrow(&StringArray::from(vec![text])).unwrap()).unwrap();
    let schema = Arc::new(Schema::new(vec![Field::new("s", DataType::Utf8, true)]));
    let rows = DeviceBatch::try_new(schema, vec![ours], 1).unwrap();
    for (test, found, most) in [
        (col("s").contains(format!("{half}b")), false, OF_BYTES),
        (col("s").contains(format!("{half}b{half}")), false, OF_BYTES),
        (col("s").contains(half.clone()), true, OF_BYTES),
        (col("s").like(format!("%{half}b%")), false, OF_BYTES),
        (col("s").like(format!("%{half}%_{half}")), true, OF_BYTES),
        (col("s").ilike(format!("%{half}B")), false, OF_BYTES),
        (col("s").ilike(format!("%{half}B%")), false, OF_CHARACTERS),
        (col("s").like(format!("%{half}\\b%")), false, OF_CHARACTERS),
    ] {
        let bound = Query::new().select(&[test]).bind(rows.schema(), &Options::default()).unwrap();
        ran();
        let made = bound.run(&rows, &stream).wait().unwrap();
        let made = to_arrow(&stream.download(&made.columns()[0]).unwrap()).unwrap();
        let expected: ArrayRef = Arc::new(BooleanArray::from(vec![found]));
        assert_eq!(&made, &expected);
        let instructions: u64 = ran().values().map(|cost| cost.instructions).sum();
        assert!(instructions < most * bytes as u64, "{instructions} for {bytes} bytes");
    }
    assert_eq!(device.faults(), []);
}

#[test]
fn searches_execute_some_instructions_a_byte() {
    let images = Arc::new(Images::default());
    let options = EmulatorOptions { executor: Some(images.clone()), ..Default::default() };
    search(&EmulatedDevice::new(options).unwrap(), 1 << 16, || images.ran());
    let objects = Arc::new(Objects::new(Target::named("gfx90a").unwrap()));
    search(&objects.clone().device(), 1 << 12, || objects.ran());
}
