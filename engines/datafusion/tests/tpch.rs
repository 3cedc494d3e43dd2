//! All 22 queries of TPC-H with our operators, against DataFusion alone: equal answers, bit for bit where
//! they are floats, and our operators in the plans that should have them.
//!
//! The scale is 0.1 on the CPU and 0.01 on the emulator. `BOWSTRING_TPCH_SCALE=1` runs the tests on the CPU
//! at scale 1. `tpch/tests/queries.rs` tests whether DataFusion's answers are right.

use bowstring_tpch::{QUERIES, Scale, Table, in_memory, register_parquet, write_parquet};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use std::sync::Arc;
use tempfile::TempDir;

/// Two partitions on any machine, so that plans are the same everywhere.
const PARTITIONS: usize = 2;

/// The columns by which each query sorts its answer; rows that are equal in these may come in any order.
const SORTED_BY: [&[usize]; 22] = [
    &[0, 1],
    &[0, 2, 1, 3],
    &[1, 2],
    &[0],
    &[1],
    &[],
    &[0, 1, 2],
    &[0],
    &[0, 1],
    &[2],
    &[1],
    &[0],
    &[1, 0],
    &[],
    &[0],
    &[3, 0, 1, 2],
    &[],
    &[4, 3],
    &[],
    &[0],
    &[1, 0],
    &[0],
];

/// Queries whose plans contain our operators on every device and from every source: those that mostly filter
/// and sum. For the other queries the cost rule decides.
const OURS: &[usize] = &[1, 6, 11, 14, 15, 17, 19, 22];

fn scale_on_the_cpu() -> Scale {
    match std::env::var("BOWSTRING_TPCH_SCALE") {
        Ok(text) => text.parse().unwrap(),
        Err(_) => Scale::new(0.1).unwrap(),
    }
}

fn config() -> SessionConfig {
    SessionConfig::new().with_target_partitions(PARTITIONS)
}

fn ours(device: &str) -> SessionContext {
    let context = bowstring_datafusion::session(config());
    set(&context, "bowstring.device", device);
    context
}

/// A session on the emulator that uses it for small tables too, with several uploads each.
fn emulated() -> SessionContext {
    let context = ours("emulator");
    set(&context, "bowstring.device_min_rows", "0");
    set(&context, "bowstring.upload_rows", "10000");
    context
}

fn set(context: &SessionContext, key: &str, value: &str) {
    context.state_ref().write().config_mut().options_mut().set(key, value).unwrap();
}

/// One answer, rows as text: the text of every type gives its value exactly, floats in the shortest form that
/// reads back.
struct Answer {
    types: String,
    rows: Vec<Vec<String>>,
    operators_of_ours: usize,
}

impl Answer {
    async fn of(context: &SessionContext, number: usize) -> Result<Self> {
        let plan = context.sql(QUERIES[number - 1]).await?.create_physical_plan().await?;
        let batches = collect(Arc::clone(&plan), context.task_ctx()).await?;
        let types = plan
            .schema()
            .fields()
            .iter()
            .map(|field| format!("{} {}, ", field.name(), field.data_type()))
            .collect();
        Ok(Self { types, rows: rows(&batches)?, operators_of_ours: operators_of_ours(plan.as_ref()) })
    }

    fn sorted(&self) -> Vec<&Vec<String>> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort();
        rows
    }

    fn keys(&self, number: usize) -> Vec<Vec<&String>> {
        self.rows
            .iter()
            .map(|row| SORTED_BY[number - 1].iter().map(|&column| &row[column]).collect())
            .collect()
    }

    fn assert_equals(&self, expected: &Answer, number: usize, on: &str) {
        assert_eq!(self.types, expected.types, "query {number} on {on}: types");
        assert_eq!(self.sorted(), expected.sorted(), "query {number} on {on}: rows");
        assert_eq!(self.keys(number), expected.keys(number), "query {number} on {on}: the order of rows");
    }
}

fn rows(batches: &[RecordBatch]) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = vec![];
    for batch in batches {
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()),
        );
    }
    Ok(rows)
}

fn operators_of_ours(plan: &dyn ExecutionPlan) -> usize {
    let below: usize = plan.children().into_iter().map(|child| operators_of_ours(child.as_ref())).sum();
    below + usize::from(plan.name() == "DeviceExec")
}

/// Runs all queries on both sessions, and returns how many operators of ours each plan has.
async fn compare(ours: &SessionContext, alone: &SessionContext, on: &str) -> Result<Vec<usize>> {
    let mut counts = vec![];
    for number in 1..=QUERIES.len() {
        let expected = Answer::of(alone, number).await?;
        assert_eq!(expected.operators_of_ours, 0);
        let answer = Answer::of(ours, number).await?;
        answer.assert_equals(&expected, number, on);
        counts.push(answer.operators_of_ours);
    }
    let plans = counts.iter().filter(|&&count| count > 0).count();
    println!("on {on}: ours in {plans} of {} plans; operators by query: {counts:?}", QUERIES.len());
    for &number in OURS {
        assert!(counts[number - 1] > 0, "query {number} on {on}: none of our operators in its plan");
    }
    Ok(counts)
}

