//! Builds columns of text from known row lengths: offsets by a scan, bytes by a kernel of the caller, and
//! views if the type asks for them.

use arrow_schema::DataType;
use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::reduce::scan::{SCAN, Scan};
use bowstring_kernels::target::find;

use super::offsets::{do_not_fit, most};
use super::text::{Edges, build_views};
use crate::Result;
use crate::array::{DeviceArray, Slot, layout};
use crate::gpu::bitmap::nulls_of;
use crate::pass::{Pass, Region, validity};

/// The byte lengths of rows, as kernels have written them.
pub(crate) struct Lengths<'a> {
    /// The length of each row.
    pub lens: &'a Region,
    /// The bytes of a length: 4, or the width of an offset.
    pub width: usize,
    /// The sum of lengths before each tile.
    pub bases: &'a Region,
    /// The sum of all lengths.
    pub total: u64,
}

/// Returns the bytes of the offsets that the text is laid out by. Views are made from 8-byte offsets.
pub(crate) fn offset_width(to: &DataType) -> usize {
    match layout(to).slots().next() {
        Some(Slot::Offsets(width)) => width,
        _ => 8,
    }
}

/// Builds text with the nulls of `values`. `write` gets the offsets and writes each row's bytes there; it is
/// not called if there are no bytes.
pub(crate) fn lay_out(
    pass: &mut Pass,
    values: &DeviceArray,
    to: &DataType,
    lengths: Lengths,
    write: impl FnOnce(&mut Pass, &Region, &Region) -> Result<()>,
) -> Result<DeviceArray> {
    let (rows, width, total) = (values.len(), offset_width(to), lengths.total);
    if total > most(width) {
        return Err(do_not_fit(total, to));
    }
    let offsets = pass.rows(rows + 1, width)?;
    let args = Scan {
        values: lengths.lens.input(),
        count: In::absent(),
        len: rows as u64,
        bases: lengths.bases.input(),
        out: offsets.out(),
        total: Out::absent(),
    };
    let entry = find(SCAN, &[lengths.width as u32, width as u32]).ok_or_else(|| pass.unsupported(to))?;
    pass.launch(entry, &args)?;
    let bytes = pass.output(total as usize)?;
    if total > 0 {
        write(pass, &offsets, &bytes)?;
    }
    let parts = pass.parts(to.clone(), rows);
    let mut parts = nulls_of(pass, values, parts)?;
    parts.buffers = match layout(to).slots().next() {
        Some(Slot::Views) => {
            let edges = Edges { offsets: offsets.input(), width, bytes: bytes.buffer() };
            build_views(pass, values, &edges, validity(values))?
        }
        _ => vec![offsets.buffer(), bytes.buffer()],
    };
    DeviceArray::try_new(parts)
}
