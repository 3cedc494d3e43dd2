//! Validates the contents of an array's buffers with arrow-rs's own checks, part by part, and checks the null
//! counts.
//!
//! The one idea: an array is compared with arrow-rs's description of it. arrow-rs has recounted the nulls;
//! our array has the producer's claim. Everything here reads each buffer once, and allocates nothing that a
//! few bytes of input could make large.

use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::array::DeviceArray;
use crate::{Error, Result};

/// Checks that `data`, which describes `array` and its descendants, is valid in every byte. The error names
/// the malformed part.
pub(super) fn check(array: &DeviceArray, data: &ArrayData) -> Result<()> {
    // Checks for the whole tree that buffers have the length that their types require; the later checks rely
    // on it.
    data.validate().map_err(|error| Error::out_of_spec("array", error.to_string()))?;
    each_part(array, data, &|array, data| {
        no_nulls_where_forbidden(array, data)?;
        data.validate_values().map_err(|error| Error::out_of_spec("array", error.to_string()))
    })
}

/// Checks that the children of an array have no nulls under fields that are not nullable.
pub(super) fn no_nulls_where_forbidden(_: &DeviceArray, data: &ArrayData) -> Result<()> {
    match cannot_lack_items(data) {
        true => Ok(()),
        false => data.validate_nulls().map_err(|error| Error::out_of_spec("array", error.to_string())),
    }
}

/// Checks that the null counts that the array and its descendants claim to know are those of `data`.
pub(super) fn true_counts(array: &DeviceArray, data: &ArrayData) -> Result<()> {
    each_part(array, data, &|array, data| match (array.known_null_count(), array.validity()) {
        (Some(known), Some(_)) if known != data.null_count() => {
            let problem = format!("{known}, but {} rows are null", data.null_count());
            Err(Error::out_of_spec("array.null_count", problem))
        }
        _ => Ok(()),
    })
}

/// Whether this is a fixed-size list of non-nullable items without a bitmap. arrow-rs would find nothing
/// wrong, but on the way spread the list's bitmap to one bit per item. Items that take no memory can be
/// arbitrarily many.
fn cannot_lack_items(data: &ArrayData) -> bool {
    matches!(data.data_type(), DataType::FixedSizeList(_, _) if data.child_data()[0].nulls().is_none())
}

/// The number of bytes that arrow-rs allocates to validate an array: it spreads the validity of fixed-size
/// lists over non-nullable items that have a bitmap.
pub(super) fn spread(array: &DeviceArray) -> usize {
    let own = match array.data_type() {
        DataType::FixedSizeList(items, size) if !items.is_nullable() && array.validity().is_some() => {
            let has_bitmap = array.children().first().is_some_and(|items| items.validity().is_some());
            if has_bitmap { array.len().saturating_mul(*size as usize) / 8 } else { 0 }
        }
        _ => 0,
    };
    let parts = array.children().iter().chain(array.dictionary());
    parts.fold(own, |sum, part| sum.saturating_add(spread(part)))
}

/// Calls `look` with an array and each of its descendants. Prefixes an error with the path of the part.
pub(super) fn each_part(
    array: &DeviceArray,
    data: &ArrayData,
    look: &impl Fn(&DeviceArray, &ArrayData) -> Result<()>,
) -> Result<()> {
    look(array, data)?;
    let (children, dictionary) = data.child_data().split_at(array.children().len());
    for (i, (child, data)) in array.children().iter().zip(children).enumerate() {
        each_part(child, data, look).map_err(|error| error.inside(&format!("children[{i}]")))?;
    }
    let mut dictionary = array.dictionary().into_iter().zip(dictionary);
    dictionary
        .try_for_each(|(values, data)| each_part(values, data, look))
        .map_err(|error| error.inside("dictionary"))
}
