//! The tables that the command line names.

use crate::arguments::Arguments;
use bowstring_sql::files::{register_path, tables_in};
use bowstring_sql::progress::style;
use bowstring_tpch::{Table, in_memory};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use indicatif::ProgressBar;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Registers all tables; reports how long making TPC-H's tables took.
pub async fn register(
    context: &SessionContext,
    arguments: &Arguments,
    partitions: usize,
) -> Result<Option<Duration>> {
    let made = match arguments.tpch {
        None => None,
        Some(scale) => {
            let start = Instant::now();
            let bar = ProgressBar::new(Table::ALL.len() as u64).with_message("making TPC-H's tables");
            bar.set_style(style());
            for table in Table::ALL {
                context.register_table(table.name(), Arc::new(in_memory(table, scale, partitions)?))?;
                bar.inc(1);
            }
            bar.finish_and_clear();
            Some(start.elapsed())
        }
    };
    if let Some(folder) = &arguments.folder {
        for (name, path) in tables_in(folder)? {
            register_path(context, &name, &path).await?;
        }
    }
    for (name, path) in &arguments.tables {
        register_path(context, name, path).await?;
    }
    Ok(made)
}
