//! Joins whose keys filter the rows of their right sides far below.

use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties as _, collect, displayable};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use rand::prelude::*;

use crate::devices::pooled;
use crate::support::*;

/// Rows of some keys, in two partitions of several batches. Some keys are null, or far from the others.
fn table(random: &mut StdRng, rows: usize, keys: i64) -> Arc<MemTable> {
    let mut column = |odd: f64| -> ArrayRef {
        let value = |random: &mut StdRng| match random.random::<f64>() {
            x if x < odd => None,
            x if x < 2.0 * odd => Some([i64::MIN, i64::MAX, -1, 1 << 40][random.random_range(0..4)]),
            _ => Some(random.random_range(0..keys)),
        };
        Arc::new((0..rows).map(|_| value(random)).collect::<Int64Array>())
    };
    let odd = [0.0, 0.05];
    let columns = [("a", column(odd[0])), ("b", column(odd[1])), ("x", column(odd[1]))];
    let all =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let batches: Vec<_> = (0..rows).step_by(50).map(|first| all.slice(first, 50.min(rows - first))).collect();
    let (one, other) = batches.split_at(batches.len() / 2);
    Arc::new(MemTable::try_new(all.schema(), vec![one.to_vec(), other.to_vec()]).unwrap())
}

/// Sessions with filters and of DataFusion alone, whose joins partition both sides, or share the left one.
async fn sessions(partitioned: bool) -> [SessionContext; 2] {
    let both = [on("cpu").await, on("off").await];
    for context in &both {
        context.sql("SET bowstring.always = false").await.unwrap().collect().await.unwrap();
        let most = if partitioned { 0 } else { 1 << 20 };
        for setting in ["hash_join_single_partition_threshold", "hash_join_single_partition_threshold_rows"] {
            let sql = format!("SET datafusion.optimizer.{setting} = {most}");
            context.sql(&sql).await.unwrap().collect().await.unwrap();
        }
    }
    both
}

fn register_all(contexts: &[SessionContext], seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for (name, rows, keys) in [("r", 40, 30), ("s", 300, 60), ("t", 900, 60)] {
        let table = table(&mut random, rows, keys);
        for context in contexts {
            context.deregister_table(name).unwrap();
            context.register_table(name, table.clone()).unwrap();
        }
    }
}

fn text(plan: &Arc<dyn ExecutionPlan>) -> String {
    displayable(plan.as_ref()).indent(false).to_string()
}

/// A random relation with columns `a`, `b` and `x`.
fn relation(random: &mut StdRng, depth: usize) -> String {
    let table = ["r", "s", "t"][random.random_range(0..3)];
    if depth == 0 {
        return match random.random_range(0..3) {
            0 => format!("(SELECT a, b, x FROM {table})"),
            1 => format!("(SELECT a, b, x FROM {table} WHERE x < {})", random.random_range(0..60)),
            _ => format!("(SELECT a, b, x + 1 AS x FROM {table} WHERE b > {})", random.random_range(0..60)),
        };
    }
    let (left, right) = (relation(random, depth - 1), relation(random, depth - 1));
    let key = ["l.a = q.a", "l.a = q.b", "l.b = q.a", "l.b = q.b", "l.a = q.a AND l.b = q.b"];
    let key = key[random.random_range(0..5)];
    let more = ["", " AND l.x < q.x"][random.random_range(0..2)];
    match random.random_range(0..12) {
        0..4 => {
            let columns = ["l.a, q.b, l.x", "q.a, l.b, q.x", "l.a, l.b, q.x"][random.random_range(0..3)];
            let kind = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][random.random_range(0..5)];
            format!("(SELECT {columns} FROM {left} AS l {kind} {right} AS q ON {key}{more})")
        }
        4 | 5 => {
            let not = ["", "NOT "][random.random_range(0..2)];
            format!(
                "(SELECT * FROM {left} AS l WHERE {not}EXISTS (SELECT 1 FROM {right} AS q WHERE {key}{more}))"
            )
        }
        6 => format!("(SELECT * FROM {left} AS l WHERE a NOT IN (SELECT b FROM {right} AS q))"),
        7 => format!(
            "(SELECT * FROM {left} AS l WHERE a IN (SELECT a FROM {right} AS q GROUP BY a HAVING count(*) > 2))"
        ),
        8 => format!("(SELECT a, max(b) AS b, sum(x) AS x FROM {left} AS l GROUP BY a)"),
        9 => format!("(SELECT * FROM {left} AS l UNION ALL SELECT b, a, x FROM {right} AS q)"),
        10 => format!("(SELECT * FROM {left} AS l ORDER BY a, b, x LIMIT {})", random.random_range(1..50)),
        _ => format!("(SELECT a, row_number() OVER (PARTITION BY b ORDER BY a, x) AS b, x FROM {left} AS l)"),
    }
}

