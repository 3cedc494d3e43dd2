//! Harm at random: limits of any size, and queries that are dropped between any two polls. Answers are right,
//! or errors that say what is short, and nothing is left.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bowstring::device::testing::{EmulatedDevice, EmulatorOptions};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::physical_plan::{SendableRecordBatchStream, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use rand::prelude::*;
use tokio::time::{sleep, timeout};

use crate::devices::{QUERIES, SPILLED, emulated, emulated_with, nothing_left, pooled};
use crate::spilled::{GROUPS, JOINS, SORTS};
use crate::support::*;

/// Checks that a query gives back the session's memory and temporary files. Tasks that are cancelled end when
/// they are next polled.
async fn given_back(context: &SessionContext, what: &str) {
    let runtime = context.runtime_env();
    let left = || (runtime.memory_pool.reserved(), runtime.disk_manager.used_disk_space());
    for _ in 0..1000 {
        if left() == (0, 0) {
            return;
        }
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(left(), (0, 0), "{what}: bytes of memory and of files");
}

/// The rows in an order of their own, unless the query has one.
fn arranged(sql: &str, mut rows: Vec<String>) -> Vec<String> {
    if !SORTS.contains(&sql) {
        rows.sort();
    }
    rows
}

/// A size from 1 KiB to 16 MiB; each of its numbers of bits is as likely as another.
fn size(random: &mut StdRng) -> usize {
    let least = 1usize << random.random_range(10..24u32);
    random.random_range(least..2 * least)
}

/// Runs queries, some for each seed, with a session's memory, an operator's and a device's of random sizes.
async fn at_random(name: &str, device: Option<&EmulatedDevice>) {
    let plain = on("off").await;
    register(&[&plain], "t", batches(8, true));
    let mut queries = vec![];
    for sql in [QUERIES, JOINS, SORTS, GROUPS].concat() {
        queries.push((sql, arranged(sql, rows(&plain, sql).await.unwrap())));
    }
    let (mut answered, mut refused) = (0, 0);
    for seed in 0..50 {
        let random = &mut StdRng::seed_from_u64(seed);
        let (pool, operator, limit) = (size(random), size(random), size(random));
        let context = pooled(Arc::new(GreedyMemoryPool::new(pool)), name).await;
        let partitions = random.random_range(1..3);
        answer(&context, &format!("SET bowstring.device_bytes = {operator}")).await.unwrap();
        let set = format!("SET datafusion.execution.target_partitions = {partitions}");
        answer(&context, &set).await.unwrap();
        if let Some(device) = device {
            device.device().set_memory_limit(limit);
        }
        for _ in 0..3 {
            let (sql, right) = &queries[random.random_range(0..queries.len())];
            let sizes = format!("a pool of {pool} bytes, {operator} of a device's {limit}");
            let what = format!("seed {seed}, {sizes}, {partitions} partitions: {sql}");
            match timeout(Duration::from_secs(60), rows(&context, sql)).await.expect(&what) {
                Ok(found) => {
                    answered += 1;
                    assert_eq!(arranged(sql, found), *right, "{what}");
                }
                Err(class) => {
                    refused += 1;
                    assert_eq!(class, "resources", "{what}");
                }
            }
            if let Some(device) = device {
                nothing_left(device, &what).await;
            }
            given_back(&context, &what).await;
        }
    }
    // Otherwise the sizes are no limits, or none is enough.
    assert!(answered > 20 && refused > 20, "{answered} answered, {refused} refused");
}

#[tokio::test]
async fn limits_of_any_size_are_errors_at_worst_on_the_emulator() {
    let device = emulated("of any size");
    at_random("of any size", Some(&device)).await;
}

#[tokio::test]
async fn limits_of_any_size_are_errors_at_worst_on_the_cpu() {
    at_random("cpu", None).await;
}

/// Polls a stream as a task does, but at most so often; returns whether it ended.
async fn ends_within(stream: &mut SendableRecordBatchStream, mut polls: usize) -> bool {
    poll_fn(|context| {
        while polls > 0 {
            polls -= 1;
            match stream.poll_next_unpin(context) {
                Poll::Ready(Some(batch)) => drop(batch.unwrap()),
                Poll::Ready(None) => return Poll::Ready(true),
                Poll::Pending if polls > 0 => return Poll::Pending,
                Poll::Pending => {}
            }
        }
        Poll::Ready(false)
    })
    .await
}

/// Drops each query after no poll, after one, and so on, in longer and longer steps, until it ends.
#[tokio::test]
async fn queries_dropped_at_any_poll_leave_nothing() {
    // A slow device lets a query wait in many places.
    let options = EmulatorOptions { delay: Duration::from_micros(20), ..EmulatorOptions::default() };
    let device = emulated_with("at any poll", options);
    let context = pooled(Arc::new(GreedyMemoryPool::new(1 << 30)), "at any poll").await;
    let plain = on("off").await;
    register(&[&plain], "t", batches(8, true));
    let mut dropped = 0;
    for (sql, bytes) in QUERIES.iter().map(|sql| (*sql, 1 << 30)).chain(SPILLED.map(|sql| (sql, 2000))) {
        answer(&context, &format!("SET bowstring.device_bytes = {bytes}")).await.unwrap();
        let mut polls = 0;
        loop {
            let plan = plan(&context, sql).await;
            assert!(ours(&plan) > 0, "{sql}");
            let mut stream = execute_stream(plan, context.task_ctx()).unwrap();
            let ended = ends_within(&mut stream, polls).await;
            drop(stream);
            let what = format!("{sql}, after {polls} polls");
            nothing_left(&device, &what).await;
            given_back(&context, &what).await;
            if ended {
                break;
            }
            dropped += 1;
            polls += 1 + polls / 3;
        }
        assert!(same(&context, &plain, sql).await, "{sql}");
    }
    assert!(dropped > 2 * (QUERIES.len() + SPILLED.len()), "{dropped}");
}
