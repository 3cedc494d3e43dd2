//! Tensors of any device, over DLPack: what [`exchange`] does without touching memory, and what takes
//! work on the device: nulls are counted where their number is not known, and booleans, which are bytes there and bits
//! here, are converted.

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use super::{CastOptions, cast, null_count};
use crate::array::{Array, Place};
use crate::device::Stream;
use crate::exchange;
use crate::ffi::DeviceType;
use crate::ffi::dlpack::{DLDataType, ManagedTensor, Owned};
use crate::{Error, Result};

/// As [`exchange::export_dlpack`], on devices too: booleans are copied to bytes on `stream`, and are then where it is;
/// all else stays where the array is, which `stream` must reach.
/// Synchronises where a device's null count is not known, once for each level of lists.
pub fn export_tensor<T: ManagedTensor>(
    array: &Array,
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

/// As [`exchange::import_dlpack`], on devices too: booleans are copied to bits on `stream`. Synchronises nothing.
pub fn import_tensor<T: ManagedTensor>(tensor: Owned<T>, stream: &Stream) -> Result<Array> {
    // What another version's fields mean is not known.
    let known = tensor.managed().version().is_none_or(|version| version.major == 1);
    let there = known.then(|| *tensor.managed().tensor());
    let bits = there.is_some_and(|tensor| {
        tensor.dtype.code == DLDataType::BOOL && tensor.device.device_type != DeviceType::Cpu as i32
    });
    if !bits {
        return exchange::import_dlpack(tensor, stream);
    }
    let bytes = exchange::import_dlpack(tensor.booleans(false), stream)?;
    let bits = of_innermost(bytes.data_type(), DataType::Boolean);
    cast(&bytes, &bits, &CastOptions::default(), stream).wait()
}

/// The array, known to have no nulls in any level of lists.
fn counted(array: &Array, stream: &Stream) -> Result<Array> {
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
        // The rows that are seen: what else the child has may be null.
        (parts.offset, parts.children) = (0, vec![counted(&array.child_rows(0)?, stream)?]);
    }
    Array::try_new(parts)
}

/// What lists of lists are of.
fn innermost(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::FixedSizeList(item, _) => innermost(item.data_type()),
        other => other,
    }
}

/// Lists of lists of something else.
fn of_innermost(data_type: &DataType, innermost: DataType) -> DataType {
    match data_type {
        DataType::FixedSizeList(item, size) => {
            let item = Field::new(item.name(), of_innermost(item.data_type(), innermost), item.is_nullable());
            DataType::FixedSizeList(Arc::new(item), *size)
        }
        _ => innermost,
    }
}
