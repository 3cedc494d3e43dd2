//! Removes the known null count of an array.

use bowstring::Array;

/// The same array with an unknown null count, so that counting has to read its bitmap.
pub fn uncounted(array: Array) -> Array {
    let mut parts = array.into_parts();
    parts.null_count = None;
    Array::try_new(parts).expect("the same parts")
}
