//! Arrays in the form in which the host reads them.

use std::borrow::Cow;

use crate::array::{DeviceArray, Place};
use crate::{Result, exchange};

/// Returns each array as [`admitted`] does.
pub(crate) fn all_admitted(arrays: &[DeviceArray]) -> Result<Vec<DeviceArray>> {
    arrays.iter().map(|array| Ok(admitted(array)?.into_owned())).collect()
}

/// Waits for the array's event. Extents that import could not read are read now, and memory shared with a
/// device becomes plain host memory.
pub(crate) fn admitted(array: &DeviceArray) -> Result<Cow<'_, DeviceArray>> {
    array.wait()?;
    let array = exchange::read_ends(array)?;
    Ok(if array.place() == Place::CPU { array } else { Cow::Owned(array.on_host()) })
}
