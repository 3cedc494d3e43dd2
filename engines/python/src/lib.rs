//! The native part of Python's `bowstring_sql`.

#![deny(unsafe_code)]

mod answer;
mod capsule;
mod run;
mod session;
mod tables;

use pyo3::prelude::*;

#[pymodule]
fn _bowstring_sql(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<session::Session>()?;
    module.add_class::<answer::Answer>()
}
