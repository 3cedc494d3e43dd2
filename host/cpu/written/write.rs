//! Formats values as columns of text.
//!
//! The one idea: a text's length is unknown before it is written. So each part writes its rows end to end
//! into memory of its own; when all parts are done they are copied to their final place. On the way offsets
//! are rebased, or views built.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow_schema::DataType;
use bowstring_kernels::map::function::U256;
use bowstring_kernels::text::format::formatters::{WithWriter, Writer, Writing};
use bowstring_kernels::text::format::sink::{Backwards, Sink};

use super::super::bitmap::Bits;
use super::super::{memory, rows};
use crate::array::{Buffer, DeviceArray, Parts, Slot, layout};
use crate::device::{HostMemory, HostPool};
use crate::threads::{among_threads, each_part};
use crate::{Error, Result};

/// The rows of a part. With no more than that, one thread is faster than two.
const PART: usize = 4096;
/// The room for a text, and for temporary bytes beside it: the longest texts have about two hundred bytes.
const ROOM: usize = 512;
/// The bytes that a part needs beside its texts.
const PER_PART: usize = BLOCK * ROOM + 1024;
/// The number of rows whose values are loaded together.
const BLOCK: usize = 64;
/// The estimated bytes of a text, for the first allocation.
const GUESS: usize = 24;
/// The most bytes that a view holds inline.
const INLINE: usize = 12;

/// Formats values; nulls get no text. The inner error is the first row whose value has no textual form.
pub(crate) fn write(
    (writing, words): (Writing, &[u64]),
    values: &DeviceArray,
    to: &DataType,
    pool: &HostPool,
) -> Result<std::result::Result<DeviceArray, usize>> {
    let len = values.len();
    let source = Values::of(values);
    let refused = AtomicUsize::new(usize::MAX);
    // Fails early if the initial memory of all parts, and the lists of them, cannot be allocated.
    let each = GUESS + size_of::<u32>() + PER_PART / PART;
    drop(pool.reserve(len.saturating_mul(each).saturating_add(PER_PART))?);
    among_threads(len > PART, |_| {
        let texts = each_part((0..len).step_by(PART), |first| {
            let rows = first..len.min(first + PART);
            writing.visit(words, One { source, rows, pool, refused: &refused })
        })?;
        let texts: Vec<Texts> = texts.into_iter().collect::<Result<_>>()?;
        match refused.into_inner() {
            usize::MAX => {}
            row => return Ok(Err(row)),
        }
        let mut parts = Parts::new(to.clone(), len);
        parts.buffers = match layout(to).slots().next() {
            Some(Slot::Offsets(4)) => joined::<4>(texts, values, to, pool)?,
            Some(Slot::Offsets(_)) => joined::<8>(texts, values, to, pool)?,
            _ => views(texts, len, pool)?,
        };
        parts.validity = values.validity().cloned();
        parts.null_count = values.known_null_count();
        DeviceArray::made(parts, true).map(Ok)
    })
}

/// The values to format, as bits or as bytes of fixed width.
#[derive(Clone, Copy)]
struct Values<'a> {
    bits: Option<Bits<'a>>,
    bytes: &'a [u8],
    width: usize,
    valid: Option<Bits<'a>>,
}

impl<'a> Values<'a> {
    fn of(array: &'a DeviceArray) -> Values<'a> {
        let valid = rows::validity(array);
        match layout(array.data_type()).slots().next() {
            Some(Slot::Fixed(width)) => {
                let all = memory::bytes(&array.buffers()[0]);
                let bytes = &all[(array.offset() * width).min(all.len())..];
                Values { bits: None, bytes, width, valid }
            }
            _ => Values { bits: Some(rows::booleans(array)), bytes: &[], width: 0, valid },
        }
    }

    /// Loads the values of at most one block of rows, as many as `into` holds. Each formatter has one loop
    /// for all widths, so the width is resolved here and not for each value.
    fn load(&self, first: usize, into: &mut [U256]) {
        match (self.width, &self.bits) {
            (0, Some(bits)) => {
                for (row, value) in (first..).zip(into) {
                    *value = U256::from_low(bits.get(row).into());
                }
            }
            (1, _) => self.load_of::<1>(first, into),
            (2, _) => self.load_of::<2>(first, into),
            (4, _) => self.load_of::<4>(first, into),
            (8, _) => self.load_of::<8>(first, into),
            (16, _) => self.load_of::<16>(first, into),
            _ => self.load_of::<32>(first, into),
        }
    }

    fn load_of<const W: usize>(&self, first: usize, into: &mut [U256]) {
        let values = self.bytes[first * W..].as_chunks::<W>().0;
        for (bytes, value) in values.iter().zip(into) {
            let (low, high) = bytes.split_at(W.min(16));
            let word = |half: &[u8]| {
                let mut word = [0; 16];
                word[..half.len()].copy_from_slice(half);
                u128::from_le_bytes(word)
            };
            *value = U256 { low: word(low), high: word(high) };
        }
    }
}

/// The texts of a part's rows, end to end.
struct Texts {
    memory: HostMemory,
    /// The bytes in use.
    len: usize,
    /// The end of each row, as `u32`.
    ends: HostMemory,
    rows: usize,
    /// The total bytes of texts too long to be inline in a view.
    long: usize,
}

impl Texts {
    fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }

