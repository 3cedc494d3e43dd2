//! Answers as tables, CSV, JSON or Parquet, on standard output or in a file.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::arrow::ArrowWriter;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

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
#[derive(Default)]
pub struct Output {
    rows: Rows,
    file: Option<Unnamed>,
}

/// A file that gets its name when the answer is complete: the query may read an earlier file of that name,
/// and a query that fails leaves it as it was.
struct Unnamed {
    file: NamedTempFile,
    name: PathBuf,
}

#[derive(Default)]
enum Rows {
    /// Drops the rows: the answer is not wanted, or the statement, such as `CREATE TABLE`, has none.
    #[default]
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
    Parquet(ArrowWriter<Box<dyn Write + Send>>),
}

impl Output {
    /// Begins an answer: in `file`, or else on standard output, which Parquet cannot be written to.
    pub fn new(format: Format, file: Option<&Path>, schema: &SchemaRef, shown: usize) -> Result<Output> {
        if schema.fields().is_empty() {
            return Ok(Output::default());
        }
        if file.is_none() && format == Format::Parquet {
            return Err(DataFusionError::Configuration(
                "Parquet is written to a file: --output names it".into(),
            ));
        }
        let (file, unnamed) = match file {
            Some(name) => created(name)
                .map(|(file, unnamed)| (Some(file), unnamed))
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", name.display())))?,
            None => (None, None),
        };
        let to: Box<dyn Write + Send> = match file {
            Some(file) => Box::new(BufWriter::new(file)),
            None => Box::new(stdout()),
        };
        let rows = match format {
            Format::Table => {
                let kept = vec![RecordBatch::new_empty(schema.clone())];
                Rows::Table { kept, shown, rows: 0, to }
            }
            Format::Csv => {
                let mut writer = arrow_csv::Writer::new(to);
                // The header is there even if there are no rows.
                writer.write(&RecordBatch::new_empty(schema.clone()))?;
                Rows::Csv(writer)
            }
            Format::Json => Rows::Json(arrow_json::LineDelimitedWriter::new(to)),
            Format::Parquet => Rows::Parquet(ArrowWriter::try_new(to, schema.clone(), None)?),
        };
        Ok(Output { rows, file: unnamed })
    }

    /// Writes the rows of a batch, or keeps them until the answer ends.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.rows {
            Rows::Nothing => {}
            Rows::Table { kept, shown, rows, .. } => {
                let more = shown.saturating_sub(*rows).min(batch.num_rows());
                if more > 0 {
                    kept.push(batch.slice(0, more));
                }
                *rows += batch.num_rows();
            }
            Rows::Csv(writer) => writer.write(batch)?,
            Rows::Json(writer) => writer.write(batch)?,
            Rows::Parquet(writer) => writer.write(batch)?,
        }
        Ok(())
    }

    /// Writes the rows that were kept and all that is buffered, and names the file.
    pub fn finish(self) -> Result<()> {
        match self.rows {
            Rows::Nothing => {}
            Rows::Table { kept, shown, rows, mut to } => {
                writeln!(to, "{}", pretty_format_batches(&kept)?)?;
                if rows > shown {
                    writeln!(to, "{rows} rows, of which {shown} are shown")?;
                }
                to.flush()?;
            }
            Rows::Csv(writer) => writer.into_inner().flush()?,
            Rows::Json(mut writer) => {
                writer.finish()?;
                writer.into_inner().flush()?;
            }
            Rows::Parquet(writer) => writer.into_inner()?.flush()?,
        }
        if let Some(Unnamed { file, name }) = self.file {
            file.persist(name).map_err(|error| error.error)?;
        }
        Ok(())
    }
}

/// Creates a file for an answer. Pipes and devices are written to as they are, and a link stays one.
fn created(name: &Path) -> io::Result<(File, Option<Unnamed>)> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".bowstring-sql-");
    // A pipe may have no path of its own, and a link may lead to a file that is not there yet.
    let leads_to_a_file = name.metadata().map_or(!name.is_symlink(), |found| found.is_file());
    if !leads_to_a_file {
        return Ok((File::create(name)?, None));
    }
    let name = match name.canonicalize() {
        Ok(name) => {
            // A file that may not be written to may not be replaced either.
            OpenOptions::new().write(true).open(&name)?;
            name
        }
        Err(_) => name.to_owned(),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let new = || std::fs::Permissions::from_mode(0o666);
        builder.permissions(name.metadata().map_or_else(|_| new(), |earlier| earlier.permissions()));
    }
    let folder = name.parent().filter(|folder| !folder.as_os_str().is_empty());
    let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    Ok((file.reopen()?, Some(Unnamed { file, name })))
}

/// The form and the file of answers.
#[derive(Clone, Debug)]
pub struct Form {
    pub format: Format,
    pub file: Option<PathBuf>,
    /// The number of rows of a table that are shown.
    pub shown: usize,
}
