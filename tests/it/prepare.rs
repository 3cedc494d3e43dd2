//! Tests that `Device::prepare` loads all that operations need, and says how much that was.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_cast::can_cast_types;
use arrow_schema::DataType;
use bowstring::compute::{
    CastOptions, JoinOptions, Query, SortColumn, SortOptions, TakeOptions, Ties, aggregate, cast, concat,
    distinct, evaluate, filter, filter_where, join, rank, sort_by, take,
};
use bowstring::exchange::from_arrow;
use bowstring::expr::{Options, col, count, lit, max, min, sum};
use bowstring::ffi::DeviceType;
use bowstring::{Device, DeviceArray, DeviceBatch, Error, Kernels, Stream};

use crate::support::native::Native;
use crate::support::*;

/// So few rows that the interpreter of the images runs every operation on every type.
const ROWS: usize = 40;

fn there(stream: &Stream, data_type: &DataType) -> DeviceArray {
    let host = array(data_type, ROWS, Nulls::Some, &mut Random::new(ROWS as u64));
    stream.upload(&from_arrow(&host).unwrap()).unwrap()
}

fn batch(values: &DeviceArray, stream: &Stream) -> DeviceBatch {
    let numbers = there(stream, &DataType::Int64);
    let fields = [("0", values), ("1", &numbers)]
        .map(|(name, column)| arrow_schema::Field::new(name, column.data_type().clone(), true));
    let schema = Arc::new(arrow_schema::Schema::new(fields.to_vec()));
    DeviceBatch::try_new(schema, vec![values.clone(), numbers], ROWS).unwrap()
}

/// Runs the operations of some kernels on an array. A type that one does not support is none that it loads
/// anything for.
fn run(kernels: Kernels, values: &DeviceArray, stream: &Stream) -> Result<(), Error> {
    let up = |array: ArrayRef| stream.upload(&from_arrow(&array).unwrap()).unwrap();
    let batch = batch(values, stream);
    match kernels {
        Kernels::Filter => {
            let mask = BooleanArray::from_iter((0..ROWS).map(|row| (row % 5 > 0).then_some(row % 3 > 0)));
            filter(&batch, &up(Arc::new(mask)), stream).wait()?;
        }
        Kernels::Take => {
            let indices =
                arrow_array::Int32Array::from_iter((0..ROWS as i32).map(|row| (row % 4 > 0).then_some(row)));
            take(&batch, &up(Arc::new(indices)), &TakeOptions::default(), stream).wait()?;
            concat(&[values, &values.slice(3, 9)?], stream).wait()?;
        }
        Kernels::Cast | Kernels::Text => {
            // Casts of text that is inside of something else need both.
            let has_text =
                |of: &DataType| of.to_string().contains("Utf8") || of.to_string().contains("Binary");
            let is_flat = |of: &DataType| !of.is_nested() && !matches!(of, DataType::Dictionary(..));
            let from = values.data_type();
            for to in types().iter().filter(|to| can_cast_types(from, to)) {
                let of = match has_text(from) || has_text(to) {
                    false => Kernels::Cast,
                    true if is_flat(from) && is_flat(to) => Kernels::Text,
                    true => continue,
                };
                if of == kernels {
                    let _ = cast(values, to, &CastOptions::default(), stream).wait();
                }
            }
        }
        Kernels::Expressions => {
            evaluate(&batch, &[(col("1") * 2).alias("a")], stream).wait()?;
            filter_where(&batch, &col("0").eq(col("0")).and(col("1").lt(lit(9i64))), stream).wait()?;
            aggregate(&batch, &[sum(col("1")), count(col("0"))], None, stream).wait()?;
        }
        Kernels::Sort => {
            sort_by(&batch, &[SortColumn::new(values, SortOptions::default())], None, stream).wait()?;
            rank(values, SortOptions::default(), Ties::default(), stream).wait()?;
        }
        Kernels::Group => {
            distinct(values, stream).wait()?;
            let aggregates = [sum(col("1")), min(col("1")), max(col("1")), count(col("1"))];
            Query::new()
                .group_by([col("0")])
                .aggregate(aggregates)
                .bind(batch.schema(), &Options::default())?
                .run(&batch, stream)
                .wait()?;
        }
        Kernels::Join => {
            let on = std::slice::from_ref(values);
            join(&batch, &batch, (on, on), &JoinOptions::default(), stream).wait()?;
        }
        _ => unreachable!("a kind without operations"),
    }
    Ok(())
}

#[test]
fn no_operation_loads_what_was_not_prepared() {
    for kernels in Kernels::ALL {
        for (runtime, of) in [(DeviceType::Cuda, 0), (DeviceType::Rocm, 0)] {
            let native = Native::standin(runtime, of);
            let stream = native.device.stream().unwrap();
            let before = native.device.images_loaded().len();
            let loaded = native.device.prepare(&[kernels]).unwrap();
            let prepared = native.device.images_loaded().len();
            assert_eq!((loaded, native.device.prepare(&[kernels]).unwrap()), (prepared - before, 0));
            for data_type in types() {
                // A type that an operation does not support needs no kernel.
                let _ = run(kernels, &there(&stream, &data_type), &stream);
            }
            let late = native.device.images_loaded().split_off(prepared);
            assert_eq!(late, [], "{native:?} {kernels}");
        }
    }
}

#[test]
fn nothing_is_prepared_where_there_are_no_images() {
    for device in [Device::cpu(), Device::emulated()] {
        assert_eq!(device.prepare(&Kernels::ALL), Ok(0));
    }
    let native = Native::standin(DeviceType::Cuda, 0);
    assert_eq!(native.device.prepare(&[]), Ok(0));
}

#[test]
fn names_of_kernels_can_be_read() {
    for kernels in Kernels::ALL {
        assert_eq!(kernels.to_string().parse(), Ok(kernels));
    }
    let error = "sorts".parse::<Kernels>().unwrap_err().to_string();
    assert!(error.contains("\"sorts\"") && error.contains("sort, group, join"), "{error}");
}

#[test]
fn a_failure_to_load_is_the_error_and_the_rest_can_be_prepared_later() {
    let native = Native::standin(DeviceType::Cuda, 0);
    // The call fails on its thread, so that has to be the only one.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let standin = native.standin.unwrap();
    let failed = alone.install(|| {
        standin.fail_call(Some("cuModuleLoadDataEx"), 3, 209);
        let failed = native.device.prepare(&[Kernels::Sort]);
        assert!(standin.stop());
        failed
    });
    assert!(
        matches!(failed, Err(Error::Image { code: 209, .. } | Error::Driver { code: 209, .. })),
        "{failed:?}"
    );
    native.device.prepare(&[Kernels::Sort]).unwrap();
    assert_eq!(native.device.prepare(&[Kernels::Sort]), Ok(0));
}
