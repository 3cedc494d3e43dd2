//! Every kind of expression over odd values: conditions keep the rows, and expressions have the values, that
//! DataFusion gives.

use crate::support::*;

/// Conditions that our operators take whole.
const CONDITIONS: &[&str] = &[
    "i32 < 24",
    "24 > i32",
    "i64 = j64",
    "i64 IS DISTINCT FROM j64",
    "i64 IS NOT DISTINCT FROM j64",
    "u64 >= 5 AND u8 <> 3",
    "f64 < 0.0",
    "f64 <= 0.0",
    "f64 = 0.0",
    "f64 = -0.0",
    "f64 <> 0.0",
    "f64 > 0.0",
    "f64 >= -0.0",
    "0.0 >= f64",
    "-0.0 < f64",
    "f64 IS DISTINCT FROM 0.0",
    "f64 IS NOT DISTINCT FROM -0.0",
    "f64 < g64",
    "f64 = g64",
    "f64 >= g64",
    "f64 IS DISTINCT FROM g64",
    "f64 = arrow_cast('NaN', 'Float64')",
    "f64 > arrow_cast('inf', 'Float64')",
    "f64 BETWEEN -10.5 AND 10.5",
    "f32 < arrow_cast(0.0, 'Float32')",
    "d15 BETWEEN 0.05 AND 70.07",
    "d15 > d9",
    "d9 < 24",
    "d38 <> 0",
    "d15 * d9 > 100.00",
    "d15 + e15 > 3.5",
    "d15 - e15 < d9",
    "b AND c",
    "b OR NOT c",
    "b IS TRUE",
    "b IS NOT FALSE",
    "b IS UNKNOWN",
    "(b AND c) IS NULL",
    "b = c",
    "day >= DATE '1970-01-10' AND day < DATE '1970-02-01'",
    "at > TIMESTAMP '1970-01-01 00:00:00.000000010'",
    "i32 IN (1, 2, 3, NULL)",
    "i32 NOT IN (1, 2, 3)",
    "i32 NOT IN (1, NULL)",
    "i64 IN (1, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29)",
    "day IN (DATE '1970-01-02', DATE '1970-01-05')",
    "d9 IN (1.00, 2.50, -3)",
    "i32 + 5 > i16",
    "i64 * 3 - j64 < 100",
    "i64 / 3 = 2",
    "i64 % 7 = 2",
    "-i32 > 4",
    "-d15 < 0",
    "i32 IS NULL OR s IS NOT NULL",
    "s = 'ab'",
    "v >= 'a' AND v < 'b'",
    "v = w",
    "s IN ('a', 'ab', NULL)",
    "v NOT IN ('a', '%')",
    "v LIKE 'a%'",
    "v LIKE '%b%'",
    "v NOT LIKE '_'",
    "v LIKE 'a\\%b'",
    "v ILIKE 'AB%'",
    "k = 'ab'",
    "k <> 'zebra'",
    "substr(v, 1, 1) = 'a'",
    "substr(s, 2) IN ('b', '')",
    "substring(w from -1 for 4) < substr(v, 2)",
    "CAST(d15 AS DOUBLE) * 0.5 < CAST(i64 AS DOUBLE) / 3.0",
    "extract(year from day) = 1970",
    "date_part('month', day) > 1",
    "extract(day from at) = 1",
    "CASE WHEN i32 > 10 THEN i64 WHEN b THEN j64 ELSE 7 END > 20",
    "CASE i32 WHEN 1 THEN true WHEN 2 THEN b END",
    "coalesce(i32, 7) = 7",
    "nullif(i32, 5) IS NULL",
    "CAST(i32 AS BIGINT) = i64",
    "CAST(i32 AS DOUBLE) < 10.0",
    "TRY_CAST(i64 AS INT) > 10",
    "TRY_CAST(d15 AS INT) = 5",
    "true",
];

