//! Types, fields and schemas: the classes that Python sees, and how they are read from other libraries'
//! types.

mod parse;
mod print;

use std::hash::{DefaultHasher, Hash, Hasher};

use arrow_schema::{DataType as Inner, Field as InnerField, Metadata, Schema as InnerSchema};
use bowstring::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyDict, PyIterator, PyList, PyString, PyTuple, PyType};

use crate::capsule::{export_schema, import_field};
use crate::error::{nearest, no_column};
use crate::ipc;
use crate::items::entries;
pub use print::{EXTENSION, of_field as type_name};

/// The type of an array's values.
///
/// It is equal to any object that stands for the same type, such as another library's type or a string.
#[pyclass(frozen, weakref, module = "bowstring")]
#[derive(Clone)]
pub struct DataType(pub InnerField);

/// The name and type of a column, and whether it may have nulls.
#[pyclass(frozen, weakref, module = "bowstring")]
#[derive(Clone)]
pub struct Field(pub InnerField);

/// The fields of a batch, in order.
#[pyclass(frozen, weakref, module = "bowstring")]
#[derive(Clone)]
pub struct Schema(pub InnerSchema);

/// Returns the type of a field without its name, but with the metadata of an extension type.
pub fn type_of(field: &InnerField) -> DataType {
    let mut field = field.clone().with_name("").with_nullable(true);
    field.set_metadata(extension(field.metadata()));
    DataType(field)
}

