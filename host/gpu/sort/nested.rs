//! Columns that are not nested, in the place of nested ones.
//!
//! The one idea: a struct is its nulls and its fields, and a list is the text of its items' ranks. A row of a
//! union is its type's number and then its value, and a row that refers to a nested value is the value's
//! rank. So kernels know numbers and bytes only, and nested types cost sorts of what is inside.

use std::pin::Pin;

use arrow_cast::CastOptions;
use arrow_schema::{DataType, SortOptions};
use bowstring_kernels::sort::lists::{LIST_BYTES, ListBytes};

use super::digits::entry;
use super::groups::rank_flat;
use super::keys::WIDEST;
use super::order::row_numbers;
use crate::array::{Bitmap, DeviceArray, Parts, Slot, large_list_of};
use crate::engine::{Ties, Valid};
use crate::gpu::bitmap::{aligned, and};
use crate::gpu::cast::cast;
use crate::gpu::concat::concat;
use crate::gpu::indices::Outside;
use crate::gpu::parts::part_of;
use crate::gpu::plain::decoded_one;
use crate::gpu::rows::offsets_of;
use crate::gpu::structure::{booleans, logical, runs, unions};
use crate::gpu::take::take_one;
use crate::pass::{Pass, bits};
use crate::rules::value_type;
use crate::{Error, Result, Stream};

/// The operation that errors name.
const OPERATION: &str = "sort_to_indices";

/// A column to sort by.
type Column = (DeviceArray, SortOptions);

/// Returns columns that are not nested, and order rows as the given ones do.
pub(crate) async fn flat(columns: &[Column], stream: &Stream) -> Result<Vec<Column>> {
    let mut flat = vec![];
    for (values, options) in columns {
        flat.extend(flattened(values, *options, None, stream).await?);
    }
    Ok(flat)
}

/// Returns columns that are not nested, and in which rows are equal where they are in the given ones.
pub(crate) async fn flat_columns(columns: &[DeviceArray], stream: &Stream) -> Result<Vec<DeviceArray>> {
    let columns: Vec<_> = columns.iter().map(|values| (values.clone(), SortOptions::default())).collect();
    Ok(flat(&columns, stream).await?.into_iter().map(|(values, _)| values).collect())
}

/// Replaces a nested column of two sides by the ranks among the rows of both, null where the rows are. If
/// nulls have partners, ranks tell them apart: nulls of two members of a union differ.
pub(crate) async fn ranked_sides(
    sides: [&DeviceArray; 2],
    nulls_equal: bool,
    stream: &Stream,
) -> Result<[DeviceArray; 2]> {
    let both = concat(&sides, stream)?.await?;
    let both = both.ok_or_else(|| unsupported(sides[0], stream))?;
    let ranks = ranks(&both, true, stream).await?;
    let ranks = match logical::valid("join", &both, stream)? {
        _ if nulls_equal => ranks,
        Valid::All => ranks,
        Valid::None => return Err(unsupported(sides[0], stream)),
        Valid::These(valid) => masked(&ranks, &valid, stream)?,
    };
    Ok([ranks.slice(0, sides[0].len())?, ranks.slice(sides[0].len(), sides[1].len())?])
}

fn unsupported(values: &DeviceArray, stream: &Stream) -> Error {
    Error::Unsupported {
        operation: OPERATION,
        what: values.data_type().into(),
        device: stream.device().place().device_type,
    }
}

