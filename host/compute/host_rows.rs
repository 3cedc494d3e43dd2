//! Rows of a device that wait in host memory until the device has room for them again.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema};

use super::arrays::bytes_of;
use super::evaluated::begin;
use super::parking::{Parking, moved};
use super::{CastOptions, cast, check_cast, concat};
use crate::array::any_part;
use crate::pass::readable;
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// Rows in host memory.
#[derive(Clone, Debug)]
pub(super) struct HostRows {
    rows: DeviceBatch,
    /// The types of the columns on the device.
    types: Vec<DataType>,
}

impl HostRows {
    /// Downloads rows, with text in place of views, and parks them.
    pub async fn of(
        rows: &DeviceBatch,
        parking: Option<&Arc<dyn Parking>>,
        stream: &Stream,
    ) -> Result<HostRows> {
        let types = rows.columns().iter().map(|column| column.data_type().clone()).collect();
        let mut columns = vec![];
        for column in rows.columns() {
            columns.push(parked(column, stream).await?);
        }
        if parking.is_some() {
            // They are read where they are moved.
            columns = arrived(columns, stream).await?;
        }
        Ok(HostRows { rows: retyped(rows, moved(columns, parking)?)?, types })
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
}

/// Uploads rows, one part after the other. At least one part is needed for the columns.
pub(super) async fn uploaded(parts: &[HostRows], stream: &Stream) -> Result<DeviceBatch> {
    let here = Stream::cpu();
    let columns = parts.iter().flat_map(|part| part.rows.columns().iter().cloned());
    arrived(columns.collect(), stream).await?;
    let mut all: Vec<&DeviceBatch> = parts.iter().map(|part| &part.rows).collect();
    // Slices have all bytes of their texts, until they are copied.
    let none = parts.first().map(|part| part.rows.slice(0, 0)).transpose()?;
    all.extend(&none);
    let all = concat(&all, &here).await?;
    let mut columns = vec![];
    for (column, of) in all.columns().iter().zip(parts.iter().flat_map(|part| &part.types)) {
        columns.push(unparked(column, of, stream).await?);
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
/// other rows.
pub(super) async fn parked(column: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let (of, options) = (column.data_type(), CastOptions::default());
    let packed = packed(of);
    let casts = |from: &DataType, to: &DataType| match check_cast(from, to, &options, stream) {
        Ok(()) => Ok(true),
        Err(Error::Unsupported { .. }) => Ok(false),
        Err(error) => Err(error),
    };
    let is_cast = &packed != of && casts(of, &packed)? && casts(&packed, of)?;
    let column = if is_cast { cast(column, &packed, &options, stream).await? } else { column.clone() };
    stream.download_later(&column)?.await
}

/// A type in which rows have no contents but their own. A type that keeps nulls elsewhere than in a bitmap
/// stays as it is, because devices do not cast all of these.
fn packed(of: &DataType) -> DataType {
    use DataType::*;
    if any_part(of, |part| matches!(part, Dictionary(..) | RunEndEncoded(..) | Union(..))) {
        return of.clone();
    }
    let field = |of: &FieldRef| Arc::new((**of).clone().with_data_type(packed(of.data_type())));
    match of {
        Utf8View => LargeUtf8,
        BinaryView => LargeBinary,
        List(item) => List(field(item)),
        LargeList(item) | ListView(item) | LargeListView(item) => LargeList(field(item)),
        FixedSizeList(item, size) => FixedSizeList(field(item), *size),
        Map(entries, sorted) => Map(field(entries), *sorted),
        Struct(fields) => Struct(fields.iter().map(field).collect()),
        of => of.clone(),
    }
}

/// A parked column, on a stream's device, where it has another type.
pub(super) async fn unparked(column: &DeviceArray, of: &DataType, stream: &Stream) -> Result<DeviceArray> {
    cast(&stream.upload(column)?, of, &CastOptions::default(), stream).await
}

/// A batch of other columns, which may have other types.
pub(super) fn retyped(old: &DeviceBatch, columns: Vec<DeviceArray>) -> Result<DeviceBatch> {
    let fields = old.schema().fields().iter().zip(&columns);
    let fields = fields.map(|(old, new)| (**old).clone().with_data_type(new.data_type().clone()));
    DeviceBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), columns, old.len())
}

/// The bytes of the buffers of a batch.
pub(super) fn batch_bytes(batch: &DeviceBatch) -> usize {
    batch.columns().iter().map(bytes_of).sum()
}
