//! Files of queries with their answers, in the format of sqllogictest: `statement ok`, `query` with rows
//! after `----`, and `query error` with the class of the error. Each runs without our operators, on the CPU
//! and on the emulator. `BOWSTRING_BLESS=1` records the answers of DataFusion alone.
//!
//! `their_files` runs DataFusion's own files with and without our operators. `BOWSTRING_SLT` is the folder
//! `test_files` of the crate datafusion-sqllogictest:
//! `cargo test --release -p bowstring-datafusion --test it -- --ignored slt`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::prelude::SessionContext;

use crate::support::*;

/// One record of a file.
struct Record {
    head: String,
    sql: String,
    right: Vec<String>,
}

fn records(text: &str) -> Vec<Record> {
    let parts = text.split("\n\n").map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let comment = |line: &&str| !line.starts_with('#');
            let mut lines = part.lines().filter(comment);
            let head = lines.next().unwrap_or_default().to_owned();
            let rest: Vec<&str> = lines.collect();
            let at = rest.iter().position(|line| *line == "----").unwrap_or(rest.len());
            let right =
                rest.get(at + 1..).unwrap_or_default().iter().map(|line| (*line).to_owned()).collect();
            Record { head, sql: rest[..at].join("\n"), right }
        })
        .collect()
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slt");
    let mut files: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

async fn said(context: &SessionContext, record: &Record) -> Vec<String> {
    match rows(context, &record.sql).await {
        Ok(rows) => rows,
        Err(class) => vec![format!("error: {class}")],
    }
}

async fn check(device: &str) {
    let mut taken = 0;
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let context = on(device).await;
        for record in records(&text) {
            let what = format!("{}: {}", file.display(), record.sql);
            match record.head.as_str() {
                "statement ok" => drop(answer(&context, &record.sql).await.expect(&what)),
                "query" => {
                    assert_eq!(said(&context, &record).await, record.right, "{device}, {what}");
                    // Planning may refuse some queries.
                    if record.right.iter().all(|row| !row.starts_with("error")) {
                        taken += ours(&plan(&context, &record.sql).await);
                    }
                }
                "" => {}
                other => panic!("{what}: {other}"),
            }
        }
    }
    assert!(device == "off" && taken == 0 || taken > 40, "{device}: {taken}");
}

async fn bless() {
    for file in files() {
        let text = std::fs::read_to_string(&file).unwrap();
        let context = on("off").await;
        let mut made = String::new();
        for (part, record) in text.split("\n\n").zip(records(&text)) {
            let kept = part.trim().split("\n----").next().unwrap_or_default();
            writeln!(made, "{kept}").unwrap();
            match record.head.as_str() {
                "query" => {
                    writeln!(made, "----").unwrap();
                    said(&context, &record).await.iter().for_each(|row| writeln!(made, "{row}").unwrap());
                }
                _ if record.sql.is_empty() => {}
                _ => drop(answer(&context, &record.sql).await.unwrap()),
            }
            made.push('\n');
        }
        std::fs::write(&file, format!("{}\n", made.trim_end())).unwrap();
    }
}

#[tokio::test]
async fn files_are_what_datafusion_says() {
    if std::env::var("BOWSTRING_BLESS").is_ok_and(|value| value == "1") {
        bless().await;
    }
    check("off").await;
}

#[tokio::test]
async fn files_on_the_cpu() {
    check("cpu").await;
}

#[tokio::test]
async fn files_on_the_emulator() {
    check("emulator").await;
}

/// The statements and queries of a file of DataFusion's, without their answers.
fn their_records(text: &str) -> Vec<String> {
    let mut all = vec![];
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let is_record = line.starts_with("statement") || line.starts_with("query");
        if is_record {
            let sql = lines.by_ref().take_while(|line| !line.is_empty() && *line != "----");
            all.push(sql.collect::<Vec<_>>().join("\n"));
        }
    }
    all
}

fn their_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries {
        match entry.is_dir() {
            true => their_files(&entry, found),
            false if entry.extension().is_some_and(|end| end == "slt") => found.push(entry),
            false => {}
        }
    }
}

/// The answer to a query: rows in any order, or the error, or a panic.
async fn outcome(context: &SessionContext, sql: &str) -> Result<Vec<String>, String> {
    let (context, sql) = (context.clone(), sql.to_owned());
    let run = async move { rows(&context, &sql).await };
    match tokio::time::timeout(Duration::from_secs(60), tokio::spawn(run)).await {
        Ok(Ok(Ok(mut rows))) => {
            rows.sort();
            Ok(rows)
        }
        // Messages of the planner suggest other names each time.
        Ok(Ok(Err(class))) => Err(class.split('(').next().unwrap_or_default().to_owned()),
        Ok(Err(_)) => Err("panic".to_owned()),
        Err(_) => Err("more than a minute".to_owned()),
    }
}

/// Prints the answers that differ, and how many queries had an operator of ours.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "BOWSTRING_SLT names the folder with DataFusion's files"]
async fn their_files_with_and_without_our_operators() {
    let Ok(folder) = std::env::var("BOWSTRING_SLT") else { panic!("BOWSTRING_SLT names no folder") };
    let mut files = vec![];
    their_files(Path::new(&folder), &mut files);
    assert!(!files.is_empty(), "no files in {folder}");
    // Some of them write files.
    let scratch = std::env::temp_dir().join("bowstring-slt");
    std::fs::create_dir_all(&scratch).unwrap();
    std::env::set_current_dir(&scratch).unwrap();
    let (mut asked, mut taken, mut differ) = (0, 0, vec![]);
    for device in ["cpu", "emulator"] {
        for file in &files {
            let text = std::fs::read_to_string(file).unwrap();
            let (ours_, plain) = (on(device).await, on("off").await);
            for sql in their_records(&text) {
                // Plans and settings show what is ours, and files would be written twice.
                let start = sql.trim_start().to_lowercase();
                if ["explain", "show", "copy"].iter().any(|word| start.starts_with(word)) {
                    continue;
                }
                asked += 1;
                let (a, b) = (outcome(&ours_, &sql).await, outcome(&plain, &sql).await);
                let reads = start.starts_with("select") || start.starts_with("with");
                if reads
                    && let Ok(frame) = ours_.sql(&sql).await
                    && let Ok(plan) = frame.create_physical_plan().await
                {
                    taken += usize::from(ours(&plan) > 0);
                }
                // A query may have several right answers: DataFusion is asked again.
                if a != b && (!reads || outcome(&plain, &sql).await == b) {
                    differ.push(format!("{device}, {}:\n{sql}\n  {a:?}\n  {b:?}\n", file.display()));
                }
            }
        }
    }
    println!("{asked} statements, {taken} queries with our operators, {} answers differ", differ.len());
    differ.iter().for_each(|one| println!("{one}"));
    assert!(differ.is_empty(), "{} answers differ", differ.len());
}
