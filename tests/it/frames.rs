//! Aggregates of frames: every device gives what a plain evaluator gives, floats to the last bit.

use std::sync::Arc;

use arrow_array::*;
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::DataType;
use bowstring::compute::FrameBound::{Peers, Row, Unbounded};
use bowstring::compute::{SortColumn, SortOptions, WindowFrame, Windows};
use bowstring::expr::{
    Options, Overflow, bit_and, bool_or, col, count, count_all, count_distinct, first, first_value, last,
    max, mean, median, min, sum, variance,
};
use bowstring::{DeviceArray, Error, Stream};

use crate::groups::{batch_on, grouped};
use crate::support::*;

/// The rows in the order of windows, and the places of each row's part and of its equals.
struct Placed {
    order: Vec<usize>,
    parts: Vec<[usize; 2]>,
    peers: Vec<[usize; 2]>,
}

impl Placed {
    fn new(by: &ArrayRef, order: &ArrayRef) -> Placed {
        let field = SortField::new(order.data_type().clone());
        let rows =
            RowConverter::new(vec![field]).unwrap().convert_columns(std::slice::from_ref(order)).unwrap();
        let key: Vec<OwnedRow> = rows.iter().map(|row| row.owned()).collect();
        let mut placed = Placed { order: vec![], parts: vec![], peers: vec![] };
        for mut part in grouped(std::slice::from_ref(by)) {
            part.sort_by(|a, b| key[*a].cmp(&key[*b]));
            let start = placed.order.len();
            for row in &part {
                let first = part.iter().position(|other| key[*other] == key[*row]).unwrap();
                let after = 1 + part.iter().rposition(|other| key[*other] == key[*row]).unwrap();
                placed.peers.push([start + first, start + after]);
                placed.parts.push([start, start + part.len()]);
            }
            placed.order.extend(part);
        }
        placed
    }

    /// The places of a row's frame, by the row's place.
    fn frame(&self, frame: WindowFrame, place: usize) -> std::ops::Range<usize> {
        let [first, after] = self.parts[place];
        let at = |by: i64, more: i128| {
            let place = place as i128 + i128::from(by) + more;
            place.clamp(first as i128, after as i128) as usize
        };
        let start = match frame.start {
            Unbounded => first,
            Row(by) => at(by, 0),
            Peers => self.peers[place][0],
        };
        let end = match frame.end {
            Unbounded => after,
            Row(by) => at(by, 1),
            Peers => self.peers[place][1],
        };
        start..end.max(start)
    }

    /// A value for each row, of the places of its frame.
    fn each<T: Clone>(&self, frame: WindowFrame, of: impl Fn(std::ops::Range<usize>) -> T) -> Vec<T> {
        let mut all = vec![None; self.order.len()];
        for (place, row) in self.order.iter().enumerate() {
            all[*row] = Some(of(self.frame(frame, place)));
        }
        all.into_iter().map(Option::unwrap).collect()
    }
}

/// The sum of floats as it is defined: from the first place on, the largest node that fits, each the sum of
/// sixteen of the level below.
fn sum_of(values: &[Option<f64>], frame: std::ops::Range<usize>) -> f64 {
    fn node(values: &[Option<f64>], size: usize, at: usize) -> f64 {
        let parts = (0..16).map(|i| at + i * (size / 16));
        parts.fold(0.0, |sum, at| match size {
            16 => values[at].map_or(sum, |value| plus(sum, value)),
            _ => plus(sum, node(values, size / 16, at)),
        })
    }
    fn plus(a: f64, b: f64) -> f64 {
        if (a + b).is_nan() { f64::NAN } else { a + b }
    }
    let (mut sum, mut at) = (0.0, frame.start);
    while at < frame.end {
        let mut size = 1;
        while at % (16 * size) == 0 && at + 16 * size <= frame.end {
            size *= 16;
        }
        sum = match size {
            1 => values[at].map_or(sum, |value| plus(sum, value)),
            _ => plus(sum, node(values, size, at)),
        };
        at += size;
    }
    sum
}

fn frames() -> Vec<WindowFrame> {
    let ends = [(Unbounded, Unbounded), (Peers, Peers), (Peers, Unbounded), (Row(-20), Peers)];
    let mut frames = vec![WindowFrame::RUNNING, WindowFrame::default()];
    frames.extend(ends.map(|(start, end)| WindowFrame { start, end }));
    let rows = [(-3, 0), (-2, 2), (-300, -5), (1, 4), (-40, 40), (3, -3), (i64::MIN, 0), (1, i64::MAX)];
    frames.extend(rows.map(|(start, end)| WindowFrame::rows(start, end)));
    frames
}

