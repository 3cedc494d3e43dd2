//! Imports foreign C streams as iterators. Dropping a reader releases the stream; arrays that it returned
//! stay alive.

use std::ffi::{CStr, c_char, c_int};
use std::mem::ManuallyDrop;
use std::sync::Arc;

use arrow_schema::{DataType, Field, SchemaRef};

use crate::array::{Batches, DeviceArray, Place};
use crate::device::{Device, interrupt};
use crate::exchange::import::{batch, field_of, import_typed, on_the_host, schema_of, served};
use crate::ffi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, FFI_ArrowSchema, check_schema,
};
use crate::{Error, Result};

/// An iterator over the arrays of a foreign stream. It ends after an error.
#[derive(Debug)]
pub struct ArrayReader {
    field: Field,
    device: Device,
    /// `None` after the end of the stream.
    source: Option<Source>,
}

/// Imports a device stream as an iterator over arrays. Moves the stream out of `stream`, unless its memory is
/// of a kind that `device` cannot use.
///
/// # Safety
///
/// The stream's callbacks must be what the Arrow C interface says, and each array that comes, and its schema,
/// must be fit for [`import_array`](crate::exchange::import_array).
pub unsafe fn import_stream(stream: &mut ArrowDeviceArrayStream, device: &Device) -> Result<ArrayReader> {
    // SAFETY: the caller's promise.
    let (source, schema) = unsafe { open(stream, device) }?;
    let field = field_of(&schema)?;
    Ok(ArrayReader { field, device: device.clone(), source: Some(source) })
}

/// Imports a device stream of structs as batches; otherwise like [`import_stream`].
///
/// # Safety
///
/// The requirements of [`import_stream`] apply.
pub unsafe fn import_batches(stream: &mut ArrowDeviceArrayStream, device: &Device) -> Result<Batches> {
    // SAFETY: the caller's promise.
    let (source, schema) = unsafe { open(stream, device) }?;
    batches(source, &schema, device)
}

/// Imports a stream in host memory as an iterator over arrays; otherwise like [`import_stream`].
///
/// # Safety
///
/// The requirements of [`import_stream`] apply.
pub unsafe fn import_host_stream(stream: ArrowArrayStream) -> Result<ArrayReader> {
    let mut source = Source::Host(stream);
    // SAFETY: the caller's promise.
    let schema = unsafe { source.schema() }?;
    let field = field_of(&schema)?;
    Ok(ArrayReader { field, device: Device::cpu(), source: Some(source) })
}

/// Imports a stream of structs in host memory as batches; otherwise like [`import_stream`].
///
/// # Safety
///
/// The requirements of [`import_stream`] apply.
pub unsafe fn import_host_batches(stream: ArrowArrayStream) -> Result<Batches> {
    let mut source = Source::Host(stream);
    // SAFETY: the caller's promise.
    let schema = unsafe { source.schema() }?;
    batches(source, &schema, &Device::cpu())
}

unsafe fn open(stream: &mut ArrowDeviceArrayStream, device: &Device) -> Result<(Source, FFI_ArrowSchema)> {
    if stream.is_released() {
        return Err(Error::out_of_spec("stream", "released"));
    }
    served(stream.device_type, device.place().device_id, device)?;
    let mut source = Source::Device(stream.take());
    // SAFETY: the caller's promise.
    let schema = unsafe { source.schema() }?;
    Ok((source, schema))
}

impl ArrayReader {
    /// The field of all arrays: name, type, nullability and metadata.
    pub fn field(&self) -> &Field {
        &self.field
    }

    fn pull(&mut self) -> Result<Option<DeviceArray>> {
        let Some(source) = &mut self.source else { return Ok(None) };
        // SAFETY: the code that made the reader promised that the callbacks are what they should be.
        let array = unsafe { source.next() }?;
        if array.is_released() {
            return Ok(None);
        }
        if let Source::Device(stream) = source
            && stream.device_type != array.device_type
        {
            let problem = format!("{} in a stream of {}", array.device_type, stream.device_type);
            return Err(Error::out_of_spec("array.device_type", problem));
        }
        let place = served(array.device_type, array.device_id, &self.device)?;
        // SAFETY: as above, for the arrays.
        unsafe { import_typed(array, self.field.data_type(), place, &self.device) }.map(Some)
    }
}

impl Iterator for ArrayReader {
    type Item = Result<DeviceArray>;

