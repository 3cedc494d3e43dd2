//! Imports and exports dense tensors: numbers without nulls. Tensors of one dimension are primitive arrays,
//! those of more dimensions fixed-size lists. DLPack has no events. The exporter names the stream that will
//! read the tensor, and that stream waits. The importer names the stream on which the producer has made the
//! tensor ready.

use std::sync::Arc;

use arrow_schema::{DataType, Field};

use super::arrow::{count_nulls, to_arrow_data};
use super::import::served;
use crate::array::{Buffer, DeviceArray, Owner, Parts, Place, Ready, Slot, fits};
use crate::device::{Device, Event, Reader, Stream, let_go};
use crate::ffi::DeviceType;
use crate::ffi::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, ManagedTensor, Owned,
};
use crate::threads::{among_threads, each_part};
use crate::{Error, Result};

/// The booleans that a thread converts at once.
const SHARE: usize = 1 << 20;

/// The most dimensions that a tensor may have; array libraries have fewer.
const MAX_DIMENSIONS: usize = 64;

/// The element types that both sides support. Booleans are bytes in DLPack and bits in Arrow, so they are
/// handled separately.
const NUMBERS: [(u8, u8, DataType); 11] = [
    (DLDataType::INT, 8, DataType::Int8),
    (DLDataType::INT, 16, DataType::Int16),
    (DLDataType::INT, 32, DataType::Int32),
    (DLDataType::INT, 64, DataType::Int64),
    (DLDataType::UINT, 8, DataType::UInt8),
    (DLDataType::UINT, 16, DataType::UInt16),
    (DLDataType::UINT, 32, DataType::UInt32),
    (DLDataType::UINT, 64, DataType::UInt64),
    (DLDataType::FLOAT, 16, DataType::Float16),
    (DLDataType::FLOAT, 32, DataType::Float32),
    (DLDataType::FLOAT, 64, DataType::Float64),
];

fn unsupported(what: String, place: Place) -> Error {
    Error::Unsupported { operation: "DLPack", what: what.into(), device: place.device_type }
}

/// Whether a tensor on a device has bytes that are booleans.
pub(crate) fn has_booleans_on_a_device<T: ManagedTensor>(tensor: &Owned<T>) -> bool {
    // Other major versions give the fields a different meaning.
    let known = tensor.managed().version().is_none_or(|version| version.major == 1);
    let described = known.then(|| *tensor.managed().tensor());
    described.is_some_and(|tensor| {
        tensor.dtype.code == DLDataType::BOOL && tensor.device.device_type != DeviceType::Cpu as i32
    })
}

/// Imports a tensor that is ready for work on `stream`. Copies nothing, except that booleans, which are bytes
/// in DLPack, become bits. This works only on the CPU; see [`compute::tensors`](crate::compute::tensors) for
/// devices. The tensor is deleted when the last part of the array is dropped, or before this function returns
/// an error.
pub fn import_dlpack<T: ManagedTensor>(tensor: Owned<T>, stream: &Stream) -> Result<DeviceArray> {
    if let Some(version) = tensor.managed().version().filter(|version| version.major != 1) {
        let DLPackVersion { major, minor } = version;
        return Err(unsupported(format!("version {major}.{minor}"), stream.device().place()));
    }
    let described = *tensor.managed().tensor();
    let DLDevice { device_type, device_id } = described.device;
    let place = served(device_type, device_id.into(), stream.device())?;
    let shape = shape(&described)?;
    let DLDataType { code, bits, lanes } = described.dtype;
    let known = NUMBERS.iter().find(|(c, b, _)| lanes == 1 && (*c, *b) == (code, bits));
    let data_type = match known {
        Some((_, _, data_type)) => data_type.clone(),
        None if (code, bits, lanes) == (DLDataType::BOOL, 8, 1) && place == Place::CPU => DataType::UInt8,
        None => {
            return Err(unsupported(format!("elements of code {code}, {bits} bits, {lanes} lanes"), place));
        }
    };

    let elements = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    let bytes = elements.and_then(|elements| elements.checked_mul(usize::from(bits) / 8));
    let start = usize::try_from(described.byte_offset).ok();
    let address = start.and_then(|start| described.data.expose_provenance().checked_add(start));
    let (Some(elements), Some(bytes), Some(address)) = (elements, bytes, address) else {
        return Err(Error::out_of_spec("tensor.shape", format!("{shape:?} overflows")));
    };
    if bytes > 0 && described.data.is_null() {
        return Err(Error::out_of_spec("tensor.data", format!("null, but {bytes} bytes are needed")));
    }
    if !fits(address, bytes) {
        return Err(Error::out_of_spec("tensor.data", format!("{bytes} bytes go past the end of memory")));
    }

    let mut parts = Parts::new(data_type, elements);
    parts.place = place;
    parts.ready = mark(stream)?;
    let owner: Owner = Arc::new(tensor);
    // SAFETY: `Owned::from_raw` was promised the memory that the shape describes, unchanging until deleted.
    let buffer = unsafe { Buffer::new(if bytes == 0 { 0 } else { address }, Some(bytes), owner) };
    parts.buffers = vec![buffer];
    let mut array = DeviceArray::try_new(parts)?;
    if code == DLDataType::BOOL {
        array = packed(&array)?;
    }
    // The outermost dimension becomes the rows.
    for (i, size) in shape.iter().enumerate().skip(1).rev() {
        array = lists(array, shape[..i].iter().product(), *size)?;
    }
    Ok(array)
}