#[test]
fn frames_have_the_aggregates_of_the_definition() {
    let mut random = Random::new(90);
    let large = if interpreted() { 900 } else { 5000 };
    for (len, distinct) in [(0, 1), (1, 1), (90, 4), (700, 1), (large, 3)] {
        let by = some_of(&array(&DataType::Utf8, distinct, Nulls::None, &mut random), len, &mut random);
        let order = some_of(&array(&DataType::Int32, 40, Nulls::Some, &mut random), len, &mut random);
        let some = |random: &mut Random| random.below(5) > 0;
        let n: Vec<Option<i64>> =
            (0..len).map(|_| some(&mut random).then(|| random.bits() as i64 >> 20)).collect();
        let odd = [f64::NAN, f64::INFINITY, -0.0, 1e300];
        let f: Vec<Option<f64>> = (0..len)
            .map(|i| match random.below(400) {
                0 if len != 700 => Some(odd[random.below(4)]),
                _ => (i % 7 > 0).then(|| random.bits() as f64 / 1e15 - 3000.0),
            })
            .collect();
        let t = array(&DataType::Utf8View, len, Nulls::Some, &mut random);
        let d: ArrayRef = Arc::new(
            Decimal128Array::from_iter(n.iter().map(|n| n.map(|n| i128::from(n) << 40)))
                .with_precision_and_scale(38, 3)
                .unwrap(),
        );
        let columns = [
            ("n", Arc::new(Int64Array::from(n.clone())) as ArrayRef),
            ("f", Arc::new(Float64Array::from(f.clone())) as ArrayRef),
            ("t", t.clone()),
            ("d", d),
        ];
        let placed = Placed::new(&by, &order);
        let sorted_f: Vec<Option<f64>> = placed.order.iter().map(|row| f[*row]).collect();
        let few = if len < 100 { 1 } else { 4 };
        for frame in frames().into_iter().step_by(few) {
            let each = |of: &dyn Fn(&[usize]) -> Option<i64>| -> ArrayRef {
                let of = |places: std::ops::Range<usize>| of(&placed.order[places]);
                Arc::new(Int64Array::from(placed.each(frame, of)))
            };
            let valid = |rows: &[usize]| rows.iter().filter_map(|row| n[*row]).collect::<Vec<i64>>();
            let some = |rows: &[usize], of: &dyn Fn(Vec<i64>) -> i64| {
                Some(valid(rows)).filter(|values| !values.is_empty()).map(of)
            };
            let add = |values: Vec<i64>| values.iter().sum::<i64>();
            let floats = placed.each(frame, |places| {
                let count = sorted_f[places.clone()].iter().flatten().count();
                (count > 0).then(|| (sum_of(&sorted_f, places), count as f64))
            });
            let text = |of: &dyn Fn(&[usize]) -> Option<usize>| {
                let of = |places: std::ops::Range<usize>| of(&placed.order[places]).map(|row| row as u32);
                arrow_select::take::take(&t, &UInt32Array::from(placed.each(frame, of)), None).unwrap()
            };
            let texts = t.as_any().downcast_ref::<StringViewArray>().unwrap();
            let valid_text = |row: &&usize| texts.is_valid(**row);
            let wide = |n: i64| i128::from(n) << 40;
            let decimals = placed.each(frame, |places| {
                let values = valid(&placed.order[places]);
                (!values.is_empty()).then(|| values.iter().map(|n| wide(*n)).sum::<i128>())
            });
            let decimals = Decimal128Array::from(decimals).with_precision_and_scale(38, 3).unwrap();
            let expected: Vec<ArrayRef> = vec![
                each(&|rows| some(rows, &add)),
                each(&|rows| Some(valid(rows).len() as i64)),
                each(&|rows| Some(rows.len() as i64)),
                each(&|rows| valid(rows).into_iter().min()),
                each(&|rows| valid(rows).into_iter().max()),
                each(&|rows| valid(rows).first().copied()),
                each(&|rows| rows.first().and_then(|row| n[*row])),
                each(&|rows| valid(rows).last().copied()),
                each(&|rows| {
                    let positive: Vec<i64> = valid(rows).into_iter().filter(|n| *n > 0).collect();
                    (!positive.is_empty()).then(|| positive.iter().sum())
                }),
                Arc::new(Float64Array::from_iter(floats.iter().map(|both| both.map(|(sum, _)| sum)))),
                Arc::new(Float64Array::from_iter(floats.iter().map(|both| both.map(|(sum, n)| sum / n)))),
                Arc::new(decimals),
                text(&|rows| rows.iter().filter(valid_text).min_by_key(|row| texts.value(**row)).copied()),
                text(&|rows| rows.iter().filter(valid_text).max_by_key(|row| texts.value(**row)).copied()),
                Arc::new(BooleanArray::from(placed.each(frame, |places| {
                    let values = valid(&placed.order[places]);
                    (!values.is_empty()).then(|| values.iter().any(|n| *n > 0))
                }))),
            ];
            for target in &devices() {
                let context = format!("{len} rows, {frame:?}, on {target:?}");
                let batch = batch_on(target, &columns);
                let by_column = target.import(&order);
                let order = [SortColumn::new(&by_column, SortOptions::default())];
                let windows =
                    Windows::new(&[target.import(&by)], &order, len, &target.stream).wait().unwrap();
                let all = [
                    sum(col("n")),
                    count(col("n")),
                    count_all(),
                    min(col("n")),
                    max(col("n")),
                    first(col("n")),
                    first_value(col("n")),
                    last(col("n")),
                    sum(col("n")).filter(col("n").gt(0)),
                    sum(col("f")),
                    mean(col("f")),
                    sum(col("d")),
                    min(col("t")),
                    max(col("t")),
                    bool_or(col("n").gt(0)),
                ];
                let made = windows.aggregate_frames(&batch, frame, all, &Options::default()).wait();
                let made = made.unwrap_or_else(|error| panic!("{error}: {context}"));
                assert_eq!(made.len(), len);
                for (i, (made, expected)) in made.columns().iter().zip(&expected).enumerate() {
                    let name = made.data_type();
                    target.assert_same(made, expected, &format_args!("{i}, {name}: {context}"));
                }
            }
        }
    }
}

