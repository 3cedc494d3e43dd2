//! Writes the measurements as CSV and as a table.

use datafusion::error::{DataFusionError, Result};
use std::fmt::Write;
use std::path::Path;

/// The times of one query on one engine.
pub struct Time {
    /// The source of the tables: `memory` or `parquet`.
    pub source: String,
    pub query: usize,
    /// The engine: datafusion, again, bowstring, duckdb or polars.
    pub engine: String,
    /// The number of rows of the answer.
    pub rows: usize,
    /// The number of our operators in the plan.
    pub ours: usize,
    /// The time of each round.
    pub milliseconds: Vec<f64>,
}

impl Time {
    pub fn new(source: &str, query: usize, engine: &str) -> Self {
        Self { source: source.into(), query, engine: engine.into(), rows: 0, ours: 0, milliseconds: vec![] }
    }

    pub fn median(&self) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
        }
    }
}

const HEADER: &str = "source,query,engine,rows,ours,milliseconds of each round";

pub fn write_csv(path: &Path, times: &[Time]) -> Result<()> {
    let mut text = format!("{HEADER}\n");
    for time in times {
        let rounds = time.milliseconds.iter().map(|ms| format!("{ms:.3}")).collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            text,
            "{},{},{},{},{},{rounds}",
            time.source, time.query, time.engine, time.rows, time.ours
        );
    }
    Ok(std::fs::write(path, text)?)
}

/// Reads lines without the header.
pub fn read_csv(text: &str) -> Result<Vec<Time>> {
    text.lines()
        .map(|line| {
            let wrong = || DataFusionError::Execution(format!("not a line of times: {line}"));
            let fields: Vec<_> = line.split(',').collect();
            let [source, query, engine, rows, ours, rounds] = fields[..] else { return Err(wrong()) };
            Ok(Time {
                source: source.into(),
                query: query.parse().map_err(|_| wrong())?,
                engine: engine.into(),
                rows: rows.parse().map_err(|_| wrong())?,
                ours: ours.parse().map_err(|_| wrong())?,
                milliseconds: rounds
                    .split(' ')
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map_err(|_| wrong())?,
            })
        })
        .collect()
}

/// The queries whose total time is a separate goal: our operators take most of them.
const AIMS: [usize; 5] = [1, 6, 12, 14, 19];

/// One row for each query, then sums. A peer with another number of rows than DataFusion is marked.
pub fn table(times: &[Time], queries: &[usize]) -> String {
    let mut table = String::from(
        "| query | ours, memory | DataFusion | again | bowstring | × | DuckDB | polars \
         | ours, Parquet | DataFusion | again | bowstring | × | DuckDB | polars |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for &query in queries {
        let _ = writeln!(table, "| {query} | {} |", cells(times, &[query]).join(" | "));
    }
    let aims: Vec<_> = AIMS.into_iter().filter(|query| queries.contains(query)).collect();
    for (name, queries) in [("sum of 1, 6, 12, 14, 19", &aims[..]), ("sum of all", queries)] {
        let _ = writeln!(table, "| {name} | {} |", cells(times, queries).join(" | "));
    }
    table
}

fn cells(times: &[Time], queries: &[usize]) -> Vec<String> {
    let find = |source: &str, engine: &str| -> Option<Vec<&Time>> {
        let found = |&query: &usize| {
            times.iter().find(|time| time.source == source && time.engine == engine && time.query == query)
        };
        queries.iter().map(found).collect()
    };
    let sum = |source: &str, engine: &str| -> Option<f64> {
        find(source, engine).map(|found| found.iter().map(|time| time.median()).sum())
    };
    let shown = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.1}"));
    let mut cells = vec![];
    for source in ["memory", "parquet"] {
        let (alone, ours) = (sum(source, "datafusion"), sum(source, "bowstring"));
        let operators: usize = find(source, "bowstring").iter().flatten().map(|time| time.ours).sum();
        cells.push(operators.to_string());
        cells.extend([shown(alone), shown(sum(source, "again")), shown(ours)]);
        cells.push(alone.zip(ours).map_or("-".into(), |(alone, ours)| format!("{:.2}", alone / ours)));
        let rows =
            |engine| find(source, engine).map(|found| found.iter().map(|time| time.rows).collect::<Vec<_>>());
        for peer in ["duckdb", "polars"] {
            let same = rows(peer).is_none_or(|found| Some(found) == rows("datafusion"));
            cells.push(shown(sum(source, peer)) + if same { "" } else { " (other rows)" });
        }
    }
    cells
}
