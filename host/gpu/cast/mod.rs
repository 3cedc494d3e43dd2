//! Casts on a GPU, by the composition of the types: [`map`](super::map) has the types of fixed width,
//! [`text`] strings and binaries, [`bytes`] binaries that become fixed-size, [`nested`] types with children,
//! [`views`] list views and fixed-size lists, [`dictionary`] dictionaries, [`runs`] runs, [`unions`] unions,
//! [`print`] lists that become text.
//!
//! The one idea: a cast that changes the shape of an array (offsets, views, keys) is a pass of its own kind,
//! and casts the parts by the public cast again, as arrow-cast does; the caller passes that in. The
//! composition of a type decides, so no pair is listed twice. A pair that no device supports is `None`.

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

use crate::array::DeviceArray;
use crate::{Result, Stream};

/// Casts everything except plain values of fixed width; `None` for pairs of types that no device supports.
pub(crate) async fn cast(
    values: &DeviceArray,
    to: &DataType,
    options: &CastOptions<'_>,
    stream: &Stream,
    inside: Inside,
) -> Result<Option<DeviceArray>> {
    use DataType::*;
    let cast = Cast { options, stream, inside };
    // The arms follow arrow-cast's order: the first match wins.
    match (values.data_type(), to) {
        (Null, _) | (Decimal32(..) | Decimal64(..) | Decimal128(..) | Decimal256(..), Null) => {
            nested::nulls(cast, values, to)
        }
        (RunEndEncoded(..), _) => runs::cast_from(cast, values, to).await.map(Some),
        (_, RunEndEncoded(ends, of)) => runs::cast_to(cast, values, to, (ends, of)).await.map(Some),
        (Union(fields, _), _) => unions::cast(cast, values, to, fields).await,
        (_, Union(..)) => Ok(None),
        (Dictionary(..), _) => dictionary::cast(cast, values, to).await.map(Some),
        (_, Dictionary(key, of)) => dictionary::encode(cast, values, to, (key, of)).await,
        (Binary | LargeBinary, FixedSizeBinary(size)) => bytes::cast(cast, values, to, *size).await.map(Some),
        (List(_) | LargeList(_) | ListView(_) | LargeListView(_), Utf8 | LargeUtf8 | Utf8View) => {
            print::cast(cast, values, to).await
        }
        (from, _) if from.is_nested() || to.is_nested() => nested::cast(cast, values, to).await,
        _ => text::cast(cast, values, to).await,
    }
}
