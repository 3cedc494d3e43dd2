//! Python's objects as tables: paths of files, and whatever speaks the Arrow PyCapsule interface.

use std::path::PathBuf;
use std::sync::Arc;

use bowstring::array::Place;
use bowstring_datafusion::{DeviceTable, host_table};
use bowstring_sql::files::register_path;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::prelude::SessionContext;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::capsule::{take_device_stream, take_stream};
use crate::run::{detached, exception, wait};

/// Registers each value of a dictionary under its key.
pub fn register_all(context: &SessionContext, tables: &Bound<'_, PyDict>) -> PyResult<()> {
    // A table may run code that changes the dictionary, at which pyo3's iterator panics.
    let tables = tables.copy()?;
    tables.iter().try_for_each(|(name, table)| register(context, &name.extract::<String>()?, &table))
}

/// Registers an object under a name, which is taken literally. A table of that name gives way.
pub fn register(context: &SessionContext, name: &str, table: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, reference) = (table.py(), TableReference::bare(name));
    // Text is a path, and so is what Python takes for one.
    if let Ok(path) = table.extract::<PathBuf>() {
        let before = context.deregister_table(reference.clone()).map_err(exception)?;
        let made = wait(py, register_path(context, name, &path));
        if let (Err(_), Some(before)) = (&made, before) {
            context.register_table(reference, before).map_err(exception)?;
        }
        return made;
    }
    let of_host = |batches| {
        let state = context.state();
        let (rows, partitions) = (state.config().batch_size(), state.config().target_partitions());
        detached(py, || host_table(batches, rows, partitions)).map(Arc::new)
    };
    let made: Arc<dyn TableProvider> =
        if let Some(stream) = table.getattr_opt(intern!(py, "__arrow_c_device_stream__"))? {
            match take_device_stream(&stream.call0()?)? {
                (device, batches) if device.place() == Place::CPU => of_host(batches)?,
                (device, batches) => Arc::new(detached(py, || DeviceTable::try_new(&device, batches))?),
            }
        } else if let Some(stream) = table.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
            of_host(take_stream(&stream.call0()?)?)?
        } else {
            let kind = table.get_type();
            return Err(PyTypeError::new_err(format!(
                "table {name}: a path or an object with __arrow_c_stream__ is needed, not {kind}"
            )));
        };
    context.deregister_table(reference.clone()).map_err(exception)?;
    context.register_table(reference, made).map(|_| ()).map_err(exception)
}
