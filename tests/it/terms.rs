//! Tests comparisons of columns with constants: at the limits of every type, combined, and as conditions that
//! keep few or many rows.
//!
//! On GPUs these become ranges of bits, and aggregates then look up the remaining rows. The CPU does neither,
//! so it gives the expected results.

use std::sync::Arc;

use arrow_array::*;
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bowstring::Error;
use bowstring::compute::Query;
use bowstring::expr::*;

use crate::expressions::{batch, ints, of};
use crate::support::*;

/// The types, each with values around its limits and zero, as bits.
fn types() -> Vec<(DataType, Vec<i128>)> {
    use DataType::*;
    let signed = |data_type: DataType, bits: u32| {
        let (least, most) = (i128::MIN >> (128 - bits), i128::MAX >> (128 - bits));
        (data_type, vec![least, least + 1, -2, -1, 0, 1, 2, most - 1, most])
    };
    let unsigned = |data_type: DataType, bits: u32| {
        let (half, most) = (1i128 << (bits - 1), (1i128 << bits) - 1);
        (data_type, vec![0, 1, 2, half - 1, half, half + 1, most - 1, most])
    };
    let doubles = [
        -f64::NAN,
        f64::NEG_INFINITY,
        -1.0,
        -f64::MIN_POSITIVE,
        -0.0,
        0.0,
        1e-300,
        1.0,
        f64::INFINITY,
        f64::NAN,
    ];
    let singles = [
        -f32::NAN,
        f32::NEG_INFINITY,
        -1.0,
        -f32::MIN_POSITIVE,
        -0.0,
        0.0,
        1e-30,
        1.0,
        f32::INFINITY,
        f32::NAN,
    ];
    let halves = [0xfe00u16, 0xfc00, 0xbc00, 0x8001, 0x8000, 0, 1, 0x3c00, 0x7c00, 0x7e00];
    let most = 10i128.pow(38) - 1;
    vec![
        signed(Int8, 8),
        signed(Int16, 16),
        signed(Int32, 32),
        signed(Date32, 32),
        signed(Int64, 64),
        unsigned(UInt8, 8),
        unsigned(UInt16, 16),
        unsigned(UInt32, 32),
        unsigned(UInt64, 64),
        (Float16, halves.map(|x| i128::from(x as i16)).to_vec()),
        (Float32, singles.map(|x| i128::from(x.to_bits() as i32)).to_vec()),
        (Float64, doubles.map(|x| i128::from(x.to_bits() as i64)).to_vec()),
        (Decimal128(38, 0), vec![-most, -1 << 64, -1, 0, 1, (1 << 64) - 1, 1 << 64, most]),
    ]
}

/// A column that repeats these values, some of them null, after a few rows that are sliced off.
fn column(data_type: &DataType, values: &[i128], rows: usize) -> ArrayRef {
    let width = data_type.primitive_width().unwrap();
    let bytes: Vec<u8> =
        (0..rows + 3).flat_map(|i| values[i % values.len()].to_le_bytes()[..width].to_vec()).collect();
    let nulls: NullBuffer = (0..rows + 3).map(|i| i % 7 != 5).collect();
    let data = ArrayData::builder(data_type.clone()).len(rows + 3).add_buffer(Buffer::from(bytes));
    make_array(data.nulls(Some(nulls)).build().unwrap()).slice(3, rows)
}

