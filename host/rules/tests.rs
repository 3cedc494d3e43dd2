//! Compares the rules and their functions with arrow-cast: every pair of fixed-width types, on the values at
//! which results change.
//!
//! For each pair, the rule must agree with `can_cast_types`. Every value's bits, and whether it fits, must
//! agree with a safe cast of all values. Every value that does not fit must fail a strict cast alone.

mod values;

use std::cell::Cell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bowstring_kernels::map::function::words::Parameter;
use bowstring_kernels::map::function::{Native, U256, ValueFunction};
use bowstring_kernels::map::functions::{EVERY, Function, FunctionCall, Visitor};

use super::{CastRule, cast_rule};

/// The value of little-endian bytes.
fn read<A: Native>(bytes: &[u8]) -> A {
    let mut all = [[0; 16]; 2];
    all.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
    let [low, high] = all.map(u128::from_le_bytes);
    A::from_bits(U256 { low, high })
}

fn write<B: Native>(value: B) -> Vec<u8> {
    let U256 { low, high } = value.to_bits();
    [low.to_le_bytes(), high.to_le_bytes()].concat()[..size_of::<B>()].to_vec()
}

fn types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32, Float64, Date32,
        Date64,
    ];
    types.extend(
        [(9, 0), (9, 9), (5, 2), (1, 0), (4, -2), (9, -1), (9, -9), (3, -12)].map(|(p, s)| Decimal32(p, s)),
    );
    types.extend([(18, 0), (18, 18), (10, 3), (18, -1), (18, -5), (2, -20)].map(|(p, s)| Decimal64(p, s)));
    types.extend(
        [(38, 0), (38, 38), (18, 2), (20, 10), (30, -10), (38, -1), (38, -38), (5, -100)]
            .map(|(p, s)| Decimal128(p, s)),
    );
    types.extend(
        [(76, 0), (76, 76), (40, 10), (76, 38), (50, -20), (76, -1), (76, -76), (76, -128)]
            .map(|(p, s)| Decimal256(p, s)),
    );
    // Invalid types; casts to them are errors.
    types.extend([Decimal32(5, 6), Decimal64(19, 0), Decimal128(0, 0), Decimal256(77, 1)]);
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];
    types.extend([Time32(units[0]), Time32(units[1]), Time64(units[2]), Time64(units[3])]);
    for unit in units {
        types.push(Duration(unit));
        for zone in [None, Some("+00:00"), Some("+05:30"), Some("-11:00"), Some("-23:59")] {
            types.push(Timestamp(unit, zone.map(Into::into)));
        }
    }
    types.extend([IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano].map(Interval));
    types
}

fn width(data_type: &DataType) -> usize {
    data_type.primitive_width().unwrap()
}

fn array(data_type: &DataType, rows: &[Vec<u8>]) -> ArrayRef {
    let bytes = match data_type {
        DataType::Boolean => rows
            .chunks(8)
            .map(|rows| rows.iter().enumerate().fold(0, |byte, (i, row)| byte | row[0] << i))
            .collect(),
        _ => rows.concat(),
    };
    let data =
        ArrayData::builder(data_type.clone()).len(rows.len()).add_buffer(Buffer::from_slice_ref(&bytes));
    make_array(data.build().unwrap())
}

/// The rows of an array as bytes, `None` where null.
fn rows(array: &ArrayRef) -> Vec<Option<Vec<u8>>> {
    let (data, is_bool) = (array.to_data(), *array.data_type() == DataType::Boolean);
    let buffer = data.buffers()[0].as_slice();
    let row = |i: usize| {
        let i = i + data.offset();
        if is_bool {
            return vec![buffer[i / 8] >> (i % 8) & 1];
        }
        let width = width(array.data_type());
        buffer[i * width..(i + 1) * width].to_vec()
    };
    (0..array.len()).map(|i| array.is_valid(i).then(|| row(i))).collect()
}

struct Rows<'a>(&'a [Vec<u8>]);

impl Visitor for Rows<'_> {
    type Output = Vec<Option<Vec<u8>>>;
    fn visit<F: ValueFunction<From: Native, To: Native> + Parameter>(self, function: F) -> Self::Output {
        let call = |row: &Vec<u8>| match function.call(read(row)) {
            (value, true) => Some(write(value)),
            (_, false) => None,
        };
        self.0.iter().map(call).collect()
    }
}

/// A cast by arrow-cast.
///
/// A decimal becomes half precision through `f64`, and from there as the `half` crate likes: with its feature
/// `std` on an x86 that can, through `f32`, rounding again; else dropping 32 bits and rounding the rest.
/// Float64 to Float16 is through `f32` on every machine, so that is the definition for decimals too.
fn arrow(array: &ArrayRef, to: &DataType, safe: bool) -> Result<Vec<Option<Vec<u8>>>, String> {
    let options = CastOptions { safe, ..Default::default() };
    let cast = || match (array.data_type().is_decimal(), to) {
        (true, DataType::Float16) => {
            let floats = cast_with_options(array, &DataType::Float64, &options)?;
            cast_with_options(&floats, to, &options)
        }
        _ => cast_with_options(array, to, &options),
    };
    match catch_unwind(AssertUnwindSafe(cast)) {
        Ok(result) => result.map(|array| rows(&array)).map_err(|error| error.to_string()),
        Err(_) => Err("panic".into()),
    }
}

