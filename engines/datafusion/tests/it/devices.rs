//! Tests device memory when queries end early, calls fail, or memory is short.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowstring::device::testing::{EmulatedDevice, EmulatorOptions, drain};
use bowstring_datafusion::name_device;
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;

use crate::support::*;

pub const QUERIES: &[&str] = &[
    "SELECT i32, d15, v FROM t WHERE i32 < 50",
    "SELECT i64 + j64, d15 FROM t WHERE b OR i32 < 50",
    "SELECT sum(d15 * d9), count(*) FROM t WHERE i32 < 50",
    "SELECT sum(i64 / 7) FROM t WHERE i32 < 50",
    "SELECT v, count(*) FROM t WHERE i32 < 50 GROUP BY v",
    "SELECT i8, sum(d15) FROM t WHERE i32 < 50 GROUP BY i8 ORDER BY i8",
    "SELECT count(*) FROM (SELECT l.v, r.d15 FROM t AS l JOIN t AS r ON l.i64 = r.i64 LIMIT 300 OFFSET 40)",
    "SELECT v, count(*) FROM (SELECT v FROM t WHERE b UNION ALL SELECT w FROM t WHERE c) GROUP BY v",
    "SELECT v, sum(n) OVER (ORDER BY n, v) FROM (SELECT v, count(*) AS n FROM t GROUP BY v)",
    "SELECT l.v, r.d15 FROM t AS l LEFT JOIN t AS r ON l.i64 = r.i64 AND l.i32 < r.i32",
];

/// Queries whose rows are spilled to host memory if a device may keep few.
pub const SPILLED: [&str; 2] = [
    "SELECT l.i32, r.i64 FROM t AS l FULL JOIN t AS r ON l.i64 = r.i64 AND l.i32 < r.i32 WHERE l.i32 < 9",
    "SELECT i32, i64 FROM t WHERE i8 > 5 ORDER BY i64, i32",
];

pub fn emulated(name: &str) -> EmulatedDevice {
    emulated_with(name, EmulatorOptions::default())
}

pub fn emulated_with(name: &str, options: EmulatorOptions) -> EmulatedDevice {
    let device = EmulatedDevice::new(options).unwrap();
    name_device(name, device.device());
    device
}

/// Checks that a query leaves nothing on the device once the tasks of its other partitions have ended: when
/// one fails, the others are cancelled, and end when they are next polled.
pub async fn nothing_left(device: &EmulatedDevice, what: &str) {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        drain(device.device());
        if device.device().memory_usage().in_use == 0 {
            break;
        }
    }
    assert_eq!(device.device().memory_usage().in_use, 0, "{what}");
    assert!(device.faults().is_empty(), "{what}: {:?}", device.faults());
}

#[tokio::test]
async fn dropped_queries_leave_nothing() {
    let device = emulated("dropped");
    let context = on("dropped").await;
    register(&[&context], "t", batches(8, true));
    for sql in QUERIES {
        for taken in 0..4 {
            let plan = plan(&context, sql).await;
            assert!(ours(&plan) > 0, "{sql}");
            let mut stream = datafusion::physical_plan::execute_stream(plan, context.task_ctx()).unwrap();
            for _ in 0..taken {
                stream.next().await.transpose().unwrap();
            }
            drop(stream);
            nothing_left(&device, sql).await;
        }
    }
}

/// Makes each call of the device's runtime fail in turn: the query ends with an error that reports it, or
/// with the right answer if the failure could be compensated. Nothing is left on the device, and the next
/// query works.
#[tokio::test]
async fn failing_calls_end_queries_and_leave_nothing() {
    let device = emulated("failing");
    let (context, plain) = (on("failing").await, on("off").await);
    register(&[&context, &plain], "t", batches(8, true));
    let mut failures = 0;
    for (sql, bytes) in QUERIES.iter().map(|sql| (*sql, 1 << 30)).chain(SPILLED.map(|sql| (sql, 2000))) {
        answer(&context, &format!("SET bowstring.device_bytes = {bytes}")).await.unwrap();
        let sorted = |mut rows: Vec<String>| {
            rows.sort();
            rows
        };
        let right = sorted(rows(&plain, sql).await.unwrap());
        for nth in 1.. {
            device.fail(None, nth, 1);
            let answer = answer(&context, sql).await;
            let failed = device.stop_failing();
            match answer {
                Ok(batches) => {
                    assert_eq!(sorted(batches.iter().flat_map(texts).collect()), right, "{sql}, {nth}")
                }
                Err(error) => {
                    failures += 1;
                    assert!(failed > 0, "{sql}, {nth}: {error}");
                    match error.find_root() {
                        DataFusionError::External(error) => {
                            assert!(error.is::<bowstring::Error>(), "{sql}, {nth}: {error}");
                        }
                        DataFusionError::ResourcesExhausted(_) => {}
                        other => panic!("{sql}, {nth}: {other:?}"),
                    }
                }
            }
            nothing_left(&device, sql).await;
            if failed == 0 {
                break;
            }
        }
        assert_eq!(sorted(rows(&context, sql).await.unwrap()), right, "{sql} afterwards");
    }
    assert!(failures > 20, "{failures}");
}

/// A device whose own memory is limited reports that as an error.
#[tokio::test]
async fn a_device_without_memory_is_an_error() {
    let device = emulated("small");
    let context = on("small").await;
    register(&[&context], "t", batches(8, true));
    device.device().set_memory_limit(1000);
    assert_eq!(rows(&context, QUERIES[0]).await, Err("resources".to_owned()));
    nothing_left(&device, "small").await;
    device.device().set_memory_limit(1 << 30);
    assert!(rows(&context, QUERIES[0]).await.is_ok());
}

