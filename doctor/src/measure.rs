//! Measures how fast a device is, in wall time: copies, and an operation of each kind.
//!
//! The one idea: the number of rows grows until the remaining time or memory would not do for four times as
//! many. So a slow device has small figures instead of none, and only those at full size are compared with
//! predictions.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, BooleanArray, Int32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{DataType, Field, Schema};

use bowstring::compute::{CastOptions, TakeOptions, cast, evaluate, filter, take};
use bowstring::exchange::from_arrow;
use bowstring::expr::col;
use bowstring::{DeviceArray, DeviceBatch, Result, Stream, internals};

use super::calibrate::{Gathered, again, copied, gathers, small, smallest, time, upload};
use super::predictions::{self, Prediction};
use super::samples::random;

/// Rows that measurements begin with, and rows that predictions are for.
const FIRST: usize = 1 << 14;
const FULL: usize = 1 << 28;
/// Rows that a CPU is measured with at most: enough to exceed its caches.
const FULL_ON_CPU: usize = 1 << 24;
/// Bytes of memory that a row takes in all, at most.
const BYTES_A_ROW: usize = 64;
/// Rows that the host makes and sends. Further rows are copies of these, made on the device, which is fast.
/// As indices they reach all rows, and they are many more than a cache holds.
pub(super) const MADE: usize = 1 << 22;

/// The time of one kind of work.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub work: &'static str,
    pub seconds: f64,
    /// Bytes that the work must move, if that is known.
    pub bytes: Option<f64>,
    pub prediction: Option<Prediction>,
}

/// All measurements of a device.
#[derive(Clone, Debug, Default)]
pub(super) struct Speed {
    pub rows: usize,
    pub works: Vec<Measured>,
    /// Seconds that the host takes to put an operation of one launch on a stream, and until its result has
    /// arrived.
    pub queued: f64,
    pub waited_for: f64,
    /// Seconds for other small things, on a GPU.
    pub small: Vec<(&'static str, f64)>,
    /// Bytes a second of copies from pinned memory and to it, and from pageable memory and to it.
    pub copied: Vec<f64>,
    /// Random reads, by width and size of memory.
    pub gathered: Vec<Gathered>,
    /// For each number of rows: the rows, bytes a second of a copy within the device, and seconds of a random
    /// take. Few rows show the speed of the GPU's cache, many rows that of its memory.
    pub grown: Vec<(usize, f64, f64)>,
}

impl Speed {
    /// Bytes that a copy within the device reads and writes in a second.
    pub fn copy_rate(&self) -> Option<f64> {
        self.work(WITHIN)?.rate()
    }

