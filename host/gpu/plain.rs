//! Arrays with their values in place of keys and runs.

use arrow_cast::CastOptions;

use super::cast::cast;
use crate::array::DeviceArray;
use crate::rules::{of_any_length, value_type};
use crate::{Error, Result, Stream};

/// Returns the arrays, each as [`decoded_one`] does.
pub(crate) async fn decoded(columns: &[DeviceArray], stream: &Stream) -> Result<Vec<DeviceArray>> {
    let mut plain = Vec::with_capacity(columns.len());
    for values in columns {
        plain.push(decoded_one(values, stream).await?);
    }
    Ok(plain)
}

/// Returns the array with its values in place of keys and runs, unless these values are nested. Text becomes
/// views, which share it: repeated, it may be much.
pub(crate) async fn decoded_one(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let plain = value_type(values.data_type());
    if plain == values.data_type() || plain.is_nested() {
        return Ok(values.clone());
    }
    let cast = cast(&[(values, of_any_length(plain))], &CastOptions::default(), stream)?.await?;
    cast.into_iter().next().ok_or_else(|| Error::invalid("cast", "no array"))
}
