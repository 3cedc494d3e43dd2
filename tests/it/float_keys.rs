//! Keys that are floats: equal by their bits as in arrow-rs, or as SQL has it.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array};
use arrow_schema::DataType;
use bowstring::compute::{JoinOptions, Query, join};
use bowstring::expr::{FloatOrder, Options, col, count_all, count_distinct};

use crate::groups::batch_on;
use crate::support::*;

/// Two zeros, two NaNs, and others.
fn floats() -> ArrayRef {
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 1 << 49);
    let values = [Some(-0.0), Some(f64::NAN), None, Some(0.0), Some(1.5), Some(other_nan), Some(-1.5), None];
    Arc::new(Float64Array::from(values.to_vec()))
}

fn types() -> [DataType; 4] {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Float64));
    [DataType::Float16, DataType::Float32, DataType::Float64, dictionary]
}

#[test]
fn groups_have_one_zero_and_one_nan_in_sql() {
    for of in types() {
        let values = arrow_cast::cast(&floats(), &of).unwrap();
        let query = Query::new().group_by([col("x")]).aggregate([count_all()]);
        for (order, counts) in
            [(FloatOrder::Total, vec![1, 1, 2, 1, 1, 1, 1]), (FloatOrder::Sql, vec![2, 2, 2, 1, 1])]
        {
            for target in &devices() {
                let batch = batch_on(target, &[("x", values.clone())]);
                let query = query.bind(batch.schema(), &Options::default().floats(order)).unwrap();
                assert_eq!(query.schema().field(0).name(), "x");
                let made = query.run(&batch, &target.stream).wait().unwrap();
                let counts: ArrayRef = Arc::new(Int64Array::from(counts.clone()));
                let context = format!("{of}, {order:?}, on {target:?}");
                target.assert_same(&made.columns()[1], &counts, &context);
                if order == FloatOrder::Sql {
                    let keys = [Some(0.0), Some(f64::NAN), None, Some(1.5), Some(-1.5)];
                    let keys: ArrayRef = Arc::new(Float64Array::from(keys.to_vec()));
                    let to = made.columns()[0].data_type();
                    target.assert_same(&made.columns()[0], &arrow_cast::cast(&keys, to).unwrap(), &context);
                }
            }
        }
    }
}

#[test]
fn different_values_are_counted_as_sql_has_it() {
    for of in types() {
        let values = arrow_cast::cast(&floats(), &of).unwrap();
        for (order, count) in [(FloatOrder::Total, 6), (FloatOrder::Sql, 4)] {
            for target in &devices() {
                let batch = batch_on(target, &[("x", values.clone())]);
                let query = Query::new().aggregate([count_distinct(col("x"))]);
                let query = query.bind(batch.schema(), &Options::default().floats(order)).unwrap();
                let made = query.run(&batch, &target.stream).wait().unwrap();
                let expected: ArrayRef = Arc::new(Int64Array::from(vec![count]));
                target.assert_same(&made.columns()[0], &expected, &format_args!("{of}, {order:?}"));
            }
        }
    }
}

#[test]
fn joins_find_zeros_and_nans_in_sql() {
    for of in types() {
        let values = arrow_cast::cast(&floats(), &of).unwrap();
        let rows: ArrayRef = Arc::new(Int64Array::from_iter_values(0..8));
        for (floats, pairs) in [
            (FloatOrder::Total, [vec![0, 1, 3, 4, 5, 6], vec![0, 1, 3, 4, 5, 6]]),
            (FloatOrder::Sql, [vec![0, 3, 1, 5, 0, 3, 4, 1, 5, 6], vec![0, 0, 1, 1, 3, 3, 4, 5, 5, 6]]),
        ] {
            for target in &devices() {
                let batch = batch_on(target, &[("row", rows.clone())]);
                let key = [target.import(&values)];
                let evaluation = Options::new().floats(floats);
                let options = JoinOptions { evaluation, ..JoinOptions::default() };
                let made = join(&batch, &batch, (&key, &key), &options, &target.stream).wait().unwrap();
                for (made, rows) in made.columns().iter().zip(&pairs) {
                    let rows: ArrayRef = Arc::new(Int64Array::from(rows.clone()));
                    target.assert_same(made, &rows, &format_args!("{of}, {floats:?}, on {target:?}"));
                }
            }
        }
    }
}
