//! Whether what stands in an array's buffers is valid Arrow data: arrow-rs's own checks, part by part, and the null counts.
//!
//! The one idea: an array is looked at under arrow-rs's description of it, beside ours. Theirs counted its nulls anew, ours
//! says what the producer claimed. Everything here reads each buffer once, and allocates nothing that a few bytes could make
//! large.

use arrow_data::ArrayData;
use arrow_schema::DataType;

use crate::array::Array;
use crate::{Error, Result};

/// Whether `data`, which describes `array` and all below it, is valid in every byte. An error says in which part it is not.
pub(super) fn check(array: &Array, data: &ArrayData) -> Result<()> {
    // Of the whole tree: that buffers are as long as the types ask, which what follows relies on.
    data.validate().map_err(|error| Error::out_of_spec("array", error.to_string()))?;
    each_part(array, data, &|array, data| {
        no_nulls_where_forbidden(array, data)?;
        data.validate_values().map_err(|error| Error::out_of_spec("array", error.to_string()))
    })
}

/// Whether the children of an array have no nulls where their fields say so.
pub(super) fn no_nulls_where_forbidden(_: &Array, data: &ArrayData) -> Result<()> {
    match cannot_lack_items(data) {
        true => Ok(()),
        false => data.validate_nulls().map_err(|error| Error::out_of_spec("array", error.to_string())),
    }
}

/// Whether the null counts that the array claims to know, in all its parts, are those of `data`.
pub(super) fn true_counts(array: &Array, data: &ArrayData) -> Result<()> {
    each_part(array, data, &|array, data| match (array.known_null_count(), array.validity()) {
        (Some(known), Some(_)) if known != data.null_count() => {
            let problem = format!("{known}, but {} rows are null", data.null_count());
            Err(Error::out_of_spec("array.null_count", problem))
        }
        _ => Ok(()),
    })
}

/// Whether this is a fixed-size list of items that may not be null and have no bitmap to say that they are. arrow-rs would
/// find nothing wrong with those, and on the way make a bitmap of the list's, a bit for each item: of items without memory
/// there may be any number.
fn cannot_lack_items(data: &ArrayData) -> bool {
    matches!(data.data_type(), DataType::FixedSizeList(_, _) if data.child_data()[0].nulls().is_none())
}

/// How many bytes arrow-rs allocates to read an array through: it spreads the validity of fixed-size lists over items that may
/// not be null, where those have a bitmap.
pub(super) fn spread(array: &Array) -> usize {
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

/// Calls `look` with an array and all below it, and names the part that it refuses.
pub(super) fn each_part(
    array: &Array,
    data: &ArrayData,
    look: &impl Fn(&Array, &ArrayData) -> Result<()>,
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
