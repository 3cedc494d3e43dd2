//! The indices of a take, widened to one of two widths, so that the loops need not handle eight index types.
//!
//! The one idea: a negative index is a large unsigned one. So one unsigned comparison with the length (or,
//! for signed types, with half of the width's range if that is less) rejects both kinds of bad index.

use arrow_schema::DataType;

use crate::array::{Bitmap, Buffer, DeviceArray};
use crate::device::{HostMemory, HostPool, interrupt};
use crate::{Error, Result};

use super::bitmap::Bits;
use super::{memory, rows};

/// The rows to take.
pub(crate) struct Indices {
    buffer: Buffer,
    offset: usize,
    /// Whether an index has eight bytes rather than four.
    wide: bool,
    /// Whether the upper half of the range stands for negative numbers.
    signed: bool,
    validity: Option<Bitmap>,
    len: usize,
}

/// The plain indices, of four or eight bytes.
pub(crate) enum Width<'a> {
    /// Indices of four bytes each.
    Narrow(&'a [[u8; 4]]),
    /// Indices of eight bytes each.
    Wide(&'a [[u8; 8]]),
}

/// Reads an index of 4 or 8 bytes.
#[inline(always)]
pub(crate) fn index<const I: usize>(bytes: [u8; I]) -> u64 {
    match I {
        4 => u64::from(u32::from_le_bytes(std::array::from_fn(|i| bytes[i]))),
        _ => u64::from_le_bytes(std::array::from_fn(|i| bytes[i])),
    }
}

impl Indices {
    /// Converts an array of any integer type to indices.
    pub(crate) fn new(array: &DeviceArray, pool: &HostPool) -> Result<Indices> {
        use DataType::*;
        let mut indices = Indices {
            buffer: Buffer::empty(),
            offset: array.offset(),
            wide: matches!(array.data_type(), Int64 | UInt64),
            signed: matches!(array.data_type(), Int8 | Int16 | Int32 | Int64),
            validity: array.possible_nulls().cloned(),
            len: array.len(),
        };
        match array.data_type() {
            Int32 | UInt32 | Int64 | UInt64 => indices.buffer = array.buffers()[0].clone(),
            Int8 => indices.widen::<1>(array, pool, |b| i32::from(b[0] as i8) as u32)?,
            UInt8 => indices.widen::<1>(array, pool, |b| u32::from(b[0]))?,
            Int16 => indices.widen::<2>(array, pool, |b| i32::from(i16::from_le_bytes(b)) as u32)?,
            UInt16 => indices.widen::<2>(array, pool, |b| u32::from(u16::from_le_bytes(b)))?,
            other => return Err(Error::invalid("take", format!("{other} indices"))),
        }
        Ok(indices)
    }

    fn widen<const W: usize>(
        &mut self,
        array: &DeviceArray,
        pool: &HostPool,
        wider: impl Fn([u8; W]) -> u32,
    ) -> Result<()> {
        let mut memory = pool.alloc(self.len * 4)?;
        let narrow = rows::values::<W>(&array.buffers()[0], array.offset(), self.len);
        for (out, index) in memory::values_mut::<u32>(&mut memory).iter_mut().zip(narrow) {
            *out = wider(*index);
        }
        (self.buffer, self.offset) = (memory.freeze(self.len * 4), 0);
        Ok(())
    }

    /// Wraps unsigned indices of eight (`wide`) or four bytes, all valid.
    pub(crate) fn of_buffer(buffer: Buffer, wide: bool, len: usize) -> Indices {
        Indices { buffer, offset: 0, wide, signed: false, validity: None, len }
    }

    /// Replaces the validity of the indices.
    pub(crate) fn with_validity(self, validity: Option<Bitmap>) -> Indices {
        Indices { validity, ..self }
    }

    /// Makes indices outside of `0..len` null.
    pub(crate) fn null_out_of_bounds(self, len: usize, pool: &HostPool) -> Result<Indices> {
        let limit = self.limit(len);
        let count = self.len.div_ceil(64);
        let mut bits = pool.alloc(count * 8)?;
        let words = &mut memory::values_mut::<u64>(&mut bits)[..count];
        match self.values() {
            Width::Narrow(values) => in_bounds(values, limit, words),
            Width::Wide(values) => in_bounds(values, limit, words),
        }
        if let Some(valid) = self.valid() {
            words.iter_mut().enumerate().for_each(|(i, word)| *word &= valid.word(i));
        }
        let validity = Bitmap { buffer: bits.freeze(self.len.div_ceil(8)), offset: 0 };
        Ok(self.with_validity(Some(validity)))
    }

    /// Replaces null indices by 0; the others must be rows of `0..len`.
    pub(crate) fn without_nulls(&self, len: usize, pool: &HostPool) -> Result<Indices> {
        let mut rows = Rows::with_room(self.len, pool)?;
        self.visit(len, |_, index| rows.push(Some(index.unwrap_or(0))))?;
        Ok(rows.finish())
    }

    /// Returns the number of indices, null ones included.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the plain indices, null ones included.
    pub(crate) fn values(&self) -> Width<'_> {
        match self.wide {
            false => Width::Narrow(rows::values(&self.buffer, self.offset, self.len)),
            true => Width::Wide(rows::values(&self.buffer, self.offset, self.len)),
        }
    }

    /// Returns the validity of the indices; `None` if none is null.
    pub(crate) fn valid(&self) -> Option<Bits<'_>> {
        self.validity.as_ref().map(|bitmap| Bits::of(bitmap, self.len))
    }

    /// Returns the validity as a bitmap to share.
    pub(crate) fn validity(&self) -> Option<&Bitmap> {
        self.validity.as_ref()
    }

    /// Returns the number of null indices.
    pub(crate) fn null_count(&self) -> Result<usize> {
        self.valid().map_or(Ok(0), |valid| Ok(self.len - valid.count()?))
    }

    /// Returns the bound that every index, read as unsigned, must stay below to be a row of `0..len`.
    pub(crate) fn limit(&self, len: usize) -> u64 {
        let negative = match (self.signed, self.wide) {
            (false, _) => u64::MAX,
            (true, false) => 1 << 31,
            (true, true) => 1 << 63,
        };
        (len as u64).min(negative)
    }

    /// Calls `visit` with every row and its index, in order. The first index outside of `0..len` is an error.
    pub(crate) fn visit(
        &self,
        len: usize,
        mut visit: impl FnMut(usize, Option<usize>) -> Result<()>,
    ) -> Result<()> {
        match self.values() {
            Width::Narrow(values) => self.visit_width(values, len, &mut visit),
            Width::Wide(values) => self.visit_width(values, len, &mut visit),
        }
    }

    fn visit_width<const I: usize>(
        &self,
        values: &[[u8; I]],
        len: usize,
        visit: &mut impl FnMut(usize, Option<usize>) -> Result<()>,
    ) -> Result<()> {
        let (limit, valid) = (self.limit(len), self.valid());
        for (word, values) in values.chunks(64).enumerate() {
            if word % 1024 == 1023 {
                interrupt::check()?;
            }
            let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
            for (i, value) in values.iter().enumerate() {
                let index = index(*value);
                match valid >> i & 1 != 0 {
                    true if index >= limit => return Err(self.out_of_bounds(word * 64 + i, index, len)),
                    true => visit(word * 64 + i, Some(index as usize))?,
                    false => visit(word * 64 + i, None)?,
                }
            }
        }
        Ok(())
    }

    /// Returns the error for the first index outside of `0..len`; [`Ok`] if all are inside.
    pub(crate) fn check(&self, len: usize) -> Result<()> {
        self.visit(len, |_, _| Ok(()))
    }

    fn out_of_bounds(&self, row: usize, index: u64, len: usize) -> Error {
        let index = match (self.signed, self.wide) {
            (false, _) => i128::from(index),
            (true, false) => i128::from(index as u32 as i32),
            (true, true) => i128::from(index as i64),
        };
        Error::IndexOutOfBounds { row, index, len }
    }
}

