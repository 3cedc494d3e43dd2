//! Operations and what they cost.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray,
};
use arrow_schema::DataType;
use bowstring::compute::{
    CastOptions, JoinKind, JoinOptions, JoinTable, Query, Selection, SortColumn, SortOptions, TakeOptions,
    aggregate, cast, evaluate, filter, filter_where, is_null, join, null_count, sort_by, take,
};
use bowstring::exchange::from_arrow;
use bowstring::expr::{Literal, Options, col, count_all, sum};
use bowstring::{Device, DeviceArray, DeviceBatch, Result, Stream};

/// A batch of three sales, the input of the operations below.
fn sales() -> Result<DeviceBatch> {
    let price: ArrayRef = Arc::new(Float64Array::from(vec![Some(10.0), Some(20.5), None]));
    let pieces: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 7]));
    let batch = RecordBatch::try_from_iter_with_nullable([("price", price, true), ("pieces", pieces, false)]);
    DeviceBatch::try_from(&batch.expect("columns of one length"))
}

// ANCHOR: selection
pub fn one_mask_for_many_arrays() -> Result<()> {
    let stream = Stream::cpu();
    let mask = from_arrow(&BooleanArray::from(vec![Some(true), None, Some(true)]))?;
    let selection = Selection::of_mask(&mask, &stream).wait()?; // the mask is read and counted here, once

    let numbers = from_arrow(&Int32Array::from(vec![1, 2, 3]))?;
    let words = from_arrow(&StringArray::from(vec!["a", "b", "c"]))?;
    for array in [&numbers, &words] {
        assert_eq!(selection.filter(array).wait()?.len(), 2);
    }
    Ok(())
}
// ANCHOR_END: selection

// ANCHOR: sorted
pub fn rows_in_order() -> Result<()> {
    let (rows, stream) = (sales()?, Stream::cpu());
    let descending = SortOptions { descending: true, nulls_first: false };
    let by = [SortColumn::new(&rows.columns()[0], descending)];
    let dearest = RecordBatch::try_from(&sort_by(&rows, &by, Some(2), &stream).wait()?)?;
    assert_eq!(dearest.column(1).as_primitive::<Int64Type>().values(), &[1, 3]);
    Ok(())
}
// ANCHOR_END: sorted

// ANCHOR: grouped
pub fn a_row_for_each_group() -> Result<()> {
    let (rows, stream) = (sales()?, Stream::cpu());
    let query = Query::new()
        .filter(col("price").is_not_null())
        .group_by([col("pieces").gt(2).alias("many")])
        .aggregate([sum(col("pieces")), count_all()]);
    let query = query.bind(rows.schema(), &Options::default())?;
    let groups = RecordBatch::try_from(&query.run(&rows, &stream).wait()?)?;
    assert_eq!(groups.schema().field(0).name(), "many");
    assert_eq!(groups.column(2).as_primitive::<Int64Type>().values(), &[1, 1]);
    Ok(())
}
// ANCHOR_END: grouped

// ANCHOR: joined
pub fn rows_beside_others() -> Result<()> {
    let (rows, stream) = (sales()?, Stream::cpu());
    let keys = &rows.columns()[1..2];
    let options = JoinOptions { kind: JoinKind::LeftSemi, ..JoinOptions::default() };
    assert_eq!(join(&rows, &rows, (keys, keys), &options, &stream).wait()?.len(), rows.len());

    // One side prepared, for any number of others.
    let table = JoinTable::new(keys, false, &stream).wait()?;
    let pairs = table.find(keys, &stream).wait()?.pairs(&stream).wait()?;
    assert!(pairs.right.len() >= rows.len());
    Ok(())
}
// ANCHOR_END: joined

// ANCHOR: predicate
pub fn a_predicate_never_becomes_an_array() -> Result<()> {
    let (rows, stream) = (sales()?, Stream::cpu());
    let cheap = col("price").lt(15.0) & col("pieces").gt(1);
    assert_eq!(filter_where(&rows, &cheap, &stream).wait()?.len(), 1);

    let made =
        evaluate(&rows, &[(col("pieces") * 2 + 1).alias("m"), col("price").is_null()], &stream).wait()?;
    assert_eq!(made.schema().field(1).name(), "price is null");

    let row =
        aggregate(&rows, &[sum(col("pieces")), count_all()], Some(&col("pieces").gt(2)), &stream).wait()?;
    let row = RecordBatch::try_from(&row)?;
    assert_eq!(row.column(0).as_primitive::<Int64Type>().value(0), 10);
    Ok(())
}
// ANCHOR_END: predicate

