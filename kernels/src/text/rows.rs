//! The position of a row of text, and the comparison of rows.

use super::bytes::Bytes;
use crate::gather::places::{Source, overlay, piece};
use crate::memory::{Bits, In, TableRow};
use crate::ranges::rows::{checked, extent};
use crate::ranges::views::BUFFER;
use crate::target::{Lane, Wave};

/// The number that stands for views among the widths of offsets.
pub const VIEWS: u64 = 16;

/// The length in bytes up to which a view holds the text itself.
pub(crate) const INLINE: u64 = 12;

/// A column of text, as the host describes it.
pub struct TextColumn {
    /// The offsets or views, from the first row on.
    pub rows: [u64; 2],
    /// The width of an offset in bytes, or [`VIEWS`].
    pub width: u64,
    /// The mask for row numbers: zero if the first row stands for all rows, otherwise all ones.
    pub which: u64,
    /// The number of rows, if they are a list.
    pub len: u64,
    /// A [`BufferRow`](crate::ranges::views::BufferRow) for each data buffer; a column with offsets has
    /// one. If `end` is present, that one's limit is the width in bits of the number there.
    pub buffers: [u64; 2],
    /// The number of data buffers.
    pub count: u64,
    /// The number of bytes, from `In::bitmap`, if only the device knows it. May be absent.
    pub end: [u64; 2],
    /// The bit offset of `end`, from `In::bitmap`.
    pub end_offset: u64,
    /// The validity of the rows, from `In::bitmap`. May be absent.
    pub valid: [u64; 2],
    /// The bit offset of `valid`, from `In::bitmap`.
    pub valid_offset: u64,
}

impl TableRow for TextColumn {
    type Words = [u64; 14];

    fn words(&self) -> [u64; 14] {
        let [rows, rows_extent] = self.rows;
        let [buffers, buffers_extent] = self.buffers;
        let [end, end_extent] = self.end;
        let [valid, valid_extent] = self.valid;
        [
            rows,
            rows_extent,
            self.width,
            self.which,
            self.len,
            buffers,
            buffers_extent,
            self.count,
            end,
            end_extent,
            self.end_offset,
            valid,
            valid_extent,
            self.valid_offset,
        ]
    }
}

/// A column of text, as a wave holds it. The table of buffers stays in memory, because scalar registers are
/// few.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    rows: In<u8>,
    width: u64,
    which: u64,
    buffers: In<u64>,
    /// With offsets, the number of bytes; with views, the number of buffers.
    limit: u64,
    valid: Bits,
}

/// The bytes of a row.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub source: Source,
    pub len: u64,
}

impl Column {
    /// Loads the column from row `i` of a table.
    #[inline(always)]
    pub fn new(table: In<u64>, i: u64, wave: &mut Wave) -> Column {
        let at = i * TextColumn::ROW;
        let (buffers, end) = (table.input::<u64>(wave, at + 5), table.input::<u32>(wave, at + 8));
        let (width, count, end_offset) = (table.get(at + 2), table.get(at + 7), table.get(at + 10));
        let limit = if width == VIEWS { count } else { extent(buffers.get(3), end, end_offset) };
        Column {
            rows: table.input::<u8>(wave, at),
            width,
            which: table.get(at + 3),
            buffers,
            limit,
            valid: Bits::new(table.input(wave, at + 11), table.get(at + 13), u64::MAX >> 8),
        }
    }

    /// Returns whether a row is valid.
    #[inline(always)]
    pub fn is_valid(self, row: u64) -> bool {
        self.valid.is_absent() || self.valid.get(row & self.which)
    }

    /// Returns the view of a row in a column of views.
    #[inline(always)]
    pub fn view(self, row: u64) -> u128 {
        self.rows.cast::<u128>().get(row & self.which)
    }

    /// Returns a row; `None` if its bytes are not inside its buffer.
    #[inline(always)]
    pub fn row(self, row: u64, l: Lane<'_>) -> Option<Row> {
        let row = row & self.which;
        let (buffer, start, len) = if self.width == VIEWS {
            let view = self.rows.cast::<u128>().get(row);
            let len = u64::from(view as u32);
            if len <= INLINE {
                return Some(Row { source: Source { blocks: self.rows.cast(), from: row * 16 + 4 }, len });
            }
            let (buffer, start) = (u64::from((view >> 64) as u32), u64::from((view >> 96) as u32));
            let limit = if buffer < self.limit { self.buffers.get(buffer * BUFFER + 3) } else { 0 };
            if len > i32::MAX as u64 || start + len > limit {
                return None;
            }
            (buffer, start, len)
        } else {
            let edge = |i: u64| match self.width {
                4 => u64::from(self.rows.cast::<u32>().get(i)),
                _ => self.rows.cast::<u64>().get(i),
            };
            let (start, len, good) = checked(edge(row), edge(row + 1), self.limit, true);
            if !good {
                return None;
            }
            (0, start, len)
        };
        let from = start + self.buffers.get(buffer * BUFFER + 2) / 8;
        Some(Row { source: Source { blocks: self.buffers.input_of(l, buffer * BUFFER), from }, len })
    }

    /// Returns the buffer of byte `at` of a row that is not in its view, and the byte's place there. If the
    /// column has offsets, buffers begin every `1 << shift` bytes.
    #[inline(always)]
    pub fn place(self, row: u64, bytes: Row, at: u64, shift: u64) -> (u64, u64) {
        if self.width == VIEWS {
            let view = self.view(row);
            return (u64::from((view >> 64) as u32), u64::from((view >> 96) as u32) + at);
        }
        let start = bytes.source.from + at - self.buffers.get(2) / 8;
        (start >> shift, start & ((1 << shift) - 1))
    }
}

impl Row {
    /// Returns at most sixteen bytes from byte `at` on, with zeros after the last.
    #[inline(always)]
    pub fn bytes(self, at: u64) -> [u64; 2] {
        let left = self.len - at;
        let count = if left < 16 { left as u32 } else { 16 };
        overlay(piece(self.part(at, left).source, 0, count), [0; 2], count)
    }

    /// Returns 0 if this row is less, 1 if both are equal, and 2 if this row is greater.
    #[inline(always)]
    pub fn order(self, other: Row) -> u32 {
        let shorter = if self.len < other.len { self.len } else { other.len };
        let mut at = 0;
        while at < shorter {
            let (own, others) = (self.bytes(at), other.bytes(at));
            // Zeros stand for missing bytes: the existing bytes are compared first, and the lengths
            // afterwards.
            let same = own[0] == others[0];
            let (a, b) = if same { (own[1], others[1]) } else { (own[0], others[0]) };
            if a != b {
                return if a.swap_bytes() < b.swap_bytes() { 0 } else { 2 };
            }
            at += 16;
        }
        if self.len < other.len {
            0
        } else if self.len > other.len {
            2
        } else {
            1
        }
    }

    /// Returns bytes `from..from + len`, which MUST exist.
    #[inline(always)]
    pub fn part(self, from: u64, len: u64) -> Row {
        Row { source: Source { from: self.source.from.wrapping_add(from), ..self.source }, len }
    }
}

impl Bytes for Row {
    #[inline(always)]
    fn len(self) -> u64 {
        self.len
    }

    #[inline(always)]
    fn at(self, i: u64) -> u8 {
        let Source { blocks, from } = self.source;
        blocks.cast::<u8>().get(from + i)
    }
}
