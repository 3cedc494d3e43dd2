//! Tables as Parquet files: a folder for each table, a file for each part.

use crate::table::{Scale, Table};
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{ParquetReadOptions, SessionContext};
use std::fs::{File, create_dir_all};
use std::path::Path;
use std::thread;

/// Writes all eight tables, each as this many files in `folder/<table>/`; the files of a table are written in
/// parallel.
pub fn write_parquet(folder: &Path, scale: Scale, files: usize) -> Result<()> {
    for table in Table::ALL {
        let folder = folder.join(table.name());
        create_dir_all(&folder)?;
        let files = table.parts(files);
        thread::scope(|scope| {
            let threads: Vec<_> = (0..files)
                .map(|file| {
                    let path = folder.join(format!("part-{file}.parquet"));
                    scope.spawn(move || write_file(&path, table, scale, file, files))
                })
                .collect();
            threads.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| {
                    Err(DataFusionError::Internal(format!("writing the table {table} panicked")))
                })
            })
        })?;
    }
    Ok(())
}

fn write_file(path: &Path, table: Table, scale: Scale, part: usize, parts: usize) -> Result<()> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(File::create(path)?, table.schema(), Some(properties))?;
    for batch in table.batches(scale, part, parts) {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

/// Registers the tables that [`write_parquet`] wrote under their names in a session.
pub async fn register_parquet(context: &SessionContext, folder: &Path) -> Result<()> {
    for table in Table::ALL {
        let path = folder.join(table.name());
        let path = path.to_str().ok_or_else(|| {
            DataFusionError::Configuration(format!(
                "the folder {} has a name that is not UTF-8",
                path.display()
            ))
        })?;
        context.register_parquet(table.name(), path, ParquetReadOptions::default()).await?;
    }
    Ok(())
}
