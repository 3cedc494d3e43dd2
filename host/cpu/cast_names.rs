//! The fields of runs in casts. arrow-cast gives the runs that it makes fields of its own, whose values may
//! be null: whatever its target says, and even where a list or struct around them needs the target's.
//!
//! The one idea: arrow-cast sees types with its own fields only, and the result gets those that were asked
//! for.

use arrow_schema::DataType;

use super::{rows, run_ends};
use crate::array::{DeviceArray, children};
use crate::{Error, Result};

/// Returns the same array as one of a type that differs in the fields of runs only.
pub(super) fn renamed(array: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    let mut parts = array.clone().into_parts();
    parts.data_type = to.clone();
    for (part, to) in parts.children.iter_mut().zip(children(to)) {
        *part = renamed(part, to)?;
    }
    if let (Some(values), DataType::Dictionary(_, to)) = (&mut parts.dictionary, to) {
        *values = renamed(values, to)?;
    }
    DeviceArray::made(parts, array.known_valid())
}

/// Checks that the values of runs have no nulls if their field is not nullable. arrow-rs does not look there.
pub(super) fn lacks_nulls(array: &DeviceArray) -> Result<()> {
    if let DataType::RunEndEncoded(_, field) = array.data_type()
        && !field.is_nullable()
    {
        let values = run_ends::values(array);
        let nulls = match (values.data_type(), rows::validity(&values)) {
            (DataType::Null, _) => values.len(),
            (_, None) => 0,
            (_, Some(valid)) => values.len() - valid.count()?,
        };
        if nulls > 0 {
            let problem = format!("{nulls} nulls in {:?}, which is not nullable", field.name());
            return Err(Error::Arrow { operation: "cast", problem });
        }
    }
    array.children().iter().chain(array.dictionary()).try_for_each(lacks_nulls)
}
