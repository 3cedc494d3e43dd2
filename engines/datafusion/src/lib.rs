//! DataFusion on bowstring: an optimizer rule that replaces chains of filters, projections and aggregates by
//! operators that run on a device, in host memory or on a GPU, with DataFusion's own meaning. On the CPU, it
//! adds filters that drop rows without a partner in a join where they are read.
//!
//! ```
//! # use bowstring_datafusion::session;
//! # use datafusion::prelude::SessionConfig;
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! let context = session(SessionConfig::new());
//! context.sql("SET bowstring.device = 'cpu'").await?;
//! let sum = context.sql("SELECT sum(x * 2) FROM (VALUES (1), (2), (30)) AS t(x) WHERE x < 10").await?;
//! assert_eq!(sum.collect().await?[0].num_rows(), 1);
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod aggregate;
mod arguments;
mod blame;
mod bounds;
mod bridge;
mod casts;
mod chain;
mod chained;
mod comparison;
mod config;
mod cost;
mod device;
mod downloads;
mod error;
mod exchange;
mod exec;
mod explained;
mod expression;
mod finishing;
mod first_step;
mod gathered;
mod gpu;
mod host;
mod inputs;
mod join;
mod join_keys;
mod joined;
mod key_bits;
mod key_filter;
mod key_filters;
mod key_range;
mod key_streams;
mod keys;
mod limited;
mod literal;
mod made;
mod masked;
mod metrics;
mod operator;
mod passed;
mod places;
mod probe;
mod program;
mod reason;
mod recent_groups;
mod rows;
mod rule;
mod scan;
mod sorted;
mod spill;
mod steps;
mod streams;
mod subquery;
mod table;
mod texts;
mod top;
mod types;
mod uploads;
mod why;
mod window;
mod windowed;

use std::sync::Arc;

use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};

pub use bridge::{batches_at, batches_of};
pub use config::DeviceOptions;
pub use device::{name_device, open};
pub use exec::DeviceExec;
pub use explained::left_to_datafusion;
pub use reason::Reason;
pub use rule::DeviceRule;
pub use scan::DeviceScan;
pub use table::{DeviceTable, host_table};
pub use why::{Declined, why_not};

use explained::Explained;

/// Adds our options and our rule to a session builder. The rule runs after all rules that change plans,
/// before the one that checks them. `EXPLAIN` then says which operators are left to DataFusion, unless the
/// builder is given another planner after this.
pub fn with_bowstring(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let config = builder.config().get_or_insert_default();
    if config.options().extensions.get::<DeviceOptions>().is_none() {
        config.options_mut().extensions.insert(DeviceOptions::default());
    }
    let rules = &mut builder.physical_optimizers().get_or_insert_with(PhysicalOptimizer::new).rules;
    let check = rules.iter().position(|rule| rule.name() == "SanityCheckPlan").unwrap_or(rules.len());
    rules.insert(check, Arc::new(DeviceRule::new()));
    let planner = builder.query_planner().take();
    builder.with_query_planner(Arc::new(Explained { planner }))
}

/// A session with DataFusion's defaults and our rule.
pub fn session(config: SessionConfig) -> SessionContext {
    let builder = SessionStateBuilder::new().with_config(config).with_default_features();
    SessionContext::new_with_state(with_bowstring(builder).build())
}
