//! Files and folders as tables.

use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext};
use std::fs::read_dir;
use std::path::{Path, PathBuf, absolute};
use url::Url;

#[derive(Clone, Copy, PartialEq)]
enum Format {
    Parquet,
    Csv,
}

/// Registers a Parquet or CSV file, or a folder of such files, under a name, which is taken literally.
pub async fn register_path(context: &SessionContext, name: &str, path: &Path) -> Result<()> {
    let shown = path.display();
    if !path.exists() {
        return Err(wrong(format!("table {name}: there is no {shown}")));
    }
    let format = format_of(path)?.ok_or_else(|| {
        wrong(format!("table {name}: {shown} is neither a .parquet or .csv file nor a folder of such"))
    })?;
    let url = url_of(path).ok_or_else(|| wrong(format!("table {name}: {shown} is not a UTF-8 path")))?;
    let name = datafusion::common::TableReference::bare(name);
    match format {
        Format::Parquet => context.register_parquet(name, url, ParquetReadOptions::default()).await,
        Format::Csv => context.register_csv(name, url, CsvReadOptions::new()).await,
    }
}

/// The URL of a file or folder; `None` if its path is not UTF-8. DataFusion takes a path with a bracket, a
/// star or a question mark for a pattern, and a relative path with a colon for a URL. A URL is no pattern.
fn url_of(path: &Path) -> Option<Url> {
    let path = absolute(path.to_str()?).ok()?;
    let url = if path.is_dir() { Url::from_directory_path(path) } else { Url::from_file_path(path) };
    url.ok()
}

/// A file's format follows from the end of its name; a folder's from its files, if they agree.
fn format_of(path: &Path) -> Result<Option<Format>> {
    if !path.is_dir() {
        return Ok(match path.extension().and_then(|extension| extension.to_str()) {
            Some("parquet") => Some(Format::Parquet),
            Some("csv") => Some(Format::Csv),
            _ => None,
        });
    }
    let mut format = None;
    for entry in sorted(path)?.iter().filter(|entry| entry.is_file()) {
        match (format, format_of(entry)?) {
            (Some(one), Some(other)) if one != other => {
                return Err(wrong(format!("{} has both Parquet and CSV files", path.display())));
            }
            (_, Some(other)) => format = Some(other),
            (_, None) => {}
        }
    }
    Ok(format)
}

/// The tables of a folder: each Parquet or CSV file, by its name without the ending, and each folder of such
/// files, by its name.
pub fn tables_in(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let mut tables = vec![];
    for entry in sorted(folder)? {
        let name = if entry.is_dir() { entry.file_name() } else { entry.file_stem() };
        if let (Some(name), Some(_)) = (name.and_then(|name| name.to_str()), format_of(&entry)?) {
            tables.push((name.to_owned(), entry.clone()));
        }
    }
    if tables.is_empty() {
        return Err(wrong(format!("{} has neither Parquet nor CSV files", folder.display())));
    }
    Ok(tables)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> =
        entries.map_err(|error: std::io::Error| wrong(format!("{}: {error}", folder.display())))?;
    paths.sort();
    Ok(paths)
}

/// An error in what the user gave; the message is shown without further context.
pub fn wrong(what: String) -> DataFusionError {
    DataFusionError::Configuration(what)
}
