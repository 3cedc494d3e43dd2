//! Lists of fixed size, taken so that null rows have null items.
//!
//! Any other take of such lists is a take of ranges, and leaves arbitrary items under a null row. Casts are
//! the only operation that reads those.

use arrow_schema::DataType;
use bowstring_kernels::structure::lists::{SPACED, Spaced};

use crate::array::{Array, Buffer, Parts};
use crate::gpu::indices::{Indices, Outside, TakeInside};
use crate::gpu::parts::part_of;
use crate::pass::{Pass, Requests, validity};
use crate::{Result, Stream};

/// Takes lists of `size` items, at least one, by at least one index.
pub(crate) async fn take(
    array: &Array,
    size: usize,
    indices: &Array,
    outside: Outside,
    inside: TakeInside,
    stream: &Stream,
) -> Result<Array> {
    // Rows of zero bytes carry nothing but their validity.
    let shown = Parts {
        data_type: DataType::FixedSizeBinary(0),
        buffers: vec![Buffer::empty()],
        children: vec![],
        ..array.clone().into_parts()
    };
    let shown = inside(&Array::try_new(shown)?, indices, outside, stream)?.await?;
    let mut pass = Pass::begin("take", stream)?;
    pass.input(indices)?;
    pass.input(&shown)?;
    let len = pass.times(indices.len(), size)?;
    let mut requests = Requests::default();
    let by = Indices::new(&mut requests, indices, array.len(), outside)?;
    let granted = requests.grant(&mut pass, 0)?;
    let (arguments, out) = (by.arguments(&mut pass, &granted)?, pass.rows(len, 8)?);
    let (valid, valid_offset) = validity(&shown);
    let args = Spaced {
        indices: arguments.indices,
        width: arguments.width.into(),
        valid,
        valid_offset,
        rows: arguments.len,
        limit: arguments.limit,
        size: size as u64,
        out: out.out(),
    };
    pass.launch(&SPACED[0], &args)?;
    let numbers = Parts { buffers: vec![out.buffer()], ..pass.parts(DataType::UInt64, len) };
    let numbers = Array::try_new(numbers)?;
    pass.finish()?;
    let items = inside(&array.child_rows(0)?, &numbers, outside, stream)?.await?;
    let mut pass = Pass::begin("take", stream)?;
    pass.input(&items)?;
    pass.input(&shown)?;
    let mut parts = pass.parts(array.data_type().clone(), indices.len());
    (parts.validity, parts.null_count) = (shown.validity().cloned(), shown.known_null_count());
    parts.children = vec![part_of(&pass, items)?];
    let taken = Array::try_new(parts)?;
    pass.finish()?;
    Ok(taken)
}
