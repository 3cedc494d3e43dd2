//! Recipes: the calls that made an expression, for its pickle. The expression itself cannot be written and
//! read back.

use std::sync::Arc;

use bowstring::expr::{self, Expr as Inner};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyTuple};

use crate::foreign;
use crate::plain;
use crate::values;

/// The name of a function of the package, or of a method of the first argument, with its arguments.
#[derive(Clone)]
pub struct Recipe(Arc<(&'static str, Vec<Py<PyAny>>)>);

impl Recipe {
    pub fn new(name: &'static str, given: impl IntoIterator<Item = Py<PyAny>>) -> Recipe {
        Recipe(Arc::new((name, given.into_iter().collect())))
    }

    /// Returns what an `alias` named, or `None` if this recipe is another call.
    pub fn renamed(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let (name, given) = &*self.0;
        given.first().filter(|_| *name == "alias").map(|named| named.clone_ref(py))
    }

    /// Returns the `__reduce__` tuple for an object of this class.
    pub fn reduced<'py>(&self, py: Python<'py>, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
        let (name, given) = &*self.0;
        let package = py.import("bowstring")?;
        let made_by = match *name {
            "col" | "nth" | "lit" | "if_else" | "count_all" => package.getattr(*name)?,
            "cast_strict" => {
                let strict = PyDict::new(py);
                strict.set_item("strict", true)?;
                let cast = package.getattr("Expr")?.getattr("cast")?;
                py.import("functools")?.getattr("partial")?.call((cast,), Some(&strict))?
            }
            // The first step of an aggregation is a method of `Expr`.
            "alias" | "filter" => class.getattr(*name)?,
            method if class.is(package.getattr("Aggregation")?) => {
                package.getattr("Expr")?.getattr(method)?
            }
            method => class.getattr(method)?,
        };
        let given = PyTuple::new(py, given.iter().map(|one| one.bind(py)))?;
        PyTuple::new(py, [made_by, given.into_any()])
    }
}

/// Reads a value in an expression, and returns it as a recipe keeps it: a Python value itself, anything else
/// as an array, which can be pickled.
pub fn value(value: &Bound<'_, PyAny>) -> PyResult<(Inner, Py<PyAny>)> {
    let literal = values::literal(value)?;
    let kept = match plain::scalar(value)? {
        // The array may change.
        Some(_) if value.is_instance_of::<PyByteArray>() => {
            PyBytes::new(value.py(), &value.extract::<Vec<u8>>()?).into_any().unbind()
        }
        Some(_) => value.clone().unbind(),
        None => foreign::as_array(value, "value")?.into_pyobject(value.py())?.into_any().unbind(),
    };
    Ok((expr::lit(literal), kept))
}
