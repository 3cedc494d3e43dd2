//! Exchanges DLPack tensors on any device. [`exchange`] handles everything that touches no memory. This
//! module adds the steps that need work on the device: it counts nulls whose number is not known, and
//! converts booleans between DLPack's bytes and Arrow's bits.

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use super::{CastOptions, cast, null_count};
use crate::array::{DeviceArray, Place};
use crate::device::Stream;
use crate::exchange;
use crate::ffi::dlpack::{ManagedTensor, Owned};
use crate::{Error, Result};

/// Exports an array on any device; otherwise like [`exchange::export_dlpack`]. Booleans are copied to bytes
/// on `stream`, and the tensor is then on its device. Other values stay in place, in memory that `stream`
/// must reach. Synchronises once for each level of lists whose null count is not known on a device.
pub fn export_tensor<T: ManagedTensor>(
    array: &DeviceArray,
    stream: &Stream,
    consumer: Option<&Stream>,
) -> Result<Owned<T>> {
    if array.place() == Place::CPU {
        return exchange::export_dlpack(array, consumer);
    }
    let whole = counted(array, stream)?;
    if innermost(whole.data_type()) != &DataType::Boolean {
        return exchange::export_dlpack(&whole, consumer);
    }
    let bytes = of_innermost(whole.data_type(), DataType::UInt8);
    let bytes = cast(&whole, &bytes, &CastOptions::default(), stream).wait()?;
    Ok(exchange::export_dlpack::<T>(&bytes, consumer)?.booleans(true).copied())
}

/// Imports a tensor on any device; otherwise like [`exchange::import_dlpack`]. Booleans are copied to bits on
/// `stream`. Does not synchronise.
pub fn import_tensor<T: ManagedTensor>(tensor: Owned<T>, stream: &Stream) -> Result<DeviceArray> {
    if !exchange::has_booleans_on_a_device(&tensor) {
        return exchange::import_dlpack(tensor, stream);
    }
    let bytes = exchange::import_dlpack(tensor.booleans(false), stream)?;
    let bits = of_innermost(bytes.data_type(), DataType::Boolean);
    cast(&bytes, &bits, &CastOptions::default(), stream).wait()
}

/// The array, known to have no nulls at any level of lists.
fn counted(array: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let mut parts = array.clone().into_parts();
    if parts.validity.is_some() {
        match null_count(array, stream).wait()? {
            0 => (parts.validity, parts.null_count) = (None, Some(0)),
            nulls => {
                return Err(Error::invalid(
                    "DLPack",
                    format!("tensors have no nulls, the array has {nulls}"),
                ));
            }
        }
    }
    if let DataType::FixedSizeList(..) = parts.data_type {
        // Restricts the child to the visible rows; its other rows may be null.
        (parts.offset, parts.children) = (0, vec![counted(&array.child_rows(0)?, stream)?]);
    }
    DeviceArray::try_new(parts)
}

/// The item type of the innermost list.
fn innermost(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::FixedSizeList(item, _) => innermost(item.data_type()),
        other => other,
    }
}

/// The same nesting of lists with another innermost item type.
fn of_innermost(data_type: &DataType, innermost: DataType) -> DataType {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            let item = Field::new(item.name(), of_innermost(item.data_type(), innermost), item.is_nullable());
            DataType::FixedSizeList(Arc::new(item), *size)
        }
        _ => innermost,
    }
}
