//! Tests what everything else depends on: memory, copies, streams, events, results that arrive later, and
//! errors that name the row. The tests use the public API, so a failure here is one that a program would
//! meet.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::DataType;

use super::samples::random;
use bowstring::compute::{CastOptions, TakeOptions, cast, is_not_null, null_count, take};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{Device, DeviceArray, Error, Result, Stream};

/// A test: the sentence that it shows to be true, and a function that says in words why it is not.
pub(super) type Test = (&'static str, fn(&Device) -> std::result::Result<(), String>);

/// All tests; each depends only on those before it.
pub(super) const TESTS: &[Test] = &[
    ("what is copied to the device comes back", |device| said(there_and_back(device))),
    ("a kernel runs, and reads a table", |device| said(a_kernel(device))),
    ("streams wait for each other", |device| said(streams(device))),
    ("a result that is awaited wakes its task", |device| said(awaited(device))),
    ("errors name the row", |device| said(errors(device))),
];

/// The outcome of a test: `Ok(None)` if it passed, words if a result was wrong, or an error.
type Found = Result<Option<String>>;

fn said(found: Found) -> std::result::Result<(), String> {
    match found {
        Ok(None) => Ok(()),
        Ok(Some(wrong)) => Err(wrong),
        Err(error) => Err(error.to_string()),
    }
}

fn numbers(rows: i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter((0..rows).map(|i| (i % 7 != 3).then_some(random(i as usize) as i64))))
}

fn up(stream: &Stream, array: &ArrayRef) -> Result<DeviceArray> {
    stream.upload(&from_arrow(array)?)
}

fn same(ours: &ArrayRef, theirs: &ArrayRef) -> Option<String> {
    (ours != theirs).then(|| format!("{} rows came back otherwise than they went", theirs.len()))
}

fn there_and_back(device: &Device) -> Found {
    let stream = device.stream()?;
    for rows in [1, 1000, 1 << 20] {
        let host = numbers(rows);
        let there = up(&stream, &host)?;
        let back = to_arrow(&stream.download(&there)?)?;
        if let Some(wrong) = same(&back, &host) {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

fn a_kernel(device: &Device) -> Found {
    let stream = device.stream()?;
    let host = numbers(100_000);
    let mut parts = up(&stream, &host)?.into_parts();
    // Forgets the count, so that it is computed anew.
    parts.null_count = None;
    let counted = null_count(&DeviceArray::try_new(parts)?, &stream).wait()?;
    Ok((counted != host.null_count())
        .then(|| format!("{counted} nulls were counted of {}", host.null_count())))
}

fn streams(device: &Device) -> Found {
    let streams = [device.stream()?, device.stream()?, device.stream()?];
    let host = numbers(20_000);
    for round in 0..20 {
        let there = up(&streams[round % 3], &host)?;
        let indices: ArrayRef = Arc::new(Int64Array::from_iter_values((0..20_000).rev()));
        let indices = up(&streams[(round + 1) % 3], &indices)?;
        let turned = take(&there, &indices, &TakeOptions::default(), &streams[(round + 2) % 3]).wait()?;
        let again = take(&turned, &indices, &TakeOptions::default(), &streams[round % 3]).wait()?;
        drop((there, turned));
        if let Some(wrong) = same(&to_arrow(&streams[(round + 1) % 3].download(&again)?)?, &host) {
            return Ok(Some(wrong));
        }
    }
    Ok(None)
}

/// Wakes a sleeping thread.
struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn awaited(device: &Device) -> Found {
    let stream = device.stream()?;
    let host = numbers(5000);
    let shown = is_not_null(&up(&stream, &host)?, &stream).wait()?;
    let mut later = pin!(bowstring::compute::filter(&up(&stream, &host)?, &shown, &stream));
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    let mut context = Context::from_waker(&waker);
    let kept = loop {
        match later.as_mut().poll(&mut context) {
            Poll::Ready(kept) => break kept?,
            Poll::Pending => thread::park(),
        }
    };
    let expected = host.len() - host.null_count();
    Ok((kept.len() != expected).then(|| format!("{} rows were kept of {expected}", kept.len())))
}

fn errors(device: &Device) -> Found {
    let stream = device.stream()?;
    let values = up(&stream, &numbers(100))?;
    let indices: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..90).map(|i| if i == 77 { 100 } else { i })));
    let taken = take(&values, &up(&stream, &indices)?, &TakeOptions::default(), &stream);
    let found = taken.wait().and_then(|taken| stream.download(&taken)?.wait());
    if !matches!(found, Err(Error::IndexOutOfBounds { row: 77, index: 100, len: 100 })) {
        return Ok(Some(format!("an index out of bounds at row 77 was answered by {found:?}")));
    }
    let strict = CastOptions { safe: false, ..Default::default() };
    let narrow = cast(&values, &DataType::Int8, &strict, &stream).wait();
    let found = narrow.and_then(|narrow| stream.download(&narrow)?.wait());
    match found {
        Err(Error::Cast { row: 0, .. }) => Ok(None),
        other => Ok(Some(format!("a value at row 0 that does not fit was answered by {other:?}"))),
    }
}
