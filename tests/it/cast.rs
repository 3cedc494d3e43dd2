//! Compares casts with arrow-cast: every pair of types that it knows, safe and strict, sliced and displaced,
//! at the edges of every number type.

use std::sync::Arc;

use arrow_array::*;
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DataType, TimeUnit};
use bowstring::compute::{can_cast, cast};
use bowstring::exchange::to_arrow;
use bowstring::ffi::DeviceType;
use bowstring::{Error, Stream};

use crate::support::*;

fn options(safe: bool) -> CastOptions<'static> {
    CastOptions { safe, ..CastOptions::default() }
}

/// Casts on every device, and compares the rows, or the error and the row that it names, with arrow-cast. The
/// caller passes the devices: creating them starts threads, which takes longer than a cast of a few rows.
fn check(
    targets: &[Target],
    array: &ArrayRef,
    (offset, len): (usize, usize),
    form: Form,
    to: &DataType,
    safe: bool,
) {
    let from = array.data_type();
    let context = format!("{from} to {to}, safe {safe}, rows {offset}+{len} {form:?}");
    let theirs = cast_with_options(&array.slice(offset, len), to, &options(safe));
    for target in targets {
        let values = target.import_as(form, array, offset, len);
        // A GPU reports a row that does not fit when the result is awaited.
        let ours = cast(&values, to, &options(safe), &target.stream)
            .wait()
            .and_then(|ours| to_arrow(&target.stream.download(&ours)?).map(|_| ours));
        match (ours, &theirs) {
            (Err(Error::Unsupported { device, .. }), _) if device != DeviceType::Cpu => {
                assert!(!converts_by_value(from, to), "{context}: not on {target:?}");
            }
            (Ok(ours), Ok(theirs)) => target.assert_same(&ours, theirs, &context),
            (Err(error), Err(_)) => check_row(&error, &array.slice(offset, len), to, &context),
            (Err(error), Ok(_)) => panic!("{context}: {error}"),
            (Ok(_), Err(error)) => panic!("{context}: ours is fine, theirs: {error}"),
        }
    }
}

/// Whether every device supports the cast: fixed widths, and no time zone that needs a database.
fn converts_by_value(from: &DataType, to: &DataType) -> bool {
    [from, to].into_iter().all(|data_type| match data_type {
        DataType::Timestamp(_, Some(zone)) => zone.starts_with(['+', '-']),
        other => other.primitive_width().is_some() || *other == DataType::Boolean,
    })
}

/// Checks that an error with a row names the first row that cannot be cast by itself.
fn check_row(error: &Error, array: &ArrayRef, to: &DataType, context: &str) {
    match error {
        Error::Cast { row, from, to: named, .. } => {
            let encoded =
                |of: &DataType| matches!(of, DataType::Dictionary(..) | DataType::RunEndEncoded(..));
            let nested = |of: &DataType| of.is_nested() || encoded(of);
            if (from, named) != (array.data_type(), to) {
                // A device names the item, field or value that it was casting when it reached the row.
                assert!(nested(array.data_type()) || nested(to), "{context}: {error}");
                return;
            }
            let fails =
                |row: usize, rows| cast_with_options(&array.slice(row, rows), to, &options(false)).is_err();
            // If 1024 rows together do not fail, none of them does.
            let many = |row: usize| 1024.min(array.len() - row);
            let parts = (0..array.len()).step_by(1024).filter(|row| fails(*row, many(*row)));
            let first = parts.flat_map(|row| row..row + many(row)).find(|row| fails(*row, 1));
            assert_eq!(Some(*row), first, "{context}");
        }
        // arrow-cast's own errors have no row: they occur only if arrow-cast does the cast itself, or if no
        // row causes the error.
        Error::Arrow { .. } => {
            let ours = array.data_type().primitive_width().and(to.primitive_width()).is_some();
            let always = cast_with_options(array, to, &options(true)).is_err();
            assert!(!ours || always, "{context}: {error}");
        }
        other => panic!("{context}: {other}"),
    }
}

