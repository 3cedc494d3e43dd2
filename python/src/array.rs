//! The class `Array`: a library array with the field that it was imported with.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow_schema::Field;
use bowstring::array::Place;
use bowstring::compute::{self, CastOptions};
use bowstring::exchange::Lent;
use bowstring::ffi::{ArrowArray, ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{DeviceArray as Inner, exchange};
use pyo3::prelude::*;

use crate::capsule::{as_plain, import_field};
use crate::device::default_stream;
use crate::error::{detached, ours};

/// An Arrow array on a device.
///
/// An array is immutable and shares its memory; nothing copies it unless a method says so.
#[pyclass(frozen, weakref, module = "bowstring")]
#[derive(Clone)]
pub struct Array {
    pub array: Inner,
    pub field: Field,
    /// The array that the CUDA array interface has named, with booleans as bytes: its consumer relies on this
    /// object to keep it.
    pub lent: OnceLock<Arc<Lent>>,
    /// The method of another library's object that the array was imported by, or `None` if it was made here.
    pub source: Option<&'static str>,
}

impl Array {
    /// Makes an array with a field, whose type is replaced by the array's own.
    pub fn new(array: Inner, field: &Field) -> Array {
        let field = field.clone().with_data_type(array.data_type().clone());
        Array { array, field, lent: OnceLock::new(), source: None }
    }

    /// Makes an array whose field is nullable and has an empty name.
    pub fn nameless(array: Inner) -> Array {
        let field = Field::new("", array.data_type().clone(), true);
        Array { array, field, lent: OnceLock::new(), source: None }
    }

    /// Records the method of another library's object that the array was imported by.
    pub fn came_by(self, method: &'static str) -> Array {
        Array { source: Some(method), ..self }
    }

    /// Wraps rows of this array, any of which may be null. The name and the metadata are kept.
    pub fn result(&self, array: Inner) -> Array {
        let mut result = Array::new(array, &self.field);
        result.field = result.field.with_nullable(true);
        result
    }

    /// Wraps new values, one for each row of this array. The name is kept; the metadata described the old
    /// values and is dropped.
    pub fn others(&self, array: Inner) -> Array {
        let mut result = self.result(array);
        result.field = result.field.with_metadata(HashMap::<String, String>::new());
        result
    }

    /// Wraps the values cast to the type of `to`, with its metadata: an extension type is a type with
    /// metadata.
    pub fn casted(&self, array: Inner, to: &Field) -> Array {
        let mut result = self.result(array);
        result.field = result.field.with_metadata(to.metadata().clone());
        result
    }

    /// Casts this array to the type of `field`; fails if a value does not fit.
    pub fn as_type(&self, field: &Field) -> PyResult<Array> {
        if field.data_type() == self.array.data_type() {
            return Ok(Array::new(self.array.clone(), field));
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let stream = default_stream(self.array.place())?;
        let casted = ours(|| compute::cast(&self.array, field.data_type(), &options, &stream).wait())?;
        Ok(Array::new(casted, field))
    }

    /// Casts this array to the type of the schema capsule that a consumer passed, if any.
    pub fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        match schema.map(import_field).transpose()? {
            None => Ok(self.clone()),
            // A consumer asks for a type only; the name stays ours. Metadata marks an extension type, so it
            // is kept only if asked for: pyarrow fails on an extension type that it has not asked for.
            Some(asked) => {
                let is_extension = |key: &String| key.starts_with("ARROW:extension:");
                let mut metadata = self.field.metadata().clone();
                metadata.retain(|key, _| !is_extension(key));
                let extension = asked.metadata().iter().filter(|(key, _)| is_extension(key));
                metadata.extend(extension.map(|(key, value)| (key.clone(), value.clone())));
                let field = self.field.clone().with_data_type(asked.data_type().clone());
                detached(py, || self.as_type(&field.with_metadata(metadata)))
            }
        }
    }

    /// Returns the array in plain host memory, copied if the host cannot read it where it is.
    pub fn on_the_host(&self) -> PyResult<Array> {
        let place = self.array.place();
        if place == Place::CPU {
            return Ok(self.clone());
        }
        let here = match place.device_type.host_accessible() {
            true => ours(|| as_plain(&self.array, &self.field))?,
            false => {
                let stream = default_stream(place)?;
                ours(|| stream.download(&self.array))?
            }
        };
        Ok(Array::new(here, &self.field))
    }

    /// Exports the array in host memory, copied there if needed.
    pub fn to_host_struct(&self) -> PyResult<(ArrowArray, FFI_ArrowSchema)> {
        let here = self.on_the_host()?;
        ours(|| exchange::export_host_array(&here.array, &here.field))
    }

    /// Exports the array in the memory that holds it.
    pub fn to_device_struct(&self) -> PyResult<(ArrowDeviceArray, FFI_ArrowSchema)> {
        ours(|| exchange::export_array(&self.array, &self.field))
    }
}
