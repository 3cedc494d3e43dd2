//! bowstring's operators on the executors of [Ballista](https://datafusion.apache.org/ballista/), DataFusion
//! spread over machines.
//!
//! The one idea: a plan is changed on the executor that runs it. Scheduler and client are Ballista's own and
//! know nothing about devices. An executor's process configuration accepts [`DeviceExecutionEngine`] as its
//! engine, which runs bowstring's optimizer rule over each stage's plan just before the stage is executed. So
//! our operators never cross the network, no codec has to be installed anywhere, Ballista's adaptive planner
//! stays on, and executors with and without a device serve one query together.
//!
//! ```no_run
//! use ballista_core::utils::default_config_producer;
//! use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
//! use bowstring_ballista::{DeviceExecutionEngine, config_producer};
//! use bowstring_datafusion::DeviceOptions;
//! use std::sync::Arc;
//!
//! # async fn start() -> ballista_core::error::Result<()> {
//! let own = DeviceOptions::default();
//! let mut process = ExecutorProcessConfig::default();
//! process.override_execution_engine = Some(Arc::new(DeviceExecutionEngine::new(own.clone())));
//! process.override_config_producer = Some(config_producer(own, Arc::new(default_config_producer)));
//! start_executor_process(Arc::new(process)).await
//! # }
//! ```
//!
//! The program `bowstring-executor` is that, with the stock executor's command line.

mod connections;
mod engine;
mod metrics;
mod settings;
mod stage;

pub use engine::{Counts, DeviceExecutionEngine};
pub use settings::config_producer;
