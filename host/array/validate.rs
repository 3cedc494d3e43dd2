//! Checks whether the parts of an array fit together, as far as possible without reading device memory.

use arrow_array::types::{
    Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, validate_decimal_precision_and_scale,
};
use arrow_schema::{DataType, TimeUnit, UnionMode};

use super::{Parts, children, layout};
use crate::{Error, Result};

/// Whether a type has a negative size, or is a time of a unit that its width does not have.
pub(crate) fn has_bad_parameter(data_type: &DataType) -> bool {
    match data_type {
        DataType::Time32(unit) => matches!(unit, TimeUnit::Microsecond | TimeUnit::Nanosecond),
        DataType::Time64(unit) => matches!(unit, TimeUnit::Second | TimeUnit::Millisecond),
        DataType::FixedSizeBinary(size) | DataType::FixedSizeList(_, size) => *size < 0,
        _ => false,
    }
}

/// Whether the type is one of Arrow's: `DataType` can represent more than the format allows. Does not check
/// the types of children, which are checked with the children themselves.
pub(crate) fn well_formed(data_type: &DataType) -> std::result::Result<(), String> {
    let decimal =
        |checked: std::result::Result<(), arrow_schema::ArrowError>| checked.map_err(|e| e.to_string());
    let wrong = match data_type {
        DataType::Decimal32(p, s) => {
            return decimal(validate_decimal_precision_and_scale::<Decimal32Type>(*p, *s));
        }
        DataType::Decimal64(p, s) => {
            return decimal(validate_decimal_precision_and_scale::<Decimal64Type>(*p, *s));
        }
        DataType::Decimal128(p, s) => {
            return decimal(validate_decimal_precision_and_scale::<Decimal128Type>(*p, *s));
        }
        DataType::Decimal256(p, s) => {
            return decimal(validate_decimal_precision_and_scale::<Decimal256Type>(*p, *s));
        }
        DataType::Dictionary(key, _) => !key.is_dictionary_key_type(),
        DataType::RunEndEncoded(ends, _) => !ends.data_type().is_run_ends_type(),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.len() != 2,
            _ => true,
        },
        other => has_bad_parameter(other),
    };
    if wrong { Err(format!("{data_type} is not an Arrow type")) } else { Ok(()) }
}

/// Checks the structure of parts. Error paths start at `array`; callers prefix the path to it.
pub(super) fn structure(parts: &Parts) -> Result<()> {
    let bad = |at: &str, problem: String| Err(Error::out_of_spec(at, problem));
    let Some(end) = parts.offset.checked_add(parts.len).filter(|end| *end <= i64::MAX as usize) else {
        return bad("array", format!("offset {} + length {} overflows", parts.offset, parts.len));
    };
    if let Err(problem) = well_formed(&parts.data_type) {
        return bad("array", problem);
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
        if let Some(bytes) = buffer.bytes().filter(|bytes| *bytes < needed) {
            return bad(&format!("array.buffers[{i}]"), format!("{bytes} of {needed} needed bytes"));
        }
    }
    match &parts.validity {
        Some(_) if !layout.validity => return bad("array.validity", format!("{} has none", parts.data_type)),
        Some(bits) => {
            let Some(last) = bits.offset.checked_add(parts.len) else {
                return bad("array.validity", "offset + length overflows".into());
            };
            if let Some(bytes) = bits.buffer.bytes().filter(|bytes| *bytes < last.div_ceil(8)) {
                return bad("array.validity", format!("{bytes} bytes for {last} bits"));
            }
        }
        None => {}
    }
    if let Some(nulls) = parts.null_count.filter(|nulls| *nulls > parts.len) {
        return bad("array.null_count", format!("{nulls} of {} rows", parts.len));
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
        if let Some(rows) = rows.filter(|rows| child.len() < *rows) {
            return bad(&at, format!("{} rows of {rows} needed", child.len()));
        }
        if child.place() != parts.place {
            return bad(&at, format!("on {} under an array on {}", child.place(), parts.place));
        }
    }
    if let (DataType::RunEndEncoded(..), [ends, values]) = (&parts.data_type, &parts.children[..])
        && (ends.len() != values.len() || ends.known_null_count().is_some_and(|nulls| nulls > 0))
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
