//! Groups of equal rows, and joins.

use std::sync::Arc;

use arrow_schema::Schema;
use bowstring::compute::{self, BoundQuery, JoinKind, JoinOptions, Query};
use bowstring::expr::{self, Aggregation as InnerAggregation, Expr as Inner, Options};
use bowstring::{DeviceArray, DeviceBatch};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::array::Array;
use crate::batch::RecordBatch;
use crate::device::{Stream, stream_for};
use crate::error::{detached, ours};
use crate::expr::{Aggregation, Expr};
use crate::expressions::{aggregations, options, predicate};
use crate::foreign::{Either, as_array, as_batch, either};
use crate::types::place_in;

/// Return the first of equal rows, in their order.
///
/// Nulls are equal to each other. Floats are equal if their bits are.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn unique<'py>(
    values: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, Stream>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = values.py();
    match either(values, "values")? {
        Either::Array(values) => {
            let on = stream_for(values.array.place(), stream)?;
            let distinct = detached(py, || compute::distinct(&values.array, &on).wait())?;
            Ok(Array::new(distinct, &values.field).into_pyobject(py)?.into_any())
        }
        Either::Batch(batch) => {
            let on = stream_for(batch.place(), stream)?;
            let distinct = detached(py, || compute::distinct(&batch.0, &on).wait())?;
            Ok(RecordBatch::new(distinct).into_pyobject(py)?.into_any())
        }
    }
}

/// Count how often each value of an array occurs.
///
/// Returns a batch of the columns `values`, the different values in the order of their first rows, and
/// `counts`. Nulls are counted as well. An extension type stays.
#[pyfunction]
#[pyo3(signature = (values, *, stream = None))]
pub fn value_counts(values: &Bound<'_, PyAny>, stream: Option<&Bound<'_, Stream>>) -> PyResult<RecordBatch> {
    let (py, values) = (values.py(), as_array(values, "values")?);
    let on = stream_for(values.array.place(), stream)?;
    let counted = detached(py, || {
        let counts = compute::value_counts(&values.array, &on).wait()?;
        let [of, count] = [0, 1].map(|i| counts.schema().field(i).clone());
        let schema = Schema::new(vec![of.with_metadata(values.field.metadata().clone()), count]);
        DeviceBatch::try_new(Arc::new(schema), counts.columns().to_vec(), counts.len())
    });
    counted.map(RecordBatch::new)
}

/// The rows of a batch in groups of equal keys, made by `RecordBatch.group_by`.
#[pyclass(frozen, module = "bowstring")]
pub struct GroupBy {
    batch: RecordBatch,
    keys: Query,
}

impl GroupBy {
    pub fn of(
        batch: &RecordBatch,
        keys: &Bound<'_, PyAny>,
        sets: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<GroupBy> {
        Ok(GroupBy { batch: batch.clone(), keys: by_keys(batch.0.schema(), keys, sets)? })
    }
}

/// The query of groups by keys, and by sets of them: "rollup", "cube", or a list of lists of keys.
pub(super) fn by_keys(
    schema: &Schema,
    keys: &Bound<'_, PyAny>,
    sets: Option<&Bound<'_, PyAny>>,
) -> PyResult<Query> {
    let query = Query::new().group_by(&group_keys(schema, keys)?);
    let Some(sets) = sets else { return Ok(query) };
    if let Ok(name) = sets.cast::<PyString>() {
        return match &*name.to_string_lossy() {
            "rollup" => Ok(query.rollup()),
            "cube" => Ok(query.cube()),
            other => Err(PyValueError::new_err(format!("sets: \"rollup\" or \"cube\", not {other:?}"))),
        };
    }
    let keys = ours(|| query.bind(schema, &Options::default()))?.schema();
    let set = |set: Bound<'_, PyAny>| -> PyResult<Vec<usize>> {
        listed(&set)?.iter().map(|key| place_in(&keys, &key, "sets")).collect()
    };
    Ok(query.grouping_sets(listed(sets)?.iter().map(set).collect::<PyResult<Vec<_>>>()?))
}

