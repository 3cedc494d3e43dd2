//! Tests null_count, logical_null_count, is_null, is_not_null and drop_nulls: the plain definition, arrow-rs
//! and every device agree.

use arrow_array::Array as _;
use arrow_schema::DataType;
use bowstring::compute::{DropOptions, drop_nulls, is_not_null, is_null, logical_null_count, null_count};
use proptest::prelude::*;

use crate::support::*;

fn agrees(sample: &Sample) {
    let values = sample.array();
    let nothing: Vec<bool> = rows(&values).iter().map(is_nothing).collect();
    assert_eq!(
        values.logical_null_count(),
        nothing.iter().filter(|null| **null).count(),
        "arrow-rs, {sample:?}"
    );
    for target in &devices() {
        for form in Form::ALL {
            let context = format!("{form:?}, {sample:?}");
            // Unknown counts must be computed; a wrong known count would be used as it is.
            let ours = uncounted(target.import_as(form, &sample.longer(), sample.offset, sample.len));

            if let Some(count) = target.answer(null_count(&ours, &target.stream).wait(), &context) {
                assert_eq!(count, values.null_count(), "null_count, {context}");
            }
            if let Some(count) = target.answer(logical_null_count(&ours, &target.stream).wait(), &context) {
                assert_eq!(count, values.logical_null_count(), "logical_null_count, {context}");
            }
            let bits = |bits: Vec<bool>| -> Vec<Value> {
                bits.into_iter().map(|bit| Value::Bytes(vec![u8::from(bit)])).collect()
            };
            if let Some(nulls) = target.answer(is_null(&ours, &target.stream).wait(), &context) {
                let exported = target.export(&nulls);
                assert_eq!(
                    (exported.data_type(), exported.null_count()),
                    (&DataType::Boolean, 0),
                    "{context}"
                );
                assert_same_rows(
                    &rows(&exported),
                    &bits(nothing.clone()),
                    &format_args!("is_null, {context}"),
                );
            }
            if let Some(valid) = target.answer(is_not_null(&ours, &target.stream).wait(), &context) {
                let exported = target.export(&valid);
                assert_eq!(
                    (exported.data_type(), exported.null_count()),
                    (&DataType::Boolean, 0),
                    "{context}"
                );
                let valid = bits(nothing.iter().map(|null| !null).collect());
                assert_same_rows(&rows(&exported), &valid, &format_args!("is_not_null, {context}"));
            }
            if let Some(left) =
                target.answer(drop_nulls(&ours, &DropOptions::default(), &target.stream).wait(), &context)
            {
                let left = rows(&target.export(&left));
                let plain: Vec<Value> =
                    rows(&values).into_iter().filter(|value| !is_nothing(value)).collect();
                assert_same_rows(&left, &plain, &format_args!("drop_nulls, {context}"));
            }
        }
    }
}

#[test]
fn every_type_at_every_length_and_offset() {
    for (seed, data_type) in (0..).zip(types()) {
        for (i, &len) in LENGTHS.iter().enumerate() {
            let turn = i + seed as usize;
            let (nulls, offset) = (Nulls::ALL[turn % 5], OFFSETS[turn % OFFSETS.len()]);
            agrees(&Sample { data_type: data_type.clone(), len, nulls, offset, seed });
        }
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_nested_type(sample in sample(300)) {
        agrees(&sample);
    }
}
