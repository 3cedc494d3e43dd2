//! More rows than an operator may keep on a device: the same answers, by way of host memory.

use std::sync::Arc;

use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use bowstring_datafusion::name_device;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::SessionContext;

use crate::devices::{nothing_left, with_runtime};
use crate::support::*;

pub const JOINS: &[&str] = &[
    "SELECT l.v, r.d15, l.i32 FROM t AS l JOIN t AS r ON l.i64 = r.i64 AND l.i32 < r.i32",
    "SELECT l.v, r.d15 FROM t AS l LEFT JOIN t AS r ON l.i64 = r.i64 AND l.s = r.s",
    "SELECT l.v, r.w FROM t AS l RIGHT JOIN t AS r ON l.v = r.w AND l.day = r.day",
    "SELECT l.s, r.s, l.f64 FROM t AS l FULL JOIN t AS r ON l.f64 = r.g64 AND l.i8 = r.i8",
    "SELECT v, i32 FROM t WHERE EXISTS (SELECT 1 FROM t AS r WHERE r.i64 = t.j64 AND r.i32 < t.i32)",
    "SELECT v, i32 FROM t WHERE NOT EXISTS (SELECT 1 FROM t AS r WHERE r.i64 = t.j64 AND r.d9 = t.d9)",
    "SELECT v, i32 FROM t WHERE i64 NOT IN (SELECT j64 FROM t WHERE j64 IS NOT NULL AND i8 > 2)",
    "SELECT v, i32 FROM t WHERE i64 NOT IN (SELECT j64 FROM t)",
];

pub const SORTS: &[&str] = &[
    "SELECT i32, i64, v, d15 FROM t WHERE i8 > 1 ORDER BY i32, i64 DESC NULLS LAST, v, d15",
    "SELECT l.v, l.i32, r.i64 FROM t AS l JOIN t AS r ON l.i64 = r.i64 AND l.i32 < r.i32 \
      ORDER BY v DESC, i32, r.i64",
];

pub const GROUPS: &[&str] = &[
    "SELECT i64, v, count(*), sum(d15), max(w) FROM t GROUP BY i64, v",
    "SELECT s, i64, min(day) FROM t GROUP BY CUBE (s, i64)",
];

async fn limited(device: &str, bytes: usize) -> SessionContext {
    let context = on(device).await;
    answer(&context, &format!("SET bowstring.device_bytes = {bytes}")).await.unwrap();
    context
}

#[tokio::test]
async fn joins_and_sorts_beyond_a_limit_give_the_same_answers() {
    let plain = on("off").await;
    for bytes in [2000, 20_000] {
        let context = limited("emulator", bytes).await;
        for seed in 0..3 {
            register(&[&context, &plain], "t", batches(seed, seed > 0));
            for sql in JOINS {
                same(&context, &plain, sql).await;
                assert!(ours_has(&plan(&context, sql).await, "join="), "{sql}");
            }
            for sql in SORTS {
                assert_eq!(rows(&context, sql).await, rows(&plain, sql).await, "{bytes}, {seed}: {sql}");
                assert!(ours_has(&plan(&context, sql).await, "sort="), "{sql}");
            }
            for sql in JOINS.iter().chain(SORTS).filter(|_| bytes == 2000 && seed == 0) {
                let text = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
                assert!(spills(&text), "{text}");
            }
        }
    }
}

/// Queries over five times as many bytes as the device has.
#[tokio::test]
async fn five_times_the_memory_of_a_device_is_enough() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    name_device("fifth", device.device());
    let plain = on("off").await;
    let batch = |first: i64| {
        let keys = (first..first + 4000).map(|row| row * 7919 % 40_000);
        let texts = keys.clone().map(|key| format!("the text of row {key}, and more of it"));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("k", Arc::new(Int64Array::from_iter_values(keys))),
            ("x", Arc::new(StringArray::from_iter_values(texts))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let rows_of: Vec<RecordBatch> = (0..10).map(|number| batch(4000 * number)).collect();
    let bytes: usize = rows_of.iter().map(RecordBatch::get_array_memory_size).sum();
    device.device().set_memory_limit(bytes / 5);
    for (limit, fits) in [(bytes / 100, true), (1 << 40, false)] {
        let context = limited("fifth", limit).await;
        for setting in ["upload_rows = 500", "in_flight = 1"] {
            answer(&context, &format!("SET bowstring.{setting}")).await.unwrap();
        }
        register(&[&context, &plain], "big", rows_of.clone());
        for sql in [
            "SELECT l.x, r.k FROM big AS l JOIN big AS r ON l.k = r.k",
            "SELECT x, count(*), sum(k) FROM big GROUP BY x",
            "SELECT k, x FROM big WHERE k >= 0 ORDER BY x DESC, k",
        ] {
            match fits {
                true => assert!(same(&context, &plain, sql).await, "{sql}"),
                false => assert_eq!(rows(&context, sql).await, Err("resources".to_owned()), "{sql}"),
            }
            nothing_left(&device, sql).await;
        }
    }
}

/// Spilled rows take memory of the session's pool, and then its temporary files, and give back both.
#[tokio::test]
async fn spilled_rows_are_bounded_by_the_session() {
    let device = EmulatedDevice::new(EmulatorOptions::default()).unwrap();
    name_device("spilled", device.device());
    let plain = on("off").await;
    register(&[&plain], "t", batches(8, true));
    let none = || DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let little = || DiskManagerBuilder::default().with_max_temp_directory_size(3000);
    let sessions: [(usize, DiskManagerBuilder, bool); 4] = [
        (5000, none(), false),
        (5000, little(), false),
        (5000, DiskManagerBuilder::default(), true),
        (10 << 20, none(), true),
    ];
    for (bytes, disk, fits) in sessions {
        let context = format!("{bytes} bytes, {disk:?}");
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool.clone()).with_disk_manager_builder(disk);
        let session = with_runtime(runtime, "spilled").await;
        answer(&session, "SET bowstring.device_bytes = 2000").await.unwrap();
        let (mut refused, mut wrote) = (0, 0);
        for sql in JOINS.iter().chain(SORTS).chain(GROUPS) {
            match rows(&session, sql).await {
                Ok(mut found) => {
                    let mut expected = rows(&plain, sql).await.unwrap();
                    if !SORTS.contains(sql) {
                        found.sort();
                        expected.sort();
                    }
                    assert_eq!(found, expected, "{sql}, {context}");
                    // With little space, another run may be refused.
                    let text = rows(&session, &format!("EXPLAIN ANALYZE {sql}")).await;
                    wrote += usize::from(text.is_ok_and(|text| writes_files(&text.join("\n"))));
                }
                Err(error) => {
                    refused += 1;
                    let space = error.contains("max_temp_directory_size");
                    assert!(error == "resources" || space, "{sql}, {context}: {error}");
                }
            }
            nothing_left(&device, sql).await;
            assert_eq!(pool.reserved(), 0, "{sql}, {context}");
            assert_eq!(session.runtime_env().disk_manager.used_disk_space(), 0, "{sql}, {context}");
        }
        assert_eq!(refused == 0, fits, "{refused} refused, {context}");
        assert!(!fits || (wrote > 8) == (bytes == 5000), "{wrote} wrote files, {context}");
    }
}

/// Whether a plan has spilled rows.
pub fn spills(text: &str) -> bool {
    text.split("bytes_spilled_to_host=").skip(1).any(|bytes| !bytes.starts_with('0'))
}

/// Whether a plan has written temporary files.
fn writes_files(text: &str) -> bool {
    text.split("spilled_bytes=").skip(1).any(|bytes| !bytes.starts_with("0"))
}
