//! Single values in host memory.

use arrow_schema::DataType;

use super::{memory, nulls};
use crate::array::{DeviceArray, Slot};

pub(crate) use super::text::single as text;

/// Whether the only row of an array is null by its own validity.
pub(crate) fn is_null(one: &DeviceArray) -> bool {
    let is_null = |bits| !nulls::is_valid(bits, 0);
    one.validity().map_or(*one.data_type() == DataType::Null, is_null)
}

/// The bits of an array's only row if it has a fixed width of at most 32 bytes, lowest word first; `None` for
/// other types.
pub(crate) fn words(one: &DeviceArray) -> Option<[u64; 4]> {
    let (values, row) = (one.buffers(), one.offset());
    let mut words = [0; 4];
    match one.layout().slots {
        [Some(Slot::Bits), None] => {
            words[0] = u64::from(memory::bytes(&values[0])[row / 8] >> (row % 8) & 1);
        }
        [Some(Slot::Fixed(width)), None] if one.children().is_empty() && width <= 32 => {
            let bytes = &memory::bytes(&values[0])[row * width..][..width];
            for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
                let mut whole = [0; 8];
                whole[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(whole);
            }
        }
        _ => return None,
    }
    Some(words)
}
