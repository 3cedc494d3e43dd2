//! The conversions against arrow-cast: every pair of fixed-width types, on the values where things change.
//!
//! For each pair the plan must agree with `can_cast_types`, every value's bits and whether it fits with a
//! safe cast of all values, and every value that does not fit must fail a strict cast alone.

use arrow_array::{Array, ArrayRef, make_array};
use arrow_buffer::Buffer;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_data::ArrayData;
use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use bowstring_kernels::numeric::direct::Truth;
use bowstring_kernels::numeric::divide::Divisor;
use bowstring_kernels::numeric::plan::{Unit, Zone};
use bowstring_kernels::numeric::words::Parameter;
use bowstring_kernels::numeric::{Conversion, Kind, Native, Number, Plan, Recipe, U256, Visitor, plan};
use std::panic::{AssertUnwindSafe, catch_unwind};

#[path = "numeric/values.rs"]
mod values;

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

fn unit(unit: &TimeUnit) -> Unit {
    match unit {
        TimeUnit::Second => Unit::Second,
        TimeUnit::Millisecond => Unit::Millisecond,
        TimeUnit::Microsecond => Unit::Microsecond,
        TimeUnit::Nanosecond => Unit::Nanosecond,
    }
}

fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::Int8 => Kind::Plain(Number::I8),
        DataType::Int16 => Kind::Plain(Number::I16),
        DataType::Int32 => Kind::Plain(Number::I32),
        DataType::Int64 => Kind::Plain(Number::I64),
        DataType::UInt8 => Kind::Plain(Number::U8),
        DataType::UInt16 => Kind::Plain(Number::U16),
        DataType::UInt32 => Kind::Plain(Number::U32),
        DataType::UInt64 => Kind::Plain(Number::U64),
        DataType::Float16 => Kind::Plain(Number::F16),
        DataType::Float32 => Kind::Plain(Number::F32),
        DataType::Float64 => Kind::Plain(Number::F64),
        DataType::Decimal32(p, s) => Kind::Decimal(Number::I32, *p, *s),
        DataType::Decimal64(p, s) => Kind::Decimal(Number::I64, *p, *s),
        DataType::Decimal128(p, s) => Kind::Decimal(Number::I128, *p, *s),
        DataType::Decimal256(p, s) => Kind::Decimal(Number::I256, *p, *s),
        DataType::Date32 => Kind::Date32,
        DataType::Date64 => Kind::Date64,
        DataType::Time32(u) => Kind::Time32(unit(u)),
        DataType::Time64(u) => Kind::Time64(unit(u)),
        DataType::Duration(u) => Kind::Duration(unit(u)),
        DataType::Interval(IntervalUnit::YearMonth) => Kind::YearMonth,
        DataType::Interval(IntervalUnit::DayTime) => Kind::DayTime,
        DataType::Interval(IntervalUnit::MonthDayNano) => Kind::MonthDayNano,
        DataType::Timestamp(u, zone) => Kind::Timestamp(
            unit(u),
            zone.as_ref().map(|zone| {
                let number = |range: std::ops::Range<usize>| zone[range].parse::<i32>().unwrap();
                let seconds = number(1..3) * 3600 + number(4..6) * 60;
                Zone::Fixed(if zone.starts_with('-') { -seconds } else { seconds })
            }),
        ),
        other => panic!("{other}"),
    }
}

fn types() -> Vec<DataType> {
    use DataType::*;
    let mut types = vec![
        Boolean, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64, Float16, Float32, Float64, Date32,
        Date64,
    ];
    types.extend([(9, 0), (9, 9), (5, 2), (1, 0), (4, -2), (9, -9), (3, -12)].map(|(p, s)| Decimal32(p, s)));
    types.extend([(18, 0), (18, 18), (10, 3), (18, -5), (2, -20)].map(|(p, s)| Decimal64(p, s)));
    types.extend(
        [(38, 0), (38, 38), (18, 2), (20, 10), (30, -10), (38, -38), (5, -100)]
            .map(|(p, s)| Decimal128(p, s)),
    );
    types.extend(
        [(76, 0), (76, 76), (40, 10), (76, 38), (50, -20), (76, -76), (76, -128)]
            .map(|(p, s)| Decimal256(p, s)),
    );
    // Not types at all: as targets an error.
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
    fn convert<C: Conversion<From: Native, To: Native> + Parameter>(self, conversion: C) -> Self::Output {
        let convert = |row: &Vec<u8>| match conversion.convert(read(row)) {
            (value, true) => Some(write(value)),
            (_, false) => None,
        };
        self.0.iter().map(convert).collect()
    }
    fn bits_to<B: Native + Truth>(self) -> Self::Output {
        self.0.iter().map(|row| Some(write(B::from_bool(row[0] == 1)))).collect()
    }
    fn bits_from<A: Native + Truth>(self) -> Self::Output {
        self.0.iter().map(|row| Some(vec![read::<A>(row).to_bool() as u8])).collect()
    }
}

