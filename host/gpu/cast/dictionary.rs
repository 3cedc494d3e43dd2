//! Dictionaries: the values are cast once, whether rows have them or not, and then taken by the keys; or the keys stay and
//! get another width.

use arrow_cast::CastOptions;
use arrow_schema::DataType;

use super::inside::Cast;
use crate::array::{Array, Parts};
use crate::gpu::parts::part_of;
use crate::gpu::{Outside, take};
use crate::{Error, Result};

/// A dictionary array as a plain one, or as one with other keys or values. Synchronises once where rows are ranges (see
/// `take`), and as often as the cast of the values does.
pub(super) fn cast(cast: Cast, values: &Array, to: &DataType) -> Result<Array> {
    let dictionary =
        values.dictionary().ok_or_else(|| Error::invalid("cast", "a dictionary without values"))?;
    match (dictionary.data_type(), to) {
        (DataType::Dictionary(..), DataType::Dictionary(..)) => {
            // Two levels of keys are one: those of the inner level, taken.
            let flat = take_one(cast, dictionary, values)?;
            cast.cast(&flat, to)
        }
        (_, DataType::Dictionary(key, of)) => {
            // A key that does not fit is an error whatever is asked for: it would be a null that was none.
            let strict = CastOptions { safe: false, ..cast.options.clone() };
            let keys = Cast { options: &strict, ..cast }.cast(&keys(values)?, key)?;
            let dictionary = cast.cast(dictionary, of)?;
            let pass = cast.begin(&[&keys, &dictionary])?;
            let (keys, dictionary) = (part_of(&pass, keys)?.into_parts(), part_of(&pass, dictionary)?);
            pass.finish()?;
            Array::try_new(Parts { data_type: to.clone(), dictionary: Some(dictionary), ..keys })
        }
        _ => take_one(cast, &cast.cast(dictionary, to)?, values),
    }
}

/// The rows of `from` by the keys of `values`.
fn take_one(cast: Cast, from: &Array, values: &Array) -> Result<Array> {
    let taken = take(&[from], from.len(), &keys(values)?, Outside::BadKey, cast.stream)?;
    let taken = taken.wait()?;
    taken.into_iter().next().ok_or_else(|| Error::invalid("cast", "no array"))
}

/// The keys as an array of numbers.
fn keys(values: &Array) -> Result<Array> {
    let DataType::Dictionary(key, _) = values.data_type() else {
        return Err(Error::invalid("cast", "an array without keys"));
    };
    let parts = values.clone().into_parts();
    Array::try_new(Parts { data_type: (**key).clone(), dictionary: None, ..parts })
}
