//! TPC-H's tables as Parquet files, and the answers of DataFusion alone.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use bowstring_tpch::{Scale, query, register_parquet, write_parquet};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use tokio::time::timeout;

/// The time limit for an answer or an error, whatever happens to the cluster.
const LIMIT: Duration = Duration::from_secs(90);

/// The folder with the tables, at scale factor 0.01 and four files a table, written once by each run of the
/// tests.
pub fn tables() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tpch-0.01");
        let scale = Scale::new(0.01).expect("a scale factor");
        write_parquet(&folder, scale, 4).expect("the tables are written");
        folder
    })
}

/// The text of one of the 22 queries.
pub fn tpch(number: usize) -> &'static str {
    query(number).expect("queries are numbered from 1 to 22")
}

/// The rows of a session's answer, as sorted text: a query's ORDER BY may leave ties.
pub async fn answer(session: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let collected = async { session.sql(sql).await?.collect().await };
    let batches = timeout(LIMIT, collected).await.expect("a query ends within its time")?;
    let mut rows = Vec::new();
    for batch in &batches {
        rows.extend(as_text(batch)?);
    }
    rows.sort();
    Ok(rows)
}

fn as_text(batch: &RecordBatch) -> Result<Vec<String>> {
    let options = FormatOptions::new().with_null("NULL");
    let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    let row = |at| columns.iter().map(|column| column.value(at).to_string()).collect::<Vec<_>>().join("|");
    Ok((0..batch.num_rows()).map(row).collect())
}

/// The answer of DataFusion alone, in one process and without our operators.
pub async fn alone(sql: &str) -> Result<Vec<String>> {
    let session = SessionContext::new();
    register_parquet(&session, tables()).await?;
    answer(&session, sql).await
}

/// Asserts that a cluster's client answers queries as DataFusion alone.
pub async fn agrees(client: &SessionContext, numbers: impl IntoIterator<Item = usize>) -> Result<()> {
    register_parquet(client, tables()).await?;
    for number in numbers {
        let (ours, theirs) = (answer(client, tpch(number)).await?, alone(tpch(number)).await?);
        assert!(
            ours == theirs,
            "query {number}: {} rows of us, {} of DataFusion\n{ours:#?}\n{theirs:#?}",
            ours.len(),
            theirs.len()
        );
    }
    Ok(())
}