/// Random plans of joins have DataFusion's rows.
#[tokio::test]
async fn no_row_is_missing() {
    let mut filtering = 0;
    for (seed, partitioned) in [(1, true), (2, false)] {
        let both = sessions(partitioned).await;
        register_all(&both, seed);
        let mut random = StdRng::seed_from_u64(seed);
        for case in 0..80 {
            let relation = relation(&mut random, 1 + case % 4);
            let sql = format!("SELECT count(*), sum(a % 1000), sum(b % 1000), sum(x % 1000) FROM {relation}");
            let [ours, theirs] = &both;
            // Joins of joins may have very many rows.
            let most = Duration::from_secs(10);
            let Ok(expected) = tokio::time::timeout(most, rows(theirs, &sql)).await else { continue };
            let made = tokio::time::timeout(most * 6, rows(ours, &sql)).await.expect("the query ends");
            assert_eq!(made, expected, "{sql}\n{}", text(&plan(ours, &sql).await));
            filtering += usize::from(text(&plan(ours, &sql).await).contains("KeyFilterExec: filter"));
        }
    }
    assert!(filtering > 30, "{filtering}");
}

/// A filter tells how many rows it may have: those of its input.
#[tokio::test]
async fn filters_have_the_statistics_of_their_inputs() {
    let [ours, _] = sessions(true).await;
    register_all(std::slice::from_ref(&ours), 3);
    let mut stack = vec![plan(&ours, NESTED).await];
    let mut filters = 0;
    while let Some(node) = stack.pop() {
        stack.extend(node.children().into_iter().cloned());
        if node.name() == "KeyFilterExec" {
            let rows = |plan: &dyn ExecutionPlan| {
                StatisticsContext::new().compute(plan, &StatisticsArgs::new()).unwrap().num_rows
            };
            assert_eq!(rows(node.as_ref()).get_value(), rows(node.children()[0].as_ref()).get_value());
            filters += usize::from(rows(node.as_ref()).get_value().is_some());
        }
    }
    assert!(filters > 1, "{filters}");
}

const NESTED: &str = "SELECT t.b, count(*) FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.a \
    WHERE r.x < 20 GROUP BY t.b";

