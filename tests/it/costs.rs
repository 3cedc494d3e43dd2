//! Counts the instructions that operations execute in the interpreters on the shipped images. These counts
//! are no measurement, but they explain measurements, and show a regression without a GPU. `tools/bless
//! costs` writes the table.

mod amd;
mod batches;
mod expressions;
mod groups;
mod searches;
mod sorts;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, is_null, null_count, take};
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::from_arrow;
use bowstring::internals::{Hashes, set_hashes};
use bowstring::{DeviceArray, Stream};

use crate::support::counted::{Cost, SECTOR};
use crate::support::operations::{Answer, OPERATIONS};
use crate::support::ptx::Images;
use crate::support::*;
use batches::{FILTER, OTHERS, batch};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ptx/COSTS.md");
/// The rows fill whole waves of nearly every kernel, like the 2^28 rows of the predictions: there, a last
/// wave with little work costs next to nothing.
const ROWS: usize = 98_304;

/// An H200, for the last column: bytes a second that a copy reads and writes, and lanes times clock.
const COPY: f64 = 4.0e12;
const LANES: f64 = 132.0 * 128.0 * 1.755e9;

const HEAD: &str = "# What each operation executes

Written by `tools/bless costs`: the interpreter's counts on the checked-in PTX, 98,304 rows.
PTX instructions, which ptxas makes fewer or more of. Counts, not measurements. All but the launches are a row of the input,
or of the indices.

- *instructions*: by all lanes. *issued*: the slots that they take, 32 for what a wave runs together, lanes that idle included.
- *must move*: bytes of the rows that the operation cannot do without, in and out, once.
- *touched*: bytes of the 32-byte sectors that the launches touch, once for each launch that reads and once for each that
  writes them: what memory moves where caches keep everything within a launch. *asked*: once for each instruction of a wave.
- *loaded*, *stored*: bytes by all lanes.
- *issue bound*: **a prediction, not a measurement**: the share of a copy's rate beyond which an H200 could not issue the
  instructions (132 processors, 128 lanes each, 1.755 GHz; 4.0 TB/s), if each were one. 1.00 where memory is the limit.

| operation | launches | instructions | issued | must move | touched | asked | loaded | stored | bytes a load | bytes a store | issue bound |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |
";

const BY_ENTRY: &str = "
## By entry

*loads a wave*: how many it runs, and of how many bytes a lane each; *again* are those, of any width, of one
sector that the launch had loaded before: tables, code, and others that a first-level cache has.

| operation | entry | launches | rows a wave | loads a wave | instructions | issued | touched | asked |
| --- | --- | --: | --: | --- | --: | --: | --: | --: |
";

const BATCHES: &str = "
## Batches

The calls of the driver by which a batch is filtered by a uniform mask of 50 %, from the second run on: of
small batches, and of one with more rows and columns than are filtered in one launch.

| batch | launches | host waits | calls | of these |
| --- | --: | --: | --: | --- |
";

const OTHER_OPERATIONS: &str = "
The same of other operations. A safe cast has nothing to say that the host would look at; kernels that cast take one column.

| operation and batch | launches | host waits | calls | of these |
| --- | --: | --: | --: | --- |
";

type Ran = BTreeMap<(String, String), Cost>;

/// The images whose lines are counted, and what was counted: an operation, a family, an entry, and how often
/// waves ran each line.
type ByLine = (Arc<Images>, String);

struct Bench {
    /// Takes the counts since the last call, by family and entry.
    ran: Box<dyn Fn() -> Ran>,
    stream: Stream,
    /// Each operation, and the work of its entries.
    costs: Vec<(String, Cost)>,
    table: String,
    by_entry: String,
    by_line: Option<ByLine>,
}

impl Bench {
    fn new(device: &EmulatedDevice, ran: impl Fn() -> Ran + 'static) -> Bench {
        let stream = device.device().stream().unwrap();
        let (table, by_entry) = (HEAD.into(), BY_ENTRY.into());
        Bench { ran: Box::new(ran), stream, costs: vec![], table, by_entry, by_line: None }
    }

