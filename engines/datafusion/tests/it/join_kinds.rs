//! All kinds of joins that DataFusion plans, each by a query for which it chooses just that kind.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use datafusion::common::JoinType;
use datafusion::physical_plan::{ExecutionPlan, displayable};
use datafusion::prelude::SessionContext;

use crate::joins::partition;
use crate::spilled::spills;
use crate::support::*;

/// The keys of each query, to which a condition may be added.
const KEYS: &str = "l.k = r.k";

/// DataFusion puts the smaller table to the left, so that a query over the larger one has the mirrored kind.
const KINDS: [(JoinType, &str); 10] = [
    (JoinType::Inner, "SELECT l.n, r.n FROM few AS l JOIN many AS r ON l.k = r.k"),
    (JoinType::Left, "SELECT l.n, r.n FROM few AS l LEFT JOIN many AS r ON l.k = r.k"),
    (JoinType::Right, "SELECT l.n, r.n FROM many AS l LEFT JOIN few AS r ON l.k = r.k"),
    (JoinType::Full, "SELECT l.n, r.n FROM few AS l FULL JOIN many AS r ON l.k = r.k"),
    (JoinType::LeftSemi, "SELECT n FROM few AS l WHERE EXISTS (SELECT 1 FROM many AS r WHERE l.k = r.k)"),
    (JoinType::RightSemi, "SELECT n FROM many AS l WHERE EXISTS (SELECT 1 FROM few AS r WHERE l.k = r.k)"),
    (JoinType::LeftAnti, "SELECT n FROM few AS l WHERE NOT EXISTS (SELECT 1 FROM many AS r WHERE l.k = r.k)"),
    (
        JoinType::RightAnti,
        "SELECT n FROM many AS l WHERE NOT EXISTS (SELECT 1 FROM few AS r WHERE l.k = r.k)",
    ),
    (
        JoinType::LeftMark,
        "SELECT n FROM few AS l WHERE b OR EXISTS (SELECT 1 FROM many AS r WHERE l.k = r.k)",
    ),
    (
        JoinType::RightMark,
        "SELECT n FROM many AS l WHERE b OR NOT EXISTS (SELECT 1 FROM few AS r WHERE l.k = r.k)",
    ),
];

/// Each kind, by the keys alone and with a condition.
fn queries() -> impl Iterator<Item = (JoinType, bool, String)> {
    KINDS.into_iter().flat_map(|(kind, sql)| {
        let filtered = sql.replace(KEYS, &format!("{KEYS} AND l.n < r.n + 50"));
        [(kind, false, sql.to_owned()), (kind, true, filtered)]
    })
}

/// Rows with 120 / `step` keys, some of them null.
fn table(rows: i64, step: i64) -> RecordBatch {
    let numbers = 0..rows;
    let keys = numbers.clone().map(|n| (n % 7 != 3).then_some(n * step % 120));
    let truths = numbers.clone().map(|n| (n % 11 != 2).then_some(n % 5 == 0));
    let columns: [(&str, ArrayRef); 3] = [
        ("k", Arc::new(Int64Array::from_iter(keys))),
        ("b", Arc::new(BooleanArray::from_iter(truths))),
        ("n", Arc::new(Int64Array::from_iter_values(numbers))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// A session on a device and one without our operators, over the same tables. Rows of both have partners, and
/// rows of both have none.
async fn two(device: &str) -> [SessionContext; 2] {
    let both = [on(device).await, on("off").await];
    let sessions = both.each_ref();
    register(&sessions, "few", vec![table(60, 4)]);
    let many = table(600, 3);
    register(&sessions, "many", (0..6).map(|part| many.slice(part * 100, 100)).collect());
    both
}

/// Checks that an operator of ours is a join of this kind, with a condition or without.
fn check_plan(plan: &Arc<dyn ExecutionPlan>, kind: JoinType, filtered: bool) {
    let text = displayable(plan.as_ref()).indent(true).to_string();
    let mut joins = text.lines().filter(|line| line.contains(&format!("join={kind:?},")));
    assert!(joins.any(|line| line.contains(", filter=[") == filtered), "{kind}, {filtered}: {text}");
}

#[tokio::test]
async fn each_kind_is_planned_and_datafusions() {
    for device in ["cpu", "emulator"] {
        for shared in [true, false] {
            let [context, plain] = two(device).await;
            if !shared {
                partition(&context).await;
                partition(&plain).await;
            }
            for (kind, filtered, sql) in queries() {
                assert!(!rows(&plain, &sql).await.unwrap().is_empty(), "{sql}");
                same(&context, &plain, &sql).await;
                check_plan(&plan(&context, &sql).await, kind, filtered);
            }
        }
    }
}

/// Left rows that are too many are joined in parts, and each kind still knows which rows have partners.
#[tokio::test]
async fn each_kind_is_datafusions_in_parts() {
    let [context, plain] = two("emulator").await;
    answer(&context, "SET bowstring.device_bytes = 200").await.unwrap();
    for (kind, filtered, sql) in queries() {
        same(&context, &plain, &sql).await;
        check_plan(&plan(&context, &sql).await, kind, filtered);
        let text = rows(&context, &format!("EXPLAIN ANALYZE {sql}")).await.unwrap().join("\n");
        assert!(spills(&text), "{text}");
    }
}
