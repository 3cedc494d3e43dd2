//! What is in objects of Python's, while nobody can say what reading them does: a stranger's code runs for each item, and may change
//! what is being read.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Whether an object has a method of this name, looked up on its class as Python looks up its own protocols: an object that answers to
/// every name has none.
pub fn has_method(obj: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    obj.get_type().hasattr(name)
}

/// The items of an iterable. One that changes meanwhile is a `RuntimeError`, which Python has for its own containers but lists.
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

/// A key of a dictionary and what it has there.
pub type Entry<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The entries of a dictionary. pyo3's own iterator panics where one changes meanwhile; this is a `RuntimeError`.
pub fn entries<'py>(
    dict: &Bound<'py, PyDict>,
) -> PyResult<impl Iterator<Item = PyResult<Entry<'py>>> + use<'py>> {
    Ok(dict.call_method0("items")?.try_iter()?.map(|entry| entry?.extract()))
}
