//! Casts on a GPU, by what the types are made of: [`map`](super::map) has the types of fixed width, [`text`] strings and binaries,
//! [`bytes`] those that become of fixed width, [`nested`] what has children, [`views`] lists by offsets and sizes, and of one size,
//! [`dictionary`] dictionaries, [`runs`] runs, [`unions`] unions, [`print`] lists that become text.
//!
//! The one idea: whatever changes the shape of an array (offsets, views, keys) is a pass of its own kind, and casts what is
//! inside by the public cast again, as arrow-cast does; the caller passes that in. What a type is made of decides; no pair is listed
//! twice, and a pair that nobody here knows is `None`.

mod bytes;
mod dictionary;
mod held;
mod inside;
mod laid;
mod nested;
mod offsets;
mod print;
mod runs;
mod text;
mod unions;
mod views;

pub(crate) use inside::{Inside, Misfits};
pub(crate) use laid::{Lengths, lay_out, offset_width};
pub(crate) use offsets::most;

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
    inside: &Inside<'_>,
) -> Result<Option<Array>> {
    use DataType::*;
    let cast = Cast { options, stream, inside };
    // In arrow-cast's order: what stands first wins.
    match (values.data_type(), to) {
        (Null, _) | (Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), Null) => {
            nested::nulls(cast, values, to)
        }
        (RunEndEncoded(..), _) => runs::cast_from(cast, values, to).map(Some),
        (_, RunEndEncoded(ends, of)) => runs::cast_to(cast, values, to, (ends, of)).map(Some),
        (Union(fields, _), _) => unions::cast(cast, values, to, fields),
        (_, Union(..)) => Ok(None),
        (Dictionary(..), _) => dictionary::cast(cast, values, to).map(Some),
        (_, Dictionary(key, of)) => dictionary::encode(cast, values, to, (key, of)),
        (Binary | LargeBinary, FixedSizeBinary(size)) => bytes::cast(cast, values, to, *size).map(Some),
        (List(_) | LargeList(_) | ListView(_) | LargeListView(_), Utf8 | LargeUtf8 | Utf8View) => {
            print::cast(cast, values, to)
        }
        (from, _) if from.is_nested() || to.is_nested() => nested::cast(cast, values, to),
        _ => text::cast(cast, values, to),
    }
}