/// The columns of one column. Rows that `within` does not have are all equal: they are null in a struct
/// around this column.
fn flattened<'a>(
    values: &'a DeviceArray,
    options: SortOptions,
    within: Option<&'a DeviceArray>,
    stream: &'a Stream,
) -> Pin<Box<dyn Future<Output = Result<Vec<Column>>> + Send + 'a>> {
    Box::pin(async move {
        let mask = |values: DeviceArray| match within {
            Some(within) => masked(&values, within, stream),
            None => Ok(values),
        };
        // Below, null ranks lower if it comes first: a descending order then turns around both.
        let low = options.nulls_first != options.descending;
        Ok(match values.data_type() {
            DataType::Null => vec![],
            DataType::Struct(fields) => {
                let own = values.possible_nulls().map(|own| booleans(values, own)).transpose()?;
                let nulls = own.is_some();
                // A null struct around this one makes it null.
                let valid = match (own, within) {
                    (Some(own), Some(within)) => Some(both(&own, within, stream)?),
                    (own, within) => own.or_else(|| within.cloned()),
                };
                let mut columns = vec![];
                if let (Some(valid), true) = (&valid, nulls) {
                    // A valid row is true, and comes last if nulls come first.
                    let options = SortOptions { descending: !options.nulls_first, nulls_first: true };
                    columns.push((valid.clone(), options));
                }
                for i in 0..fields.len() {
                    let field = values.child_rows(i)?;
                    columns.extend(flattened(&field, options, valid.as_ref(), stream).await?);
                }
                columns
            }
            DataType::Union(fields, _) => {
                let checked = unions::checked(OPERATION, values, stream)?;
                let numbers = unions::numbers(&checked)?.swap_remove(0);
                let types = SortOptions { descending: options.descending, nulls_first: true };
                let mut columns = vec![(mask(numbers)?, types)];
                for i in 0..fields.len() {
                    match unions::member(OPERATION, values, i, stream)? {
                        (rows, None) => {
                            columns.extend(flattened(&rows, options, within, stream).await?);
                        }
                        (rows, Some(indices)) => {
                            let ranks = nullable_ranks(&rows, low, stream).await?;
                            let ranks = take_one(&ranks, &indices, Outside::Refused, stream)?.await?;
                            columns.push((mask(ranks)?, options));
                        }
                    }
                }
                columns
            }
            of if !value_type(of).is_nested() => match decoded_one(values, stream).await? {
                // A dictionary or runs of nulls: all rows are equal.
                nulls if *nulls.data_type() == DataType::Null => vec![],
                values => vec![(mask(any_length(values, stream).await?)?, options)],
            },
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
                vec![(mask(nullable_ranks(values, low, stream).await?)?, options)]
            }
            _ => vec![(mask(list_bytes(values, low, stream).await?)?, options)],
        })
    })
}

/// Binaries that are wider than a sort has words for become long ones, which order as they do.
async fn any_length(values: DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    match values.data_type() {
        DataType::FixedSizeBinary(width) if *width > WIDEST => {
            cast_one(&values, &DataType::LargeBinary, stream).await
        }
        _ => Ok(values),
    }
}

async fn cast_one(values: &DeviceArray, to: &DataType, stream: &Stream) -> Result<DeviceArray> {
    let cast = cast(&[(values, to)], &CastOptions::default(), stream)?.await?;
    cast.into_iter().next().ok_or_else(|| Error::invalid("cast", "no array"))
}

/// Ranks rows in ascending order; null ranks lower or higher than all values, and is not null.
async fn ranks(values: &DeviceArray, low: bool, stream: &Stream) -> Result<DeviceArray> {
    let options = SortOptions { descending: false, nulls_first: low };
    let columns = flattened(values, options, None, stream).await?;
    rank_flat(&columns, values.len(), Ties::Dense, stream).await
}

/// Ranks nested rows in ascending order, with nulls where rows are null. Rows of unions never are.
fn nullable_ranks<'a>(
    values: &'a DeviceArray,
    low: bool,
    stream: &'a Stream,
) -> Pin<Box<dyn Future<Output = Result<DeviceArray>> + Send + 'a>> {
    Box::pin(async move {
        // Rows of a dictionary or of runs of nulls are equal, whether a key is null or the value that it has.
        if *value_type(values.data_type()) == DataType::Null {
            return ranks(values, low, stream).await;
        }
        let (of, indices, outside) = match (values.data_type(), values.dictionary()) {
            (DataType::Dictionary(key, _), Some(of)) => {
                let keys =
                    Parts { data_type: (**key).clone(), dictionary: None, ..values.clone().into_parts() };
                (of, DeviceArray::try_new(keys)?, Outside::BadKey)
            }
            (DataType::RunEndEncoded(..), _) => {
                (&values.children()[1], runs::of_rows(OPERATION, values, stream)?, Outside::Refused)
            }
            _ => {
                let ranks = ranks(values, low, stream).await?;
                let valid = values.possible_nulls().map(|own| booleans(values, own)).transpose()?;
                return valid.map_or(Ok(ranks.clone()), |valid| masked(&ranks, &valid, stream));
            }
        };
        let ranks = nullable_ranks(of, low, stream).await?;
        take_one(&ranks, &indices, outside, stream)?.await
    })
}