/// A join that is larger than a device's memory comes in parts, as long as the pairs of one row fit.
#[tokio::test]
async fn joins_larger_than_memory_come_in_parts() {
    let device = emulated("parts");
    let (context, plain) = (on("parts").await, on("off").await);
    let hot = Int64Array::from_iter_values((0..900).map(|row| row % 2));
    let other = Int64Array::from_iter_values(0..900);
    let columns: Vec<(&str, ArrayRef)> = vec![("k", Arc::new(hot)), ("n", Arc::new(other))];
    register(&[&context, &plain], "hot", vec![RecordBatch::try_from_iter(columns).unwrap()]);
    let sql = "SELECT l.n, r.n FROM hot AS l JOIN hot AS r ON l.k = r.k WHERE l.n + r.n > 3";
    for (limit, fits) in [(2 << 20, true), (12_000, false)] {
        device.device().set_memory_limit(limit);
        match fits {
            true => assert!(same(&context, &plain, sql).await),
            false => assert_eq!(rows(&context, sql).await, Err("resources".to_owned())),
        }
        nothing_left(&device, "parts").await;
    }
}

/// The rows of a common key have billions of pairs. They come a part at a time, and one row is enough.
#[tokio::test]
async fn the_first_pairs_of_many_do_not_wait_for_the_others() {
    let key: ArrayRef = Arc::new(Int64Array::from(vec![7; 60_000]));
    for device in ["cpu", "emulator"] {
        let context = on(device).await;
        register(&[&context], "hot", vec![RecordBatch::try_from_iter([("k", key.clone())]).unwrap()]);
        let sql = "SELECT l.k FROM hot AS l JOIN hot AS r ON l.k = r.k LIMIT 3";
        assert!(ours_has(&plan(&context, sql).await, "join="), "{device}");
        assert_eq!(rows(&context, sql).await, Ok(vec!["7".to_owned(); 3]), "{device}");
    }
}

/// A session over a pool, on a device.
pub async fn pooled(pool: Arc<dyn MemoryPool>, device: &str) -> SessionContext {
    with_runtime(RuntimeEnvBuilder::new().with_memory_pool(pool), device).await
}

/// A session with its own memory and disk, on a device.
pub async fn with_runtime(runtime: RuntimeEnvBuilder, device: &str) -> SessionContext {
    let runtime = runtime.build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(1);
    let builder =
        SessionStateBuilder::new().with_config(config).with_runtime_env(runtime).with_default_features();
    let context = SessionContext::new_with_state(bowstring_datafusion::with_bowstring(builder).build());
    for setting in [&format!("device = '{device}'"), "always = true", "upload_rows = 100"] {
        context.sql(&format!("SET bowstring.{setting}")).await.unwrap();
    }
    register(&[&context], "t", batches(8, true));
    context
}

/// Uploads take their memory from DataFusion's pool, and give it back. They become smaller if there is little
/// of it.
#[tokio::test]
async fn uploads_are_bounded_by_the_pool_of_the_session() {
    emulated("pooled");
    for (bytes, fits) in [(4, false), (1000, true), (10 << 20, true)] {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let rows = rows(&pooled(pool.clone(), "pooled").await, QUERIES[0]).await;
        assert_eq!(rows.is_ok(), fits, "{rows:?}");
        assert!(fits || rows == Err("resources".to_owned()));
        assert_eq!(pool.reserved(), 0);
    }
}

/// A pool that records its peak use.
#[derive(Debug)]
struct Peak {
    pool: GreedyMemoryPool,
    most: AtomicUsize,
}

impl MemoryPool for Peak {
    fn name(&self) -> &str {
        "peak"
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.pool.grow(reservation, additional);
        self.most.fetch_max(self.pool.reserved(), Ordering::Relaxed);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> datafusion::error::Result<()> {
        self.pool.try_grow(reservation, additional)?;
        self.most.fetch_max(self.pool.reserved(), Ordering::Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }
}

impl std::fmt::Display for Peak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.pool.fmt(f)
    }
}

/// On the CPU an aggregate collects as many batches as memory allows, and works without any.
#[tokio::test]
async fn aggregates_on_the_cpu_keep_what_the_pool_has_room_for() {
    let mut answers = vec![];
    for (bytes, expected) in [(1, 0..=0), (10 << 20, 1..=10 << 20)] {
        let pool = Arc::new(Peak { pool: GreedyMemoryPool::new(bytes), most: AtomicUsize::new(0) });
        answers.push(rows(&pooled(pool.clone(), "cpu").await, QUERIES[2]).await.unwrap());
        assert!(expected.contains(&pool.most.load(Ordering::Relaxed)), "{pool:?}");
        assert_eq!(pool.reserved(), 0);
    }
    assert_eq!(answers[0], answers[1]);
}

/// Result batches stay valid after the query ends.
#[tokio::test]
async fn batches_outlive_their_query() {
    let context = on("cpu").await;
    register(&[&context], "t", batches(8, true));
    for sql in QUERIES {
        let plan = plan(&context, sql).await;
        let mut stream = datafusion::physical_plan::execute_stream(plan, context.task_ctx()).unwrap();
        let first = stream.next().await.transpose().unwrap();
        drop(stream);
        first.iter().for_each(|batch| assert_eq!(texts(batch).len(), batch.num_rows()));
    }
}