// ANCHOR: bound
pub fn bound_once_for_many_batches() -> Result<()> {
    let (batch, stream) = (sales()?, Stream::cpu());
    let cheap = Query::new().filter(col("price").lt(15.0)).bind(batch.schema(), &Options::default())?;
    for rows in [&batch, &batch, &batch] {
        assert_eq!(cheap.run(rows, &stream).wait()?.len(), 1);
    }
    println!("{}", cheap.explain()); // the plan, as it will run
    Ok(())
}
// ANCHOR_END: bound

// ANCHOR: sixth
pub fn the_sixth_query() -> Result<()> {
    let decimal = |values: Vec<i128>| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(15, 2).expect("they have 15 digits"))
    };
    let lineitem = RecordBatch::try_from_iter([
        ("quantity", decimal(vec![1_000, 3_000, 2_300])),
        ("price", decimal(vec![100_000, 200_000, 300_000])),
        ("discount", decimal(vec![6, 6, 7])),
        ("shipped", Arc::new(Date32Array::from(vec![8800, 8801, 8802])) as ArrayRef),
    ]);
    let lineitem = DeviceBatch::try_from(&lineitem.expect("columns of one length"))?;
    let year = col("shipped").gt_eq(Literal::date(8766)) & col("shipped").lt(Literal::date(9131)); // 1994
    let where_ = year & col("discount").between(0.05, 0.07) & col("quantity").lt(24);

    let stream = Stream::cpu();
    let revenue = sum(col("price") * col("discount")).alias("revenue");
    let row = RecordBatch::try_from(&aggregate(&lineitem, &[revenue], Some(&where_), &stream).wait()?)?;
    assert_eq!(row.column(0).as_primitive::<Decimal128Type>().value(0), 2_700_000); // 60 + 210: a Decimal128(38, 4)
    assert_eq!(filter_where(&lineitem, &where_, &stream).wait()?.len(), 2);
    Ok(())
}
// ANCHOR_END: sixth

// ANCHOR: counted
/// How often the host waits for the device, whatever becomes of the result.
fn waits<T>(stream: &Stream, work: impl FnOnce() -> Result<T>) -> Result<u64> {
    let before = stream.device().host_synchronisations();
    work()?;
    Ok(stream.device().host_synchronisations() - before)
}

pub fn what_each_operation_waits_for() -> Result<()> {
    let stream = Device::emulated().stream()?;
    let there = |array: ArrayRef| stream.upload(&DeviceArray::try_from(&array)?);
    let numbers = there(Arc::new(Int64Array::from(vec![Some(3), None, Some(5)])))?;
    let word: ArrayRef = Arc::new(StringArray::from(vec!["a", "bc", ""]));
    let words = there(word.clone())?;
    let mask = there(Arc::new(BooleanArray::from(vec![true, false, true])))?;
    let indices = there(Arc::new(Int32Array::from(vec![2, 0])))?;
    let rows = stream.upload(&sales()?)?;
    let texts = RecordBatch::try_from_iter([("word", word)]).expect("one column");
    let texts = stream.upload(&DeviceBatch::try_from(&texts)?)?;
    let (checked, safe) = (TakeOptions::default(), CastOptions::default());

    assert_eq!(waits(&stream, || filter(&numbers, &mask, &stream).wait())?, 1);
    assert_eq!(waits(&stream, || take(&numbers, &indices, &checked, &stream).wait())?, 0);
    assert_eq!(waits(&stream, || take(&words, &indices, &checked, &stream).wait())?, 1); // how many bytes
    assert_eq!(waits(&stream, || cast(&numbers, &DataType::Int8, &safe, &stream).wait())?, 0);
    assert_eq!(waits(&stream, || is_null(&numbers, &stream).wait())?, 0);
    assert_eq!(waits(&stream, || null_count(&numbers, &stream).wait())?, 0); // known, since the upload
    assert_eq!(waits(&stream, || evaluate(&rows, &[col("pieces") + 1], &stream).wait())?, 0);
    let (test, first) = (col("word").starts_with("a"), col("word").substring(0, Some(1)));
    assert_eq!(waits(&stream, || evaluate(&texts, &[test], &stream).wait())?, 0);
    assert_eq!(waits(&stream, || evaluate(&texts, &[first], &stream).wait())?, 1); // how many bytes
    assert_eq!(waits(&stream, || filter_where(&rows, &col("pieces").gt(2), &stream).wait())?, 1);
    assert_eq!(waits(&stream, || aggregate(&rows, &[sum(col("pieces"))], None, &stream).wait())?, 1);
    assert_eq!(waits(&stream, || aggregate(&rows, &[count_all()], None, &stream).wait())?, 0); // reads no column
    Ok(())
}
// ANCHOR_END: counted