fn in_bounds<const I: usize>(values: &[[u8; I]], limit: u64, words: &mut [u64]) {
    for (values, word) in values.chunks(64).zip(words) {
        *word = values.iter().enumerate().fold(0, |word, (i, v)| word | u64::from(index(*v) < limit) << i);
    }
}

/// The rows that are pushed between two checks for an interrupt.
const LOOK: usize = 1 << 20;

/// Row numbers known to be in bounds, or nulls, as they are collected.
pub(crate) struct Rows {
    values: HostMemory,
    /// The validity of the rows; `None` as long as all are valid.
    valid: Option<HostMemory>,
    len: usize,
    room: usize,
    pool: HostPool,
}

impl Rows {
    /// Makes an empty list with capacity for `room` rows.
    pub(crate) fn with_room(room: usize, pool: &HostPool) -> Result<Rows> {
        let values = pool.alloc(room.saturating_mul(8))?;
        Ok(Rows { values, valid: None, len: 0, room, pool: pool.clone() })
    }

    /// Adds a row, or null; the capacity must suffice.
    pub(crate) fn push(&mut self, row: Option<usize>) -> Result<()> {
        assert!(self.len < self.room, "no more rows than expected");
        // Few lists may have many items.
        if self.len % LOOK == LOOK - 1 {
            interrupt::check()?;
        }
        if row.is_none() && self.valid.is_none() {
            let mut valid = memory::zeroed(self.room.div_ceil(64) * 8, &self.pool)?;
            rows::set(memory::values_mut(&mut valid), 0, self.len);
            self.valid = Some(valid);
        }
        if let (Some(_), Some(valid)) = (row, &mut self.valid) {
            memory::values_mut::<u64>(valid)[self.len / 64] |= 1 << (self.len % 64);
        }
        memory::values_mut::<u64>(&mut self.values)[self.len] = row.unwrap_or(0) as u64;
        self.len += 1;
        Ok(())
    }

    /// Returns the number of rows collected so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the rows as indices for a take.
    pub(crate) fn finish(self) -> Indices {
        let bits = |memory: HostMemory| Bitmap { buffer: memory.freeze(self.len.div_ceil(8)), offset: 0 };
        let indices = Indices::of_buffer(self.values.freeze(self.len * 8), true, self.len);
        indices.with_validity(self.valid.map(bits))
    }
}
