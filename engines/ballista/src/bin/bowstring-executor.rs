//! Ballista's executor with bowstring's operators: the stock program's command line, and `--device`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::config::LogRotationPolicy;
use ballista_core::error::{BallistaError, Result};
use ballista_core::object_store::{runtime_env_with_s3_support, session_config_with_s3_support};
use ballista_executor::config::Config;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use ballista_executor::health::spawn_health_server;
use bowstring_ballista::{DeviceExecutionEngine, config_producer};
use bowstring_datafusion::DeviceOptions;
use clap::Parser;
use datafusion::config::ExtensionOptions;
use tokio::sync::oneshot;
use tracing_appender::rolling;
use tracing_subscriber::EnvFilter;

/// The stock executor's allocator: an executor must not be slower for being ours.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A Ballista executor whose stages run on a device where they can.
#[derive(Parser)]
#[command(name = "bowstring-executor", version)]
struct Options {
    /// The device for stages whose session names none: auto (the first GPU that opens, else the CPU), cpu,
    /// cuda:0, rocm:0, emulator, or off for the stock executor's own operators.
    #[arg(long, default_value = "auto")]
    device: String,
    /// Another option of the rule, as NAME=VALUE, for sessions that do not set it: device_min_rows=0, say.
    /// May be given again.
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    #[command(flatten)]
    stock: Config,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Options { device, options, stock } = Options::parse();
    let own = own(device, &options)?;
    let probes = format!("{}:{}", stock.bind_host, stock.bind_health_port)
        .parse::<SocketAddr>()
        .map_err(|error| BallistaError::Configuration(format!("--bind-health-port: {error}")))?;
    let mut process = ExecutorProcessConfig::try_from(stock)?;
    let idle = Duration::from_secs(process.client_ttl);
    let engine = Arc::new(DeviceExecutionEngine::with_client_ttl(own.clone(), idle));
    process.override_execution_engine = Some(engine.clone());
    process.override_config_producer = Some(config_producer(own, Arc::new(session_config_with_s3_support)));
    process.override_runtime_producer = Some(Arc::new(runtime_env_with_s3_support));
    log_as_configured(&process);
    log::info!("bowstring: {engine:?}");

    let (stop, stopped) = oneshot::channel();
    let server = spawn_health_server(probes, process.health.clone(), stopped);
    let outcome = start_executor_process(Arc::new(process)).await;
    log::info!("bowstring: {:?}", engine.counts());
    // The server may have ended earlier and dropped the receiver.
    let _ = stop.send(());
    if let Err(error) = server.await {
        log::warn!("the health server: {error}");
    }
    outcome
}

/// The device options from the command line. A device that does not open is an error at startup, not a
/// warning with each task.
fn own(device: String, options: &[String]) -> Result<DeviceOptions> {
    bowstring_datafusion::open(&device)?;
    let mut own = DeviceOptions::default();
    for option in options {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| BallistaError::Configuration(format!("--option {option}: not NAME=VALUE")))?;
        own.set(name, value)?;
    }
    own.device = device;
    Ok(own)
}

/// Sends the log to where the stock options say: standard output, or files that rotate.
fn log_as_configured(process: &ExecutorProcessConfig) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(&process.special_mod_log_level));
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_thread_names(process.print_thread_info)
        .with_thread_ids(process.print_thread_info)
        .with_env_filter(filter);
    let Some(folder) = &process.log_dir else { return log.init() };
    let name = process.log_file_name_prefix();
    log.with_writer(match process.log_rotation_policy {
        LogRotationPolicy::Minutely => rolling::minutely(folder, name),
        LogRotationPolicy::Hourly => rolling::hourly(folder, name),
        LogRotationPolicy::Daily => rolling::daily(folder, name),
        LogRotationPolicy::Never => rolling::never(folder, name),
    })
    .init();
}
