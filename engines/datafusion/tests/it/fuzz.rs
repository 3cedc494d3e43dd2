//! Random conditions, projections and aggregates over random tables give the same with our operators as
//! without. `BOWSTRING_CASES` sets the number of cases; each failure message contains its seed.

use rand::prelude::*;

use crate::support::*;

/// The types of random expressions.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Truth,
    Int,
    Decimal,
    Float,
    Day,
    Text,
}

struct Queries {
    random: StdRng,
}

impl Queries {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.random_range(0..of.len())]
    }

    fn column(&mut self, kind: Kind) -> String {
        let of: &[&str] = match kind {
            Kind::Truth => &["b", "c"],
            Kind::Int => &["i8", "i16", "i32", "i64", "j64", "u8", "u32"],
            Kind::Decimal => &["d9", "d15", "e15", "d38"],
            Kind::Float => &["f32", "f64", "g64"],
            Kind::Day => &["day"],
            Kind::Text => &["s", "v", "w", "k"],
        };
        self.one(of).to_owned()
    }

    fn literal(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Truth => self.one(&["true", "false", "NULL"]).to_owned(),
            Kind::Int => self.one(&["0", "1", "-1", "24", "100", "NULL", "9223372036854775807"]).to_owned(),
            Kind::Decimal => self.one(&["0.05", "1.00", "-7.5", "24", "99999.99"]).to_owned(),
            Kind::Float => self
                .one(&["0.0", "-0.0", "CAST('NaN' AS DOUBLE)", "1.25", "CAST('-inf' AS DOUBLE)"])
                .to_owned(),
            Kind::Day => {
                self.one(&["DATE '1970-01-10'", "DATE '1969-12-20'", "DATE '2100-02-28'"]).to_owned()
            }
            Kind::Text => self.one(&["'ab'", "''", "'a%'", "'zebra'", "NULL"]).to_owned(),
        }
    }

    fn value(&mut self, kind: Kind, depth: u32) -> String {
        let pick = self.random.random_range(0..10);
        if depth == 0 || pick < 4 {
            return if pick == 0 { self.literal(kind) } else { self.column(kind) };
        }
        let next = depth - 1;
        match kind {
            Kind::Truth => self.truth(depth),
            Kind::Int if pick == 9 => {
                format!("CAST(extract(year from {}) AS BIGINT)", self.value(Kind::Day, next))
            }
            Kind::Int | Kind::Decimal if pick < 8 => {
                let op = self.one(&["+", "-", "*", "%", "/"]).to_owned();
                let divides = op == "%" || op == "/";
                let right = if divides && pick < 7 { "7".to_owned() } else { self.value(kind, next) };
                format!("({} {op} {right})", self.value(kind, next))
            }
            Kind::Text if pick < 7 => {
                let (start, count) = (self.random.random_range(-3..6), self.random.random_range(0..6));
                let text = self.one(&["s", "v", "w"]);
                match pick {
                    4 => format!("substr({text}, {start})"),
                    _ => format!("substr({text}, {start}, {count})"),
                }
            }
            Kind::Day => self.column(kind),
            _ => {
                let (condition, otherwise) = (self.truth(next), self.value(kind, next));
                let then = match kind {
                    // One side has to be text for the other to be a null.
                    Kind::Text => self.one(&["s", "v", "w"]).to_owned(),
                    _ => self.value(kind, next),
                };
                match self.random.random_range(0..3) {
                    0 => format!("CASE WHEN {condition} THEN {then} ELSE {otherwise} END"),
                    1 => format!("coalesce({then}, {otherwise})"),
                    _ => format!("CASE WHEN {condition} THEN {then} END"),
                }
            }
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        let next = depth.saturating_sub(1);
        if depth > 0 && self.random.random_bool(0.5) {
            let (a, b) = (self.truth(next), self.truth(next));
            return match self.random.random_range(0..6) {
                0 | 1 => format!("({a} AND {b})"),
                2 | 3 => format!("({a} OR {b})"),
                4 => format!("(NOT {a})"),
                _ => format!("({a} IS NOT TRUE)"),
            };
        }
        let kinds = [
            Kind::Truth,
            Kind::Int,
            Kind::Int,
            Kind::Decimal,
            Kind::Decimal,
            Kind::Float,
            Kind::Day,
            Kind::Text,
        ];
        let kind = kinds[self.random.random_range(0..kinds.len())];
        let a = self.value(kind, next);
        match self.random.random_range(0..8) {
            0 => format!("({a} IS NULL)"),
            1 if kind != Kind::Float => {
                let list: Vec<String> = (0..3).map(|_| self.literal(kind)).collect();
                let not = self.one(&["", "NOT "]);
                format!("({a} {not}IN ({}))", list.join(", "))
            }
            2 if kind != Kind::Text => {
                format!("({a} BETWEEN {} AND {})", self.literal(kind), self.literal(kind))
            }
            2 => format!(
                "({} LIKE {})",
                self.one(&["s", "v", "w"]),
                self.one(&["'a%'", "'%b'", "'_'", "'%e%r%'"])
            ),
            pick => {
                let ops = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];
                let b = if pick < 5 { self.literal(kind) } else { self.value(kind, next) };
                format!("({a} {} {b})", self.one(&ops))
            }
        }
    }

    /// A query that groups by one to three keys, some of them computed, or by sets of columns.
    fn groups(&mut self, condition: &str) -> String {
        let kinds = [Kind::Truth, Kind::Int, Kind::Decimal, Kind::Float, Kind::Day, Kind::Text];
        let sets = self.one(&["", "", "", "ROLLUP", "CUBE"]);
        let keys: Vec<String> = (0..self.random.random_range(1..4))
            .map(|_| {
                let kind = kinds[self.random.random_range(0..kinds.len())];
                let depth = self.random.random_range(0..2);
                if sets.is_empty() { self.value(kind, depth) } else { self.column(kind) }
            })
            .collect();
        let (integer, decimal) = (self.value(Kind::Int, 2), self.value(Kind::Decimal, 2));
        let (text, filter) = (self.column(Kind::Text), self.truth(1));
        let aggregates = [
            format!("sum({integer})"),
            format!("sum({decimal}) FILTER (WHERE {filter})"),
            format!("avg({decimal})"),
            format!("count({integer}), count(*)"),
            format!("min({decimal}), max({integer})"),
            format!("max({text}), count({text}) FILTER (WHERE {filter})"),
        ];
        let first = self.random.random_range(0..aggregates.len());
        let last = self.random.random_range(first..aggregates.len());
        let aggregates = aggregates[first..=last].join(", ");
        let columns: Vec<String> = keys.iter().enumerate().map(|(i, key)| format!("{key} AS k{i}")).collect();
        let numbers: Vec<String> = (1..=keys.len()).map(|number| number.to_string()).collect();
        let by = match sets {
            "" => numbers.join(", "),
            _ => format!("{sets} ({})", keys.join(", ")),
        };
        format!("SELECT {}, {aggregates} FROM t WHERE {condition} GROUP BY {by}", columns.join(", "))
    }

    /// A condition on the rows of `t`, half of the time with a subquery over `u`.
    fn condition(&mut self) -> String {
        let condition = self.truth(1);
        let key = self.one(&["i16", "i32", "i64", "u32", "day", "d9", "v", "f64"]);
        match self.random.random_range(0..8) {
            pick @ 0..2 => {
                let not = ["", "NOT "][pick];
                let more = self.one(&["", " AND r.i64 < t.j64 + 9", " AND (r.b OR t.c)"]);
                format!("{condition} OR {not}EXISTS (SELECT 1 FROM u AS r WHERE r.{key} = t.{key}{more})")
            }
            2 => {
                let nulls = self.one(&["IS NOT NULL", "IS NOT NULL AND r.b", "IS NULL OR r.b"]);
                format!("{condition} AND t.{key} NOT IN (SELECT r.{key} FROM u AS r WHERE r.{key} {nulls})")
            }
            3 => {
                let kinds = [Kind::Int, Kind::Decimal, Kind::Day, Kind::Text];
                let kind = kinds[self.random.random_range(0..kinds.len())];
                let (op, function) = (self.one(&["<=", "=", ">"]), self.one(&["min", "max"]));
                let (column, value, of_u) = (self.column(kind), self.value(kind, 1), self.truth(1));
                format!("{condition} OR {column} {op} (SELECT {function}({value}) FROM u WHERE {of_u})")
            }
            _ => condition,
        }
    }

    /// A relation with the columns of `t`: the table, some of its rows, a join with another one, whose
    /// columns are of either side, or a union.
    fn relation(&mut self, depth: u32) -> String {
        let pick = self.random.random_range(0..8);
        if depth == 0 || pick == 0 {
            return "t".to_owned();
        }
        let left = self.relation(depth - 1);
        if pick == 7 {
            let (right, condition) = (self.relation(depth - 1), self.condition());
            return format!(
                "(SELECT * FROM {left} AS t UNION ALL SELECT * FROM {right} AS t WHERE {condition})"
            );
        }
        if pick < 3 {
            return format!("(SELECT * FROM {left} AS t WHERE {})", self.condition());
        }
        let key = |key: &str| format!("l.{key} = r.{key}");
        let mut on = vec![key(self.one(&["i16", "i32", "i64", "u32", "day", "d9"]))];
        if self.random.random_bool(0.3) {
            on.push(key(self.one(&["b", "i8", "s", "v", "f64", "f32", "d15"])));
        }
        if self.random.random_bool(0.4) {
            let filters =
                ["l.i64 < r.j64 + 9", "l.d15 <> r.e15", "l.b OR r.c", "l.s < r.s", "l.f64 <= r.g64"];
            on.push(format!("({})", self.one(&filters)));
        }
        let one_side = ["LEFT SEMI", "LEFT ANTI", "RIGHT SEMI", "RIGHT ANTI"];
        let kinds = [&one_side[..], &["INNER", "INNER", "LEFT", "RIGHT", "FULL"]].concat();
        let kind = self.one(&kinds).to_owned();
        let names: Vec<String> = schema()
            .fields()
            .iter()
            .map(|field| {
                let side = match kind.split_once(' ') {
                    Some((side, _)) => side[..1].to_lowercase(),
                    None => self.one(&["l", "r"]).to_owned(),
                };
                format!("{side}.{}", field.name())
            })
            .collect();
        let (names, on) = (names.join(", "), on.join(" AND "));
        format!("(SELECT {names} FROM {left} AS l {kind} JOIN u AS r ON {on})")
    }

    /// A query with functions of windows over different rows, of which any order by all columns is total.
    fn windows(&mut self) -> String {
        let columns = ["i8", "i32", "j64", "d15", "f64", "day", "b", "v"];
        let mut order = columns.map(|column| {
            let direction = self.one(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            format!("{column}{direction}")
        });
        order.shuffle(&mut self.random);
        let parts =
            self.one(&["", "PARTITION BY i8", "PARTITION BY b, v", "PARTITION BY f64", "PARTITION BY d15"]);
        let ends =
            ["UNBOUNDED PRECEDING", "4 PRECEDING", "CURRENT ROW", "2 FOLLOWING", "UNBOUNDED FOLLOWING"];
        let start = self.random.random_range(0..4);
        let end = self.random.random_range(start.max(1)..5);
        let frame = format!("ROWS BETWEEN {} AND {}", ends[start], ends[end]);
        let functions: Vec<String> = (0..self.random.random_range(1..4))
            .map(|i| {
                let (kind, by) = (self.one(&["lag", "lead"]), self.random.random_range(0..5));
                let column = self.one(&columns);
                let (ranked, framed) =
                    (self.one(&["rank()", "dense_rank()", "count(v)", "sum(d15)"]), &frame);
                let over = |more: &str| format!("OVER ({parts} ORDER BY {}{more})", order.join(", "));
                let peers = format!("OVER ({parts} ORDER BY {})", order[0]);
                match self.random.random_range(0..6) {
                    0 => format!("row_number() {} AS x{i}", over("")),
                    1 => format!("{kind}({column}, {by}) {} AS x{i}", over("")),
                    2 => format!("{ranked} {peers} AS x{i}"),
                    3 => format!("first_value({column}) {} AS x{i}", over(&format!(" {framed}"))),
                    4 => format!("last_value({column}) {} AS x{i}", over(&format!(" {framed}"))),
                    _ => {
                        let value = self.one(&[
                            "sum(i32)",
                            "sum(d15)",
                            "avg(d15)",
                            "min(v)",
                            "max(day)",
                            "count(f64)",
                        ]);
                        format!("{value} {} AS x{i}", over(&format!(" {framed}")))
                    }
                }
            })
            .collect();
        let condition = self.truth(2);
        format!(
            "SELECT *, {} FROM (SELECT DISTINCT {} FROM t WHERE {condition})",
            functions.join(", "),
            columns.join(", ")
        )
    }

    /// A query over a relation, perhaps with the first rows of an order only.
    fn of_relation(&mut self) -> String {
        let relation = self.relation(2);
        if self.random.random_bool(0.2) {
            return self.windows();
        }
        let query = self.query().replacen("FROM t", &format!("FROM {relation} AS t"), 1);
        if query.contains("ORDER BY") || self.random.random_bool(0.6) {
            return query;
        }
        // Rows that are equal in all columns are the same rows.
        let limit = self.one(&["", " LIMIT 1", " LIMIT 17", " LIMIT 400"]);
        let offset = if limit.is_empty() { "" } else { self.one(&["", " OFFSET 1", " OFFSET 30"]) };
        format!("{query} ORDER BY ALL{limit}{offset}")
    }

    fn query(&mut self) -> String {
        let condition = self.truth(3);
        match self.random.random_range(0..7) {
            0 | 1 => format!("SELECT i32, d15, f64, b, day, v, s FROM t WHERE {condition}"),
            2 => {
                let (a, b) = (self.value(Kind::Int, 2), self.value(Kind::Decimal, 2));
                format!("SELECT {a}, {b}, {} FROM t WHERE {condition}", self.truth(2))
            }
            3 => {
                let kind = [Kind::Int, Kind::Decimal][self.random.random_range(0..2)];
                // The average of integers is a float, whose sum depends on the order.
                let functions: &[&str] = &["sum", "min", "max", "count", "avg"];
                let function = self.one(&functions[..if kind == Kind::Int { 4 } else { 5 }]).to_owned();
                let (value, other) = (self.value(kind, 2), self.column(Kind::Day));
                format!("SELECT {function}({value}), count(*), min({other}) FROM t WHERE {condition}")
            }
            4 | 5 => self.groups(&condition),
            _ => {
                let value = self.value(Kind::Int, 1);
                format!("SELECT k, count(*), min({value}) FROM t WHERE {condition} GROUP BY k ORDER BY k")
            }
        }
    }
}

