//! Creates TPC-H's tables in memory.

use crate::table::{Scale, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use std::sync::Arc;
use std::thread;

/// A table in this many partitions, each made by a thread of its own.
pub fn in_memory(table: Table, scale: Scale, partitions: usize) -> Result<MemTable> {
    let parts = table.parts(partitions);
    let made: Result<Vec<Vec<RecordBatch>>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..parts)
            .map(|part| scope.spawn(move || table.batches(scale, part, parts).collect::<Result<Vec<_>>>()))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(DataFusionError::Internal(format!("making the table {table} panicked")))
                })
            })
            .collect()
    });
    MemTable::try_new(table.schema(), made?)
}

/// Makes all eight tables and registers them under their names in a session.
pub fn register_in_memory(context: &SessionContext, scale: Scale, partitions: usize) -> Result<()> {
    for table in Table::ALL {
        context.register_table(table.name(), Arc::new(in_memory(table, scale, partitions)?))?;
    }
    Ok(())
}
