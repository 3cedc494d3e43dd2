//! Batches on a device as tables.

use std::sync::Arc;

use bowstring::array::Batches;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{batch_from_arrow, export_batches};
use bowstring::{Device, DeviceBatch};
use bowstring_datafusion::{DeviceTable, batches_at, batches_of, name_device, session};
use datafusion::arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionConfig;

use crate::support::*;

/// Numbers and text, in `count` batches of a hundred rows.
fn host(count: i64) -> Vec<DeviceBatch> {
    use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
    let batch = |first: i64| {
        let decimals = Decimal128Array::from_iter_values((first..first + 100).map(|x| i128::from(x) * 7));
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(Int64Array::from_iter((first..first + 100).map(|x| (x % 10 != 3).then_some(x))))),
            ("d", Arc::new(decimals.with_precision_and_scale(15, 2).unwrap())),
            ("s", Arc::new(StringArray::from_iter_values((first..first + 100).map(|x| format!("row {x}"))))),
        ];
        batch_from_arrow(&RecordBatch::try_from_iter(columns).unwrap()).unwrap()
    };
    (0..count).map(|i| batch(i * 100)).collect()
}

fn on_device(device: &Device, count: i64) -> Batches {
    let stream = device.stream().unwrap();
    let batches: Vec<DeviceBatch> = host(count).iter().map(|batch| stream.upload(batch).unwrap()).collect();
    Batches::new(batches[0].schema().clone(), device.place(), batches.into_iter().map(Ok))
}

const QUERIES: &[(&str, &[&str])] = &[
    ("SELECT sum(d), count(n), max(n) FROM g WHERE n >= 10", &["7861.56|441|499"]),
    ("SELECT s FROM g WHERE n = 250 OR n = 4", &["row 250", "row 4"]),
    ("SELECT n + 1 FROM g WHERE d < 0.20", &["1", "2", "3"]),
    ("SELECT count(*) FROM g", &["500"]),
    (
        "SELECT n % 7 AS k, count(*) FROM g WHERE n < 14 GROUP BY k",
        &["0|2", "1|2", "2|2", "3|1", "4|2", "5|2", "6|1"],
    ),
    ("SELECT s, n FROM g ORDER BY n DESC NULLS LAST LIMIT 2", &["row 498|498", "row 499|499"]),
];

async fn check(name: &str, table: DeviceTable) {
    let table = Arc::new(table);
    for device in [name, "cpu", "off"] {
        let context = on(device).await;
        context.register_table("g", table.clone()).unwrap();
        for (sql, right) in QUERIES {
            let mut rows = rows(&context, sql).await.unwrap();
            rows.sort();
            assert_eq!(rows, *right, "{sql} on {device}");
        }
    }
}

#[tokio::test]
async fn tables_of_batches_on_a_device() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    name_device("tables", device.device());
    check("tables", DeviceTable::try_new(device.device(), on_device(device.device(), 5)).unwrap()).await;
    assert!(device.faults().is_empty());
}

/// A stream as another language hands it over: a C struct, by its address.
#[tokio::test]
async fn tables_of_foreign_streams() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    name_device("foreign", device.device());
    let batches = on_device(device.device(), 5);
    let mut stream = export_batches(batches);
    let address = std::ptr::from_mut(&mut stream).expose_provenance();
    // SAFETY: the stream was just made here, and no other code uses it.
    let batches = unsafe { batches_at(address, device.device()) }.unwrap();
    let table = DeviceTable::try_new(device.device(), batches).unwrap();
    assert!(stream.is_released());
    check("foreign", table).await;
    // SAFETY: the function checks the address and refuses 0 without reading from it.
    assert!(unsafe { batches_at(0, device.device()) }.is_err());
}

/// Our operators over such a table upload nothing, and download only their output.
#[tokio::test]
async fn device_batches_are_not_copied() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    name_device("uncopied", device.device());
    let context = on("uncopied").await;
    let table = DeviceTable::try_new(device.device(), on_device(device.device(), 5)).unwrap();
    context.register_table("g", Arc::new(table)).unwrap();
    let before = device.calls().get("copy_in").copied();
    let plan = plan(&context, QUERIES[0].0).await;
    assert_eq!(ours(&plan), 1);
    run(&context, plan.clone()).await.unwrap();
    let metrics = rows(&context, &format!("EXPLAIN ANALYZE {}", QUERIES[0].0)).await.unwrap().join("\n");
    assert!(metrics.contains("rows_up=0") && metrics.contains("rows_down=0"), "{metrics}");
    assert!(before.is_some(), "{:?}", device.calls());
}

