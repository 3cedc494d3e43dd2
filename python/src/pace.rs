//! Checks for work whose amount depends on other libraries' data: is there memory for the next object, and
//! has the user pressed Ctrl-C?
//!
//! The one idea: Rust's collections and pyo3's objects cannot report that memory is exhausted; they end the
//! process. So this code now and then allocates a little more than the next step needs, and frees it at once.

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// The bytes that must be available beside those asked for.
const AHEAD: usize = 16 << 20;
/// The bytes after which memory and signals are checked again. A value of a few rows takes less.
const STEP: usize = 2 << 20;
/// The bytes that an object takes beside its contents: those of a small dictionary, the largest object.
const OBJECT: usize = 256;

/// Counts the memory that a series of values takes.
pub struct Pace {
    left: usize,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { left: STEP }
    }

    /// Call this before making an object with so many bytes of contents. It fails if there is no memory for
    /// the object, or if the user has pressed Ctrl-C.
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

/// Fails if the system cannot allocate so many bytes now. The memory is not touched.
pub fn available(bytes: usize) -> PyResult<()> {
    if bytes < STEP {
        return Ok(());
    }
    let mut probe: Vec<u8> = Vec::new();
    let available = probe.try_reserve_exact(bytes);
    // Keep the compiler from removing an allocation that is not used.
    std::hint::black_box(probe.as_mut_ptr());
    available.map_err(|_| no_memory(format!("no memory for {bytes} bytes")))
}

/// Makes the exception for exhausted memory.
pub fn no_memory(problem: String) -> PyErr {
    PyMemoryError::new_err(problem)
}

/// Adds an item; an error if there is no memory for it.
pub fn push<T>(items: &mut Vec<T>, item: T) -> PyResult<()> {
    if items.len() == items.capacity() {
        let more = items.try_reserve(1);
        more.map_err(|_| no_memory(format!("no memory for more than {} values", items.len())))?;
    }
    items.push(item);
    Ok(())
}

/// Copies the bytes; an error if there is no memory for them.
pub fn copied(bytes: &[u8]) -> PyResult<Vec<u8>> {
    let mut copy = vec![];
    let room = copy.try_reserve_exact(bytes.len());
    room.map_err(|_| no_memory(format!("no memory for {} bytes", bytes.len())))?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Fails if the user has pressed Ctrl-C, for work that does not hold the interpreter.
pub fn interrupted() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}
