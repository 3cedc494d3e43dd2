//! Tests cast: every pair of types that arrow-rs casts, safe and strict, gives arrow-rs' result; pairs that
//! arrow-rs refuses are refused; and lossless casts can be reversed.

use arrow_array::{Array as _, ArrayRef, BooleanArray, make_array};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use bowstring::compute::cast;
use bowstring::exchange::to_arrow;
use bowstring::{DeviceArray, Error};
use proptest::prelude::*;

use crate::support::*;

fn options(safe: bool) -> CastOptions<'static> {
    CastOptions { safe, ..Default::default() }
}

/// Marks the rows that arrow-rs casts without an error by themselves; these can still be compared if another
/// row fails the whole cast.
fn castable(values: &ArrayRef, to: &DataType, options: &CastOptions) -> BooleanArray {
    (0..values.len()).map(|i| Some(cast_with_options(&values.slice(i, 1), to, options).is_ok())).collect()
}

/// A question to arrow-rs, with its answer.
struct Asked<'a> {
    values: &'a ArrayRef,
    to: &'a DataType,
    options: CastOptions<'static>,
    hides_values: bool,
    theirs: Result<ArrayRef, ArrowError>,
}

impl<'a> Asked<'a> {
    fn new(values: &'a ArrayRef, to: &'a DataType, safe: bool, hides_values: bool) -> Asked<'a> {
        let options = options(safe);
        let theirs = cast_with_options(values, to, &options);
        Asked { values, to, options, hides_values, theirs }
    }

    /// arrow-rs' answer if null lists of fixed size hide nothing. A cast of such lists of one item to the
    /// item's type shows the hidden item. In runs and dense unions the outcome depends on the item's type,
    /// and on whether an earlier take has dropped the hidden items.
    fn of_nothing_hidden(&self) -> Option<ArrayRef> {
        let values = make_array(hiding_nothing(&self.values.to_data()));
        cast_with_options(&values, self.to, &self.options).ok()
    }
}

/// Fails if our answer differs from arrow-rs': the same rows, or an error for the same first row.
fn assert_same_answer(target: &Target, ours: Result<DeviceArray, Error>, asked: &Asked, context: &str) {
    let Asked { values, to, options, hides_values, theirs } = asked;
    // A GPU reports a row that does not fit when the result is awaited.
    let ours = ours.and_then(|ours| to_arrow(&target.stream.download(&ours)?).map(|_| ours));
    match (ours, theirs) {
        (Err(Error::Cast { .. }), Ok(_)) | (Ok(_), Err(_)) if *hides_values => {}
        // arrow-rs makes lists of a type without nulls that have nulls where no row sees them. By its own
        // validation they are no arrays.
        (Err(error), Ok(_)) if *hides_values && is_of_hidden_nulls(&error) => {}
        (ours, Ok(theirs)) => {
            let Some(ours) = target.answer(ours, &context) else { return };
            let differs = || rows(&target.export(&ours)) != rows(theirs);
            let other = if *hides_values && differs() { asked.of_nothing_hidden() } else { None };
            target.assert_same(&ours, other.as_ref().unwrap_or(theirs), &context);
        }
        (Err(Error::Cast { row, .. }), Err(_)) => {
            // A nested array's items and a dictionary's values are cast whether rows use them or not. Then no
            // row may cause the error, and the named row is one up to which a cast fails. Devices name a run
            // by its number.
            let once = matches!(values.data_type(), DataType::Dictionary(..) | DataType::RunEndEncoded(..));
            if !values.data_type().is_nested() && !once {
                let first = castable(values, to, options).iter().position(|ok| ok == Some(false));
                assert_eq!(Some(row), first, "the row that failed: {context}");
            }
        }
        // arrow-rs' own errors, from casts that arrow-rs does on every device.
        (Err(Error::Arrow { .. }), Err(_)) => {}
        (ours, Err(theirs)) => {
            let ours = target.answer(ours, &context);
            assert!(ours.is_none(), "{context}, on {target:?}: no error where arrow-rs says {theirs}");
        }
    }
}

