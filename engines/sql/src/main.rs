//! `bowstring-sql`: a SQL query over Parquet or CSV files, or over TPC-H's tables made in memory, with
//! bowstring's operators where they can work. The answer goes to standard output; times, counts and progress
//! to standard error.

mod arguments;
mod output;
mod prompt;
mod run;
mod shell;
mod tables;

use clap::Parser;
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match run::run(arguments::Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            shell::say(format_args!("bowstring-sql: {error}"));
            ExitCode::FAILURE
        }
    }
}