/// Keeps the metadata that belongs to the type: that of an extension type.
fn extension(metadata: &Metadata) -> Metadata {
    let own = metadata.iter().filter(|(key, _)| key.starts_with("ARROW:extension:"));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Describes the names and types of columns, for people to read.
pub fn described(schema: &InnerSchema) -> String {
    let fields: Vec<String> = schema.fields().iter().map(|field| written(field)).collect();
    fields.join(", ")
}

/// Whether columns have the same names and types.
pub fn alike(one: &InnerSchema, other: &InnerSchema) -> bool {
    let written =
        |schema: &InnerSchema| schema.fields().iter().map(|field| written(field)).collect::<Vec<_>>();
    written(one) == written(other)
}

fn written(field: &InnerField) -> String {
    let not_null = if field.is_nullable() { "" } else { " not null" };
    format!("{}: {}{not_null}", field.name(), type_name(field))
}

/// Returns the position of a column by its number or name; negative numbers count from the end.
pub fn place_in(schema: &InnerSchema, which: &Bound<'_, PyAny>, argument: &str) -> PyResult<usize> {
    if let Ok(name) = which.extract::<String>() {
        return schema.index_of(&name).map_err(|_| {
            let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
            no_column(&name, &names)
        });
    }
    if which.is_instance_of::<PyBool>() {
        let problem = format!("{argument}: a column's name or number, not {}", which.get_type());
        return Err(PyTypeError::new_err(problem));
    }
    let number: i128 = which.extract().map_err(|_| {
        PyTypeError::new_err(format!("{argument}: a column's name or number, not {}", which.get_type()))
    })?;
    let columns = schema.fields().len() as i128;
    match if number < 0 { number + columns } else { number } {
        index if (0..columns).contains(&index) => Ok(index as usize),
        _ => Err(PyIndexError::new_err(format!("no column {number} of {columns}"))),
    }
}

fn named(name: &Bound<'_, PyString>, argument: &str) -> PyResult<InnerField> {
    let text = name.to_str()?;
    if let Some(data_type) = parse::parse(text) {
        return Ok(InnerField::new("", data_type, true));
    }
    let known: Vec<String> = parse::WORDS.iter().map(|(word, _)| (*word).to_owned()).collect();
    let lower = text.to_lowercase();
    let problem = format!("{argument}: no type is named {text:?}{}", nearest(&lower, &known));
    Err(PyValueError::new_err(problem))
}

/// Reads a type with its metadata: from any object with `__arrow_c_schema__`, or from a class or name that
/// Python or a library uses for the type.
pub fn field(obj: &Bound<'_, PyAny>, argument: &str) -> PyResult<InnerField> {
    if let Ok(name) = obj.cast::<PyString>() {
        return named(name, argument);
    }
    if obj.cast::<PyType>().is_err() && obj.hasattr("__arrow_c_schema__")? {
        return import_field(&obj.call_method0("__arrow_c_schema__")?);
    }
    let known = obj.py().import("bowstring._types")?.call_method1("known", (obj,))?;
    if let Ok(name) = known.cast::<PyString>() {
        return named(name, argument);
    }
    match known.is_none() {
        false => import_field(&known.call_method0("__arrow_c_schema__")?),
        true => Err(PyTypeError::new_err(format!(
            "{argument}: a type is needed, which {} is not: pass a name such as \"int32\", or any library's type",
            obj.get_type()
        ))),
    }
}

/// Reads a schema from any object with `__arrow_c_schema__`, or from a dictionary of types by name. With
/// `over`, a dictionary replaces the types of the columns that it names, and keeps the others.
pub fn schema(obj: &Bound<'_, PyAny>, argument: &str, over: Option<&InnerSchema>) -> PyResult<InnerSchema> {
    if obj.cast::<PyType>().is_err() && obj.hasattr("__arrow_c_schema__")? {
        let field = import_field(&obj.call_method0("__arrow_c_schema__")?)?;
        return match field.data_type() {
            Inner::Struct(fields) => {
                Ok(InnerSchema::new_with_metadata(fields.clone(), field.metadata().clone()))
            }
            _ => Err(PyTypeError::new_err(format!(
                "{argument}: a schema is needed, which {} is not",
                type_name(&field)
            ))),
        };
    }
    let Ok(types) = obj.cast::<PyDict>() else {
        let problem = format!(
            "{argument}: a schema is needed, which {} is not: pass a dictionary of types by name",
            obj.get_type()
        );
        return Err(PyTypeError::new_err(problem));
    };
    let mut fields: Vec<InnerField> =
        over.map_or(vec![], |schema| schema.fields().iter().map(|field| field.as_ref().clone()).collect());
    for entry in entries(types)? {
        let (name, data_type) = entry?;
        let new = field(&data_type, &format!("{argument}[{}]", name.repr()?))?;
        match over {
            Some(schema) => {
                let at = place_in(schema, &name, argument)?;
                fields[at] = new.with_name(schema.field(at).name()).with_nullable(true);
            }
            None => fields.push(new.with_name(name.extract::<String>()?)),
        }
    }
    Ok(InnerSchema::new(fields))
}

fn hashed(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn pickled<'py>(py: Python<'py>, class: &str, field: &InnerField) -> PyResult<Bound<'py, PyTuple>> {
    ipc::reduced(py, class, &InnerSchema::new(vec![field.clone()]).into(), None)
}

fn metadata<'py>(py: Python<'py>, of: &Metadata) -> PyResult<Option<Bound<'py, PyDict>>> {
    if of.is_empty() {
        return Ok(None);
    }
    let found = PyDict::new(py);
    for (key, value) in of {
        found.set_item(PyBytes::new(py, key.as_bytes()), PyBytes::new(py, value.as_bytes()))?;
    }
    Ok(Some(found))
}

#[pymethods]
impl DataType {
    /// Make a type from its name, or from any library's type.
    #[new]
    fn new(obj: &Bound<'_, PyAny>) -> PyResult<DataType> {
        field(obj, "obj").map(|field| type_of(&field))
    }

