//! Tests take: the plain definition, arrow-rs and every device agree; also indices out of bounds.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, BooleanArray, Int64Array, UInt32Array};
use arrow_schema::DataType;
use bowstring::compute::{OutOfBounds, TakeOptions, filter, take};
use bowstring::exchange::to_arrow;
use bowstring::{DeviceArray, Error};
use proptest::prelude::*;

use crate::support::*;

#[derive(Clone, Debug)]
struct Case {
    sample: Sample,
    index_type: DataType,
    len: usize,
    nulls: Nulls,
    offset: usize,
}

impl Case {
    /// The longer array that the case's indices are a slice of; `None` if its type has no nulls but needs
    /// them.
    fn longer(&self) -> Option<ArrayRef> {
        // A union has no null, so a null index has no value.
        let nullable = has_nulls(&self.sample.data_type);
        if self.sample.len == 0 && !nullable {
            return None;
        }
        let nulls = if nullable { self.nulls } else { Nulls::None };
        let mut random = Random::new(!self.sample.seed);
        Some(indices(&self.index_type, self.offset + self.len + 1, self.sample.len, nulls, &mut random))
    }
}

fn agrees(case: &Case) {
    let Some(longer) = case.longer() else { return };
    let (values, indices) = (case.sample.array(), longer.slice(case.offset, case.len));
    let plain = taken(&rows(&values), &numbers(&indices));
    for target in &devices() {
        for form in Form::ALL {
            let context = format!("{form:?}, {case:?}");
            let values = target.import_as(form, &case.sample.longer(), case.sample.offset, case.sample.len);
            let indices = target.import_as(form, &longer, case.offset, case.len);
            let result = take(&values, &indices, &TakeOptions::default(), &target.stream).wait();
            let Some(ours) = target.answer(result, &context) else { continue };
            let exported = target.export(&ours);
            assert_eq!(exported.data_type(), &case.sample.data_type, "{context}");
            assert_same_rows(&rows(&exported), &plain, &context);
            target.assert_null_count(&ours, &exported, &context);
        }
    }
    if let Ok(theirs) = arrow_select::take::take(&values, &indices, None) {
        assert_same_rows(&rows(&theirs), &plain, &format_args!("arrow-rs and the definition, {case:?}"));
    }
}

fn case(longest: usize) -> impl Strategy<Value = Case> {
    let index_type = proptest::sample::select(index_types());
    let nulls = proptest::sample::select(&Nulls::ALL);
    let offset = proptest::sample::select(OFFSETS);
    (sample(longest), index_type, 0..=longest, nulls, offset)
        .prop_map(|(sample, index_type, len, nulls, offset)| Case { sample, index_type, len, nulls, offset })
}

#[test]
fn every_type_at_every_length_and_offset() {
    for (seed, data_type) in (0..).zip(types()) {
        for (i, &len) in LENGTHS.iter().enumerate() {
            let turn = i + seed as usize;
            let (nulls, offset) = (Nulls::ALL[turn % 5], OFFSETS[turn % OFFSETS.len()]);
            let sample = Sample {
                data_type: data_type.clone(),
                len: LENGTHS[(3 * i + 5) % LENGTHS.len()],
                nulls,
                offset,
                seed,
            };
            let index_type = index_types()[turn % 8].clone();
            let nulls = Nulls::ALL[(turn / 5) % 5];
            agrees(&Case { sample, index_type, len, nulls, offset: OFFSETS[(2 * turn + 1) % OFFSETS.len()] });
        }
    }
}

#[test]
fn every_index_type_meets_every_width() {
    let widths = [DataType::Boolean, DataType::Int8, DataType::Float16, DataType::Int32, DataType::Float64];
    let widths = widths.into_iter().chain([DataType::Decimal128(38, 10), DataType::Decimal256(76, 20)]);
    for (seed, data_type) in (0..).zip(widths.chain([DataType::Utf8, DataType::Utf8View])) {
        for index_type in index_types() {
            for nulls in Nulls::ALL {
                let sample = Sample { data_type: data_type.clone(), len: 500, nulls, offset: 33, seed };
                agrees(&Case { sample, index_type: index_type.clone(), len: 1025, nulls, offset: 7 });
            }
        }
    }
}

