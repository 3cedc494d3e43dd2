//! The errors of casts, in the words of arrow-rs: the casts that it refuses are cast by it once more, one row
//! at most.

use std::sync::Arc;

use arrow_array::{ArrayRef, StringArray};
use arrow_cast::CastOptions;
use arrow_cast::display::FormatOptions;
use arrow_schema::{ArrowError, DataType, Field};

use super::groups::with_parts;
use crate::array::DeviceArray;
use crate::ffi::DeviceType;
use crate::{Error, Result, Unsupported, exchange};

/// The error for a cast that the device does not support.
pub(crate) fn unsupported(values: &DeviceArray, to: &DataType, device: DeviceType) -> Error {
    let what = Unsupported::Cast { from: values.data_type().clone(), to: to.clone() };
    Error::Unsupported { operation: "cast", what, device }
}

/// The error of arrow-cast if it refuses the cast regardless of the values.
pub(crate) fn refusal(from: &DataType, to: &DataType, options: &CastOptions<'_>) -> Option<Error> {
    let none = arrow_array::new_empty_array(&with_arrow_fields(from));
    cast_by_arrow(&none, &with_arrow_fields(to), options).err()
}

/// The type whose runs have the fields that arrow-cast gives them, at every depth but inside of unions. It
/// refuses others if it makes lists or structs of runs.
pub(crate) fn with_arrow_fields(of: &DataType) -> DataType {
    match of {
        DataType::RunEndEncoded(ends, values) => {
            let ends = Field::new(Field::REE_RUN_ENDS_FIELD_DEFAULT_NAME, ends.data_type().clone(), false);
            let values = with_arrow_fields(values.data_type());
            let values = Field::new(Field::REE_VALUES_FIELD_DEFAULT_NAME, values, true);
            DataType::RunEndEncoded(Arc::new(ends), Arc::new(values))
        }
        DataType::Dictionary(key, values) => {
            DataType::Dictionary(key.clone(), Box::new(with_arrow_fields(values)))
        }
        of => with_parts(of, &with_arrow_fields),
    }
}

/// Calls arrow-cast; a panic becomes an error.
pub(crate) fn cast_by_arrow(
    values: &dyn arrow_array::Array,
    to: &DataType,
    options: &CastOptions<'_>,
) -> Result<ArrayRef> {
    exchange::guarded("cast", || {
        let refused = |error: ArrowError| Error::Arrow { operation: "cast", problem: error.to_string() };
        arrow_cast::cast_with_options(values, to, options).map_err(refused)
    })
}

/// Reproduces arrow-cast's error for a text on a device that cannot be parsed. `text` is the beginning of
/// that text.
pub(crate) fn unread(row: usize, text: &[u8], len: usize, from: DataType, to: DataType) -> Error {
    let whole = std::str::from_utf8(text).ok().filter(|_| text.len() == len);
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let said = whole.map(|text| cast_by_arrow(&StringArray::from(vec![text]), &to, &strict));
    match said {
        Some(Err(Error::Arrow { problem, .. })) => Error::Cast { row, from, to, problem },
        _ => Error::Cast { row, from, to, problem: "the text says no value of the type".to_owned() },
    }
}

/// Reproduces arrow-cast's error for a row that cannot be parsed or formatted.
pub(crate) fn no_value(one: &DeviceArray, row: usize, to: &DataType, options: &CastOptions<'_>) -> Error {
    let theirs = exchange::to_arrow(one);
    let strict = CastOptions { safe: false, ..options.clone() };
    match theirs.and_then(|one| cast_by_arrow(&one, to, &strict)) {
        Err(Error::Arrow { problem, .. }) => {
            Error::Cast { row, from: one.data_type().clone(), to: to.clone(), problem }
        }
        Err(other) => other,
        Ok(_) => {
            let problem = "the value does not fit".to_owned();
            Error::Cast { row, from: one.data_type().clone(), to: to.clone(), problem }
        }
    }
}

/// The error for a row whose value does not fit. Includes the value if it can be displayed.
pub(crate) fn does_not_fit(values: &DeviceArray, row: usize, to: &DataType) -> Error {
    let shown = values.slice(row, 1).and_then(|one| exchange::to_arrow(&one)).and_then(|one| {
        let options = FormatOptions::default();
        exchange::guarded("cast", || {
            let shown = arrow_cast::display::ArrayFormatter::try_new(&one, &options);
            Ok(shown.ok().and_then(|shown| shown.value(0).try_to_string().ok()))
        })
    });
    let problem = match shown.ok().flatten() {
        Some(value) => format!("{value} does not fit"),
        None => "the value does not fit".to_owned(),
    };
    Error::Cast { row, from: values.data_type().clone(), to: to.clone(), problem }
}
