//! Queries: a filter, and columns or aggregates of the rows that it keeps. A query is bound to a schema once
//! and then runs on any number of batches.

use std::sync::Arc;

use arrow_schema::Schema;

use super::bound_query::{BoundQuery, Results};
use super::evaluated::Evaluated;
use super::grouped::{KeySets, Sets};
use crate::expr::bind::bind;
use crate::expr::plan::Plan;
use crate::expr::{Aggregation, Expr, Fold, Folding, Options};
use crate::rules::{Folded, has_extremes, prepared};
use crate::{DeviceBatch, Error, Pending, Result, Stream};

/// A description of results: the rows of batches to keep, and columns or aggregates of those.
///
/// ```
/// use arrow_schema::{DataType, Field, Schema};
/// use bowstring::{compute::Query, expr::{Options, col}};
/// # fn main() -> bowstring::Result<()> {
/// let schema = Schema::new(vec![Field::new("a", DataType::Int32, true)]);
/// let twice = Query::new().select([col("a") + col("a")]).bind(&schema, &Options::default())?;
/// assert!(twice.explain().ends_with("%1 = Arithmetic(Add, Fails)(%0, %0): Int32\nreturn %1"));
/// let no_number = Query::new().filter(col("a").lt("?")).bind(&schema, &Options::default());
/// assert!(no_number.is_err()); // known before there are any rows
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Query {
    filter: Option<Expr>,
    keys: Vec<Expr>,
    key_sets: KeySets,
    wanted: Wanted,
    group_limit: Option<usize>,
}

/// The results of a query.
#[derive(Clone, Debug, Default)]
enum Wanted {
    #[default]
    Rows,
    Columns(Vec<Expr>),
    Aggregates(Vec<Aggregation>),
}

impl Query {
    /// A query that returns all rows as they are.
    pub fn new() -> Query {
        Query::default()
    }

    /// Keeps only the rows for which `predicate` is true; null is not true. Several filters keep the rows
    /// for which all predicates are true.
    pub fn filter(self, predicate: impl Into<Expr>) -> Query {
        let predicate = predicate.into();
        let filter = match self.filter {
            None => predicate,
            Some(first) => first & predicate,
        };
        Query { filter: Some(filter), ..self }
    }

    /// Computes these columns from the kept rows, in place of the input's own.
    pub fn select(self, exprs: impl IntoIterator<Item: Into<Expr>>) -> Query {
        Query { wanted: Wanted::Columns(exprs.into_iter().map(Into::into).collect()), ..self }
    }

    /// Groups the kept rows by keys: the result has a row for each group, in the order of the groups' first
    /// rows, with the keys and then the aggregates. Without aggregates, it has the distinct keys. See
    /// [`group`](super::group) for when keys are equal. Without keys, all rows are one group.
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use bowstring::{DeviceBatch, Stream, compute::Query, expr::{Options, col, sum}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rows = record_batch!(("k", Utf8, ["b", "a", "b"]), ("n", Int64, [1, 2, 3]))?;
    /// let batch = DeviceBatch::try_from(&rows)?;
    /// let query = Query::new().group_by([col("k")]).aggregate([sum(col("n")).alias("total")]);
    /// let query = query.bind(batch.schema(), &Options::default())?;
    /// let totals = query.run(&batch, &Stream::cpu()).wait()?;
    /// let totals = arrow_array::RecordBatch::try_from(&totals)?;
    /// assert_eq!(totals.column(0).as_ref(), &arrow_array::StringArray::from(vec!["b", "a"]));
    /// assert_eq!(totals.column(1).as_ref(), &arrow_array::Int64Array::from(vec![4, 2]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn group_by(self, keys: impl IntoIterator<Item: Into<Expr>>) -> Query {
        Query { keys: keys.into_iter().map(Into::into).collect(), ..self }
    }

