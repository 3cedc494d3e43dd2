//! Validation on request: an array's contents read through in every part, wherever it is.
//!
//! The one idea: import checks what the structs say and believes what stands in the buffers, and operations check what they
//! follow and pass on what they only move ([`import_array`](crate::exchange::import_array) has the table). A stranger's data
//! that goes on to a consumer who believes it is validated once, here.

use super::arrow::read_through;
use crate::array::{Array, Batch};
use crate::{Error, Result, Stream};

/// Reads an array in host memory through and says whether it is valid Arrow data in every part: offsets in order and in
/// range, views inside their buffers, text in UTF-8, keys, indices and type ids inside what they index, run ends ascending,
/// no nulls where a child's field forbids them, null counts true. What is not is [`Error::OutOfSpec`] and names the part.
///
/// These are the checks of arrow-rs's `ArrayData::validate_full`, and the null counts. What arrow-rs accepts is accepted: any
/// bytes are a number, a time or a decimal, whatever its precision, and keys of maps may repeat. What arrow-rs refuses is
/// refused, also where the format would allow it: a view or a list view under a null row must be in range.
///
/// Waits for the array's event. Elsewhere than in host memory it is [`Error::Unsupported`]: see [`validate_on`].
pub fn validate(array: &Array) -> Result<()> {
    read_through("validate", array)
}

/// As [`validate`], on any device: an array that the host cannot read is downloaded on `stream`, whole, and the copy is read.
/// Synchronises.
pub fn validate_on(array: &Array, stream: &Stream) -> Result<()> {
    match array.place().device_type.host_accessible() {
        true => validate(array),
        false => validate(&stream.download(array)?),
    }
}

/// As [`validate_on`], for every column of a batch, which are downloaded together; a column under a field that says it has no
/// nulls must have none. Synchronises, once, where the batch is not in host memory.
pub fn validate_batch(batch: &Batch, stream: &Stream) -> Result<()> {
    let readable = |column: &Array| column.place().device_type.host_accessible();
    let copy = match batch.columns().iter().all(readable) {
        true => None,
        false => Some(stream.download(batch)?),
    };
    let batch = copy.as_ref().unwrap_or(batch);
    for (i, (field, column)) in batch.schema().fields().iter().zip(batch.columns()).enumerate() {
        let named = |error: Error| error.inside(&format!("children[{i}]"));
        validate(column).map_err(named)?;
        // Found true, where it is known at all.
        let nulls = match (column.known_null_count(), column.validity()) {
            (Some(known), _) => known,
            (None, Some(bits)) => super::arrow::count_nulls(bits, column.len())?,
            (None, None) => 0,
        };
        if nulls > 0 && !field.is_nullable() {
            let problem = format!("{nulls} rows of {}, which may have none", field.name());
            return Err(named(Error::out_of_spec("array.null_count", problem)));
        }
    }
    Ok(())
}
