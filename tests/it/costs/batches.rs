//! The costs of operations on batches: launches, waits and the calls of the driver.

use std::sync::Arc;

use arrow_array::*;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, null_count, take};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{batch_from_arrow, from_arrow};
use bowstring::{DeviceArray, DeviceBatch, Stream};

use crate::support::*;

/// The inputs of work on a batch.
pub struct OnBatch {
    batch: DeviceBatch,
    keep: DeviceArray,
    indices: DeviceArray,
    narrow: SchemaRef,
    stream: Stream,
}

pub type Work = fn(&OnBatch) -> bowstring::Result<()>;

pub const FILTER: Work = |on| filter(&on.batch, &on.keep, &on.stream).wait().map(drop);

pub const OTHERS: [(&str, Work); 4] = [
    ("take", |on| take(&on.batch, &on.indices, &TakeOptions::default(), &on.stream).wait().map(drop)),
    ("cast to Int32", |on| cast(&on.batch, &on.narrow, &CastOptions::default(), &on.stream).wait().map(drop)),
    ("strict cast to Int32", |on| {
        let options = CastOptions { safe: false, ..Default::default() };
        cast(&on.batch, &on.narrow, &options, &on.stream).wait().map(drop)
    }),
    ("null_count", |on| {
        let columns = on.batch.columns().iter().cloned().map(uncounted).collect();
        let batch = DeviceBatch::try_new(on.batch.schema().clone(), columns, on.batch.len())?;
        null_count(&batch, &on.stream).wait().map(drop)
    }),
];

/// A line with the driver's calls for work on a batch that has `of_each` columns of each of these types.
pub fn batch(
    work: Work,
    name: &str,
    rows: usize,
    of_each: usize,
    types: &[DataType],
    nulls: Nulls,
) -> String {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = device.device().stream().unwrap();
    let rng = &mut Random::new(1);
    let column = |i: usize| array(&types[i % types.len()], rows, nulls, &mut Random::new(i as u64));
    let columns = (0..of_each * types.len()).map(|i| (i.to_string(), column(i)));
    let ours = batch_from_arrow(&RecordBatch::try_from_iter(columns).unwrap()).unwrap();
    let up = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let field = |i: usize| Field::new(i.to_string(), DataType::Int32, true);
    let on = OnBatch {
        batch: stream.upload(&ours).unwrap(),
        keep: up(Arc::new(mask(Mask { percent: 50.0, run: 1, nulls: Nulls::None }, rows, rng))),
        indices: up(Arc::new(UInt32Array::from_iter_values((0..rows as u32).rev()))),
        narrow: Arc::new(Schema::new((0..of_each * types.len()).map(field).collect::<Vec<_>>())),
        stream: stream.clone(),
    };
    let mut before = Default::default();
    // Staging memory is still in flight when the second round wants some.
    for _ in 0..4 {
        stream.synchronise().unwrap();
        before = (device.calls(), device.device().host_synchronisations());
        work(&on).unwrap();
    }
    let (calls, waits) = before;
    let waits = device.device().host_synchronisations() - waits;
    let made = device.calls().into_iter().map(|(name, n)| (name, n - calls.get(name).unwrap_or(&0)));
    // A call named `discard` costs something only in the emulator's driver.
    let made: Vec<_> = made.filter(|(name, n)| *n > 0 && *name != "discard").collect();
    let launches = made.iter().find(|(name, _)| *name == "launch").map_or(0, |(_, n)| *n);
    let all: u64 = made.iter().map(|(_, n)| n).sum();
    let each: Vec<_> = made.iter().map(|(name, n)| format!("{n} {name}")).collect();
    assert_eq!(device.faults(), []);
    let names: Vec<_> = types.iter().map(|data_type| data_type.to_string()).collect();
    let nullable = if nulls == Nulls::None { "" } else { ", nulls" };
    let columns = of_each * types.len();
    format!(
        "| {name}{columns} × {}{nullable}, {rows} rows | {launches} | {waits} | {all} | {} |\n",
        names.join(", "),
        each.join(", ")
    )
}
