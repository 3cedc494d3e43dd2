//! The CUDA array interface, versions 2 and 3. Its dictionary says what a DLPack tensor says, so it is
//! converted from and to such a tensor. Only its mask has no counterpart in DLPack.

use std::ffi::c_void;
use std::sync::Arc;

use arrow_schema::DataType;
use bowstring::array::{Bitmap, DeviceArray as Inner, Place};
use bowstring::compute::{self, CastOptions, tensors};
use bowstring::exchange::{self, Lent};
use bowstring::ffi::DeviceType;
use bowstring::ffi::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor, ManagedTensor, Owned,
};
use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::array::Array;
use crate::device::{Device, default_stream, device_of, wrap};
use crate::error::{detached, for_buffers, ours};

const ATTRIBUTE: &str = "__cuda_array_interface__";

/// Return the CUDA array interface of an array in any memory, for tests.
///
/// The attribute `__cuda_array_interface__` exists only where CUDA can reach the memory.
#[pyfunction]
#[pyo3(name = "_cuda_interface")]
pub fn cuda_interface<'py>(py: Python<'py>, array: &Bound<'py, Array>) -> PyResult<Bound<'py, PyDict>> {
    interface(py, array.get())
}

/// A mask as an object that has only the CUDA array interface.
#[pyclass(frozen)]
struct Mask(Lent);

#[pymethods]
impl Mask {
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        interface_of(py, self.0.array(), "|b1")
    }
}

/// Returns the interface, or `AttributeError` for arrays that have none.
pub fn attribute<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyDict>> {
    let lacking = |why: String| PyAttributeError::new_err(format!("{ATTRIBUTE}: {why}"));
    let memory = array.array.place().device_type;
    if memory.device() != DeviceType::Cuda {
        return Err(lacking(format!("CUDA does not access memory of {memory}")));
    }
    interface(py, array).map_err(|error| match error.is_instance_of::<PyBufferError>(py) {
        true => lacking(error.value(py).to_string()),
        false => error,
    })
}

/// Makes version 3 of the interface. Booleans are copied to bytes, and nulls become a mask of bytes. The
/// device's default stream waits for the array, and the interface names it as the stream to wait for.
fn interface<'py>(py: Python<'py>, array: &Array) -> PyResult<Bound<'py, PyDict>> {
    let values = &array.array;
    let nulls = array_nulls(py, values)?;
    let mut parts = values.clone().into_parts();
    (parts.validity, parts.null_count) = (None, Some(0));
    let whole = ours(|| Inner::try_new(parts))?;
    let dict = match with_bytes(values.data_type()) {
        Some(to) => {
            let made = bytes(py, &whole, &to)?;
            let lent = array.lent.get_or_init(|| Arc::new(Lent::new(made)));
            interface_of(py, lent.array(), "|b1")?
        }
        None => {
            let lent = array.lent.get_or_init(|| Arc::new(Lent::new(whole)));
            interface_of(py, lent.array(), "")?
        }
    };
    if nulls > 0 {
        if let DataType::FixedSizeList(..) = values.data_type() {
            return Err(PyBufferError::new_err("a mask is of elements: lists that are null have none"));
        }
        let stream = device_stream(values.place())?;
        let valid = detached(py, || compute::is_not_null(values, &stream).wait())?;
        let mask = bytes(py, &valid, &DataType::UInt8)?;
        dict.set_item("mask", Bound::new(py, Mask(Lent::new(mask)))?)?;
    }
    Ok(dict)
}

/// Returns the default stream of the device that shares this memory. By default the host works on pinned
/// memory, but its results are where no device reads them.
fn device_stream(place: Place) -> PyResult<bowstring::Stream> {
    default_stream(device_of(place.device_type as i32, place.device_id)?.place())
}

fn array_nulls(py: Python<'_>, values: &Inner) -> PyResult<usize> {
    let stream = device_stream(values.place())?;
    detached(py, || compute::null_count(values, &stream).wait())
}

/// Returns the type with bytes in place of booleans, or `None` if it has none.
fn with_bytes(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Boolean => Some(DataType::UInt8),
        DataType::FixedSizeList(item, size) => {
            let item = item.as_ref().clone().with_data_type(with_bytes(item.data_type())?);
            Some(DataType::FixedSizeList(Arc::new(item), *size))
        }
        _ => None,
    }
}

