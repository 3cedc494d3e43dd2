//! Queries on clusters without failures: the answers equal DataFusion's, and the tests count which executors
//! took part.

use std::sync::Arc;
use std::time::Duration;

use ballista::prelude::SessionConfigExt;
use ballista_core::utils::default_config_producer;
use ballista_executor::execution_engine::DefaultExecutionEngine;
use bowstring_ballista::{DeviceExecutionEngine, config_producer};
use bowstring_tpch::register_parquet;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::answers::{agrees, alone, answer, tables, tpch};
use crate::cluster::{Cluster, own};
use crate::engines::Paused;
use std::sync::atomic::Ordering::SeqCst;

fn engine(device: &str) -> Arc<DeviceExecutionEngine> {
    Arc::new(DeviceExecutionEngine::new(own(device)))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_executors_answer_every_tpch_query_as_datafusion() -> Result<()> {
    let engines = [engine("cpu"), engine("cpu")];
    let cluster = Cluster::start(vec![engines[0].clone(), engines[1].clone()]).await?;
    agrees(&cluster.client().await?, 1..=22).await?;
    for counts in engines.each_ref().map(|engine| engine.counts()) {
        assert!(counts.device_tasks > 0 && counts.operators >= counts.device_tasks, "{counts:?}");
        assert_eq!(counts.failures, 0, "{counts:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emulated_gpu_answers_as_datafusion() -> Result<()> {
    let engines = [engine("emulator"), engine("emulator")];
    let cluster = Cluster::start(vec![engines[0].clone(), engines[1].clone()]).await?;
    agrees(&cluster.client().await?, [6]).await?;
    let counts = engines.each_ref().map(|engine| engine.counts());
    assert!(counts.iter().any(|counts| counts.device_tasks > 0), "{counts:?}");
    assert!(counts.iter().all(|counts| counts.failures == 0), "{counts:?}");
    Ok(())
}

/// The tasks of one stage then have different operators on the two executors, and their metrics still add up.
#[tokio::test(flavor = "multi_thread")]
async fn an_executor_of_ours_and_a_stock_one_serve_the_same_stages() -> Result<()> {
    let ours = engine("cpu");
    // Each task waits a little, so that neither executor finishes a stage before the other has asked for its
    // share.
    let (left, _) = Paused::over(ours.clone(), Duration::from_millis(60));
    let (right, stock) = Paused::over(Arc::new(DefaultExecutionEngine::new()), Duration::from_millis(60));
    let cluster = Cluster::start(vec![left, right]).await?;
    agrees(&cluster.client().await?, [1, 3, 6, 12, 14, 19]).await?;
    assert!(ours.counts().device_tasks > 0, "{:?}", ours.counts());
    assert!(stock.done.load(SeqCst) > 0, "{stock:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_chooses_its_device_where_the_scheduler_passes_that_on() -> Result<()> {
    let ours = engine("cpu");
    let scheduler = config_producer(own("auto"), Arc::new(default_config_producer));
    let cluster = Cluster::with_configs(vec![ours.clone()], scheduler).await?;
    let session = SessionConfig::new_with_ballista().with_option_extension(own("auto"));
    let client = cluster.client_with(session).await?;
    register_parquet(&client, tables()).await?;
    let theirs = alone(tpch(6)).await?;

    client.sql("SET bowstring.device = 'off'").await?.collect().await?;
    assert_eq!(answer(&client, tpch(6)).await?, theirs);
    let counts = ours.counts();
    assert!(counts.tasks > 0 && counts.device_tasks == 0, "{counts:?}");

    client.sql("SET bowstring.device = 'auto'").await?.collect().await?;
    assert_eq!(answer(&client, tpch(6)).await?, theirs);
    assert!(ours.counts().device_tasks > 0, "{:?}", ours.counts());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_executor_that_is_off_is_a_stock_one() -> Result<()> {
    let ours = engine("off");
    let cluster = Cluster::start(vec![ours.clone()]).await?;
    agrees(&cluster.client().await?, [6]).await?;
    let counts = ours.counts();
    assert!(counts.tasks > 0 && counts.device_tasks == 0 && counts.failures == 0, "{counts:?}");
    Ok(())
}

/// An error caused by the data reaches the client. Ballista passes on the name of DataFusion's error.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_fails_says_why() -> Result<()> {
    const SQL: &str =
        "SELECT sum(l_orderkey / (l_linenumber - l_linenumber)) FROM lineitem WHERE l_quantity < 24";
    let ours = engine("cpu");
    let cluster = Cluster::start(vec![ours.clone()]).await?;
    let client = cluster.client().await?;
    register_parquet(&client, tables()).await?;
    for error in
        [answer(&client, SQL).await, alone(SQL).await].map(|answer| answer.expect_err("a division by zero"))
    {
        let why = error.to_string().replace(' ', "").to_lowercase();
        assert!(why.contains("dividebyzero"), "{error}");
    }
    Ok(())
}
