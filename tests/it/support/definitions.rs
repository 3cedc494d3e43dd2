//! The plain definitions of operations that move rows, over plain values.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array as _, ArrayRef, BooleanArray};
use arrow_schema::DataType;

use super::Value;

/// Filter: a row stays if the mask is true; a null is not true.
pub fn filtered(values: &[Value], mask: &BooleanArray) -> Vec<Value> {
    values.iter().zip(mask).filter(|(_, keep)| *keep == Some(true)).map(|(value, _)| value.clone()).collect()
}

/// Take: the row at the index; null if the index is null or out of bounds.
pub fn taken(values: &[Value], indices: &[Option<i128>]) -> Vec<Value> {
    let row = |index: i128| usize::try_from(index).ok().and_then(|index| values.get(index));
    indices.iter().map(|index| index.and_then(row).cloned().unwrap_or(Value::Null)).collect()
}

/// Converts indices of any type to numbers.
pub fn numbers(indices: &ArrayRef) -> Vec<Option<i128>> {
    // Half of the u64 values do not fit an i64, but all indices in bounds do.
    let wide = arrow_cast::cast(indices, &DataType::Int64).expect("integers");
    let wide = wide.as_primitive::<Int64Type>();
    wide.iter()
        .zip(0..)
        .map(|(index, i)| (!indices.is_null(i)).then(|| index.map_or(i128::MAX, i128::from)))
        .collect()
}

/// Whether a row is null in any encoding; a union's row is null if its member is.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Member(_, member) => is_nothing(member),
        _ => false,
    }
}
