//! Parses columns of text into values.
//!
//! The one idea: the parser and the column's layout are resolved to types once a part, so a row costs only as
//! much as its text.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::DataType;
use bowstring_kernels::map::function::U256;
use bowstring_kernels::text::bytes::Bytes;
use bowstring_kernels::text::parse::parsers::{Reader, Reading, WithReader};
use bowstring_kernels::text::parse::said::Said;

use super::super::bitmap::Bits;
use super::super::map::{in_parts, with_nulls_of};
use super::super::map_rows::Outcome;
use super::super::memory;
use super::super::text::layout::{Column, Layout};
use crate::Result;
use crate::array::{Bitmap, DeviceArray, Parts, layout, outside};
use crate::device::HostPool;

/// The estimated cost of parsing a row, in bits moved, by which work is shared among threads.
const ROW: usize = 2048;

/// The result of parsing a column.
pub(crate) enum Read {
    Values(DeviceArray),
    /// The first row whose text cannot be parsed, if that is an error.
    Misfit(usize),
    /// Some texts name time zones, which this code cannot parse.
    Elsewhere,
}

/// Parses text into values. If `safe`, texts that cannot be parsed become null.
pub(crate) fn read(
    (reading, words): (Reading, &[u64]),
    values: &DeviceArray,
    to: &DataType,
    safe: bool,
    pool: &HostPool,
) -> Result<Read> {
    let len = values.len();
    let width = layout(to).slots().next().and_then(|slot| slot.bytes_for(8)).expect("plain values");
    let bits = width;
    let bytes = (len * bits).div_ceil(8);
    let mut result = pool.alloc(bytes.next_multiple_of(8))?;
    let mut good = pool.alloc(len.div_ceil(64) * 8)?;
    let column = Column::of(values);
    let valid = values.validity().map(|bitmap| Bits::of(bitmap, len));
    let elsewhere = AtomicBool::new(false);
    let outcome = in_parts(
        len,
        ROW.max(bits),
        bits,
        &mut result.bytes_mut()[..bytes.next_multiple_of(8)],
        Some(&mut memory::values_mut(&mut good)[..len.div_ceil(64)]),
        &|first, rows, to, good| {
            let part = Part {
                first,
                rows,
                bits,
                valid,
                to,
                good: good.expect("words for every part"),
                elsewhere: &elsewhere,
            };
            match &column {
                Column::Short(column) => reading.visit(words, In { column, part }),
                Column::Long(column) => reading.visit(words, In { column, part }),
                Column::Views(column) => reading.visit(words, In { column, part }),
            }
        },
    )?;
    let nowhere = |row: &usize| !known(&column, *row);
    if let Some(row) = outcome.misfit.filter(nowhere) {
        return Err(outside(row));
    }
    if elsewhere.into_inner() {
        return Ok(Read::Elsewhere);
    }
    let result = result.freeze(bytes);
    match outcome.misfit {
        Some(row) if !safe => Ok(Read::Misfit(row)),
        Some(_) => {
            let mut parts = Parts::new(to.clone(), len);
            parts.buffers = vec![result];
            parts.validity = Some(Bitmap { buffer: good.freeze(len.div_ceil(8)), offset: 0 });
            parts.null_count = Some(outcome.nulls);
            DeviceArray::made(parts, true).map(Read::Values)
        }
        None => with_nulls_of(values, to, result).map(Read::Values),
    }
}

/// Returns whether a row lies inside its column's buffer.
fn known(column: &Column<'_>, row: usize) -> bool {
    match column {
        Column::Short(column) => column.row(row).is_some(),
        Column::Long(column) => column.row(row).is_some(),
        Column::Views(column) => column.row(row).is_some(),
    }
}

/// Some rows, and the memory for their values.
struct Part<'a> {
    first: usize,
    rows: usize,
    /// The bits of a value.
    bits: usize,
    valid: Option<Bits<'a>>,
    to: &'a mut [u8],
    good: &'a mut [u64],
    /// Set if a text names a time zone.
    elsewhere: &'a AtomicBool,
}

/// A row's text, followed by the rest of its buffer: whole words are loaded even if the row ends inside of
/// one.
#[derive(Clone, Copy)]
struct Text<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl Bytes for Text<'_> {
    #[inline(always)]
    fn len(self) -> u64 {
        self.len as u64
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        self.bytes[i as usize]
    }

    #[inline(always)]
    fn eight(self, i: u64) -> u64 {
        let left = self.len - i as usize;
        match self.bytes[i as usize..].first_chunk() {
            Some(eight) if left >= 8 => u64::from_le_bytes(*eight),
            Some(eight) => u64::from_le_bytes(*eight) & !(!0 << (8 * left)),
            None => self.bytes[..self.len].eight(i),
        }
    }
}

struct In<'a, L> {
    column: &'a L,
    part: Part<'a>,
}

impl<L: Layout> WithReader for In<'_, L> {
    type Output = Outcome;

    fn with<R: Reader>(self, reader: R) -> Outcome {
        let In { column, part } = self;
        let elsewhere = part.elsewhere;
        let row = |row: usize| {
            let (bytes, len) = column.from(row)?;
            let text = Text { bytes, len };
            match reader.read(text) {
                Said::Value(value) => Some(value),
                Said::Nothing => None,
                Said::Hard => reader.read_hard(text),
                Said::Elsewhere => {
                    elsewhere.store(true, Ordering::Relaxed);
                    None
                }
            }
        };
        // One loop serves all widths: with a loop for each, the parser would not be inlined.
        let bits = part.bits;
        part.fill(row, |to, at, value| match bits {
            1 => to[at / 8] |= (value.low as u8 & 1) << (at % 8),
            8 => store::<1>(to, at, value.low),
            16 => store::<2>(to, at, value.low),
            32 => store::<4>(to, at, value.low),
            64 => store::<8>(to, at, value.low),
            128 => store::<16>(to, at, value.low),
            _ => {
                store::<16>(to, 2 * at, value.low);
                store::<16>(to, 2 * at + 1, value.high);
            }
        })
    }
}

#[inline(always)]
fn store<const W: usize>(to: &mut [u8], at: usize, value: u128) {
    to[at * W..(at + 1) * W].copy_from_slice(&value.to_le_bytes()[..W]);
}

impl Part<'_> {
    /// Writes the values of all valid rows; zeros for null rows and for texts that cannot be parsed. Each
    /// parser has a single instance of this loop, for all widths: with several, the parser would not be
    /// inlined.
    #[inline(always)]
    fn fill(self, row: impl Fn(usize) -> Option<U256>, store: impl Fn(&mut [u8], usize, U256)) -> Outcome {
        let Part { first, rows, bits, valid, to, good, .. } = self;
        let mut outcome = Outcome::default();
        if bits == 1 {
            to.fill(0);
        }
        for (block, good) in good.iter_mut().enumerate() {
            let (start, mut word) = (first + block * 64, 0);
            let here = 64.min(rows - block * 64);
            let wanted =
                valid.map_or(super::super::rows::ones(here), |valid| valid.slice(start, here).word(0));
            for k in 0..here {
                let value = if wanted >> k & 1 != 0 { row(start + k) } else { None };
                word |= u64::from(value.is_some()) << k;
                store(to, block * 64 + k, value.unwrap_or(U256::ZERO));
            }
            let misfits = wanted & !word;
            if misfits != 0 && outcome.misfit.is_none() {
                outcome.misfit = Some(start + misfits.trailing_zeros() as usize);
            }
            outcome.nulls += here - word.count_ones() as usize;
            *good = word;
        }
        outcome
    }
}