    /// Runs all operations, in the order of the table.
    fn all(&mut self) {
        let rng = &mut Random::new(1);
        // Other seeds put rows in other slots of hash tables.
        set_hashes(Hashes { seed: Some(1), weak_rounds: 0 });
        self.filters(rng);
        self.takes(rng);
        self.casts(rng);
        self.written(rng);
        self.nulls(rng);
        self.others(rng);
        self.sorts(rng);
        self.expressions(rng);
        self.groups(rng);
        set_hashes(Hashes::default());
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn on(&self, array: &ArrayRef) -> DeviceArray {
        self.stream.upload(&from_arrow(array).unwrap()).unwrap()
    }

    /// Runs an operation; `must` is the number of bytes that it has to move in any case.
    fn row<T>(&mut self, name: &str, must: usize, work: impl FnOnce(&Stream) -> bowstring::Result<T>) -> T {
        self.stream.synchronise().unwrap();
        (self.ran)();
        self.by_line.iter().for_each(|(images, _)| drop(images.lines()));
        let result = work(&self.stream).unwrap();
        self.stream.synchronise().unwrap();
        if let Some((images, written)) = &mut self.by_line {
            for ((family, entry), lines) in images.lines() {
                let lines: Vec<String> =
                    lines.iter().map(|(line, times)| format!("{line}:{times}")).collect();
                writeln!(written, "{name}\t{family}\t{entry}\t{}", lines.join(" ")).unwrap();
            }
        }
        let mut cost = Cost::default();
        let a_row = |n: u64| n as f64 / ROWS as f64;
        for ((_, entry), of_entry) in (self.ran)() {
            let mut loads = vec![];
            for (i, of_width) in of_entry.loads_of.into_iter().enumerate().filter(|(_, n)| *n > 0) {
                loads.push(format!("{:.1}x{}", of_width as f64 / of_entry.waves as f64, 1 << i));
            }
            if of_entry.loads_again > 0 {
                loads.push(format!("{:.1} again", of_entry.loads_again as f64 / of_entry.waves as f64));
            }
            self.by_entry += &format!(
                "| {name} | {entry} | {} | {} | {} | {:.2} | {:.2} | {:.3} | {:.3} |\n",
                of_entry.launches,
                ROWS as u64 * of_entry.launches / of_entry.waves,
                loads.join(" "),
                a_row(of_entry.instructions),
                a_row(of_entry.issued * 32),
                a_row(of_entry.touched * SECTOR),
                a_row(of_entry.asked * SECTOR),
            );
            cost += of_entry;
        }
        self.costs.push((name.to_owned(), cost));
        let each = |bytes: u64, accesses: u64| bytes as f64 / accesses.max(1) as f64;
        let (issued, must) = (a_row(cost.issued * 32), must as f64 / ROWS as f64);
        self.table += &format!(
            "| {name} | {} | {:.1} | {issued:.1} | {must:.3} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} | {:.1} | {:.2} |\n",
            cost.launches,
            a_row(cost.instructions),
            a_row(cost.touched * SECTOR),
            a_row(cost.asked * SECTOR),
            a_row(cost.bytes_loaded),
            a_row(cost.bytes_stored),
            each(cost.bytes_loaded, cost.loads),
            each(cost.bytes_stored, cost.stores),
            f64::min(1.0, must / COPY / (issued / LANES)),
        );
        result
    }

    fn filters(&mut self, rng: &mut Random) {
        let uniform = |percent| (percent, 1);
        let clustered = |percent| (percent, 1024);
        let mut cases = vec![];
        for data_type in [DataType::Int32, DataType::Int64] {
            let kinds = [1.0, 10.0, 50.0, 90.0, 99.0].map(uniform);
            let runs = [1.0, 10.0, 50.0].map(clustered);
            cases.extend(kinds.into_iter().chain(runs).map(|kind| (data_type.clone(), false, kind)));
            cases.push((data_type.clone(), false, (50.0, 20_000)));
            cases.push((data_type, true, uniform(50.0)));
        }
        let halved =
            [DataType::Int8, DataType::Int16, DataType::Decimal128(38, 2), DataType::Decimal256(40, 2)];
        let halved = halved.into_iter().chain([DataType::Boolean, DataType::Utf8]);
        cases.extend(halved.map(|data_type| (data_type, false, uniform(50.0))));
        for (data_type, nulls, (percent, run)) in cases {
            let values = values(&data_type, nulls, rng);
            let keep: ArrayRef = Arc::new(kept(percent, run, rng));
            let kept =
                arrow_select::filter::filter(&values, arrow_array::cast::AsArray::as_boolean(&keep)).unwrap();
            let (ours, on) = (self.on(&values), self.on(&keep));
            let how = if run == 1 { "uniform".into() } else { format!("in runs of {run}") };
            let nullable = if nulls { ", nulls" } else { "" };
            let name = format!("filter {data_type}, {percent} % {how}{nullable}");
            self.row(&name, ROWS / 8 + 2 * bytes_of(&kept), |stream| filter(&ours, &on, stream).wait());
        }
    }

    fn takes(&mut self, rng: &mut Random) {
        for (data_type, nulls, ascending) in [
            (DataType::Int32, false, true),
            (DataType::Int64, false, true),
            (DataType::Int32, false, false),
            (DataType::Int64, false, false),
            (DataType::Int32, true, false),
            (DataType::Boolean, false, false),
            (DataType::Utf8, false, false),
        ] {
            let values = values(&data_type, nulls, rng);
            let index = |row| if ascending { row } else { rng.below(ROWS) as u32 };
            let indices: ArrayRef = Arc::new(UInt32Array::from_iter_values((0..ROWS as u32).map(index)));
            let taken = arrow_select::take::take(&values, &indices, None).unwrap();
            let (ours, on) = (self.on(&values), self.on(&indices));
            let order = if ascending { "ascending" } else { "random" };
            let nullable = if nulls { ", nulls" } else { "" };
            let name = format!("take {data_type}, {order}{nullable}");
            self.row(&name, 4 * ROWS + 2 * bytes_of(&taken), |stream| {
                take(&ours, &on, &TakeOptions::default(), stream).wait()
            });
        }
    }

    fn casts(&mut self, rng: &mut Random) {
        for (from, to) in [
            (DataType::Int32, DataType::Int64),
            (DataType::Int64, DataType::Int32),
            (DataType::Int32, DataType::Int8),
            (DataType::Int8, DataType::Int16),
            (DataType::Float64, DataType::Int32),
            (DataType::Int32, DataType::Float64),
            (DataType::Float64, DataType::Float32),
            (DataType::Int64, DataType::Decimal128(18, 2)),
            (DataType::Decimal128(38, 10), DataType::Decimal128(38, 2)),
            (DataType::Decimal128(38, 10), DataType::Int64),
            (DataType::Date32, DataType::Timestamp(TimeUnit::Millisecond, None)),
            (DataType::Utf8, DataType::LargeUtf8),
            (DataType::Binary, DataType::Utf8),
        ] {
            let values = values(&from, true, rng);
            let right = arrow_cast::cast(&values, &to).unwrap();
            let ours = self.on(&values);
            let must = bytes_of(&values) + bytes_of(&right);
            self.row(&format!("cast {from} to {to}, nulls"), must, |stream| {
                cast(&ours, &to, &CastOptions::default(), stream).wait()
            });
        }
    }

    /// Casts numbers of 8 digits on average, prices, days and moments to text and back.
    fn written(&mut self, rng: &mut Random) {
        let mut numbers = |limit: usize| -> Vec<i64> { (0..ROWS).map(|_| rng.below(limit) as i64).collect() };
        let integers: ArrayRef =
            Arc::new(Int64Array::from(numbers(1_000_000_000).iter().map(|x| x / 5).collect::<Vec<_>>()));
        let floats = numbers(100_000_000).into_iter().map(|x| x as f64 / 100.0);
        let long = numbers(usize::MAX).into_iter().map(|x| f64::from_bits(x as u64 >> 2 | 0x3fe << 52));
        let days = numbers(11_000).into_iter().map(|x| x as i32 + 8_000);
        let moments = numbers(1_000_000_000).into_iter().map(|x| x * 1_000_003 + 700_000_000_000_000);
        // Valid text that is not ASCII, of 13 bytes on average.
        let words = ["Grüße", "aus", "Zürich", "и Москвы", "世界", "plain text", "ŝanĝoĵaŭde", ""];
        let texts = |rng: &mut Random| format!("{} {}", rng.pick(&words), rng.pick(&words));
        let texts: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..ROWS).map(|_| texts(rng))));
        let ours = self.on(&texts);
        self.row("cast Binary to Utf8, all text, half of it not ASCII", 2 * bytes_of(&texts), |stream| {
            cast(&ours, &DataType::Utf8, &CastOptions::default(), stream).wait()
        });
        let all: [(&str, ArrayRef); 5] = [
            ("Int64, 8 digits", integers),
            ("Float64, 8 digits", Arc::new(Float64Array::from_iter_values(floats))),
            ("Float64, 16 digits", Arc::new(Float64Array::from_iter_values(long))),
            ("Date32", Arc::new(Date32Array::from_iter_values(days))),
            ("Timestamp(µs)", Arc::new(TimestampMicrosecondArray::from_iter_values(moments))),
        ];
        for (name, values) in all {
            let texts = arrow_cast::cast(&values, &DataType::Utf8).unwrap();
            let must = bytes_of(&values) + bytes_of(&texts);
            for (given, to, name) in [
                (&values, DataType::Utf8, format!("cast {name} to Utf8")),
                (&texts, values.data_type().clone(), format!("cast Utf8 to {name}")),
            ] {
                let ours = self.on(given);
                self.row(&name, must, |stream| cast(&ours, &to, &CastOptions::default(), stream).wait());
            }
        }
    }

    fn nulls(&mut self, rng: &mut Random) {
        let values = uncounted(self.on(&values(&DataType::Int32, true, rng)));
        self.row("null_count", ROWS / 8, |stream| null_count(&values, stream).wait());
        self.row("is_null", ROWS / 4, |stream| is_null(&values, stream).wait());
    }

    /// Runs the operations of the table that the other methods leave out.
    fn others(&mut self, rng: &mut Random) {
        let here = ["filter", "take", "cast", "null_count", "is_null"];
        for operation in OPERATIONS.iter().filter(|operation| !here.contains(&operation.name)) {
            let host = values(&DataType::Int32, true, rng);
            let argument = (operation.argument)(&DataType::Int32, ROWS, rng).unwrap();
            let written = match (operation.arrow)(&host, &argument).unwrap() {
                Answer::Array(array) => bytes_of(&array),
                Answer::Count(_) => 0,
            };
            // Operations that return which rows are null read only the bitmap; those that return values also
            // read these.
            let read = if written > ROWS { bytes_of(&host) } else { ROWS / 8 };
            let there = uncounted(self.on(&host));
            self.row(&format!("{} Int32, nulls", operation.name), read + written, |stream| {
                operation.run(&there, &argument, stream)
            });
        }
    }
}

