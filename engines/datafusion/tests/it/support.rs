//! Sessions with and without our operators, tables with every type and every odd value, and helpers that run
//! queries.

use std::sync::Arc;

use bowstring_datafusion::{DeviceExec, session};
use datafusion::arrow::array::*;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use rand::prelude::*;

/// A session on a device, with two partitions; our operators run wherever they can.
pub async fn on(device: &str) -> SessionContext {
    with_batches(device, 128).await
}

/// Like [`on`], with this many rows in a batch.
pub async fn with_batches(device: &str, rows: usize) -> SessionContext {
    let context = session(SessionConfig::new().with_target_partitions(2).with_batch_size(rows));
    for setting in [
        format!("SET bowstring.device = '{device}'"),
        "SET bowstring.always = true".to_owned(),
        "SET bowstring.upload_rows = 300".to_owned(),
        "SET bowstring.run_batches = 3".to_owned(),
    ] {
        context.sql(&setting).await.unwrap().collect().await.unwrap();
    }
    context
}

/// The rows of a query, each as text, or the class of the error.
pub async fn rows(context: &SessionContext, sql: &str) -> std::result::Result<Vec<String>, String> {
    match answer(context, sql).await {
        Ok(batches) => Ok(batches.iter().flat_map(texts).collect()),
        Err(error) => {
            println!("{error}");
            Err(class(&error))
        }
    }
}

/// The batches of a query.
pub async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
    context.sql(sql).await?.collect().await
}

/// The plan of a query.
pub async fn plan(context: &SessionContext, sql: &str) -> Arc<dyn ExecutionPlan> {
    context.sql(sql).await.unwrap().create_physical_plan().await.unwrap()
}

/// Runs a plan and returns its batches.
pub async fn run(context: &SessionContext, plan: Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    collect(plan, context.task_ctx()).await
}

/// The number of our operators in a plan.
pub fn ours(plan: &Arc<dyn ExecutionPlan>) -> usize {
    usize::from(plan.is::<DeviceExec>()) + plan.children().into_iter().map(ours).sum::<usize>()
}

/// Whether one of our operators in a plan has a step with this text.
pub fn ours_has(plan: &Arc<dyn ExecutionPlan>, step: &str) -> bool {
    let ours = plan.downcast_ref::<DeviceExec>().is_some_and(|ours| format!("{ours:?}").contains(step));
    ours || plan.children().into_iter().any(|child| ours_has(child, step))
}

/// The sum of a counter of all operators, in the text of `EXPLAIN ANALYZE`.
pub fn counted(text: &str, name: &str) -> u64 {
    let values = text.split(name).skip(1).map(|rest| rest.split([',', ']']).next().unwrap_or_default());
    values.map(|value| value.trim().parse::<u64>().unwrap_or(0)).sum()
}

/// The class of an error's root cause.
pub fn class(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ArrowError(..) => "arrow".to_owned(),
        DataFusionError::Execution(_) => "execution".to_owned(),
        DataFusionError::ResourcesExhausted(_) => "resources".to_owned(),
        other => format!("{other:?}"),
    }
}

/// The rows of a batch as text. Floats are shown by their bits, except that all NaNs are the same.
pub fn texts(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("null");
    let columns: Vec<ArrayRef> = batch.columns().to_vec();
    let formatters: Vec<ArrayFormatter<'_>> =
        columns.iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
    (0..batch.num_rows())
        .map(|row| formatters.iter().map(|one| one.value(row).to_string()).collect::<Vec<_>>().join("|"))
        .collect()
}

/// Checks that both sessions give the same rows, or fail in the same way; returns whether our operators took
/// part. Rows may come in any order, unless they are ordered by all columns: then no two can change places.
pub async fn same(ours_: &SessionContext, theirs: &SessionContext, sql: &str) -> bool {
    let (mut a, mut b) = (rows(ours_, sql).await, rows(theirs, sql).await);
    if !sql.contains("ORDER BY ALL") {
        a.iter_mut().chain(&mut b).for_each(|rows| rows.sort());
    }
    if a != b {
        for context in [ours_, theirs] {
            println!("{}", displayable(plan(context, sql).await.as_ref()).indent(true));
        }
    }
    assert_eq!(a, b, "{sql}");
    let Ok(plan) = ours_.sql(sql).await.unwrap().create_physical_plan().await else { return false };
    ours(&plan) > 0
}

