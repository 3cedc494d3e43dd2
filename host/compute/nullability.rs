//! What a schema says of nulls, and what operations on batches make of it.
//!
//! The one idea: under a field that is not nullable there are no nulls, whichever operation made the column. A filter keeps
//! what is said of a field. A take whose indices may be null makes every field nullable. A cast goes to the schema that the
//! caller asks for, so there a null under such a field is an error, as it is where arrow-rs makes a `RecordBatch`.

use arrow_schema::Schema;

use crate::{Array, Error, Result, Stream, cpu, gpu};

/// The columns, none of which has nulls where the schema says that there are none. Nulls are an error at once where their
/// number is known or the host can count them; on a GPU else of whoever first waits for one of those columns.
pub(super) fn held_to(schema: &Schema, mut columns: Vec<Array>, stream: &Stream) -> Result<Vec<Array>> {
    let mut uncounted = vec![];
    for (i, (column, field)) in columns.iter().zip(schema.fields()).enumerate() {
        let Some(bits) = column.validity().filter(|_| !field.is_nullable() && !column.is_empty()) else {
            continue;
        };
        let nulls = match (column.known_null_count(), stream.as_gpu()) {
            (Some(nulls), _) => nulls,
            (None, None) => column.len() - cpu::nulls::count_valid(bits, column.len()),
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
    let of_those: Vec<&Array> = places.iter().map(|i| &columns[*i]).collect();
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