#[test]
fn an_index_out_of_bounds_is_an_error_or_a_null_and_never_wraps() {
    let of = |index: i64| -> Vec<ArrayRef> {
        let wide = Int64Array::from(vec![Some(0), None, Some(index), Some(64)]);
        let fits = index_types().into_iter().map(move |to| {
            let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
            arrow_cast::cast_with_options(&wide, &to, &options)
        });
        fits.flatten().collect()
    };
    for target in &devices() {
        for data_type in types() {
            let values = array(&data_type, 65, Nulls::Some, &mut Random::new(7));
            // One past the end; negative ones, the second of which would be in bounds as an unsigned byte.
            for indices in [65, -1, -256 + 64, 127, 255, 70_000, i64::MAX, i64::MIN].into_iter().flat_map(of)
            {
                let context = format!("{data_type} by {indices:?}");
                let (ours, by) = (target.import(&values), target.import(&indices));
                // A device that need not wait reports the error when the result is read.
                let seen =
                    |taken: DeviceArray| target.stream.download(&taken).and_then(|host| to_arrow(&host));
                match take(&ours, &by, &TakeOptions::default(), &target.stream).wait().and_then(seen) {
                    Err(Error::IndexOutOfBounds { row: 2, len: 65, index }) => {
                        assert_eq!(Some(index), numbers(&indices)[2], "{context}")
                    }
                    other => assert!(
                        target.answer(other, &context).is_none(),
                        "{context}, on {target:?}: no error"
                    ),
                }
                if !has_nulls(&data_type) {
                    continue;
                }
                let nulls = TakeOptions { out_of_bounds: OutOfBounds::Null };
                let result = take(&ours, &by, &nulls, &target.stream).wait();
                let Some(ours) = target.answer(result, &context) else { continue };
                let plain = taken(&rows(&values), &numbers(&indices));
                assert_same_rows(&rows(&target.export(&ours)), &plain, &context);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_nested_type(case in case(300)) {
        agrees(&case);
    }

    #[test]
    fn ascending_indices_of_all_rows_are_the_identity(sample in sample(300)) {
        let all: ArrayRef = Arc::new(UInt32Array::from_iter_values(0..sample.len as u32));
        for target in &devices() {
            let values = target.import_as(Form::SlicedAfter, &sample.longer(), sample.offset, sample.len);
            let result = take(&values, &target.import(&all), &TakeOptions::default(), &target.stream).wait();
            let Some(ours) = target.answer(result, &format_args!("{sample:?}")) else { continue };
            target.assert_same(&ours, &sample.array(), &format_args!("{sample:?}"));
        }
    }

    #[test]
    fn filter_is_take_of_the_indices_that_the_mask_keeps(sample in sample(300), kind in proptest::sample::select(MASKS)) {
        let mask: BooleanArray = mask(kind, sample.len, &mut sample.random());
        let kept = mask.iter().zip(0..).filter(|(keep, _)| *keep == Some(true)).map(|(_, i)| i);
        let kept: ArrayRef = Arc::new(UInt32Array::from_iter_values(kept));
        let mask: ArrayRef = Arc::new(mask);
        for target in &devices() {
            let context = format!("{kind:?}, {sample:?}");
            let values = target.import_as(Form::SlicedAfter, &sample.longer(), sample.offset, sample.len);
            let filtered = target.answer(filter(&values, &target.import(&mask), &target.stream).wait(), &context);
            let by = target.import(&kept);
            let taken = target.answer(take(&values, &by, &TakeOptions::default(), &target.stream).wait(), &context);
            if let (Some(filtered), Some(taken)) = (filtered, taken) {
                target.assert_same(&taken, &target.export(&filtered), &context);
            }
        }
    }

    #[test]
    fn a_part_of_what_is_taken_is_taken_by_a_part(case in case(300), start in 0.0..=1.0, len in 0.0..=1.0) {
        let Some(longer) = case.longer() else { return Ok(()) };
        let start = (case.len as f64 * start) as usize;
        let len = ((case.len - start) as f64 * len) as usize;
        for target in &devices() {
            let context = format!("rows {start}+{len}, {case:?}");
            let values = target.import(&case.sample.array());
            let by = target.import_as(Form::SlicedAfter, &longer, case.offset, case.len);
            let take = |by| target.answer(take(&values, by, &TakeOptions::default(), &target.stream).wait(), &context);
            if let (Some(whole), Some(part)) = (take(&by), take(&by.slice(start, len).unwrap())) {
                target.assert_same(&part, &target.export(&whole.slice(start, len).unwrap()), &context);
            }
        }
    }
}
