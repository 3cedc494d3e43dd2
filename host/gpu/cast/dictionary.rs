//! Dictionaries. A cast from one casts the values once, including those that no row uses, and then takes them
//! by the keys; or it keeps the keys and changes their width. A cast to one encodes each row by the first row
//! equal to it, see [`alike`](crate::gpu::structure::alike).

use arrow_schema::DataType;

use super::inside::{Cast, Options};
use crate::array::{DeviceArray, Parts};
use crate::gpu::bitmap::nulls_of;
use crate::gpu::indices::index_width;
use crate::gpu::nulls::null_counts;
use crate::gpu::parts::{none, part_of};
use crate::gpu::structure::alike::{firsts, own_keys};
use crate::gpu::structure::runs::rows_of_mask;
use crate::gpu::{Outside, take_one};
use crate::{Error, Result, Stream};

/// Casts a dictionary array to a plain one, or to one with other keys or values. Synchronises once if rows
/// are ranges (see `take`), and whenever the cast of the values does.
pub(super) async fn cast(cast: Cast<'_>, values: &DeviceArray, to: &DataType) -> Result<DeviceArray> {
    let dictionary =
        values.dictionary().ok_or_else(|| Error::invalid("cast", "a dictionary without values"))?;
    match (dictionary.data_type(), to) {
        (DataType::Dictionary(..), DataType::Dictionary(..)) => {
            // Two levels of keys become one: the inner keys, taken by the outer ones.
            let flat = take_keys(cast, dictionary, values).await?;
            cast.cast(&flat, to).await
        }
        (_, DataType::Dictionary(key, of)) => {
            // A key that does not fit is an error even in a safe cast; otherwise a valid row would become
            // null.
            let strict = Options { safe: false, ..cast.options };
            let keys = Cast { options: strict, ..cast }.cast(&keys(values)?, key).await?;
            let dictionary = cast.cast(dictionary, of).await?;
            let pass = cast.begin(&[&keys, &dictionary])?;
            let (keys, dictionary) = (part_of(&pass, keys)?.into_parts(), part_of(&pass, dictionary)?);
            pass.finish()?;
            DeviceArray::try_new(Parts { data_type: to.clone(), dictionary: Some(dictionary), ..keys })
        }
        _ => take_keys(cast, &cast.cast(dictionary, to).await?, values).await,
    }
}

/// Encodes values as a dictionary of the distinct ones, in order of first occurrence; `None` for types that
/// cannot be dictionary values. Synchronises once in nearly all cases, and again if the values are text.
pub(super) async fn encode(
    cast: Cast<'_>,
    values: &DeviceArray,
    to: &DataType,
    (key, of): (&DataType, &DataType),
) -> Result<Option<DeviceArray>> {
    use DataType::*;
    // The intermediate type of arrow-cast.
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
        let casted = cast.cast(values, &through).await?;
        return cast.cast(&cast.cast(&casted, &encoded).await?, to).await.map(Some);
    }
    let known = match of {
        Utf8 | LargeUtf8 | Binary | LargeBinary | FixedSizeBinary(_) | Struct(_) => true,
        of => of.is_numeric(),
    };
    if !known {
        return Ok(None);
    }
    let casted = cast.cast(values, of).await?;
    if let Struct(_) = of {
        check_own_keys(&casted, key, cast.stream).await?;
    }
    let mut pass = cast.begin(&[&casted])?;
    if casted.is_empty() {
        return none(pass, to).map(Some);
    }
    let (keys, dictionary) = match of {
        // Every row gets a value of its own, as in arrow-cast.
        Struct(_) => (own_keys(&mut pass, casted.len(), key)?, part_of(&pass, casted.clone())?),
        _ => {
            let Some(firsts) = firsts(&mut pass, &casted).await? else { return Ok(None) };
            check_keys(firsts.count, key)?;
            let keys = firsts.keys(&mut pass, key)?;
            let rows = rows_of_mask(&mut pass, firsts.mask(), firsts.count)?;
            // First occurrences are never null.
            let all = Parts { validity: None, null_count: Some(0), ..casted.clone().into_parts() };
            let taken = take_one(&DeviceArray::try_new(all)?, &rows, Outside::Refused, cast.stream)?.await?;
            pass.input(&taken)?;
            (keys, part_of(&pass, taken)?)
        }
    };
    let parts = pass.parts(to.clone(), casted.len());
    let mut parts = nulls_of(&mut pass, &casted, parts)?;
    (parts.buffers, parts.dictionary) = (vec![keys.buffer()], Some(dictionary));
    let encoded = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(Some(encoded))
}

/// Checks that a type has enough keys for so many values. The error's text is arrow-cast's.
fn check_keys(values: usize, key: &DataType) -> Result<()> {
    match values > 0 && values as u64 - 1 > index_width(key)?.1 {
        false => Ok(()),
        true => {
            let problem = format!("{values} values are more than keys of {key} can tell apart");
            Err(Error::Arrow { operation: "cast", problem })
        }
    }
}

/// Checks that a type has a key of its own for each row, except that rows at the end may be null.
async fn check_own_keys(rows: &DeviceArray, key: &DataType, stream: &Stream) -> Result<()> {
    let most = usize::try_from(index_width(key)?.1).unwrap_or(usize::MAX).saturating_add(1);
    if rows.len() <= most {
        return Ok(());
    }
    let others = rows.slice(most, rows.len() - most)?;
    let nulls = match others.validity() {
        Some(validity) => null_counts(&[(&others, validity)], stream)?.await?.iter().sum(),
        None => 0,
    };
    if nulls == others.len() { Ok(()) } else { check_keys(rows.len(), key) }
}

/// Takes the rows of `from` by the keys of `values`.
async fn take_keys(cast: Cast<'_>, from: &DeviceArray, values: &DeviceArray) -> Result<DeviceArray> {
    take_one(from, &keys(values)?, Outside::BadKey, cast.stream)?.await
}

/// Returns the keys as an array of numbers.
fn keys(values: &DeviceArray) -> Result<DeviceArray> {
    let DataType::Dictionary(key, _) = values.data_type() else {
        return Err(Error::invalid("cast", "an array without keys"));
    };
    let parts = values.clone().into_parts();
    DeviceArray::try_new(Parts { data_type: (**key).clone(), dictionary: None, ..parts })
}
