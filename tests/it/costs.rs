//! What the operations execute, counted by the interpreter on the shipped PTX: no measurement, but what a measurement will
//! be explained by, and a regression shows without a GPU. `BOWSTRING_UPDATE=1 cargo test --test it costs` writes the table.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, UInt32Array};
use arrow_schema::{DataType, TimeUnit};
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, is_null, null_count, take};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::from_arrow;
use bowstring::{Array, Stream};

use crate::support::ptx::{Cost, Images};
use crate::support::*;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ptx/COSTS.md");
const ROWS: usize = 100_000;

/// An H200, for the last column: bytes a second of a copy, read and written, and lanes times clock.
const COPY: f64 = 4.0e12;
const LANES: f64 = 132.0 * 128.0 * 1.755e9;

const HEAD: &str = "# What each operation executes

Written by `BOWSTRING_UPDATE=1 cargo test --test it costs`: the interpreter's counts on the checked-in PTX, 100,000 rows.
PTX instructions, which ptxas makes fewer or more of. Counts, not measurements.

- *must move*: bytes of the rows that the operation cannot do without, in and out, once.
- *loaded*, *stored*: bytes by all lanes; neighbours' loads of one sector count each, caches serve them.
- *issue bound*: **a prediction, not a measurement**: the share of a copy's rate beyond which an H200 could not issue the
  instructions (132 processors, 128 lanes each, 1.755 GHz; 4.0 TB/s), if each were one. 1.00 where memory is the limit.

| operation | launches | instructions a row | must move a row | loaded a row | stored a row | bytes a load | bytes a store | issue bound |
| --- | --: | --: | --: | --: | --: | --: | --: | --: |
";

struct Bench {
    images: Arc<Images>,
    stream: Stream,
    table: String,
}

impl Bench {
    fn on(&self, array: &ArrayRef) -> Array {
        self.stream.upload(&from_arrow(array).unwrap()).unwrap()
    }

    /// Runs an operation; `must` is how many bytes it cannot do without.
    fn row<T>(&mut self, name: &str, must: usize, work: impl FnOnce(&Stream) -> bowstring::Result<T>) -> T {
        self.stream.synchronise().unwrap();
        self.images.ran();
        let result = work(&self.stream).unwrap();
        self.stream.synchronise().unwrap();
        let mut cost = Cost::default();
        self.images.ran().into_values().for_each(|of_entry| cost += of_entry);
        let a_row = |n: u64| n as f64 / ROWS as f64;
        let each = |bytes: u64, accesses: u64| bytes as f64 / accesses.max(1) as f64;
        let (instructions, must) = (a_row(cost.instructions), must as f64 / ROWS as f64);
        self.table += &format!(
            "| {name} | {} | {instructions:.1} | {must:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.2} |\n",
            cost.launches,
            a_row(cost.bytes_loaded),
            a_row(cost.bytes_stored),
            each(cost.bytes_loaded, cost.loads),
            each(cost.bytes_stored, cost.stores),
            f64::min(1.0, must / COPY / (instructions / LANES)),
        );
        result
    }

    fn filters(&mut self, rng: &mut Random) {
        let uniform = |percent| Mask { percent, run: 1, nulls: Nulls::None };
        let clustered = |percent| Mask { percent, run: 1000, nulls: Nulls::None };
        let long = Mask { percent: 50.0, run: 20_000, nulls: Nulls::None };
        let of = |data_type: DataType| (data_type, Nulls::None);
        let cases = [
            (of(DataType::Int32), uniform(1.0)),
            (of(DataType::Int32), uniform(10.0)),
            (of(DataType::Int32), uniform(50.0)),
            (of(DataType::Int32), uniform(90.0)),
            (of(DataType::Int32), uniform(99.0)),
            (of(DataType::Int32), clustered(1.0)),
            (of(DataType::Int32), clustered(50.0)),
            (of(DataType::Int32), long),
            ((DataType::Int32, Nulls::Some), uniform(50.0)),
            (of(DataType::Int8), uniform(50.0)),
            (of(DataType::Int16), uniform(50.0)),
            (of(DataType::Int64), uniform(50.0)),
            (of(DataType::Decimal256(40, 2)), uniform(50.0)),
            (of(DataType::Boolean), uniform(50.0)),
            (of(DataType::Utf8), uniform(50.0)),
        ];
        for ((data_type, nulls), kind) in cases {
            let values = array(&data_type, ROWS, nulls, rng);
            let keep: ArrayRef = Arc::new(mask(kind, ROWS, rng));
            let kept =
                arrow_select::filter::filter(&values, arrow_array::cast::AsArray::as_boolean(&keep)).unwrap();
            let (ours, on) = (self.on(&values), self.on(&keep));
            let how = if kind.run == 1 { "uniform".into() } else { format!("in runs of {}", kind.run) };
            let nullable = if nulls == Nulls::None { "" } else { ", nulls" };
            let name = format!("filter {data_type}, {} % {how}{nullable}", kind.percent);
            self.row(&name, ROWS / 8 + 2 * bytes_of(&kept), |stream| filter(&ours, &on, stream));
        }
    }