/// The event of the stream's current position; `None` on the CPU, where all work has finished.
fn mark(stream: &Stream) -> Result<Option<Arc<dyn Ready>>> {
    let Some((gpu, on)) = stream.as_gpu() else { return Ok(None) };
    on.enter(gpu, "DLPack")?;
    let event = Event::new(gpu.core(), on.number())?;
    event.record(on.owned())?;
    Ok(Some(Arc::new(event)))
}

/// The shape of a tensor; an error if the tensor is not dense.
fn shape(tensor: &DLTensor) -> Result<Vec<usize>> {
    let bad = |part: &str, problem: String| Err(Error::out_of_spec(format!("tensor.{part}"), problem));
    let ndim = match usize::try_from(tensor.ndim) {
        Ok(ndim) if (1..=MAX_DIMENSIONS).contains(&ndim) => ndim,
        _ => return bad("ndim", format!("{}, not 1 to {MAX_DIMENSIONS}", tensor.ndim)),
    };
    if tensor.shape.is_null() {
        return bad("shape", "null".into());
    }
    // SAFETY: `Owned::from_raw` was promised a size for each dimension.
    let size = |i: usize| unsafe { tensor.shape.add(i).read_unaligned() };
    let mut shape = Vec::with_capacity(ndim);
    for i in 0..ndim {
        // A list's size is an i32.
        match usize::try_from(size(i)) {
            Ok(size) if i == 0 || size <= i32::MAX as usize => shape.push(size),
            _ => return bad(&format!("shape[{i}]"), size(i).to_string()),
        }
    }
    if !tensor.strides.is_null() && !shape.contains(&0) {
        let mut dense = 1i64;
        for i in (0..ndim).rev() {
            // SAFETY: `Owned::from_raw` was promised a stride for each dimension, where there are any.
            let stride = unsafe { tensor.strides.add(i).read_unaligned() };
            if stride != dense && shape[i] != 1 {
                let what = format!("a stride of {stride} in dimension {i} of {shape:?}");
                return Err(Error::invalid("DLPack", format!("{what}: not dense in C order")));
            }
            dense = dense.saturating_mul(shape[i] as i64);
        }
    }
    Ok(shape)
}

/// Converts booleans of one byte each into bits.
fn packed(bytes: &DeviceArray) -> Result<DeviceArray> {
    let data = to_arrow_data(bytes)?;
    let from = &data.buffers()[0][data.offset()..][..data.len()];
    made(DataType::Boolean, data.len(), data.len().div_ceil(8), |to| {
        among_threads(from.len() > SHARE, |_| {
            each_part(to.chunks_mut(SHARE / 8).zip(from.chunks(SHARE)), |(to, from)| {
                for (to, from) in to.iter_mut().zip(from.chunks(8)) {
                    *to = from.iter().rev().fold(0, |bits, byte| bits << 1 | u8::from(*byte != 0));
                }
            })
        })
    })
}

/// Wraps rows as fixed-size lists of `size` rows each.
fn lists(rows: DeviceArray, len: usize, size: usize) -> Result<DeviceArray> {
    let item = Arc::new(Field::new("item", rows.data_type().clone(), false));
    let mut parts = Parts::new(DataType::FixedSizeList(item, size as i32), len);
    parts.place = rows.place();
    parts.ready = rows.ready().cloned();
    parts.children = vec![rows];
    DeviceArray::try_new(parts)
}

