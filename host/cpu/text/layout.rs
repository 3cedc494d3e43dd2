//! The layouts of text columns: the position of each row's bytes.

use super::super::intrinsics::{AHEAD, prefetch};
use super::super::{memory, rows};
use crate::Result;
use crate::array::{DeviceArray, Side, Slot, outside};

/// The most bytes that a view holds inline.
pub(super) const INLINE: usize = 12;

/// Access to the rows of a column.
pub(in crate::cpu) trait Layout: Sync {
    /// Returns a row's bytes; `None` if they lie outside its buffer.
    fn row(&self, row: usize) -> Option<&[u8]> {
        self.from(row).map(|(bytes, len)| &bytes[..len])
    }

    /// Returns the bytes from the row's start to the end of its buffer, and the row's length; `None` if the
    /// row lies outside its buffer.
    fn from(&self, row: usize) -> Option<(&[u8], usize)>;
}

pub(in crate::cpu) struct Offsets<'a, const O: usize> {
    pub offsets: &'a [[u8; O]],
    pub bytes: &'a [u8],
}

impl<const O: usize> Layout for Offsets<'_, O> {
    #[inline(always)]
    fn row(&self, row: usize) -> Option<&[u8]> {
        self.bytes.get(rows::offset(self.offsets[row])..rows::offset(self.offsets[row + 1]))
    }

    #[inline(always)]
    fn from(&self, row: usize) -> Option<(&[u8], usize)> {
        let (start, end) = (rows::offset(self.offsets[row]), rows::offset(self.offsets[row + 1]));
        (start <= end && end <= self.bytes.len()).then(|| (&self.bytes[start..], end - start))
    }
}

pub(in crate::cpu) struct Views<'a> {
    pub views: &'a [[u8; 16]],
    buffers: Vec<&'a [u8]>,
}

impl<'a> Views<'a> {
    /// Returns the buffer of a row that is not inline, and the row's position there.
    #[inline(always)]
    pub fn place(&self, row: usize) -> Option<(&'a [u8], usize)> {
        let view = &self.views[row];
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|k| view[4 * i + k])) as usize;
        let (len, buffer, start) = (word(0), *self.buffers.get(word(2))?, word(3));
        (len <= i32::MAX as usize && start + len <= buffer.len()).then_some((buffer, start))
    }

    #[inline(always)]
    pub fn len(&self, row: usize) -> usize {
        u32::from_le_bytes(std::array::from_fn(|k| self.views[row][k])) as usize
    }
}

impl Layout for Views<'_> {
    #[inline(always)]
    fn from(&self, row: usize) -> Option<(&[u8], usize)> {
        let len = self.len(row);
        if len <= INLINE {
            return Some((&self.views.as_flattened()[16 * row + 4..], len));
        }
        let (buffer, start) = self.place(row)?;
        Some((&buffer[start..], len))
    }
}

/// Sets a bit for each view for whose halves `ask` is true.
#[inline(always)]
pub(super) fn each_view(views: &[[u8; 16]], out: &mut [u64], ask: impl Fn([u64; 2]) -> bool) {
    for (word, block) in out.iter_mut().zip(views.chunks(64)) {
        let halves: Option<&[[u64; 2]; 64]> =
            memory::plain(block.as_flattened()).and_then(|halves: &[[u64; 2]]| halves.try_into().ok());
        *word = match halves {
            Some(halves) => {
                prefetch(halves, AHEAD);
                (0..64).fold(0, |word, k| word | u64::from(ask(halves[k])) << k)
            }
            None => block.iter().enumerate().fold(0, |word, (k, view)| {
                let number = u128::from_le_bytes(*view);
                word | u64::from(ask([number as u64, (number >> 64) as u64])) << k
            }),
        };
    }
}

/// A constant operand: every row has the same bytes.
struct Same<'a>(&'a [u8]);

impl Layout for Same<'_> {
    fn from(&self, _row: usize) -> Option<(&[u8], usize)> {
        Some((self.0, self.0.len()))
    }
}

/// A column, by its layout.
pub(in crate::cpu) enum Column<'a> {
    Short(Offsets<'a, 4>),
    Long(Offsets<'a, 8>),
    Views(Views<'a>),
}

impl<'a> Column<'a> {
    pub fn of(column: &'a DeviceArray) -> Column<'a> {
        let bytes = |i: usize| memory::bytes(&column.buffers()[i]);
        match column.layout().slots().next() {
            Some(Slot::Offsets(4)) => {
                Column::Short(Offsets { offsets: rows::offsets(column), bytes: bytes(1) })
            }
            Some(Slot::Offsets(_)) => {
                Column::Long(Offsets { offsets: rows::offsets(column), bytes: bytes(1) })
            }
            _ => Column::Views(Views {
                views: rows::values(&column.buffers()[0], column.offset(), column.len()),
                buffers: column.buffers()[1..].iter().map(memory::bytes).collect(),
            }),
        }
    }
}

/// Returns a side by its layout, for code that does not specialise on it.
pub(super) fn layout_of(side: Side<'_>) -> Box<dyn Layout + '_> {
    match side {
        Side::Column(column) => match Column::of(column) {
            Column::Short(column) => Box::new(column),
            Column::Long(column) => Box::new(column),
            Column::Views(column) => Box::new(column),
        },
        Side::Same(bytes) => Box::new(Same(bytes)),
        // A list is only ever compared with a column.
        Side::List(_) => Box::new(Same(&[])),
    }
}

/// Returns the bytes of the only row of a column.
pub(crate) fn single(column: &DeviceArray) -> Result<Vec<u8>> {
    layout_of(Side::Column(column)).row(0).map(<[u8]>::to_vec).ok_or_else(|| outside(0))
}