    fn next(&mut self) -> Option<Result<DeviceArray>> {
        let pulled = self.pull();
        if !matches!(pulled, Ok(Some(_))) {
            self.source = None;
        }
        pulled.transpose()
    }
}

fn batches(source: Source, schema: &FFI_ArrowSchema, device: &Device) -> Result<Batches> {
    let schema: SchemaRef = Arc::new(schema_of(schema)?);
    let rows = Field::new("", DataType::Struct(schema.fields().clone()), false);
    let place = source.place(device)?;
    let rows = ArrayReader { field: rows, device: device.clone(), source: Some(source) };
    let of = schema.clone();
    Ok(Batches::new(schema, place, rows.map(move |rows| batch(of.clone(), &rows?))))
}

/// A device stream or a plain one.
#[derive(Debug)]
enum Source {
    Device(ArrowDeviceArrayStream),
    Host(ArrowArrayStream),
}

impl Source {
    /// # Safety
    ///
    /// The callbacks are what the interface says.
    unsafe fn schema(&mut self) -> Result<FFI_ArrowSchema> {
        let mut schema = ManuallyDrop::new(FFI_ArrowSchema::empty());
        let code = match self {
            _ if self.is_released() => return Err(Error::out_of_spec("stream", "released")),
            Source::Device(stream) => {
                let get_schema = stream.get_schema.ok_or_else(|| missing("get_schema"))?;
                // SAFETY: the caller's promise.
                unsafe { get_schema(stream, &raw mut *schema) }
            }
            Source::Host(stream) => {
                let get_schema = stream.get_schema.ok_or_else(|| missing("get_schema"))?;
                // SAFETY: the caller's promise.
                unsafe { get_schema(stream, &raw mut *schema) }
            }
        };
        // SAFETY: the caller's promise.
        unsafe { self.check(code) }?;
        let schema = ManuallyDrop::into_inner(schema);
        // SAFETY: the caller's promise.
        unsafe { check_schema(&schema) }?;
        Ok(schema)
    }

    /// The next array; a released one at the end. A producer that fails transfers no ownership, whatever it
    /// has written: as of the schema.
    ///
    /// # Safety
    ///
    /// The callbacks are what the interface says.
    unsafe fn next(&mut self) -> Result<ArrowDeviceArray> {
        let mut array = ManuallyDrop::new(ArrowDeviceArray::empty());
        let code = match self {
            Source::Device(stream) => {
                let get_next = stream.get_next.ok_or_else(|| missing("get_next"))?;
                // SAFETY: the caller's promise.
                unsafe { get_next(stream, &raw mut *array) }
            }
            Source::Host(stream) => {
                let get_next = stream.get_next.ok_or_else(|| missing("get_next"))?;
                let mut plain = ManuallyDrop::new(ArrowArray::empty());
                // SAFETY: the caller's promise.
                let code = unsafe { get_next(stream, &raw mut *plain) };
                array = ManuallyDrop::new(on_the_host(ManuallyDrop::into_inner(plain)));
                code
            }
        };
        // SAFETY: the caller's promise.
        unsafe { self.check(code) }?;
        Ok(ManuallyDrop::into_inner(array))
    }

    /// Turns a code other than zero into an error with the producer's message, or into the interruption that
    /// the producer, which may be this library, came upon.
    unsafe fn check(&mut self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        interrupt::check()?;
        let message: *const c_char = match self {
            // SAFETY: the caller's promise; there has just been an error.
            Source::Device(stream) => stream.get_last_error.map(|get| unsafe { get(stream) }),
            // SAFETY: as above.
            Source::Host(stream) => stream.get_last_error.map(|get| unsafe { get(stream) }),
        }
        .unwrap_or(std::ptr::null());
        let message = match message.is_null() {
            true => "no message".into(),
            // SAFETY: a terminated string, until the next call.
            false => unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned(),
        };
        Err(Error::Producer { code, message, metadata: Default::default() })
    }

    /// The memory that holds the stream's arrays.
    fn place(&self, device: &Device) -> Result<Place> {
        match self {
            Source::Device(stream) => served(stream.device_type, device.place().device_id, device),
            Source::Host(_) => Ok(Place::CPU),
        }
    }

    fn is_released(&self) -> bool {
        match self {
            Source::Device(stream) => stream.is_released(),
            Source::Host(stream) => stream.is_released(),
        }
    }
}

fn missing(callback: &str) -> Error {
    Error::out_of_spec(format!("stream.{callback}"), "null")
}
