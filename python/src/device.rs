//! Devices and streams.

use std::sync::{Mutex, PoisonError};

use bowstring::Device as Inner;
use bowstring::array::Place;
use bowstring::ffi::DeviceType;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{detached, ours};

/// Where arrays live and operations run.
#[pyclass(frozen, weakref, module = "bowstring")]
pub struct Device(pub Inner);

/// An order of work on a device.
#[pyclass(frozen, weakref, module = "bowstring")]
pub struct Stream(pub bowstring::Stream);

/// The device that serves memory of this kind: pinned and managed memory belongs to a GPU.
pub fn device_of(device_type: i32, device_id: i64) -> PyResult<Inner> {
    let Some(memory) = DeviceType::from_abi(device_type) else {
        return Err(PyValueError::new_err(format!("no device type {device_type} is served")));
    };
    ours(|| Inner::open(memory.device(), device_id))
}

/// The device of a name as torch has it: "cpu", "cuda", "rocm:1".
pub fn device_named(name: &str) -> PyResult<Inner> {
    let unknown = || {
        let problem = format!(
            "no device is named {name:?}: \"cpu\", \"cuda\", \"rocm\" or \"emulated\", and \":1\" for the second"
        );
        PyValueError::new_err(problem)
    };
    let (kind, id) = name.split_once(':').unwrap_or((name, "0"));
    let id: i64 = id.parse().map_err(|_| unknown())?;
    match kind.to_lowercase().as_str() {
        "cpu" => Ok(Inner::cpu()),
        "cuda" => ours(|| Inner::open(DeviceType::Cuda, id)),
        "rocm" | "hip" => ours(|| Inner::open(DeviceType::Rocm, id)),
        "emulated" => ours(|| Inner::open(DeviceType::Emulated, id)),
        _ => Err(unknown()),
    }
}

/// The stream that operations of this library use where they are not told another; one for each device.
pub fn default_stream(place: Place) -> PyResult<bowstring::Stream> {
    static STREAMS: Mutex<Vec<(Place, bowstring::Stream)>> = Mutex::new(vec![]);
    // What the host reaches, the CPU works on.
    if place.device_type.host_accessible() && place.device_type != DeviceType::CudaManaged {
        return Ok(bowstring::Stream::cpu());
    }
    let device = device_of(place.device_type as i32, place.device_id)?;
    let mut streams = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, stream)) = streams.iter().find(|(known, _)| *known == device.place()) {
        return Ok(stream.clone());
    }
    let stream = ours(|| device.stream())?;
    streams.push((device.place(), stream.clone()));
    Ok(stream)
}

/// The stream to work on: the caller's, or the default of where the data is.
pub fn stream_for(place: Place, stream: Option<&Bound<'_, Stream>>) -> PyResult<bowstring::Stream> {
    match stream {
        Some(stream) => Ok(stream.get().0.clone()),
        None => default_stream(place),
    }
}

#[pymethods]
impl Device {
    /// A device by its name: "cpu", "cuda", "cuda:1", "rocm", "emulated".
    #[new]
    fn new(name: &str) -> PyResult<Device> {
        device_named(name).map(Device)
    }

    /// Host memory, computed on by all cores.
    #[staticmethod]
    fn cpu() -> Device {
        Device(Inner::cpu())
    }

    /// An NVIDIA GPU.
    #[staticmethod]
    #[pyo3(signature = (device_id = 0))]
    fn cuda(device_id: i64) -> PyResult<Device> {
        ours(|| Inner::open(DeviceType::Cuda, device_id)).map(Device)
    }

    /// An AMD GPU.
    #[staticmethod]
    #[pyo3(signature = (device_id = 0))]
    fn rocm(device_id: i64) -> PyResult<Device> {
        ours(|| Inner::open(DeviceType::Rocm, device_id)).map(Device)
    }

    /// An emulated GPU, for programs that must run where there is none. Slow.
    #[staticmethod]
    fn emulated() -> PyResult<Device> {
        device_of(DeviceType::Emulated as i32, 0).map(Device)
    }

    /// A device by the number of its type in the Arrow device interface and DLPack.
    #[staticmethod]
    #[pyo3(signature = (device_type, device_id = 0))]
    fn open(device_type: i32, device_id: i64) -> PyResult<Device> {
        device_of(device_type, device_id).map(Device)
    }

    /// The number of its type in the Arrow device interface and DLPack.
    #[getter]
    fn device_type(&self) -> i32 {
        self.0.place().device_type as i32
    }

    /// Which of its type; -1 for the CPU.
    #[getter]
    fn device_id(&self) -> i64 {
        self.0.place().device_id
    }

    /// Its name, for people.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// Bounds the memory that results may take; beyond it they are a `MemoryError`.
    fn set_memory_limit(&self, bytes: usize) {
        self.0.set_memory_limit(bytes);
    }

    /// Sets whether exported memory of a GPU stays untouched, once its consumer has let go of it, until the
    /// work has passed that the consumer had put on its stream: the one that it named, or the legacy default
    /// stream. It does by default; without, a consumer must let go only of what nothing reads any more.
    fn set_export_fence(&self, kept: bool) {
        self.0.set_export_fence(kept);
    }

    /// A new stream.
    fn stream(&self) -> PyResult<Stream> {
        ours(|| self.0.stream()).map(Stream)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Device>().is_ok_and(|other| other.get().0.place() == self.0.place())
    }

    fn __hash__(&self) -> u64 {
        (self.0.place().device_type as u64) << 32 | (self.0.place().device_id as u64 & 0xffff_ffff)
    }

    fn __repr__(&self) -> String {
        format!("<bowstring.Device {}>", self.0.place())
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (i32, i64))> {
        let open = py.get_type::<Device>().getattr("open")?.unbind();
        Ok((open, (self.device_type(), self.device_id())))
    }
}

#[pymethods]
impl Stream {
    /// A new stream of a device, or the caller's own: `native` is the number of a `CUstream` or `hipStream_t`, which must
    /// outlive this object and the work put on it.
    #[new]
    #[pyo3(signature = (device = None, *, native = None))]
    fn new(device: Option<&Bound<'_, Device>>, native: Option<usize>) -> PyResult<Stream> {
        let device = device.map_or_else(Inner::cpu, |device| device.get().0.clone());
        match native {
            None => ours(|| device.stream()).map(Stream),
            Some(native) => wrap(&device, native).map(Stream),
        }
    }

    /// The device that it is of.
    #[getter]
    fn device(&self) -> Device {
        Device(self.0.device().clone())
    }

    /// The runtime's handle as a number; `None` on the CPU.
    #[getter]
    fn native(&self) -> Option<usize> {
        self.0.native_handle().map(|handle| handle.addr())
    }

    /// Blocks until everything put on it has passed.
    fn synchronise(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.synchronise())
    }

    fn __repr__(&self) -> String {
        format!("<bowstring.Stream of {}>", self.0.device().place())
    }
}

/// A native stream of somebody else's.
pub fn wrap(device: &Inner, native: usize) -> PyResult<bowstring::Stream> {
    // SAFETY: Python has nothing but numbers for streams: who passes one says that it is a stream of this device and
    // stays one. The driver looks whether it knows it, as far as it can.
    ours(|| unsafe { device.wrap_stream(std::ptr::with_exposed_provenance_mut(native)) })
}
