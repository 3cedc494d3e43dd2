//! Keys of rows: the parts that make one up, and the items that hold as much of a key as fits.
//!
//! The one idea: a key is a string of bits that orders as its row. A value of fixed width has as many bits
//! as the values of its column span, and text is blocks of bytes, each with a mark that says whether the
//! text ends in it. An item holds the bits from a [`Cursor`] on; rows whose items are equal are compared
//! by the bits that follow.

use std::cmp::Ordering;
use std::ops::Range;

use crate::Result;
use crate::array::outside;
use crate::cpu::bitmap::Bits;
use crate::cpu::text::layout::{Layout, Offsets, Views};

use super::items::Item;

/// The most bytes of a block of text, and the bits of its mark: the number of its bytes in which the text
/// ends, or one more than all if it goes on.
const BLOCK: usize = 12;
const MARK: u32 = 4;

/// A column or a part of one, as part of all keys.
pub(super) struct Part<'a> {
    pub source: Source<'a>,
    /// The rows that have a value; the others have zeros.
    pub valid: Option<Bits<'a>>,
    pub descending: bool,
}

/// The values that a part's bits are made of.
pub(super) enum Source<'a> {
    /// Whether the row is valid. If `descending`, null comes last.
    Nulls,
    Booleans(Bits<'a>),
    Numbers(Numbers<'a>),
    Bytes(Text<'a>),
}

/// Numbers of one to eight bytes, or words of wider values.
pub(super) struct Numbers<'a> {
    /// The bytes from the first number on, from one to the next, and of a number.
    pub bytes: &'a [u8],
    pub stride: usize,
    pub width: usize,
    /// The masks of [`Order::flips`](crate::rules::Order::flips).
    pub flips: [u64; 2],
    /// All ones if the order is descending, otherwise zero.
    pub invert: u64,
    /// The smallest flipped number, and the bits of the span.
    pub base: u64,
    pub bits: u32,
}

/// Bytes of any length, which order as text.
pub(super) enum Text<'a> {
    Short(Offsets<'a, 4>),
    Long(Offsets<'a, 8>),
    Views(Views<'a>),
    Fixed(&'a [u8], usize),
    /// Ranges of some bytes, one for each row.
    Ranges(&'a [[u64; 2]], &'a [u8]),
}

impl Layout for Text<'_> {
    #[inline(always)]
    fn from(&self, row: usize) -> Option<(&[u8], usize)> {
        match self {
            Text::Short(text) => text.from(row),
            Text::Long(text) => text.from(row),
            Text::Views(text) => text.from(row),
            Text::Fixed(bytes, width) => Some((bytes.get(row * width..)?, *width)),
            Text::Ranges(ranges, bytes) => {
                let [start, end] = ranges[row].map(|at| at as usize);
                (start <= end && end <= bytes.len()).then(|| (&bytes[start..], end - start))
            }
        }
    }
}

impl Numbers<'_> {
    /// Returns the number of a row in its order: below, and as wide as, the span.
    #[inline(always)]
    fn key(&self, row: usize) -> u64 {
        (self.flipped(row) ^ self.invert).wrapping_sub(self.base)
    }

    #[inline(always)]
    fn flipped(&self, row: usize) -> u64 {
        let start = row * self.stride;
        let unused = 64 - 8 * self.width as u32;
        // Eight bytes, of which the number may be the first: one load for all widths.
        let value = match self.bytes[start..].first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes) << unused,
            None => self.last(start) << unused,
        };
        let negative = (value as i64 >> 63) as u64;
        (value >> unused) ^ self.flips[0] ^ (self.flips[1] & negative)
    }

    /// Reads a number that fewer than eight bytes are left of.
    #[inline(never)]
    fn last(&self, start: usize) -> u64 {
        let mut wide = [0; 8];
        wide[..self.width].copy_from_slice(&self.bytes[start..start + self.width]);
        u64::from_le_bytes(wide)
    }

    /// Returns the least and the greatest flipped number of some valid rows; the least is greater if there
    /// are none.
    pub fn span(&self, valid: Option<Bits<'_>>, rows: Range<usize>) -> (u64, u64) {
        let wider = |(least, most): (u64, u64), row| {
            let key = self.flipped(row);
            (least.min(key), most.max(key))
        };
        match valid {
            None => rows.fold((u64::MAX, 0), wider),
            Some(valid) => rows.filter(|row| valid.get(*row)).fold((u64::MAX, 0), wider),
        }
    }
}

/// The place in a key from which on items hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    part: usize,
    /// The bytes of text that come before.
    depth: usize,
}

