//! A Parquet file as strangers write them: encoded text, times with a zone, nested columns, decimals and
//! nulls, in several row groups.

use crate::answer;
use datafusion::arrow::array::{
    ArrayRef, Decimal128Array, DictionaryArray, Float64Array, Int32Array, Int64Array, ListBuilder,
    RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::file::properties::WriterProperties;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const ROWS: i64 = 2000;
/// Half an hour before Berlin's clocks go forward, in microseconds.
const START: i64 = 1_711_845_000_000_000;

/// A value for each row, but null for one of so many.
fn column<T>(nulls: i64, value: impl Fn(i64) -> T) -> impl Iterator<Item = Option<T>> {
    (0..ROWS).map(move |row| (row % nulls != 0).then(|| value(row)))
}

fn tags() -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for tags in column(13, |row| (0..row % 4).map(|tag| Some(format!("tag {tag}")))) {
        lists.append_option(tags);
    }
    Arc::new(lists.finish())
}

fn places() -> ArrayRef {
    let fields = vec![Field::new("city", DataType::Utf8, true), Field::new("x", DataType::Float64, true)];
    let city = StringArray::from_iter(column(3, |row| format!("city {}", row % 9)));
    let x = Float64Array::from_iter(column(29, |row| row as f64 / 8.0));
    let known: Vec<bool> = (0..ROWS).map(|row| row % 19 != 0).collect();
    Arc::new(StructArray::new(
        fields.into(),
        vec![Arc::new(city), Arc::new(x)],
        Some(NullBuffer::from(known)),
    ))
}

fn rows() -> RecordBatch {
    let label: DictionaryArray<Int32Type> =
        column(5, |row| ["red", "green", "blue"][row as usize % 3]).collect();
    let at = TimestampMicrosecondArray::from_iter(column(17, |row| START + row * 37_000_000));
    let local = TimestampMillisecondArray::from_iter_values((0..ROWS).map(|row| START / 1000 + row * 61_000));
    let price = Decimal128Array::from_iter(column(7, |row| i128::from(row * 31)));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("k", Arc::new(Int32Array::from_iter(column(11, |row| (row * 7 % 13) as i32)))),
        ("label", Arc::new(label)),
        ("at", Arc::new(at.with_timezone("Europe/Berlin"))),
        ("local", Arc::new(local)),
        ("price", Arc::new(price.with_precision_and_scale(12, 2).unwrap())),
        ("tags", tags()),
        ("place", places()),
        ("name", Arc::new(StringArray::from_iter(column(23, |row| format!("name {} of a row", row % 100))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(path: &Path) {
    let rows = rows();
    let groups = WriterProperties::builder().set_max_row_group_row_count(Some(500)).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), rows.schema(), Some(groups)).unwrap();
    writer.write(&rows).unwrap();
    assert_eq!(writer.close().unwrap().num_row_groups(), 4);
}

/// Each query has steps that operators of ours do everywhere, and those that they do on a device besides.
const QUERIES: [(&str, &[&str], &[&str]); 12] = [
    (
        "SELECT count(*), sum(price) AS s, min(at) AS a, max(at) AS z FROM t WHERE k > 3 AND price < 500",
        &["filter=[k@0 > 3 AND price@2 < 500.00], aggregate=[count("],
        &[],
    ),
    (
        "SELECT * FROM t WHERE k = 5 AND id > 600",
        &["project=[id@0, k@1, label@2, at@3, local@4, price@5, tags@6, place@7, name@8]"],
        &[],
    ),
    (
        "SELECT k, count(*) AS n, sum(price) AS s, max(at) AS z FROM t WHERE id % 3 <> 1 GROUP BY k",
        &["group=[k@0]", "filter=[id@0 % 3 != 1]"],
        &[],
    ),
    // Encoded text may be in a condition, but is no key.
    ("SELECT count(*) AS n, sum(k) AS s FROM t WHERE label = 'red'", &["filter=[label@1 = red]"], &[]),
    (
        "SELECT label, count(*) AS n, sum(price) AS s FROM t WHERE k < 9 GROUP BY label",
        &["filter=[k@0 < 9], project=[label@1, price@2]"],
        &[],
    ),
    (
        "SELECT label, name FROM t WHERE name LIKE '%7 of%' AND k = 2",
        &["filter=[k@0 = 2 AND name@2 LIKE %7 of%]"],
        &[],
    ),
    (
        "SELECT a.id, a.at, b.price, a.label, b.tags, b.place FROM t AS a JOIN t AS b ON a.id = b.id + 700 \
         WHERE b.k = 3 AND a.k > 1",
        &["filter=[k@1 = 3]", "filter=[k@1 > 1]"],
        &["join=Inner"],
    ),
    (
        "SELECT id, at, label, tags FROM t WHERE price > 10 ORDER BY at DESC NULLS LAST, id LIMIT 9",
        &["filter=[price@3 > 10.00]"],
        &["top=9"],
    ),
    (
        "SELECT place['city'] AS c, sum(place['x']) AS s, count(tags) AS n FROM t WHERE k < 3 GROUP BY 1",
        &["group=[", "filter=[k@2 < 3]"],
        &[],
    ),
    (
        "SELECT tag, count(*) AS n FROM (SELECT unnest(tags) AS tag FROM t WHERE k = 4) GROUP BY tag",
        &["filter=[k@0 = 4], project=[tags@1]", "group=[tag@0]"],
        &[],
    ),
    // Hours are those of the zone.
    (
        "SELECT date_part('hour', at) AS h, count(*) AS n FROM t WHERE k <> 4 GROUP BY 1",
        &["filter=[k@0 != 4], project=[at@1]"],
        &[],
    ),
    (
        "SELECT id, sum(price) OVER (PARTITION BY k ORDER BY id) AS s, label FROM t WHERE id < 300 AND k > 2",
        &["filter=[id@0 < 300 AND k@1 > 2]"],
        &["sort=[k@1 ASC", "window=[sum(t.price)"],
    ),
];

#[test]
fn files_of_strangers_have_the_same_answers() {
    let home = tempfile::tempdir().unwrap();
    write(&home.path().join("t.parquet"));
    let asked = |device: &str, form: &[&str], query: &str| {
        let table = ["--table", "t=t.parquet", "--partitions", "2"];
        let small = ["--set", "bowstring.device_min_rows=0", "--device", device];
        answer(home.path(), &[&table[..], &small[..], form, &[query]].concat(), "")
    };
    let types = "SELECT arrow_typeof(label) AS l, arrow_typeof(at) AS a FROM t LIMIT 1";
    let right = "{\"l\":\"Dictionary(Int32, Utf8)\",\"a\":\"Timestamp(µs, \\\"Europe/Berlin\\\")\"}\n";
    assert_eq!(asked("off", &["--format", "json"], types), right);
    for (query, everywhere, on_device) in QUERIES {
        let sorted = |device: &str| {
            let rows = asked(device, &["--format", "json"], query);
            let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
            rows.sort();
            rows
        };
        let right = sorted("off");
        assert!(!right.is_empty(), "{query}");
        let none: &[&str] = &[];
        for (device, besides) in [("cpu", none), ("emulator", on_device)] {
            assert_eq!(sorted(device), right, "{device}: {query}");
            let plan = asked(device, &["--explain"], query);
            for step in everywhere.iter().chain(besides) {
                let ours = |line: &str| line.contains("DeviceExec") && line.contains(step);
                assert!(plan.lines().any(ours), "{step} on {device}:\n{plan}");
            }
        }
    }
}
