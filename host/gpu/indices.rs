//! The indices of a take, as kernels read them, and the report of the first one that is out of bounds.
//!
//! The one idea: kernels read indices as unsigned numbers, so negative ones are huge. One comparison with the
//! number of rows (or with the greatest index that the type holds, if that is less) rejects both kinds.

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};

use super::bitmap::aligned;
use super::rows::rows_of;
use crate::array::DeviceArray;
use crate::device::{Gpu, fetch};
use crate::pass::{BitPointer, Counter, Granted, Pass, Requests, validity};
use crate::{Error, Result};

/// How a take treats an index that is out of bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// An error of the caller, who passed the indices.
    Refused,
    /// The row becomes null.
    Null,
    /// The row becomes null, and in lists of fixed size its items become null too: a later cast reads the
    /// items and must not see other values there.
    NullBelow,
    /// An error in the producer's data: the indices are a dictionary's keys.
    BadKey,
}

impl Outside {
    /// Returns whether an out-of-bounds index makes a null row.
    pub fn is_null(self) -> bool {
        matches!(self, Outside::Null | Outside::NullBelow)
    }

    /// Returns the treatment for indices derived from these, in which an out-of-bounds index stands for a
    /// null.
    pub fn made_null(self) -> Outside {
        if self == Outside::NullBelow { self } else { Outside::Null }
    }
}

/// Indices into an array of `rows` rows.
#[derive(Clone)]
pub(crate) struct Indices {
    pub array: DeviceArray,
    /// The bytes of one index.
    width: usize,
    /// The length of the array that rows are taken from.
    pub rows: usize,
    pub outside: Outside,
    /// The least unsigned value that is out of bounds: `rows`, or one past the greatest index of the type if
    /// that is less.
    limit: u64,
    /// Receives the position of the first index that is out of bounds.
    fault: Counter,
}

/// The arguments that every launch by indices shares.
#[derive(Clone, Copy)]
pub(crate) struct IndexArguments {
    pub indices: In<u8>,
    pub width: u32,
    pub valid: BitPointer,
    pub len: u64,
    pub limit: u64,
    /// Receives the position of the first index that is out of bounds.
    pub fault: Out<u64>,
}

impl Indices {
    /// Requests a counter for the first index that is out of bounds for `rows` rows.
    pub fn new(
        requests: &mut Requests,
        array: &DeviceArray,
        rows: usize,
        outside: Outside,
    ) -> Result<Indices> {
        let (width, greatest) = index_width(array.data_type())?;
        let limit = (rows as u64).min(greatest.saturating_add(1));
        Ok(Indices { array: array.clone(), width, rows, outside, limit, fault: requests.first_row() })
    }

    /// Returns the number of indices.
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Builds the arguments of launches.
    pub fn arguments(&self, pass: &mut Pass, granted: &Granted) -> Result<IndexArguments> {
        let values = rows_of(&self.array, &self.array.buffers()[0], self.width);
        Ok(IndexArguments {
            indices: aligned(pass, &values, self.width)?,
            width: self.width as u32,
            valid: validity(&self.array),
            len: self.len() as u64,
            limit: self.limit,
            fault: granted.counter(self.fault),
        })
    }

    /// Returns the error that the counters report, if out-of-bounds indices are errors.
    pub fn check(&self, gpu: &Gpu, words: &[u64]) -> Result<()> {
        let row = match self.fault.of(words) {
            u64::MAX => return Ok(()),
            _ if self.outside.is_null() => return Ok(()),
            row => row as usize,
        };
        let (index, len) = (self.index_at(gpu, row)?, self.rows);
        Err(match self.outside {
            Outside::BadKey => {
                Error::out_of_spec("array.buffers[0]", format!("key {index} in row {row}, of {len} values"))
            }
            _ => Error::IndexOutOfBounds { row, index, len },
        })
    }

    /// Reads one index from the device, to report it in an error.
    fn index_at(&self, gpu: &Gpu, row: usize) -> Result<i128> {
        if row >= self.len() {
            let problem = format!("the device reports row {row} of {}", self.len());
            return Err(Error::invalid("take", problem));
        }
        let rows = rows_of(&self.array, &self.array.buffers()[0], self.width);
        let mut bytes = fetch(gpu, &rows.slice(row * self.width, None), self.width)?;
        bytes.resize(8, 0);
        let word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        Ok(match self.array.data_type() {
            DataType::Int8 => i128::from(word as i8),
            DataType::Int16 => i128::from(word as i16),
            DataType::Int32 => i128::from(word as i32),
            DataType::Int64 => i128::from(word as i64),
            _ => i128::from(word),
        })
    }
}

/// Returns the bytes of an index, and the greatest index of its type.
pub(crate) fn index_width(data_type: &DataType) -> Result<(usize, u64)> {
    use DataType::*;
    Ok(match data_type {
        Int8 => (1, i8::MAX as u64),
        UInt8 => (1, u8::MAX.into()),
        Int16 => (2, i16::MAX as u64),
        UInt16 => (2, u16::MAX.into()),
        Int32 => (4, i32::MAX as u64),
        UInt32 => (4, u32::MAX.into()),
        Int64 => (8, i64::MAX as u64),
        UInt64 => (8, u64::MAX),
        other => return Err(Error::invalid("take", format!("indices are {other}, not integers"))),
    })
}
