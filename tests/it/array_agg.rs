//! Lists of the values of groups, of every type on every device.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, ListArray, UInt32Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use bowstring::compute::Query;
use bowstring::expr::{Options, array_agg, col, sum};

use crate::groups::{assert_aggregates, grouped};
use crate::support::*;

/// The lists of some rows of each group. A group without rows has null.
fn listed(values: &ArrayRef, groups: &[Vec<usize>], counts: impl Fn(usize) -> bool) -> ArrayRef {
    let rows: Vec<Vec<usize>> =
        groups.iter().map(|rows| rows.iter().copied().filter(|row| counts(*row)).collect()).collect();
    let picks = UInt32Array::from_iter_values(rows.iter().flatten().map(|row| *row as u32));
    let values = arrow_select::take::take(values, &picks, None).unwrap();
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    let nulls = NullBuffer::from_iter(rows.iter().map(|rows| !rows.is_empty()));
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(Vec::len));
    Arc::new(ListArray::new(field, offsets, values, Some(nulls)))
}

#[test]
fn groups_list_values_of_every_type() {
    let mut random = Random::new(97);
    for of in types_to_launch() {
        for (len, distinct) in [(1, 1), (120, 7)] {
            let few = array(&DataType::Utf8, distinct, Nulls::Some, &mut random);
            let key = some_of(&few, len, &mut random);
            let values = array(&of, len, Nulls::Some, &mut random);
            let flags: BooleanArray =
                (0..len).map(|_| (random.below(9) > 0).then(|| random.below(3) == 0)).collect();
            let groups = grouped(std::slice::from_ref(&key));
            let expected = [
                listed(&values, &groups, |_| true),
                listed(&values, &groups, |row| flags.iter().nth(row).flatten() == Some(true)),
            ];
            let columns = [("k", key), ("x", values), ("flag", Arc::new(flags.clone()) as ArrayRef)];
            let both = [array_agg(col("x")), array_agg(col("x")).filter(col("flag"))];
            let query = Query::new().group_by([col("k")]).aggregate(both);
            assert_aggregates(&columns, &query, &Options::default(), &expected, true);
        }
    }
}

#[test]
fn all_rows_are_a_list_and_no_rows_are_null() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), None, Some(1)]));
    let columns = [("x", values.clone())];
    let query = Query::new().aggregate([array_agg(col("x")), sum(col("x")).filter(col("x").gt(1))]);
    let all = vec![vec![0, 1, 2]];
    let expected = [listed(&values, &all, |_| true), Arc::new(Int64Array::from(vec![3]))];
    assert_aggregates(&columns, &query, &Options::default(), &expected, true);
    let none = query.filter(col("x").gt(100));
    let expected = [listed(&values, &all, |_| false), Arc::new(Int64Array::from(vec![None]))];
    assert_aggregates(&columns, &none, &Options::default(), &expected, true);
}