/// Random values; one row in ten is null, or none. Strings have 0 to 24 bytes.
fn values(data_type: &DataType, nulls: bool, rng: &mut Random) -> ArrayRef {
    let values = match data_type {
        DataType::Utf8 => {
            let text = "abcdefghijklmnopqrstuvwx";
            Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| &text[..rng.below(text.len() + 1)])))
        }
        other => array(other, ROWS, Nulls::None, rng),
    };
    let validity = nulls.then(|| NullBuffer::new(bitmap(ROWS, 90.0, 1, rng)));
    make_array(values.to_data().into_builder().nulls(validity).build().unwrap())
}

/// A mask that keeps single rows, or runs of a length. The number of runs is drawn so that the percentage is
/// as exact as it can be.
fn kept(percent: f64, run: usize, rng: &mut Random) -> BooleanArray {
    if run == 1 {
        return mask(Mask { percent, run, nulls: Nulls::None }, ROWS, rng);
    }
    let mut order: Vec<usize> = (0..ROWS.div_ceil(run)).collect();
    (1..order.len()).for_each(|i| order.swap(i, rng.below(i + 1)));
    let runs = (order.len() as f64 * percent / 100.0).round() as usize;
    BooleanArray::from_iter((0..ROWS).map(|row| Some(order[..runs].contains(&(row / run)))))
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
    let counted = images.clone();
    let mut bench = Bench::new(&device, move || counted.ran());
    // ptx/executed.py turns these counts into those of the hardware's instructions.
    let lines = std::env::var_os("BOWSTRING_LINES");
    bench.by_line = lines.is_some().then(|| (images, format!("{ROWS}\n")));
    bench.all();
    if let (Some(file), Some((_, written))) = (lines, bench.by_line.take()) {
        std::fs::write(file, written).unwrap();
    }
    assert_eq!(device.faults(), []);
    let (one, widths) =
        ([DataType::Int64], [DataType::Int8, DataType::Int16, DataType::Int32, DataType::Int64]);
    let mut written = bench.table + &bench.by_entry + BATCHES;
    for nulls in [Nulls::None, Nulls::Some] {
        written += &batch(FILTER, "", 8192, 1, &one, nulls);
        written += &batch(FILTER, "", 8192, 10, &one, nulls);
        written += &batch(FILTER, "", 1 << 17, 25, &widths, nulls);
    }
    written += OTHER_OPERATIONS;
    for (name, work) in OTHERS {
        for columns in [1, 10, 100] {
            written += &batch(work, &format!("{name}, "), 8192, columns, &one, Nulls::Some);
        }
    }
    written += &amd::table();
    if std::env::var_os("BOWSTRING_BLESS").is_some() {
        std::fs::write(TABLE, written).unwrap();
    } else {
        let said = std::fs::read_to_string(TABLE).unwrap();
        assert_eq!(said, written, "ptx/COSTS.md is stale: tools/bless costs");
    }
}
