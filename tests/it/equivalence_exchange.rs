//! In and out again: an array of any type, however it was cut, comes back as it was.

use proptest::prelude::*;

use crate::support::*;

fn comes_back(sample: &Sample) {
    let longer = sample.longer();
    for target in devices() {
        for form in Form::ALL {
            let ours = target.import_as(form, &longer, sample.offset, sample.len);
            target.assert_same(&ours, &sample.array(), &format_args!("{form:?} {sample:?}"));
            let (start, len) = (sample.len / 3, sample.len / 2);
            let part = ours.slice(start, len).unwrap();
            target.assert_same(
                &part,
                &sample.array().slice(start, len),
                &format_args!("part, {form:?} {sample:?}"),
            );
        }
    }
}

#[test]
fn every_type_at_every_length_and_offset() {
    for (seed, data_type) in (0..).zip(types()) {
        for (i, &len) in LENGTHS.iter().enumerate() {
            let (nulls, offset) = (Nulls::ALL[i % 5], OFFSETS[(i + seed as usize) % OFFSETS.len()]);
            comes_back(&Sample { data_type: data_type.clone(), len, nulls, offset, seed });
        }
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_nested_type(sample in sample(200)) {
        comes_back(&sample);
    }
}
