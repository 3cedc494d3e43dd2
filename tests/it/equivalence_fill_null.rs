//! Tests fill_null for nested types: the plain definition and every device agree, and the result has no
//! nulls. `equivalence_operations.rs` tests flat types.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int32Array, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use bowstring::compute::{Scalar, fill_null};
use proptest::prelude::*;

use crate::support::operations::{Answer, Argument, operation};
use crate::support::*;

fn agrees(sample: &Sample) {
    let fill = operation("fill_null");
    let argument = (fill.argument)(&sample.data_type, sample.len, &mut Random::new(!sample.seed)).unwrap();
    let Argument::Scalar(scalar) = &argument else { unreachable!("fill_null is given a scalar") };
    let plain = (fill.definition)(&rows(&sample.array()), &argument).unwrap();
    for target in &devices() {
        for form in Form::ALL {
            let context = format!("{form:?}, {sample:?} with {scalar:?}, on {target:?}");
            let values = uncounted(target.import_as(form, &sample.longer(), sample.offset, sample.len));
            let Answer::Array(ours) = fill.run(&values, &argument, &target.stream).expect(&context) else {
                unreachable!("fill_null gives an array")
            };
            let exported = target.export(&ours);
            assert_eq!(exported.data_type(), &sample.data_type, "{context}");
            assert_same_rows(&rows(&exported), &plain, &context);
            assert!(scalar.is_null(0) || exported.null_count() == 0, "{context}");
        }
    }
}

proptest! {
    #![proptest_config(config(24))]
    #[test]
    fn nested_types(sample in sample(200)) {
        agrees(&sample);
    }
}

/// A null row of a struct may hide nulls in a field that is not nullable: they disappear with the row.
#[test]
fn fields_without_nulls_stay_so() {
    let fields = vec![Field::new("a", DataType::Utf8, false), Field::new("b", DataType::Int32, false)];
    let valid = NullBuffer::from(vec![true, false, true]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None, Some("z")]));
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let values: ArrayRef = Arc::new(StructArray::new(fields.into(), vec![texts, numbers], Some(valid)));
    let scalar = Scalar::from_arrow(&values.slice(2, 1)).unwrap();
    let indices = arrow_array::UInt32Array::from(vec![0, 2, 2]);
    let theirs = arrow_select::take::take(&values, &indices, None).unwrap();
    for target in &devices() {
        let ours = fill_null(&target.import(&values), &scalar, &target.stream).wait().unwrap();
        target.assert_same(&ours, &theirs, &"a struct");
        assert_eq!(target.export(&ours).null_count(), 0);
    }
}
