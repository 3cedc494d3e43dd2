//! Models the bytes that any implementation of an operation must move: it reads its inputs and writes its
//! outputs, each byte once. If an operation needs few rows of an input, memory still moves whole sectors (32
//! bytes on a GPU, a line of 64 on a CPU). So the model also counts the sectors that contain a needed row:
//! that is the fair measure for a device.

use arrow_array::cast::AsArray as _;
use arrow_array::{Array, UInt32Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;
use rayon::prelude::*;

/// Inputs of this size are in no cache when they are read at random.
const BEYOND_CACHES: u64 = 128 << 20;

/// The bytes that one run of a bench moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// The bytes read and written.
    pub bytes: u64,
    /// The same, with reads counted in whole sectors; `None` if that makes no difference.
    pub sectors: Option<u64>,
}

impl Moved {
    pub fn bytes(bytes: u64) -> Moved {
        Moved { bytes, sectors: None }
    }

    /// The bytes for this many columns, given those of one; `once` is the part that is read once for all
    /// columns.
    pub fn columns(self, columns: usize, once: u64) -> Moved {
        let all = |bytes: u64| once + (bytes - once) * columns as u64;
        Moved { bytes: all(self.bytes), sectors: self.sectors.map(all) }
    }
}

/// The bytes of a bitmap.
fn bitmap(rows: usize) -> u64 {
    rows.div_ceil(8) as u64
}

/// The bits of a row in the buffer that has an entry for every row: values, views, booleans, or offsets.
fn width_in_bits(data_type: &DataType) -> usize {
    match data_type {
        DataType::Boolean => 1,
        DataType::Utf8 => 32,
        DataType::Utf8View => 128,
        other => 8 * other.primitive_width().expect("a type of the benches"),
    }
}

/// The bytes of this many rows of a type, without the contents of strings.
fn fixed(data_type: &DataType, rows: usize) -> u64 {
    (rows * width_in_bits(data_type)).div_ceil(8) as u64
}

fn text(array: &dyn Array) -> u64 {
    array.as_string_opt::<i32>().map_or(0, |strings| {
        let offsets = strings.value_offsets();
        (offsets[strings.len()] - offsets[0]) as u64
    })
}

/// The bytes of an array, without the data behind views, which is shared and not moved.
pub fn bytes(array: &dyn Array) -> u64 {
    let validity = array.nulls().map_or(0, |_| bitmap(array.len()));
    fixed(array.data_type(), array.len()) + text(array) + validity
}

/// A cast to a type of fixed width, which keeps nulls.
pub fn cast(values: &dyn Array, to: &DataType) -> Moved {
    let validity = values.nulls().map_or(0, |_| bitmap(values.len()));
    Moved::bytes(bytes(values) + fixed(to, values.len()) + validity)
}

/// Parsing text to values, or formatting values as text.
pub fn written(from: &dyn Array, to: &dyn Array) -> Moved {
    Moved::bytes(bytes(from) + bytes(to))
}

/// A filter by a mask, on memory with sectors of this many bytes.
pub fn filter(values: &dyn Array, mask: &BooleanBuffer, sector: u64) -> Moved {
    let (rows, kept) = (values.len(), mask.count_set_bits());
    let data_type = values.data_type();
    let validity = values.nulls().map_or(0, |_| bitmap(kept));
    let mut written = fixed(data_type, kept) + validity;
    let bitmaps = bitmap(rows) * (1 + u64::from(values.nulls().is_some()));
    let mut touched = touched(mask, 8 * sector as usize / width_in_bits(data_type));
    if let Some(strings) = values.as_string_opt::<i32>() {
        let (kept, sectors) = kept_text(strings.value_offsets(), mask, sector);
        written += kept;
        touched += sectors;
    }
    let read = bytes(values) + bitmap(rows);
    Moved { bytes: read + written, sectors: Some(bitmaps + sector * touched + written) }
}

/// The number of groups of `group` rows, a power of two, with at least one kept row.
pub fn touched(mask: &BooleanBuffer, group: usize) -> u64 {
    let chunks = mask.bit_chunks();
    if group >= 64 {
        let words: Vec<u64> = chunks.iter_padded().collect();
        return words.chunks(group / 64).filter(|words| words.iter().any(|word| *word != 0)).count() as u64;
    }
    // The lowest bit of every group.
    let lowest = (0..64).step_by(group).fold(0u64, |bits, bit| bits | 1 << bit);
    let one = |mut word: u64| {
        let mut shift = 1;
        while shift < group {
            word |= word >> shift;
            shift *= 2;
        }
        u64::from((word & lowest).count_ones())
    };
    chunks.iter_padded().map(one).sum()
}

/// The bytes of the kept strings, and their sectors.
fn kept_text(offsets: &[i32], mask: &BooleanBuffer, sector: u64) -> (u64, u64) {
    let (mut kept, mut sectors, mut next) = (0, 0, 0);
    for row in mask.set_indices() {
        let (from, to) = (offsets[row] as u64, offsets[row + 1] as u64);
        kept += to - from;
        if from < to {
            let (first, end) = ((from / sector).max(next), to.div_ceil(sector));
            sectors += end.saturating_sub(first);
            next = end.max(next);
        }
    }
    (kept, sectors)
}

/// A take reads an index, then reads and writes a row. If a `sector` is given, as for random indices, large
/// values cost one sector for each row.
pub fn take(values: &dyn Array, indices: &UInt32Array, sector: Option<u64>) -> Moved {
    let rows = indices.len();
    let data_type = values.data_type();
    let nulls = values.nulls().is_some() || indices.nulls().is_some();
    let taken = |of: &(dyn Fn(u64, u64) -> u64 + Sync)| -> u64 {
        let Some(strings) = values.as_string_opt::<i32>() else { return 0 };
        let offsets = strings.value_offsets();
        let one = |i: &u32| of(offsets[*i as usize] as u64, offsets[*i as usize + 1] as u64);
        indices.values().par_iter().map(one).sum()
    };
    let text = taken(&|from, to| to - from);
    let read_validity = values.nulls().map_or(0, |_| bitmap(rows));
    let written = fixed(data_type, rows) + text + if nulls { bitmap(rows) } else { 0 };
    let once = bytes(indices) + read_validity + written;
    let sectors = sector.filter(|_| bytes(values) >= BEYOND_CACHES).map(|sector| {
        let of_text = |from: u64, to: u64| if from < to { to.div_ceil(sector) - from / sector } else { 0 };
        // A string's two offsets are in one sector, except for one row in eight (with sectors of 32 bytes).
        let offsets = if *data_type == DataType::Utf8 { 4 * rows as u64 / sector } else { 0 };
        once + sector * (rows as u64 + offsets + taken(&of_text))
    });
    Moved { bytes: once + fixed(data_type, rows) + text, sectors }
}
