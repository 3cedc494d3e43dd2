//! Measures the host's cost of an operation, apart from the device's time: the time in our code, and the
//! calls of the runtime's functions. The runtime is the stand-in for CUDA's library, so **nothing here is a
//! measurement of a GPU**. The stand-in reports the calling thread's time inside it, which is subtracted, and
//! the number of calls of each function. If CUDA is installed, the bench also prints the wall time of the
//! same operations, which is the real total.
//!
//! `cargo bench --bench host_cost` prints tables in Markdown. Each time is the median of many runs. Calls are
//! those of batches of 8,192 rows; our own time is of batches of a few rows, because the stand-in runs
//! kernels on the same processor, and would displace our code and data from its caches.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bowstring::compute::{CastOptions, TakeOptions, aggregate, cast, filter, filter_where, null_count, take};
use bowstring::device::testing::open_from;
use bowstring::exchange::{batch_from_arrow, from_arrow};
use bowstring::expr::{col, count, lit, sum};
use bowstring::ffi::DeviceType;
use bowstring::{Device, DeviceArray, DeviceBatch, Result, Stream};
use libloading::Library;

const ROWS: usize = 8_192;
/// The rows of the batches whose time is taken on the stand-in.
const FEW: usize = 8;

/// The assumed cost of one call on a real driver, in nanoseconds: **assumptions** of the usual size, not
/// measurements.
const ASSUMED: [(&str, f64); 13] = [
    ("cuLaunchKernel", 2500.0),
    ("cuMemcpyHtoDAsync_v2", 2500.0),
    ("cuMemcpyDtoHAsync_v2", 2500.0),
    ("cuMemsetD8Async", 2000.0),
    ("cuMemAllocFromPoolAsync", 1000.0),
    ("cuMemFreeAsync", 700.0),
    ("cuEventRecord", 700.0),
    ("cuStreamWaitEvent", 500.0),
    ("cuEventQuery", 400.0),
    // In addition to the waiting.
    ("cuEventSynchronize", 1500.0),
    ("cuCtxSetCurrent", 100.0),
    // A number of the thread is exchanged.
    ("cuThreadExchangeStreamCaptureMode", 50.0),
    ("cuCtxGetCurrent", 20.0),
];

/// The stand-in's library, with the functions that report on this thread.
struct Standin {
    path: PathBuf,
    forget: unsafe extern "C" fn(),
    inside: unsafe extern "C" fn() -> u64,
    each: unsafe extern "C" fn(unsafe extern "C" fn(*const u8, usize, u64, *mut c_void), *mut c_void),
}

type Calls = BTreeMap<String, u64>;

unsafe extern "C" fn note(name: *const u8, len: usize, times: u64, data: *mut c_void) {
    // SAFETY: the stand-in passes a name's bytes, and the map that `calls` gave it.
    unsafe {
        let name = String::from_utf8_lossy(std::slice::from_raw_parts(name, len)).into_owned();
        (*data.cast::<Calls>()).insert(name, times);
    }
}

impl Standin {
    fn load() -> Standin {
        let beside = std::env::current_exe().expect("benches are somewhere");
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let path = beside.with_file_name(format!("{prefix}bowstring_standin{suffix}"));
        // SAFETY: loading the stand-in does nothing else.
        let library = unsafe { Library::new(&path) }.expect("cargo puts the stand-in next to the benches");
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the functions have these types.
        unsafe {
            Standin {
                path,
                forget: *library.get(b"standin_forget").expect("it has it"),
                inside: *library.get(b"standin_inside").expect("it has it"),
                each: *library.get(b"standin_each_call").expect("it has it"),
            }
        }
    }

    fn calls(&self) -> Calls {
        let mut calls = Calls::new();
        // SAFETY: `note` takes the map.
        unsafe { (self.each)(note, (&raw mut calls).cast()) };
        calls
    }
}

/// An operation on a batch.
type Work = fn(&Inputs) -> Result<Vec<DeviceArray>>;

struct Inputs {
    batch: DeviceBatch,
    /// The same batch with unknown null counts.
    uncounted: DeviceBatch,
    narrow: SchemaRef,
    mask: DeviceArray,
    indices: DeviceArray,
    stream: Stream,
}

