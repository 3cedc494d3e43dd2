//! Bound queries, which run on batches and streams of them.
//!
//! The one idea: a bound query is plans with named roles (a condition, outputs). Whatever a plan's program
//! cannot run (casts, tests of text) runs before it, see [`settled`](super::settled).

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::cast::{CastOptions, check_cast};
use super::evaluated::{Evaluated, begin, check};
use super::grouped::{Gathered, MergedSets, Partial, Sets};
use super::iterators::{each_ahead, made_later, under};
use super::settled::settled;
use super::{Selection, Spill, engine, reach_all};
use crate::array::{Batches, Place};
use crate::expr::Fold;
use crate::expr::plan::{Op, Plan};
use crate::rules::Folded;
use crate::{DeviceBatch, Error, Pending, Result, Stream};

/// A [`Query`](super::Query) bound to a schema.
#[derive(Clone, Debug)]
pub struct BoundQuery {
    pub(super) schema: SchemaRef,
    /// The condition of a query that does not aggregate.
    pub(super) filter: Option<Arc<Plan>>,
    pub(super) results: Results,
}

#[derive(Clone, Debug)]
pub(super) enum Results {
    Rows,
    Columns(Arc<Evaluated>),
    /// The plan has the condition.
    Aggregates(Arc<Plan>, Folded),
    Groups(Sets),
}

/// The groups of batches that arrive one by one. The memory it takes depends on the number of groups, not of
/// rows. On the CPU, rows of small batches wait and are grouped together: a million, or more if they have
/// many groups, but at most 1 GiB, or a quarter of the query's [limit](super::Query::group_limit). Rows whose
/// floats are summed do not wait, since such sums depend on the batches, and all devices have to agree.
///
/// ```
/// use arrow_array::record_batch;
/// use bowstring::{DeviceBatch, Stream, compute::Query, expr::{Options, col, sum}};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stream = Stream::cpu();
/// let rows = DeviceBatch::try_from(&record_batch!(("k", Int32, [1, 2]), ("n", Int64, [3, 4]))?)?;
/// let query = Query::new().group_by([col("k")]).aggregate([sum(col("n"))]);
/// let mut grouping = query.bind(rows.schema(), &Options::default())?.grouping(&stream)?;
/// grouping.push(&rows)?;
/// grouping.push(&rows)?;
/// let groups: Vec<DeviceBatch> = grouping.finish()?.collect::<Result<_, _>>()?;
/// assert_eq!(groups[0].len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Grouping {
    query: BoundQuery,
    sets: Sets,
    merged: MergedSets,
    /// Rows that wait to be grouped together, if the engine groups more than a batch at a time.
    gathered: Option<Gathered>,
    /// The groups of the last batch, which is not awaited before the next one has begun.
    before: Option<Pending<Vec<Partial>>>,
    /// The error of a batch, without whose rows the groups would be wrong.
    failed: Option<Error>,
    stream: Stream,
}

impl Grouping {
    /// Has spilled groups kept elsewhere than in host memory.
    pub fn spill_to(mut self, spill: Arc<dyn Spill>) -> Grouping {
        self.merged.spill_to(&spill);
        self
    }

    /// Begins to group the rows of a batch, and waits for those of the batch before. An error may be of
    /// either, so all later calls return it, too.
    pub fn push(&mut self, batch: &DeviceBatch) -> Result<()> {
        check("query", &self.query.schema, batch)?;
        self.failed.clone().map_or(Ok(()), Err)?;
        if batch.is_empty() {
            return Ok(());
        }
        let pushed = self.push_rows(batch);
        self.failed = pushed.clone().err();
        pushed
    }

    fn push_rows(&mut self, batch: &DeviceBatch) -> Result<()> {
        let columns = self.query.keys_and_values(&self.sets, batch, &self.stream)?;
        if let Some(gathered) = &mut self.gathered {
            let enough = gathered.add(columns.wait()?, &self.stream)?;
            return enough.into_iter().try_for_each(|rows| self.group(rows));
        }
        let (sets, on) = (self.sets.clone(), self.stream.clone());
        let begun = begin(&self.stream, async move { sets.partials(columns.await?, on).await })?;
        self.before.replace(begun).map_or(Ok(()), |before| self.merged.add(before.wait()?))
    }