/// Like [`compare`], with operators of ours in each plan: every query filters, groups or sorts.
async fn compare_all(ours: &SessionContext, alone: &SessionContext, on: &str) -> Result<()> {
    let counts = compare(ours, alone, on).await?;
    assert!(counts.iter().all(|&count| count > 0), "{on}: {counts:?}");
    Ok(())
}

fn register(contexts: &[&SessionContext], scale: Scale) -> Result<()> {
    for table in Table::ALL {
        let made = Arc::new(in_memory(table, scale, PARTITIONS)?);
        for context in contexts {
            context.register_table(table.name(), made.clone())?;
        }
    }
    Ok(())
}

/// Registers the tables as files, which are there as long as their folder.
async fn register_files(contexts: &[&SessionContext], scale: Scale) -> Result<TempDir> {
    let folder = tempfile::tempdir()?;
    write_parquet(folder.path(), scale, PARTITIONS)?;
    for context in contexts {
        register_parquet(context, folder.path()).await?;
    }
    Ok(folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_queries_from_memory_on_the_cpu() -> Result<()> {
    let (ours, alone) = (ours("cpu"), SessionContext::new_with_config(config()));
    register(&[&ours, &alone], scale_on_the_cpu())?;
    compare(&ours, &alone, "memory, cpu").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_queries_from_parquet_on_the_cpu() -> Result<()> {
    let (ours, alone) = (ours("cpu"), SessionContext::new_with_config(config()));
    let _files = register_files(&[&ours, &alone], scale_on_the_cpu()).await?;
    compare(&ours, &alone, "Parquet, cpu").await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_queries_from_memory_on_the_emulator() -> Result<()> {
    let (ours, alone) = (emulated(), SessionContext::new_with_config(config()));
    register(&[&ours, &alone], Scale::new(0.01)?)?;
    compare_all(&ours, &alone, "memory, emulator").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_queries_from_parquet_on_the_emulator() -> Result<()> {
    let (ours, alone) = (emulated(), SessionContext::new_with_config(config()));
    let _files = register_files(&[&ours, &alone], Scale::new(0.01)?).await?;
    compare_all(&ours, &alone, "Parquet, emulator").await
}

/// The names of DataFusion's operators that compute something, from the root down.
fn theirs(plan: &dyn ExecutionPlan, names: &mut Vec<String>) {
    let passes_on = ["DataSourceExec", "CoalescePartitionsExec", "DeviceExec"].contains(&plan.name());
    if !passes_on && !names.iter().any(|name| name == plan.name()) {
        names.push(plan.name().to_owned());
    }
    plan.children().into_iter().for_each(|child| theirs(child.as_ref(), names));
}

/// `plans.md` says which operators run on a device. `BOWSTRING_BLESS=1` writes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_table_of_plans_is_that_of_the_rule() -> Result<()> {
    let context = ours("emulator");
    // At scale 1, the default has the same effect.
    set(&context, "bowstring.device_min_rows", "1000");
    register(&[&context], Scale::new(0.01)?)?;
    let mut table = "# TPC-H's plans on a device\n\nThe operators of each query where every table is large \
        enough for a device, with two partitions. Scans, and nodes that only\nmerge partitions, are not listed. \
        `ScalarSubqueryExec` runs subqueries of one value, and passes its input's rows on.\n\
        `tests/tpch.rs` writes this table from the plans.\n\n| query | ours | DataFusion's |\n| --: | --: | --- |\n"
        .to_owned();
    for (number, query) in (1..).zip(QUERIES) {
        let plan = context.sql(query).await?.create_physical_plan().await?;
        let mut names = vec![];
        theirs(plan.as_ref(), &mut names);
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let ours = operators_of_ours(plan.as_ref());
        table += &format!("| {number} | {ours} | {} |\n", names.join(", "));
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/plans.md");
    if std::env::var_os("BOWSTRING_BLESS").is_some() {
        std::fs::write(path, &table)?;
    }
    assert_eq!(std::fs::read_to_string(path)?, table, "BOWSTRING_BLESS=1 writes plans.md");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_queries_while_it_is_off() -> Result<()> {
    let (ours, alone) = (ours("off"), SessionContext::new_with_config(config()));
    register(&[&ours, &alone], Scale::new(0.01)?)?;
    for number in 1..=QUERIES.len() {
        let answer = Answer::of(&ours, number).await?;
        answer.assert_equals(&Answer::of(&alone, number).await?, number, "off");
        assert_eq!(answer.operators_of_ours, 0, "query {number}");
    }
    Ok(())
}
