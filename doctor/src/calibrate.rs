//! Measures the cost of small things on a GPU, and the speed of random reads: the numbers that predictions
//! are made of. Takes about two seconds in all.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int32Array};
use arrow_schema::DataType;
use bowstring::compute::{TakeOptions, concat, is_null, take};
use bowstring::exchange::from_arrow;
use bowstring::internals::{self, Copies};
use bowstring::{DeviceArray, Result, Stream};

use super::samples::random;

/// Waves that do atomics on the same words, at first and on a device that is fast.
const FEW_WAVES: usize = 64;
const MANY_WAVES: usize = 4096;
/// Bytes of the host's memory that are copied, pinned or not.
const PINNED: usize = 32 << 20;
/// Bytes of memory that is read at random: on a GPU, more than its caches hold and few enough to fit in them;
/// and few for slow devices and for those with little memory.
const FAR: usize = 1 << 30;
const NEAR: usize = 4 << 20;
const LITTLE: usize = 1 << 20;
/// How many rows are read: many on a GPU, few on a device that takes longer than `SLOW` for the few. A GPU
/// takes some 20 µs for the few, an interpreter of its kernels more than 10 ms.
const MANY: usize = 1 << 21;
const FEW: usize = 4096;
const SLOW: f64 = 1e-3;

/// The speed of random reads: the bytes of a row, the bytes of the memory that the rows are in, and the rows
/// a second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gathered {
    pub width: usize,
    pub from: usize,
    pub rate: f64,
}

pub(super) fn upload(stream: &Stream, array: ArrayRef) -> Result<DeviceArray> {
    stream.upload(&from_arrow(&array)?)
}

/// The median seconds of a piece of work. Several calls run in a row, so that the host gets ahead of a
/// device.
pub(super) fn time(stream: &Stream, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut all = |times: u32| -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..times {
            run()?;
        }
        stream.synchronise()?;
        Ok(start.elapsed() / times)
    };
    let first = all(1)?;
    if first > Duration::from_secs(1) {
        return Ok(first.as_secs_f64());
    }
    let second = all(1)?;
    let times = (Duration::from_millis(5).as_nanos() / second.as_nanos().max(1)).clamp(1, 50) as u32;
    let rounds = if second > Duration::from_millis(50) { 2 } else { 5 };
    let taken = (0..rounds).map(|_| all(times)).collect::<Result<_>>()?;
    Ok(median(taken).unwrap_or_default())
}

/// The median in seconds; `None` if there are no times.
fn median(mut times: Vec<Duration>) -> Option<f64> {
    times.sort();
    times.get(times.len() / 2).map(Duration::as_secs_f64)
}

/// The cost of the smallest operation: seconds to put it on the stream, and seconds until its result has
/// arrived.
pub(super) fn smallest(stream: &Stream) -> Result<(f64, f64)> {
    let rows: ArrayRef = Arc::new(Int32Array::from_iter((0..64).map(|i| (i % 3 != 0).then_some(i))));
    let rows = upload(stream, rows)?;
    let queued = time(stream, || is_null(&rows, stream).wait().map(drop))?;
    let waited_for = time(stream, || {
        let _shown = is_null(&rows, stream).wait()?;
        stream.synchronise()
    })?;
    Ok((queued, waited_for))
}

/// The cost of each small thing on a GPU, until the host knows that it has passed.
pub(super) fn small(stream: &Stream) -> Result<Vec<(&'static str, f64)>> {
    let (one, few): (ArrayRef, ArrayRef) =
        (Arc::new(Int32Array::from(vec![1, 2])), Arc::new(Int32Array::from_iter_values(0..64)));
    let (there, few) = (upload(stream, one)?, from_arrow(&few)?);
    let nothing = time(stream, || internals::nothing(stream))?;
    let down = time(stream, || stream.download(&there)?.wait())?;
    let up = time(stream, || {
        let _there = stream.upload(&few)?;
        stream.synchronise()
    })?;
    let all = [
        ("nothing", Some(nothing)),
        ("8 bytes down", Some(down)),
        ("256 bytes up", Some(up)),
        ("a call back", repeated(|| internals::call_back(stream))?),
        ("a store to the host", repeated(|| internals::store_to_host(stream))?),
        ("an atomic", Some(atomic(stream)?)),
    ];
    Ok(all.into_iter().filter_map(|(name, seconds)| Some((name, seconds?))).collect())
}

