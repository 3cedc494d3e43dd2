//! Tests that what is too large for an expression is refused before it takes memory.

use arrow_array::StringViewArray;

use super::*;

#[test]
fn lists_of_more_values_than_an_expression_has_are_refused_at_once() {
    let [place, _] = Place::all();
    let nulls = place.array(Arc::new(NullArray::new(1 << 40)));
    // Views share a text, but literals do not.
    let one = StringViewArray::from(vec!["x".repeat(1 << 20)]);
    let views = StringViewArray::new(vec![one.views()[0]; 300].into(), one.data_buffers().to_vec(), None);
    let shared = place.array(Arc::new(views));
    let x = col("x");
    // SAFETY: live handles.
    unsafe {
        for values in [nulls, shared] {
            let mut out = null_mut();
            assert_eq!(bowstring_expr_in_list(x, values, &mut out), BowstringStatus::Invalid);
            assert!(out.is_null() && last_error().contains("256 MiB"), "{}", last_error());
            bowstring_array_free(values);
        }
        bowstring_expr_free(x);
    }
}