/// A part's bits in an item.
struct Piece {
    part: usize,
    depth: usize,
    /// The bytes of a block; 0 for parts that are not text.
    block: usize,
    shift: u32,
}

/// The keys of all rows.
pub(super) struct Keys<'a> {
    pub parts: Vec<Part<'a>>,
    pub rows: usize,
}

impl Part<'_> {
    /// The number of bits; `None` for text.
    pub fn bits(&self) -> Option<u32> {
        match &self.source {
            Source::Nulls | Source::Booleans(_) => Some(1),
            Source::Numbers(numbers) => Some(numbers.bits),
            Source::Bytes(_) => None,
        }
    }

    #[inline(always)]
    fn is_valid(&self, row: usize) -> bool {
        self.valid.is_none_or(|valid| valid.get(row))
    }

    /// The key of a row, of a part that is not text.
    fn word(&self, row: usize) -> u64 {
        match &self.source {
            Source::Nulls => u64::from(self.is_valid(row) != self.descending),
            _ if !self.is_valid(row) => 0,
            Source::Booleans(bits) => u64::from(bits.get(row) != self.descending),
            Source::Numbers(numbers) => numbers.key(row),
            Source::Bytes(_) => 0,
        }
    }

    /// The bytes of a row; empty if it is null. Rows have been found inside of their buffers.
    fn bytes(&self, row: usize) -> &[u8] {
        match &self.source {
            Source::Bytes(text) if self.is_valid(row) => text.row(row).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Adds the part's bits to items, whose rows `row` tells.
    #[inline(always)]
    fn add<I: Item>(&self, piece: &Piece, items: &mut [I], row: impl Fn(usize, I) -> usize) -> Result<()> {
        let shift = piece.shift;
        match (&self.source, self.valid) {
            (Source::Numbers(numbers), None) => {
                for (i, item) in items.iter_mut().enumerate() {
                    *item = item.with_word(numbers.key(row(i, *item)), shift);
                }
            }
            (Source::Numbers(numbers), Some(valid)) => {
                for (i, item) in items.iter_mut().enumerate() {
                    let row = row(i, *item);
                    let there = u64::from(valid.get(row)).wrapping_neg();
                    *item = item.with_word(numbers.key(row) & there, shift);
                }
            }
            (Source::Bytes(text), valid) => {
                for (i, item) in items.iter_mut().enumerate() {
                    let row = row(i, *item);
                    if valid.is_none_or(|valid| valid.get(row)) {
                        let (from, len) = text
                            .from(row)
                            .filter(|(from, len)| *len <= from.len())
                            .ok_or_else(|| outside(row))?;
                        *item = item.with(block(from, len, piece, self.descending), shift);
                    }
                }
            }
            (Source::Nulls | Source::Booleans(_), _) => {
                for (i, item) in items.iter_mut().enumerate() {
                    *item = item.with_word(self.word(row(i, *item)), shift);
                }
            }
        }
        Ok(())
    }
}

/// The bits of a block of text.
#[inline(always)]
fn block(from: &[u8], len: usize, piece: &Piece, descending: bool) -> u128 {
    let depth = piece.depth.min(len);
    let (from, rest) = (&from[depth..], len - depth);
    let taken = rest.min(piece.block);
    let bytes = match from.first_chunk::<16>() {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [0; 16];
            bytes[..taken].copy_from_slice(&from[..taken]);
            bytes
        }
    };
    let empty = 8 * (16 - taken) as u32;
    let kept = u128::from_be_bytes(bytes).checked_shr(empty).unwrap_or(0);
    let kept = kept << (8 * (piece.block - taken));
    let mark = taken + usize::from(rest > piece.block);
    let key = kept << MARK | mark as u128;
    if descending { key ^ (u128::MAX >> (128 - piece.bits())) } else { key }
}

impl Piece {
    /// The bits of a block of text.
    fn bits(&self) -> u32 {
        8 * self.block as u32 + MARK
    }
}