/// Narrow and wide numbers, whose least values have kernels of their own.
#[test]
fn numbers_of_every_width_have_least_values_and_sums() {
    let mut random = Random::new(91);
    let len = 300;
    let types = [
        DataType::Int8,
        DataType::UInt16,
        DataType::Float16,
        DataType::Float32,
        DataType::UInt64,
        DataType::Date32,
        DataType::Decimal128(30, 2),
    ];
    for of in types {
        let values = array(&of, len, Nulls::Some, &mut random);
        for target in &devices() {
            let batch = batch_on(target, &[("x", values.clone())]);
            let windows = Windows::new(&[], &[], len, &target.stream).wait().unwrap();
            let frame = WindowFrame::rows(-18, 3);
            let both = [min(col("x")), max(col("x"))];
            let made = windows.aggregate_frames(&batch, frame, both, &Options::default()).wait().unwrap();
            let sort = |options| {
                arrow_row::RowConverter::new(vec![SortField::new_with_options(of.clone(), options)]).unwrap()
            };
            for (made, descending) in made.columns().iter().zip([false, true]) {
                let options = SortOptions { descending, nulls_first: false };
                let keys = sort(options).convert_columns(std::slice::from_ref(&values)).unwrap();
                let least = |row: usize| {
                    let rows = row.saturating_sub(18)..(row + 4).min(len);
                    rows.filter(|row| values.is_valid(*row)).min_by_key(|row| keys.row(*row).owned())
                };
                let picks = UInt32Array::from_iter((0..len).map(|row| least(row).map(|row| row as u32)));
                let expected = arrow_select::take::take(&values, &picks, None).unwrap();
                target.assert_same(made, &expected, &format_args!("{of}, {descending}, on {target:?}"));
            }
        }
    }
}

#[test]
fn sums_that_overflow_are_errors_null_or_wrap() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, 1, -5]));
    for target in &devices() {
        let batch = batch_on(target, &[("x", values.clone())]);
        let windows = Windows::new(&[], &[], 3, &target.stream).wait().unwrap();
        let sums = |overflow| {
            let options = Options::default().overflow(overflow);
            windows.aggregate_frames(&batch, WindowFrame::RUNNING, [sum(col("x"))], &options).wait()
        };
        let failed = sums(Overflow::Error).and_then(|made| made.columns()[0].wait());
        assert!(matches!(failed, Err(Error::Cast { .. })), "{failed:?} on {target:?}");
        let wrapped: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, i64::MAX - 4]));
        target.assert_same(&sums(Overflow::Wrap).unwrap().columns()[0], &wrapped, &"wrapped");
        let null: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MAX - 4)]));
        target.assert_same(&sums(Overflow::Null).unwrap().columns()[0], &null, &"null");
    }
}

#[test]
fn other_aggregates_and_other_rows_are_errors() {
    let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let target = devices().into_iter().next().unwrap();
    let batch = batch_on(&target, &[("x", values.clone())]);
    let windows = Windows::new(&[], &[], 3, &Stream::cpu()).wait().unwrap();
    for one in [variance(col("x"), 0), median(col("x")), count_distinct(col("x")), bit_and(col("x"))] {
        let name = format!("{one}");
        let made = windows.aggregate_frames(&batch, WindowFrame::RUNNING, [one], &Options::default()).wait();
        assert!(matches!(made, Err(Error::Invalid { .. })), "{name}: {made:?}");
    }
    let two = DeviceArray::try_from(&(Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef)).unwrap();
    let two = bowstring::DeviceBatch::try_new(batch.schema().clone(), vec![two], 2).unwrap();
    let made = windows.aggregate_frames(&two, WindowFrame::RUNNING, [sum(col("x"))], &Options::default());
    assert!(matches!(made.wait(), Err(Error::Invalid { .. })));
}