/// The columns of the tests' table.
pub fn schema() -> SchemaRef {
    let fields = [
        ("i8", DataType::Int8),
        ("i16", DataType::Int16),
        ("i32", DataType::Int32),
        ("i64", DataType::Int64),
        ("j64", DataType::Int64),
        ("u8", DataType::UInt8),
        ("u32", DataType::UInt32),
        ("u64", DataType::UInt64),
        ("f32", DataType::Float32),
        ("f64", DataType::Float64),
        ("g64", DataType::Float64),
        ("d9", DataType::Decimal128(9, 2)),
        ("d15", DataType::Decimal128(15, 2)),
        ("e15", DataType::Decimal128(15, 4)),
        ("d38", DataType::Decimal128(38, 10)),
        ("b", DataType::Boolean),
        ("c", DataType::Boolean),
        ("day", DataType::Date32),
        ("at", DataType::Timestamp(TimeUnit::Nanosecond, None)),
        ("s", DataType::Utf8),
        ("v", DataType::Utf8View),
        ("w", DataType::Utf8View),
        ("k", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
    ];
    Arc::new(Schema::new(fields.map(|(name, data_type)| Field::new(name, data_type, true)).to_vec()))
}

fn column(data_type: &DataType, rows: usize, tame: bool, random: &mut StdRng) -> ArrayRef {
    let wide = random.random_bool(0.5) && !tame;
    let mut integer = |low: i64, high: i64| -> Option<i64> {
        if random.random_bool(0.1) {
            return None;
        }
        let odd = [low, high, 0, 1, -1.max(low)];
        match random.random_range(0..10) {
            0 if wide => Some(odd[random.random_range(0..odd.len())]),
            1 | 2 if wide => Some(random.random_range(low..=high)),
            _ => Some(random.random_range((-20i64).max(low)..=100.min(high))),
        }
    };
    macro_rules! integers {
        ($array:ident, $t:ty, $low:expr, $high:expr) => {
            Arc::new($array::from_iter(
                (0..rows).map(|_| integer($low as i64, $high as i64).map(|x| x as $t)),
            ))
        };
    }
    match data_type {
        DataType::Int8 => integers!(Int8Array, i8, i8::MIN, i8::MAX),
        DataType::Int16 => integers!(Int16Array, i16, i16::MIN, i16::MAX),
        DataType::Int32 => integers!(Int32Array, i32, i32::MIN, i32::MAX),
        DataType::Int64 => integers!(Int64Array, i64, i64::MIN, i64::MAX),
        DataType::UInt8 => integers!(UInt8Array, u8, 0, u8::MAX),
        DataType::UInt32 => integers!(UInt32Array, u32, 0, u32::MAX),
        DataType::UInt64 => integers!(UInt64Array, u64, 0, i64::MAX),
        DataType::Date32 => integers!(Date32Array, i32, -800_000, 3_000_000),
        DataType::Timestamp(..) => {
            integers!(
                TimestampNanosecondArray,
                i64,
                -1_000_000_000_000_000_000i64,
                1_000_000_000_000_000_000i64
            )
        }
        DataType::Boolean => {
            Arc::new(BooleanArray::from_iter((0..rows).map(|_| integer(-20, 100).map(|x| x % 2 == 0))))
        }
        DataType::Float32 | DataType::Float64 => {
            let odd =
                [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-320, f64::MAX, 1.0];
            let values = (0..rows).map(|_| match random.random_range(0..8) {
                0 => None,
                1 | 2 if !tame => Some(odd[random.random_range(0..odd.len())]),
                3 if !tame => Some(if random.random_bool(0.5) { 0.0 } else { -0.0 }),
                _ => Some(f64::from(random.random_range(-400..400)) / 4.0),
            });
            let values: ArrayRef = Arc::new(Float64Array::from_iter(values));
            cast(&values, data_type).unwrap()
        }
        DataType::Decimal128(precision, scale) => {
            let most = 10i128.pow((*precision).into()) - 1;
            let values = (0..rows).map(|_| match random.random_range(0..12) {
                0 => None,
                1 if wide => Some(most),
                2 if wide => Some(-most),
                3 if wide => Some(random.random_range(-most..=most)),
                _ => Some(random.random_range(-20_000..20_000)),
            });
            let values = Decimal128Array::from_iter(values);
            Arc::new(values.with_precision_and_scale(*precision, *scale).unwrap())
        }
        _ => {
            let words = [
                "",
                "a",
                "ab",
                "Abc",
                "%",
                "a%b",
                "_",
                "zebra and a long tail that is no longer inline",
                "é",
            ];
            let values = (0..rows)
                .map(|_| (!random.random_bool(0.1)).then(|| words[random.random_range(0..words.len())]));
            let values: ArrayRef = Arc::new(StringArray::from_iter(values));
            cast(&values, data_type).unwrap()
        }
    }
}

/// Batches of random rows, some of them slices, some empty. Tame values overflow nothing.
pub fn batches(seed: u64, tame: bool) -> Vec<RecordBatch> {
    let random = &mut StdRng::seed_from_u64(seed);
    let schema = schema();
    let sizes = [0, 1, 63, 64, 65, 130, 200, 511];
    let count = random.random_range(1..6);
    (0..count)
        .map(|_| {
            let (rows, before) = (sizes[random.random_range(0..sizes.len())], random.random_range(0..9));
            let fields = schema.fields().iter();
            let columns =
                fields.map(|field| column(field.data_type(), rows + before, tame, random)).collect();
            RecordBatch::try_new(schema.clone(), columns).unwrap().slice(before, rows)
        })
        .collect()
}

/// Registers the same table in each session.
pub fn register(contexts: &[&SessionContext], name: &str, batches: Vec<RecordBatch>) {
    let schema = batches.first().map_or_else(schema, RecordBatch::schema);
    let middle = batches.len() / 2;
    let partitions = vec![batches[..middle].to_vec(), batches[middle..].to_vec()];
    for context in contexts {
        let table = MemTable::try_new(schema.clone(), partitions.clone()).unwrap();
        context.deregister_table(name).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
}
