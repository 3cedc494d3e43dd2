//! Full validation of an array's contents, on any device.
//!
//! The one idea: import checks the structs and believes the contents of buffers; operations check the values
//! that they follow and pass on the values that they only move
//! ([`import_array`](crate::exchange::import_array) has the table). Data from an untrusted producer is
//! validated here, once, before it goes on to a consumer that believes it.

use super::arrow::read_through;
use crate::array::{DeviceArray, DeviceBatch};
use crate::{Error, Result, Stream};

/// Validates an array in host memory in full. Checks that offsets are in order and in range, views are inside
/// their buffers, text is UTF-8, keys, indices and type ids are in range, run ends ascend, non-nullable
/// children have no nulls, and null counts are correct. Returns [`Error::OutOfSpec`] with the path of the
/// first malformed part.
///
/// These are the checks of arrow-rs's `ArrayData::validate_full`, and the null counts. An array that arrow-rs
/// accepts is valid: any bytes are a number, a time or a decimal, whatever its precision, and keys of maps
/// may repeat. An array that arrow-rs refuses is invalid, even if the format would allow it: a view or a list
/// view under a null row must be in range.
///
/// Waits for the array's event. Returns [`Error::Unsupported`] if the array is not in host memory: see
/// [`validate_on`].
pub fn validate(array: &DeviceArray) -> Result<()> {
    read_through("validate", array)
}

/// Validates an array on any device; otherwise like [`validate`]. An array that the host cannot read is
/// downloaded in full on `stream`, and the copy is validated. Synchronises.
pub fn validate_on(array: &DeviceArray, stream: &Stream) -> Result<()> {
    match array.place().device_type.host_accessible() {
        true => validate(array),
        false => validate(&stream.download(array)?),
    }
}

/// Validates every column of a batch; otherwise like [`validate_on`]. The columns are downloaded together. A
/// column under a field that is not nullable must have no nulls. Synchronises, once, if the batch is not in
/// host memory.
pub fn validate_batch(batch: &DeviceBatch, stream: &Stream) -> Result<()> {
    let readable = |column: &DeviceArray| column.place().device_type.host_accessible();
    let copy = match batch.columns().iter().all(readable) {
        true => None,
        false => Some(stream.download(batch)?),
    };
    let batch = copy.as_ref().unwrap_or(batch);
    for (i, (field, column)) in batch.schema().fields().iter().zip(batch.columns()).enumerate() {
        let named = |error: Error| error.inside(&format!("children[{i}]"));
        validate(column).map_err(named)?;
        // A known count has been found correct.
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
