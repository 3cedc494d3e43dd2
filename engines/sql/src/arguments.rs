//! The command line, and the query that it selects.

use crate::output::Format;
use bowstring_sql::files::wrong;
use bowstring_tpch::{Scale, query};
use clap::{ArgGroup, Parser};
use datafusion::error::Result;
use std::io::{IsTerminal, Read, stdin};
use std::path::{Path, PathBuf};

/// Runs a SQL query with bowstring's operators inside DataFusion.
#[derive(Debug, Parser)]
#[command(name = "bowstring-sql", version, group(ArgGroup::new("text").args(["sql", "file", "query"])))]
pub struct Arguments {
    /// The query, or several that semicolons divide. Without it, --file and --query, it is read from standard
    /// input, or asked for if that is a terminal
    pub sql: Option<String>,

    /// A file that has the query; - is standard input
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,

    /// One of TPC-H's queries, 1 to 22
    #[arg(long, value_name = "NUMBER")]
    pub query: Option<usize>,

    /// A table: a Parquet or CSV file, or a folder of such files. May be given many times
    #[arg(long = "table", value_name = "NAME=PATH", value_parser = named_path)]
    pub tables: Vec<(String, PathBuf)>,

    /// A folder: each Parquet or CSV file, and each folder of such files in it, is a table of that name
    #[arg(long, value_name = "PATH")]
    pub folder: Option<PathBuf>,

    /// TPC-H's tables at this scale factor, made in memory; 1 is six million lines of orders
    #[arg(long, value_name = "SCALE")]
    pub tpch: Option<Scale>,

    /// The device that runs operators: auto, cpu, cuda:0, rocm:0, emulator, or off for DataFusion alone
    #[arg(long, default_value = "auto")]
    pub device: String,

    /// The number of partitions that work at a time (default: the number of cores)
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub partitions: Option<u16>,

    /// Any other setting of DataFusion's or ours, as datafusion.execution.batch_size=16384. May be given many
    /// times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,

    /// Print the plan, and do not run it
    #[arg(long, conflicts_with = "analyze")]
    pub explain: bool,

    /// Run the query, and print the plan with what each operator did before the answer
    #[arg(long)]
    pub analyze: bool,

    /// Run the query this many times, to measure it; the answer is printed once. Definitions and settings run
    /// once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,

    /// How many rows of a table to print
    #[arg(long, default_value_t = 100)]
    pub rows: usize,

    /// The form of the answer
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// The file that the answer is written to, instead of standard output. It has room for one answer
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,

    /// Ask for queries, also if standard input is no terminal
    #[arg(long, conflicts_with = "text")]
    pub prompt: bool,
}

impl Arguments {
    /// The text of the query, wherever it comes from; `None` if queries are asked for.
    pub fn text(&self) -> Result<Option<String>> {
        let interactive = self.prompt || self.file.is_none() && stdin().is_terminal();
        match self.sql.is_none() && self.query.is_none() && interactive {
            true => Ok(None),
            false => self.given().map(Some),
        }
    }

    fn given(&self) -> Result<String> {
        if let Some(text) = &self.sql {
            return Ok(text.clone());
        }
        if let Some(number) = self.query {
            let known = query(number).map(str::to_owned);
            return known.ok_or_else(|| wrong(format!("TPC-H has queries 1 to 22, not {number}")));
        }
        match self.file.as_deref() {
            Some(path) if path != Path::new("-") => {
                std::fs::read_to_string(path).map_err(|error| wrong(format!("{}: {error}", path.display())))
            }
            _ => {
                let mut text = String::new();
                stdin().read_to_string(&mut text)?;
                Ok(text)
            }
        }
    }
}

fn split(text: &str, form: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.into(), value.into())),
        _ => Err(format!("it has the form {form}")),
    }
}

fn named_path(text: &str) -> Result<(String, PathBuf), String> {
    split(text, "NAME=PATH").map(|(name, path)| (name, path.into()))
}

fn setting(text: &str) -> Result<(String, String), String> {
    split(text, "KEY=VALUE")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn a_query_comes_from_one_place() {
        let parse = |words: &[&str]| Arguments::try_parse_from([&["bowstring-sql"], words].concat());
        assert_eq!(parse(&["select 1"]).unwrap().text().unwrap().unwrap(), "select 1");
        let sixth = parse(&["--query", "6"]).unwrap().text().unwrap();
        assert!(sixth.unwrap().contains("l_discount between"));
        assert_eq!(parse(&["--prompt"]).unwrap().text().unwrap(), None);
        assert!(parse(&["--prompt", "select 1"]).is_err());
        assert!(parse(&["--query", "23"]).unwrap().text().is_err());
        assert!(parse(&["--query", "6", "select 1"]).is_err());
        assert!(parse(&["--table", "t", "select 1"]).is_err());
        assert!(parse(&["--tpch", "0", "select 1"]).is_err());
        assert!(parse(&["--explain", "--analyze", "select 1"]).is_err());
    }
}
