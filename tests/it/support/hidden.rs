//! Values hidden by null lists, on which arrow-rs' answer may depend.

use arrow_buffer::NullBuffer;
use arrow_data::transform::MutableArrayData;
use arrow_data::{ArrayData, layout};
use arrow_schema::DataType;

/// The same rows, with null items inside null lists of fixed size, if the items' type has nulls.
pub fn hiding_nothing(rows: &ArrayData) -> ArrayData {
    let mut children = rows.child_data().to_vec();
    if let (DataType::FixedSizeList(_, size), Some(nulls)) = (rows.data_type(), rows.nulls()) {
        let (items, size) = (&children[0], *size as usize);
        let row = |i: usize| (i / size).checked_sub(rows.offset()).filter(|row| *row < nulls.len());
        let hidden = |i: usize| row(i).is_some_and(|row| nulls.is_null(row));
        let validity = (0..items.len()).map(|i| !items.is_null(i) && !hidden(i)).collect::<NullBuffer>();
        if layout(items.data_type()).can_contain_null_mask {
            let items = items.clone().into_builder().nulls(Some(validity));
            children[0] = items.build().expect("only nulls have been added");
        }
    }
    let children = children.iter().map(hiding_nothing).collect();
    rows.clone().into_builder().child_data(children).build().expect("only nulls have been added")
}

/// The same rows, with no items inside null lists.
pub fn hiding_no_items(rows: &ArrayData) -> ArrayData {
    let children = rows.child_data().iter().map(hiding_no_items).collect();
    let rows = rows.clone().into_builder().child_data(children).build().expect("the same rows");
    if rows.null_count() == 0 || !matches!(rows.data_type(), DataType::List(_) | DataType::LargeList(_)) {
        return rows;
    }
    let mut without = MutableArrayData::new(vec![&rows], true, rows.len());
    for i in 0..rows.len() {
        let one = if rows.is_null(i) { without.try_extend_nulls(1) } else { without.try_extend(0, i, i + 1) };
        one.expect("no more items than before");
    }
    without.freeze()
}
