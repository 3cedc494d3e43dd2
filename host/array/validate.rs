//! Whether the parts of an array fit together, as far as that can be seen without reading device memory.

use arrow_schema::{DataType, UnionMode};

use super::{Parts, children, layout};
use crate::{Error, Result};

/// How deep types may nest. Deeper than anything sensible, shallow enough for the stack.
pub(crate) const MAX_DEPTH: usize = 64;

/// Errors name the part from `array`; whoever knows the way there puts it in front.
pub(super) fn structure(parts: &Parts) -> Result<()> {
    let bad = |at: &str, problem: String| Err(Error::out_of_spec(at, problem));
    let Some(end) = parts.offset.checked_add(parts.len).filter(|end| *end <= i64::MAX as usize) else {
        return bad("array", format!("offset {} + length {} overflows", parts.offset, parts.len));
    };
    if let DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) = &parts.data_type
        && *size < 0
    {
        return bad("array", format!("negative size in {}", parts.data_type));
    }

    let layout = layout(&parts.data_type);
    let slots: Vec<_> = layout.slots().collect();
    if parts.buffers.len() < slots.len() || (parts.buffers.len() > slots.len() && !layout.variadic) {
        return bad(
            "array",
            format!("{} has {} buffers, not {}", parts.data_type, slots.len(), parts.buffers.len()),
        );
    }
    for (i, (slot, buffer)) in slots.iter().zip(&parts.buffers).enumerate() {
        let Some(needed) = slot.bytes_for(end).or((*slot == super::Slot::Bytes).then_some(0)) else {
            return bad("array", format!("{end} rows of {} overflow", parts.data_type));
        };
        if buffer.bytes().is_some_and(|bytes| bytes < needed) {
            return bad(
                &format!("array.buffers[{i}]"),
                format!("{:?} of {needed} needed bytes", buffer.bytes()),
            );
        }
    }
    match &parts.validity {
        Some(_) if !layout.validity => return bad("array.validity", format!("{} has none", parts.data_type)),
        Some(bits) => {
            let Some(last) = bits.offset.checked_add(parts.len) else {
                return bad("array.validity", "offset + length overflows".into());
            };
            if bits.buffer.bytes().is_some_and(|bytes| bytes < last.div_ceil(8)) {
                return bad("array.validity", format!("{:?} bytes for {last} bits", bits.buffer.bytes()));
            }
        }
        None => {}
    }
    if parts.null_count.is_some_and(|nulls| nulls > parts.len) {
        return bad("array.null_count", format!("{:?} of {} rows", parts.null_count, parts.len));
    }

    let types = children(&parts.data_type);
    if types.len() != parts.children.len() {
        return bad(
            "array",
            format!("{} has {} children, not {}", parts.data_type, types.len(), parts.children.len()),
        );
    }
    let rows = match &parts.data_type {
        DataType::Struct(_) | DataType::Union(_, UnionMode::Sparse) => Some(end),
        DataType::FixedSizeList(_, size) => Some(end.checked_mul(*size as usize).ok_or_else(|| {
            Error::out_of_spec("array", format!("{end} rows of {} overflow", parts.data_type))
        })?),
        _ => None,
    };
    for (i, (data_type, child)) in types.iter().zip(&parts.children).enumerate() {
        let at = format!("array.children[{i}]");
        if *data_type != child.data_type() {
            return bad(&at, format!("{} where {data_type} must be", child.data_type()));
        }
        if rows.is_some_and(|rows| child.len() < rows) {
            return bad(&at, format!("{} rows of {rows:?} needed", child.len()));
        }
        if child.place() != parts.place {
            return bad(&at, format!("on {} under an array on {}", child.place(), parts.place));
        }
    }
    if let (DataType::RunEndEncoded(..), [ends, values]) = (&parts.data_type, &parts.children[..])
        && (ends.len() != values.len() || ends.validity().is_some_and(|_| ends.known_null_count() != Some(0)))
    {
        return bad(
            "array.children",
            format!("{} run ends, which may not be null, of {} values", ends.len(), values.len()),
        );
    }

    match (&parts.data_type, &parts.dictionary) {
        (DataType::Dictionary(_, of), Some(values)) if **of == *values.data_type() => {
            if values.place() != parts.place {
                return bad("array.dictionary", format!("on {}, keys on {}", values.place(), parts.place));
            }
        }
        (DataType::Dictionary(_, of), Some(values)) => {
            return bad("array.dictionary", format!("{} where {of} must be", values.data_type()));
        }
        (DataType::Dictionary(..), None) => return bad("array.dictionary", "missing".into()),
        (_, Some(_)) => return bad("array.dictionary", format!("{} has none", parts.data_type)),
        (_, None) => {}
    }
    Ok(())
}
