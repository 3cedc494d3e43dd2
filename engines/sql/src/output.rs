//! Answers as tables, CSV, JSON or Parquet, on standard output or in a file.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::arrow::ArrowWriter;
use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A table for readers, of the first rows.
    #[default]
    Table,
    /// Comma-separated values, with a header.
    Csv,
    /// A JSON object on each line.
    Json,
    /// A file in Parquet's format, without compression.
    Parquet,
}

/// The place that batches of an answer are written to.
pub enum Output {
    /// Drops the rows: the answer is not wanted, or the statement, such as `CREATE TABLE`, has none.
    Nothing,
    /// Keeps the first rows, as many as are shown.
    Table {
        kept: Vec<RecordBatch>,
        shown: usize,
        rows: usize,
        to: Box<dyn Write + Send>,
    },
    Csv(arrow_csv::Writer<Box<dyn Write + Send>>),
    Json(arrow_json::LineDelimitedWriter<Box<dyn Write + Send>>),
    Parquet(ArrowWriter<File>),
}

impl Output {
    /// Begins an answer: in `file`, or else on standard output, which Parquet cannot be written to.
    pub fn new(format: Format, file: Option<&Path>, schema: &SchemaRef, shown: usize) -> Result<Output> {
        let to = || -> Result<Box<dyn Write + Send>> {
            Ok(match file {
                Some(file) => Box::new(BufWriter::new(create(file)?)),
                None => Box::new(stdout()),
            })
        };
        if schema.fields().is_empty() {
            return Ok(Output::Nothing);
        }
        Ok(match format {
            Format::Table => {
                let kept = vec![RecordBatch::new_empty(schema.clone())];
                Output::Table { kept, shown, rows: 0, to: to()? }
            }
            Format::Csv => {
                let mut writer = arrow_csv::Writer::new(to()?);
                // The header is there even if there are no rows.
                writer.write(&RecordBatch::new_empty(schema.clone()))?;
                Output::Csv(writer)
            }
            Format::Json => Output::Json(arrow_json::LineDelimitedWriter::new(to()?)),
            Format::Parquet => {
                let file = file.ok_or_else(|| {
                    DataFusionError::Configuration("Parquet is written to a file: --output names it".into())
                })?;
                Output::Parquet(ArrowWriter::try_new(create(file)?, schema.clone(), None)?)
            }
        })
    }

    /// Writes the rows of a batch, or keeps them until the answer ends.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Output::Nothing => {}
            Output::Table { kept, shown, rows, .. } => {
                let more = shown.saturating_sub(*rows).min(batch.num_rows());
                if more > 0 {
                    kept.push(batch.slice(0, more));
                }
                *rows += batch.num_rows();
            }
            Output::Csv(writer) => writer.write(batch)?,
            Output::Json(writer) => writer.write(batch)?,
            Output::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Writes the rows that were kept, and all that is buffered.
    pub fn finish(self) -> Result<()> {
        match self {
            Output::Nothing => {}
            Output::Table { kept, shown, rows, mut to } => {
                writeln!(to, "{}", pretty_format_batches(&kept)?)?;
                if rows > shown {
                    writeln!(to, "{rows} rows, of which {shown} are shown")?;
                }
                to.flush()?;
            }
            Output::Csv(writer) => writer.into_inner().flush()?,
            Output::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
            Output::Parquet(writer) => drop(writer.close()?),
        }
        Ok(())
    }
}

fn create(file: &Path) -> Result<File> {
    let named =
        |error: std::io::Error| std::io::Error::new(error.kind(), format!("{}: {error}", file.display()));
    Ok(File::create(file).map_err(named)?)
}

/// The form and the file of answers.
#[derive(Clone, Debug)]
pub struct Form {
    pub format: Format,
    pub file: Option<PathBuf>,
    /// The number of rows of a table that are shown.
    pub shown: usize,
}