/// Converts booleans from bits to bytes.
fn bytes(py: Python<'_>, bits: &Inner, to: &DataType) -> PyResult<Inner> {
    let stream = device_stream(bits.place())?;
    detached(py, || compute::cast(bits, to, &CastOptions::default(), &stream).wait())
}

fn interface_of<'py>(py: Python<'py>, array: &Inner, typestr: &str) -> PyResult<Bound<'py, PyDict>> {
    let stream = device_stream(array.place())?;
    let tensor = detached(py, || {
        let tensor = tensors::export_tensor::<DLManagedTensorVersioned>(array, &stream, Some(&stream));
        tensor.map_err(for_buffers)
    })?;
    let described = tensor.managed().tensor();
    // SAFETY: our own tensor, alive, has `ndim` sizes.
    let shape = unsafe { std::slice::from_raw_parts(described.shape, described.ndim as usize) };
    let kind = match described.dtype.code {
        DLDataType::INT => 'i',
        DLDataType::UINT => 'u',
        _ => 'f',
    };
    let width = described.dtype.bits / 8;
    let order = if width == 1 { '|' } else { '<' };
    let own = format!("{order}{kind}{width}");
    // Without elements, the interface has the address 0.
    let address = if shape.contains(&0) { 0 } else { described.data.addr() };
    let dict = PyDict::new(py);
    dict.set_item("version", 3)?;
    dict.set_item("shape", PyTuple::new(py, shape)?)?;
    dict.set_item("typestr", if typestr.is_empty() { &own } else { typestr })?;
    dict.set_item("data", (address, true))?;
    dict.set_item("strides", py.None())?;
    dict.set_item("stream", stream.native_handle().map(|native| native.addr()))?;
    Ok(dict)
}

/// Make an array that shares the memory of an object with the CUDA array interface.
///
/// The memory must be dense, and hold numbers or booleans. Booleans of a byte each are copied to bits; values
/// of the type `t1` are bits already. A mask has an element for each value, or a bit if its type is `|t1`.
/// With a mask in another kind of memory than the values, the array is one of the device.
///
/// Operations wait for the stream that the interface names, and the array keeps the object alive. `device` is
/// the device that has the memory; by default, the driver determines it.
#[pyfunction]
#[pyo3(signature = (obj, /, *, device = None))]
pub fn from_cuda_array_interface(
    obj: &Bound<'_, PyAny>,
    device: Option<&Bound<'_, Device>>,
) -> PyResult<Array> {
    let foreign = Foreign::read(obj, 2)?;
    let device = match device {
        Some(device) => device.get().0.clone(),
        None => foreign.device()?,
    };
    if device.place() == Place::CPU {
        return Err(PyValueError::new_err("the CPU has no CUDA arrays"));
    }
    let mut array = foreign.import(&device)?;
    if let Some(mask) = &foreign.mask {
        // cudf declares version 1 for its masks.
        let mask = Foreign::read(mask.bind(obj.py()), 0)?;
        if foreign.shape.len() != 1 || mask.shape != foreign.shape {
            return Err(PyBufferError::new_err("a mask of another shape than the values"));
        }
        if mask.mask.is_some() {
            return Err(PyTypeError::new_err("a mask with a mask"));
        }
        let valid = mask.import_mask(&device)?;
        // The array has only the mask's event, so the values must be ready before that.
        detached(obj.py(), || array.wait())?;
        let mut parts = array.into_parts();
        if valid.place() != parts.place {
            // The device reads both kinds of memory, which the host may not.
            parts.place = device.place();
        }
        parts.ready = valid.ready().cloned();
        parts.validity = Some(Bitmap { buffer: valid.buffers()[0].clone(), offset: valid.offset() });
        parts.null_count = None;
        array = ours(|| Inner::try_new(parts))?;
    }
    Ok(Array::nameless(array).came_by("__cuda_array_interface__"))
}

/// The contents of an interface dictionary.
struct Foreign {
    owner: Py<PyAny>,
    shape: Vec<i64>,
    typestr: String,
    address: usize,
    stream: Option<usize>,
    mask: Option<Py<PyAny>>,
}

/// The owners that a tensor over foreign memory keeps alive.
struct KeepAlive {
    _owner: Py<PyAny>,
    _shape: Box<[i64]>,
}

