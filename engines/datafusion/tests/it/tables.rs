//! Batches on a device as tables.

use std::sync::Arc;

use bowstring::array::Batches;
use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring::exchange::{batch_from_arrow, export_batches};
use bowstring::{Device, DeviceBatch};
use bowstring_datafusion::{DeviceTable, batches_at, name_device, session};
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