fn listed<'py>(sets: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    sets.cast::<PyList>().cloned().map_err(|_| {
        let problem = format!("sets: a list of lists of keys is needed, not {}", sets.get_type());
        PyTypeError::new_err(problem)
    })
}

/// Reads the keys of groups: names, numbers or expressions, or a list of these.
fn group_keys(schema: &Schema, keys: &Bound<'_, PyAny>) -> PyResult<Vec<Inner>> {
    let one = |key: &Bound<'_, PyAny>| match key.cast::<Expr>() {
        Ok(expr) => Ok(expr.get().0.clone()),
        Err(_) => Ok(expr::nth(place_in(schema, key, "keys")?)),
    };
    let keys = match keys.cast::<PyList>() {
        Ok(several) => several.iter().map(|key| one(&key)).collect::<PyResult<Vec<_>>>()?,
        Err(_) => vec![one(keys)?],
    };
    if keys.is_empty() {
        return Err(PyValueError::new_err("keys: there are none; aggregate(...) makes one row of all"));
    }
    Ok(keys)
}

#[pymethods]
impl GroupBy {
    /// Return a batch with a row for each group: the keys, and then the aggregations.
    ///
    /// Groups come in the order of their first rows. An aggregation is one of bowstring's, such as
    /// `col("x").sum()`, or a pair of a column and a function, such as `("x", "sum")`, as in pyarrow; the
    /// functions are `sum`, `min`, `max`, `mean`, `count`, `all`, `any`, `first`, `last`, `count_distinct`,
    /// `variance`, `stddev` and `median`. A pair `([], "count_all")` counts rows. Without any, the result has
    /// the distinct keys. Only rows for which the expression `where` is
    /// true count. Other options are as in `aggregate`. On a GPU, `wait` raises the errors of sums that do
    /// not fit.
    #[pyo3(signature = (
        aggregations = None, r#where = None, *, overflow = "error", division_by_zero = "error",
        floats = "total", stream = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
    fn aggregate(
        &self,
        py: Python<'_>,
        aggregations: Option<&Bound<'_, PyAny>>,
        r#where: Option<&Bound<'_, PyAny>>,
        overflow: &str,
        division_by_zero: &str,
        floats: &str,
        stream: Option<&Bound<'_, Stream>>,
    ) -> PyResult<RecordBatch> {
        let options = options(overflow, division_by_zero, floats)?;
        let schema = self.batch.0.schema();
        let query = grouped(schema, &self.keys, aggregations, r#where)?;
        let bound: BoundQuery = ours(|| query.bind(schema, &options))?;
        let on = stream_for(self.batch.place(), stream)?;
        detached(py, || bound.run(&self.batch.0, &on).wait()).map(RecordBatch::new)
    }
}

/// The query that aggregates groups by keys, of the rows for which a condition is true.
pub(super) fn grouped(
    schema: &Schema,
    keys: &Query,
    aggregations: Option<&Bound<'_, PyAny>>,
    condition: Option<&Bound<'_, PyAny>>,
) -> PyResult<Query> {
    let aggregations = aggregations.map_or(Ok(vec![]), |all| wanted(all, schema))?;
    let query = predicate(condition)?.into_iter().fold(keys.clone(), Query::filter);
    Ok(query.aggregate(aggregations))
}

/// Reads aggregations: ours, or a list that has pyarrow's pairs.
fn wanted(all: &Bound<'_, PyAny>, schema: &Schema) -> PyResult<Vec<InnerAggregation>> {
    let Ok(several) = all.cast::<PyList>() else { return aggregations(all) };
    let one = |one: Bound<'_, PyAny>| match (one.cast::<Aggregation>(), one.cast::<PyTuple>()) {
        (Ok(ours), _) => Ok(ours.get().0.clone()),
        (_, Ok(pair)) if pair.len() == 2 => paired(&pair.get_item(0)?, &pair.get_item(1)?, schema),
        _ => Err(PyTypeError::new_err(format!(
            "aggregations: a bowstring.Aggregation or a pair of a column and a function is needed, not {}",
            one.get_type()
        ))),
    };
    several.iter().map(one).collect()
}

