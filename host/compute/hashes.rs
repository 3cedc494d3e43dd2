//! Columns of hashes, in the place of nested ones.
//!
//! The one idea: a nested value is the hash of its parts. A struct is a hash of its fields, and a list is a
//! text that consists of its items' hashes. A row of a union is its type's number and the hash of its value.

use std::pin::Pin;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, UnionFields, UnionMode};

use super::arrays::{computed, computed_of, empty};
use super::{CastOptions, TakeOptions, cast, engine, is_not_null, take};
use crate::array::{Buffer, Parts, Slot, large_list_of};
use crate::expr::{Literal, if_else, lit, nth};
use crate::rules::{of_any_length, value_type};
use crate::{DeviceArray, DeviceBatch, Result, Stream};

/// The future of an array; functions that call each other need a name for it.
type Made<'a> = Pin<Box<dyn Future<Output = Result<DeviceArray>> + Send + 'a>>;

/// Returns a column that is not nested, and whose rows are equal where those of the given one are, except
/// that different nested values may have the same hash. Dictionaries and runs become their values.
pub(super) fn flat<'a>(values: &'a DeviceArray, stream: &'a Stream) -> Made<'a> {
    Box::pin(async move {
        let of = value_type(values.data_type());
        if of != values.data_type() {
            // Hashes of text are the same in every layout.
            let of = of_any_length(of);
            return flat(&cast(values, of, &CastOptions::default(), stream).await?, stream).await;
        }
        if !of.is_nested() {
            return Ok(values.clone());
        }
        if values.is_empty() {
            return empty(&DataType::UInt64, stream);
        }
        let hashes = match of {
            DataType::Struct(_) => of_fields(values, stream).await?,
            // Rows of unions are never null.
            DataType::Union(fields, mode) => return of_members(values, fields, *mode, stream).await,
            _ => of_items(values, stream).await?,
        };
        if values.possible_nulls().is_none() {
            return Ok(hashes);
        }
        let valid = is_not_null(values, stream).await?;
        computed(if_else(nth(0), nth(1), Literal::null(DataType::UInt64)), vec![valid, hashes], stream).await
    })
}

/// Hashes the rows of columns of any type.
async fn hashed(columns: &[DeviceArray], stream: &Stream) -> Result<DeviceArray> {
    let mut plain = Vec::with_capacity(columns.len());
    for values in columns {
        plain.push(flat(values, stream).await?);
    }
    match plain.iter().any(|values| !values.is_empty()) {
        true => engine(stream).hash_rows(&plain, stream)?.await,
        false => empty(&DataType::UInt64, stream),
    }
}

async fn of_fields(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let fields = (0..values.children().len()).map(|i| values.child_rows(i)).collect::<Result<Vec<_>>>()?;
    if fields.is_empty() {
        let rows = DeviceBatch::try_new(Arc::new(Schema::empty()), vec![], values.len())?;
        return computed_of(lit(0).cast(DataType::UInt64), &rows, stream).await;
    }
    hashed(&fields, stream).await
}

/// Hashes lists of any layout.
async fn of_items(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    // Lists whose items follow each other, and whose offsets have been checked.
    let lists = match values.data_type() {
        DataType::ListView(item) | DataType::LargeListView(item) | DataType::FixedSizeList(item, _) => {
            cast(values, &large_list_of(item), &CastOptions::default(), stream).await?
        }
        _ => taken(values, stream).await?,
    };
    let (of, width) = match lists.layout().slots().next() {
        Some(Slot::Offsets(4)) => (DataType::Int32, 4),
        _ => (DataType::Int64, 8),
    };
    let offsets =
        column(&lists, of, lists.len() + 1, lists.buffers()[0].slice(lists.offset() * width, None))?;
    let bytes = computed(nth(0).cast(DataType::Int64) * 8i64, vec![offsets], stream).await?;
    let hashes = hashed(&[lists.children()[0].clone()], stream).await?;
    let mut parts = bytes.into_parts();
    (parts.data_type, parts.len) = (DataType::LargeBinary, lists.len());
    parts.buffers.extend_from_slice(hashes.buffers());
    hashed(&[DeviceArray::try_new(parts)?], stream).await
}

async fn of_members(
    values: &DeviceArray,
    fields: &UnionFields,
    mode: UnionMode,
    stream: &Stream,
) -> Result<DeviceArray> {
    // Every row is one of its member's.
    let union = taken(values, stream).await?;
    let numbers = |of: DataType, buffer: &Buffer, width: usize| {
        column(&union, of, union.len(), buffer.slice(union.offset() * width, None))
    };
    let types = numbers(DataType::Int8, &union.buffers()[0], 1)?;
    let mut chosen = computed(lit(0).cast(DataType::UInt64), vec![types.clone()], stream).await?;
    for (i, (id, _)) in fields.iter().enumerate() {
        let is_type = nth(0).eq(id);
        let mut of_type = hashed(&[union.child_rows(i)?], stream).await?;
        if mode == UnionMode::Dense {
            let offsets = numbers(DataType::Int32, &union.buffers()[1], 4)?;
            let none = Literal::null(DataType::Int32);
            let own = computed(if_else(is_type.clone(), nth(1), none), vec![types.clone(), offsets], stream);
            of_type = take(&of_type, &own.await?, &TakeOptions::default(), stream).await?;
        }
        let columns = vec![types.clone(), of_type, chosen];
        chosen = computed(if_else(is_type, nth(1), nth(2)), columns, stream).await?;
    }
    hashed(&[types, chosen], stream).await
}

/// All rows, taken one after the other.
async fn taken(values: &DeviceArray, stream: &Stream) -> Result<DeviceArray> {
    let all = engine(stream).numbers(values.len(), stream)?;
    take(values, &all, &TakeOptions::default(), stream).await
}

/// One buffer of an array as a column.
fn column(of: &DeviceArray, data_type: DataType, rows: usize, buffer: Buffer) -> Result<DeviceArray> {
    let (place, ready) = (of.place(), of.ready().cloned());
    DeviceArray::try_new(Parts { place, ready, buffers: vec![buffer], ..Parts::new(data_type, rows) })
}
