//! Exports an array through the Arrow C data interface and imports it again, as two independent libraries
//! would. Nothing is copied; the memory returns to its producer when the last user is done.
//!
//! Run it with `cargo run --release --example 02-import-and-export`.

use arrow_array::{Array as _, StringArray};
use arrow_schema::{DataType, Field};
use bowstring::Stream;
use bowstring::compute::{CastOptions, cast};
use bowstring::exchange::{export_array, from_arrow, import_array, to_arrow};

fn main() -> bowstring::Result<()> {
    let stream = Stream::cpu();
    let numbers = from_arrow(&StringArray::from(vec![Some("1"), None, Some("three"), Some("4")]))?;
    println!("made:     {} rows of {}, on {}", numbers.len(), numbers.data_type(), numbers.place());

    // Export the array and its schema as C structs. They could now cross into C, C++ or Python.
    let (mut array, schema) = export_array(&numbers, &Field::new("numbers", DataType::Utf8, true))?;
    println!("exported: memory of kind {} (1 is the CPU), device {}", array.device_type(), array.device_id());
    // The exported struct keeps the memory alive by itself.
    drop(numbers);

    // Import: the struct is moved out of `array`, which is left marked as released.
    // SAFETY: these are the structs that were just exported.
    let (field, imported) = unsafe { import_array(&mut array, &schema, stream.device()) }?;
    assert!(array.is_released());
    println!("imported: {} as \"{}\"", imported.data_type(), field.name());

    let cast = to_arrow(&cast(&imported, &DataType::Int32, &CastOptions::default(), &stream).wait()?)?;
    println!("cast:     {} nulls of {} rows, because \"three\" is no number", cast.null_count(), cast.len());
    Ok(())
}
