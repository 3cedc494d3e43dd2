//! All of the CPU's operations on arrays of many types, for tests of their common properties.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::*;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, UnionFields};
use bowstring::compute::{
    CastOptions, Coalescer, DropOptions, Query, Scalar, Selection, SortColumn, SortOptions, TakeOptions,
    Windows, aggregate, can_cast, cast, concat, drop_nulls, evaluate, fill_null, filter, filter_where,
    is_not_null, is_null, logical_null_count, null_count, take, zip,
};
use bowstring::exchange::{from_arrow, to_arrow, validate};
use bowstring::expr::{Options, col, count_all, count_distinct, last, lit, median, min, stddev, sum};
use bowstring::{DeviceArray, DeviceBatch, Result, Stream};

/// An operation on certain arrays, with a name.
pub struct Work {
    pub name: String,
    pub run: Box<dyn Fn() -> Result<()>>,
}

/// Arrays of this many rows, of several types.
fn arrays(rows: usize) -> Vec<ArrayRef> {
    let some = |row: usize| row % 5 != 4;
    let texts = || (0..rows).map(move |row| some(row).then(|| format!("text {}", row % 1000)));
    let numbers = Int32Array::from_iter((0..rows).map(|row| some(row).then_some(row as i32)));
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let ends = OffsetBuffer::new(ScalarBuffer::from_iter(0..=rows as i32));
    let lists = ListArray::new(item.clone(), ends, Arc::new(numbers.clone()), None);
    let field = Field::new("a", DataType::Int32, true);
    let keys = Int32Array::from_iter((0..rows).map(|row| some(row).then_some(row as i32 % 3)));
    let values: ArrayRef = Arc::new(StringArray::from(vec!["x", "y", "z"]));
    let run_ends =
        Int32Array::from_iter_values((1..=rows.div_ceil(2) as i32).map(|i| (2 * i).min(rows as i32)));
    let run_values = numbers.slice(0, rows.div_ceil(2));
    let members = UnionFields::try_new([0], [field.clone()]).unwrap();
    let ids = ScalarBuffer::from(vec![0i8; rows]);
    vec![
        Arc::new(Int64Array::from_iter((0..rows).map(|row| some(row).then_some(row as i64)))),
        Arc::new(BooleanArray::from_iter((0..rows).map(|row| some(row).then_some(row % 2 == 0)))),
        Arc::new(StringArray::from_iter(texts())),
        Arc::new(StringViewArray::from_iter(texts())),
        Arc::new(Decimal128Array::from_iter((0..rows).map(|row| some(row).then_some(row as i128)))),
        Arc::new(FixedSizeBinaryArray::try_from_iter((0..rows).map(|row| [row as u8; 3])).unwrap()),
        Arc::new(lists),
        Arc::new(FixedSizeListArray::new(item, 1, Arc::new(numbers.clone()), None)),
        Arc::new(StructArray::new(vec![field].into(), vec![Arc::new(numbers.clone())], None)),
        Arc::new(DictionaryArray::<Int32Type>::new(keys, values)),
        Arc::new(RunArray::<Int32Type>::try_new(&run_ends, &run_values).unwrap()),
        Arc::new(UnionArray::try_new(members, ids, None, vec![Arc::new(numbers)]).unwrap()),
    ]
}

fn batch(columns: &[&DeviceArray]) -> DeviceBatch {
    let field =
        |(i, column): (usize, &&DeviceArray)| Field::new(format!("c{i}"), column.data_type().clone(), true);
    let schema = Schema::new(columns.iter().enumerate().map(field).collect::<Vec<_>>());
    let rows = columns[0].len();
    DeviceBatch::try_new(Arc::new(schema), columns.iter().map(|column| (*column).clone()).collect(), rows)
        .unwrap()
}

/// A scalar for [`fill_null`] of these values.
fn filling(values: &DeviceArray) -> Option<Scalar> {
    let first = match values.data_type() {
        DataType::Int64 | DataType::Boolean | DataType::Utf8 | DataType::Decimal128(..) => values.slice(0, 1),
        _ => return None,
    };
    Some(Scalar::try_new(&first.unwrap()).unwrap())
}

