//! Files of queries with their answers, in the format of sqllogictest: `statement ok`, `query` with rows
//! after `----`, and `query error` with the class of the error. Each runs without our operators, on the CPU
//! and on the emulator. `BOWSTRING_BLESS=1` records the answers of DataFusion alone.

use std::fmt::Write;
use std::path::{Path, PathBuf};

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

async fn said(context: &datafusion::prelude::SessionContext, record: &Record) -> Vec<String> {
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
