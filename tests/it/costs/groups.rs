//! The rows of the table that group and join.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, StringArray};
use arrow_schema::{Field, Schema};
use bowstring::DeviceBatch;
use bowstring::compute::{JoinTable, Query, WindowFrame, Windows, group, partition_by_hash};
use bowstring::expr::{Options, col, mean, sum};

use super::{Bench, ROWS, bytes_of};
use crate::support::*;

impl Bench {
    /// Groups rows by numbers and by text, sums numbers of the groups, and finds rows by their keys.
    pub fn groups(&mut self, rng: &mut Random) {
        let mut keys = |limit: usize| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| rng.below(limit) as i64)))
        };
        let (few, some, many) = (keys(100), keys(1000), keys(ROWS));
        let flags: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| ["A", "N", "R"][i % 7 % 3])));
        for (name, keys) in
            [("Int64, 100 values", &few), ("Int64, many values", &many), ("Utf8, 3 values", &flags)]
        {
            let there = [self.on(keys)];
            self.row(&format!("group {name}"), bytes_of(keys) + 4 * ROWS, |stream| {
                group(&there, stream).wait()
            });
        }
        let (some_apart, many_apart) = (apart(&some), apart(&many));
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|i| i << 20)));
        let cents = Decimal128Array::from_iter_values((0..ROWS as i128).map(|i| i << 40));
        let cents: ArrayRef = Arc::new(cents.with_precision_and_scale(15, 2).unwrap());
        let floats: ArrayRef = Arc::new(Float64Array::from_iter_values((0..ROWS).map(|i| i as f64 / 8.0)));
        for (name, keys, values) in [
            ("Int64 by 100 values", &few, &numbers),
            ("Int64 by 1000 values", &some, &numbers),
            ("Int64 by 1000 values far apart", &some_apart, &numbers),
            ("Int64 by many values", &many, &numbers),
            ("Int64 by many values far apart", &many_apart, &numbers),
            ("Decimal128 by 3 values", &flags, &cents),
            ("Float64 by 100 values", &few, &floats),
        ] {
            let columns = [("k", keys), ("x", values)];
            let fields = columns.map(|(name, column)| Field::new(name, column.data_type().clone(), false));
            let there = columns.map(|(_, column)| self.on(column));
            let batch =
                DeviceBatch::try_new(Arc::new(Schema::new(fields.to_vec())), there.to_vec(), ROWS).unwrap();
            let query = Query::new().group_by([col("k")]).aggregate([sum(col("x"))]);
            let query = query.bind(batch.schema(), &Options::default()).unwrap();
            let must = bytes_of(keys) + bytes_of(values);
            self.row(&format!("sum {name}"), must, |stream| query.run(&batch, stream).wait());
        }
        for (name, keys) in [("Int64", &many), ("Utf8", &flags)] {
            let there = [self.on(keys)];
            let must = bytes_of(keys) + 4 * ROWS;
            self.row(&format!("partition_by_hash {name}, 16 parts"), must, |stream| {
                partition_by_hash(&there, 16, stream).wait()
            });
        }
        let columns = [("n", &numbers), ("f", &floats)];
        let fields = columns.map(|(name, column)| Field::new(name, column.data_type().clone(), false));
        let there = columns.map(|(_, column)| self.on(column)).to_vec();
        let batch = DeviceBatch::try_new(Arc::new(Schema::new(fields.to_vec())), there, ROWS).unwrap();
        let windows = Windows::new(&[], &[], ROWS, &self.stream().clone()).wait().unwrap();
        for (name, frame, one) in [
            ("running sum Int64", WindowFrame::RUNNING, sum(col("n"))),
            ("moving mean Float64, 7 rows", WindowFrame::rows(-6, 0), mean(col("f"))),
        ] {
            self.row(name, 2 * bytes_of(&numbers), |_| {
                windows.aggregate_frames(&batch, frame, [one.clone()], &Options::default()).wait()
            });
        }
        let unique: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(|i| i ^ 0x155)));
        let (built, there) = ([self.on(&unique)], [self.on(&many)]);
        let (built_apart, there_apart) = ([self.on(&apart(&unique))], [self.on(&many_apart)]);
        self.row("JoinTable::new Int64", bytes_of(&unique), |stream| {
            JoinTable::new(&built, false, stream).wait()
        });
        for (name, build, there) in [
            ("unique", &built, &there),
            ("unique and far apart", &built_apart, &there_apart),
            ("repeated", &there, &there),
        ] {
            let stream = self.stream().clone();
            let table = JoinTable::new(build, false, &stream).wait().unwrap();
            self.row(&format!("pairs of Int64, {name}"), bytes_of(&many) + 8 * ROWS, |stream| {
                table.find(there, stream).wait()?.pairs(stream).wait()
            });
        }
    }
}

/// Returns as many different keys, too far apart for slots of their own.
fn apart(keys: &ArrayRef) -> ArrayRef {
    Arc::new(
        keys.as_primitive::<Int64Type>()
            .unary::<_, Int64Type>(|key| key.wrapping_mul(0x9e37_79b9_7f4a_7c15u64 as i64)),
    )
}