const WORKS: [(&str, Work); 6] = [
    ("filter", |on| Ok(filter(&on.batch, &on.mask, &on.stream).wait()?.columns().to_vec())),
    ("filter_where", |on| {
        let kept = filter_where(&on.batch, &col("0").lt(lit(ROWS as i64 / 2)), &on.stream).wait()?;
        Ok(kept.columns().to_vec())
    }),
    ("aggregate", |on| {
        let summed = aggregate(&on.batch, &[sum(col("0")), count(col("0"))], None, &on.stream).wait()?;
        Ok(summed.columns().to_vec())
    }),
    ("take", |on| {
        let taken = take(&on.batch, &on.indices, &TakeOptions::default(), &on.stream).wait()?;
        Ok(taken.columns().to_vec())
    }),
    ("cast", |on| {
        let casted = cast(&on.batch, &on.narrow, &CastOptions::default(), &on.stream).wait()?;
        Ok(casted.columns().to_vec())
    }),
    ("null_count", |on| {
        null_count(&on.uncounted, &on.stream).wait()?;
        Ok(vec![])
    }),
];

/// Columns of 64-bit numbers, with one null in ten rows or none.
fn inputs(device: &Device, rows: usize, columns: usize, nulls: bool) -> Inputs {
    let stream = device.stream().expect("a stream");
    let column = |i: usize| -> (String, ArrayRef) {
        let value =
            |row: usize| (!nulls || !(row * 7 + i).is_multiple_of(10)).then_some((row * 31 + i) as i64);
        (format!("{i}"), Arc::new(Int64Array::from_iter((0..rows).map(value))))
    };
    let batch = RecordBatch::try_from_iter((0..columns).map(column)).expect("columns of one length");
    let mask: ArrayRef =
        Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row * 2654435761 % 97 < 48))));
    let indices: ArrayRef =
        Arc::new(Int32Array::from_iter_values((0..rows).map(|row| (row * 4099 % rows) as i32)));
    let up = |array: &ArrayRef| stream.upload(&from_arrow(array).expect("an array")).expect("room");
    let narrow = |i: usize| Field::new(format!("{i}"), DataType::Int32, true);
    let narrow = Arc::new(Schema::new((0..columns).map(narrow).collect::<Vec<_>>()));
    let batch = stream.upload(&batch_from_arrow(&batch).expect("a batch")).expect("room");
    let uncounted = |column: &DeviceArray| {
        let mut parts = column.clone().into_parts();
        parts.null_count = None;
        DeviceArray::try_new(parts).expect("as it was")
    };
    let uncounted = batch.columns().iter().map(uncounted).collect();
    Inputs {
        uncounted: DeviceBatch::try_new(batch.schema().clone(), uncounted, rows).expect("as it was"),
        narrow,
        batch,
        mask: up(&mask),
        indices: up(&indices),
        stream: stream.clone(),
    }
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The cost of one run of an operation: nanoseconds of wall time, the part of them in our code, calls, and
/// new memory.
struct Cost {
    wall: f64,
    own: f64,
    /// The least of all runs: the cost when no other work has used the caches.
    least: f64,
    calls: Calls,
    hits: u64,
    misses: u64,
}

fn measure(on: &Inputs, device: &Device, work: Work, standin: Option<&Standin>, runs: usize) -> Cost {
    for _ in 0..3 {
        work(on).expect("an operation");
        on.stream.synchronise().expect("its end");
    }
    let before = device.memory_usage();
    let (mut walls, mut owns, mut calls) = (vec![], vec![], Calls::new());
    for _ in 0..runs {
        if let Some(standin) = standin {
            // SAFETY: the function takes nothing.
            unsafe { (standin.forget)() };
        }
        let start = Instant::now();
        let result = work(on).expect("an operation");
        drop(result);
        let wall = start.elapsed().as_nanos() as f64;
        // SAFETY: the function takes nothing.
        let inside = standin.map_or(0.0, |standin| unsafe { (standin.inside)() } as f64);
        calls = standin.map(Standin::calls).unwrap_or_default();
        walls.push(wall);
        owns.push(wall - inside);
        on.stream.synchronise().expect("its end");
    }
    let after = device.memory_usage();
    let (hits, misses) = (after.hits - before.hits, after.misses - before.misses);
    let least = owns.iter().copied().fold(f64::INFINITY, f64::min);
    Cost { wall: median(walls), own: median(owns), least, calls, hits, misses }
}

