//! Tests filter and Selection: the plain definition, arrow-rs and every device agree; and the laws that
//! filter obeys.

use arrow_array::{ArrayRef, BooleanArray};
use bowstring::compute::{Selection, filter};
use bowstring::{DeviceArray, Error};
use proptest::prelude::*;

use crate::support::*;

/// A case: an array, and a mask that is also a slice of a longer one.
#[derive(Clone, Debug)]
struct Case {
    sample: Sample,
    mask: Mask,
    mask_offset: usize,
}

impl Case {
    fn longer_mask(&self) -> BooleanArray {
        let len = self.mask_offset + self.sample.len + 1;
        mask(self.mask, len, &mut Random::new(!self.sample.seed))
    }

    fn mask(&self) -> BooleanArray {
        self.longer_mask().slice(self.mask_offset, self.sample.len)
    }

    /// Imports values and mask in a given form on a device.
    fn import(&self, target: &Target, form: Form) -> (DeviceArray, DeviceArray) {
        let (longer, mask): (_, ArrayRef) = (self.sample.longer(), std::sync::Arc::new(self.longer_mask()));
        let values = target.import_as(form, &longer, self.sample.offset, self.sample.len);
        (values, target.import_as(form, &mask, self.mask_offset, self.sample.len))
    }
}

fn agrees(case: &Case) {
    let (values, mask) = (case.sample.array(), case.mask());
    let plain = filtered(&rows(&values), &mask);
    let theirs = arrow_select::filter::filter(&values, &mask).expect("arrow-rs filters every type");
    assert_same_rows(&rows(&theirs), &plain, &format_args!("arrow-rs and the definition, {case:?}"));
    for target in &devices() {
        for form in Form::ALL {
            let context = format!("{form:?}, {case:?}");
            let (values, mask) = case.import(target, form);
            let Some(ours) = target.answer(filter(&values, &mask, &target.stream).wait(), &context) else {
                continue;
            };
            target.assert_same(&ours, &theirs, &context);
        }
    }
}

fn case(longest: usize) -> impl Strategy<Value = Case> {
    let mask = proptest::sample::select(MASKS);
    let mask_offset = proptest::sample::select(OFFSETS);
    (sample(longest), mask, mask_offset).prop_map(|(sample, mask, mask_offset)| Case {
        sample,
        mask,
        mask_offset,
    })
}

#[test]
fn every_type_at_every_length_and_offset() {
    for (seed, data_type) in (0..).zip(types()) {
        for (i, &len) in LENGTHS.iter().enumerate() {
            // Each type meets each mask, offset and kind of nulls, but not every combination.
            let turn = i + seed as usize;
            let (nulls, offset) = (Nulls::ALL[turn % 5], OFFSETS[turn % OFFSETS.len()]);
            let sample = Sample { data_type: data_type.clone(), len, nulls, offset, seed };
            let mask_offset = OFFSETS[(2 * turn + 1) % OFFSETS.len()];
            agrees(&Case { sample, mask: MASKS[turn % MASKS.len()], mask_offset });
        }
    }
}

#[test]
fn every_selectivity_of_flat_types() {
    for (seed, data_type) in (0..).zip(types().into_iter().filter(|data_type| !data_type.is_nested())) {
        for &percent in SELECTIVITIES {
            for run in [1, 70] {
                let sample =
                    Sample { data_type: data_type.clone(), len: 2055, nulls: Nulls::Some, offset: 7, seed };
                agrees(&Case { sample, mask: Mask { percent, run, nulls: Nulls::None }, mask_offset: 33 });
            }
        }
    }
}

