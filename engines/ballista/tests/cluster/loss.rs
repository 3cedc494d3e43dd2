//! Executors lost in the middle of a query: it ends in time, with the right answer or with an error that says
//! so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use bowstring_ballista::DeviceExecutionEngine;
use bowstring_tpch::register_parquet;
use datafusion::error::Result;

use crate::answers::{alone, answer, tables, tpch};
use crate::cluster::{Cluster, own};
use crate::engines::{Paused, Progress};

/// The duration of each task, so that a query has a middle.
const PAUSE: Duration = Duration::from_millis(300);

fn slow() -> (Arc<Paused>, Arc<Progress>) {
    Paused::over(Arc::new(DeviceExecutionEngine::new(own("cpu"))), PAUSE)
}

async fn reached(counter: &AtomicU64) {
    let reached = async {
        while counter.load(SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reached).await.expect("the executor takes part");
}

/// Runs a query with two joins, and drops the second executor at `moment`; returns the outcome.
async fn with_loss(moment: fn(&Progress) -> &AtomicU64) -> Result<()> {
    let ((left, _), (right, progress)) = (slow(), slow());
    let mut cluster = Cluster::start(vec![left, right]).await?;
    let client = cluster.client().await?;
    register_parquet(&client, tables()).await?;
    let query = tokio::spawn(async move { answer(&client, tpch(3)).await });
    reached(moment(&progress)).await;
    assert!(!query.is_finished(), "the query was over before the executor was lost");
    cluster.lose(1);
    let ours = query.await.expect("no panic")?;
    assert_eq!(ours, alone(tpch(3)).await?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_lost_with_a_task_in_hand_is_done_without() -> Result<()> {
    with_loss(|progress| &progress.given).await
}

/// The shuffle files that the lost executor has written are lost with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_lost_with_shuffled_rows_is_done_without() -> Result<()> {
    with_loss(|progress| &progress.done).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_executor_lost_is_an_error_and_no_hang() -> Result<()> {
    let (only, progress) = slow();
    let mut cluster = Cluster::start(vec![only]).await?;
    let client = cluster.client().await?;
    register_parquet(&client, tables()).await?;
    let query = tokio::spawn(async move { answer(&client, tpch(3)).await });
    reached(&progress.given).await;
    cluster.lose(0);
    let error = query.await.expect("no panic").expect_err("nobody is left to answer");
    assert!(error.to_string().contains("executor"), "{error}");
    Ok(())
}
