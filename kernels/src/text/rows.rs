//! Where a row of text is, and how rows compare.

use crate::memory::{Bits, In, TableRow};
use crate::places::{Source, overlay, piece};
use crate::ranges::{checked, extent};
use crate::target::{Lane, Wave};
use crate::views::BUFFER;

/// The width of views among those of offsets.
pub const VIEWS: u64 = 16;

/// What a view holds itself, in bytes.
const INLINE: u64 = 12;

/// A column of text, as the host describes it.
pub struct TextColumn {
    /// Offsets or views, from the first row on.
    pub rows: [u64; 2],
    /// Bytes of an offset, or [`VIEWS`].
    pub width: u64,
    /// Which bits of a row's number count: none where the first row stands for all, else all of them.
    pub which: u64,
    /// How many rows there are, where they are a list.
    pub len: u64,
    /// A [`BufferRow`](crate::views::BufferRow) for each data buffer; of offsets, for the one. Where there is an `end`, its limit is how many bits that has.
    pub buffers: [u64; 2],
    /// How many there are.
    pub count: u64,
    /// From `In::bitmap`: the number that says how many bytes there are, where only the device has it. May be absent.
    pub end: [u64; 2],
    /// From `In::bitmap`.
    pub end_offset: u64,
    /// Which rows are valid, from `In::bitmap`. May be absent.
    pub valid: [u64; 2],
    /// From `In::bitmap`.
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

/// A column of text, as a wave has it. What is in the table of buffers stays there: scalar registers are few.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    rows: In<u8>,
    width: u64,
    which: u64,
    buffers: In<u64>,
    /// How many bytes there are behind offsets; of views, how many buffers.
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
    /// The column of a table's row.
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

    /// Whether a row is valid.
    #[inline(always)]
    pub fn is_valid(self, row: u64) -> bool {
        self.valid.is_absent() || self.valid.get(row & self.which)
    }

    /// The view of a row of views.
    #[inline(always)]
    pub fn view(self, row: u64) -> u128 {
        self.rows.cast::<u128>().get(row & self.which)
    }

    /// A row; `None` where its place is not in its buffer.
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
}

impl Row {
    /// Bytes `at ..`, sixteen at most; zeros behind the last.
    #[inline(always)]
    pub fn bytes(self, at: u64) -> [u64; 2] {
        let left = self.len - at;
        let count = if left < 16 { left as u32 } else { 16 };
        overlay(piece(self.part(at, left).source, 0, count), [0; 2], count)
    }

    /// 0 where this is less, 1 where both are equal, 2 where this is more.
    #[inline(always)]
    pub fn order(self, other: Row) -> u32 {
        let shorter = if self.len < other.len { self.len } else { other.len };
        let mut at = 0;
        while at < shorter {
            let (own, others) = (self.bytes(at), other.bytes(at));
            // Zeros stand for what is missing: what is there is compared first, and the lengths then.
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

    /// Bytes `from .. from + len`, which are there.
    #[inline(always)]
    pub fn part(self, from: u64, len: u64) -> Row {
        Row { source: Source { from: self.source.from.wrapping_add(from), ..self.source }, len }
    }
}