    /// Groups rows that have waited.
    fn group(&mut self, rows: DeviceBatch) -> Result<()> {
        let count = rows.len();
        let groups = begin(&self.stream, self.sets.clone().partials(rows, self.stream.clone()))?.wait()?;
        if let Some(gathered) = &mut self.gathered {
            gathered.learn(count, groups.iter().map(|part| part.keys.len()).max().unwrap_or(0));
        }
        self.merged.add(groups)
    }

    /// Returns the groups of all batches: one batch for each set of keys, or several if groups were spilled.
    pub fn finish(mut self) -> Result<Batches> {
        self.failed.clone().map_or(Ok(()), Err)?;
        let (schema, place) = (self.query.schema(), self.stream.device().place());
        let rest = self.gathered.as_mut().map(|gathered| gathered.all(&self.stream)).transpose()?;
        rest.into_iter().flatten().try_for_each(|rows| self.group(rows))?;
        self.before.take().map_or(Ok(()), |last| self.merged.add(last.wait()?))?;
        let (to, groups) = (schema.clone(), self.merged.finish()?);
        Ok(Batches::new(schema, place, groups.map(move |batch| under(&to, &batch?))))
    }
}

impl BoundQuery {
    /// The schema of the results. A batch of results may have nullable fields where this schema has none, if
    /// the input has nulls against its own schema.
    pub fn schema(&self) -> SchemaRef {
        match &self.results {
            Results::Rows => self.schema.clone(),
            Results::Columns(columns) => columns.results.clone(),
            Results::Aggregates(_, folded) => Arc::new(folded.schema()),
            Results::Groups(sets) => sets.schema(),
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
        if let Results::Groups(sets) = &self.results { sets.check(stream) } else { Ok(()) }
    }

    fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        let results = match &self.results {
            Results::Rows => None,
            Results::Columns(columns) => Some(&columns.plan),
            Results::Aggregates(plan, _) => Some(plan),
            Results::Groups(sets) => Some(sets.plan()),
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
                    let (read, columns, on) = (columns.read(batch)?, columns.clone(), stream.clone());
                    begin(stream, async move { columns.evaluate(read, on).await })?
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
                (Results::Groups(sets), _) => {
                    let columns = self.keys_and_values(sets, batch, stream)?;
                    let (sets, on) = (sets.clone(), stream.clone());
                    begin(stream, async move {
                        let partials = sets.clone().partials(columns.await?, on.clone()).await?;
                        sets.finish(partials, on).await
                    })?
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
        if let Results::Groups(_) = &self.results {
            let groups = made_later(move || {
                let mut grouping = query.grouping(&on)?;
                for batch in batches {
                    grouping.push(&batch?)?;
                }
                grouping.finish()
            });
            return Batches::new(schema, place, groups);
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

    /// The keys of a batch's groups, and the values that are aggregated.
    fn keys_and_values(
        &self,
        sets: &Sets,
        batch: &DeviceBatch,
        stream: &Stream,
    ) -> Result<Pending<DeviceBatch>> {
        let (read, sets, on) = (sets.read(batch)?, sets.clone(), stream.clone());
        let Some(filter) = self.filter.as_ref().filter(|_| !batch.is_empty()) else {
            return begin(stream, sets.columns(read, on));
        };
        let kept = self.filtered(filter, read, batch, stream)?;
        begin(stream, async move { sets.columns(kept.await?, on).await })
    }

    /// Groups the rows of batches that arrive one by one, where an iterator of batches would have to wait for
    /// them. An error if the query has no keys and no aggregates that only groups have.
    pub fn grouping(&self, stream: &Stream) -> Result<Grouping> {
        let Results::Groups(sets) = &self.results else {
            return Err(Error::invalid("query", "it does not group"));
        };
        let gathered = engine(stream).rows_together().and_then(|enough| sets.gathered(enough));
        let (sets, merged, stream) = (sets.clone(), sets.merged(stream), stream.clone());
        Ok(Grouping { query: self.clone(), sets, merged, gathered, before: None, failed: None, stream })
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
