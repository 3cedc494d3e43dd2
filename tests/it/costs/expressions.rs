//! Counts the instructions of expressions: single comparisons, a predicate of three terms, TPC-H's sixth
//! query.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Decimal128Array};
use arrow_schema::{DataType, Field, Schema};
use bowstring::DeviceBatch;
use bowstring::compute::{Query, filter_where};
use bowstring::expr::{Expr, Literal, Options, col, lit, sum};

use super::{Bench, ROWS, values};
use crate::support::Random;

impl Bench {
    fn batch(&self, columns: &[(&str, ArrayRef)]) -> DeviceBatch {
        let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.iter().map(|(_, array)| self.on(array)).collect();
        DeviceBatch::try_new(Arc::new(schema), arrays, ROWS).unwrap()
    }

    fn computed(&mut self, name: &str, must: usize, rows: &DeviceBatch, expr: Expr) {
        let bound = Query::new().select(&[expr]).bind(rows.schema(), &Options::default()).unwrap();
        self.row(name, must, |stream| bound.run(rows, stream).wait());
    }

    pub(super) fn expressions(&mut self, rng: &mut Random) {
        for data_type in [DataType::Int32, DataType::Int64, DataType::Float64, DataType::Decimal128(15, 2)] {
            let rows = self.batch(&[("a", values(&data_type, false, rng))]);
            let must = ROWS * data_type.primitive_width().unwrap() + ROWS / 8;
            let zero = Literal::of(data_type.clone(), 0);
            self.computed(&format!("a < k, {data_type}"), must, &rows, col("a").lt(zero));
        }
        let of = [DataType::Int32, DataType::Int64, DataType::Float64].map(|of| values(&of, true, rng));
        let [a, b, c] = of;
        let rows = self.batch(&[("a", a), ("b", b), ("c", c)]);
        let three = col("a").gt(0) & (col("b").lt(7) | col("c").gt_eq(0.5));
        self.computed("a > 0 and (b < 7 or c >= 0.5), nulls", ROWS * 20 + ROWS * 5 / 8, &rows, three);
        let sum_of = col("b") + col("b");
        let wrapping = Options::default().overflow(bowstring::expr::Overflow::Wrap);
        let bound = Query::new().select(&[sum_of]).bind(rows.schema(), &wrapping).unwrap();
        self.row("b + b, Int64, wrapping, nulls", ROWS * 16 + ROWS / 4, |stream| {
            bound.run(&rows, stream).wait()
        });
        // Values of two bytes, whose sums fit.
        let small = |of: DataType, rng: &mut Random| {
            arrow_cast::cast(&values(&DataType::Int16, true, rng), &of).unwrap()
        };
        let small = [("a", small(DataType::Int32, rng)), ("b", small(DataType::Int64, rng))];
        let fitting = self.batch(&small);
        self.computed("b + b, Int64, nulls", ROWS * 16 + ROWS / 4, &fitting, col("b") + col("b"));
        self.computed("a + 7, Int32, nulls", ROWS * 8 + ROWS / 4, &fitting, col("a") + 7);
        let c = || col("c");
        let product = c() * (lit(1.0) - c());
        self.computed("c * (1 - c), Float64, nulls", ROWS * 16 + ROWS / 4, &rows, product);
        let five = (c() + 1.0) * (c() - 2.0) * 3.0 + c();
        self.computed("(c + 1) * (c - 2) * 3 + c, Float64, nulls", ROWS * 16 + ROWS / 4, &rows, five);
        self.comparisons(rng);
        self.sixth_query(rng);
        self.texts(rng);
    }

