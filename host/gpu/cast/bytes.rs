//! Casts of variable-length bytes to fixed-size binary: rows of another length are null, or an error.

use arrow_schema::DataType;
use bowstring_kernels::gather::copy::{COPY_BYTES, CopyBytes};
use bowstring_kernels::target::find;

use super::inside::Cast;
use super::offsets::regular_offsets;
use super::views::of_one_size;
use crate::Result;
use crate::array::DeviceArray;
use crate::gpu::parts::none;
use crate::pass::bytes;
use crate::transfer::sized_buffers;

/// Casts rows of bytes that offsets describe.
pub(super) async fn cast(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    size: i32,
) -> Result<DeviceArray> {
    let mut pass = cast.begin(&[values])?;
    if values.is_empty() {
        return none(pass, to);
    }
    let (rows, size) = (values.len(), size as usize);
    let len = pass.times(rows, size)?;
    let sized = of_one_size(cast, &mut pass, values, to, size)?;
    let data = std::slice::from_ref(&values.buffers()[1]);
    let data = sized_buffers(&mut pass, data).await?.pop().unwrap_or_else(|| values.buffers()[1].clone());
    // A row of another length copies the bytes at the start of the data. If the data is shorter than one
    // value, no row can have the right length.
    let out = if data.bytes().is_some_and(|bytes| bytes >= size) && len > 0 {
        let out = pass.output(len)?;
        let to_places = regular_offsets(&mut pass, rows, size, 8, to)?;
        let (source, offset) = bytes(&data);
        let args = CopyBytes {
            to: to_places.input(),
            starts: sized.kept.input(),
            rows: rows as u64,
            scale: 1,
            bytes: source,
            offset,
            out: out.out(),
            len: len as u64,
        };
        let entry = find(COPY_BYTES, &[8]).ok_or_else(|| pass.unsupported(to))?;
        pass.launch(entry, &args)?;
        out
    } else {
        pass.zeroed(len)?
    };
    let mut parts = pass.parts(to.clone(), rows);
    (parts.validity, parts.null_count) = (Some(sized.valid), None);
    parts.buffers = vec![out.buffer()];
    let casted = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(casted)
}