    fn work(&self, name: &str) -> Option<&Measured> {
        self.works.iter().find(|measured| measured.work == name)
    }
}

impl Measured {
    pub fn rate(&self) -> Option<f64> {
        Some(self.bytes? / self.seconds)
    }
}

pub(super) const UP: &str = "copy up";
pub(super) const DOWN: &str = "copy down";
pub(super) const WITHIN: &str = "copy within";
const RANDOM: &str = "take Int32, random";

/// Arrays on the device that the works read.
struct Inputs {
    values: DeviceArray,
    /// The same values as `Int64`, with nulls.
    wide: DeviceArray,
    mask: DeviceArray,
    indices: DeviceArray,
}

/// Measures a stream's device with up to `most` rows until the time is over. It may use `free` bytes of the
/// device's memory and of the host's.
pub(super) fn measure(
    stream: &Stream,
    until: Instant,
    most: usize,
    free: usize,
    note: &dyn Fn(&str, usize, usize),
) -> Result<Speed> {
    let on_gpu = is_gpu(stream);
    let full = most.min(if on_gpu { FULL } else { FULL_ON_CPU });
    let mut found = Speed::default();
    note("small things", 0, full.ilog2() as usize);
    (found.queued, found.waited_for) = smallest(stream)?;
    if on_gpu {
        found.small = small(stream)?;
        if let Some((pinning, rates)) = copied(stream, free)? {
            found.small.push(("a MiB pinned", pinning));
            found.copied = rates.into();
        }
        found.gathered = gathers(stream, free)?;
    }
    let mut rows = FIRST;
    loop {
        note(&format!("{rows} rows"), rows.ilog2() as usize, full.ilog2() as usize);
        let start = Instant::now();
        found = Speed { rows, works: works(stream, rows)?, ..found };
        if let Some((rate, take)) = found.copy_rate().zip(found.work(RANDOM)) {
            let grown = (rows, rate, take.seconds);
            found.grown.push(grown);
        }
        // Four times the rows take at most five times as long; the first sizes are timed more often.
        let next = start.elapsed() * 5;
        rows *= 4;
        if rows > full || rows.saturating_mul(BYTES_A_ROW) > free || Instant::now() + next > until {
            return Ok(found);
        }
    }
}

/// Whether a stream is a GPU's, or an emulated one's.
fn is_gpu(stream: &Stream) -> bool {
    stream.native_handle().is_some()
}

fn works(stream: &Stream, rows: usize) -> Result<Vec<Measured>> {
    let on_gpu = is_gpu(stream);
    let mut all = vec![];
    let mut add = |work: &'static str, seconds: f64, bytes: Option<f64>| {
        let known = predictions::of(work, rows).filter(|_| on_gpu);
        // A GPU moves whole sectors; the table of predictions counts them.
        let bytes = known.map(|(_, bytes)| bytes * rows as f64).or(bytes);
        all.push(Measured { work, seconds, bytes, prediction: known.map(|(prediction, _)| prediction) });
    };
    let made = rows.min(MADE);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..made).map(|i| random(i) as i32)));
    let host = from_arrow(&numbers)?;
    let bytes = 4.0 * rows as f64;
    let inputs = inputs(stream, &host, rows)?;
    if on_gpu {
        let (some, there) = (Some(4.0 * made as f64), inputs.values.slice(0, made)?);
        add(UP, time(stream, || stream.upload(&host).map(drop))?, some);
        add(DOWN, time(stream, || stream.download(&there)?.wait())?, some);
        add(WITHIN, time(stream, internals::copy_within(stream, 4 * rows)?)?, Some(2.0 * bytes));
    } else {
        let (from, mut to) = (vec![1u8; 4 * rows], vec![2u8; 4 * rows]);
        let copy = || {
            black_box(&mut to).copy_from_slice(black_box(&from));
            Ok(())
        };
        add(WITHIN, time(stream, copy)?, Some(2.0 * bytes));
    }
    let Inputs { values, wide, mask, indices } = &inputs;
    let options = TakeOptions::default();
    add(
        "filter Int32, 50 % uniform",
        time(stream, || filter(values, mask, stream).wait().map(drop))?,
        Some(rows as f64 * 6.125),
    );
    add(RANDOM, time(stream, || take(values, indices, &options, stream).wait().map(drop))?, None);
    let safe = CastOptions::default();
    add(
        "cast Int64 to Int32, nulls",
        time(stream, || cast(wide, &DataType::Int32, &safe, stream).wait().map(drop))?,
        Some(rows as f64 * 12.25),
    );
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]));
    let batch = DeviceBatch::try_new(schema, vec![values.clone()], rows)?;
    let less = [col("a").lt(0)];
    add(
        "a < k, Int32",
        time(stream, || evaluate(&batch, &less, stream).wait().map(drop))?,
        Some(rows as f64 * 4.125),
    );
    Ok(all)
}

fn bits(rows: usize, word: impl Fn(usize) -> u64) -> BooleanBuffer {
    let words: Vec<u64> = (0..rows.div_ceil(64)).map(word).collect();
    BooleanBuffer::new(words.into(), 0, rows)
}

fn inputs(stream: &Stream, values: &DeviceArray, rows: usize) -> Result<Inputs> {
    let made = values.len();
    let mask = upload(stream, Arc::new(BooleanArray::new(bits(made, |i| random(i + made)), None)))?;
    // One row in sixteen is null.
    let nulls = bits(made, |i| (0..4).fold(0, |any, k| any | random(5 * i + k)));
    let nulls = upload(stream, Arc::new(BooleanArray::new(nulls.clone(), Some(nulls.into()))))?;
    let indices = |i| (((random(i + 3) >> 32) * rows as u64) >> 32) as i32;
    let indices = upload(stream, Arc::new(Int32Array::from_iter_values((0..made).map(indices))))?;
    let values = stream.upload(values)?;
    let mut parts = values.clone().into_parts();
    (parts.validity, parts.null_count) = (nulls.validity().cloned(), None);
    let wide =
        cast(&DeviceArray::try_new(parts)?, &DataType::Int64, &CastOptions::default(), stream).wait()?;
    let [values, wide, mask, indices] = [values, wide, mask, indices].map(|made| again(stream, made, rows));
    let inputs = Inputs { values: values?, wide: wide?, mask: mask?, indices: indices? };
    stream.synchronise()?;
    Ok(inputs)
}