/// The median seconds of a measurement that is made twenty times. `None` if it finds nothing.
fn repeated(mut one: impl FnMut() -> Result<Option<Duration>>) -> Result<Option<f64>> {
    let mut all = vec![];
    for _ in 0..20 {
        let Some(seconds) = one()? else { return Ok(None) };
        all.push(seconds);
    }
    Ok(median(all))
}

/// The time of one of many atomics that all lanes do on the same words.
fn atomic(stream: &Stream) -> Result<f64> {
    let contended = |waves: usize| -> Result<(f64, usize)> {
        let mut atomics = 0;
        let mut contend = || internals::contend(stream, waves).map(|done| atomics = done);
        Ok((time(stream, &mut contend)?, atomics))
    };
    let (mut seconds, mut atomics) = contended(FEW_WAVES)?;
    if seconds < SLOW {
        (seconds, atomics) = contended(MANY_WAVES)?;
    }
    Ok(seconds / atomics as f64)
}

/// Seconds to allocate a MiB of pinned memory, and bytes a second of copies from it and to it, and from
/// memory that is not pinned and to it. `None` if `free` bytes are too few.
pub(super) fn copied(stream: &Stream, free: usize) -> Result<Option<(f64, [f64; 4])>> {
    if free < 4 * PINNED {
        return Ok(None);
    }
    let Copies { pinning, all } = internals::copies(stream, PINNED)?;
    let mut rates = [0.0; 4];
    for (rate, copy) in rates.iter_mut().zip(all) {
        *rate = PINNED as f64 / time(stream, copy)?;
    }
    Ok(Some((pinning.as_secs_f64() / (PINNED >> 20) as f64, rates)))
}

/// Measures random reads of rows of several widths; it may use `free` bytes of the device's memory.
pub(super) fn gathers(stream: &Stream, free: usize) -> Result<Vec<Gathered>> {
    let little = cleared(stream, LITTLE)?;
    let first = gather(stream, &little, 32, LITTLE, FEW)?;
    let emulated = internals::architecture(stream.device()).is_none();
    if emulated || FEW as f64 / first.rate > SLOW || free < 4 * LITTLE {
        return Ok(vec![first]);
    }
    // The output is at most half the size of the memory that is read.
    let far = FAR.min((free / 2).next_power_of_two() / 2);
    let (memory, rows) = (cleared(stream, far)?, MANY.min(far / 256));
    [(32, far), (64, far), (128, far), (32, NEAR.min(far))]
        .map(|(width, from)| gather(stream, &memory, width, from, rows))
        .into_iter()
        .collect()
}

/// Repeats an array to `rows` rows, on the device.
pub(super) fn again(stream: &Stream, made: DeviceArray, rows: usize) -> Result<DeviceArray> {
    match rows / made.len() {
        1 => Ok(made),
        times => concat(&vec![&made; times], stream).wait(),
    }
}

/// An array of so many bytes that are all zero.
fn cleared(stream: &Stream, bytes: usize) -> Result<DeviceArray> {
    let zeros: ArrayRef = Arc::new(Int32Array::from_value(0, bytes.min(LITTLE) / 4));
    again(stream, upload(stream, zeros)?, bytes / 4)
}

/// Takes rows of `width` bytes at random from the first `from` bytes of an array.
fn gather(stream: &Stream, memory: &DeviceArray, width: usize, from: usize, rows: usize) -> Result<Gathered> {
    let all = from / width;
    let index = |i: usize| (((random(i + width) >> 32) * all as u64) >> 32) as i32;
    let indices = upload(stream, Arc::new(Int32Array::from_iter_values((0..rows).map(index))))?;
    let mut parts = memory.clone().into_parts();
    (parts.data_type, parts.len) = (DataType::FixedSizeBinary(width as i32), all);
    let values = DeviceArray::try_new(parts)?;
    let options = TakeOptions::default();
    let seconds = time(stream, || take(&values, &indices, &options, stream).wait().map(drop))?;
    Ok(Gathered { width, from, rate: rows as f64 / seconds })
}
