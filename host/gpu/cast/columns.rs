//! The route of each column's cast. The one idea: all columns whose values a function maps share one pass;
//! every other column has passes of its own, and the host reads numbers for all of them together.

use arrow_cast::CastOptions;
use arrow_cast::display::FormatOptions;
use arrow_schema::DataType;

use super::inside::{Cast, Options, Parts};
use super::{bytes, dictionary, nested, print, runs, text, unions};
use crate::array::DeviceArray;
use crate::engine::Later;
use crate::gpu::map::{Column, map};
use crate::gpu::written::{self, Unread};
use crate::pass::{Pending, all, readable};
use crate::rules::{
    CastRule, can_cast, cast_rule, no_value, reading_words, refusal, unread, unsupported, writing_words,
    zoned_words,
};
use crate::{Error, Result, Stream};

/// Casts each array to its type. The types are known to be castable.
pub(crate) fn cast(
    columns: &[(&DeviceArray, &DataType)],
    options: &CastOptions<'_>,
    stream: &Stream,
) -> Result<Pending<Vec<DeviceArray>>> {
    let formatted = options.format_options != FormatOptions::default();
    let options = Options { safe: options.safe, formatted };
    let owned = columns.iter().map(|(values, to)| (DeviceArray::clone(values), DataType::clone(to)));
    let (columns, on): (Vec<(DeviceArray, DataType)>, _) = (owned.collect(), stream.clone());
    Ok(Pending::begin(stream, async move {
        let columns: Vec<(&DeviceArray, &DataType)> =
            columns.iter().map(|(values, to)| (values, to)).collect();
        cast_columns(&columns, options, &on).await
    }))
}

/// Casts of parts, by any of these routes.
struct AnyRoute;

impl Parts for AnyRoute {
    fn cast<'a>(
        &self,
        values: &'a DeviceArray,
        to: &'a DataType,
        options: Options,
        stream: &'a Stream,
    ) -> Later<'a, DeviceArray> {
        Box::pin(async move {
            if !can_cast(values.data_type(), to) {
                return Err(unsupported(values, to, stream.device().place().device_type));
            }
            let casted = cast_columns(&[(values, to)], options, stream).await?.pop();
            casted.ok_or_else(|| Error::invalid("cast", "no array"))
        })
    }
}

/// Whether a column is cast in the pass that all plain columns share.
enum Place {
    Together,
    Apart,
}

async fn cast_columns(
    columns: &[(&DeviceArray, &DataType)],
    options: Options,
    stream: &Stream,
) -> Result<Vec<DeviceArray>> {
    let (mut together, mut apart, mut places) = (vec![], vec![], vec![]);
    for &(values, to) in columns {
        let call = match cast_rule(values.data_type(), to) {
            CastRule::Map(call) => Some(call),
            CastRule::Zero => None,
            rule => {
                apart.push(cast_apart(rule, values, to, options, stream));
                places.push(Place::Apart);
                continue;
            }
        };
        together.push(Column { values, to, call });
        places.push(Place::Together);
    }
    let mut together = map("cast", &together, options.safe, stream)?.into_iter();
    let mut apart = all(apart).await?.into_iter();
    let casted = places.into_iter().map(|place| match place {
        Place::Together => together.next(),
        Place::Apart => apart.next(),
    });
    Ok(casted.flatten().collect())
}

/// Casts a column that is not part of the common pass.
async fn cast_apart(
    rule: CastRule,
    values: &DeviceArray,
    to: &DataType,
    options: Options,
    stream: &Stream,
) -> Result<DeviceArray> {
    let plain = CastOptions { safe: options.safe, ..CastOptions::default() };
    let from = values.data_type();
    let unsupported = || unsupported(values, to, stream.device().place().device_type);
    let refusal = |options| refusal(from, to, options);
    match rule {
        CastRule::Same => values.reinterpreted(to),
        CastRule::Write(_) if options.formatted => Err(unsupported()),
        CastRule::Overflow | CastRule::InvalidTarget => {
            Err(refusal(&CastOptions::default()).unwrap_or_else(unsupported))
        }
        CastRule::Read(reading) => {
            let (from, into) = (from.clone(), to.clone());
            let unread: Option<Unread> = match options.safe {
                true => None,
                false => Some(Box::new(move |row, text, len| unread(row, text, len, from, into))),
            };
            written::read((reading, &reading_words(to)), values, to, unread, stream).await
        }
        CastRule::Write(writing) => {
            match written::write((writing, &writing_words(from)), values, to, true, stream).await? {
                Ok(written) => Ok(written),
                Err(row) => {
                    let one = stream.download_later(&values.slice(row, 1)?)?.await?;
                    readable(std::slice::from_ref(&one)).await;
                    Err(no_value(&one, row, to, &plain))
                }
            }
        }
        CastRule::NeedsZone => match zoned_words(from, to) {
            Some(words) => written::cast_zoned(&words, values, to, options.safe, stream),
            None => Err(refusal(&plain).unwrap_or_else(unsupported)),
        },
        CastRule::Map(_) | CastRule::Zero | CastRule::Never => {
            // The cast fails regardless of the values, for example because a time zone is unknown.
            if let Some(why) = refusal(&plain) {
                return Err(why);
            }
            by_composition(values, to, options, stream).await?.ok_or_else(unsupported)
        }
    }
}

/// Casts everything except plain values of fixed width; `None` for pairs of types that no device supports.
async fn by_composition(
    values: &DeviceArray,
    to: &DataType,
    options: Options,
    stream: &Stream,
) -> Result<Option<DeviceArray>> {
    use DataType::*;
    let cast = Cast { options, stream, parts: &AnyRoute };
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
