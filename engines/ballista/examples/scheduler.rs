//! Ballista's own scheduler, in case it is not installed (`cargo install ballista-scheduler`, which also
//! supports S3).

use std::error::Error;
use std::sync::Arc;

use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{Config, SchedulerConfig};
use ballista_scheduler::scheduler_process::start_server;
use clap::Parser;
use tracing_subscriber::EnvFilter;

/// Decoding the plans of deep queries recurses; the stock program has a stack of the same size.
const STACK: usize = 32 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK).build()?;
    runtime.block_on(serve(Config::parse()))
}

async fn serve(options: Config) -> Result<(), Box<dyn Error>> {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(&options.log_level_setting));
    tracing_subscriber::fmt().with_ansi(false).with_env_filter(filter).init();
    let address = format!("{}:{}", options.bind_host, options.bind_port).parse()?;
    let config = SchedulerConfig::try_from(options)?;
    let cluster = BallistaCluster::new_from_config(&config).await?;
    Ok(start_server(cluster, address, Arc::new(config)).await?)
}
