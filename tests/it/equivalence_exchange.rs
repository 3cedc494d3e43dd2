//! Tests export and import: an array of any type, sliced in any way, comes back unchanged.

use std::mem::transmute;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi, to_ffi};
use arrow_array::{Array as _, make_array};
use arrow_schema::Field;
use bowstring::exchange::{export_host_array, import_host_array};
use bowstring::ffi::ArrowArray;
use proptest::prelude::*;

use crate::support::*;

fn comes_back(sample: &Sample) {
    let longer = sample.longer();
    for target in &devices() {
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

/// The same through the C structs, with arrow-rs at the other end.
fn comes_back_through_c(sample: &Sample) {
    let array = sample.array();
    let field = Field::new("f", sample.data_type.clone(), true);
    for target in devices().iter().filter(|target| target.name == "cpu") {
        for form in Form::ALL {
            let context = format!("{form:?} {sample:?}");
            let ours = target.import_as(form, &sample.longer(), sample.offset, sample.len);
            let export = || export_host_array(&ours, &field).unwrap_or_else(|e| panic!("{context}: {e}"));
            let (exported, schema) = export();
            // SAFETY: a struct that was just exported.
            let again = unsafe { import_host_array(exported, &schema) };
            let (_, again) = again.unwrap_or_else(|e| panic!("{context}: {e}"));
            target.assert_same(&again, &array, &format_args!("by us, {context}"));
            let (exported, schema) = export();
            drop(ours);
            // SAFETY: both types have the C interface's layout, and own their contents.
            let exported = unsafe { transmute::<ArrowArray, FFI_ArrowArray>(exported) };
            if form == Form::Displaced {
                // arrow-rs reads offsets as aligned numbers, even if they are not aligned. It can still
                // release the struct.
                continue;
            }
            // SAFETY: a struct that was just exported.
            let data = unsafe { from_ffi(exported, &schema) }.unwrap_or_else(|e| panic!("{context}: {e}"));
            data.validate_full().unwrap_or_else(|e| panic!("{context}: {e}"));
            assert_same_rows(
                &rows(&make_array(data)),
                &rows(&array),
                &format_args!("by arrow-rs, {context}"),
            );
        }
        let (exported, schema) = to_ffi(&array.to_data()).unwrap();
        // SAFETY: as above.
        let exported = unsafe { transmute::<FFI_ArrowArray, ArrowArray>(exported) };
        // SAFETY: a struct that was just exported.
        let (_, ours) =
            unsafe { import_host_array(exported, &schema) }.unwrap_or_else(|e| panic!("{sample:?}: {e}"));
        target.assert_same(&ours, &array, &format_args!("imported, {sample:?}"));
    }
}

#[test]
fn every_type_at_every_length_and_offset() {
    for (seed, data_type) in (0..).zip(types()) {
        for (i, &len) in LENGTHS.iter().enumerate() {
            let (nulls, offset) = (Nulls::ALL[i % 5], OFFSETS[(i + seed as usize) % OFFSETS.len()]);
            let sample = Sample { data_type: data_type.clone(), len, nulls, offset, seed };
            comes_back(&sample);
            comes_back_through_c(&sample);
        }
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn every_nested_type(sample in sample(200)) {
        comes_back(&sample);
        comes_back_through_c(&sample);
    }
}
