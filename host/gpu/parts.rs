//! Arrays that a pass puts together without launching anything: of no rows, of nothing but nulls, of what other passes made.

use arrow_schema::{DataType, UnionMode};

use crate::array::{Array, Bitmap, Buffer, children, layout};
use crate::pass::Pass;
use crate::{Error, Result};

/// An array that other passes made, as a part of what this pass makes, which has read it: one event for the whole.
pub(crate) fn part_of(pass: &Pass, array: Array) -> Result<Array> {
    let mut parts = array.into_parts();
    parts.ready = Some(pass.ready());
    parts.children = parts.children.into_iter().map(|child| part_of(pass, child)).collect::<Result<_>>()?;
    parts.dictionary = parts.dictionary.map(|values| part_of(pass, values)).transpose()?;
    Array::try_new(parts)
}

/// No rows, like those of `array`; what rows point into is shared.
pub(crate) fn empty_like(pass: &Pass, array: &Array) -> Result<Array> {
    let mut parts = pass.parts(array.data_type().clone(), 0);
    parts.buffers = array.buffers().iter().map(|_| Buffer::empty()).collect();
    parts.children = array.children().iter().map(|child| empty_like(pass, child)).collect::<Result<_>>()?;
    parts.dictionary = array.dictionary().map(|values| empty_like(pass, values)).transpose()?;
    Array::try_new(parts)
}

/// No rows of a type: nothing is on the device.
pub(crate) fn empty(pass: &Pass, data_type: &DataType) -> Result<Array> {
    let mut parts = pass.parts(data_type.clone(), 0);
    parts.buffers = layout(data_type).slots().map(|_| Buffer::empty()).collect();
    let below = children(data_type).into_iter().map(|child| empty(pass, child));
    parts.children = below.collect::<Result<_>>()?;
    if let DataType::Dictionary(_, values) = data_type {
        parts.dictionary = Some(empty(pass, values)?);
    }
    Array::try_new(parts)
}

/// The end of a pass that has nothing to do: no rows of a type.
pub(crate) fn none(pass: Pass, data_type: &DataType) -> Result<Array> {
    let none = empty(&pass, data_type)?;
    pass.finish()?;
    Ok(none)
}

/// `len` null rows of a type; `None` for types that cannot say that a row is null. Where they are to be `like` the rows of an
/// array, what those point into is shared.
pub(crate) fn nulls(
    pass: &mut Pass,
    data_type: &DataType,
    like: Option<&Array>,
    len: usize,
) -> Result<Option<Array>> {
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
    // The member that a null row of a union is of.
    let mut member = None;
    if let DataType::Union(fields, _) = data_type {
        // Rows that are taken are of the first that may be null; else they are of the first there is, as in arrow-rs.
        let mut places = fields.iter().enumerate();
        let place = places.find(|(_, (_, field))| like.is_none() || field.is_nullable());
        let Some((place, (id, _))) = place else { return Ok(None) };
        let ids = pass.output(len)?;
        pass.fill(&ids, id as u8)?;
        (member, parts.buffers[0]) = (Some(place), ids.buffer());
    }
    for (i, child) in children(data_type).into_iter().enumerate() {
        let rows = match data_type {
            DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => len,
            DataType::FixedSizeList(_, size) => pass.times(len, *size as usize)?,
            // All rows of a dense union may be the same one of their member.
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
    Array::try_new(parts).map(Some)
}

/// Where the only run of so many rows ends.
fn one_end(pass: &mut Pass, ends: &DataType, rows: usize) -> Result<Array> {
    check_end(pass.operation(), rows, ends)?;
    let mut parts = pass.parts(ends.clone(), 1);
    parts.buffers = vec![pass.upload(&[rows as u64])?.buffer()];
    Array::try_new(parts)
}

/// Rows up to a number must have ends that can say so.
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