    /// Comparisons of two columns.
    fn comparisons(&mut self, rng: &mut Random) {
        for (of, width) in [(DataType::Int64, 8), (DataType::Float64, 8), (DataType::Date32, 4)] {
            let rows = self.batch(&[("x", values(&of, true, rng)), ("y", values(&of, true, rng))]);
            let must = ROWS * 2 * width + ROWS / 2;
            self.computed(&format!("x < y, {of}, nulls"), must, &rows, col("x").lt(col("y")));
        }
        let of = DataType::Int32;
        let rows = self.batch(&[("x", values(&of, true, rng)), ("y", values(&of, true, rng))]);
        let both = col("x").lt(col("y")) & col("x").gt(1000) & !col("y").gt_eq(-5);
        let bound = Query::new().filter(&both).select(&[col("x")]);
        let bound = bound.bind(rows.schema(), &Options::default()).unwrap();
        self.row("filter by x < y and x > 1000 and not y >= -5, Int32, nulls", ROWS * 9, |stream| {
            bound.run(&rows, stream).wait()
        });
    }

    /// Tests of texts of 12 bytes on average, which read all of the text, and two characters of each.
    fn texts(&mut self, rng: &mut Random) {
        for of in [DataType::Utf8, DataType::Utf8View] {
            let column = arrow_cast::cast(&values(&DataType::Utf8, false, rng), &of).unwrap();
            let bytes = if of == DataType::Utf8 { 4 + 12 } else { 16 + 12 };
            let rows = self.batch(&[("s", column)]);
            for (test, name) in [
                (col("s").eq("abcdefgh"), "s = 8 bytes"),
                (col("s").starts_with("abc"), "s starts with 3 bytes"),
                (col("s").contains("xyz"), "s contains 3 bytes"),
                (col("s").like("%abcd%xyz%"), "s like '%abcd%xyz%'"),
                (col("s").like("%ab%_c"), "s like '%ab%_c'"),
            ] {
                self.computed(&format!("{name}, {of}"), ROWS * bytes + ROWS / 8, &rows, test);
            }
            // The offsets or views, and the two characters if they are not in a view.
            let moved = if of == DataType::Utf8 { 2 * (4 + 2) } else { 2 * 16 };
            self.computed(
                &format!("substring 0, 2, {of}"),
                ROWS * moved,
                &rows,
                col("s").substring(0, Some(2)),
            );
        }
    }

    fn sixth_query(&mut self, rng: &mut Random) {
        let mut decimals = |count: usize, times: i128| -> ArrayRef {
            let values = (0..ROWS).map(|_| times * rng.below(count) as i128);
            let values = Decimal128Array::from_iter_values(values);
            Arc::new(values.with_precision_and_scale(15, 2).unwrap())
        };
        let (quantity, price, discount) = (decimals(50, 100), decimals(10_000_000, 1), decimals(11, 1));
        let days = Date32Array::from_iter_values((0..ROWS).map(|_| 8036 + rng.below(2526) as i32));
        let rows = self.batch(&[
            ("quantity", quantity),
            ("price", price),
            ("discount", discount),
            ("shipped", Arc::new(days)),
        ]);
        let year = col("shipped").gt_eq(Literal::date(8766)) & col("shipped").lt(Literal::date(9131));
        let condition = year & col("discount").between(0.05, 0.07) & col("quantity").lt(24);
        let revenue = [sum(col("price") * col("discount"))];
        let bound = Query::new()
            .filter(&condition)
            .aggregate(&revenue)
            .bind(rows.schema(), &Options::default())
            .unwrap();
        self.row("TPC-H Q6, Decimal128(15, 2), Date32", ROWS * 52, |stream| bound.run(&rows, stream).wait());
        let days = rows.columns()[3].clone();
        let schema = Arc::new(Schema::new(vec![rows.schema().field(3).clone()]));
        let rows = DeviceBatch::try_new(schema, vec![days], ROWS).unwrap();
        // One year out of seven.
        let year = col("shipped").gt_eq(Literal::date(8766)) & col("shipped").lt(Literal::date(9131));
        self.row("filter_where Date32, a year of seven", ROWS * 4 + ROWS * 8 / 7, |stream| {
            filter_where(&rows, &year, stream).wait()
        });
    }
}