#[test]
fn every_pair_that_arrow_casts() {
    let types = types();
    let mut pairs = 0;
    for (seed, from) in types.iter().enumerate() {
        let mut rng = Random::new(seed as u64);
        let targets = devices();
        let arrays: Vec<_> = Nulls::ALL.map(|nulls| array(from, 150, nulls, &mut rng)).into();
        for to in &types {
            assert_eq!(can_cast(from, to), can_cast_types(from, to), "{from} to {to}");
            if !can_cast_types(from, to) {
                let values = targets[0].import(&arrays[0]);
                let error = cast(&values, to, &options(true), &Stream::cpu()).wait().unwrap_err();
                assert!(
                    matches!(error, Error::Unsupported { operation: "cast", .. }),
                    "{from} to {to}: {error}"
                );
                continue;
            }
            pairs += 1;
            for (i, array) in arrays.iter().enumerate() {
                let offset = OFFSETS[(pairs + i) % OFFSETS.len()];
                for safe in [true, false] {
                    check(&targets, array, (offset, 150 - offset), Form::ALL[(pairs + i) % 3], to, safe);
                }
                // Short slices, so that some strict casts succeed.
                for row in 0..12 {
                    check(&targets, array, (row * 11, row % 4), Form::SlicedAfter, to, false);
                }
            }
        }
    }
    println!("{pairs} pairs of {} types", types.len());
    assert_eq!(pairs, 1_370);
}

/// The types that are converted value by value, with more parameters than in the list of all types.
fn fixed_types() -> Vec<DataType> {
    use DataType::*;
    let mut types: Vec<_> =
        types().into_iter().filter(|data_type| data_type.primitive_width().is_some()).collect();
    types.extend([
        Boolean,
        Decimal32(3, 0),
        Decimal32(9, -2),
        Decimal64(5, 5),
        Decimal128(18, 2),
        Decimal128(20, 0),
        Decimal128(38, 38),
        Decimal128(10, -5),
        Decimal128(38, -20),
        Decimal256(40, 4),
        Decimal256(76, -60),
        Timestamp(TimeUnit::Second, Some("-09:30".into())),
        Timestamp(TimeUnit::Nanosecond, Some("+0545".into())),
    ]);
    types
}

#[test]
fn fixed_width_pairs_at_many_lengths_and_offsets() {
    let types = fixed_types();
    let mut rng = Random::new(7);
    for from in &types {
        let targets = devices();
        let arrays = Nulls::ALL.map(|nulls| array(from, 400, nulls, &mut rng));
        for to in types.iter().filter(|to| can_cast_types(from, to)) {
            for len in [0, 1, 63, 64, 65, 130, 300] {
                let offset = OFFSETS[rng.below(OFFSETS.len())];
                let array = &arrays[rng.below(arrays.len())];
                check(&targets, array, (offset, len), Form::ALL[rng.below(3)], to, true);
                check(&targets, array, (offset, len), Form::ALL[rng.below(3)], to, false);
            }
        }
    }
}

/// Enough rows for several threads, with misfits and nulls far apart.
#[test]
fn many_rows_on_many_threads() {
    let (targets, rows) = (devices(), 700_000);
    let mut numbers: Vec<Option<i64>> = (0..rows as i64).map(|i| Some(i * 3 - 1_000_000)).collect();
    for i in [5, 64, 349_999, 600_000] {
        numbers[i] = None;
    }
    let fits: ArrayRef = Arc::new(Int64Array::from(numbers.clone()));
    for i in [599_999, 600_001, 699_998] {
        numbers[i] = Some(i64::MAX - i as i64);
    }
    let does_not: ArrayRef = Arc::new(Int64Array::from(numbers));
    for to in [
        DataType::Int32,
        DataType::Int8,
        DataType::UInt64,
        DataType::Float64,
        DataType::Boolean,
        DataType::Decimal128(18, 2),
        DataType::Date32,
    ] {
        for array in [&fits, &does_not] {
            for safe in [true, false] {
                check(&targets, array, (0, rows), Form::SlicedAfter, &to, safe);
                check(&targets, array, (33, rows - 50), Form::Displaced, &to, safe);
            }
        }
    }
    let bits = cast_with_options(&fits, &DataType::Boolean, &options(true)).unwrap();
    let many: ArrayRef = arrow_select::concat::concat(&[&bits, &bits, &bits, &bits]).unwrap();
    check(&targets, &many, (7, 2_700_001), Form::SlicedAfter, &DataType::Int32, true);

    let values = targets[0].import(&does_not);
    let error = cast(&values, &DataType::Int32, &options(false), &Stream::cpu()).wait().unwrap_err();
    let Error::Cast { row, problem, .. } = error else { panic!("{error}") };
    assert_eq!((row, problem.as_str()), (599_999, "9223372036854175808 does not fit"));
}

