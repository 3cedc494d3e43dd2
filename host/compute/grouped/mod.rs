//! Queries that group rows by keys.
//!
//! The one idea: each batch becomes groups with states, from which no later batch can take anything away:
//! sums are exact, means are a sum and a count. States of the same groups are merged when batches meet, and
//! become results at the end.

mod binding;
mod finish;
mod framed;
mod gathered;
mod kept;
mod lists;
mod merged;
mod partial;
mod sets;
mod spilled;
mod states;

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use super::evaluated::Evaluated;
use super::host_rows::bounded;
use super::{CastOptions, TakeOptions, group, sort_to_indices, take};
use crate::compute::SortOptions;
use crate::compute::arrays::empty;
use crate::expr::plan::Plan;
use crate::expr::{Aggregation, Expr, Fold, Options, Overflow, Reduction};
use crate::{DeviceBatch, Result, Stream};
use finish::{Results, of_nothing, result};
use kept::Kept;
use states::{Folds, State, Which, folded};

pub(super) use gathered::Gathered;
pub(super) use partial::Partial;
pub(super) use sets::{KeySets, MergedSets, Sets};

/// A query's groups, bound to a schema.
#[derive(Clone, Debug)]
pub(super) struct Grouped {
    /// The keys, and then the values that are aggregated.
    columns: Evaluated,
    /// The columns that rows are grouped by.
    keys: Vec<usize>,
    /// Whether all rows are one group, whose key is not among the results.
    one: bool,
    states: Vec<State>,
    kept: Vec<Kept>,
    results: Vec<Results>,
    overflow: Overflow,
    /// The bytes of groups beyond which they are spilled to host memory.
    limit: Option<usize>,
}

impl Grouped {
    /// Binds keys and aggregates to a schema. Without keys, all rows are one group.
    pub fn bind(
        keys: &[Expr],
        aggregations: &[Aggregation],
        schema: &Schema,
        options: &Options,
    ) -> Result<Grouped> {
        let bound = binding::bound(keys, aggregations, schema, options)?;
        let one = keys.is_empty();
        Ok(Grouped {
            columns: bound.columns,
            keys: (0..keys.len().max(1)).collect(),
            one,
            states: bound.states,
            kept: bound.kept,
            results: bound.results,
            overflow: options.overflow,
            limit: None,
        })
    }

    /// Spills groups to host memory that take more than so many bytes, or more than 1 GiB if a column has
    /// offsets of 32 bits. A single group cannot be divided.
    pub fn limited(self, limit: Option<usize>) -> Grouped {
        let limit = bounded(limit, self.columns.results.fields.iter().map(|field| field.data_type()));
        Grouped { limit: limit.filter(|_| !self.one), ..self }
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.columns.plan
    }

    /// The columns of a batch that the keys and aggregates read.
    pub fn read(&self, batch: &DeviceBatch) -> Result<DeviceBatch> {
        self.columns.read(batch)
    }

    /// The schema of the results.
    pub fn schema(&self) -> SchemaRef {
        let keys: &[usize] = if self.one { &[] } else { &self.keys };
        let keys = keys.iter().map(|key| self.columns.results.field(*key).clone());
        Arc::new(Schema::new(
            keys.chain(self.results.iter().map(|one| one.field.clone())).collect::<Vec<_>>(),
        ))
    }

    /// Whether the stream's device groups by these keys, and sorts what must be sorted.
    pub fn check(&self, stream: &Stream) -> Result<()> {
        let none = |column: usize| empty(self.columns.results.fields[column].data_type(), stream);
        let grouped = |columns: Vec<usize>| {
            let columns = columns.into_iter().map(none).collect::<Result<Vec<_>>>()?;
            group(&columns, stream).wait().map(|_| ())
        };
        grouped(self.keys.clone())?;
        for state in &self.states {
            if let State::Row(row) = state
                && matches!(row.which, Which::Least | Which::Greatest)
            {
                sort_to_indices(&none(row.of)?, SortOptions::default(), None, stream).wait()?;
            }
        }
        self.kept.iter().filter(|kept| kept.distinct).try_for_each(|kept| grouped(vec![kept.of]))
    }

