//! Encoded arrays: run-end, union, dictionary. Kernels compute each row's value as an index into the array
//! that holds it; the rows are then taken or filtered like any others.
//!
//! The one idea: see [`bowstring_kernels::encoded::rows`]. The host reads once for the sizes in between (the
//! number of runs, or of rows in each member). If values are text or lists, moving them reads once more.

pub(crate) mod alike;
pub(crate) mod lists;
pub(crate) mod logical;
pub(crate) mod runs;
pub(crate) mod unions;

use arrow_schema::DataType;
use bowstring_kernels::ranges::offsets::{REGULAR, Regular};
use bowstring_kernels::target::find;

use super::mask::{Mask, Source, Unread};
use crate::Result;
use crate::array::{Bitmap, Buffer, DeviceArray, Parts};
use crate::pass::{Counter, Granted, Pass, Region, Requests};

/// Wraps values of fixed width without nulls, written by this pass, for later work on the same stream. It
/// needs no event for that.
pub(crate) fn written(pass: &Pass, data_type: DataType, len: usize, values: &Region) -> Result<DeviceArray> {
    let parts = Parts { ready: None, buffers: vec![values.buffer()], ..pass.parts(data_type, len) };
    DeviceArray::try_new(parts)
}

/// Writes the numbers from `first` on, one for each row, in so many bytes: 4 or 8.
pub(crate) fn counted(pass: &mut Pass, first: usize, rows: usize, width: usize) -> Result<Region> {
    let out = pass.rows(rows + 1, width)?;
    let entry = find(REGULAR, &[width as u32]).ok_or_else(|| pass.unsupported("numbers"))?;
    let (rows, first) = (rows as u64, first as u64);
    pass.launch(entry, &Regular { rows, first, size: 1, out: out.out() })?;
    Ok(out)
}

/// Wraps bits of an array as booleans.
pub(crate) fn booleans(of: &DeviceArray, bits: &Bitmap) -> Result<DeviceArray> {
    viewed(of, DataType::Boolean, bits.offset, bits.buffer.clone())
}

/// Wraps a buffer of an array as an array without nulls.
fn viewed(of: &DeviceArray, data_type: DataType, offset: usize, buffer: Buffer) -> Result<DeviceArray> {
    let parts = Parts::new(data_type, of.len());
    let (place, ready) = (of.place(), of.ready().cloned());
    DeviceArray::try_new(Parts { place, ready, offset, buffers: vec![buffer], ..parts })
}

/// Rows that a kernel has marked, as a selection whose size is not yet read.
pub(crate) struct Marked {
    pub mask: Mask,
    pub granted: Granted,
    total: Counter,
}

impl Marked {
    /// Reads the mark bits, which a kernel has written. Needs at least one row.
    pub fn new(pass: &mut Pass, rows: usize, bits: &Region) -> Result<Marked> {
        let marks = written(pass, DataType::Boolean, rows, bits)?;
        let mut requests = Requests::default();
        let (total, unread) = (requests.sum(), Unread::new(&mut requests, Source::Array(&marks)));
        let granted = requests.grant(pass, 0)?;
        let mask = unread.read(pass, &granted, granted.counter(total))?;
        Ok(Marked { mask, granted, total })
    }

    /// Returns the counters that the host must read.
    pub fn counters(&self) -> &Region {
        self.granted.counters()
    }

    /// Returns the number of marked rows, given the counters that were read.
    pub fn total(&self, words: &[u64]) -> usize {
        self.total.of(words) as usize
    }
}
