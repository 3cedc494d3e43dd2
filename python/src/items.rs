//! Careful access to Python containers: reading an item may run foreign Python code, which may change the
//! container meanwhile.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Whether an object's class has a method of this name. Python looks up its own protocols on the class, too:
/// an object that answers to every name has none of them.
pub fn has_method(obj: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    obj.get_type().hasattr(name)
}

/// Iterates over an object. A list that changes meanwhile raises `RuntimeError`, as Python's other containers
/// do.
pub fn items<'py>(
    obj: &Bound<'py, PyAny>,
) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyAny>>> + use<'py>> {
    let list = obj.cast::<PyList>().ok().cloned();
    let length = list.as_ref().map(|list| list.len());
    let mut iterator = obj.try_iter()?;
    Ok(std::iter::from_fn(move || {
        if list.as_ref().map(|list| list.len()) != length {
            return Some(Err(PyRuntimeError::new_err("list changed size during iteration")));
        }
        iterator.next()
    }))
}

/// A key of a dictionary with its value.
pub type Entry<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Iterates over a dictionary, which raises `RuntimeError` if it changes meanwhile; pyo3's own iterator
/// panics.
pub fn entries<'py>(
    dict: &Bound<'py, PyDict>,
) -> PyResult<impl Iterator<Item = PyResult<Entry<'py>>> + use<'py>> {
    Ok(dict.call_method0("items")?.try_iter()?.map(|entry| entry?.extract()))
}
