//! Dictionaries: the values are cast once, whether rows have them or not, and then taken by the keys; or the keys stay and
//! get another width. Values become a dictionary by the first row that is like each, see
//! [`alike`](crate::gpu::structure::alike).

use arrow_cast::CastOptions;
use arrow_schema::DataType;

use super::inside::Cast;
use crate::array::{Array, Parts};
use crate::gpu::bitmap::nulls_of;
use crate::gpu::indices::index_width;
use crate::gpu::parts::{none, part_of};
use crate::gpu::structure::alike::{firsts, own_keys};
use crate::gpu::structure::runs::rows_of_mask;
use crate::gpu::{Outside, take_one};
use crate::{Error, Result};

/// A dictionary array as a plain one, or as one with other keys or values. Synchronises once where rows are ranges (see
/// `take`), and as often as the cast of the values does.
pub(super) fn cast(cast: Cast, values: &Array, to: &DataType) -> Result<Array> {
    let dictionary =
        values.dictionary().ok_or_else(|| Error::invalid("cast", "a dictionary without values"))?;
    match (dictionary.data_type(), to) {
        (DataType::Dictionary(..), DataType::Dictionary(..)) => {
            // Two levels of keys are one: those of the inner level, taken.
            let flat = take_keys(cast, dictionary, values)?;
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
        _ => take_keys(cast, &cast.cast(dictionary, to)?, values),
    }
}

/// Values as a dictionary of those that differ, in the order in which they are first met; `None` for types that no dictionary has.
/// Synchronises nearly always once, and again where the values are text.
pub(super) fn encode(
    cast: Cast,
    values: &Array,
    to: &DataType,
    (key, of): (&DataType, &DataType),
) -> Result<Option<Array>> {
    use DataType::*;
    // What arrow-cast goes through.
    let through = match (of, values.data_type()) {
        (Date32 | Time32(_), _) => Some(Int32),
        (Date64 | Time64(_) | Timestamp(..), _) => Some(Int64),
        (Utf8View, LargeUtf8 | Utf8View) => Some(LargeUtf8),
        (Utf8View, _) => Some(Utf8),
        (BinaryView, LargeBinary | BinaryView) => Some(LargeBinary),
        (BinaryView, _) => Some(Binary),
        _ => None,
    };
    if let Some(through) = through {
        let encoded = Dictionary(Box::new(key.clone()), Box::new(through.clone()));
        let casted = cast.cast(values, &through)?;
        return cast.cast(&cast.cast(&casted, &encoded)?, to).map(Some);
    }
    let known = match of {
        Utf8 | LargeUtf8 | Binary | LargeBinary | FixedSizeBinary(_) | Struct(_) => true,
        of => of.is_numeric(),
    };
    if !known {
        return Ok(None);
    }
    let casted = cast.cast(values, of)?;
    let mut pass = cast.begin(&[&casted])?;
    if casted.is_empty() {
        return none(pass, to).map(Some);
    }
    let (keys, dictionary) = match of {
        // Every row is its own, as in arrow-cast.
        Struct(_) => {
            check_keys(casted.len(), key)?;
            (own_keys(&mut pass, casted.len(), key)?, part_of(&pass, casted.clone())?)
        }
        _ => {
            let Some(firsts) = firsts(&mut pass, &casted)? else { return Ok(None) };
            check_keys(firsts.count, key)?;
            let keys = firsts.keys(&mut pass, key)?;
            let rows = rows_of_mask(&mut pass, firsts.mask(), firsts.count)?;
            // No first row is null.
            let all = Parts { validity: None, null_count: Some(0), ..casted.clone().into_parts() };
            let taken = take_one(&Array::try_new(all)?, &rows, Outside::Refused, cast.stream)?;
            pass.input(&taken)?;
            (keys, part_of(&pass, taken)?)
        }
    };
    let parts = pass.parts(to.clone(), casted.len());
    let mut parts = nulls_of(&mut pass, &casted, parts)?;
    (parts.buffers, parts.dictionary) = (vec![keys.buffer()], Some(dictionary));
    let encoded = Array::try_new(parts)?;
    pass.finish()?;
    Ok(Some(encoded))
}

/// So many values must have keys that tell them apart. In arrow-cast's words.
fn check_keys(values: usize, key: &DataType) -> Result<()> {
    match values > 0 && values as u64 - 1 > index_width(key)?.1 {
        false => Ok(()),
        true => {
            let problem = format!("{values} values are more than keys of {key} can tell apart");
            Err(Error::Arrow { operation: "cast", problem })
        }
    }
}

/// The rows of `from` by the keys of `values`.
fn take_keys(cast: Cast, from: &Array, values: &Array) -> Result<Array> {
    take_one(from, &keys(values)?, Outside::BadKey, cast.stream)
}

/// The keys as an array of numbers.
fn keys(values: &Array) -> Result<Array> {
    let DataType::Dictionary(key, _) = values.data_type() else {
        return Err(Error::invalid("cast", "an array without keys"));
    };
    let parts = values.clone().into_parts();
    Array::try_new(Parts { data_type: (**key).clone(), dictionary: None, ..parts })
}