/// Expressions that the tests project.
const VALUES: &[&str] = &[
    "i32 + 1",
    "i8 + i8",
    "i64 * j64",
    "i64 - 9223372036854775807",
    "u64 + 1",
    "u8 - u8",
    "-i64",
    "-i8",
    "i64 % 10",
    "i64 / 10",
    "d15 * d9",
    "d15 * (1 - d9)",
    "d15 + e15",
    "d15 / 3",
    "d9 % 7",
    "-d38",
    "d9 / d9",
    "i64 / j64",
    "i64 % j64",
    "d38 + d38",
    "d38 * d15",
    "CASE WHEN b THEN i64 ELSE 0 END",
    "CASE WHEN b THEN f64 END",
    "CASE WHEN i32 < 5 THEN d15 WHEN i32 > 50 THEN d15 * 2 ELSE NULL END",
    "CASE i32 WHEN 1 THEN 10 WHEN 2 THEN 20 ELSE 30 END",
    "CASE WHEN j64 <> 0 THEN i64 / j64 END",
    "coalesce(i64, j64, 3)",
    "nullif(i64, 4)",
    "extract(year from day)",
    "extract(month from at)",
    "extract(hour from at)",
    "extract(second from at)",
    "i32 < 5",
    "f64 < g64",
    "v LIKE 'a%'",
    "s",
    "k",
    "CAST(i8 AS INT)",
    "CAST(i64 AS DECIMAL(20, 2))",
    "CAST(d15 AS DOUBLE)",
    "CAST(d15 AS BIGINT)",
    "CAST(i64 AS SMALLINT)",
    "TRY_CAST(i64 AS SMALLINT)",
    "TRY_CAST(f64 AS INT)",
    "substr(s, 1, 2)",
    "substr(v, 2)",
    "substr(w, -2, 6)",
    "substr(v, 9223372036854775807)",
    "substr(substr(v, 2), 1, 1)",
    "CAST(d15 AS DOUBLE) * 0.5",
    "CAST(i64 AS DOUBLE) / 3.0",
    "f64 + g64",
    "f64 / g64",
];

/// Aggregates that the tests compute.
const AGGREGATES: &[&str] = &[
    "bool_and(b)",
    "bool_or(i32 > 90) FILTER (WHERE c)",
    "count(*)",
    "count(i32)",
    "count(s)",
    "count(b)",
    "sum(i64)",
    "sum(i8)",
    "sum(u64)",
    "sum(d15)",
    "sum(d15 * d9)",
    "sum(d9) FILTER (WHERE b)",
    "count(*) FILTER (WHERE i32 > 5)",
    "avg(d15)",
    "avg(i32)",
    "min(i32)",
    "max(u64)",
    "min(f64)",
    "max(f64)",
    "min(f32)",
    "max(d38)",
    "min(day)",
    "max(at)",
    "sum(CASE WHEN v = 'ab' THEN d15 ELSE 0 END)",
    "sum(i64 + j64)",
    "max(s)",
    "count(DISTINCT i32)",
    "sum(i64 / j64)",
    "sum(d15) / 7.0 + count(*)",
    "100.00 * sum(d9) FILTER (WHERE b) / sum(d15)",
    "CASE WHEN count(*) > 5 THEN concat(max(i32), '!') END",
];

async fn tables(
    device: &str,
    seed: u64,
    tame: bool,
) -> (datafusion::prelude::SessionContext, datafusion::prelude::SessionContext) {
    let (ours, theirs) = (on(device).await, on("off").await);
    register(&[&ours, &theirs], "t", batches(seed, tame));
    (ours, theirs)
}