/// The functions that [`paired`] knows.
const FUNCTIONS: &str = "sum, min, max, mean, count, all, any, first, last, count_distinct, variance, stddev, \
                         median, count_all";

/// Reads a column and a function, as pyarrow has them.
fn paired(
    column: &Bound<'_, PyAny>,
    function: &Bound<'_, PyAny>,
    schema: &Schema,
) -> PyResult<InnerAggregation> {
    let function: String = match function.cast::<PyString>() {
        Ok(function) => function.to_string_lossy().into_owned(),
        Err(_) => {
            let problem = format!("aggregations: a function is a str, not {}", function.get_type());
            return Err(PyTypeError::new_err(problem));
        }
    };
    if function == "count_all" {
        return Ok(expr::count_all().alias("count_all"));
    }
    let at = place_in(schema, column, "aggregations")?;
    let of = expr::nth(at);
    let made = match function.as_str() {
        "sum" => expr::sum(of),
        "min" => expr::min(of),
        "max" => expr::max(of),
        "mean" => expr::mean(of),
        "count" => expr::count(of),
        "all" => expr::bool_and(of),
        "any" => expr::bool_or(of),
        "first" => expr::first(of),
        "last" => expr::last(of),
        "count_distinct" => expr::count_distinct(of),
        "variance" => expr::variance(of, 0),
        "stddev" => expr::stddev(of, 0),
        "median" => expr::median(of),
        other => {
            return Err(PyValueError::new_err(format!(
                "aggregations: a function is one of {FUNCTIONS}, not {other:?}"
            )));
        }
    };
    Ok(made.alias(format!("{}_{function}", schema.field(at).name())))
}

/// Return the rows of two batches that have equal keys, side by side.
///
/// `keys` are the names or numbers of columns of `left`, one or a list; `right_keys` are those of `right`, if
/// they differ. `join_type` is as in pyarrow: `"inner"`, `"left outer"`, `"right outer"`, `"full outer"`, or
/// `"left semi"`, `"left anti"`, `"right semi"` and `"right anti"`, which return rows of one side.
///
/// Rows come in the order of `left`, and for each of them in that of `right`; rows of `right` that have no
/// partner follow. The key columns of `right` are left out, except in right and full outer joins. A column
/// of `right` whose name is taken gets `suffix`. Nulls equal nothing, unless `nulls_equal`.
#[pyfunction]
#[pyo3(signature = (
    left, right, keys, right_keys = None, *, join_type = "inner", nulls_equal = false, suffix = "_right",
    stream = None
))]
#[allow(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub fn join(
    left: &Bound<'_, PyAny>,
    right: &Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    right_keys: Option<&Bound<'_, PyAny>>,
    join_type: &str,
    nulls_equal: bool,
    suffix: &str,
    stream: Option<&Bound<'_, Stream>>,
) -> PyResult<RecordBatch> {
    let py = left.py();
    let (left, right) = (as_batch(left, "left")?, as_batch(right, "right")?);
    let keys = join_keys([left.0.schema(), right.0.schema()], keys, right_keys)?;
    let (kind, sides) = join_kind(join_type)?;
    let kept = kept_of_right(kind, right.0.columns().len(), &keys[1]);
    let options = JoinOptions { kind, nulls_equal, ..JoinOptions::default() };
    let on = stream_for(left.place(), stream)?;
    detached(py, || {
        let of = |batch: &DeviceBatch, keys: &[usize]| -> Vec<DeviceArray> {
            keys.iter().map(|key| batch.columns()[*key].clone()).collect()
        };
        let (left_keys, right_keys) = (of(&left.0, &keys[0]), of(&right.0, &keys[1]));
        let schema = right
            .0
            .schema()
            .project(&kept)
            .map_err(|error| bowstring::Error::Arrow { operation: "join", problem: error.to_string() })?;
        let values = DeviceBatch::try_new(Arc::new(schema), of(&right.0, &kept), right.0.len())?;
        let joined = compute::join(&values, &left.0, (&right_keys, &left_keys), &options, &on).wait()?;
        arranged(&joined, kept.len(), &left.0, sides, suffix)
    })
    .map(RecordBatch::new)
}

