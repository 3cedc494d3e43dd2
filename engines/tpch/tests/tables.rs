//! Tests that the tables match the specification, in any number of parts.

use bowstring_tpch::{
    QUERIES, Scale, Table, in_memory, query, register_in_memory, register_parquet, write_parquet,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;

fn scale(factor: f64) -> Scale {
    Scale::new(factor).unwrap()
}

async fn rows(context: &SessionContext, table: Table) -> usize {
    context.table(table.name()).await.unwrap().count().await.unwrap()
}

#[tokio::test]
async fn tables_have_as_many_rows_as_the_specification_says() -> Result<()> {
    let context = SessionContext::new();
    register_in_memory(&context, scale(0.01), 3)?;
    for (table, expected) in [
        (Table::Customer, 1_500),
        (Table::Nation, 25),
        (Table::Orders, 15_000),
        (Table::Part, 2_000),
        (Table::Partsupp, 8_000),
        (Table::Region, 5),
        (Table::Supplier, 100),
    ] {
        assert_eq!(rows(&context, table).await, expected, "{table}");
    }
    let lines = rows(&context, Table::Lineitem).await;
    assert!((45_000..=75_000).contains(&lines), "1 to 7 lines an order, 4 of them usually, not {lines}");
    Ok(())
}

#[tokio::test]
async fn parts_are_runs_of_one_table() -> Result<()> {
    for table in Table::ALL {
        let collected = |parts: usize| -> Result<_> {
            let mut batches = vec![];
            for part in 0..table.parts(parts) {
                batches.extend(table.batches(scale(0.01), part, parts).collect::<Result<Vec<_>>>()?);
            }
            Ok(concat_batches(&table.schema(), &batches)?)
        };
        assert_eq!(collected(1)?, collected(3)?, "{table}");
    }
    Ok(())
}

#[tokio::test]
async fn files_hold_what_memory_does() -> Result<()> {
    let folder = tempfile::tempdir()?;
    write_parquet(folder.path(), scale(0.01), 2)?;
    let context = SessionContext::new();
    register_parquet(&context, folder.path()).await?;
    for table in Table::ALL {
        let written = context.table(table.name()).await?;
        let made = context.read_table(std::sync::Arc::new(in_memory(table, scale(0.01), 2)?))?;
        assert_eq!(written.schema().as_arrow().fields(), made.schema().as_arrow().fields(), "{table}");
        let (left, right) = (written.clone().except(made.clone())?, made.except(written)?);
        assert_eq!((left.count().await?, right.count().await?), (0, 0), "{table}");
    }
    Ok(())
}

#[test]
fn queries_and_scales_out_of_range_are_refused() {
    assert!(query(0).is_none() && query(23).is_none());
    assert_eq!(query(22), QUERIES.last().copied());
    for bad in ["0", "-1", "nan", "inf", "much", ""] {
        assert!(bad.parse::<Scale>().is_err(), "{bad}");
    }
}
