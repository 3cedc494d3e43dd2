//! Parts of the program `bowstring-sql` that other programs use: files as tables, and the progress of a
//! query.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod files;
pub mod progress;

pub use bowstring_datafusion::left_to_datafusion;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, SetVariable, Statement};
use datafusion::prelude::{SessionConfig, SessionContext};

/// A session on a device, with so many partitions, or as many as there are cores, and other options by name.
pub fn session<'a>(
    device: &'a str,
    partitions: Option<usize>,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<SessionContext> {
    let mut config = SessionConfig::new().with_information_schema(true);
    if let Some(partitions) = partitions {
        config = config.with_target_partitions(partitions);
    }
    let context = bowstring_datafusion::session(config);
    for (key, value) in [("bowstring.device", device)].into_iter().chain(settings) {
        set(&context, key, value)?;
    }
    Ok(context)
}

/// Sets an option of DataFusion's or ours, as the statement `SET` does.
pub fn set(context: &SessionContext, key: &str, value: &str) -> Result<()> {
    let set = SetVariable { variable: key.to_owned(), value: value.to_owned() };
    // It waits for nothing.
    let done = context.execute_logical_plan(LogicalPlan::Statement(Statement::SetVariable(set)));
    futures::executor::block_on(done).map(drop)
}