    /// Groups by each of these sets of keys, which are numbers of keys of [`group_by`](Query::group_by): the
    /// result has the groups of the first set, then those of the next. A key that is not in a row's set is
    /// null there. A column `grouping_id` follows the keys, as SQL's `GROUPING` has it: a bit for each key,
    /// the lowest for the last one, which is set if the key is not in the set. All rows are one group of the
    /// empty set, even if there are none. Each set takes about the time and the memory of a query of its own.
    ///
    /// ```
    /// use arrow_array::{Array, UInt64Array, record_batch};
    /// use bowstring::{DeviceBatch, Stream, compute::Query, expr::{Options, col, sum}};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rows = record_batch!(("k", Utf8, ["b", "a", "b"]), ("n", Int64, [1, 2, 3]))?;
    /// let batch = DeviceBatch::try_from(&rows)?;
    /// let query = Query::new().group_by([col("k")]).rollup().aggregate([sum(col("n"))]);
    /// let query = query.bind(batch.schema(), &Options::default())?;
    /// let totals = query.run(&batch, &Stream::cpu()).wait()?;
    /// let totals = arrow_array::RecordBatch::try_from(&totals)?;
    /// assert!(totals.column(0).is_null(2)); // the total of all rows
    /// assert_eq!(totals.column(1).as_ref(), &UInt64Array::from(vec![0, 0, 1]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn grouping_sets(self, sets: impl IntoIterator<Item: Into<Vec<usize>>>) -> Query {
        Query { key_sets: KeySets::Sets(sets.into_iter().map(Into::into).collect()), ..self }
    }

    /// Groups by all keys, by all but the last, and so on, down to none: see
    /// [`grouping_sets`](Query::grouping_sets).
    pub fn rollup(self) -> Query {
        Query { key_sets: KeySets::Rollup, ..self }
    }

    /// Groups by every set of keys, of which there are at most 12: see
    /// [`grouping_sets`](Query::grouping_sets). Sets that have the first key come first.
    pub fn cube(self) -> Query {
        Query { key_sets: KeySets::Cube, ..self }
    }

    /// Spills groups of a stream to host memory once they take more than so many bytes, or more than 1 GiB if
    /// a column has offsets of 32 bits, in parts by a hash of their keys. Then the stream yields several
    /// batches, in each of which groups are in the order of their first rows. To merge parts takes about
    /// three times as many bytes. Devices may spill at different batches, so sums of floats may differ
    /// in the last digits.
    pub fn group_limit(self, bytes: usize) -> Query {
        Query { group_limit: Some(bytes), ..self }
    }

    /// Aggregates the kept rows into one row, or into one for each group.
    pub fn aggregate(self, aggregations: impl IntoIterator<Item: Into<Aggregation>>) -> Query {
        let aggregations = aggregations.into_iter().map(Into::into).collect();
        Query { wanted: Wanted::Aggregates(aggregations), ..self }
    }

    /// Binds the query to a schema. Returns an error if an expression does not fit it.
    pub fn bind(&self, schema: &Schema, options: &Options) -> Result<BoundQuery> {
        let filter = self.filter.as_ref();
        let filter_plan = || filter.map(|filter| bind(Some(filter), &[], schema, options)).transpose();
        if self.keys.is_empty() && !matches!(self.key_sets, KeySets::All) {
            return Err(Error::invalid("query", "sets of keys, but no keys"));
        }
        let (filter, results) = match &self.wanted {
            Wanted::Columns(_) if !self.keys.is_empty() => {
                return Err(Error::invalid("query", "groups have keys and aggregates, but no other columns"));
            }
            Wanted::Rows if !self.keys.is_empty() => {
                (filter_plan()?, Results::Groups(self.groups(&[], schema, options)?))
            }
            Wanted::Rows => (filter_plan()?, Results::Rows),
            Wanted::Columns(exprs) => {
                (filter_plan()?, Results::Columns(Arc::new(Evaluated::bind(exprs, schema, options)?)))
            }
            Wanted::Aggregates(aggregations) => match self.folded(aggregations, schema, options)? {
                Some((plan, folded)) => (None, Results::Aggregates(Arc::new(plan), folded)),
                None => (filter_plan()?, Results::Groups(self.groups(aggregations, schema, options)?)),
            },
        };
        Ok(BoundQuery { schema: Arc::new(schema.clone()), filter: filter.map(Arc::new), results })
    }

    /// Binds the keys, their sets and aggregates.
    fn groups(&self, aggregations: &[Aggregation], schema: &Schema, options: &Options) -> Result<Sets> {
        Sets::bind(&self.keys, &self.key_sets, aggregations, schema, options, self.group_limit)
    }

    /// The plan and the folds of aggregates that one program computes for all rows; `None` if there are keys,
    /// or aggregates that only groups have.
    fn folded(
        &self,
        aggregations: &[Aggregation],
        schema: &Schema,
        options: &Options,
    ) -> Result<Option<(Plan, Folded)>> {
        let foldings: Option<Vec<Folding>> = aggregations.iter().map(Aggregation::folding).collect();
        let Some(foldings) = foldings.filter(|_| self.keys.is_empty()) else { return Ok(None) };
        // Programs find no least value of Booleans, text and other types that are no numbers.
        let is_program = |plan: &Plan| {
            let mut outputs = foldings.iter().zip(&plan.outputs);
            outputs.all(|(one, of)| one.fold == Fold::Sum || has_extremes(&plan.nodes[*of].data_type))
        };
        // Nor can they make text null where a filter is not true, so types are first read without filters.
        if aggregations.iter().any(|one| one.filter.is_some()) {
            let of: Vec<Expr> = aggregations.iter().map(|one| one.of.clone()).collect();
            if !is_program(&bind(None, &of, schema, options)?) {
                return Ok(None);
            }
        }
        let of: Vec<Expr> = foldings.iter().map(|one| one.of.clone()).collect();
        let mut plan = bind(self.filter.as_ref(), &of, schema, options)?;
        if !is_program(&plan) {
            return Ok(None);
        }
        for (i, one) in foldings.iter().enumerate() {
            let of = plan.outputs[i];
            plan.outputs[i] = prepared(one, &mut plan, of)?;
        }
        let types = plan.outputs.iter().map(|output| plan.nodes[*output].data_type.clone()).collect();
        Ok(Some((plan, Folded { aggregations: foldings, types, options: *options })))
    }

    /// Binds the query to a batch's schema and runs it.
    pub(super) fn run_once(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<DeviceBatch> {
        Pending::begun(|| Ok(self.bind(batch.schema(), &Options::default())?.run(batch, stream)))
    }
}