/// Compares one pair; returns the function call if the rule has one.
fn compare(from: &DataType, to: &DataType, input: &[Vec<u8>]) -> Option<FunctionCall> {
    let context = format!("{from} to {to}");
    let rule = cast_rule(from, to);
    assert_eq!(rule != CastRule::Never, can_cast_types(from, to), "{context}: {rule:?}");
    let data = array(from, input);
    let (ours, call): (Vec<Option<Vec<u8>>>, _) = match rule {
        CastRule::Never => return None,
        CastRule::Overflow | CastRule::InvalidTarget => {
            for safe in [true, false] {
                // A panic is also accepted: a table of powers of ten ends before the precision.
                arrow(&data, to, safe).expect_err(&context);
            }
            return None;
        }
        CastRule::Same => (input.iter().cloned().map(Some).collect(), None),
        CastRule::Zero => (vec![Some(vec![0; width(to)]); input.len()], None),
        CastRule::Read(_) | CastRule::Write(_) | CastRule::NeedsZone => unreachable!("{context}"),
        CastRule::Map(call) => (call.visit(Rows(input)).expect(&context), Some(call)),
    };
    // A single value can make arrow-cast panic, so the values are cast one by one. A decimal with more digits
    // than its precision has no right answer; any other value that makes it panic does not fit here.
    let alone = |row: &Vec<u8>| array(from, std::slice::from_ref(row));
    let theirs: Vec<Option<Option<Vec<u8>>>> = match arrow(&data, to, true) {
        Ok(theirs) => theirs.into_iter().map(Some).collect(),
        Err(_) => {
            let no_answer = if from.is_decimal() { None } else { Some(None) };
            let one =
                |row| arrow(&alone(row), to, true).map_or(no_answer.clone(), |rows| Some(rows[0].clone()));
            input.iter().map(one).collect()
        }
    };
    for ((row, ours), theirs) in input.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs.as_ref().unwrap_or(ours), "{context}: {row:02x?} {:?}", alone(row));
    }
    if call.is_some_and(|call| !call.fallible) {
        assert!(ours.iter().all(Option::is_some), "{context}: does not fit although it always does");
    }
    let answered = || input.iter().zip(&ours).zip(&theirs).filter(|(_, theirs)| theirs.is_some());
    let good = answered().filter(|((_, ours), _)| ours.is_some());
    let (good, expected): (Vec<_>, Vec<_>) = good.map(|((row, ours), _)| (row.clone(), ours.clone())).unzip();
    assert_eq!(arrow(&array(from, &good), to, false), Ok(expected), "{context}: strict");
    let bad: Vec<_> = answered().filter(|((_, ours), _)| ours.is_none()).collect();
    for ((row, _), _) in bad.iter().step_by(bad.len() / 20 + 1) {
        arrow(&alone(row), to, false).expect_err(&context);
    }
    call
}

thread_local! {
    /// Whether this thread's panics are expected.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

#[test]
fn every_pair_agrees_with_arrow_cast() {
    // arrow-cast panics on many dates at the ends of the calendar. Panics of other threads belong to other
    // tests.
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !QUIET.get() {
            loud(panic);
        }
    }));
    let types = types();
    let reached = Mutex::new(HashSet::new());
    let failures: Vec<String> = std::thread::scope(|scope| {
        let (types, check) = (&types, |from: &DataType, to: &DataType, input: &[Vec<u8>]| {
            let caught = catch_unwind(AssertUnwindSafe(|| compare(from, to, input)));
            if let Ok(Some(call)) = &caught {
                reached.lock().unwrap().insert((call.function, call.from, call.to));
            }
            caught.err().map(|panic| {
                panic.downcast_ref::<String>().cloned().unwrap_or_else(|| format!("{from} {to}"))
            })
        });
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                scope.spawn(move || {
                    QUIET.set(true);
                    let mut failures = Vec::new();
                    for from in types.iter().skip(worker).step_by(2) {
                        if cast_rule(&DataType::Int8, from) == CastRule::InvalidTarget {
                            continue;
                        }
                        let input = values::of(from, width_or_bit(from));
                        failures.extend(types.iter().filter_map(|to| check(from, to, &input)));
                    }
                    failures
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let shown = &failures[..failures.len().min(12)];
    assert!(failures.is_empty(), "{} pairs fail:\n{}", failures.len(), shown.join("\n"));
    let reached = reached.into_inner().unwrap();
    let casts: HashSet<Function> = reached.iter().map(|(function, ..)| *function).collect();
    let unused = EVERY.iter().filter(|row| casts.contains(&row.0) && !reached.contains(row));
    let unused: Vec<_> = unused.collect();
    assert!(unused.is_empty(), "entries of casts that no rule asks for: {unused:?}");
}

fn width_or_bit(data_type: &DataType) -> usize {
    if *data_type == DataType::Boolean { 1 } else { width(data_type) }
}