    fn ends(&self) -> &[u32] {
        &memory::numbers(self.ends.bytes()).expect("blocks are aligned")[..self.rows]
    }
}

/// A part that is to be formatted.
struct One<'a> {
    source: Values<'a>,
    rows: std::ops::Range<usize>,
    pool: &'a HostPool,
    refused: &'a AtomicUsize,
}

impl WithWriter for One<'_> {
    type Output = Result<Texts>;

    fn with<W: Writer>(self, writer: W) -> Result<Texts> {
        let One { source, rows, pool, refused } = self;
        let most = rows.len().min(BLOCK) * ROOM;
        let mut bytes = pool.alloc(rows.len() * GUESS + most)?;
        let mut ends = pool.alloc(rows.len() * size_of::<u32>())?;
        let (mut at, mut long, mut back, mut values) = (0, 0, [0; ROOM], [U256::ZERO; BLOCK]);
        let blocks = memory::values_mut::<u32>(&mut ends)[..rows.len()].chunks_mut(BLOCK);
        for (first, ends) in rows.clone().step_by(BLOCK).zip(blocks) {
            if bytes.bytes().len() - at < most {
                let mut larger = pool.alloc(at + at / 2 + most)?;
                larger.bytes_mut()[..at].copy_from_slice(&bytes.bytes()[..at]);
                bytes = larger;
            }
            source.load(first, &mut values[..ends.len()]);
            let valid =
                source.valid.map_or(rows::ones(ends.len()), |valid| valid.slice(first, ends.len()).word(0));
            for ((k, end), value) in ends.iter_mut().enumerate().zip(&values) {
                if valid >> k & 1 != 0 {
                    let front = bytes.bytes_mut()[at..].first_chunk_mut().expect("there is room");
                    let mut slot = Place { front, at: 0, back: &mut back, before: ROOM };
                    if !writer.write(*value, source.width as u64, &mut slot) {
                        refused.fetch_min(first + k, Ordering::Relaxed);
                    }
                    let len = slot.finish();
                    long += if len > INLINE { len } else { 0 };
                    at += len;
                }
                *end = at as u32;
            }
        }
        Ok(Texts { memory: bytes, len: at, ends, rows: rows.len(), long })
    }
}

/// The destination of a text: bytes written forwards go to their final place in `front`, bytes written
/// backwards into `back`.
struct Place<'a> {
    front: &'a mut [u8; ROOM],
    at: usize,
    back: &'a mut [u8; ROOM],
    before: usize,
}

impl Place<'_> {
    /// Appends the bytes in `back` to the front, and returns the length of the text.
    #[inline(always)]
    fn finish(self) -> usize {
        let len = ROOM - self.before;
        match (self.back.get(self.before..self.before + 32), len) {
            (_, 0) => {}
            (Some(_), 33..) | (None, _) => self.front[..len].copy_from_slice(&self.back[self.before..]),
            (Some(short), _) => self.front[..32].copy_from_slice(short),
        }
        self.at + len
    }
}

impl Sink for Place<'_> {
    #[inline(always)]
    fn put(&mut self, byte: u8) {
        self.front[self.at % ROOM] = byte;
        self.at += 1;
    }

    #[inline(always)]
    fn put_some(&mut self, bytes: u128, count: u32) {
        if let Some(sixteen) = self.front.get_mut(self.at..self.at + 16) {
            sixteen.copy_from_slice(&bytes.to_le_bytes());
        }
        self.at += count as usize;
    }

    #[inline(always)]
    fn put_all(&mut self, bytes: u64, count: u32) {
        // Bytes after the last one are overwritten later, or never read.
        if let Some(eight) = self.front.get_mut(self.at..self.at + 8) {
            eight.copy_from_slice(&bytes.to_le_bytes());
        }
        self.at += count as usize;
    }
}

