//! Casts on a GPU, by what the types are made of: [`map`](super::map) has the types of fixed width, [`text`] strings and binaries,
//! [`nested`] what has children, [`dictionary`] dictionaries.
//!
//! The one idea: whatever changes the shape of an array (offsets, views, keys) is a pass of its own kind, and casts what is
//! inside by the public cast again, as arrow-cast does; the caller passes that in. What a type is made of decides; no pair is listed
//! twice, and a pair that nobody here knows is `None`.

mod dictionary;
mod held;
mod inside;
mod nested;
mod offsets;
mod text;

pub(crate) use inside::CastInside;

use arrow_cast::CastOptions;
use arrow_schema::DataType;

use inside::Cast;

use crate::array::Array;
use crate::{Result, Stream};

/// Casts what is not a plain value of fixed width; `None` for pairs of types that no device knows.
pub(crate) fn cast(
    values: &Array,
    to: &DataType,
    options: &CastOptions<'_>,
    stream: &Stream,
    inside: &CastInside,
) -> Result<Option<Array>> {
    use DataType::*;
    let cast = Cast { options, stream, inside };
    // In arrow-cast's order: what stands first wins.
    match (values.data_type(), to) {
        (Null, _) => nested::nulls(cast, values, to),
        (RunEndEncoded(..) | Union(..), _) | (_, RunEndEncoded(..) | Union(..)) => Ok(None),
        (Dictionary(..), _) => dictionary::cast(cast, values, to).map(Some),
        (_, Dictionary(..)) => Ok(None),
        (from, _) if from.is_nested() || to.is_nested() => nested::cast(cast, values, to),
        _ => text::cast(cast, values, to),
    }
}
