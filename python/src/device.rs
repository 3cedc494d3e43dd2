//! The classes `Device` and `Stream`.

use std::sync::{Mutex, PoisonError};

use bowstring::Kernels;
use bowstring::array::Place;
use bowstring::ffi::DeviceType;
use bowstring::{Device as Inner, Error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{detached, ours};

/// A device: memory that holds arrays, and a processor that runs operations on them.
#[pyclass(frozen, weakref, module = "bowstring")]
pub struct Device(pub Inner);

/// A queue of work on a device. The device does the work of one stream in order.
#[pyclass(frozen, weakref, module = "bowstring")]
pub struct Stream(pub bowstring::Stream);

/// Opens the device that works on this kind of memory: pinned and managed memory belongs to a GPU.
pub fn device_of(device_type: i32, device_id: i64) -> PyResult<Inner> {
    let Some(memory) = DeviceType::from_abi(device_type) else {
        return Err(PyValueError::new_err(format!("no device type {device_type} is served")));
    };
    ours(|| Inner::open(memory.device(), device_id))
}

/// Opens a device by its name, written as in torch: "cpu", "cuda", "rocm:1".
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

/// Returns the default stream for memory: operations use it unless the caller passes another. Each device has
/// one.
pub fn default_stream(place: Place) -> PyResult<bowstring::Stream> {
    static STREAMS: Mutex<Vec<(Place, bowstring::Stream)>> = Mutex::new(vec![]);
    // The CPU works on all memory that the host can access, except managed memory.
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

/// Returns the stream to work on: the caller's, or the default one for the memory that holds the data.
pub fn stream_for(place: Place, stream: Option<&Bound<'_, Stream>>) -> PyResult<bowstring::Stream> {
    match stream {
        Some(stream) => Ok(stream.get().0.clone()),
        None => default_stream(place),
    }
}

#[pymethods]
impl Device {
    /// Open a device by its name, such as "cpu", "cuda", "cuda:1", "rocm" or "emulated".
    ///
    /// Raise `ValueError` for an unknown name, and `RuntimeError` if the machine has no such device.
    #[new]
    fn new(name: &str) -> PyResult<Device> {
        device_named(name).map(Device)
    }

    /// Return the CPU, which works on host memory with all its cores.
    #[staticmethod]
    fn cpu() -> Device {
        Device(Inner::cpu())
    }

    /// Open an NVIDIA GPU by its number, or raise `RuntimeError` if there is none.
    #[staticmethod]
    #[pyo3(signature = (device_id = 0))]
    fn cuda(device_id: i64) -> PyResult<Device> {
        ours(|| Inner::open(DeviceType::Cuda, device_id)).map(Device)
    }

    /// Open an AMD GPU by its number, or raise `RuntimeError` if there is none.
    #[staticmethod]
    #[pyo3(signature = (device_id = 0))]
    fn rocm(device_id: i64) -> PyResult<Device> {
        ours(|| Inner::open(DeviceType::Rocm, device_id)).map(Device)
    }

    /// Open an emulated GPU, which is slow, for programs that must also run on a machine without one.
    #[staticmethod]
    fn emulated() -> PyResult<Device> {
        device_of(DeviceType::Emulated as i32, 0).map(Device)
    }

    /// Open a device by the number that the Arrow device interface and DLPack give its type.
    #[staticmethod]
    #[pyo3(signature = (device_type, device_id = 0))]
    fn open(device_type: i32, device_id: i64) -> PyResult<Device> {
        device_of(device_type, device_id).map(Device)
    }

    /// The number of the device's type in the Arrow device interface and DLPack.
    #[getter]
    fn device_type(&self) -> i32 {
        self.0.place().device_type as i32
    }

    /// The number of the device among those of its type; -1 for the CPU.
    #[getter]
    fn device_id(&self) -> i64 {
        self.0.place().device_id
    }

    /// The name of the device, for people to read.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// Bound the unused memory that is kept for later; kept memory beyond it is freed now.
    fn set_memory_kept(&self, py: Python<'_>, bytes: usize) -> PyResult<()> {
        detached(py, || {
            self.0.set_memory_kept(bytes);
            Ok::<_, Error>(())
        })
    }

    /// Load the kernels of operations, and return how many images that took.
    ///
    /// Otherwise each kernel is loaded when an operation first needs it, which takes the operation 10 to
    /// 500 ms on CUDA, unless the driver finds in its cache on disk what it compiled before. The names are
    /// "filter", "take", "cast", "text" (casts from and to text), "expressions", "sort", "group" and "join";
    /// without any, all are loaded. The CPU and the emulator have no images.
    #[pyo3(signature = (*kernels))]
    fn prepare(&self, py: Python<'_>, kernels: Vec<String>) -> PyResult<usize> {
        let named = kernels.iter().map(|name| name.parse::<Kernels>()).collect::<Result<Vec<_>, _>>();
        let device = self.0.clone();
        detached(py, move || {
            let named = named?;
            device.prepare(if named.is_empty() { &Kernels::ALL } else { &named })
        })
    }

    /// Limit the device memory of results to so many bytes. An operation that needs more raises
    /// `MemoryError`.
    fn set_memory_limit(&self, bytes: usize) {
        self.0.set_memory_limit(bytes);
    }

    /// Set whether exported memory of a GPU is kept until its consumer's queued work has finished.
    ///
    /// By default, memory that a consumer has released is reused only after the work that the consumer had
    /// queued by then, on the stream that it named, or otherwise on the legacy default stream. With
    /// `kept=False` it may be reused at once, so a consumer must not release memory that its work still
    /// reads.
    fn set_export_fence(&self, kept: bool) {
        self.0.set_export_fence(kept);
    }

    /// Make a new stream on this device.
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
    /// Make a new stream on a device (by default the CPU), or wrap an existing stream.
    ///
    /// `native` is an existing `CUstream` or `hipStream_t` as a number. That stream must outlive this object
    /// and all work that is put on it.
    #[new]
    #[pyo3(signature = (device = None, *, native = None))]
    fn new(device: Option<&Bound<'_, Device>>, native: Option<usize>) -> PyResult<Stream> {
        let device = device.map_or_else(Inner::cpu, |device| device.get().0.clone());
        match native {
            None => ours(|| device.stream()).map(Stream),
            Some(native) => wrap(&device, native).map(Stream),
        }
    }

    /// The device that the stream belongs to.
    #[getter]
    fn device(&self) -> Device {
        Device(self.0.device().clone())
    }

    /// The `CUstream` or `hipStream_t` of the stream as a number, or `None` if it has none, as on the CPU.
    #[getter]
    fn native(&self) -> Option<usize> {
        self.0.native_handle().map(|handle| handle.addr())
    }

    /// Block until all work on the stream has finished.
    fn synchronise(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.0.synchronise())
    }

    fn __repr__(&self) -> String {
        format!("<bowstring.Stream of {}>", self.0.device().place())
    }
}

/// Wraps a native stream that its owner passed as a number.
pub fn wrap(device: &Inner, native: usize) -> PyResult<bowstring::Stream> {
    // SAFETY: Python code has only numbers for streams: a caller that passes one asserts that it is a stream
    // of this device, and remains valid. The driver checks, as far as it can, that it knows the stream.
    ours(|| unsafe { device.wrap_stream(std::ptr::with_exposed_provenance_mut(native)) })
}