fn is_of_hidden_nulls(error: &Error) -> bool {
    let said = error.to_string();
    said.contains("contains nulls not present in parent") || said.contains("which is not nullable")
}

/// Whether arrow-rs' answer may depend on how it moved other values: values hidden by null rows and items,
/// and the values of a dictionary in a union whose rows are all of other members.
fn hides_values(sample: &Sample) -> bool {
    let name = format!("{:?}", sample.data_type);
    let dictionary = name.find("Union(").is_some_and(|union| name[union..].contains("Dictionary("));
    dictionary || sample.nulls != Nulls::None && sample.data_type.is_nested()
}

fn agrees(sample: &Sample, to: &DataType) {
    let values = sample.array();
    let hides_values = hides_values(sample);
    for safe in [true, false] {
        let asked = Asked::new(&values, to, safe, hides_values);
        let good = asked.theirs.is_err().then(|| {
            let passing = castable(&values, to, &options(safe));
            arrow_select::filter::filter(&values, &passing).expect("arrow-rs filters every type")
        });
        for target in &devices() {
            for form in Form::ALL {
                let context = format!("to {to}, safe: {safe}, {form:?}, {sample:?}");
                let ours = target.import_as(form, &sample.longer(), sample.offset, sample.len);
                let ours = cast(&ours, to, &options(safe), &target.stream).wait();
                assert_same_answer(target, ours, &asked, &context);
            }
            if let Some(good) = &good {
                let asked = Asked::new(good, to, safe, hides_values);
                let ours = cast(&target.import(good), to, &options(safe), &target.stream).wait();
                let context = format!("to {to}, safe: {safe}, the rows that can be cast, {sample:?}");
                assert_same_answer(target, ours, &asked, &context);
            }
        }
    }
}