/// Every operation, on arrays of this many rows.
pub fn all(rows: usize) -> Vec<Work> {
    let stream = Stream::cpu();
    let arrays: Vec<DeviceArray> = arrays(rows).iter().map(|array| from_arrow(array).unwrap()).collect();
    let mask = from_arrow(&BooleanArray::from_iter((0..rows).map(|row| Some(row % 3 != 0)))).unwrap();
    let indices = from_arrow(&Int32Array::from_iter_values((0..rows as i32).rev())).unwrap();
    let mut works = vec![];
    let mut add = |name: String, run: Box<dyn Fn() -> Result<()>>| works.push(Work { name, run });
    for array in &arrays {
        let of = |name: &str| format!("{name} of {}", array.data_type());
        let own = || (array.clone(), mask.clone(), indices.clone(), stream.clone());
        let (values, mask, _, on) = own();
        add(of("filter"), Box::new(move || filter(&values, &mask, &on).wait().map(drop)));
        let (values, _, indices, on) = own();
        let options = TakeOptions::default();
        add(of("take"), Box::new(move || take(&values, &indices, &options, &on).wait().map(drop)));
        let (values, _, _, on) = own();
        add(
            of("drop_nulls"),
            Box::new(move || drop_nulls(&values, &DropOptions::default(), &on).wait().map(drop)),
        );
        let (values, _, _, on) = own();
        add(of("is_null"), Box::new(move || is_null(&values, &on).wait().map(drop)));
        let (values, _, _, on) = own();
        add(of("is_not_null"), Box::new(move || is_not_null(&values, &on).wait().map(drop)));
        let (values, _, _, on) = own();
        add(of("null_count"), Box::new(move || null_count(&values, &on).wait().map(drop)));
        let (values, _, _, on) = own();
        add(of("logical_null_count"), Box::new(move || logical_null_count(&values, &on).wait().map(drop)));
        let (values, _, _, on) = own();
        add(of("concat"), Box::new(move || concat(&[&values, &values], &on).wait().map(drop)));
        let (values, _, _, _) = own();
        add(of("validate"), Box::new(move || validate(&values)));
        let (values, mask, indices, on) = own();
        add(
            of("coalesce"),
            Box::new(move || {
                let batch = batch(&[&values]);
                let mut coalescer = Coalescer::new(batch.schema().clone(), batch.len().max(1) * 2, &on)?;
                coalescer.push_batch_with_filter(&batch, &mask)?;
                coalescer.push_batch_with_take(&batch, &indices, &TakeOptions::default())?;
                coalescer.finish_buffered_batch()?;
                coalescer.next_completed_batch().map(drop)
            }),
        );
        if let Some(scalar) = filling(array) {
            let (values, _, _, on) = own();
            add(of("fill_null"), Box::new(move || fill_null(&values, &scalar, &on).wait().map(drop)));
        }
        for to in [DataType::Utf8, DataType::Utf8View, DataType::Int32] {
            if can_cast(array.data_type(), &to) && *array.data_type() != to {
                let (values, _, _, on) = own();
                add(
                    of(&format!("cast to {to}")),
                    Box::new(move || cast(&values, &to, &CastOptions::default(), &on).wait().map(drop)),
                );
            }
        }
    }
    let own = || (batch(&arrays.iter().take(5).collect::<Vec<_>>()), stream.clone());
    let (rows, on) = own();
    add(
        "evaluate".into(),
        Box::new(move || evaluate(&rows, &[col("c0") + 1, col("c1")], &on).wait().map(drop)),
    );
    let (rows, on) = own();
    let numbers = col("c0").gt(7) & col("c1");
    add("filter_where".into(), Box::new(move || filter_where(&rows, &numbers, &on).wait().map(drop)));
    for (name, text) in [("c2", "text 7"), ("c3", "t%7")] {
        let (rows, on) = own();
        let tested = if name == "c2" { col(name).eq(lit(text)) } else { col(name).like(text) };
        add(
            format!("filter_where of {name}"),
            Box::new(move || filter_where(&rows, &tested, &on).wait().map(drop)),
        );
    }
    let (rows, on) = own();
    let both = [sum(col("c0")), count_all()];
    add("aggregate".into(), Box::new(move || aggregate(&rows, &both, None, &on).wait().map(drop)));
    let (rows, on) = own();
    let bound =
        Query::new().select(&[col("c4") + col("c4")]).bind(rows.schema(), &Options::default()).unwrap();
    add("projection".into(), Box::new(move || bound.run(&rows, &on).wait().map(drop)));
    let (rows, on) = own();
    let (n, t) = (|| col("c0"), || col("c2"));
    let all = [sum(n()), min(t()), last(t()), stddev(n(), 1), count_distinct(t()), median(n())];
    let grouped = Query::new().group_by([n() % 5]).aggregate(all).bind(rows.schema(), &Options::default());
    let grouped = grouped.unwrap();
    add("group_by".into(), Box::new(move || grouped.run(&rows, &on).wait().map(drop)));
    let (rows, on) = own();
    let by = move || -> Result<()> {
        let order = [SortColumn::new(&rows.columns()[2], SortOptions::default())];
        let windows = Windows::new(&rows.columns()[..1], &order, rows.len(), &on).wait()?;
        windows.dense_rank().wait()?;
        windows.lag(&rows, 2).wait().map(drop)
    };
    add("windows".into(), Box::new(by));
    let (values, masked, on) = (arrays[2].clone(), mask.clone(), stream.clone());
    add("zip".into(), Box::new(move || zip(&masked, &values, &values, &on).wait().map(drop)));
    let (values, masked, on) = (arrays[0].clone(), mask, stream.clone());
    add(
        "selection".into(),
        Box::new(move || Selection::of_mask(&masked, &on).wait()?.filter(&values).wait().map(drop)),
    );
    works
}

/// Converts the arrays to arrow-rs and back, which is not an operation of its own.
pub fn to_arrow_and_back(rows: usize) -> Result<()> {
    arrays(rows).iter().try_for_each(|array| from_arrow(&to_arrow(&from_arrow(array)?)?).map(drop))
}
