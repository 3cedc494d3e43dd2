//! Rows of a device that wait in host memory until the device has room for them again.

use std::sync::Arc;

use arrow_schema::DataType;

use super::arrays::{bytes_in, is_cast_and_back};
use super::compacted::shares_little;
use super::evaluated::begin;
use super::spill::{Spill, moved};
use super::{CastOptions, Columns, cast, concat};
use crate::array::any_part;
use crate::pass::readable;
use crate::rules::with_parts;
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// The most bytes of rows that are concatenated if a column has offsets of 32 bits, which end at 2 GiB: a
/// batch may come on top.
const MOST_WITH_SHORT_OFFSETS: usize = 1 << 30;

/// The bytes of text that rows may have without a look at how much it is.
const MUCH_TEXT: usize = 16 << 20;

/// The bytes that rows with columns of these types may take before they are spilled, of those that a program
/// gives them.
pub(super) fn bounded<'a>(
    memory: Option<usize>,
    types: impl IntoIterator<Item = &'a DataType>,
) -> Option<usize> {
    use DataType::*;
    let is_short = |part: &DataType| matches!(part, Utf8 | Binary | List(_) | ListView(_) | Map(..));
    let memory = memory?;
    Some(match types.into_iter().any(|of| any_part(of, is_short)) {
        true => memory.min(MOST_WITH_SHORT_OFFSETS),
        false => memory,
    })
}

/// Rows in host memory.
#[derive(Clone, Debug)]
pub(super) struct HostRows {
    rows: DeviceBatch,
    /// The types of the columns on the device.
    types: Vec<DataType>,
}