impl Foreign {
    fn read(obj: &Bound<'_, PyAny>, least: u32) -> PyResult<Foreign> {
        let dict = obj.getattr(ATTRIBUTE)?;
        let dict =
            dict.cast::<PyDict>().map_err(|_| PyTypeError::new_err(format!("{ATTRIBUTE} is a dict")))?;
        let wrong = |what: &str| PyTypeError::new_err(format!("{ATTRIBUTE}: {what}"));
        let entry = |name: &str| Ok::<_, PyErr>(dict.get_item(name)?.filter(|value| !value.is_none()));
        let needed = |name: &str| entry(name)?.ok_or_else(|| wrong(&format!("no {name}")));

        let version: u32 = needed("version")?.extract().map_err(|_| wrong("version is a number"))?;
        if version < least {
            return Err(wrong(&format!("versions below {least} are not supported")));
        }
        let shape = needed("shape")?;
        let shape = shape.cast::<PyTuple>().ok().and_then(|shape| shape.extract::<Vec<i64>>().ok());
        let shape = shape.ok_or_else(|| wrong("shape is a tuple of numbers"))?;
        if shape.is_empty() || shape.iter().any(|size| *size < 0) {
            return Err(PyBufferError::new_err(format!("no array has the shape {shape:?}")));
        }
        let typestr =
            needed("typestr")?.cast::<PyString>().map_err(|_| wrong("typestr is text"))?.to_string();
        let (address, _read_only): (usize, bool) =
            needed("data")?.extract().map_err(|_| wrong("data is an address and whether it is read-only"))?;
        let stream = match entry("stream")? {
            None => None,
            Some(stream) => match stream.extract::<i64>().map_err(|_| wrong("stream is a number"))? {
                0 => return Err(PyValueError::new_err("stream 0 is ambiguous: say 1 or 2")),
                stream => match usize::try_from(stream) {
                    Ok(stream) => Some(stream),
                    Err(_) => return Err(PyValueError::new_err(format!("no stream {stream}"))),
                },
            },
        };
        let mut dense = element(&typestr)?.1 as i64;
        if is_bits(&typestr) && entry("strides")?.is_some() {
            return Err(PyBufferError::new_err("bits with strides"));
        }
        if let Some(strides) = entry("strides")? {
            let strides: Vec<i64> = strides.extract()?;
            if strides.len() != shape.len() {
                return Err(wrong("as many strides as dimensions"));
            }
            for (stride, size) in strides.iter().zip(&shape).rev() {
                if *stride != dense && *size > 1 && !shape.contains(&0) {
                    return Err(PyBufferError::new_err(format!(
                        "strides {strides:?} are not dense in C order"
                    )));
                }
                dense = dense.saturating_mul(*size);
            }
        }
        let mask = entry("mask")?.map(Bound::unbind);
        let owner = obj.clone().unbind();
        Ok(Foreign { owner, shape, typestr, address, stream, mask })
    }

    /// Asks CUDA's driver which device has the memory; if there are no elements, returns the first device.
    fn device(&self) -> PyResult<bowstring::Device> {
        let first = ours(|| bowstring::Device::open(DeviceType::Cuda, 0))?;
        match self.shape.contains(&0) {
            true => Ok(first),
            false => {
                let place = place_of(&first, self.address)?;
                device_of(place.device_type as i32, place.device_id)
            }
        }
    }

    /// Imports numbers and bits without a copy, and converts booleans of a byte each to bits.
    fn import(&self, device: &bowstring::Device) -> PyResult<Inner> {
        if is_bits(&self.typestr) {
            let &[rows] = &self.shape[..] else {
                return Err(PyTypeError::new_err("bits in more than one dimension"));
            };
            let dtype = DLDataType { code: DLDataType::UINT, bits: 8, lanes: 1 };
            let bytes = self.tensor(dtype, vec![(rows as u64).div_ceil(8) as i64], device)?;
            let mut parts = bytes.into_parts();
            (parts.data_type, parts.len) = (DataType::Boolean, rows as usize);
            return ours(|| Inner::try_new(parts));
        }
        let array = self.elements(device)?;
        match self.typestr.as_bytes()[1] {
            b'b' if self.shape.len() == 1 => bits(&array, &default_stream(array.place())?),
            b'b' => Err(PyTypeError::new_err("booleans in more than one dimension")),
            _ => Ok(array),
        }
    }