/// Exports numbers without nulls, or fixed-size lists of them, as a tensor. The tensor shares the array's
/// memory and is marked read-only (the unversioned form has no mark). Booleans are copied to bytes, which
/// works only on the CPU; see [`compute::tensors`](crate::compute::tensors) for devices.
///
/// `consumer` is the stream that will read the tensor; it waits for the array. Without one, the host waits.
/// The consumer may delete the tensor while its own work on that stream is still reading;
/// [`Device::set_export_fence`](crate::Device::set_export_fence) documents how far that is safe.
pub fn export_dlpack<T: ManagedTensor>(array: &DeviceArray, consumer: Option<&Stream>) -> Result<Owned<T>> {
    let place = array.place();
    let mut shape = vec![array.len() as i64];
    let mut values = array.clone();
    no_nulls(&values)?;
    while let DataType::FixedSizeList(_, size) = values.data_type() {
        shape.push((*size).into());
        values = values.child_rows(0)?;
        no_nulls(&values)?;
    }
    wait(array, consumer)?;

    let mut flags = DLManagedTensorVersioned::READ_ONLY;
    let known = NUMBERS.iter().find(|(_, _, data_type)| data_type == values.data_type());
    let (code, bits) = match known {
        Some((code, bits, _)) => (*code, *bits),
        None if *values.data_type() == DataType::Boolean && place == Place::CPU => {
            flags = DLManagedTensorVersioned::IS_COPIED;
            values = unpacked(&values)?;
            (DLDataType::BOOL, 8)
        }
        None => return Err(unsupported(array.data_type().to_string(), place)),
    };
    let Some(Slot::Fixed(width)) = values.layout().slots[0] else {
        return Err(unsupported(array.data_type().to_string(), place));
    };
    let address = values.buffers()[0].address();
    let address = if address == 0 { 0 } else { address + values.offset() * width };

    let mut strides = vec![1i64; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i].saturating_mul(shape[i]);
    }
    let (mut shape, mut strides) = (shape.into_boxed_slice(), strides.into_boxed_slice());
    let tensor = DLTensor {
        data: std::ptr::with_exposed_provenance_mut(address),
        device: DLDevice { device_type: place.device_type as i32, device_id: place.device_id.max(0) as i32 },
        ndim: shape.len() as i32,
        dtype: DLDataType { code, bits, lanes: 1 },
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let reader =
        consumer.and_then(Stream::as_gpu).map_or_else(Reader::default, |(_, stream)| stream.reader());
    let kept = Box::new(Exported { _shape: shape, _strides: strides, values: Some(values), reader });
    // SAFETY: just made, and no other code owns it; what its pointers point to is kept with it.
    Ok(unsafe { Owned::from_raw(T::boxed(tensor, flags, kept)) })
}

/// The memory that a tensor keeps until it is deleted.
struct Exported {
    _shape: Box<[i64]>,
    _strides: Box<[i64]>,
    /// `None` only while `Exported` is dropped.
    values: Option<DeviceArray>,
    reader: Reader,
}

impl Drop for Exported {
    fn drop(&mut self) {
        if let Some(values) = self.values.take() {
            let_go(values, std::mem::take(&mut self.reader));
        }
    }
}

fn no_nulls(array: &DeviceArray) -> Result<()> {
    let nulls = match (array.known_null_count(), array.validity()) {
        (Some(nulls), _) => nulls,
        (None, Some(bits)) if array.place().device_type.host_accessible() => {
            array.ready().map_or(Ok(()), |ready| ready.wait())?;
            count_nulls(bits, array.len())?
        }
        _ => return Err(Error::invalid("DLPack", "tensors have no nulls; count those of the array first")),
    };
    match nulls {
        0 => Ok(()),
        _ => Err(Error::invalid("DLPack", format!("tensors have no nulls, the array has {nulls}"))),
    }
}

/// Makes the consumer's stream, or the host, wait for an array and its descendants.
fn wait(array: &DeviceArray, consumer: Option<&Stream>) -> Result<()> {
    if let Some(ready) = array.ready() {
        match consumer.and_then(Stream::as_gpu) {
            Some((gpu, stream)) => stream.hold_caller_back(gpu, "DLPack", ready.as_ref())?,
            None => ready.wait()?,
        }
    }
    array.children().iter().try_for_each(|child| wait(child, consumer))
}

/// Converts booleans of one bit each into bytes.
fn unpacked(bits: &DeviceArray) -> Result<DeviceArray> {
    let data = to_arrow_data(bits)?;
    let bits = arrow_array::BooleanArray::from(data);
    let from = bits.values();
    made(DataType::UInt8, from.len(), from.len(), |to| {
        among_threads(from.len() > SHARE, |_| {
            each_part(to.chunks_mut(SHARE).zip((0..).step_by(SHARE)), |(to, start)| {
                let from = from.slice(start, to.len());
                to.iter_mut().zip(from.iter()).for_each(|(to, bit)| *to = bit.into());
            })
        })
    })
}

/// Makes an array of one buffer, which `fill` fills. Its memory counts against the CPU's limit.
fn made(
    data_type: DataType,
    len: usize,
    bytes: usize,
    fill: impl FnOnce(&mut [u8]) -> Result<Vec<()>>,
) -> Result<DeviceArray> {
    let mut memory = Device::cpu().host_pool().alloc(bytes)?;
    fill(&mut memory.bytes_mut()[..bytes])?;
    let mut parts = Parts::new(data_type, len);
    parts.buffers = vec![memory.freeze(bytes)];
    DeviceArray::try_new(parts)
}