/// Written-out definitions of casts: the row's value, and whether it fits.
#[test]
fn numbers_by_their_plain_definition() {
    let floats: Vec<f64> = {
        let mut edges =
            vec![0.0, -0.0, 0.5, -0.5, 0.999, -0.999, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for power in [7, 8, 15, 16, 31, 32, 63, 64] {
            let edge = 2f64.powi(power);
            for edge in [edge, -edge] {
                edges.extend([
                    edge,
                    edge.next_up(),
                    edge.next_down(),
                    edge - 1.0,
                    edge + 1.0,
                    edge - 0.5,
                    edge + 0.5,
                ]);
            }
        }
        edges.extend([f64::MIN, f64::MAX, f64::MIN_POSITIVE, 5e-324, 65_504.0, 65_520.0]);
        edges
    };
    let array: ArrayRef = Arc::new(Float64Array::from(floats.clone()));
    fn whole<T: TryFrom<i128>>(value: f64) -> Option<T> {
        // No value above 2^100 fits, but `as` would saturate.
        (value.abs() < 1e30).then(|| T::try_from(value.trunc() as i128).ok())?
    }
    let casted = |to| {
        let values = devices()[0].import(&array);
        devices()[0].export(&cast(&values, &to, &options(true), &Stream::cpu()).wait().unwrap())
    };
    macro_rules! integers {
        ($($native:ty, $variant:ident, $array:ty;)*) => {$(
            let expected: $array = floats.iter().map(|value| whole::<$native>(*value)).collect();
            assert_eq!(casted(DataType::$variant).as_ref(), &expected as &dyn Array);
        )*};
    }
    integers! {
        i8, Int8, Int8Array; i16, Int16, Int16Array; i32, Int32, Int32Array; i64, Int64, Int64Array;
        u8, UInt8, UInt8Array; u16, UInt16, UInt16Array; u32, UInt32, UInt32Array; u64, UInt64, UInt64Array;
    }
    let truth: BooleanArray = floats.iter().map(|value| Some(*value != 0.0)).collect();
    assert_eq!(casted(DataType::Boolean).as_ref(), &truth as &dyn Array);
}

/// If all digits are after the decimal point, only zero fits.
#[test]
fn zero_fits_where_no_other_number_does() {
    let values = Decimal128Array::from(vec![Some(0), None, Some(1)]).with_precision_and_scale(10, 0);
    let (values, to): (ArrayRef, _) = (Arc::new(values.unwrap()), DataType::Decimal128(38, 38));
    let theirs = cast_with_options(&values, &to, &options(true)).unwrap();
    for target in devices() {
        let ours = cast(&target.import(&values), &to, &options(true), &target.stream).wait().unwrap();
        target.assert_same(&ours, &theirs, &to);
    }
}

#[test]
fn bits_that_do_not_change_are_shared() {
    use DataType::*;
    let zoned = |unit, zone: &str| Timestamp(unit, Some(zone.into()));
    let (seconds, micros) = (TimeUnit::Second, TimeUnit::Microsecond);
    for (from, to) in [
        (Int32, Int32),
        (Int32, Date32),
        (Date32, Int32),
        (Int32, Time32(seconds)),
        (Int64, Timestamp(seconds, None)),
        (Int64, zoned(micros, "+02:00")),
        (Timestamp(micros, None), Int64),
        (zoned(micros, "+02:00"), zoned(micros, "America/New_York")),
        (zoned(micros, "Europe/Berlin"), Timestamp(micros, None)),
        (Int64, Duration(micros)),
        (Date64, Timestamp(TimeUnit::Millisecond, None)),
        (Decimal128(10, 2), Decimal128(20, 2)),
        (Utf8, Binary),
        (LargeUtf8, LargeBinary),
        (Utf8View, BinaryView),
        (types()[46].clone(), types()[46].clone()),
    ] {
        let array = array(&from, 100, Nulls::Some, &mut Random::new(3));
        let values = devices()[0].import(&array).slice(9, 80).unwrap();
        let casted = cast(&values, &to, &options(true), &Stream::cpu()).wait().unwrap();
        let places = |array: &bowstring::DeviceArray| {
            let of = |buffer: &bowstring::array::Buffer| (buffer.address(), buffer.bytes());
            let validity = array.validity().map(|bits| (of(&bits.buffer), bits.offset));
            (array.buffers().iter().map(of).collect::<Vec<_>>(), validity, array.offset(), array.len())
        };
        assert_eq!(places(&values), places(&casted), "{from} to {to}");
        assert_eq!(casted.data_type(), &to);
    }
}

/// If no value can fail, the result shares the input's validity, including its bit offset.
#[test]
fn validity_is_shared_where_nothing_fails() {
    let array: ArrayRef = Arc::new(Int64Array::from_iter((0..200).map(|i| (i % 3 > 0).then_some(i))));
    let values = devices()[0].import(&array).slice(13, 150).unwrap();
    let before = values.validity().unwrap();
    for to in [DataType::Float64, DataType::Int8, DataType::Int32, DataType::Decimal128(18, 2)] {
        let values = if to == DataType::Int8 { values.slice(0, 100).unwrap() } else { values.clone() };
        let casted = cast(&values, &to, &options(true), &Stream::cpu()).wait().unwrap();
        let after = casted.validity().unwrap();
        assert_eq!((after.buffer.address(), after.offset), (before.buffer.address(), before.offset), "{to}");
    }
}

#[test]
fn format_options_are_passed_on() {
    let array: ArrayRef = Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(86_400)]));
    let format = bowstring::compute::FormatOptions::new().with_timestamp_format(Some("%Y/%m/%d"));
    let options = CastOptions { safe: true, format_options: format };
    let values = devices()[0].import(&array);
    let ours = devices()[0].export(&cast(&values, &DataType::Utf8, &options, &Stream::cpu()).wait().unwrap());
    let expected = StringArray::from(vec![Some("1970/01/01"), None, Some("1970/01/02")]);
    assert_eq!(ours.as_ref(), &expected as &dyn Array);
}