async fn check(device: &str, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        for tame in [false, true] {
            let (ours, theirs) = tables(device, seed, tame).await;
            for condition in CONDITIONS {
                let sql = format!("SELECT i32, i64, f64, d15, b, day, s, v, k FROM t WHERE {condition}");
                let taken = same(&ours, &theirs, &sql).await;
                // Exceptions: conditions that are always true, and strict casts of columns that DataFusion
                // computes for only some rows.
                assert!(taken || *condition == "true", "left alone: {sql}");
            }
            for value in VALUES {
                same(&ours, &theirs, &format!("SELECT {value} FROM t")).await;
                same(&ours, &theirs, &format!("SELECT {value}, i16 FROM t WHERE i32 > 3 OR b")).await;
            }
            // Text that is the same in all rows is an ordinary value.
            same(&ours, &theirs, "SELECT v, x'61', 'x', i32 FROM t WHERE i32 > 3").await;
            // A negative number of characters is an error, and one that a column has is DataFusion's.
            for value in ["substr(s, 1, -1)", "substr(v, i64)", "substr(v, 1, i32 % 3)", "substr(k, 1, 1)"] {
                same(&ours, &theirs, &format!("SELECT {value}, i16 FROM t WHERE i32 > 3 OR b")).await;
            }
            let groups =
                "SELECT substr(v, 1, 1) AS p, count(*), max(substr(s, 2)) FROM t WHERE i32 > 3 GROUP BY p";
            same(&ours, &theirs, groups).await;
            for one in AGGREGATES {
                same(&ours, &theirs, &format!("SELECT {one} FROM t")).await;
                same(
                    &ours,
                    &theirs,
                    &format!("SELECT {one} AS x, count(*) FROM t WHERE i32 < 50 AND f64 >= 0"),
                )
                .await;
                same(&ours, &theirs, &format!("SELECT {one} FROM t WHERE i32 > 1000 AND i32 < 1001")).await;
            }
        }
    }
}

#[tokio::test]
async fn expressions_mean_the_same_on_the_cpu() {
    check("cpu", 0..4).await;
}

#[tokio::test]
async fn expressions_mean_the_same_on_the_emulator() {
    check("emulator", 10..11).await;
}

/// Checks that supported expressions are taken over: comparing answers alone would pass if none ever were.
#[tokio::test]
async fn what_has_a_counterpart_is_taken_over() {
    let (ours_, _) = tables("cpu", 1, true).await;
    let taken = async |sql: String| ours(&plan(&ours_, &sql).await) > 0;
    let left = ["i64 / j64", "f64 + g64", "f64 / g64", "CASE WHEN j64 <> 0 THEN i64 / j64 END", "s", "k"];
    for value in VALUES.iter().filter(|value| !left.contains(value)) {
        assert!(taken(format!("SELECT {value} FROM t")).await, "{value}");
    }
    for one in ["f64 + g64", "CASE WHEN j64 <> 0 THEN i64 / j64 END"] {
        assert!(!taken(format!("SELECT {one} FROM t")).await, "{one}");
    }
    for one in AGGREGATES.iter().filter(|one| !["max(s)", "count(DISTINCT i32)"].contains(one)) {
        assert!(taken(format!("SELECT {one} FROM t WHERE i32 < 50")).await, "{one}");
    }
}

#[tokio::test]
async fn sums_of_floats_are_near() {
    let (ours, theirs) = tables("cpu", 3, true).await;
    for sql in ["SELECT sum(f64), avg(f64), avg(f32) FROM t", "SELECT sum(f64 * g64) FROM t WHERE i32 > 2"] {
        let numbers = async |context| -> Vec<f64> {
            let rows = rows(context, sql).await.unwrap();
            rows[0].split('|').map(|number| number.parse().unwrap()).collect()
        };
        for (a, b) in numbers(&ours).await.into_iter().zip(numbers(&theirs).await) {
            assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{sql}: {a} and {b}");
        }
    }
}

/// A division by zero is DataFusion's error of that name, not an overflow.
#[tokio::test]
async fn divisions_by_zero_have_their_name() {
    for device in ["cpu", "emulator"] {
        let (ours, theirs) = tables(device, 3, true).await;
        for sql in ["SELECT i64 / j64 FROM t WHERE i32 < 50", "SELECT sum(i64 % j64) FROM t"] {
            assert!(same(&ours, &theirs, sql).await, "{device}: {sql}");
            let error = answer(&ours, sql).await.unwrap_err();
            assert!(error.to_string().contains("Divide by zero"), "{device}: {error}");
        }
    }
}
