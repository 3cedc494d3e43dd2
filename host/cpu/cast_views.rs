//! Views in casts to text with offsets.

use arrow_schema::DataType;

use super::{memory, rows, spans};
use crate::Result;
use crate::array::DeviceArray;
use crate::device::HostPool;

/// Returns the array without the text of null views, if the text of all rows will be written: arrow-cast
/// reserves memory for that of null rows too.
pub(super) fn without_null_text(array: &DeviceArray, to: &DataType, pool: &HostPool) -> Result<DeviceArray> {
    use DataType::*;
    let is_written = matches!(array.data_type(), Utf8View | BinaryView)
        && matches!(to, Utf8 | LargeUtf8 | Binary | LargeBinary);
    let Some(valid) = rows::validity(array).filter(|_| is_written) else { return Ok(array.clone()) };
    let len_of = spans::of_row(array);
    if (0..array.len()).all(|row| valid.get(row) || len_of(row) == 0) {
        return Ok(array.clone());
    }
    let views = rows::values::<16>(&array.buffers()[0], array.offset(), array.len());
    let mut memory = pool.alloc(array.len() * 16)?;
    let shown = memory::values_mut::<[u8; 16]>(&mut memory).iter_mut().zip(views);
    shown.enumerate().for_each(|(row, (out, view))| *out = if valid.get(row) { *view } else { [0; 16] });
    let mut parts = array.clone().into_parts();
    (parts.buffers[0], parts.offset) = (memory.freeze(array.len() * 16), 0);
    DeviceArray::made(parts, array.known_valid())
}
