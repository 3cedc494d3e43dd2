//! Enforces the nullability of schemas in operations on batches.
//!
//! The one idea: a column under a field that is not nullable has no nulls, whichever operation made it. A
//! filter keeps the nullability of each field. A take whose indices may be null makes every field nullable. A
//! cast produces the schema that the caller asks for, so a null under a field that is not nullable is an
//! error, as it is when arrow-rs creates a `RecordBatch`.

use arrow_schema::Schema;

use crate::{DeviceArray, Error, Result, Stream, cpu, gpu};

/// Checks that the columns have no nulls under fields that are not nullable. The error is returned at once if
/// the count is known or the host can count; otherwise, on a GPU, the first caller that waits for the column
/// gets it.
pub(super) fn held_to(
    schema: &Schema,
    mut columns: Vec<DeviceArray>,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    let mut uncounted = vec![];
    for (i, (column, field)) in columns.iter().zip(schema.fields()).enumerate() {
        let Some(bits) = column.validity().filter(|_| !field.is_nullable() && !column.is_empty()) else {
            continue;
        };
        let nulls = match (column.known_null_count(), stream.as_gpu()) {
            (Some(nulls), _) => nulls,
            (None, None) => column.len() - cpu::nulls::count_valid(bits, column.len())?,
            (None, Some(_)) => {
                uncounted.push((i, field.name().clone()));
                0
            }
        };
        refuse(nulls, field.name())?;
    }
    if uncounted.is_empty() {
        return Ok(columns);
    }
    let (places, names): (Vec<usize>, Vec<String>) = uncounted.into_iter().unzip();
    let of_those: Vec<&DeviceArray> = places.iter().map(|i| &columns[*i]).collect();
    let check = move |nulls: &[u64]| {
        nulls.iter().zip(&names).try_for_each(|(nulls, name)| refuse(*nulls as usize, name))
    };
    for (i, checked) in places.into_iter().zip(gpu::with_null_counts_checked(&of_those, check, stream)?) {
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