#[test]
fn strict_text_names_its_row() {
    let array: ArrayRef = Arc::new(StringArray::from(vec![Some("1"), None, Some("x"), Some("y")]));
    let values = devices()[0].import(&array);
    let error = cast(&values, &DataType::Int32, &options(false), &Stream::cpu()).wait().unwrap_err();
    assert!(matches!(error, Error::Cast { row: 2, .. }), "{error}");
    let error =
        cast(&values, &DataType::Decimal128(50, 2), &options(true), &Stream::cpu()).wait().unwrap_err();
    assert!(matches!(error, Error::Arrow { operation: "cast", .. }), "{error}");
}

#[test]
fn types_of_a_negative_size_and_times_in_other_units_are_refused() {
    let lists: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<types::Int32Type, _, _>(
        [Some([Some(1)]), Some([Some(2)])],
        1,
    ));
    let item = Arc::new(arrow_schema::Field::new("item", DataType::Int32, true));
    let negative = DataType::FixedSizeList(item, -3);
    let nested = DataType::List(Arc::new(arrow_schema::Field::new("item", negative.clone(), true)));
    for target in &devices() {
        let values = target.import(&lists);
        for to in [&negative, &nested, &DataType::FixedSizeBinary(-1)] {
            for safe in [true, false] {
                let casted = cast(&values, to, &options(safe), &target.stream).wait();
                assert!(matches!(casted, Err(Error::Invalid { .. })), "{to} on {target:?}: {casted:?}");
            }
        }
        use TimeUnit::*;
        let units = [Second, Millisecond, Microsecond, Nanosecond];
        let times = units.iter().flat_map(|unit| [DataType::Time32(*unit), DataType::Time64(*unit)]);
        for from in [DataType::Int32, DataType::Int64, DataType::Time32(Second), DataType::Time64(Nanosecond)]
        {
            let values: ArrayRef = match from.primitive_width() {
                Some(4) => Arc::new(Int32Array::from(vec![Some(1), None])),
                _ => Arc::new(Int64Array::from(vec![Some(1), None])),
            };
            let values = arrow_cast::cast(&values, &from).unwrap();
            for to in times.clone() {
                let expected = arrow_cast::cast(&values, &to);
                let casted = cast(&target.import(&values), &to, &options(true), &target.stream).wait();
                match expected {
                    Ok(expected) => target.assert_same(&casted.unwrap(), &expected, &to),
                    Err(_) => assert!(casted.is_err(), "{from} to {to} on {target:?}"),
                }
            }
        }
    }
}
