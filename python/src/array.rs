//! Arrays: a library array under the field it came with.

use std::collections::HashMap;
use std::sync::OnceLock;

use arrow_schema::Field;
use bowstring::compute::{self, CastOptions};
use bowstring::ffi::{ArrowArray, ArrowDeviceArray, FFI_ArrowSchema};
use bowstring::{Array as Inner, exchange};
use pyo3::prelude::*;

use crate::capsule::import_field;
use crate::device::default_stream;
use crate::error::{detached, ours};

/// Arrow data on a device: immutable, shared, never copied unless a method says so.
#[pyclass(frozen, weakref, module = "bowstring")]
#[derive(Clone)]
pub struct Array {
    pub array: Inner,
    pub field: Field,
    /// Booleans as bytes, made when the CUDA array interface is asked for: its user relies on this object for them.
    pub bytes: OnceLock<Inner>,
    /// By which method of another library's object it came, if by one.
    pub source: Option<&'static str>,
}

impl Array {
    /// An array under a field but for the type, which is its own.
    pub fn new(array: Inner, field: &Field) -> Array {
        let field = field.clone().with_data_type(array.data_type().clone());
        Array { array, field, bytes: OnceLock::new(), source: None }
    }

    /// An array without a name.
    pub fn nameless(array: Inner) -> Array {
        let field = Field::new("", array.data_type().clone(), true);
        Array { array, field, bytes: OnceLock::new(), source: None }
    }

    /// The array as one that came by a method of another library's object.
    pub fn came_by(self, method: &'static str) -> Array {
        Array { source: Some(method), ..self }
    }

    /// Rows of this array, any of which may be null: the name goes along, and what the metadata says of the values.
    pub fn result(&self, array: Inner) -> Array {
        let mut result = Array::new(array, &self.field);
        result.field = result.field.with_nullable(true);
        result
    }

    /// Other values, one for each row of this array: the name goes along, and nothing that was said of the old values.
    pub fn others(&self, array: Inner) -> Array {
        let mut result = self.result(array);
        result.field = result.field.with_metadata(HashMap::<String, String>::new());
        result
    }

    /// The values as what `to` says, its metadata included: an extension type is a type with metadata.
    pub fn casted(&self, array: Inner, to: &Field) -> Array {
        let mut result = self.result(array);
        result.field = result.field.with_metadata(to.metadata().clone());
        result
    }

    /// This array as another type, every value of which must fit.
    pub fn as_type(&self, field: &Field) -> PyResult<Array> {
        if field.data_type() == self.array.data_type() {
            return Ok(Array::new(self.array.clone(), field));
        }
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let stream = default_stream(self.array.place())?;
        let casted = ours(|| compute::cast(&self.array, field.data_type(), &options, &stream).wait())?;
        Ok(Array::new(casted, field))
    }

    /// This array as a consumer asks for it.
    pub fn requested(&self, py: Python<'_>, schema: Option<&Bound<'_, PyAny>>) -> PyResult<Array> {
        match schema.map(import_field).transpose()? {
            None => Ok(self.clone()),
            // The name is ours: only types are asked for. What makes an extension type of one is metadata, and asked for or
            // not, too: pyarrow fails where it gets one that it has not asked for.
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

    /// In host memory, a copy where it is not.
    pub fn on_the_host(&self) -> PyResult<Array> {
        if self.array.place().device_type.host_accessible() {
            return Ok(self.clone());
        }
        let stream = default_stream(self.array.place())?;
        Ok(Array::new(ours(|| stream.download(&self.array))?, &self.field))
    }

    /// Exported, in host memory.
    pub fn to_host_struct(&self) -> PyResult<(ArrowArray, FFI_ArrowSchema)> {
        let here = self.on_the_host()?;
        ours(|| exchange::export_host_array(&here.array, &here.field))
    }

    /// Exported, where it is.
    pub fn to_device_struct(&self) -> PyResult<(ArrowDeviceArray, FFI_ArrowSchema)> {
        ours(|| exchange::export_array(&self.array, &self.field))
    }
}