#[test]
fn every_pair_of_types() {
    for (i, from) in types().iter().enumerate() {
        for (j, to) in types().iter().enumerate() {
            let sample = |len, nulls, offset| Sample {
                data_type: from.clone(),
                len,
                nulls,
                offset,
                seed: (53 * i + j) as u64,
            };
            if can_cast_types(from, to) {
                agrees(&sample(130, Nulls::Some, OFFSETS[(i + j) % OFFSETS.len()]), to);
                agrees(&sample(LENGTHS[(i + j) % 8], Nulls::ALL[(i + j) % 5], 3), to);
            } else {
                for target in &devices() {
                    let ours = target.import(&sample(9, Nulls::None, 0).array());
                    let refused = cast(&ours, to, &options(true), &target.stream).wait();
                    assert!(
                        matches!(refused, Err(Error::Unsupported { .. } | Error::Arrow { .. })),
                        "{from} to {to}, on {target:?}: {refused:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn long_arrays_of_fixed_width() {
    let fixed = || types().into_iter().filter(|data_type| data_type.is_numeric() || data_type.is_temporal());
    for (seed, from) in (0..).zip(fixed()) {
        for to in fixed().filter(|to| can_cast_types(&from, to)) {
            agrees(&Sample { data_type: from.clone(), len: 2055, nulls: Nulls::Runs, offset: 1, seed }, &to);
        }
    }
}

/// The pairs of types that arrow-rs casts.
fn pairs() -> Vec<(DataType, DataType)> {
    let pairs = types().into_iter().flat_map(|from| types().into_iter().map(move |to| (from.clone(), to)));
    pairs.filter(|(from, to)| can_cast_types(from, to)).collect()
}

/// Pairs of types for which the cast loses no value, so the reverse cast restores every one.
fn lossless() -> Vec<(DataType, DataType)> {
    use DataType::*;
    let timestamp = |unit| Timestamp(unit, None);
    vec![
        (Int8, Int16),
        (Int16, Int32),
        (Int32, Int64),
        (UInt8, Int16),
        (UInt16, UInt32),
        (UInt32, Int64),
        (UInt64, Decimal128(20, 0)),
        (Int64, Decimal128(19, 0)),
        (Int32, Float64),
        (UInt32, Float64),
        (Int16, Float32),
        (Int8, Float16),
        (Boolean, UInt8),
        (Boolean, Float32),
        (Decimal32(9, 2), Decimal64(18, 4)),
        (Decimal64(18, 4), Decimal128(38, 10)),
        (Decimal128(38, 10), Decimal256(76, 20)),
        (Time32(TimeUnit::Second), Time64(TimeUnit::Nanosecond)),
        (Date32, Date64),
        (timestamp(TimeUnit::Second), Int64),
        (Int64, timestamp(TimeUnit::Nanosecond)),
        (Duration(TimeUnit::Microsecond), Int64),
        (Int64, Utf8),
        (Int8, LargeUtf8),
        (Boolean, Utf8),
        (Decimal128(38, 10), Utf8),
        (Utf8, LargeUtf8),
        (Utf8, Utf8View),
        (Utf8View, LargeUtf8),
        (Utf8, Binary),
        (Binary, LargeBinary),
        (Binary, BinaryView),
        (FixedSizeBinary(5), Binary),
        (Utf8, Dictionary(Box::new(Int32), Box::new(Utf8))),
        (Int32, Dictionary(Box::new(Int16), Box::new(Int32))),
    ]
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn there_and_back_where_nothing_is_lost(
        (from, to) in proptest::sample::select(lossless()),
        template in sample_of(Just(DataType::Null), 500),
    ) {
        let sample = Sample { data_type: from.clone(), ..template };
        for target in &devices() {
            let context = format!("by {to}, {sample:?}");
            let values = target.import_as(Form::SlicedAfter, &sample.longer(), sample.offset, sample.len);
            let there = target.answer(cast(&values, &to, &options(false), &target.stream).wait(), &context);
            let Some(there) = there else { continue };
            let Some(back) = target.answer(cast(&there, &from, &options(false), &target.stream).wait(), &context) else {
                continue;
            };
            target.assert_same(&back, &sample.array(), &context);
        }
    }

    #[test]
    fn a_part_of_a_cast_is_the_cast_of_a_part(
        (from, to) in proptest::sample::select(pairs()),
        template in sample_of(Just(DataType::Null), 300),
    ) {
        let sample = Sample { data_type: from, ..template };
        let (start, len) = (sample.len / 3, sample.len / 2);
        for target in &devices() {
            let context = format!("to {to}, {sample:?}");
            let values = target.import_as(Form::SlicedAfter, &sample.longer(), sample.offset, sample.len);
            let whole = cast(&values, &to, &options(true), &target.stream).wait();
            let part = cast(&values.slice(start, len).unwrap(), &to, &options(true), &target.stream).wait();
            // If some row fails even a safe cast (a time that text cannot express), the whole array cannot be
            // compared.
            if let (Ok(whole), Ok(part)) = (whole, part) {
                target.assert_same(&part, &target.export(&whole.slice(start, len).unwrap()), &context);
            }
        }
    }

    #[test]
    fn every_nested_pair(from in data_type(), to in data_type(), template in sample_of(Just(DataType::Null), 100)) {
        let sample = Sample { data_type: from.clone(), ..template };
        for to in [to, wrapped(&from), from.clone()] {
            if can_cast_types(&from, &to) {
                agrees(&sample, &to);
            }
        }
    }
}

/// A type that the other type always casts to: two random nested types hardly ever match.
fn wrapped(data_type: &DataType) -> DataType {
    match data_type {
        DataType::List(field) => DataType::LargeList(field.clone()),
        DataType::LargeList(field) => DataType::ListView(field.clone()),
        DataType::ListView(field) => DataType::LargeListView(field.clone()),
        DataType::FixedSizeList(field, _) => DataType::List(field.clone()),
        DataType::Dictionary(_, of) => (**of).clone(),
        DataType::RunEndEncoded(_, values) => values.data_type().clone(),
        other => DataType::Dictionary(Box::new(DataType::Int64), Box::new(other.clone())),
    }
}
