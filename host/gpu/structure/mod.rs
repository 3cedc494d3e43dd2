//! Arrays whose rows are elsewhere: runs, unions, dictionaries. What each row's value is, as indices into what holds it; the rows
//! themselves are then taken or filtered like any others.
//!
//! The one idea: see [`bowstring_kernels::structure`]. What the host must know in between (how many runs or members' rows there
//! will be) is read once; where values are text or lists, moving them reads once more.

pub(crate) mod alike;
pub(crate) mod lists;
pub(crate) mod logical;
pub(crate) mod runs;
pub(crate) mod unions;

use arrow_schema::DataType;
use bowstring_kernels::offsets::{REGULAR, Regular};
use bowstring_kernels::target::find;

use super::mask::{Mask, Source, Unread};
use crate::Result;
use crate::array::{Array, Bitmap, Buffer, Parts};
use crate::pass::{Counter, Granted, Pass, Region, Requests};

/// Values of fixed width without nulls that a pass has written, for what comes after it on its stream: nothing waits for
/// them.
pub(crate) fn written(pass: &Pass, data_type: DataType, len: usize, values: &Region) -> Result<Array> {
    let parts = Parts { ready: None, buffers: vec![values.buffer()], ..pass.parts(data_type, len) };
    Array::try_new(parts)
}

/// The numbers from 0 on.
pub(crate) fn counted(pass: &mut Pass, rows: usize) -> Result<Region> {
    let out = pass.rows(rows + 1, 8)?;
    let entry = find(REGULAR, &[8]).ok_or_else(|| pass.unsupported("numbers"))?;
    pass.launch(entry, &Regular { rows: rows as u64, size: 1, out: out.out() })?;
    Ok(out)
}

/// Bits of an array, as booleans.
pub(crate) fn booleans(of: &Array, bits: &Bitmap) -> Result<Array> {
    viewed(of, DataType::Boolean, bits.offset, bits.buffer.clone())
}

/// A buffer of an array as an array of its own, without nulls.
fn viewed(of: &Array, data_type: DataType, offset: usize, buffer: Buffer) -> Result<Array> {
    let parts = Parts::new(data_type, of.len());
    let (place, ready) = (of.place(), of.ready().cloned());
    Array::try_new(Parts { place, ready, offset, buffers: vec![buffer], ..parts })
}

/// Rows that a kernel has marked, as a selection whose size is still to be read.
pub(crate) struct Marked {
    pub mask: Mask,
    pub granted: Granted,
    total: Counter,
}

impl Marked {
    /// Reads the bits of at least one row, which a kernel has written.
    pub fn new(pass: &mut Pass, rows: usize, bits: &Region) -> Result<Marked> {
        let marks = written(pass, DataType::Boolean, rows, bits)?;
        let mut requests = Requests::default();
        let (total, unread) = (requests.sum(), Unread::new(&mut requests, Source::Array(&marks)));
        let granted = requests.grant(pass, 0)?;
        let mask = unread.read(pass, &granted, granted.counter(total))?;
        Ok(Marked { mask, granted, total })
    }

    /// What is to be read.
    pub fn counters(&self) -> &Region {
        self.granted.counters()
    }

    /// How many rows it has, of the counters that were read.
    pub fn total(&self, words: &[u64]) -> usize {
        self.total.of(words) as usize
    }
}
