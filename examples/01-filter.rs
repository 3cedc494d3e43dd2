//! Builds a batch, filters it, takes rows, casts a column and counts its nulls: before and after, on each
//! device.
//!
//! Run it with `cargo run --example 01-filter`.

use std::error::Error;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use bowstring::compute::{CastOptions, TakeOptions, cast, filter, null_count, take};
use bowstring::exchange::{batch_from_arrow, batch_to_arrow, from_arrow, to_arrow};
use bowstring::{Device, DeviceBatch, Stream};

fn main() -> Result<(), Box<dyn Error>> {
    let city: ArrayRef = Arc::new(StringViewArray::from(vec![
        Some("Oslo"),
        Some("Lima"),
        None,
        Some("Pune"),
        Some("Reykjavík"),
    ]));
    let degrees: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(-3.5), Some(19.25), Some(21.0), None, Some(3e10)]));
    let batch = RecordBatch::try_from_iter([("city", city), ("degrees", degrees)])?;
    show("before", &batch)?;
    run(&Stream::cpu(), &batch)?;
    // Run the same on an emulated GPU, which has its own memory, streams and events, and runs the kernels of
    // real GPUs.
    run(&Device::emulated().stream()?, &batch)
}

/// Makes the same calls on any stream's device.
fn run(stream: &Stream, before: &RecordBatch) -> Result<(), Box<dyn Error>> {
    println!("\n=== on {} ({}) ===", stream.device().name(), stream.device().place());
    // This shares the memory of the arrow-rs batch if the device can read it, else copies it.
    let batch = stream.upload(&batch_from_arrow(before)?)?;
    let after = |batch: &DeviceBatch| batch_to_arrow(&stream.download(batch)?);

    // A null in the mask drops its row, as false does. The mask is read once for all columns.
    let mask = BooleanArray::from(vec![Some(true), Some(false), None, Some(true), Some(true)]);
    let mask = stream.upload(&from_arrow(&mask)?)?;
    let filtered = filter(&batch, &mask, stream).wait()?;
    show("filtered by true, false, null, true, true", &after(&filtered)?)?;

    // A null index gives a null row; one that is out of bounds would be an error.
    let indices = Int64Array::from(vec![Some(4), Some(4), None, Some(1)]);
    let indices = stream.upload(&from_arrow(&indices)?)?;
    let taken = take(&batch, &indices, &TakeOptions::default(), stream).wait()?;
    show("taken at 4, 4, null, 1", &after(&taken)?)?;

    // Safe, as arrow-rs calls it: what the type cannot hold becomes null.
    let degrees = &batch.columns()[1];
    println!("\nnulls among the degrees: {}", null_count(degrees, stream).wait()?);
    match cast(degrees, &DataType::Int32, &CastOptions::default(), stream).wait() {
        Ok(whole) => {
            let casted = to_arrow(&stream.download(&whole)?)?;
            show("cast", &RecordBatch::try_from_iter([("degrees as Int32", casted)])?)?;
            println!("nulls after the cast: {}", null_count(&whole, stream).wait()?);
        }
        // A device reports operations that it does not support yet; the README has the table.
        Err(error @ bowstring::Error::Unsupported { .. }) => println!("{error}"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Prints a batch, one line for each row.
fn show(title: &str, batch: &RecordBatch) -> Result<(), Box<dyn Error>> {
    let options = FormatOptions::default().with_null("null");
    let formatters = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
    let formatters = formatters.collect::<Result<Vec<_>, _>>()?;
    let names =
        batch.schema().fields().iter().map(|field| format!("  {:<16}", field.name())).collect::<String>();
    println!("\n{title}: {} rows\n{names}", batch.num_rows());
    for row in 0..batch.num_rows() {
        let cells = formatters.iter().map(|column| format!("  {:<16}", column.value(row).to_string()));
        println!("{}", cells.collect::<String>());
    }
    Ok(())
}
