//! Makes the nth call of the device's runtime fail, for every n, in every operation, import, export and
//! stream. The outcome is a typed error, or the right answer if the failure could be compensated. Nothing
//! leaks, foreign structs are released once, and the device still works afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field, TimeUnit};
use bowstring::array::Batches;
use bowstring::compute::*;
use bowstring::device::testing::{self, Alive, EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{export_array, export_stream, from_arrow, import_array, import_stream, to_arrow};
use bowstring::expr::{Expr, bool_or, col, count, if_else, sum};
use bowstring::{DeviceArray, DeviceBatch, Error, Result, Stream};

use crate::exchange::foreign::{RawDeviceArray, Releases, produce, schema, structs};
use crate::support::operations::{Argument, OPERATIONS, Operation};
use crate::support::*;

const ROWS: usize = 100;

/// The input of each operation: a foreign array of a type, in the device's memory.
struct Given<'a> {
    values: ArrayRef,
    device: &'a EmulatedDevice,
    releases: &'a Releases,
}

impl Given<'_> {
    fn import(&self) -> Result<DeviceArray> {
        let place = self.device.device().place();
        let raw = RawDeviceArray {
            device_id: place.device_id,
            device_type: place.device_type as i32,
            ..produce(&self.values.to_data(), 8, self.releases).on_cpu()
        };
        let mut array = raw.into_ours();
        // SAFETY: a valid struct.
        unsafe { import_array(&mut array, &schema(self.values.data_type()), self.device.device()) }
            .map(|(_, array)| array)
    }

    fn on(&self, array: ArrayRef, stream: &Stream) -> Result<DeviceArray> {
        stream.upload(&from_arrow(&array)?)
    }

    fn mask(&self, stream: &Stream) -> Result<DeviceArray> {
        let kind = Mask { percent: 50.0, run: 2, nulls: Nulls::Some };
        self.on(Arc::new(mask(kind, ROWS, &mut Random::new(5))), stream)
    }

    /// A predicate that is true for some rows of any type.
    fn predicate(&self) -> Expr {
        match self.values.data_type() {
            DataType::Utf8 | DataType::Utf8View => {
                col("a").lt_eq(col("b")) & (col("a").ilike("%A_%") | col("b").in_list(["", "a"]))
            }
            of if of.is_numeric() => col("a").lt_eq(col("b")) & col("a").is_not_null(),
            _ => col("a").is_not_null(),
        }
    }

    fn batch(&self) -> Result<DeviceBatch> {
        let field = |name: &str| Field::new(name, self.values.data_type().clone(), true);
        let schema = Arc::new(arrow_schema::Schema::new(vec![field("a"), field("b")]));
        DeviceBatch::try_new(schema, vec![self.import()?, self.import()?], ROWS)
    }

    /// Two batches by a number; `None` for most types, since a few are enough.
    fn keyed(&self, stream: &Stream) -> Result<Option<Batches>> {
        if !matches!(self.values.data_type(), DataType::Utf8View | DataType::Boolean) {
            return Ok(None);
        }
        let keys =
            |first: i64| Int64Array::from_iter_values((0..ROWS as i64).map(|row| (row + first) * 7 % 31));
        let batch = |first| {
            let columns = vec![self.on(Arc::new(keys(first)), stream)?, self.import()?];
            let fields = ["k", "v"].into_iter().zip(&columns);
            let fields = fields.map(|(name, column)| Field::new(name, column.data_type().clone(), true));
            let schema = Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()));
            DeviceBatch::try_new(schema, columns, ROWS)?.slice(0, 20)
        };
        let batches = [batch(0)?, batch(5)?];
        let schema = batches[0].schema().clone();
        Ok(Some(Batches::new(schema, stream.device().place(), batches.into_iter().map(Ok))))
    }
}

