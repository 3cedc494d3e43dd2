//! Ballista's own client: runs TPC-H queries on a cluster, and can compare the answers with DataFusion's
//! alone.
//!
//! `client --scheduler localhost:50050 --tables /tmp/tpch --make 0.1 --query 6 --check`
//!
//! `--rounds 5` prints a table of median times instead of answers, beside one process with and without our
//! operators, which reads the same files with as many partitions.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ballista::prelude::{SessionConfigExt, SessionContextExt};
use bowstring_tpch::{Scale, query, register_parquet, write_parquet};
use clap::Parser;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};

/// Runs TPC-H queries on a Ballista cluster.
#[derive(Parser)]
struct Options {
    /// Host and port of the scheduler.
    #[arg(long, default_value = "localhost:50050")]
    scheduler: String,
    /// The folder of the tables, as every executor sees it.
    #[arg(long)]
    tables: PathBuf,
    /// First makes the tables there, at this scale factor.
    #[arg(long)]
    make: Option<Scale>,
    /// The number of a query, 1 to 22; may be given again.
    #[arg(long, required = true)]
    query: Vec<usize>,
    /// Fails unless the rows are those that DataFusion gives in this process, in any order.
    #[arg(long)]
    check: bool,
    /// Measures each query this many times, and prints a table in place of the answers.
    #[arg(long)]
    rounds: Option<usize>,
    /// The number of partitions of a stage.
    #[arg(long, default_value_t = 4)]
    partitions: usize,
    /// Reads every shuffle over the network, even if a file on this machine would do.
    #[arg(long)]
    remote_shuffle: bool,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let Some(scale) = options.make {
        write_parquet(&options.tables, scale, options.partitions)?;
    }
    let config = SessionConfig::new_with_ballista()
        .with_target_partitions(options.partitions)
        .with_ballista_shuffle_reader_force_remote_read(options.remote_shuffle)
        .with_ballista_shuffle_reader_remote_prefer_flight(options.remote_shuffle);
    let state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    let cluster = SessionContext::remote_with_state(&format!("df://{}", options.scheduler), state).await?;
    register_parquet(&cluster, &options.tables).await?;
    if let Some(rounds) = options.rounds {
        return measure(&cluster, &options, rounds).await;
    }
    for &number in &options.query {
        let sql = text(number)?;
        let begun = Instant::now();
        let answer = cluster.sql(sql).await?.collect().await?;
        println!("query {number} in {:.0?}:\n{}", begun.elapsed(), pretty_format_batches(&answer)?);
        if options.check {
            check(number, &answer, sql, &options.tables).await?;
        }
    }
    Ok(())
}

fn text(number: usize) -> Result<&'static str, String> {
    query(number).ok_or_else(|| format!("there is no query {number}"))
}

/// Prints the median times of queries on a cluster and in one process, after a round that does not count.
async fn measure(cluster: &SessionContext, options: &Options, rounds: usize) -> Result<(), Box<dyn Error>> {
    let config = || SessionConfig::new().with_target_partitions(options.partitions);
    let alone = SessionContext::new_with_config(config());
    let ours = bowstring_datafusion::session(config());
    ours.sql("SET bowstring.device = 'cpu'").await?.collect().await?;
    for context in [&alone, &ours] {
        register_parquet(context, &options.tables).await?;
    }
    let engines = [cluster, &alone, &ours];
    println!("| query | cluster | DataFusion, one process | with our operators, one process |");
    println!("| --- | ---: | ---: | ---: |");
    let mut sums = [0.0; 3];
    for &number in &options.query {
        let mut times = [const { vec![] }; 3];
        for round in 0..=rounds {
            for (context, times) in engines.iter().zip(&mut times) {
                let begun = Instant::now();
                context.sql(text(number)?).await?.collect().await?;
                if round > 0 {
                    times.push(begun.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        let medians = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        let [cluster, alone, ours] = medians;
        println!("| {number} | {cluster:.0} | {alone:.0} | {ours:.0} |");
        sums.iter_mut().zip(medians).for_each(|(sum, time)| *sum += time);
    }
    let [cluster, alone, ours] = sums;
    println!("| all | {cluster:.0} | {alone:.0} | {ours:.0} |");
    Ok(())
}

/// Rows are compared as text and in any order, since a query's own order may leave ties.
async fn check(
    number: usize,
    answer: &[RecordBatch],
    sql: &str,
    tables: &Path,
) -> Result<(), Box<dyn Error>> {
    let alone = SessionContext::new();
    register_parquet(&alone, tables).await?;
    let expected = alone.sql(sql).await?.collect().await?;
    if lines(answer)? != lines(&expected)? {
        return Err(format!("query {number}: DataFusion alone answers otherwise").into());
    }
    println!("query {number}: as DataFusion alone");
    Ok(())
}

fn lines(batches: &[RecordBatch]) -> Result<Vec<String>, Box<dyn Error>> {
    let table = pretty_format_batches(batches)?.to_string();
    let mut lines: Vec<_> = table.lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}
