//! Rows as text for people, who see the first few characters of each.
//!
//! The one idea: a few bytes of Arrow may stand for billions of items, so a row is converted only as far as
//! somebody reads it.

use std::fmt::{self, Write};

use arrow_array::Array;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::Field;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

use crate::error::ours;
use crate::to_python::{SHOWN, beginning};

/// Converts the beginning of each row to text: the `repr` of Python's value, or Arrow's text if Python has no
/// such value.
pub fn texts(py: Python<'_>, array: &dyn Array, field: &Field) -> PyResult<Vec<String>> {
    let row = |row| {
        let one = array.slice(row, 1);
        match beginning(py, &one, field) {
            Ok(found) => found.get_item(0)?.repr().map(|text| text.to_string()),
            // Exhausted memory and Ctrl-C are errors: writing the value in another way would not help.
            Err(error)
                if !(error.is_instance_of::<PyValueError>(py)
                    || error.is_instance_of::<PyOverflowError>(py)) =>
            {
                Err(error)
            }
            Err(_) => ours(|| arrows(&one)),
        }
    };
    (0..array.len()).map(row).collect()
}

/// Returns the beginning of Arrow's text of the first row.
fn arrows(array: &dyn Array) -> PyResult<String> {
    let options = FormatOptions::default().with_null("None");
    let all =
        ArrayFormatter::try_new(array, &options).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut text = Beginning(String::new());
    match write!(text, "{}", all.value(0)) {
        Ok(()) => Ok(text.0),
        Err(fmt::Error) => Ok(text.0 + "…"),
    }
}

/// The first bytes of a text. Writing beyond them fails, which ends whatever writes the text.
struct Beginning(String);

impl Write for Beginning {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = text.floor_char_boundary(SHOWN - self.0.len());
        self.0.push_str(&text[..kept]);
        if kept == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
