//! Converts DataFusion's arrays to ours and back, since one process has two versions of arrow-rs. This file
//! goes when DataFusion takes our version of arrow.
//!
//! Both versions describe an array by the same parts: a type, a length and an offset, buffers, nulls and
//! children. Each direction walks these parts. It copies no buffer; each new buffer holds a handle on the
//! other version's buffer as its owner. Arrow's C structs would carry the same, but need one more struct and
//! a list of pointers for each array of each batch.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use arrow_data as ours;
use bowstring::array::{Batches, Place};
use bowstring::exchange::{from_arrow_data, import_batches, to_arrow_data};
use bowstring::ffi::ArrowDeviceArrayStream;
use bowstring::{Device, DeviceArray, DeviceBatch, Error};
use datafusion::arrow::array::{ArrayData, ArrayRef, RecordBatch, make_array};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::exec_err;
use datafusion::error::Result;

use crate::error::{external, refused};
use crate::types::{our_schema, our_type, their_type};

/// The code of an error that has no other.
const EIO: i32 = 5;

/// Columns of a DataFusion batch, under a schema of ours with their types: shared host memory.
pub(crate) fn batch_in(
    batch: &RecordBatch,
    columns: &[usize],
    schema: &arrow_schema::SchemaRef,
) -> Result<DeviceBatch> {
    let columns = columns.iter().zip(schema.fields());
    let arrays = columns.map(|(column, field)| array_in(batch.column(*column), field.data_type()));
    DeviceBatch::try_new(schema.clone(), arrays.collect::<Result<_>>()?, batch.num_rows()).map_err(external)
}

/// Converts an array to one of ours of a type, which has to be its own.
fn array_in(array: &ArrayRef, to: &arrow_schema::DataType) -> Result<DeviceArray> {
    let own = our_type(array.data_type());
    // Fields inside may have other names, or be declared NOT NULL where the schema's are not: the parts are
    // the same. All else would read the array's buffers as what they are not.
    if !own.equals_datatype(to) && !to.contains(&own) {
        return exec_err!("a column of {own} in a batch that has {to} there");
    }
    from_arrow_data(&data_in(&array.to_data(), to)).map_err(external)
}

/// Converts a batch of ours in host memory to DataFusion's, under `schema`.
pub(crate) fn batch_out(batch: &DeviceBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(array_out).collect::<Result<Vec<_>>>()?;
    let options = datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).map_err(refused)
}

/// DataFusion's batches as a stream of ours in host memory, which shares theirs; for consumers of Arrow's C
/// structs, which get DataFusion's errors as text.
pub fn batches_of(
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch>> + Send + 'static,
) -> Batches {
    let schema = Arc::new(our_schema(schema));
    let (of, columns) = (schema.clone(), (0..schema.fields().len()).collect::<Vec<_>>());
    let batches = batches.map(move |batch| {
        batch.and_then(|batch| batch_in(&batch, &columns, &of)).map_err(|error| Error::Producer {
            code: EIO,
            message: error.to_string(),
            metadata: Default::default(),
        })
    });
    Batches::new(schema, Place::CPU, batches)
}

/// Converts an array of ours in host memory to DataFusion's.
pub(crate) fn array_out(array: &DeviceArray) -> Result<ArrayRef> {
    Ok(make_array(data_out(&to_arrow_data(array).map_err(external)?)))
}

/// Takes over an `ArrowDeviceArrayStream` and returns its batches. The stream is given by the address of the
/// C struct, as programs in C or Python have it. Nothing is copied, and each batch is read on demand.
///
/// # Safety
///
/// The address must hold a stream that conforms to Arrow's C device interface, with valid arrays and
/// callbacks. No other code may use the stream.
pub unsafe fn batches_at(address: usize, device: &Device) -> Result<Batches> {
    let Some(mut stream) =
        NonNull::new(std::ptr::with_exposed_provenance_mut::<ArrowDeviceArrayStream>(address))
    else {
        return exec_err!("no stream at address 0");
    };
    // SAFETY: the caller promises a valid stream that no other code uses.
    unsafe { import_batches(stream.as_mut(), device) }.map_err(external)
}

fn data_in(data: &ArrayData, to: &arrow_schema::DataType) -> ours::ArrayData {
    let nulls = data.nulls().map(|nulls| {
        let bits = arrow_buffer::BooleanBuffer::new(buffer_in(nulls.buffer()), nulls.offset(), nulls.len());
        // SAFETY: the other version counted the same bits.
        unsafe { arrow_buffer::NullBuffer::new_unchecked(bits, nulls.null_count()) }
    });
    let children = data.child_data().iter().map(|child| data_in(child, &our_type(child.data_type())));
    let builder = ours::ArrayDataBuilder::new(to.clone())
        .len(data.len())
        .offset(data.offset())
        .nulls(nulls)
        .buffers(data.buffers().iter().map(buffer_in).collect())
        .child_data(children.collect());
    // SAFETY: valid parts of the same type in the other version, which has the same rules.
    unsafe { builder.build_unchecked() }
}

fn data_out(data: &ours::ArrayData) -> ArrayData {
    let nulls = data.nulls().map(|nulls| {
        let bits = BooleanBuffer::new(buffer_out(nulls.buffer()), nulls.offset(), nulls.len());
        // SAFETY: the other version counted the same bits.
        unsafe { NullBuffer::new_unchecked(bits, nulls.null_count()) }
    });
    let builder = ArrayData::builder(their_type(data.data_type()))
        .len(data.len())
        .offset(data.offset())
        .nulls(nulls)
        .buffers(data.buffers().iter().map(buffer_out).collect())
        .child_data(data.child_data().iter().map(data_out).collect());
    // SAFETY: valid parts of the same type in the other version, which has the same rules.
    unsafe { builder.build_unchecked() }
}

fn buffer_in(buffer: &Buffer) -> arrow_buffer::Buffer {
    // An empty buffer may point to nothing at all.
    let Some(start) = NonNull::new(buffer.as_ptr().cast_mut()) else { return Default::default() };
    // SAFETY: the owner keeps these bytes readable, and arrow-rs shares no buffer that is still written.
    unsafe { arrow_buffer::Buffer::from_custom_allocation(start, buffer.len(), Arc::new(buffer.clone())) }
}

fn buffer_out(buffer: &arrow_buffer::Buffer) -> Buffer {
    let Some(start) = NonNull::new(buffer.as_ptr().cast_mut()) else { return Default::default() };
    // SAFETY: as above.
    unsafe { Buffer::from_custom_allocation(start, buffer.len(), Arc::new(buffer.clone())) }
}