/// Rows without a partner are dropped where they are read: below joins, groups and exchanges.
#[tokio::test]
async fn rows_are_dropped_where_they_are_read() {
    let [ours, theirs] = sessions(true).await;
    register_all(&[ours.clone(), theirs.clone()], 3);
    let both = [&ours, &theirs];
    let filters = |text: &str| text.matches("KeyFilterExec: filter").count();
    for (sql, at_least) in [
        (NESTED, 2),
        ("SELECT * FROM r JOIN (SELECT a, max(x) AS m FROM t GROUP BY a) AS g ON r.a = g.a WHERE r.x < 5", 1),
        (
            "SELECT * FROM r JOIN (SELECT * FROM s UNION ALL SELECT * FROM t) AS u ON r.a = u.b WHERE r.x < 5",
            1,
        ),
        ("SELECT t.* FROM t WHERE a IN (SELECT a FROM s GROUP BY a HAVING count(*) > 9)", 1),
    ] {
        same(both[0], both[1], sql).await;
        let plan = plan(both[0], sql).await;
        assert!(filters(&text(&plan)) >= at_least, "{}", text(&plan));
    }
    let explain = format!("EXPLAIN ANALYZE {NESTED}");
    let analyzed = answer(&ours, &explain).await.unwrap();
    let analyzed = pretty_format_batches(&analyzed).unwrap().to_string();
    let dropped = analyzed.lines().filter(|line| line.contains("KeyFilterExec: filter"));
    let dropped = dropped.filter(|line| counted(line, "output_rows=") < counted(line, "input_rows="));
    assert!(dropped.count() >= 2, "{analyzed}");
}

/// Rows that a limit, a window or a full join counts are not dropped, and null-aware joins ask for all rows.
#[tokio::test]
async fn rows_that_count_are_kept() {
    let [ours, _] = sessions(true).await;
    register_all(std::slice::from_ref(&ours), 4);
    for (below, sql) in [
        (
            "fetch=9",
            "SELECT * FROM r JOIN (SELECT * FROM t ORDER BY b LIMIT 9) AS u ON r.a = u.a WHERE r.x < 5",
        ),
        (
            "WindowAgg",
            "SELECT * FROM r JOIN (SELECT a, sum(b) OVER (ORDER BY b) AS n FROM t) AS u ON r.a = u.a WHERE r.x < 5",
        ),
    ] {
        let text = text(&plan(&ours, sql).await);
        let last = text.find("KeyFilterExec: filter").expect("a filter above");
        assert!(text.find(below).expect("the node") > last, "{text}");
        assert_eq!(text.matches("KeyFilterExec: filter").count(), 1, "{text}");
    }
    for sql in [
        "SELECT * FROM (SELECT * FROM r WHERE x < 5) AS r RIGHT JOIN t ON r.a = t.a",
        "SELECT * FROM (SELECT * FROM r WHERE x < 5) AS r FULL JOIN t ON r.a = t.a",
        "SELECT * FROM r WHERE x < 5 AND a NOT IN (SELECT a FROM t)",
        "SELECT * FROM (SELECT * FROM r WHERE x < 5) AS r JOIN t ON r.a IS NOT DISTINCT FROM t.a",
        "SELECT * FROM r JOIN t ON r.a = t.a",
    ] {
        let plan = plan(&ours, sql).await;
        assert!(!text(&plan).contains("KeyFilterExec"), "{sql}\n{}", text(&plan));
    }
    ours.sql("SET bowstring.key_filters = false").await.unwrap().collect().await.unwrap();
    assert!(!text(&plan(&ours, NESTED).await).contains("KeyFilterExec"));
}

/// A consumer may read one partition after the other, or only one, or leave before the end.
#[tokio::test]
async fn partitions_may_be_read_one_by_one() {
    let [ours, theirs] = sessions(true).await;
    register_all(&[ours.clone(), theirs.clone()], 5);
    let sql = "SELECT s.x, t.x FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.a WHERE r.x < 20";
    let mut expected = rows(&theirs, sql).await.unwrap();
    expected.sort();
    let plan = plan(&ours, sql).await;
    assert!(text(&plan).contains("KeyFilterExec: filter"));
    for order in [[0, 1], [1, 0]] {
        let (context, mut made) = (ours.task_ctx(), vec![]);
        let again = ours.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        assert_eq!(again.output_partitioning().partition_count(), 2);
        let streams = order.map(|partition| again.execute(partition, context.clone()).unwrap());
        for mut stream in streams {
            let all = async {
                while let Some(batch) = stream.next().await {
                    made.extend(texts(&batch.unwrap()));
                }
            };
            tokio::time::timeout(Duration::from_secs(60), all).await.expect("a partition ends by itself");
        }
        made.sort();
        assert_eq!(made, expected);
    }
    // One partition, once asked for its first batch, and never again.
    let context = ours.task_ctx();
    let (mut one, mut other) = (plan.execute(0, context.clone()).unwrap(), plan.execute(1, context).unwrap());
    let first = tokio::time::timeout(Duration::from_secs(60), one.next()).await;
    drop(one);
    let all = async { while other.next().await.is_some() {} };
    assert!(first.is_ok() && tokio::time::timeout(Duration::from_secs(60), all).await.is_ok());
}