    fn takes(&mut self, rng: &mut Random) {
        for (data_type, nulls, ascending) in [
            (DataType::Int32, Nulls::None, true),
            (DataType::Int32, Nulls::None, false),
            (DataType::Int32, Nulls::Some, false),
            (DataType::Int64, Nulls::None, false),
            (DataType::Boolean, Nulls::None, false),
            (DataType::Utf8, Nulls::None, false),
        ] {
            let values = array(&data_type, ROWS, nulls, rng);
            let index = |row| if ascending { row } else { rng.below(ROWS) as u32 };
            let indices: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..ROWS as u32).map(index)));
            let taken = arrow_select::take::take(&values, &indices, None).unwrap();
            let (ours, on) = (self.on(&values), self.on(&indices));
            let order = if ascending { "ascending" } else { "random" };
            let nullable = if nulls == Nulls::None { "" } else { ", nulls" };
            let name = format!("take {data_type}, {order}{nullable}");
            self.row(&name, 4 * ROWS + 2 * bytes_of(&taken), |stream| {
                take(&ours, &on, &TakeOptions::default(), stream)
            });
        }
    }

    fn casts(&mut self, rng: &mut Random) {
        for (from, to) in [
            (DataType::Int32, DataType::Int64),
            (DataType::Int64, DataType::Int32),
            (DataType::Float64, DataType::Int32),
            (DataType::Int32, DataType::Float64),
            (DataType::Float64, DataType::Float32),
            (DataType::Int64, DataType::Decimal128(18, 2)),
            (DataType::Decimal128(38, 10), DataType::Decimal128(38, 2)),
            (DataType::Date32, DataType::Timestamp(TimeUnit::Millisecond, None)),
            (DataType::Utf8, DataType::LargeUtf8),
            (DataType::Binary, DataType::Utf8),
        ] {
            let values = array(&from, ROWS, Nulls::Some, rng);
            let right = arrow_cast::cast(&values, &to).unwrap();
            let ours = self.on(&values);
            let must = bytes_of(&values) + bytes_of(&right);
            self.row(&format!("cast {from} to {to}, nulls"), must, |stream| {
                cast(&ours, &to, &CastOptions::default(), stream)
            });
        }
    }

    fn nulls(&mut self, rng: &mut Random) {
        let mut parts = self.on(&array(&DataType::Int32, ROWS, Nulls::Some, rng)).into_parts();
        parts.null_count = None;
        let values = Array::try_new(parts).unwrap();
        self.row("null_count", ROWS / 8, |stream| null_count(&values, stream));
        self.row("is_null", ROWS / 4, |stream| is_null(&values, stream));
    }
}

/// The bytes that the rows of an array take.
fn bytes_of(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().expect("a flat array")
}

#[test]
fn what_the_operations_execute_is_written_down() {
    let images = Arc::new(Images::default());
    let options = EmulatorOptions { executor: Some(images.clone()), ..Default::default() };
    let device = EmulatedDevice::new(options).unwrap();
    let stream = device.device().stream().unwrap();
    let mut bench = Bench { images, stream, table: HEAD.into() };
    let rng = &mut Random::new(1);
    bench.filters(rng);
    bench.takes(rng);
    bench.casts(rng);
    bench.nulls(rng);
    assert_eq!(device.faults(), []);
    if std::env::var_os("BOWSTRING_UPDATE").is_some() {
        std::fs::write(TABLE, bench.table).unwrap();
    } else {
        let said = std::fs::read_to_string(TABLE).unwrap();
        assert_eq!(said, bench.table, "ptx/COSTS.md is stale: BOWSTRING_UPDATE=1 cargo test --test it costs");
    }
}
