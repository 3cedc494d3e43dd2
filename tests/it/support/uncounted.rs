//! Removes the known null count of an array.

use bowstring::DeviceArray;

/// The same array with an unknown null count, so that counting has to read its bitmap.
pub fn uncounted(array: DeviceArray) -> DeviceArray {
    let mut parts = array.into_parts();
    parts.null_count = None;
    DeviceArray::try_new(parts).expect("the same parts")
}
