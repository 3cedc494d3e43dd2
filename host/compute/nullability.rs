//! Enforces the nullability of schemas in operations on batches.
//!
//! The one idea: a column under a field that is not nullable has no nulls, whichever operation made it. A
//! filter keeps the nullability of each field. A take whose indices may be null makes every field nullable. A
//! cast produces the schema that the caller asks for, so a null under a field that is not nullable is an
//! error, as it is when arrow-rs creates a `RecordBatch`.

use arrow_schema::Schema;

use super::engine;
use crate::{DeviceArray, Error, Result, Stream};

/// Checks that the columns have no nulls under fields that are not nullable. The error is returned at once if
/// the count is known or the host can count; otherwise, on a GPU, the first caller that waits for the column
/// gets it.
pub(super) fn held_to(
    schema: &Schema,
    mut columns: Vec<DeviceArray>,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    let (mut places, mut names) = (vec![], vec![]);
    for (i, (column, field)) in columns.iter().zip(schema.fields()).enumerate() {
        if field.is_nullable() || column.is_empty() || column.validity().is_none() {
            continue;
        }
        match column.known_null_count() {
            Some(nulls) => refuse(nulls, field.name())?,
            None => {
                places.push(i);
                names.push(field.name().clone());
            }
        }
    }
    if places.is_empty() {
        return Ok(columns);
    }
    let uncounted = places.iter().map(|i| columns[*i].clone()).collect();
    let check = move |nulls: &[u64]| {
        nulls.iter().zip(&names).try_for_each(|(nulls, name)| refuse(*nulls as usize, name))
    };
    let checked = engine(stream).check_null_counts(uncounted, Box::new(check), stream)?;
    for (i, checked) in places.into_iter().zip(checked) {
        columns[i] = checked;
    }
    Ok(columns)
}

fn refuse(nulls: usize, name: &str) -> Result<()> {
    match nulls {
        0 => Ok(()),
        _ => Err(Error::invalid("cast", format!("{nulls} nulls in {name:?}, which is not nullable"))),
    }
}

/// Returns the array without its validity, which marks no null.
pub(super) fn never_null(values: &DeviceArray) -> Result<DeviceArray> {
    let mut parts = values.clone().into_parts();
    (parts.validity, parts.null_count) = (None, Some(0));
    DeviceArray::try_new(parts)
}
