//! What a take takes: the indices as kernels read them, and the one that was not a row.
//!
//! The one idea: kernels read negative indices as huge ones, so one comparison with the number of rows (or with the greatest
//! index that the type can say, where that is less) finds both kinds of nonsense.

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};

use super::bitmap::aligned;
use super::rows::rows_of;
use crate::array::Array;
use crate::device::{Gpu, fetch};
use crate::pass::{BitPointer, Counter, Granted, Pass, Requests, validity};
use crate::{Error, Result, Stream};

/// What becomes of an index that is not a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// The caller's mistake, who gave the indices.
    Refused,
    /// A null row.
    Null,
    /// A null row, and null items below it in lists of one size: what a cast must not see, whatever it looks at.
    NullBelow,
    /// A producer's bad data: the indices are a dictionary's keys.
    BadKey,
}

impl Outside {
    /// Whether it is a null row.
    pub fn is_null(self) -> bool {
        matches!(self, Outside::Null | Outside::NullBelow)
    }

    /// What becomes of indices that were made of such, in which an index that is none stands for a null.
    pub fn made_null(self) -> Outside {
        if self == Outside::NullBelow { self } else { Outside::Null }
    }
}

/// The rows of an array at some indices, whatever its type: how what takes rows comes to take those of their parts. Synchronises
/// where a take does.
pub(crate) type TakeInside = fn(&Array, &Array, Outside, &Stream) -> Result<Array>;

/// Indices into so many rows.
#[derive(Clone)]
pub(crate) struct Indices {
    pub array: Array,
    /// Bytes of an index.
    width: usize,
    /// How many rows there are to take.
    pub rows: usize,
    pub outside: Outside,
    /// The first index that is not a row, or not one that the type can say.
    limit: u64,
    /// The first index that is none.
    fault: Counter,
}

/// The arguments that each launch has which takes by indices.
#[derive(Clone, Copy)]
pub(crate) struct IndexArguments {
    pub indices: In<u8>,
    pub width: u32,
    pub valid: BitPointer,
    pub len: u64,
    pub limit: u64,
    /// Receives the first index that is not a row.
    pub fault: Out<u64>,
}

impl Indices {
    /// Asks for a place for the first index that is none of `rows` rows.
    pub fn new(requests: &mut Requests, array: &Array, rows: usize, outside: Outside) -> Result<Indices> {
        let (width, greatest) = index_width(array.data_type())?;
        let limit = (rows as u64).min(greatest.saturating_add(1));
        Ok(Indices { array: array.clone(), width, rows, outside, limit, fault: requests.first_row() })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// What launches take.
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

    /// What tells from the counters whether an index was out of range, where that is an error.
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

    /// An index: the device is asked for it when it is to be told, which is seldom.
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

/// The bytes of an index, and the greatest that its type can say.
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