#[test]
fn few_of_many_rows() {
    use arrow_schema::DataType::*;
    for (seed, data_type) in (0..).zip([UInt8, Int16, Int32, Float64, Decimal128(38, 10), Boolean]) {
        for (percent, run) in [(0.02, 1), (1.5, 1), (2.0, 700)] {
            let sample =
                Sample { data_type: data_type.clone(), len: 70_001, nulls: Nulls::Some, offset: 7, seed };
            let case = Case { sample, mask: Mask { percent, run, nulls: Nulls::None }, mask_offset: 33 };
            let theirs = arrow_select::filter::filter(&case.sample.array(), &case.mask()).unwrap();
            for target in &devices() {
                let (values, mask) = case.import(target, Form::ALL[0]);
                let context = format!("{case:?}");
                if let Some(ours) = target.answer(filter(&values, &mask, &target.stream).wait(), &context) {
                    target.assert_same(&ours, &theirs, &context);
                }
            }
        }
    }
}

#[test]
fn unequal_lengths_are_refused() {
    for target in &devices() {
        let values = array(&types()[4], 65, Nulls::Some, &mut Random::new(0));
        let mask: ArrayRef = std::sync::Arc::new(mask(MASKS[3], 64, &mut Random::new(0)));
        match filter(&target.import(&values), &target.import(&mask), &target.stream).wait() {
            Err(Error::Invalid { .. }) => {}
            other => {
                assert!(target.answer(other, &"unequal lengths").is_none(), "unequal lengths on {target:?}")
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
    fn an_all_true_mask_is_the_identity(sample in sample(300)) {
        let all = Mask { percent: 100.0, run: 1, nulls: Nulls::Unused };
        let case = Case { sample, mask: all, mask_offset: 3 };
        for target in &devices() {
            let (values, mask) = case.import(target, Form::SlicedAfter);
            let Some(ours) = target.answer(filter(&values, &mask, &target.stream).wait(), &format_args!("{case:?}")) else { continue };
            target.assert_same(&ours, &case.sample.array(), &format_args!("{case:?}"));
        }
    }

    #[test]
    fn the_parts_of_a_filtered_whole_are_the_filtered_parts(case in case(300), cut in 0.0..=1.0) {
        let len = case.sample.len;
        let cut = (len as f64 * cut) as usize;
        for target in &devices() {
            let (values, mask) = case.import(target, Form::SlicedAfter);
            let part = |start, len| {
                let (values, mask) = (values.slice(start, len).unwrap(), mask.slice(start, len).unwrap());
                target.answer(filter(&values, &mask, &target.stream).wait(), &format_args!("{case:?}"))
            };
            let (Some(whole), Some(front), Some(back)) = (part(0, len), part(0, cut), part(cut, len - cut)) else {
                continue;
            };
            let parts = [rows(&target.export(&front)), rows(&target.export(&back))].concat();
            assert_same_rows(&parts, &rows(&target.export(&whole)), &format_args!("cut at {cut}, {case:?}"));
        }
    }

    #[test]
    fn one_selection_filters_many_arrays(case in case(300), others in proptest::collection::vec(data_type(), 1..4)) {
        for target in &devices() {
            let (values, mask) = case.import(target, Form::SlicedAfter);
            let Some(selection) = target.answer(Selection::of_mask(&mask, &target.stream).wait(), &format_args!("{case:?}")) else { continue };
            let plain = case.mask();
            assert_eq!(selection.len(), plain.iter().filter(|keep| *keep == Some(true)).count());
            let Some(first) = target.answer(selection.filter(&values).wait(), &format_args!("{case:?}")) else { continue };
            let expected = filtered(&rows(&case.sample.array()), &plain);
            assert_same_rows(&rows(&target.export(&first)), &expected, &format_args!("{case:?}"));
            for other in &others {
                let other = Sample { data_type: other.clone(), ..case.sample.clone() };
                let values = target.import(&other.array());
                let Some(ours) = target.answer(selection.filter(&values).wait(), &format_args!("{other:?}")) else { continue };
                let expected = filtered(&rows(&other.array()), &plain);
                assert_same_rows(&rows(&target.export(&ours)), &expected, &format_args!("{other:?} by {case:?}"));
            }
        }
    }
}