/// A piece of work that ends with rows on the host.
type Work<'a> = &'a dyn Fn(&Given<'_>, &Stream) -> Result<Vec<Value>>;
type PlainWork = fn(&Given<'_>, &Stream) -> Result<Vec<Value>>;

fn down(array: &DeviceArray, stream: &Stream) -> Result<Vec<Value>> {
    Ok(rows(&to_arrow(&stream.download(array)?)?))
}

fn down_batch(batch: &DeviceBatch, stream: &Stream) -> Result<Vec<Value>> {
    let mut all = vec![];
    for column in stream.download(batch)?.columns() {
        all.extend(rows(&to_arrow(column)?));
    }
    Ok(all)
}

fn all_down(batches: Batches, stream: &Stream) -> Result<Vec<Value>> {
    // A join that is short of memory returns the same rows in more batches.
    let mut all = vec![vec![]; batches.schema().fields().len()];
    for batch in batches {
        for (column, all) in batch?.columns().iter().zip(&mut all) {
            all.extend(down(column, stream)?);
        }
    }
    Ok(all.concat())
}

/// Work outside the table of operations, or with more than one call.
const WORKS: &[(&str, PlainWork)] = &[
    ("download", |given, stream| down(&given.import()?, stream)),
    ("upload", |given, stream| down(&given.on(given.values.clone(), stream)?, stream)),
    ("filter of a batch", |given, stream| {
        down_batch(&filter(&given.batch()?, &given.mask(stream)?, stream).wait()?, stream)
    }),
    ("filter of a batch, dropped", |given, stream| {
        drop(filter(&given.batch()?, &given.mask(stream)?, stream));
        Ok(vec![])
    }),
    ("Selection", |given, stream| {
        let selection = Selection::of_mask(&given.mask(stream)?, stream).wait()?;
        let first = down(&selection.filter(&given.import()?).wait()?, stream)?;
        assert_eq!(first, down(&selection.filter(&given.import()?).wait()?, stream)?);
        Ok(first)
    }),
    ("concat", |given, stream| {
        let all = [given.import()?, given.import()?, given.on(given.values.slice(7, 50), stream)?];
        down(&concat(&all.each_ref(), stream).wait()?, stream)
    }),
    ("filter_where", |given, stream| {
        down_batch(&filter_where(&given.batch()?, &given.predicate(), stream).wait()?, stream)
    }),
    ("evaluate", |given, stream| {
        let both = [given.predicate(), if_else(given.predicate(), 1, -1).cast(DataType::Int16)];
        down_batch(&evaluate(&given.batch()?, &both, stream).wait()?, stream)
    }),
    ("aggregate", |given, stream| {
        let all = [count(col("a")), bool_or(given.predicate()), sum(if_else(given.predicate(), 1, 0) + 1)];
        let row = aggregate(&given.batch()?, &all, Some(&given.predicate()), stream).wait()?;
        down_batch(&row, &Stream::cpu())
    }),
    ("takes and casts of lists of fixed size, runs and zones", |given, stream| {
        // One type of values is enough: these have their own.
        if *given.values.data_type() != DataType::Int32 {
            return Ok(vec![]);
        }
        let items = Arc::new(Field::new_list_field(DataType::Int32, true));
        let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
        let values = Arc::new(Field::new("values", DataType::Int32, true));
        let zoned = |zone: &str| DataType::Timestamp(TimeUnit::Second, Some(zone.into()));
        let made = |of: &DataType| given.on(array(of, 20, Nulls::Some, &mut Random::new(3)), stream);
        let runs = DataType::RunEndEncoded(ends, values);
        let indices = given.on(Arc::new(arrow_array::Int32Array::from(vec![3, 19, 0, 3])), stream)?;
        let mut all = vec![];
        for of in [DataType::FixedSizeList(items, 2), runs.clone()] {
            let taken = take(&made(&of)?, &indices, &TakeOptions::default(), stream).wait()?;
            all.extend(down(&taken, stream)?);
        }
        for (of, to) in [
            (runs.clone(), DataType::Int64),
            (DataType::Int32, runs),
            (zoned("Europe/Berlin"), DataType::Date32),
        ] {
            all.extend(down(&cast(&made(&of)?, &to, &CastOptions::default(), stream).wait()?, stream)?);
        }
        Ok(all)
    }),
    ("a sort in two runs", |given, stream| {
        let Some(batches) = given.keyed(stream)? else { return Ok(vec![]) };
        let by = [(0, SortOptions::default())];
        let sorted = batches::sort_batches(batches, &by, None, Some(0), stream);
        all_down(sorted, stream)
    }),
    ("a join in parts", |given, stream| {
        let Some(left) = given.keyed(stream)? else { return Ok(vec![]) };
        let Some(right) = given.keyed(stream)? else { return Ok(vec![]) };
        let options = JoinOptions { kind: JoinKind::Full, ..JoinOptions::default() };
        let joined = batches::join_batches([left, right], [&[0], &[0]], &options, Some(2000), stream)?;
        all_down(joined, stream)
    }),
    ("export", |given, stream| {
        let field = Field::new("f", given.values.data_type().clone(), true);
        let (mut exported, schema) = export_array(&given.on(given.values.clone(), stream)?, &field)?;
        // SAFETY: the library's own structs.
        let (_, again) = unsafe { import_array(&mut exported, &schema, stream.device()) }?;
        down(&again, stream)
    }),
    ("stream", |given, stream| {
        let field = Field::new("f", given.values.data_type().clone(), true);
        let arrays = vec![given.import(), given.import()];
        let mut exported = export_stream(field, stream.device().place().device_type, arrays.into_iter());
        // SAFETY: the library's own struct.
        let reader = unsafe { import_stream(&mut exported, stream.device()) }?;
        let mut all = vec![];
        for array in reader {
            all.extend(down(&array?, stream)?);
        }
        Ok(all)
    }),
];

fn some_types() -> Vec<DataType> {
    let utf8 = Arc::new(Field::new_list_field(DataType::Utf8, true));
    vec![
        DataType::Int32,
        DataType::Int64,
        DataType::Boolean,
        DataType::Utf8,
        DataType::Utf8View,
        DataType::List(utf8.clone()),
        DataType::Struct(
            vec![Field::new("a", DataType::Utf8, true), Field::new("b", DataType::Int8, true)].into(),
        ),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
    ]
}

/// An argument for which a device supports the operation; `None` if it supports none.
fn an_argument(operation: &Operation, values: &ArrayRef, seed: u64) -> Option<Argument> {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    let stream = device.device().stream().unwrap();
    let there = stream.upload(&from_arrow(values).unwrap()).unwrap();
    let mut rng = Random::new(seed);
    let drawn = (0..20).filter_map(|_| (operation.argument)(values.data_type(), ROWS, &mut rng));
    drawn.into_iter().find(|argument| {
        let answer = operation.run(&there, argument, &stream);
        !matches!(answer, Err(Error::Unsupported { .. }))
    })
}

/// Breaks a device at the nth call, and repairs it; the repair returns the number of failed calls.
struct Harm {
    break_it: fn(&EmulatedDevice, u64),
    mend: fn(&EmulatedDevice) -> u64,
}

/// Does the work on a separate device that is broken. Returns the outcome and the number of failed calls.
fn attempt(
    work: Work<'_>,
    values: &ArrayRef,
    harm: &Harm,
    n: u64,
    context: &str,
) -> (Option<Vec<Value>>, u64) {
    let options = EmulatorOptions { keep: Some(0), ..Default::default() };
    let device = EmulatedDevice::new(options).unwrap();
    let (lost, again) = (Releases::default(), Releases::default());
    let given = |releases| Given { values: values.clone(), device: &device, releases };
    let go = |given: &Given<'_>| work(given, &device.device().stream()?);
    (harm.break_it)(&device, n);
    let answer = catch_unwind(AssertUnwindSafe(|| go(&given(&lost))));
    let failed = (harm.mend)(&device);
    let answer = match answer.unwrap_or_else(|_| panic!("{context}: panicked")) {
        Ok(answer) => Some(answer),
        Err(Error::OutOfMemory { .. } | Error::Producer { .. }) => None,
        Err(Error::Driver { .. }) if failed > 0 => None,
        Err(error) => panic!("{context}: {error:?} after {failed} failures"),
    };
    // The repaired device works, and gives the same.
    let after = go(&given(&again)).unwrap_or_else(|error| panic!("{context}: afterwards {error}"));
    assert!(answer.as_ref().is_none_or(|answer| *answer == after), "{context}");
    testing::drain(device.device());
    // Every produced array was released, as a whole tree of structs.
    for releases in [&lost, &again] {
        assert_eq!(releases.count() % structs(&values.to_data()), 0, "{context}");
    }
    assert_eq!(device.faults(), [], "{context}");
    assert_eq!(device.close().alive(), Alive::default(), "{context}");
    (answer, failed)
}

fn all(harm: &Harm, least: u64) {
    let (mut injected, mut recovered) = (0, 0);
    for (seed, data_type) in (0..).zip(some_types()) {
        let values = array(&data_type, ROWS, Nulls::Some, &mut Random::new(seed));
        let mut all = |name: &str, work: Work<'_>| {
            for n in 1.. {
                let context = format!("{name} of {data_type}, call {n}");
                let (answer, failed) = attempt(work, &values, harm, n, &context);
                if failed == 0 && answer.is_some() {
                    break;
                }
                injected += 1;
                recovered += u64::from(answer.is_some());
            }
        };
        for (_, (name, work)) in (0..).zip(WORKS).filter(|(at, _)| is_asked(*at)) {
            all(name, work);
        }
        for (_, operation) in (0..).zip(OPERATIONS).filter(|(at, _)| is_asked(*at)) {
            let Some(argument) = an_argument(operation, &values, seed) else { continue };
            all(operation.name, &|given, stream| {
                operation.run(&uncounted(given.import()?), &argument, stream)?.read(stream)
            });
        }
    }
    println!("faults: {injected} injected, {recovered} of them without consequence");
    let least = if asked().is_some() { least / 5 } else { least };
    assert!(injected >= least, "{injected} faults injected");
}

/// The third of the operations that `BOWSTRING_FAULTS` (0, 1 or 2) asks for; without it, all are.
fn asked() -> Option<usize> {
    std::env::var("BOWSTRING_FAULTS").ok()?.parse().ok()
}

fn is_asked(operation: usize) -> bool {
    asked().is_none_or(|third| operation % 3 == third)
}

#[test]
fn every_call_may_fail_once() {
    all(&Harm { break_it: |device, n| device.fail(None, n, 1), mend: EmulatedDevice::stop_failing }, 4000);
}

#[test]
fn a_device_may_be_lost_at_every_call() {
    all(
        &Harm { break_it: |device, n| device.fail(None, n, u64::MAX), mend: EmulatedDevice::stop_failing },
        4000,
    );
}

#[test]
fn memory_may_run_out_at_every_allocation() {
    let break_it = |device: &EmulatedDevice, n| device.fail(Some("alloc"), n, u64::MAX);
    all(&Harm { break_it, mend: EmulatedDevice::stop_failing }, 450);
}

#[test]
fn the_pool_may_be_too_small() {
    let break_it = |device: &EmulatedDevice, n| device.device().set_memory_limit(n as usize * 512);
    let mend = |device: &EmulatedDevice| {
        device.device().set_memory_limit(usize::MAX);
        0
    };
    all(&Harm { break_it, mend }, 500);
}