/// The first rows of an order are found where the rows are. Rows on the host are not uploaded for that.
#[tokio::test]
async fn orders_are_found_where_the_rows_are() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    name_device("ordered", device.device());
    let context = session(SessionConfig::new().with_target_partitions(2));
    for setting in ["device = 'ordered'", "device_min_rows = 1"] {
        context.sql(&format!("SET bowstring.{setting}")).await.unwrap();
    }
    let table = DeviceTable::try_new(device.device(), on_device(device.device(), 5)).unwrap();
    context.register_table("g", Arc::new(table)).unwrap();
    register(&[&context], "t", batches(2, true));
    assert_eq!(ours(&plan(&context, "SELECT * FROM g ORDER BY n LIMIT 5").await), 1);
    assert_eq!(ours(&plan(&context, "SELECT * FROM t ORDER BY i32 LIMIT 5").await), 0);
    assert_eq!(ours(&plan(&context, "SELECT * FROM t WHERE b ORDER BY i32 LIMIT 5").await), 1);
}

/// Batches of one column of numbers.
fn numbers(nullable: bool, values: Vec<Option<i64>>) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, nullable)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(values))]).unwrap()
}

/// Batches of a table may declare columns NOT NULL that the table does not.
#[tokio::test]
async fn batches_may_be_stricter_than_their_table() {
    let batches = vec![numbers(false, vec![Some(1), Some(2)]), numbers(true, vec![None, Some(4), Some(2)])];
    for device in ["emulator", "cpu", "off"] {
        let context = on(device).await;
        let table = MemTable::try_new(batches[1].schema(), vec![batches.clone()]).unwrap();
        context.register_table("t", Arc::new(table)).unwrap();
        for (sql, right) in [
            ("SELECT n + 1 AS x FROM t WHERE n IS NULL OR n > 1", &["3", "3", "5", "null"][..]),
            ("SELECT sum(n), count(n) FROM t", &["9|4"]),
            ("SELECT n, count(*) FROM t GROUP BY n", &["1|1", "2|2", "4|1", "null|1"]),
            ("SELECT a.n FROM t AS a JOIN t AS b ON a.n = b.n", &["1", "2", "2", "2", "2", "4"]),
        ] {
            let mut rows = rows(&context, sql).await.unwrap();
            rows.sort();
            assert_eq!(rows, right, "{sql} on {device}");
        }
    }
}

/// Arrays of another type than a schema says are refused, and never read as what they are not.
#[test]
fn batches_have_the_types_of_their_stream() {
    let batch = numbers(true, vec![Some(1)]);
    let read = |told: DataType, batch: &RecordBatch| {
        let schema = Arc::new(Schema::new(vec![Field::new("n", told, true)]));
        batches_of(&schema, std::iter::once(Ok(batch.clone()))).next().unwrap()
    };
    assert_eq!(read(DataType::Int64, &batch).unwrap().len(), 1);
    for told in [DataType::Float64, DataType::Int32, DataType::Utf8, DataType::Utf8View, DataType::Null] {
        let error = read(told, &batch).unwrap_err().to_string();
        assert!(error.contains("a column of Int64"), "{error}");
    }
    // Fields inside may have other names, or declare more than the stream does.
    let list = |field: Field| -> DataType { DataType::List(Arc::new(field)) };
    let strict = Arc::new(Field::new("item", DataType::Int64, false));
    let (ends, items) = (OffsetBuffer::from_lengths([1]), Arc::new(Int64Array::from(vec![1])));
    let lists: ArrayRef = Arc::new(ListArray::new(strict, ends, items, None));
    let lists = RecordBatch::try_from_iter([("n", lists)]).unwrap();
    assert!(read(list(Field::new("element", DataType::Int64, false)), &lists).is_ok());
    assert!(read(list(Field::new("item", DataType::Int64, true)), &lists).is_ok());
    assert!(read(list(Field::new("item", DataType::Int32, true)), &lists).is_err());
}
