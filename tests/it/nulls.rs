//! Tests counting and showing nulls, against a count by hand and arrow-rs.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray};
use bowstring::Stream;
use bowstring::array::{Bitmap, Parts};
use bowstring::compute::{DropOptions, drop_nulls, is_not_null, is_null, logical_null_count, null_count};

use crate::support::*;

fn check(array: &ArrayRef, offset: usize, len: usize, form: Form) {
    let sliced = array.slice(offset, len);
    let nulls: Vec<bool> = match sliced.logical_nulls() {
        Some(nulls) => nulls.iter().map(|valid| !valid).collect(),
        None => vec![false; len],
    };
    let expected = nulls.iter().filter(|null| **null).count();
    let kept =
        arrow_select::filter::filter(&sliced, &nulls.iter().map(|null| Some(!null)).collect()).unwrap();
    let null: ArrayRef = Arc::new(BooleanArray::from(nulls.clone()));
    let valid: ArrayRef = Arc::new(nulls.iter().map(|null| Some(!null)).collect::<BooleanArray>());
    for target in &devices() {
        let context = format!("{}, rows {offset}+{len} {form:?}, on {target:?}", array.data_type());
        let mut parts = target.import_as(form, array, offset, len).into_parts();
        for known in [true, false] {
            if !known {
                parts.null_count = None;
            }
            let values = bowstring::DeviceArray::try_new(parts.clone()).unwrap();
            let stream = &target.stream;
            if let Some(count) = target.answer(null_count(&values, stream).wait(), &context) {
                assert_eq!(count, sliced.null_count(), "{context}");
            }
            if let Some(count) = target.answer(logical_null_count(&values, stream).wait(), &context) {
                assert_eq!(count, expected, "{context}");
            }
            for (ours, theirs) in [
                (is_null(&values, stream).wait(), &null),
                (is_not_null(&values, stream).wait(), &valid),
                (drop_nulls(&values, &DropOptions::default(), stream).wait(), &kept),
            ] {
                if let Some(ours) = target.answer(ours, &context) {
                    target.assert_same(&ours, theirs, &context);
                }
            }
        }
    }
}

#[test]
fn every_type() {
    for (seed, data_type) in types().iter().enumerate() {
        let mut rng = Random::new(seed as u64);
        for nulls in Nulls::ALL {
            let array = array(data_type, 300, nulls, &mut rng);
            for len in [0, 1, 63, 64, 65, 200] {
                let offset = OFFSETS[rng.below(OFFSETS.len())];
                check(&array, offset, len, Form::ALL[rng.below(3)]);
            }
        }
    }
}

#[test]
fn every_offset_and_length() {
    let mut rng = Random::new(1);
    for nulls in [Nulls::Some, Nulls::Runs] {
        let array = array(&arrow_schema::DataType::Int8, 9_000, nulls, &mut rng);
        for offset in OFFSETS {
            for len in LENGTHS {
                check(&array, *offset, *len, Form::SlicedAfter);
                check(&array, *offset, *len, Form::Displaced);
            }
        }
    }
}

/// Enough bits for several threads, at every bit offset.
#[test]
fn many_rows_on_many_threads() {
    let mut rng = Random::new(2);
    let bytes = rng.bytes(1 << 20);
    let all: ArrayRef = Arc::new(BooleanArray::new(
        arrow_buffer::BooleanBuffer::new(bytes.clone().into(), 0, bytes.len() * 8),
        None,
    ));
    let buffer = devices()[0].import(&all).buffers()[0].clone();
    for offset in 0..9 {
        let len = bytes.len() * 8 - 20;
        let mut parts = Parts::new(arrow_schema::DataType::Boolean, len);
        parts.buffers = vec![buffer.clone()];
        parts.validity = Some(Bitmap { buffer: buffer.clone(), offset });
        parts.null_count = None;
        let values = bowstring::DeviceArray::try_new(parts).unwrap();
        let set = (offset..offset + len).filter(|i| bytes[i / 8] >> (i % 8) & 1 == 1).count();
        assert_eq!(null_count(&values, &Stream::cpu()).wait(), Ok(len - set), "{offset}");
    }
}

#[test]
fn not_null_is_the_bitmap_itself() {
    let array = array(&arrow_schema::DataType::Utf8, 100, Nulls::Some, &mut Random::new(4));
    let values = devices()[0].import(&array).slice(5, 90).unwrap();
    let shown = is_not_null(&values, &Stream::cpu()).wait().unwrap();
    assert_eq!(shown.buffers()[0].address(), values.validity().unwrap().buffer.address());
    assert_eq!(shown.known_null_count(), Some(0));
}