#[test]
fn comparisons_with_constants_are_the_same_everywhere() {
    let targets = devices();
    for (data_type, values) in types() {
        let made = column(&data_type, &values, 70);
        let rows: Vec<_> = targets.iter().map(|target| batch(target, &[("a", made.clone())])).collect();
        let literal = |value: i128| Literal::of(data_type.clone(), value);
        let mut exprs = vec![];
        for (i, &value) in values.iter().enumerate() {
            let a = || col("a");
            let k = || literal(value);
            exprs.extend([
                a().lt(k()),
                a().lt_eq(k()),
                a().gt(k()),
                a().gt_eq(k()),
                a().eq(k()),
                a().neq(k()),
            ]);
            exprs.extend([a().distinct(k()), !a().distinct(k()), Expr::from(k()).lt(a())]);
            let other = || literal(values[(i * 5 + 3) % values.len()]);
            exprs.extend([
                a().gt_eq(k()) & a().lt(other()),
                !(a().gt_eq(other()) & a().lt_eq(k())),
                a().lt(k()) | a().gt(other()),
                (a().eq(k()) | a().is_null()) & (a().neq(other()) | a().is_not_null()),
                a().in_list([k(), other()]),
                !a().in_list([k(), other()]),
            ]);
        }
        for expr in exprs {
            let found = |i: usize| of(&targets[i], &rows[i], expr.clone(), &Options::default()).unwrap();
            let right = found(0);
            for (i, target) in targets.iter().enumerate().skip(1) {
                assert_eq!(&found(i), &right, "{expr} of {data_type} on {target:?}");
            }
        }
    }
}

#[test]
fn aggregates_are_of_the_rows_of_their_condition_few_or_many() {
    let targets = devices();
    let wrap = Options::default().overflow(Overflow::Wrap);
    for rows in [1, 31, 2047, 2048, 2049, 6000] {
        let (_, values) = types().swap_remove(4);
        let decimal =
            |data_type: DataType| column(&data_type, &[-(10i128.pow(33)), 1 << 70, -3, 10i128.pow(32)], rows);
        let places = ints((0..rows as i32).map(|i| i * 7919 % 1000));
        let floats: ArrayRef =
            Arc::new(Float64Array::from_iter_values((0..rows).map(|i| (i as f64).sin() * 1e9)));
        let columns = [
            ("place", places),
            ("value", column(&DataType::Int64, &values, rows)),
            ("decimal", decimal(DataType::Decimal128(38, 2))),
            ("float", floats),
        ];
        let all: Vec<_> = targets.iter().map(|target| batch(target, &columns)).collect();
        let of_value =
            [sum(col("value")), count(col("value")), min(col("value")), max(col("value")), count_all()];
        let of_decimal = [sum(col("decimal")), max(col("decimal"))];
        let of_float = [sum(col("float")), sum(col("value"))];
        for below in [0, 1, 5, 100, 250, 300, 999, 1000] {
            let few = || col("place").lt(below);
            let conditions = [
                few(),
                few() & (col("value") - 1).lt(0),
                few() | col("value").is_null(),
                few() & col("decimal").gt(0),
            ];
            for condition in conditions {
                for aggregates in [&of_value[..], &of_decimal[..], &of_float[..]] {
                    let found = |i: usize| {
                        let bound = Query::new()
                            .filter(&condition)
                            .aggregate(aggregates)
                            .bind(all[i].schema(), &wrap)
                            .unwrap();
                        RecordBatch::try_from(&bound.run(&all[i], &targets[i].stream).wait().unwrap())
                            .unwrap()
                    };
                    let right = found(0);
                    for (i, target) in targets.iter().enumerate().skip(1) {
                        assert_eq!(found(i), right, "{condition}, {rows} rows on {target:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn rows_that_a_condition_leaves_out_do_not_fail_and_others_are_named() {
    for target in devices() {
        let value = ints((0..5000).map(|i| if i % 1000 == 900 { i32::MAX } else { i }));
        let rows = batch(&target, &[("place", ints(0..5000)), ("value", value)]);
        let sum_if = |condition: Expr| {
            let bound = Query::new()
                .filter(&condition)
                .aggregate(&[sum(col("value") + 1)])
                .bind(rows.schema(), &Options::default());
            bound.unwrap().run(&rows, &target.stream).wait()
        };
        // Conditions that keep few rows of a tile, and many.
        assert!(sum_if(col("place").gt(2000) & col("place").lt(2900)).is_ok(), "{target:?}");
        assert!(sum_if(col("place").lt(100)).is_ok(), "{target:?}");
        for (condition, first) in
            [(col("place").gt(2890) & col("place").lt(3910), 2900), (col("place").gt(950), 1900)]
        {
            let failed = sum_if(condition);
            let is_right = matches!(&failed, Err(Error::Evaluation { row, .. }) if *row == first);
            assert!(is_right, "{failed:?} on {target:?}");
        }
    }
}
