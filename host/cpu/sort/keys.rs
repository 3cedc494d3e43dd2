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
use super::numbers::Numbers;

/// The most bytes of a block of text, and the bits of its mark: the number of its bytes in which the text
/// ends, or one more than all if it goes on.
const BLOCK: usize = 12;
const MARK: u32 = 4;
/// The bytes of a block that a word holds with its mark.
const SHORT: usize = 7;
/// The most rows that items of 64 bits tell apart nearly as well as larger ones.
const FEW: usize = 32 * 1024;

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

/// The place in a key from which on items hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cursor {
    part: usize,
    /// The bytes of text that come before, or the bits of a number.
    depth: usize,
}

impl Cursor {
    /// Returns the place at which a part begins.
    pub fn of_part(part: usize) -> Cursor {
        Cursor { part, depth: 0 }
    }
}

/// A part's bits in an item.
struct Piece {
    part: usize,
    depth: usize,
    /// The bytes of a block; 0 for parts that are not text.
    block: usize,
    /// The lowest bits of a number that the item does not hold.
    dropped: u32,
    shift: u32,
}

/// A number of more bits than an item has room for is divided if there is room for so many.
const ROOM: u32 = 32;

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
    pub fn word(&self, row: usize) -> u64 {
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
            (Source::Numbers(numbers), valid) => {
                // The bits that are in an item before, and those that follow, are left out.
                let (kept, dropped) =
                    (u64::MAX.checked_shr(64 - numbers.bits + piece.depth as u32), piece.dropped);
                let kept = kept.unwrap_or(0);
                let key = |row| (numbers.key(row) & kept) >> dropped;
                match valid {
                    None => {
                        for (i, item) in items.iter_mut().enumerate() {
                            *item = item.with_word(key(row(i, *item)), shift);
                        }
                    }
                    Some(valid) => {
                        for (i, item) in items.iter_mut().enumerate() {
                            let row = row(i, *item);
                            let there = u64::from(valid.get(row)).wrapping_neg();
                            *item = item.with_word(key(row) & there, shift);
                        }
                    }
                }
            }
            (Source::Bytes(text), valid) => {
                for (i, item) in items.iter_mut().enumerate() {
                    let row = row(i, *item);
                    let there = valid.is_none_or(|valid| valid.get(row));
                    let found = text.from(row).filter(|(from, len)| *len <= from.len());
                    let Some((from, len)) = found else {
                        if there {
                            return Err(outside(row));
                        }
                        continue;
                    };
                    // Null rows are not told apart by a branch, which would be guessed wrong.
                    let mask = u64::from(there).wrapping_neg();
                    *item = match piece.block <= SHORT {
                        true => item.with_word(short_block(from, len, piece, self.descending) & mask, shift),
                        false => {
                            let mask = u128::from(mask) << 64 | u128::from(mask);
                            item.with(block(from, len, piece, self.descending) & mask, shift)
                        }
                    };
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

/// The bits of a block of a few bytes.
#[inline(always)]
fn short_block(from: &[u8], len: usize, piece: &Piece, descending: bool) -> u64 {
    let depth = piece.depth.min(len);
    let (from, rest) = (&from[depth..], len - depth);
    let taken = rest.min(piece.block);
    let bytes = match from.first_chunk::<8>() {
        Some(bytes) => *bytes,
        None => {
            let mut bytes = [0; 8];
            bytes[..taken].copy_from_slice(&from[..taken]);
            bytes
        }
    };
    let kept = u64::from_be_bytes(bytes).checked_shr(8 * (8 - taken) as u32).unwrap_or(0);
    let mark = taken + usize::from(rest > piece.block);
    let key = kept << (8 * (piece.block - taken)) << MARK | mark as u64;
    if descending { key ^ (u64::MAX >> (64 - piece.bits())) } else { key }
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

    /// Whether items of 64 bits hold whole keys: they take half of the memory.
    pub fn fit_words(&self) -> bool {
        self.bits().is_some_and(|bits| bits + self.row_bits() <= 64)
    }

    /// Whether items of 64 bits hold so much of a key that few rows are equal in it: most of a number, or a
    /// few bytes of text.
    pub fn begin_in_words(&self) -> bool {
        let of_one = self.parts.iter().filter(|part| !matches!(part.source, Source::Nulls)).count() == 1;
        let first = self.parts.iter().map_while(Part::bits).sum::<u32>();
        self.rows <= FEW && (of_one || self.bits().is_none() && first + ROOM <= 64 - self.row_bits())
    }

    /// Calls `visit` with the pieces that an item has from a place on. Returns the place of the first part
    /// that it does not have.
    fn pieces<I: Item>(&self, from: Cursor, mut visit: impl FnMut(Piece) -> Result<()>) -> Result<usize> {
        let mut room = I::BITS - self.row_bits();
        let mut depth = from.depth;
        for (part, of) in self.parts.iter().enumerate().skip(from.part) {
            match of.bits().map(|bits| bits - (depth as u32).min(bits)) {
                Some(bits) if bits > room => {
                    if room >= ROOM {
                        visit(Piece { part, depth, block: 0, dropped: bits - room, shift: self.row_bits() })?;
                    }
                    return Ok(part);
                }
                Some(bits) => {
                    room -= bits;
                    if bits > 0 {
                        visit(Piece { part, depth, block: 0, dropped: 0, shift: self.row_bits() + room })?;
                    }
                }
                None if room < 8 + MARK => return Ok(part),
                None => {
                    let block = (((room - MARK) / 8) as usize).min(BLOCK);
                    room -= 8 * block as u32 + MARK;
                    visit(Piece { part, depth, block, dropped: 0, shift: self.row_bits() + room })?;
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
        if let Some(piece) = last.as_ref().filter(|piece| piece.dropped > 0) {
            let bits = self.parts[piece.part].bits().unwrap_or(0);
            return Some(Cursor { part: piece.part, depth: (bits - piece.dropped) as usize });
        }
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
