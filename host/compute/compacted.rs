//! Columns of rows that outlive the batches they were taken from.
//!
//! Views share the text of all rows of their batch, and a dictionary keeps the values that no key refers to.
//! A few rows of each batch would keep all of a long stream.

use arrow_array::{Array, cast::AsArray, types::Decimal128Type};
use arrow_schema::DataType;

use super::arrays::{bytes_of, computed, empty, fold_groups, is_cast_and_back};
use super::{CastOptions, Columns, TakeOptions, cast, engine, group, reach_all, take};
use crate::array::Parts;
use crate::engine::{GroupFold, Groups};
use crate::exchange::to_arrow;
use crate::expr::{Fold, Reduction, if_else, lit, nth};
use crate::{DeviceArray, Pending, Result, Stream};

/// Columns may hold so many bytes, or so many for each row, before their contents are copied.
const FEW_BYTES: usize = 1 << 20;
const BYTES_OF_ROW: usize = 128;

/// A column without the contents of other rows, if it holds on to much of these.
pub(super) async fn compacted(column: DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    match bytes_of(&column) <= FEW_BYTES.max(column.len().saturating_mul(BYTES_OF_ROW)) {
        true => Ok(column),
        false => with_own(column, stream).await,
    }
}

/// A column without the contents of other rows. Only text, dictionaries and text of runs are copied, and only
/// if the rows have less than the column holds: many rows may share one long text.
pub(super) async fn with_own(column: DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    if column.is_empty() {
        // Its buffers may be those of many rows.
        return empty(column.data_type(), stream);
    }
    let made = match column.data_type() {
        DataType::Utf8View | DataType::BinaryView => own_text(&column, stream).await?,
        DataType::Dictionary(key, of) => used_values(&column, key, of, stream).await?,
        DataType::RunEndEncoded(..) => own_runs(&column, stream).await?,
        _ => None,
    };
    Ok(made.filter(|made| bytes_of(made) < bytes_of(&column)).unwrap_or(column))
}

/// Copies the rows of columns that hold on to much of other rows: more than 1 MiB, and more than 128 bytes
/// for each row. These are text behind views, values of dictionaries that no key refers to, and text of runs.
/// Other columns stay as they are, and text whose copy would save less than an eighth. A filter shares them,
/// so call this before its rows are downloaded or kept.
///
/// Synchronises if there is such a column.
pub fn garbage_collect<C: Columns>(values: &C, stream: &Stream) -> Pending<C> {
    Pending::begun(|| {
        let _current = stream.enter()?;
        reach_all("garbage_collect", values.arrays(), stream)?;
        let (frame, rows, columns) = (values.frame(), values.rows(), values.arrays().to_vec());
        let on = stream.clone();
        Ok(Pending::begin(stream, async move {
            let mut own = Vec::with_capacity(columns.len());
            for column in columns {
                own.push(compacted(column, &on).await?);
            }
            C::framed(frame, own, rows)
        }))
    })
}

/// Views with text of their own; `None` if that saves less than an eighth of what they hold now.
async fn own_text(views: &DeviceArray, stream: &Stream) -> Result<Option<DeviceArray>> {
    let (of, options) = (views.data_type(), CastOptions::default());
    let through = if *of == DataType::Utf8View { DataType::LargeUtf8 } else { DataType::LargeBinary };
    let held = bytes_of(views) as u128;
    let own = |text: u128| text.saturating_add(16 * views.len() as u128);
    if !is_cast_and_back(of, &through, stream)? || own(text_bytes(views, stream).await?) > held - held / 8 {
        return Ok(None);
    }
    let bare = cast(views, &through, &options, stream).await?;
    cast(&bare, of, &options, stream).await.map(Some)
}

/// Whether views take less memory once the text of each row is written.
pub(super) async fn shares_little(views: &DeviceArray, stream: &Stream) -> Result<bool> {
    Ok(views.is_empty() || text_bytes(views, stream).await? < bytes_of(views) as u128)
}

