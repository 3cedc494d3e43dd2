//! An executor of ours and a stock one in one cluster, over values that may be equal and have other bytes:
//! zeros of both signs, NaN, long decimals, text and views of it, nulls. The rows of a partition then come
//! from both executors, which have to agree on where a value belongs.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use ballista::prelude::SessionConfigExt;
use ballista_executor::execution_engine::DefaultExecutionEngine;
use bowstring_ballista::DeviceExecutionEngine;
use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use datafusion::error::Result;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};

use crate::answers::answer;
use crate::cluster::{Cluster, own};
use crate::engines::Paused;

/// The duration of each task, so that neither executor finishes a stage before the other has asked for its
/// share.
const PAUSE: Duration = Duration::from_millis(60);

/// The rows of a file.
const ROWS: i64 = 60;

/// The table, with its text in both forms, whatever the scan returns.
const TABLE: &str = "(SELECT n, d, f, arrow_cast(s, 'Utf8') AS s, arrow_cast(s, 'Utf8View') AS v FROM odd)";

/// Rows from a number on. Each file has values of all kinds.
fn rows(first: i64) -> Result<RecordBatch> {
    let numbers = first..first + ROWS;
    let words = ["", "é", "a text that is too long to be in a view "];
    let texts = numbers.clone().map(|n| (n % 9 != 4).then(|| format!("{}{}", words[n as usize % 3], n % 7)));
    // More than 64 bits.
    let digits = |n: i64| i128::from(n % 17 - 8) * 3_000_000_000_000_000_000_007;
    let decimals = numbers.clone().map(|n| (n % 11 != 5).then(|| digits(n)));
    let odd = [0.0, -0.0, f64::NAN, 1.5, f64::INFINITY, -2.25e-300];
    let floats = numbers.clone().map(|n| (n % 13 != 6).then(|| odd[n as usize % odd.len()]));
    let decimals = Decimal128Array::from_iter(decimals).with_precision_and_scale(38, 10)?;
    let columns: [(&str, ArrayRef); 4] = [
        ("n", Arc::new(Int64Array::from_iter_values(numbers.clone()))),
        ("s", Arc::new(StringArray::from_iter(texts))),
        ("d", Arc::new(decimals)),
        ("f", Arc::new(Float64Array::from_iter(floats))),
    ];
    Ok(RecordBatch::try_from_iter(columns)?)
}

/// Writes the table as four files, so that a scan has as many tasks.
fn write(folder: &Path) -> Result<()> {
    for file in 0..4 {
        let rows = rows(file * ROWS)?;
        let path = folder.join(format!("{file}.parquet"));
        let mut writer = ArrowWriter::try_new(File::create(path)?, rows.schema(), None)?;
        writer.write(&rows)?;
        writer.close()?;
    }
    Ok(())
}

/// Joins and groups by each column, and by several.
fn queries() -> Vec<String> {
    let mut all = vec![
        format!(
            "SELECT l.n, r.n, l.f, r.f FROM {TABLE} AS l JOIN {TABLE} AS r \
             ON l.v = r.v AND l.d = r.d AND l.f = r.f"
        ),
        format!("SELECT s, d, f, count(*), min(v), sum(n) FROM {TABLE} AS t GROUP BY s, d, f"),
    ];
    for key in ["s", "v", "d", "f"] {
        let on = format!("l.{key} = r.{key}");
        all.extend([
            format!("SELECT l.n, r.n, l.{key}, r.{key} FROM {TABLE} AS l JOIN {TABLE} AS r ON {on}"),
            format!(
                "SELECT l.n, r.n FROM (SELECT * FROM {TABLE} AS t WHERE n % 5 > 1) AS l \
                 FULL JOIN (SELECT * FROM {TABLE} AS t WHERE n < 90) AS r ON {on}"
            ),
            format!(
                "SELECT {key}, count(*), count(d), sum(n), max(v), min(d) FROM {TABLE} AS t GROUP BY {key}"
            ),
        ]);
    }
    all
}

/// Checks a cluster of a stock executor and one of ours on a device.
async fn agrees_on(device: &str) -> Result<()> {
    let ours = Arc::new(DeviceExecutionEngine::new(own(device)));
    let (left, mine) = Paused::over(ours.clone(), PAUSE);
    let (right, stock) = Paused::over(Arc::new(DefaultExecutionEngine::new()), PAUSE);
    let cluster = Cluster::start(vec![left, right]).await?;
    // Otherwise small sides would go to each task as they are, and no key would choose a partition.
    let config = SessionConfig::new_with_ballista()
        .with_ballista_broadcast_join_threshold_bytes(0)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", 0)
        .set_usize("datafusion.optimizer.hash_join_single_partition_threshold_rows", 0);
    let (client, alone) = (cluster.client_with(config).await?, SessionContext::new());
    let folder = tempfile::tempdir()?;
    write(folder.path())?;
    for session in [&client, &alone] {
        let path = folder.path().display().to_string();
        session.register_parquet("odd", path, ParquetReadOptions::default()).await?;
    }
    for sql in queries() {
        let (found, expected) = (answer(&client, &sql).await?, answer(&alone, &sql).await?);
        assert!(expected.len() > 5, "{sql}");
        assert_eq!(found, expected, "{sql}");
    }
    let (mine, stock) = (mine.done.load(SeqCst), stock.done.load(SeqCst));
    assert!(mine > 0 && stock > 0, "{mine} tasks were ours, {stock} of the stock executor");
    let counts = ours.counts();
    assert!(counts.device_tasks > 0 && counts.failures == 0, "{counts:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_executor_and_one_of_ours_agree_on_odd_keys() -> Result<()> {
    agrees_on("cpu").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stock_executor_and_an_emulated_gpu_agree_on_odd_keys() -> Result<()> {
    agrees_on("emulator").await
}
