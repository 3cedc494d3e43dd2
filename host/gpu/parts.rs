//! Arrays that a pass builds without a launch: empty ones, all-null ones, and ones from the results of other
//! passes.

use std::borrow::Cow;

use arrow_schema::{DataType, UnionMode};

use crate::array::{Bitmap, Buffer, DeviceArray, children, layout, says_null};
use crate::pass::Pass;
use crate::{Error, Result, Stream};

/// Arrays as the device's own: the results share parts of them, and all parts of an array are in one place.
pub(super) fn own<'a>(arrays: &'a [DeviceArray], stream: &Stream) -> Cow<'a, [DeviceArray]> {
    let place = stream.device().place();
    match arrays.iter().all(|array| array.place() == place) {
        true => Cow::Borrowed(arrays),
        false => Cow::Owned(arrays.iter().map(|array| array.seen_from(place)).collect()),
    }
}

/// Returns an array of another pass as a part of what this pass makes; the pass must have it as an input. One
/// event then covers the whole.
pub(crate) fn part_of(pass: &Pass, array: DeviceArray) -> Result<DeviceArray> {
    let mut parts = array.into_parts();
    parts.ready = Some(pass.ready());
    parts.children = parts.children.into_iter().map(|child| part_of(pass, child)).collect::<Result<_>>()?;
    parts.dictionary = parts.dictionary.map(|values| part_of(pass, values)).transpose()?;
    DeviceArray::try_new(parts)
}

/// Returns an empty array like `array`. It has `array`'s type at every level, and none of its buffers.
pub(crate) fn empty_like(pass: &Pass, array: &DeviceArray) -> Result<DeviceArray> {
    let mut parts = pass.parts(array.data_type().clone(), 0);
    parts.buffers = array.buffers().iter().map(|_| Buffer::empty()).collect();
    parts.children = array.children().iter().map(|child| empty_like(pass, child)).collect::<Result<_>>()?;
    parts.dictionary = array.dictionary().map(|values| empty_like(pass, values)).transpose()?;
    DeviceArray::try_new(parts)
}

/// Returns an empty array of a type. It holds no device memory.
pub(crate) fn empty(pass: &Pass, data_type: &DataType) -> Result<DeviceArray> {
    let mut parts = pass.parts(data_type.clone(), 0);
    parts.buffers = layout(data_type).slots().map(|_| Buffer::empty()).collect();
    let below = children(data_type).into_iter().map(|child| empty(pass, child));
    parts.children = below.collect::<Result<_>>()?;
    if let DataType::Dictionary(_, values) = data_type {
        parts.dictionary = Some(empty(pass, values)?);
    }
    DeviceArray::try_new(parts)
}

/// Finishes a pass that has nothing to do and returns an empty array of a type.
pub(crate) fn none(pass: Pass, data_type: &DataType) -> Result<DeviceArray> {
    let none = empty(&pass, data_type)?;
    pass.finish()?;
    Ok(none)
}

/// Returns `len` null rows of a type, or `None` for types that cannot represent a null row. With `like`, an
/// array of that type, they share its dictionaries.
pub(crate) fn nulls(
    pass: &mut Pass,
    data_type: &DataType,
    like: Option<&DeviceArray>,
    len: usize,
) -> Result<Option<DeviceArray>> {
    if len == 0 {
        return like.map_or_else(|| empty(pass, data_type), |like| empty_like(pass, like)).map(Some);
    }
    let (mut parts, layout) = (pass.parts(data_type.clone(), len), layout(data_type));
    if layout.validity {
        let bits = pass.zeroed(len.div_ceil(8))?;
        parts.validity = Some(Bitmap { buffer: bits.buffer(), offset: 0 });
        parts.null_count = Some(len);
    }
    for slot in layout.slots() {
        parts.buffers.push(pass.zeroed_rows(slot, len)?.buffer());
    }
    // The union member that null rows select.
    let mut member = None;
    if let DataType::Union(fields, _) = data_type {
        // A take selects the first nullable member; otherwise the first member is selected, as in arrow-rs.
        let mut places = fields.iter().enumerate();
        let place = places.find(|(_, (_, field))| like.is_none() || says_null(field));
        let Some((place, (id, _))) = place else { return Ok(None) };
        let ids = pass.output(len)?;
        pass.fill(&ids, id as u8)?;
        (member, parts.buffers[0]) = (Some(place), ids.buffer());
    }
    for (i, child) in children(data_type).into_iter().enumerate() {
        let rows = match data_type {
            DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => len,
            DataType::FixedSizeList(_, size) => pass.times(len, *size as usize)?,
            // All rows of a dense union may point to one row of their member.
            DataType::Union(..) => usize::from(member == Some(i)),
            DataType::RunEndEncoded(..) if i == 0 => {
                parts.children.push(one_end(pass, child, len)?);
                continue;
            }
            DataType::RunEndEncoded(..) => 1,
            _ => 0,
        };
        let Some(child) = nulls(pass, child, like.map(|like| &like.children()[i]), rows)? else {
            return Ok(None);
        };
        parts.children.push(child);
    }
    parts.dictionary = match (data_type, like) {
        (_, Some(like)) => like.dictionary().cloned(),
        (DataType::Dictionary(_, values), None) => Some(empty(pass, values)?),
        _ => None,
    };
    DeviceArray::try_new(parts).map(Some)
}

/// Returns the ends of a single run of `rows` rows.
fn one_end(pass: &mut Pass, ends: &DataType, rows: usize) -> Result<DeviceArray> {
    check_end(pass.operation(), rows, ends)?;
    let mut parts = pass.parts(ends.clone(), 1);
    parts.buffers = vec![pass.upload(&[rows as u64])?.buffer()];
    DeviceArray::try_new(parts)
}

/// As [`check_end`], with an error of arrow-rs, which refuses the same on the CPU.
pub(crate) fn check_end_as_arrow(operation: &'static str, rows: usize, ends: &DataType) -> Result<()> {
    check_end(operation, rows, ends).map_err(|error| Error::Arrow { operation, problem: error.to_string() })
}

/// Checks that run ends of a type can hold a number of rows.
pub(crate) fn check_end(operation: &'static str, rows: usize, ends: &DataType) -> Result<()> {
    let most = match ends {
        DataType::Int16 => i16::MAX as usize,
        DataType::Int32 => i32::MAX as usize,
        _ => i64::MAX as usize,
    };
    if rows <= most {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("{rows} rows need wider run ends than {ends}")))
}
