//! Times TPC-H's queries with DataFusion alone, with DataFusion again (the difference is noise), and with
//! bowstring on the CPU; from memory and from Parquet files; then with DuckDB and polars, on the same files
//! and on their own tables in memory. Rounds are interleaved, so that other load on the machine affects all
//! engines alike. The table shows medians.
//!
//! `cargo bench --bench tpch -- --scale 1 --rounds 9 --folder /tmp/tpch --python python3` makes tables,
//! writes `/tmp/tpch/times.csv`, prints a table, and has `plot.py` draw the picture.

#[path = "tpch/report.rs"]
mod report;

use bowstring_tpch::{QUERIES, Scale, Table, in_memory, register_parquet, write_parquet};
use clap::Parser;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use report::Time;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

#[derive(Parser)]
struct Arguments {
    #[arg(long, default_value = "1")]
    scale: Scale,
    /// Partitions of tables in memory, files of each table on disk, and threads of every engine.
    #[arg(long, default_value_t = 2)]
    partitions: usize,
    /// Measured rounds, after one unmeasured round.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Queries to run, as 1,6,14; all, if none are given.
    #[arg(long, value_delimiter = ',')]
    queries: Vec<usize>,
    /// The folder for files; files of an earlier run at the same scale are reused.
    #[arg(long, default_value = "target/tpch")]
    folder: PathBuf,
    /// A Python that has duckdb, polars and matplotlib; the columns and the picture for which it lacks one
    /// are left out, as they all are without a Python.
    #[arg(long)]
    python: Option<PathBuf>,
    /// Accepted and ignored, because cargo bench passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = Arguments::parse();
    if arguments.queries.is_empty() {
        arguments.queries = (1..=QUERIES.len()).collect();
    }
    if let Some(number) = arguments.queries.iter().find(|&&number| bowstring_tpch::query(number).is_none()) {
        return Err(DataFusionError::Configuration(format!("there is no query {number}")));
    }
    let data =
        arguments.folder.join(format!("scale-{}-files-{}", arguments.scale.factor(), arguments.partitions));
    if !data.join("complete").exists() {
        write_parquet(&data, arguments.scale, arguments.partitions)?;
        std::fs::write(data.join("complete"), "")?;
    }

    let mut times = vec![];
    let engines = [session(&arguments, "off")?, session(&arguments, "off")?, session(&arguments, "cpu")?];
    for (_, context) in &engines {
        register_parquet(context, &data).await?;
    }
    measure("parquet", &engines, &arguments, &mut times).await?;

    let engines = [session(&arguments, "off")?, session(&arguments, "off")?, session(&arguments, "cpu")?];
    for table in Table::ALL {
        let made = Arc::new(in_memory(table, arguments.scale, arguments.partitions)?);
        for (_, context) in &engines {
            context.register_table(table.name(), made.clone())?;
        }
    }
    measure("memory", &engines, &arguments, &mut times).await?;
    drop(engines); // the peers get the memory

    if let Some(python) = &arguments.python {
        times.extend(peers(python, &data, &arguments)?);
    }
    let csv = arguments.folder.join("times.csv");
    report::write_csv(&csv, &times)?;
    println!("{}", report::table(&times, &arguments.queries));
    if let Some(python) = &arguments.python {
        println!("{} has all times", csv.display());
        let picture = arguments.folder.join("times.svg");
        // The times are there without a picture of them.
        match output(Command::new(python).arg(script("plot.py")).arg(&csv).arg(&picture)) {
            Ok(_) => println!("{} is the picture", picture.display()),
            Err(error) => println!("{} was not drawn: {error}", picture.display()),
        }
    }
    Ok(())
}

/// An engine's name in the table, and its session.
type Engine = (&'static str, SessionContext);

fn session(arguments: &Arguments, device: &str) -> Result<Engine> {
    let config = SessionConfig::new().with_target_partitions(arguments.partitions);
    if device == "off" {
        return Ok(("datafusion", SessionContext::new_with_config(config)));
    }
    let context = bowstring_datafusion::session(config);
    context.state_ref().write().config_mut().options_mut().set("bowstring.device", device)?;
    Ok(("bowstring", context))
}

/// Each round runs each query on each engine once, and begins with another engine.
async fn measure(
    source: &str,
    engines: &[Engine],
    arguments: &Arguments,
    times: &mut Vec<Time>,
) -> Result<()> {
    let first = times.len();
    for &query in &arguments.queries {
        for (index, (name, _)) in engines.iter().enumerate() {
            let engine = if index == 1 { "again" } else { name };
            times.push(Time::new(source, query, engine));
        }
    }
    for round in 0..=arguments.rounds {
        for (at, &query) in arguments.queries.iter().enumerate() {
            for turn in 0..engines.len() {
                let index = (turn + round) % engines.len();
                let start = Instant::now();
                let (rows, ours) = run(&engines[index].1, QUERIES[query - 1]).await?;
                let elapsed = start.elapsed();
                let time = &mut times[first + at * engines.len() + index];
                (time.rows, time.ours) = (rows, ours);
                if round > 0 {
                    time.milliseconds.push(elapsed.as_secs_f64() * 1e3);
                }
            }
        }
        eprintln!("{source}: round {round} of {}", arguments.rounds);
    }
    Ok(())
}

/// Plans and runs a query; returns its number of rows, and the number of our operators.
async fn run(context: &SessionContext, text: &str) -> Result<(usize, usize)> {
    fn ours(plan: &dyn ExecutionPlan) -> usize {
        let below: usize = plan.children().into_iter().map(|child| ours(child.as_ref())).sum();
        below + usize::from(plan.name() == "DeviceExec")
    }
    let plan = context.sql(text).await?.create_physical_plan().await?;
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await?;
    Ok((batches.iter().map(|batch| batch.num_rows()).sum(), ours(plan.as_ref())))
}

/// DuckDB and polars time themselves in Python, and print lines of the same CSV.
fn peers(python: &Path, data: &Path, arguments: &Arguments) -> Result<Vec<Time>> {
    let numbers: Vec<_> = arguments.queries.iter().map(ToString::to_string).collect();
    let mut command = Command::new(python);
    command.arg(script("peers.py")).arg(data);
    command.args(["--rounds", &arguments.rounds.to_string(), "--threads", &arguments.partitions.to_string()]);
    command.args(["--queries", &numbers.join(",")]);
    report::read_csv(&output(&mut command)?)
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches").join(name)
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(DataFusionError::Execution(format!("{command:?} failed: {}", output.status)));
    }
    String::from_utf8(output.stdout).map_err(|error| DataFusionError::Execution(error.to_string()))
}
