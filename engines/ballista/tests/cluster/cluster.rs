//! A scheduler and executors in this process that talk over loopback. Each executor has a runtime of its own,
//! so that it can disappear at once, as a lost machine does.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista::prelude::{SessionConfigExt, SessionContextExt};
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::error::BallistaError;
use ballista_core::ids::new_instance_id;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::ExecutorRegistration;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use ballista_core::utils::{GrpcServerConfig, create_grpc_server, default_config_producer};
use ballista_core::{BALLISTA_PROTOCOL_VERSION, ConfigProducer};
use ballista_executor::execution_engine::ExecutionEngine;
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::LoggingMetricsCollector;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::SchedulerConfig;
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use bowstring_ballista::config_producer;
use bowstring_datafusion::DeviceOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::TcpListenerStream;

/// Loopback only, so that nothing outside this machine can take part.
const LOOPBACK: &str = "127.0.0.1:0";

/// The seconds of silence after which an executor counts as lost. The stock three minutes are too long for
/// tests.
const SILENCE: u64 = 4;

/// The partitions of a stage: more than an executor has cores here, so that two executors get work.
const PARTITIONS: usize = 4;

/// Options that let the rule take all that it can: a test's tables are small.
pub fn own(device: &str) -> DeviceOptions {
    let mut own = DeviceOptions::default();
    (own.device, own.always) = (device.to_owned(), true);
    own
}

pub struct Cluster {
    scheduler: SocketAddr,
    executors: Vec<Option<Machine>>,
}

/// An executor: its runtime, and the folder with its shuffle files.
struct Machine {
    runtime: Runtime,
    _work: TempDir,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.executors.len()).for_each(|executor| self.lose(executor));
    }
}

impl Cluster {
    /// Starts the stock scheduler and one executor for each engine.
    pub async fn start(engines: Vec<Arc<dyn ExecutionEngine>>) -> Result<Self> {
        Self::with_configs(engines, Arc::new(default_config_producer)).await
    }

    /// Like [`start`](Self::start), with a scheduler that knows the settings of `sessions`.
    pub async fn with_configs(
        engines: Vec<Arc<dyn ExecutionEngine>>,
        sessions: ConfigProducer,
    ) -> Result<Self> {
        let config = SchedulerConfig {
            scheduling_policy: TaskSchedulingPolicy::PullStaged,
            executor_timeout_seconds: SILENCE,
            expire_dead_executor_interval_seconds: 1,
            no_executors_grace_period_seconds: SILENCE,
            override_config_producer: Some(sessions),
            ..SchedulerConfig::default()
        };
        let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
        let server = create_scheduler::<LogicalPlanNode, PhysicalPlanNode>(cluster, Arc::new(config))
            .await
            .map_err(failed)?;
        let listener = TcpListener::bind(LOOPBACK).await?;
        let scheduler = listener.local_addr()?;
        tokio::spawn(start_grpc_service_with_listener(listener, server));
        let executors = engines.into_iter().map(|engine| Machine::start(scheduler, engine).map(Some));
        Ok(Self { scheduler, executors: executors.collect::<io::Result<_>>()? })
    }

    /// The stock client; every shuffle goes over the network, even if a file on this disk would do.
    pub async fn client(&self) -> Result<SessionContext> {
        self.client_with(SessionConfig::new_with_ballista()).await
    }

    pub async fn client_with(&self, config: SessionConfig) -> Result<SessionContext> {
        let config = config
            .with_target_partitions(PARTITIONS)
            .with_ballista_shuffle_reader_force_remote_read(true)
            .with_ballista_shuffle_reader_remote_prefer_flight(true);
        let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
        SessionContext::remote_with_state(&format!("df://{}", self.scheduler), state).await
    }

    /// Ends an executor without notice, and removes its files.
    pub fn lose(&mut self, executor: usize) {
        if let Some(machine) = self.executors[executor].take() {
            machine.runtime.shutdown_background();
        }
    }
}

impl Machine {
    fn start(scheduler: SocketAddr, engine: Arc<dyn ExecutionEngine>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let work = TempDir::new()?;
        let folder = work.path().display().to_string();
        runtime.spawn(async move {
            if let Err(error) = serve(scheduler, engine, &folder).await {
                panic!("an executor ended: {error}");
            }
        });
        Ok(Self { runtime, _work: work })
    }
}

/// Does the same as Ballista's standalone executor, with a given engine.
async fn serve(scheduler: SocketAddr, engine: Arc<dyn ExecutionEngine>, folder: &str) -> Result<()> {
    let listener = TcpListener::bind(LOOPBACK).await?;
    let address = listener.local_addr()?;
    let registration = ExecutorRegistration {
        id: new_instance_id(),
        host: Some(address.ip().to_string()),
        port: u32::from(address.port()),
        // The port for a scheduler that pushes tasks; these executors pull them.
        grpc_port: 0,
        specification: Some(ExecutorSpecification::default().with_vcores(1).into()),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    };
    let executor = Executor::new(
        registration,
        folder,
        Arc::new(|_| Ok(Arc::new(RuntimeEnv::default()))),
        config_producer(own("auto"), Arc::new(default_config_producer)),
        Arc::default(),
        Arc::new(LoggingMetricsCollector::default()),
        1,
        engine,
    );
    tokio::spawn(
        create_grpc_server(&GrpcServerConfig::default())
            .add_service(FlightServiceServer::new(BallistaFlightService::new(folder.to_owned())))
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    let scheduler = connected(scheduler).await?;
    let codec = BallistaCodec::<LogicalPlanNode, PhysicalPlanNode>::default();
    poll_loop(scheduler, Arc::new(executor), codec, None, None, ExecutorHealth::new()).await.map_err(failed)
}

fn failed(error: BallistaError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

async fn connected(scheduler: SocketAddr) -> Result<SchedulerGrpcClient<tonic::transport::Channel>> {
    let mut attempts = 50;
    loop {
        match SchedulerGrpcClient::connect(format!("http://{scheduler}")).await {
            Ok(client) => return Ok(client),
            Err(error) if attempts == 0 => return Err(DataFusionError::External(Box::new(error))),
            Err(_) => attempts -= 1,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
