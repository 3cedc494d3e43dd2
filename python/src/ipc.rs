//! Arrow IPC streams of one batch, for pickles.

use std::io::{self, Write};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::{caught, detached};
use crate::pace::{copied, interrupted};

/// The number of bytes that are copied between two checks for Ctrl-C.
const STEP: usize = 64 << 20;

/// A writer that copies bytes to a slice of the right length, or only counts them if there is no slice.
struct Room<'a> {
    bytes: Option<&'a mut [u8]>,
    length: usize,
    stopped: Option<PyErr>,
}

impl Write for Room<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let step = bytes.len().min(STEP);
        if step == STEP
            && let Err(signal) = interrupted()
        {
            self.stopped = Some(signal);
            return Err(io::Error::other("interrupted"));
        }
        if let Some(room) = &mut self.bytes {
            let room = room.get_mut(self.length..self.length + step);
            room.ok_or(io::ErrorKind::WriteZero)?.copy_from_slice(&bytes[..step]);
        }
        self.length += step;
        Ok(step)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a schema, and the batch if there is one; returns the number of bytes.
fn write(schema: &SchemaRef, batch: Option<&RecordBatch>, bytes: Option<&mut [u8]>) -> PyResult<usize> {
    let mut room = Room { bytes, length: 0, stopped: None };
    let write = |room: &mut Room<'_>| -> Result<(), ArrowError> {
        let mut writer = StreamWriter::try_new(room, schema)?;
        batch.map_or(Ok(()), |batch| writer.write(batch))?;
        writer.finish()
    };
    let written = write(&mut room);
    match (room.stopped, written) {
        (Some(signal), _) => Err(signal),
        (None, Err(error)) => Err(PyNotImplementedError::new_err(format!("pickle: {error}"))),
        (None, Ok(())) => Ok(room.length),
    }
}

/// Reads the bytes of a pickle that [`reduced`] made; any other bytes raise `ValueError`.
pub fn read(bytes: &[u8]) -> PyResult<(SchemaRef, Option<RecordBatch>)> {
    let mut left = Buffer::from_vec(copied(bytes)?);
    let read = || -> Result<_, ArrowError> {
        let mut decoder = StreamDecoder::new();
        let batch = decoder.decode(&mut left)?;
        Ok(decoder.schema().map(|schema| (schema, batch)))
    };
    let not_ours = |why: String| PyValueError::new_err(format!("no pickle of bowstring's: {why}"));
    // The bytes are untrusted, and arrow-rs panics at some of them. Such a panic is not a bug here.
    match caught(read) {
        Ok(Ok(Some(read))) => Ok(read),
        Ok(Ok(None)) => Err(not_ours("it ends early".to_owned())),
        Ok(Err(error)) => Err(not_ours(error.to_string())),
        Err(panic) => Err(not_ours(panic)),
    }
}

/// Returns the `__reduce__` tuple for an object of a class: a schema, and a batch if there is one. They are
/// written twice, first to count the bytes, so that only one copy of the bytes exists.
pub fn reduced<'py>(
    py: Python<'py>,
    class: &str,
    schema: &SchemaRef,
    batch: Option<&RecordBatch>,
) -> PyResult<Bound<'py, PyTuple>> {
    let length = detached(py, || write(schema, batch, None))?;
    let bytes =
        PyBytes::new_with(py, length, |room| detached(py, || write(schema, batch, Some(room))).map(|_| ()))?;
    let unpickle = py.import("bowstring._bowstring")?.getattr("_unpickle")?;
    (unpickle, (class, bytes)).into_pyobject(py)
}