impl Keys<'_> {
    /// The bits of an item that its row takes.
    pub fn row_bits(&self) -> u32 {
        usize::BITS - self.rows.saturating_sub(1).leading_zeros()
    }

    pub fn row<I: Item>(&self, item: I) -> usize {
        (item.low() & ((1 << self.row_bits()) - 1)) as usize
    }

    /// The bits of a whole key; `None` with text.
    pub fn bits(&self) -> Option<u32> {
        self.parts.iter().try_fold(0u32, |sum, part| Some(sum + part.bits()?))
    }

    /// Calls `visit` with the pieces that an item has from a place on. Returns the place of the first part
    /// that it does not have.
    fn pieces<I: Item>(&self, from: Cursor, mut visit: impl FnMut(Piece) -> Result<()>) -> Result<usize> {
        let mut room = I::BITS - self.row_bits();
        let mut depth = from.depth;
        for (part, of) in self.parts.iter().enumerate().skip(from.part) {
            match of.bits() {
                Some(bits) if bits > room => return Ok(part),
                Some(bits) => {
                    room -= bits;
                    if bits > 0 {
                        visit(Piece { part, depth: 0, block: 0, shift: self.row_bits() + room })?;
                    }
                }
                None if room < 8 + MARK => return Ok(part),
                None => {
                    let block = (((room - MARK) / 8) as usize).min(BLOCK);
                    room -= 8 * block as u32 + MARK;
                    visit(Piece { part, depth, block, shift: self.row_bits() + room })?;
                    return Ok(part + 1);
                }
            }
            depth = 0;
        }
        Ok(self.parts.len())
    }

    /// Makes the items of consecutive rows from `first` on, from the start of their keys.
    pub fn begin<I: Item>(&self, first: usize, items: &mut [I]) -> Result<()> {
        items.iter_mut().enumerate().for_each(|(i, item)| *item = I::of_row(first + i));
        self.pieces::<I>(Cursor::default(), |piece| {
            self.parts[piece.part].add(&piece, items, |i, _| first + i)
        })?;
        Ok(())
    }

    /// Replaces the keys of items by what follows a place.
    pub fn go_on<I: Item>(&self, from: Cursor, items: &mut [I]) -> Result<()> {
        items.iter_mut().for_each(|item| *item = I::of_row(self.row(*item)));
        let mask = (1 << self.row_bits()) - 1;
        self.pieces::<I>(from, |piece| {
            self.parts[piece.part].add(&piece, items, |_, item: I| (item.low() & mask) as usize)
        })?;
        Ok(())
    }

    /// Whether no key has more than its item holds.
    pub fn ends<I: Item>(&self, from: Cursor) -> bool {
        let mut text = false;
        let next = self.pieces::<I>(from, |piece| {
            text |= piece.block > 0;
            Ok(())
        });
        !text && next.is_ok_and(|next| next == self.parts.len())
    }

    /// The place at which the keys of items go on; `None` if they end. All items have the key of this one.
    pub fn next<I: Item>(&self, from: Cursor, item: I) -> Option<Cursor> {
        let mut last = None;
        let next = self.pieces::<I>(from, |piece| {
            last = Some(piece);
            Ok(())
        });
        let next = Cursor { part: next.unwrap_or(self.parts.len()), depth: 0 };
        if let Some(piece) = last.filter(|piece| piece.block > 0) {
            let mark = item.above(piece.shift).low() & ((1 << MARK) - 1);
            let goes_on = piece.block as u64 + 1;
            let wanted =
                if self.parts[piece.part].descending { goes_on ^ ((1 << MARK) - 1) } else { goes_on };
            if mark == wanted {
                return Some(Cursor { part: piece.part, depth: piece.depth + piece.block });
            }
        }
        (next.part < self.parts.len()).then_some(next)
    }

    /// Compares two rows from a place of their keys on.
    pub fn compare(&self, from: Cursor, a: usize, b: usize) -> Ordering {
        let mut depth = from.depth;
        for part in &self.parts[from.part..] {
            let order = match part.bits() {
                Some(0) => Ordering::Equal,
                Some(_) => part.word(a).cmp(&part.word(b)),
                None => {
                    let rest = |row| part.bytes(row).get(depth..).unwrap_or_default();
                    let order = rest(a).cmp(rest(b));
                    if part.descending { order.reverse() } else { order }
                }
            };
            if order.is_ne() {
                return order;
            }
            depth = 0;
        }
        Ordering::Equal
    }

    /// Checks that text is inside of its buffers, for rows that no items are made of.
    pub fn check(&self, rows: Range<usize>) -> Result<()> {
        let text = self.parts.iter().filter_map(|part| match &part.source {
            Source::Bytes(text) => Some((text, part)),
            _ => None,
        });
        for (text, part) in text {
            let is_outside = |row: &usize| part.is_valid(*row) && text.row(*row).is_none();
            if let Some(row) = rows.clone().find(is_outside) {
                return Err(outside(row));
            }
        }
        Ok(())
    }

    /// Whether two rows are equal in all columns.
    pub fn same(&self, a: usize, b: usize) -> bool {
        self.compare(Cursor::default(), a, b).is_eq()
    }
}