/// Returns lists as the text of their items' ranks.
async fn list_bytes(values: &DeviceArray, low: bool, stream: &Stream) -> Result<DeviceArray> {
    // Lists whose items follow each other, and whose offsets have been checked.
    let lists = match values.data_type() {
        DataType::ListView(item) | DataType::LargeListView(item) | DataType::FixedSizeList(item, _) => {
            cast_one(values, &large_list_of(item), stream).await?
        }
        _ => take_one(values, &row_numbers(values.len(), stream)?, Outside::Refused, stream)?.await?,
    };
    let (items, rows) = (lists.children()[0].clone(), lists.len());
    let ranks = ranks(&items, low, stream).await?;
    let mut pass = Pass::begin(OPERATION, stream)?;
    pass.input(&lists)?;
    pass.input(&ranks)?;
    let mut parts = pass.parts(DataType::LargeBinary, rows);
    (parts.validity, parts.null_count) = (lists.validity().cloned(), lists.known_null_count());
    let (offsets, bytes) = (pass.zeroed((rows + 1) * 8)?, pass.rows(items.len(), 4)?);
    if rows > 0 {
        let Some(Slot::Offsets(width)) = lists.layout().slots().next() else {
            return Err(pass.unsupported(lists.data_type()));
        };
        let from = aligned(&mut pass, &offsets_of(&lists, width), width)?;
        let ranks = aligned(&mut pass, &ranks.buffers()[0], 4)?;
        let args = ListBytes {
            ranks: ranks.cast(),
            items: items.len() as u64,
            offsets: from,
            rows: rows as u64,
            out_bytes: bytes.out(),
            out_offsets: offsets.out(),
        };
        let write = entry(&pass, LIST_BYTES, &[width as u32])?;
        pass.launch(write, &args)?;
    }
    parts.buffers = vec![offsets.buffer(), bytes.buffer()];
    let text = DeviceArray::try_new(parts)?;
    pass.finish()?;
    Ok(text)
}

/// Returns an array with nulls where booleans without nulls are false, besides its own.
fn masked(values: &DeviceArray, by: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    if values.is_empty() {
        return Ok(values.clone());
    }
    let mut pass = Pass::begin(OPERATION, stream)?;
    pass.input(values)?;
    pass.input(by)?;
    let by = Bitmap { buffer: by.buffers()[0].clone(), offset: by.offset() };
    let valid = match values.possible_nulls() {
        None => by,
        Some(own) => {
            let both = pass.output(values.len().div_ceil(32) * 4)?;
            and(&mut pass, bits(&by), bits(own), values.len(), &both)?;
            Bitmap { buffer: both.buffer(), offset: 0 }
        }
    };
    let parts = part_of(&pass, values.clone())?.into_parts();
    let masked = DeviceArray::try_new(Parts { validity: Some(valid), null_count: None, ..parts })?;
    pass.finish()?;
    Ok(masked)
}

/// Returns booleans that are true where two are, all without nulls.
fn both(one: &DeviceArray, other: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    if one.is_empty() {
        return Ok(one.clone());
    }
    let mut pass = Pass::begin(OPERATION, stream)?;
    pass.input(one)?;
    pass.input(other)?;
    let set = |of: &DeviceArray| Bitmap { buffer: of.buffers()[0].clone(), offset: of.offset() };
    let out = pass.output(one.len().div_ceil(32) * 4)?;
    and(&mut pass, bits(&set(one)), bits(&set(other)), one.len(), &out)?;
    let both = pass.array(DataType::Boolean, one.len(), &out)?;
    pass.finish()?;
    Ok(both)
}