    /// The type of the values in a list, a dictionary or runs. Other types raise `AttributeError`.
    #[getter]
    fn value_type(&self) -> PyResult<DataType> {
        match self.0.data_type() {
            Inner::List(item)
            | Inner::LargeList(item)
            | Inner::ListView(item)
            | Inner::LargeListView(item)
            | Inner::FixedSizeList(item, _)
            | Inner::RunEndEncoded(_, item) => Ok(type_of(item)),
            Inner::Dictionary(_, values) => Ok(DataType(InnerField::new("", values.as_ref().clone(), true))),
            _ => Err(PyAttributeError::new_err(format!("{} has no value_type", type_name(&self.0)))),
        }
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, FFI_ArrowSchema::try_from(&self.0))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        field(other, "other").is_ok_and(|other| type_name(&other) == type_name(&self.0))
    }

    fn __hash__(&self) -> u64 {
        hashed(&type_name(&self.0))
    }

    fn __str__(&self) -> String {
        type_name(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("bowstring.DataType({:?})", type_name(&self.0))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pickled(py, "DataType", &self.0)
    }
}

#[pymethods]
impl Field {
    /// Make a field from a name and a type. The type may be anything that `cast` takes.
    #[new]
    #[pyo3(signature = (name, r#type, nullable = true))]
    fn new(name: String, r#type: &Bound<'_, PyAny>, nullable: bool) -> PyResult<Field> {
        Ok(Field(field(r#type, "type")?.with_name(name).with_nullable(nullable)))
    }

    /// The name of a batch's column.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The type of the column's values.
    #[getter]
    fn r#type(&self) -> DataType {
        type_of(&self.0)
    }

    /// Whether the column may have nulls.
    #[getter]
    fn nullable(&self) -> bool {
        self.0.is_nullable()
    }

    /// The field's metadata as a dictionary from `bytes` to `bytes`, or `None` if there is none.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        metadata(py, self.0.metadata())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, FFI_ArrowSchema::try_from(&self.0))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PyString>().is_err()
            && field(other, "other").is_ok_and(|other| written(&other) == written(&self.0))
    }

    fn __hash__(&self) -> u64 {
        hashed(&written(&self.0))
    }

    fn __str__(&self) -> String {
        written(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("<bowstring.Field {}>", written(&self.0))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pickled(py, "Field", &self.0)
    }
}

#[pymethods]
impl Schema {
    /// Make a schema from any object with `__arrow_c_schema__` that describes one, or from a dictionary of
    /// types by name.
    #[new]
    fn new(obj: &Bound<'_, PyAny>) -> PyResult<Schema> {
        schema(obj, "obj", None).map(Schema)
    }

    /// The names of the columns, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The types of the columns, in order.
    #[getter]
    fn types(&self) -> Vec<DataType> {
        self.0.fields().iter().map(|field| type_of(field)).collect()
    }

    /// The schema's metadata as a dictionary from `bytes` to `bytes`, or `None` if there is none.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        metadata(py, self.0.metadata())
    }

    /// Return a field by number or name, or raise `IndexError` or `KeyError`; -1 is the last field.
    fn field(&self, which: &Bound<'_, PyAny>) -> PyResult<Field> {
        Ok(Field(self.0.field(place_in(&self.0, which, "which")?).clone()))
    }

    fn __getitem__(&self, which: &Bound<'_, PyAny>) -> PyResult<Field> {
        self.field(which)
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.0.index_of(name).is_ok()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.0.fields().iter().map(|field| Field(field.as_ref().clone())))?.try_iter()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export_schema(py, FFI_ArrowSchema::try_from(&self.0))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        schema(other, "other", None).is_ok_and(|other| alike(&other, &self.0))
    }

    fn __hash__(&self) -> u64 {
        hashed(&described(&self.0))
    }

    fn __str__(&self) -> String {
        let lines: Vec<String> = self.0.fields().iter().map(|field| written(field)).collect();
        lines.join("\n")
    }

    fn __repr__(&self) -> String {
        format!("<bowstring.Schema of {}>", described(&self.0))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        ipc::reduced(py, "Schema", &self.0.clone().into(), None)
    }
}