/// A cast by arrow-cast.
///
/// A decimal becomes half precision through `f64`, and from there as the `half` crate likes: with its feature
/// `std` on an x86 that can, through `f32`, rounding again; else dropping 32 bits and rounding the rest. Float64
/// to Float16 is through `f32` on every machine, so that is the definition for decimals too.
fn arrow(array: &ArrayRef, to: &DataType, safe: bool) -> Result<Vec<Option<Vec<u8>>>, String> {
    let options = CastOptions { safe, ..Default::default() };
    let cast = || match (kind(array.data_type()), to) {
        (Kind::Decimal(..), DataType::Float16) => {
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

/// Compares one pair; gives the recipe if there is one.
fn compare(from: &DataType, to: &DataType, input: &[Vec<u8>]) -> Option<Recipe> {
    let context = format!("{from} to {to}");
    let plan = plan(kind(from), kind(to));
    assert_eq!(plan != Plan::Never, can_cast_types(from, to), "{context}: {plan:?}");
    let data = array(from, input);
    let (ours, recipe): (Vec<Option<Vec<u8>>>, _) = match plan {
        Plan::Never => return None,
        Plan::Overflow | Plan::InvalidTarget => {
            for safe in [true, false] {
                // Or a panic: a table of powers of ten that ends before the precision.
                arrow(&data, to, safe).expect_err(&context);
            }
            return None;
        }
        Plan::Same => (input.iter().cloned().map(Some).collect(), None),
        Plan::Zero => (vec![Some(vec![0; width(to)]); input.len()], None),
        Plan::NeedsZone => unreachable!("{context}"),
        Plan::Convert(recipe) => (recipe.visit(Rows(input)).expect(&context), Some(recipe)),
    };
    // One value can make it panic: value by value then. A decimal with more digits than its precision has no
    // right answer; any other value that makes it panic does not fit here.
    let alone = |row: &Vec<u8>| array(from, std::slice::from_ref(row));
    let theirs: Vec<Option<Option<Vec<u8>>>> = match arrow(&data, to, true) {
        Ok(theirs) => theirs.into_iter().map(Some).collect(),
        Err(_) => {
            let no_answer = if matches!(kind(from), Kind::Decimal(..)) { None } else { Some(None) };
            let one =
                |row| arrow(&alone(row), to, true).map_or(no_answer.clone(), |rows| Some(rows[0].clone()));
            input.iter().map(one).collect()
        }
    };
    for ((row, ours), theirs) in input.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs.as_ref().unwrap_or(ours), "{context}: {row:02x?} {:?}", alone(row));
    }
    if recipe.is_some_and(|recipe| !recipe.fallible) {
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
    recipe
}

/// The reciprocal's argument, tried where it is tightest: multiples of the divisor and their neighbours.
#[test]
fn division_by_a_constant_is_exact() {
    let mut random = values::Random(7);
    let powers = (0..39).map(|exponent| 10u128.pow(exponent));
    for d in powers.chain([2, 3, 7, 86_400, 1 << 64, (1 << 127) + 1, u128::MAX, u128::MAX / 2]) {
        let divisor = Divisor::new(d);
        let (high, low) = (random.word() as u128, random.word() as u128);
        let some = high << 64 | low;
        for multiple in [0, 1, some % (u128::MAX / d), u128::MAX / d] {
            for x in [
                multiple * d,
                (multiple * d).wrapping_sub(1),
                (multiple * d).wrapping_add(1),
                u128::MAX,
                some,
            ] {
                assert_eq!(divisor.divide(x), (x / d, x % d), "{x} / {d}");
            }
        }
        if let Ok(d) = u64::try_from(d) {
            let divisor = Divisor::new(d);
            for x in
                [0, 1, d, d - 1, u64::MAX, u64::MAX / d * d, (u64::MAX / d * d).wrapping_sub(1), low as u64]
            {
                assert_eq!(divisor.divide(x), (x / d, x % d), "{x} / {d}");
            }
        }
    }
}

#[test]
fn every_pair_agrees_with_arrow_cast() {
    // arrow-cast panics on dates at the ends of the calendar, by the dozen.
    std::panic::set_hook(Box::new(|_| ()));
    let types = types();
    let failures: Vec<String> = std::thread::scope(|scope| {
        let (types, check) = (&types, |from: &DataType, to: &DataType, input: &[Vec<u8>]| {
            let caught = catch_unwind(AssertUnwindSafe(|| compare(from, to, input)));
            caught.err().map(|panic| {
                panic.downcast_ref::<String>().cloned().unwrap_or_else(|| format!("{from} {to}"))
            })
        });
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                scope.spawn(move || {
                    let mut failures = Vec::new();
                    for from in types.iter().skip(worker).step_by(2) {
                        if matches!(plan(Kind::Plain(Number::I8), kind(from)), Plan::InvalidTarget) {
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
    let _ = std::panic::take_hook();
    let shown = &failures[..failures.len().min(12)];
    assert!(failures.is_empty(), "{} pairs fail:\n{}", failures.len(), shown.join("\n"));
}

fn width_or_bit(data_type: &DataType) -> usize {
    if *data_type == DataType::Boolean { 1 } else { width(data_type) }
}