fn cases(usual: u64) -> u64 {
    std::env::var("BOWSTRING_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

async fn compare(device: &str, cases: u64, first: u64, relations: bool) {
    let (ours, theirs) = (on(device).await, on("off").await);
    // Otherwise literals with a point are floats, and so is everything computed with them.
    for context in [&ours, &theirs] {
        answer(context, "SET datafusion.sql_parser.parse_float_as_decimal = true").await.unwrap();
    }
    let (mut taken, mut failed) = (0, 0);
    for seed in first..first + cases {
        register(&[&ours, &theirs], "t", batches(seed, seed % 3 == 0));
        register(&[&ours, &theirs], "u", batches(seed + 7, seed % 3 == 0));
        let mut queries = Queries { random: StdRng::seed_from_u64(seed) };
        for _ in 0..5 {
            let sql = if relations { queries.of_relation() } else { queries.query() };
            // A statement that the planner refuses is not a query.
            if theirs.sql(&sql).await.is_err() {
                continue;
            }
            println!("{seed}: {sql}");
            failed += u64::from(rows(&theirs, &sql).await.is_err());
            taken += u64::from(same(&ours, &theirs, &sql).await);
        }
    }
    // Most queries use our operators, and most do not fail; otherwise this test would compare nothing.
    assert!(taken > cases, "{taken} of {} were ours", cases * 5);
    assert!(failed < cases * 4, "{failed} of {} failed", cases * 5);
}

#[tokio::test]
async fn random_queries_on_the_cpu() {
    compare("cpu", cases(150), 0, false).await;
}

#[tokio::test]
async fn random_queries_on_the_emulator() {
    compare("emulator", cases(20), 1_000_000, false).await;
}

#[tokio::test]
async fn random_joins_on_the_cpu() {
    compare("cpu", cases(40), 2_000_000, true).await;
}

#[tokio::test]
async fn random_joins_on_the_emulator() {
    compare("emulator", cases(20), 3_000_000, true).await;
}