/// The bytes of the text of all rows, of which there are some.
async fn text_bytes(views: &DeviceArray, stream: &Stream) -> Result<u128> {
    let mut words = Parts { validity: None, null_count: Some(0), offset: 0, ..views.clone().into_parts() };
    words.data_type = DataType::UInt32;
    words.len = 4 * (views.offset() + views.len());
    words.buffers.truncate(1);
    let words = DeviceArray::try_new(words)?;
    // The first of the four words of a view is the length of its text.
    let rows = engine(stream).numbers(views.len(), stream)?;
    let places = (nth(0).cast(DataType::UInt64) + views.offset() as u64) * 4u64;
    let places = computed(places, vec![rows.clone()], stream).await?;
    let lengths = take(&words, &places, &TakeOptions::default(), stream).await?;
    let valid = if_else(nth(1).is_not_null(), nth(0).cast(DataType::UInt64), lit(0u64));
    let lengths = computed(valid, vec![lengths, views.clone()], stream).await?;
    let one = Groups {
        ids: computed(nth(0) - nth(0), vec![rows.clone()], stream).await?,
        firsts: rows.slice(0, 1)?,
    };
    let sum = GroupFold { fold: Reduction::Fold(Fold::Sum), values: Some(lengths), wraps: false };
    let sum = fold_groups(&[sum], &one, stream).await?.remove(0);
    let sum = to_arrow(&stream.download_later(&sum)?.await?)?;
    let sum = sum.as_primitive_opt::<Decimal128Type>().filter(|sum| sum.is_valid(0)).map(|sum| sum.value(0));
    Ok(sum.map_or(u128::MAX, i128::unsigned_abs))
}

/// A dictionary of the values that its rows have; `None` if the device does not make it.
async fn used_values(
    column: &DeviceArray,
    key: &DataType,
    of: &DataType,
    stream: &Stream,
) -> Result<Option<DeviceArray>> {
    let (options, plain) = (CastOptions::default(), TakeOptions::default());
    if !is_cast_and_back(column.data_type(), of, stream)? {
        return Ok(None);
    }
    // Values are not looked at: they may be long.
    let keys = Parts { data_type: key.clone(), dictionary: None, ..column.clone().into_parts() };
    let groups = group(&[DeviceArray::try_new(keys)?], stream).await?;
    let bits = key.primitive_width().unwrap_or(0) * 8 - 1;
    if groups.len() as u128 > 1 << bits {
        return Ok(None);
    }
    let firsts = take(column, groups.firsts(), &plain, stream).await?;
    let mut values = cast(&firsts, of, &options, stream).await?;
    if let Some(own) = text_of(&values, stream).await? {
        values = own;
    }
    let mut keys = cast(groups.ids(), key, &options, stream).await?.into_parts();
    (keys.data_type, keys.dictionary) = (column.data_type().clone(), Some(values));
    (keys.validity, keys.null_count) = (column.validity().cloned(), None);
    // One event covers all parts of what is taken.
    let rows = engine(stream).numbers(column.len(), stream)?;
    take(&DeviceArray::try_new(keys)?, &rows, &plain, stream).await.map(Some)
}

/// Runs of which the text is their own; `None` if it is no text, or would be more.
async fn own_runs(column: &DeviceArray, stream: &Stream) -> Result<Option<DeviceArray>> {
    if !matches!(column.children()[1].data_type(), DataType::Utf8View | DataType::BinaryView) {
        return Ok(None);
    }
    let plain = TakeOptions::default();
    // Runs that no row has are left out.
    let rows = engine(stream).numbers(column.len(), stream)?;
    let taken = take(column, &rows, &plain, stream).await?;
    let Some(own) = text_of(&taken.children()[1], stream).await? else { return Ok(None) };
    let mut parts = taken.into_parts();
    parts.children[1] = own;
    // One event covers all parts of what is taken.
    take(&DeviceArray::try_new(parts)?, &rows, &plain, stream).await.map(Some)
}

/// Values that dictionaries and runs refer to, with text of their own; `None` if they are no views, or
/// would be more.
async fn text_of(values: &DeviceArray, stream: &Stream) -> Result<Option<DeviceArray>> {
    match values.data_type() {
        DataType::Utf8View | DataType::BinaryView if !values.is_empty() => own_text(values, stream).await,
        _ => Ok(None),
    }
}