/// The numbers of the key columns of the left and the right side.
pub(super) fn join_keys(
    [left, right]: [&Schema; 2],
    keys: &Bound<'_, PyAny>,
    right_keys: Option<&Bound<'_, PyAny>>,
) -> PyResult<[Vec<usize>; 2]> {
    let keys = [columns(left, keys, "keys")?, columns(right, right_keys.unwrap_or(keys), "right_keys")?];
    if keys[0].len() != keys[1].len() || keys[0].is_empty() {
        let problem = format!("right_keys: {} columns for {} of left", keys[1].len(), keys[0].len());
        return Err(PyValueError::new_err(problem));
    }
    Ok(keys)
}

/// The columns of the right side that a join returns.
pub(super) fn kept_of_right(kind: JoinKind, columns: usize, keys: &[usize]) -> Vec<usize> {
    let keeps_keys =
        matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::LeftSemi | JoinKind::LeftAnti);
    (0..columns).filter(|i| keeps_keys || !keys.contains(i)).collect()
}

/// The kind of a join, and whether it returns columns of the left and of the right side. The library keeps
/// the order of the side that looks for its keys, which here is the left one.
pub(super) fn join_kind(join_type: &str) -> PyResult<(JoinKind, [bool; 2])> {
    Ok(match join_type {
        "inner" => (JoinKind::Inner, [true, true]),
        "left outer" => (JoinKind::Right, [true, true]),
        "right outer" => (JoinKind::Left, [true, true]),
        "full outer" => (JoinKind::Full, [true, true]),
        "left semi" => (JoinKind::RightSemi, [true, false]),
        "left anti" => (JoinKind::RightAnti, [true, false]),
        "right semi" => (JoinKind::LeftSemi, [false, true]),
        "right anti" => (JoinKind::LeftAnti, [false, true]),
        other => {
            return Err(PyValueError::new_err(format!(
                "join_type is inner, left outer, right outer, full outer, left semi, left anti, right semi or \
                 right anti, not {other:?}"
            )));
        }
    })
}

/// Puts the columns of the left side first, and renames columns of the right one whose names are taken.
pub(super) fn arranged(
    joined: &DeviceBatch,
    rights: usize,
    left: &DeviceBatch,
    sides: [bool; 2],
    suffix: &str,
) -> bowstring::Result<DeviceBatch> {
    if sides != [true, true] {
        return Ok(joined.clone());
    }
    let schema = beside(joined.schema(), rights, left.schema(), suffix)?;
    let columns = [&joined.columns()[rights..], &joined.columns()[..rights]].concat();
    DeviceBatch::try_new(Arc::new(schema), columns, joined.len())
}

/// The schema of a join with the columns of the left side first, of which `joined` has the right ones first.
/// A name that a suffix makes must be free.
pub(super) fn beside(
    joined: &Schema,
    rights: usize,
    left: &Schema,
    suffix: &str,
) -> bowstring::Result<Schema> {
    let (right, own) = joined.fields().split_at(rights);
    let taken = |name: &str| left.index_of(name).is_ok();
    let renamed = right.iter().map(|field| {
        if !taken(field.name()) {
            return Ok(field.clone());
        }
        let name = format!("{}{suffix}", field.name());
        if taken(&name) || right.iter().any(|other| *other.name() == name) {
            let problem = format!("two columns called {name:?}, because of the suffix");
            return Err(bowstring::Error::Invalid { operation: "join", problem });
        }
        Ok(Arc::new(field.as_ref().clone().with_name(name)))
    });
    let fields = own.iter().cloned().map(Ok).chain(renamed).collect::<bowstring::Result<Vec<_>>>()?;
    Ok(Schema::new(fields))
}

/// Reads the names or numbers of columns, one or a list.
pub(super) fn columns(schema: &Schema, which: &Bound<'_, PyAny>, argument: &str) -> PyResult<Vec<usize>> {
    match which.cast::<PyList>() {
        Ok(several) => several.iter().map(|which| place_in(schema, &which, argument)).collect(),
        Err(_) => Ok(vec![place_in(schema, which, argument)?]),
    }
}