/// A plan may run again, in the same context too, and at the same time, as far as DataFusion's plans may.
#[tokio::test]
async fn plans_run_again() {
    let sql = "SELECT s.x, t.x FROM r JOIN s ON r.a = s.a JOIN t ON s.b = t.a WHERE r.x < 20";
    for (partitioned, resets) in [(false, false), (false, true), (true, true)] {
        let [ours, theirs] = sessions(partitioned).await;
        register_all(&[ours.clone(), theirs.clone()], 6);
        let mut expected = rows(&theirs, sql).await.unwrap();
        expected.sort();
        let (mut plan, context) = (plan(&ours, sql).await, ours.task_ctx());
        assert!(text(&plan).contains("KeyFilterExec: filter"));
        for _ in 0..3 {
            let contexts = match resets {
                true => vec![context.clone()],
                false => vec![ours.task_ctx(), context.clone(), context.clone()],
            };
            let runs = contexts.into_iter().map(|context| collect(plan.clone(), context));
            for batches in futures::future::join_all(runs).await {
                let mut made: Vec<_> = batches.unwrap().iter().flat_map(texts).collect();
                made.sort();
                assert_eq!(made, expected);
            }
            if resets {
                plan = reset_plan_states(plan).unwrap();
            }
        }
        let recursive = "WITH RECURSIVE n AS (SELECT 1 AS a UNION ALL SELECT s.b + 1 FROM n JOIN s ON n.a = s.a \
            JOIN r ON s.b = r.a WHERE n.a < 30 AND r.x < 40 AND s.b < 50 AND s.b >= n.a) SELECT count(*) FROM n";
        assert_eq!(rows(&ours, recursive).await, rows(&theirs, recursive).await);
    }
}

/// Without memory for the keys, there are no filters; errors of the left side are the query's.
#[tokio::test]
async fn keys_take_memory_of_the_session() {
    let far = "SELECT count(*) FROM (SELECT DISTINCT a * 4000 + x AS a FROM s WHERE x < 50) AS d \
        JOIN (SELECT a * 4000 + b AS a, count(*) AS n FROM t GROUP BY 1) AS u ON d.a = u.a";
    let failing = "SELECT count(*) FROM (SELECT a, 1 / (x - 7) AS y FROM s WHERE 1 / (x - 7) < 5) AS d \
        JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) AS u ON d.a = u.a";
    let [_, theirs] = sessions(true).await;
    for bytes in [20_000, 60_000, 200_000, 1 << 24] {
        let ours = pooled(Arc::new(GreedyMemoryPool::new(bytes)), "cpu").await;
        ours.sql("SET datafusion.execution.target_partitions = 2").await.unwrap();
        register_all(&[ours.clone(), theirs.clone()], 7);
        let most = Duration::from_secs(60);
        for sql in [far, failing, NESTED] {
            let made = tokio::time::timeout(most, rows(&ours, sql)).await.expect("it ends");
            match made {
                Err(class) if class == "resources" => assert!(bytes < 1 << 24, "{sql}"),
                made => {
                    let (mut made, mut expected) = (made, rows(&theirs, sql).await);
                    made.iter_mut().chain(&mut expected).for_each(|rows| rows.sort());
                    assert_eq!(made, expected, "{sql}");
                }
            }
        }
    }
}