    /// Imports elements without a copy, booleans of a byte each as numbers.
    fn elements(&self, device: &bowstring::Device) -> PyResult<Inner> {
        let (code, width) = element(&self.typestr)?;
        let dtype = DLDataType { code, bits: width * 8, lanes: 1 };
        self.tensor(dtype, self.shape.clone(), device)
    }

    /// Imports a mask as bits: an element that is not zero is valid. The device makes the bits, because the
    /// host would put them where no device reads them.
    fn import_mask(&self, device: &bowstring::Device) -> PyResult<Inner> {
        match self.typestr.as_bytes()[1] {
            b't' => self.import(device),
            b'b' | b'i' | b'u' => bits(&self.elements(device)?, &default_stream(device.place())?),
            _ => Err(PyTypeError::new_err(format!("a mask of {}", self.typestr))),
        }
    }

    fn tensor(&self, dtype: DLDataType, shape: Vec<i64>, device: &bowstring::Device) -> PyResult<Inner> {
        // Memory that the device shares with the host keeps its own type in the array.
        let place = match shape.contains(&0) {
            true => device.place(),
            false => place_of(device, self.address)?,
        };
        if place.device_id != device.place().device_id {
            let problem = format!("memory of device {}, not of {}", place.device_id, device.place());
            return Err(PyBufferError::new_err(problem));
        }
        // The producer's work may still run on the stream that it names; if it names none, its work is done.
        let stream = match self.stream {
            Some(native) => wrap(device, native)?,
            None => default_stream(device.place())?,
        };
        let owner = Python::attach(|py| self.owner.clone_ref(py));
        let mut shape = shape.into_boxed_slice();
        let tensor = DLTensor {
            data: std::ptr::with_exposed_provenance_mut::<c_void>(self.address),
            device: DLDevice {
                device_type: place.device_type as i32,
                device_id: place.device_id.max(0) as i32,
            },
            ndim: shape.len() as i32,
            dtype,
            shape: shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        };
        let kept = Box::new(KeepAlive { _owner: owner, _shape: shape });
        let tensor = DLManagedTensorVersioned::boxed(tensor, DLManagedTensorVersioned::READ_ONLY, kept);
        // SAFETY: just made. The interface promises that the memory is as the dictionary says.
        let tensor = unsafe { Owned::from_raw(tensor) };
        ours(|| exchange::import_dlpack(tensor, &stream).map_err(for_buffers))
    }
}

/// Converts bytes or other numbers to bits: those that are not zero are true.
fn bits(numbers: &Inner, stream: &bowstring::Stream) -> PyResult<Inner> {
    let cast = || compute::cast(numbers, &DataType::Boolean, &CastOptions::default(), stream).wait();
    Python::attach(|py| detached(py, cast))
}

/// Asks the device's runtime which memory an address is in; an error if it does not know the address.
fn place_of(device: &bowstring::Device, address: usize) -> PyResult<Place> {
    let place = ours(|| device.place_of(address))?;
    place.ok_or_else(|| PyBufferError::new_err(format!("no memory of {} is at {address:#x}", device.place())))
}

/// Whether elements are bits, from the lowest of each byte on. If so, a shape counts bits.
fn is_bits(typestr: &str) -> bool {
    matches!(typestr.as_bytes(), [_, b't', b'1'])
}

/// Returns DLPack's type code of the elements and their size in bytes. Booleans and bits both count as bytes.
fn element(typestr: &str) -> PyResult<(u8, u8)> {
    let unknown = || PyTypeError::new_err(format!("elements of {typestr:?} are not supported"));
    let [order, kind, width] = typestr.as_bytes() else { return Err(unknown()) };
    let width = width.wrapping_sub(b'0');
    let code = match (kind, width) {
        (b'i', 1 | 2 | 4 | 8) => DLDataType::INT,
        (b'u', 1 | 2 | 4 | 8) | (b'b' | b't', 1) => DLDataType::UINT,
        (b'f', 2 | 4 | 8) => DLDataType::FLOAT,
        _ => return Err(unknown()),
    };
    // Big-endian elements are not supported.
    match order {
        b'<' | b'=' => Ok((code, width)),
        b'|' if width == 1 => Ok((code, width)),
        _ => Err(unknown()),
    }
}
