//! The number of elements in the rows of an array: bytes of text, items of lists. Arrays must have been
//! validated; bad offsets count as empty rows.

use arrow_schema::DataType;

use super::rows;
use crate::array::DeviceArray;

/// The elements of all rows together, and those of the longest row.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spans {
    pub(crate) total: usize,
    pub(crate) longest: usize,
}

impl Spans {
    fn of(lens: impl Iterator<Item = usize>) -> Spans {
        lens.fold(Spans::default(), |spans, len| Spans {
            total: spans.total.saturating_add(len),
            longest: spans.longest.max(len),
        })
    }
}

/// Returns the spans of an array of text or lists; zeros for other types.
pub(crate) fn of(array: &DeviceArray) -> Spans {
    match array.data_type() {
        DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) => {
            let longest = usize::try_from(*size).unwrap_or(0);
            Spans { total: array.len().saturating_mul(longest), longest }
        }
        _ => Spans::of((0..array.len()).map(of_row(array))),
    }
}

/// Returns the first item of a list or map array's rows; `None` for types whose rows may reference items in
/// any order.
pub(crate) fn first(array: &DeviceArray) -> Option<usize> {
    match array.data_type() {
        DataType::List(_) | DataType::Map(..) => Some(rows::offset(rows::offsets::<4>(array)[0])),
        DataType::LargeList(_) => Some(rows::offset(rows::offsets::<8>(array)[0])),
        _ => None,
    }
}

/// Returns the elements of the rows that are valid.
pub(crate) fn of_valid(array: &DeviceArray) -> usize {
    let (len, valid) = (of_row(array), rows::validity(array));
    let seen = (0..array.len()).filter(|row| valid.is_none_or(|valid| valid.get(*row)));
    seen.map(len).fold(0, usize::saturating_add)
}

/// Returns the bytes of text of a dictionary array's rows: a value counts once for each key that refers to
/// it. Null rows and null values have none, whatever is behind them.
pub(crate) fn of_keys(array: &DeviceArray) -> usize {
    let Some(values) = array.dictionary() else { return 0 };
    let (len, valid, valid_values) = (of_row(values), rows::validity(array), rows::validity(values));
    let keys = |row: usize, key: usize| {
        let is_seen = valid.is_none_or(|valid| valid.get(row))
            && key < values.len()
            && valid_values.is_none_or(|valid| valid.get(key));
        if is_seen { len(key) } else { 0 }
    };
    let buffer = &array.buffers()[0];
    let (offset, rows) = (array.offset(), array.len());
    let width = match array.data_type() {
        DataType::Dictionary(key, _) => key.primitive_width().unwrap_or(0),
        _ => 0,
    };
    match width {
        1 => sum(rows::values::<1>(buffer, offset, rows), keys),
        2 => sum(rows::values::<2>(buffer, offset, rows), keys),
        4 => sum(rows::values::<4>(buffer, offset, rows), keys),
        8 => sum(rows::values::<8>(buffer, offset, rows), keys),
        _ => 0,
    }
}

/// Adds up the lengths of rows, which `len` gives for a row and its key.
fn sum<const W: usize>(keys: &[[u8; W]], len: impl Fn(usize, usize) -> usize) -> usize {
    let key = |bytes: &[u8; W]| {
        let mut wide = [0; 8];
        wide[..W].copy_from_slice(bytes);
        usize::try_from(u64::from_le_bytes(wide)).unwrap_or(usize::MAX)
    };
    keys.iter().enumerate().fold(0, |sum, (row, bytes)| sum.saturating_add(len(row, key(bytes))))
}

/// Returns a function from a row to its number of elements.
pub(crate) fn of_row(array: &DeviceArray) -> impl Fn(usize) -> usize {
    use DataType::*;
    enum Lens<'a> {
        Narrow(&'a [[u8; 4]]),
        Wide(&'a [[u8; 8]]),
        Sizes(&'a [[u8; 4]]),
        WideSizes(&'a [[u8; 8]]),
        Views(&'a [[u8; 16]]),
        All(usize),
    }
    let buffers = array.buffers();
    let (offset, len) = (array.offset(), array.len());
    let lens = match array.data_type() {
        Utf8 | Binary | List(_) | Map(..) => Lens::Narrow(rows::offsets(array)),
        LargeUtf8 | LargeBinary | LargeList(_) => Lens::Wide(rows::offsets(array)),
        ListView(_) => Lens::Sizes(rows::values(&buffers[1], offset, len)),
        LargeListView(_) => Lens::WideSizes(rows::values(&buffers[1], offset, len)),
        Utf8View | BinaryView => Lens::Views(rows::values(&buffers[0], offset, len)),
        FixedSizeBinary(size) => Lens::All(usize::try_from(*size).unwrap_or(0)),
        _ => Lens::All(0),
    };
    move |row| match &lens {
        Lens::Narrow(offsets) => rows::offset(offsets[row + 1]).saturating_sub(rows::offset(offsets[row])),
        Lens::Wide(offsets) => rows::offset(offsets[row + 1]).saturating_sub(rows::offset(offsets[row])),
        Lens::Sizes(sizes) => rows::offset(sizes[row]),
        Lens::WideSizes(sizes) => rows::offset(sizes[row]),
        Lens::Views(views) => {
            let [a, b, c, d, ..] = views[row];
            u32::from_le_bytes([a, b, c, d]) as usize
        }
        Lens::All(len) => *len,
    }
}
