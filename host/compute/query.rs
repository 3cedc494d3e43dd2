//! Queries: a filter, and columns or aggregates of the rows that it keeps. A query is bound to a schema once
//! and then runs on any number of batches.
//!
//! The one idea: a bound query is plans with named roles (a condition, outputs). Whatever a plan's program
//! cannot run (casts, tests of text) runs before it, see [`settled`](super::settled).

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::batches::{each_ahead, made_later, under};
use super::cast::{CastOptions, check_cast};
use super::evaluated::{Evaluated, begin, check};
use super::grouped::{Finished, Grouped, Merged, Partial};
use super::settled::settled;
use super::{Selection, engine, reach_all};
use crate::array::{Batches, Place};
use crate::expr::bind::bind;
use crate::expr::plan::{Op, Plan};
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

/// A [`Query`] bound to a schema.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    schema: SchemaRef,
    /// The condition of a query that does not aggregate.
    filter: Option<Arc<Plan>>,
    results: Results,
}

#[derive(Clone, Debug)]
enum Results {
    Rows,
    Columns(Evaluated),
    /// The plan has the condition.
    Aggregates(Arc<Plan>, Folded),
    Groups(Grouped),
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

    /// Parks groups of a stream in host memory once they take more than so many bytes, in parts by a hash of
    /// their keys, which must not be nested. Then the stream yields several batches, in each of which groups
    /// are in the order of their first rows. To merge parts takes about three times as many bytes.
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
        let (filter, results) = match &self.wanted {
            Wanted::Columns(_) if !self.keys.is_empty() => {
                return Err(Error::invalid("query", "groups have keys and aggregates, but no other columns"));
            }
            Wanted::Rows if !self.keys.is_empty() => {
                let grouped = Grouped::bind(&self.keys, &[], schema, options)?;
                (filter_plan()?, Results::Groups(grouped.limited(self.group_limit)))
            }
            Wanted::Rows => (filter_plan()?, Results::Rows),
            Wanted::Columns(exprs) => {
                (filter_plan()?, Results::Columns(Evaluated::bind(exprs, schema, options)?))
            }
            Wanted::Aggregates(aggregations) => match self.folded(aggregations, schema, options)? {
                Some((plan, folded)) => (None, Results::Aggregates(Arc::new(plan), folded)),
                None => {
                    let grouped = Grouped::bind(&self.keys, aggregations, schema, options)?;
                    (filter_plan()?, Results::Groups(grouped.limited(self.group_limit)))
                }
            },
        };
        Ok(BoundQuery { schema: Arc::new(schema.clone()), filter: filter.map(Arc::new), results })
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

impl BoundQuery {
    /// The schema of the results. A batch of results may have nullable fields where this schema has none, if
    /// the input has nulls against its own schema.
    pub fn schema(&self) -> SchemaRef {
        match &self.results {
            Results::Rows => self.schema.clone(),
            Results::Columns(columns) => Arc::new(Schema::new(columns.fields.clone())),
            Results::Aggregates(_, folded) => Arc::new(folded.schema()),
            Results::Groups(grouped) => grouped.schema(),
        }
    }

    /// Describes the bound plans as text: one line per node, then the condition and the results.
    pub fn explain(&self) -> String {
        self.plans().map(|plan| plan.to_string()).collect::<Vec<_>>().join("\n")
    }

    /// Whether the stream's device runs the query: the error that [`run`](BoundQuery::run) would return for
    /// every batch, before there is one. A planner asks this.
    pub fn check(&self, stream: &Stream) -> Result<()> {
        // Devices run all that plans have, except for some casts.
        for plan in self.plans() {
            for node in &plan.nodes {
                if let Op::Cast(safe) = node.op {
                    let options = CastOptions { safe, ..CastOptions::default() };
                    check_cast(&plan.nodes[node.inputs[0]].data_type, &node.data_type, &options, stream)?;
                }
            }
        }
        if let Results::Groups(grouped) = &self.results { grouped.check(stream) } else { Ok(()) }
    }

    fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        let results = match &self.results {
            Results::Rows => None,
            Results::Columns(columns) => Some(&columns.plan),
            Results::Aggregates(plan, _) => Some(plan),
            Results::Groups(grouped) => Some(grouped.plan()),
        };
        self.filter.iter().chain(results)
    }

    /// Runs the query on a batch, which must have the bound types.
    pub fn run(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<DeviceBatch> {
        Pending::begun(|| {
            check("query", &self.schema, batch)?;
            let filter = self.filter.as_ref().filter(|_| !batch.is_empty());
            Ok(match (&self.results, filter) {
                (Results::Rows, None) => Pending::known(Ok(batch.clone())),
                (Results::Rows, Some(filter)) => self.filtered(filter, batch.clone(), batch, stream)?,
                (Results::Columns(columns), None) => {
                    begin(stream, columns.clone().evaluate(columns.read(batch)?, stream.clone()))?
                }
                (Results::Columns(columns), Some(filter)) => {
                    let kept = self.filtered(filter, columns.read(batch)?, batch, stream)?;
                    let (columns, on) = (columns.clone(), stream.clone());
                    begin(stream, async move { columns.evaluate(kept.await?, on).await })?
                }
                (Results::Aggregates(plan, folded), _) => {
                    let folded = folded.clone();
                    self.partials(plan, &folded, batch, stream)?.map(move |words| folded.row(&words))
                }
                (Results::Groups(grouped), _) => {
                    let (partial, grouped, on) =
                        (self.groups(grouped, batch, stream)?, grouped.clone(), stream.clone());
                    begin(stream, async move { grouped.finish(partial.await?, on).await })?
                }
            })
        })
    }

    /// Runs the query on each batch of a stream when its result is requested; all must have the bound schema.
    /// A query that aggregates yields one row for all batches, or one batch of groups, and begins one batch
    /// while it waits for another. The row number in an error counts from the start of its batch.
    pub fn run_batches(&self, batches: Batches, stream: &Stream) -> Batches {
        let (query, on, schema) = (self.clone(), stream.clone(), self.schema());
        if let Results::Aggregates(plan, folded) = &self.results {
            let (plan, folded) = (plan.clone(), folded.clone());
            let row = std::iter::once_with(move || query.aggregated(&plan, &folded, batches, &on));
            return Batches::new(schema, Place::CPU, row);
        }
        let (to, place) = (schema.clone(), stream.device().place());
        if let Results::Groups(grouped) = &self.results {
            let grouped = grouped.clone();
            let groups = made_later(move || query.grouped(&grouped, batches, &on));
            return Batches::new(schema, place, groups.map(move |batch| under(&to, &batch?)));
        }
        let ahead = if self.filter.is_some() { engine(stream).batches_ahead() } else { 0 };
        let results = each_ahead(batches, ahead, move |batch| Ok(query.run(batch, &on)));
        Batches::new(schema, place, results.map(move |batch| under(&to, &batch?)))
    }

    /// Selects the rows that the query keeps, to filter any number of arrays of that many rows. On a GPU the
    /// first [`wait`](Pending::wait) synchronises, because the number of rows depends on the data.
    pub fn selection(&self, batch: &DeviceBatch, stream: &Stream) -> Pending<Selection> {
        Pending::begun(|| {
            let none = || Error::invalid("selection", "a query without a filter, or one that aggregates");
            let filter = self.filter.clone().ok_or_else(none)?;
            check("filter_where", &self.schema, batch)?;
            let (batch, on) = (batch.clone(), stream.clone());
            begin(stream, async move {
                let (plan, columns) = settled("filter_where", &filter, &batch, &on).await?;
                let selected = engine(&on).select_where(&plan, &columns, batch.len(), &on)?;
                Selection::of(selected, batch.len(), &on).await
            })
        })
    }

    /// Filters `rows`, some columns of the batch that the condition reads.
    fn filtered(
        &self,
        filter: &Arc<Plan>,
        rows: DeviceBatch,
        batch: &DeviceBatch,
        stream: &Stream,
    ) -> Result<Pending<DeviceBatch>> {
        reach_all("filter_where", rows.columns(), stream)?;
        let (filter, batch, on) = (filter.clone(), batch.clone(), stream.clone());
        begin(stream, async move {
            let (plan, columns) = settled("filter_where", &filter, &batch, &on).await?;
            let kept = engine(&on).filter_where(&plan, &columns, rows.columns(), batch.len(), &on)?.await?;
            let made = DeviceBatch::try_new(rows.schema().clone(), kept.columns, kept.rows)?;
            Ok(made.with_metadata(rows.metadata().clone()))
        })
    }

    /// The groups of a batch.
    fn groups(&self, grouped: &Grouped, batch: &DeviceBatch, stream: &Stream) -> Result<Pending<Partial>> {
        let (read, grouped, on) = (grouped.read(batch)?, grouped.clone(), stream.clone());
        let Some(filter) = self.filter.as_ref().filter(|_| !batch.is_empty()) else {
            return begin(stream, grouped.partial(read, on));
        };
        let kept = self.filtered(filter, read, batch, stream)?;
        begin(stream, async move { grouped.partial(kept.await?, on).await })
    }

    /// Groups the rows of many batches. The memory it takes depends on the number of groups, not of rows.
    fn grouped(&self, grouped: &Grouped, batches: Batches, stream: &Stream) -> Result<Finished> {
        let mut merged = Merged::new(grouped.clone(), stream.clone());
        let mut before: Option<Pending<Partial>> = None;
        for batch in batches {
            let batch = batch?;
            check("query", &self.schema, &batch)?;
            if !batch.is_empty()
                && let Some(before) = before.replace(self.groups(grouped, &batch, stream)?)
            {
                merged.add(before.wait()?)?;
            }
        }
        before.map_or(Ok(()), |last| merged.add(last.wait()?))?;
        merged.finish()
    }

    /// The partial aggregates that each launch produces.
    fn partials(
        &self,
        plan: &Arc<Plan>,
        folded: &Folded,
        batch: &DeviceBatch,
        stream: &Stream,
    ) -> Result<Pending<Vec<Vec<u64>>>> {
        let (plan, batch, on) = (plan.clone(), batch.clone(), stream.clone());
        let kinds: Vec<Fold> = folded.aggregations.iter().map(|one| one.fold).collect();
        begin(stream, async move {
            let rows = batch.len();
            let (plan, columns) = settled("aggregate", &plan, &batch, &on).await?;
            // Constant rows take no memory, so there can be arbitrarily many of them.
            let on_host = rows == 0 || kinds.is_empty() || plan.is_constant();
            let engine = if on_host { engine(&Stream::cpu()) } else { engine(&on) };
            engine.aggregate(&plan, &kinds, &columns, rows, &on)?.await
        })
    }

    /// Aggregates the rows of many batches into one row.
    fn aggregated(
        &self,
        plan: &Arc<Plan>,
        folded: &Folded,
        batches: Batches,
        stream: &Stream,
    ) -> Result<DeviceBatch> {
        let mut all: Vec<Vec<u64>> = vec![];
        let mut add = |words: Option<Pending<Vec<Vec<u64>>>>| -> Result<()> {
            for (i, words) in words.map_or(Ok(vec![]), Pending::wait)?.into_iter().enumerate() {
                all.resize_with(all.len().max(i + 1), Vec::new);
                all[i].extend(words);
            }
            Ok(())
        };
        let mut before = None;
        for batch in batches {
            let batch = batch?;
            check("aggregate", &self.schema, &batch)?;
            // An empty batch contributes nothing.
            if !batch.is_empty() {
                add(before.replace(self.partials(plan, folded, &batch, stream)?))?;
            }
        }
        add(before)?;
        folded.row(&if all.is_empty() { vec![vec![]] } else { all })
    }
}