    /// Whether the states are the same however rows are divided among batches: sums of floats are not.
    fn is_exact(&self) -> bool {
        let exact = |state: &State| match state {
            State::Fold(Folds { fold: Reduction::Fold(Fold::Sum), of: Some(of), .. }) => {
                !self.columns.results.fields[*of].data_type().is_floating()
            }
            State::Fold(_) | State::Row(_) => true,
            State::Squares(_) => false,
        };
        self.states.iter().all(exact)
    }

    /// Groups rows, and aggregates their values.
    pub async fn partial(self, rows: DeviceBatch, stream: Stream) -> Result<Partial> {
        let columns = self.columns.evaluate(rows, stream.clone()).await?;
        self.grouped(&columns, &stream).await
    }

    /// Groups rows of which all columns are computed.
    async fn grouped(&self, columns: &DeviceBatch, stream: &Stream) -> Result<Partial> {
        let keys = some_columns(columns, &self.keys)?;
        let groups = group(keys.columns(), stream).await?;
        let first = take(&keys, groups.firsts(), &TakeOptions::default(), stream);
        let sources = self.states.iter().map(|state| state.of(columns.columns())).collect();
        let states = folded(sources, &groups, stream).await?;
        let mut kept = vec![];
        for one in &self.kept {
            kept.push(one.of(&keys, columns.columns(), stream).await?);
        }
        Partial { keys: first.await?, states, kept }.compacted(stream).await
    }

    /// Makes results of states.
    pub async fn finish(self, made: Partial, stream: Stream) -> Result<DeviceBatch> {
        if self.one && made.keys.is_empty() {
            return DeviceBatch::try_new(self.schema(), of_nothing(&self.results, &stream)?, 1);
        }
        let rows = made.keys.len();
        let keys = if self.one { 0 } else { self.keys.len() };
        let mut columns = made.keys.columns()[..keys].to_vec();
        let fields = made.keys.schema().fields()[..keys].iter().map(|key| (**key).clone());
        let fields = fields.chain(self.results.iter().map(|one| one.field.clone()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = CastOptions { safe: self.overflow == Overflow::Null, ..CastOptions::default() };
        for one in &self.results {
            columns.push(result(one, &made, &options, &stream).await?);
        }
        DeviceBatch::try_new(schema, columns, rows)
    }

    /// Merges the groups of several parts.
    async fn together(&self, parts: &[Partial], stream: &Stream) -> Result<Partial> {
        let all = Partial::joined(parts, stream).await?;
        let groups = group(all.keys.columns(), stream).await?;
        let first = take(&all.keys, groups.firsts(), &TakeOptions::default(), stream);
        let mut sources = vec![];
        for (i, state) in self.states.iter().enumerate() {
            sources.push(state.again(i, &all.states, stream).await?);
        }
        let states = folded(sources, &groups, stream).await?;
        let mut kept = vec![];
        for (one, rows) in self.kept.iter().zip(all.kept) {
            kept.push(one.again(rows, stream).await?);
        }
        let made = Partial { keys: first.await?, states, kept };
        // A sum of sums is wider, but parts are merged again and again. No stream is so long that the sum of
        // its integers does not fit.
        let made = match parts.first() {
            Some(first) => made.like(first, stream).await?,
            None => made,
        };
        made.compacted(stream).await
    }
}

/// Some columns of a batch.
fn some_columns(batch: &DeviceBatch, columns: &[usize]) -> Result<DeviceBatch> {
    let fields: Vec<_> = columns.iter().map(|column| batch.schema().fields()[*column].clone()).collect();
    let some = columns.iter().map(|column| batch.columns()[*column].clone()).collect();
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), some, batch.len())
}