impl HostRows {
    /// Downloads rows, with text in place of views, and spills them.
    pub async fn of(rows: &DeviceBatch, spill: Option<&Arc<dyn Spill>>, stream: &Stream) -> Result<HostRows> {
        let types = rows.columns().iter().map(|column| column.data_type().clone()).collect();
        let mut columns = vec![];
        for column in rows.columns() {
            columns.push(spilled(column, stream).await?);
        }
        if spill.is_some() {
            // They are read where they are moved.
            columns = arrived(columns, stream).await?;
        }
        Ok(HostRows { rows: retyped(rows, moved(columns, spill)?)?, types })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn bytes(&self) -> usize {
        batch_bytes(&self.rows)
    }

    pub fn columns(&self) -> &[DeviceArray] {
        self.rows.columns()
    }

    pub fn slice(&self, first: usize, len: usize) -> Result<HostRows> {
        Ok(HostRows { rows: self.rows.slice(first, len)?, types: self.types.clone() })
    }

    /// A column that has arrived, and can be concatenated with those of other parts: of one type, even if
    /// some views were spilled as they are. Text becomes views again, which share it, not the other way.
    pub async fn column_like(&self, i: usize, parts: &[HostRows]) -> Result<DeviceArray> {
        let column = &self.columns()[i];
        match parts.iter().all(|part| part.columns()[i].data_type() == column.data_type()) {
            true => Ok(column.clone()),
            false => cast(column, &self.types[i], &CastOptions::default(), &Stream::cpu()).await,
        }
    }
}

/// Uploads rows, one part after the other. At least one part is needed for the columns.
pub(super) async fn uploaded(parts: &[HostRows], stream: &Stream) -> Result<DeviceBatch> {
    let here = Stream::cpu();
    let columns = parts.iter().flat_map(|part| part.rows.columns().iter().cloned());
    arrived(columns.collect(), stream).await?;
    let mut all = vec![];
    for part in parts {
        let mut columns = vec![];
        for i in 0..part.columns().len() {
            columns.push(part.column_like(i, parts).await?);
        }
        all.push(retyped(&part.rows, columns)?);
    }
    // Slices have all bytes of their texts, until they are copied.
    let none = all.first().map(|part| part.slice(0, 0)).transpose()?;
    all.extend(none);
    let all = concat(&all.iter().collect::<Vec<_>>(), &here).await?;
    let mut columns = vec![];
    for (column, of) in all.columns().iter().zip(parts.iter().flat_map(|part| &part.types)) {
        columns.push(restored(column, of, stream).await?);
    }
    retyped(&all, columns)
}

/// Waits until columns have been downloaded: operations of the host would block for that.
pub(super) async fn arrived(columns: Vec<DeviceArray>, stream: &Stream) -> Result<Vec<DeviceArray>> {
    let waiting = begin(stream, async move {
        readable(&columns).await;
        Ok(columns)
    });
    waiting?.await
}

/// A column in host memory, with text and lists in place of their views: views would keep the contents of all
/// other rows. Views stay if their rows share so much text that it would be more.
pub(super) async fn spilled(column: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let (of, options) = (column.data_type(), CastOptions::default());
    let packed = packed(of);
    let mut is_cast = &packed != of && is_cast_and_back(of, &packed, stream)?;
    if is_cast && may_share_much(column) {
        is_cast = shares_little(column, stream).await?;
    }
    let column = if is_cast { cast(column, &packed, &options, stream).await? } else { column.clone() };
    stream.download_later(&column)?.await
}

/// Whether a column is views that may be much text if that of each row is written, to be found out by a read.
fn may_share_much(column: &DeviceArray) -> bool {
    let is_views = matches!(column.data_type(), DataType::Utf8View | DataType::BinaryView);
    let lens = column.buffers().iter().skip(1).map(|text| text.bytes().unwrap_or(usize::MAX));
    is_views && column.len().saturating_mul(lens.max().unwrap_or(0)) > MUCH_TEXT
}

/// A type in which rows have no contents but their own. A type that keeps nulls elsewhere than in a bitmap
/// stays as it is, because devices do not cast all of these.
fn packed(of: &DataType) -> DataType {
    use DataType::*;
    if any_part(of, |part| matches!(part, Dictionary(..) | RunEndEncoded(..) | Union(..))) {
        return of.clone();
    }
    match with_parts(of, &packed) {
        Utf8View => LargeUtf8,
        BinaryView => LargeBinary,
        ListView(item) | LargeListView(item) => LargeList(item),
        of => of,
    }
}

/// A spilled column, on a stream's device, where it has another type.
pub(super) async fn restored(column: &DeviceArray, of: &DataType, stream: &Stream) -> Result<DeviceArray> {
    cast(&stream.upload(column)?, of, &CastOptions::default(), stream).await
}

/// A batch of other columns, which may have other types.
pub(super) fn retyped<C: Columns>(old: &C, columns: Vec<DeviceArray>) -> Result<C> {
    old.with_arrays(columns, old.rows())
}

/// The bytes of the rows of a batch, or of its buffers where these have text.
pub(super) fn batch_bytes(batch: &DeviceBatch) -> usize {
    batch.columns().iter().map(bytes_in).sum()
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;

    use super::*;

    #[test]
    fn less_is_kept_of_columns_with_short_offsets() {
        let field = |of: &DataType| Arc::new(Field::new("a", of.clone(), true));
        let long = [DataType::Int64, DataType::Utf8View, DataType::LargeBinary];
        let nested = |of: &DataType| {
            [
                of.clone(),
                DataType::Struct([field(&DataType::Int8), field(of)].into_iter().collect()),
                DataType::FixedSizeList(field(of), 2),
                DataType::LargeList(field(of)),
                DataType::Dictionary(Box::new(DataType::Int32), Box::new(of.clone())),
                DataType::RunEndEncoded(field(&DataType::Int32), field(of)),
            ]
        };
        let short = [DataType::Utf8, DataType::Binary, DataType::List(field(&DataType::Int8))];
        for of in long.iter().flat_map(nested) {
            assert_eq!(bounded(Some(8 << 30), [&of]), Some(8 << 30), "{of}");
            assert_eq!(bounded(None, [&of]), None, "{of}");
        }
        for of in short.iter().flat_map(nested) {
            assert_eq!(bounded(Some(8 << 30), long.iter().chain([&of])), Some(1 << 30), "{of}");
            assert_eq!(bounded(Some(1000), [&of]), Some(1000), "{of}");
        }
    }
}
