//! The text that arrow's display prints for values without a textual form, such as a day outside of chrono's
//! calendar. Inside lists such values are not an error.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;

use super::temporal::instants;

/// The text printed for a value that has no textual form.
pub(crate) struct Misfits {
    /// The text before and after the number.
    pub said: [String; 2],
    /// Values in this range have a textual form.
    pub unsaid: [i64; 2],
}

/// The text for such values of a type, derived from the text that arrow prints for the greatest number.
/// `None` if that number has a textual form, because then all values of the type have one.
pub(crate) fn misfits(of: &DataType) -> Option<Misfits> {
    use DataType::*;
    let (numbers, greatest): (ArrayRef, i64) = match of {
        Date32 | Time32(_) => (Arc::new(Int32Array::from(vec![i32::MAX])), i32::MAX.into()),
        Date64 | Time64(_) | Timestamp(..) => (Arc::new(Int64Array::from(vec![i64::MAX])), i64::MAX),
        _ => return None,
    };
    let (values, options) = (arrow_cast::cast(&numbers, of).ok()?, FormatOptions::default());
    let shown = ArrayFormatter::try_new(&values, &options).ok()?.value(0).to_string();
    let (before, behind) = shown.split_once(&greatest.to_string())?;
    // For these timestamps arrow panics if the instant has a date but the zone's local time has none.
    let unsaid = match of {
        Timestamp(unit, Some(_)) => instants(*unit),
        _ => [1, 0],
    };
    Some(Misfits { said: [before.into(), behind.into()], unsaid })
}
