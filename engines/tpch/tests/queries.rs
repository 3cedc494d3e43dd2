//! Tests the queries and the tables together against the answers that TPC-H publishes.

use bowstring_tpch::{QUERIES, Scale, register_in_memory};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

/// The published answers at scale 1, one line each: the number of rows, and one column of the first row, to
/// the cent. Query 20 has only text.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes two gigabytes of tables: cargo test --release --workspace --test queries -- --ignored"]
async fn answers_are_those_that_are_published() -> Result<()> {
    let context = SessionContext::new();
    register_in_memory(&context, Scale::new(1.0)?, 2)?;
    const ROWS: [usize; 22] =
        [4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18314, 1, 57, 1, 186, 100, 7];
    let mut firsts = vec![];
    for (query, expected) in QUERIES.into_iter().zip(ROWS) {
        let batches = context.sql(query).await?.collect().await?;
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), expected, "{query}");
        firsts.push(batches.into_iter().find(|batch| batch.num_rows() > 0));
    }
    for (number, column, value) in [
        (1, 2, 37734107.00),
        (1, 3, 56586554400.73),
        (1, 6, 25.52),
        (2, 0, 9938.53),
        (3, 1, 406181.01),
        (4, 1, 10594.0),
        (5, 1, 55502041.17),
        (6, 0, 123141078.23),
        (7, 3, 54639732.73),
        (8, 1, 0.03),
        (9, 2, 27136900.18),
        (10, 2, 734235.25),
        (11, 1, 17538456.86),
        (12, 1, 6202.0),
        (13, 1, 50005.0),
        (14, 0, 16.38),
        (15, 4, 1772627.21),
        (16, 3, 28.0),
        (17, 0, 348406.05),
        (18, 4, 544089.09),
        (19, 0, 3083843.06),
        (21, 1, 20.0),
        (22, 2, 6737713.99),
    ] {
        let first = firsts[number - 1].as_ref().unwrap();
        let found: f64 = array_value_to_string(first.column(column), 0)?.parse().unwrap();
        assert!((found - value).abs() <= 0.00501, "query {number}: {found}, not {value}");
    }
    Ok(())
}
