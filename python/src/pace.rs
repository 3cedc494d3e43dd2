//! Work on as many values as somebody else's data has: memory is known to be there before objects are made of it, and Ctrl-C ends
//! the work.
//!
//! The one idea: neither Rust's collections nor pyo3's objects can say that there is no memory, they end the process. So a little more
//! than what comes next takes is asked for first, now and then, and given back at once.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// How much memory there must be beside what is asked for.
const AHEAD: usize = 16 << 20;
/// After so many bytes it is asked again whether there is more, and whether the user wants to stop. A value of a few rows is below it.
const STEP: usize = 2 << 20;
/// What an object takes beside its contents: a small dictionary, which is the largest.
const OBJECT: usize = 256;

/// Counts what values take, one after another.
pub struct Pace {
    left: usize,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { left: STEP }
    }

    /// Before an object with so many bytes of contents is made: an error where memory for it is not there, or the user has pressed
    /// Ctrl-C.
    pub fn object(&mut self, py: Python<'_>, contents: usize) -> PyResult<()> {
        match self.left.checked_sub(contents.saturating_add(OBJECT)) {
            Some(left) => self.left = left,
            None => self.renew(py, contents)?,
        }
        Ok(())
    }

    #[cold]
    fn renew(&mut self, py: Python<'_>, contents: usize) -> PyResult<()> {
        py.check_signals()?;
        available(contents.saturating_add(AHEAD))?;
        self.left = STEP;
        Ok(())
    }
}

/// An error where the system does not have so many bytes now. They are not touched.
pub fn available(bytes: usize) -> PyResult<()> {
    if bytes < STEP {
        return Ok(());
    }
    let mut probe: Vec<u8> = Vec::new();
    let available = probe.try_reserve_exact(bytes);
    // The compiler may leave out an allocation that is not used.
    std::hint::black_box(probe.as_mut_ptr());
    available.map_err(|_| no_memory(format!("no memory for {bytes} bytes")))
}

/// The exception for memory that is not there.
pub fn no_memory(problem: String) -> PyErr {
    PyMemoryError::new_err(problem)
}

/// Adds an item where there is memory for it.
pub fn push<T>(items: &mut Vec<T>, item: T) -> PyResult<()> {
    if items.len() == items.capacity() {
        let more = items.try_reserve(1);
        more.map_err(|_| no_memory(format!("no memory for more than {} values", items.len())))?;
    }
    items.push(item);
    Ok(())
}

/// The bytes, copied where there is memory for it.
pub fn copied(bytes: &[u8]) -> PyResult<Vec<u8>> {
    let mut copy = vec![];
    let room = copy.try_reserve_exact(bytes.len());
    room.map_err(|_| no_memory(format!("no memory for {} bytes", bytes.len())))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Whether the user has pressed Ctrl-C, for work that goes on without the interpreter.
pub fn interrupted() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}