/// The cost of measuring one call: two reads of the clock, part of which the stand-in cannot subtract.
fn overhead(standin: &Standin, device: &Device) -> f64 {
    let (runs, event) = (20_000u32, device.stream().expect("a stream"));
    let start = Instant::now();
    // SAFETY: the function takes nothing.
    unsafe { (standin.forget)() };
    for _ in 0..runs {
        // One call into the runtime: the stream is empty.
        event.synchronise().expect("an idle stream");
    }
    // SAFETY: as above.
    let inside = unsafe { (standin.inside)() } as f64;
    let calls: u64 = standin.calls().values().sum();
    (start.elapsed().as_nanos() as f64 - inside) / calls as f64
}

fn standin_tables(runs: impl Fn(usize) -> usize) {
    let standin = Standin::load();
    let device = open_from(&standin.path, DeviceType::Cuda, 0).expect("the stand-in has devices");
    println!("On {}: our own time for {FEW} rows, and calls of the driver for {ROWS}.", device.name());
    println!("A call costs at most {:.0} ns beyond what is taken off.\n", overhead(&standin, &device));
    println!(
        "| operation | columns | nulls | own, µs | at best, µs | calls | launches | copies | memsets | predicted, µs | pool hits | new memory | calls by name |"
    );
    println!("| --- | --: | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |");
    for (name, work) in WORKS {
        for columns in [1, 10, 100] {
            for nulls in [false, true] {
                if name == "null_count" && !nulls {
                    continue;
                }
                let of = |rows: usize, runs: usize| {
                    measure(&inputs(&device, rows, columns, nulls), &device, work, Some(&standin), runs)
                };
                let (few, many) = (of(FEW, runs(columns)), of(ROWS, 1));
                println!("{}", row(name, columns, nulls, &Cost { own: few.own, least: few.least, ..many }));
            }
        }
    }
}

fn row(name: &str, columns: usize, nulls: bool, cost: &Cost) -> String {
    let of = |names: &[&str]| -> u64 { names.iter().filter_map(|name| cost.calls.get(*name)).sum() };
    let assumed =
        |name: &str| ASSUMED.iter().find(|(known, _)| *known == name).map_or(1000.0, |(_, cost)| *cost);
    let driver: f64 = cost.calls.iter().map(|(name, times)| assumed(name) * *times as f64).sum();
    let by_name = cost.calls.iter().map(|(name, times)| format!("{name} {times}"));
    format!(
        "| {name} | {columns} | {} | {:.1} | {:.1} | {} | {} | {} | {} | {:.0} | {:.1} % | {} | {} |",
        if nulls { "some" } else { "none" },
        cost.own / 1e3,
        cost.least / 1e3,
        cost.calls.values().sum::<u64>(),
        of(&["cuLaunchKernel"]),
        of(&["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2"]),
        of(&["cuMemsetD8Async"]),
        (cost.own + driver) / 1e3,
        100.0 * cost.hits as f64 / (cost.hits + cost.misses).max(1) as f64,
        of(&["cuMemAllocFromPoolAsync", "cuMemAlloc_v2", "cuMemHostAlloc", "cuEventCreate"]),
        by_name.collect::<Vec<_>>().join(", "),
    )
}

/// On a real GPU: the total wall time, including the device's time if an operation waits.
fn installed_tables(runs: impl Fn(usize) -> usize) {
    let Ok(device) = Device::cuda(0) else { return };
    println!("\nOn {}: time on the wall until the call returns.\n", device.name());
    println!("| operation | columns | nulls | wall, µs |\n| --- | --: | --- | --: |");
    for (name, work) in WORKS {
        for columns in [1, 10, 100] {
            for nulls in [false, true] {
                let cost =
                    measure(&inputs(&device, ROWS, columns, nulls), &device, work, None, runs(columns));
                let nulls = if nulls { "some" } else { "none" };
                println!("| {name} | {columns} | {nulls} | {:.1} |", cost.wall / 1e3);
            }
        }
    }
    println!(
        "\nWhat its driver compiled for that, or found in its cache (`CUDA_CACHE_DISABLE=1` turns that off):\n"
    );
    println!("| kernel | family | ms |\n| --- | --- | --: |");
    for image in device.images_loaded() {
        println!("| {} | {} | {:.2} |", image.name, image.family, image.time.as_secs_f64() * 1e3);
    }
}

fn main() {
    // `cargo test --benches` runs each once, to check that it works.
    let bench = std::env::args().any(|argument| argument == "--bench");
    let runs = |columns: usize| if bench { (400 / columns).clamp(9, 200) } else { 1 };
    standin_tables(runs);
    installed_tables(|columns| if bench { 20_000 / columns } else { 1 });
}