impl Backwards for Place<'_> {
    #[inline(always)]
    fn put_before(&mut self, byte: u8) {
        self.before -= 1;
        self.back[self.before % ROOM] = byte;
    }

    #[inline(always)]
    fn put_all_before(&mut self, bytes: u64, count: u32) {
        if count == 0 {
            return;
        }
        if let Some(eight) = self.before.checked_sub(8).and_then(|at| self.back.get_mut(at..at + 8)) {
            eight.copy_from_slice(&(bytes << (64 - 8 * count)).to_le_bytes());
        }
        self.before -= count as usize;
    }
}

/// Concatenates the texts of all parts, and builds the offsets.
fn joined<const O: usize>(
    texts: Vec<Texts>,
    values: &DeviceArray,
    to: &DataType,
    pool: &HostPool,
) -> Result<Vec<Buffer>> {
    let total: usize = texts.iter().map(|texts| texts.len).sum();
    if total > rows::largest_offset::<O>() {
        return Err(Error::too_long("cast", format_args!("the elements of {}", values.data_type()), to));
    }
    let mut offsets = pool.alloc((values.len() + 1) * O)?;
    let mut bytes = pool.alloc(total)?;
    let (first, mut offsets_left) = memory::values_mut::<[u8; O]>(&mut offsets)[..=values.len()]
        .split_first_mut()
        .expect("one more offset than rows");
    *first = rows::offset_bytes(0);
    let (mut bytes_left, mut base) = (&mut bytes.bytes_mut()[..total], 0);
    let mut parts = vec![];
    for texts in &texts {
        let (offsets, more) = offsets_left.split_at_mut(texts.rows);
        let (bytes, rest) = bytes_left.split_at_mut(texts.len);
        parts.push((texts, offsets, bytes, base));
        (offsets_left, bytes_left, base) = (more, rest, base + texts.len);
    }
    each_part(parts, |(texts, offsets, bytes, base)| {
        bytes.copy_from_slice(texts.bytes());
        for (offset, end) in offsets.iter_mut().zip(texts.ends()) {
            *offset = rows::offset_bytes(base + *end as usize);
        }
    })?;
    Ok(vec![offsets.freeze((values.len() + 1) * O), bytes.freeze(total)])
}

/// Builds the views of all texts, and the buffers of those that are not inline.
fn views(texts: Vec<Texts>, len: usize, pool: &HostPool) -> Result<Vec<Buffer>> {
    // A buffer stays within the range of a view's 32-bit offset.
    let mut buffers: Vec<(usize, Vec<Texts>)> = vec![];
    for texts in texts {
        match buffers.last_mut() {
            Some((total, parts)) if *total + texts.long <= i32::MAX as usize => {
                *total += texts.long;
                parts.push(texts);
            }
            _ => buffers.push((texts.long, vec![texts])),
        }
    }
    let mut views = pool.alloc(len * 16)?;
    let mut left = &mut memory::values_mut::<[u8; 16]>(&mut views)[..len];
    let mut filled = vec![];
    for (number, (total, texts)) in buffers.iter().enumerate() {
        let mut bytes = pool.alloc(*total)?;
        let (mut bytes_left, mut base, mut parts) = (&mut bytes.bytes_mut()[..*total], 0, vec![]);
        for texts in texts {
            let (views, more) = left.split_at_mut(texts.rows);
            let (bytes, rest) = bytes_left.split_at_mut(texts.long);
            parts.push((texts, views, bytes, base));
            (left, bytes_left, base) = (more, rest, base + texts.long);
        }
        each_part(parts, |(texts, views, bytes, base)| view(texts, views, bytes, (number, base)))?;
        if *total > 0 {
            filled.push(bytes.freeze(*total));
        }
    }
    Ok(std::iter::once(views.freeze(len * 16)).chain(filled).collect())
}

/// Writes the views of a part's rows. Long texts are copied to `bytes`, which lies at offset `base` of buffer
/// `number`.
fn view(texts: &Texts, views: &mut [[u8; 16]], bytes: &mut [u8], (number, base): (usize, usize)) {
    let (mut start, mut used) = (0, 0);
    for (view, end) in views.iter_mut().zip(texts.ends()) {
        let text = &texts.bytes()[start..*end as usize];
        start = *end as usize;
        *view = [0; 16];
        view[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        if text.len() <= INLINE {
            view[4..4 + text.len()].copy_from_slice(text);
            continue;
        }
        view[4..8].copy_from_slice(&text[..4]);
        view[8..12].copy_from_slice(&(number as u32).to_le_bytes());
        view[12..].copy_from_slice(&((base + used) as u32).to_le_bytes());
        bytes[used..used + text.len()].copy_from_slice(text);
        used += text.len();
    }
}
