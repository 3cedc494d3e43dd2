//! The sets of keys by which a query groups rows.
//!
//! The one idea: each set has groups of its own, as if the query had only these keys. Finer groups are not
//! merged into coarser ones, because a first value, or a list, depends on the order of rows. Keys, and the
//! arguments of aggregates, are computed once for all sets.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use super::gathered::Gathered;
use super::merged::Merged;
use super::{Grouped, Partial, empty};
use crate::compute::arrays::computed_of;
use crate::compute::evaluated::begin;
use crate::compute::{OutOfBounds, Spill, TakeOptions, concat, take};
use crate::expr::plan::Plan;
use crate::expr::{Aggregation, Expr, Literal, Options, lit};
use crate::{DeviceBatch, Error, Result, Stream};

/// The most sets that a query has.
const MOST: usize = 4096;

/// How a query groups by its keys.
#[derive(Clone, Debug, Default)]
pub(in crate::compute) enum KeySets {
    /// By all of them.
    #[default]
    All,
    /// By each of these sets of them.
    Sets(Vec<Vec<usize>>),
    /// By all of them, all but the last, and so on, down to none.
    Rollup,
    /// By every subset of them.
    Cube,
}

impl KeySets {
    /// Returns the sets of so many keys; `None` if there is one, of all of them.
    fn sets(&self, keys: usize) -> Result<Option<Vec<Vec<usize>>>> {
        let unfit = |problem: String| Err(Error::invalid("query", problem));
        let sets = match self {
            KeySets::All => return Ok(None),
            _ if keys > 64 => return unfit(format!("sets of {keys} keys, which are more than 64")),
            KeySets::Sets(sets) => sets.clone(),
            KeySets::Rollup => (0..=keys).rev().map(|first| (0..first).collect()).collect(),
            KeySets::Cube if keys > MOST.ilog2() as usize => {
                return unfit(format!("a cube of {keys} keys, which has more than {MOST} sets"));
            }
            KeySets::Cube => {
                let has = |subset: usize, key: &usize| subset >> (keys - 1 - key) & 1 == 1;
                let subsets = (0..1 << keys).rev();
                subsets.map(|subset| (0..keys).filter(|key| has(subset, key)).collect()).collect()
            }
        };
        if sets.is_empty() || sets.len() > MOST {
            return unfit(format!("{} sets of keys, where there are 1 to {MOST}", sets.len()));
        }
        for set in &sets {
            for (i, key) in set.iter().enumerate() {
                if *key >= keys {
                    return unfit(format!("a set of keys has key {key}, but there are {keys} keys"));
                }
                if set[..i].contains(key) {
                    return unfit(format!("a set of keys has key {key} twice"));
                }
            }
        }
        Ok(Some(sets))
    }
}

/// A query's groups by each of its sets of keys, bound to a schema.
#[derive(Clone, Debug)]
pub(in crate::compute) struct Sets {
    sets: Vec<Grouped>,
    /// The fields of the results' keys, if the query names sets.
    keys: Option<Vec<Field>>,
}

impl Sets {
    /// Binds keys and aggregates to a schema. Groups of all sets that take more than `limit` bytes are
    /// spilled to host memory.
    pub fn bind(
        keys: &[Expr],
        key_sets: &KeySets,
        aggregations: &[Aggregation],
        schema: &Schema,
        options: &Options,
        limit: Option<usize>,
    ) -> Result<Sets> {
        let Some(sets) = key_sets.sets(keys.len())? else {
            let one = Grouped::bind(keys, aggregations, schema, options)?.limited(limit);
            return Ok(Sets { sets: vec![one], keys: None });
        };
        let mut exprs = keys.to_vec();
        if sets.iter().any(Vec::is_empty) {
            // The key of a set that has none.
            exprs.push(lit(false));
        }
        let all = Grouped::bind(&exprs, aggregations, schema, options)?;
        let limit = limit.map(|limit| limit / sets.len());
        let field = |(i, field): (usize, &FieldRef)| {
            let everywhere = sets.iter().all(|set| set.contains(&i));
            Field::clone(field).with_nullable(field.is_nullable() || !everywhere)
        };
        let fields = all.columns.results.fields[..keys.len()].iter().enumerate().map(field).collect();
        let own = |set: &Vec<usize>| match set.is_empty() {
            true => Grouped { keys: vec![keys.len()], one: true, ..all.clone() },
            false => Grouped { keys: set.clone(), ..all.clone() },
        };
        Ok(Sets { sets: sets.iter().map(|set| own(set).limited(limit)).collect(), keys: Some(fields) })
    }

    /// All sets are of the same plan and read the same columns.
    pub fn plan(&self) -> &Arc<Plan> {
        self.sets[0].plan()
    }

    pub fn read(&self, batch: &DeviceBatch) -> Result<DeviceBatch> {
        self.sets[0].read(batch)
    }

    pub fn schema(&self) -> SchemaRef {
        let Some(keys) = &self.keys else { return self.sets[0].schema() };
        let results = self.sets[0].results.iter().map(|one| one.field.clone());
        Arc::new(Schema::new(keys.iter().cloned().chain([id_field()]).chain(results).collect::<Vec<_>>()))
    }

    pub fn check(&self, stream: &Stream) -> Result<()> {
        self.sets.iter().try_for_each(|set| set.check(stream))
    }

    /// Computes the keys of rows, and the values that are aggregated.
    pub async fn columns(self, rows: DeviceBatch, stream: Stream) -> Result<DeviceBatch> {
        self.sets[0].columns.evaluate(rows, stream).await
    }

    /// Groups rows by each set, and aggregates their values. All columns are computed.
    pub async fn partials(self, columns: DeviceBatch, stream: Stream) -> Result<Vec<Partial>> {
        let mut made = vec![];
        for set in &self.sets {
            made.push(set.grouped(&columns, &stream).await?);
        }
        Ok(made)
    }

    /// Makes results of the states of each set.
    pub async fn finish(self, made: Vec<Partial>, stream: Stream) -> Result<DeviceBatch> {
        let mut results = vec![];
        for (set, made) in self.sets.iter().zip(made) {
            let made = set.clone().finish(made, stream.clone()).await?;
            results.push(self.spread(set, made, &stream).await?);
        }
        concat(&results.iter().collect::<Vec<_>>(), &stream).await
    }

    /// Begins with no rows of small batches; `None` if results depend on how rows are divided among batches,
    /// as on other devices.
    pub fn gathered(&self, enough: usize) -> Option<Gathered> {
        let limit = self.sets.iter().filter_map(|set| set.limit).min();
        self.sets.iter().all(Grouped::is_exact).then(|| Gathered::new(enough, limit))
    }

    /// Begins with no groups.
    pub fn merged(&self, stream: &Stream) -> MergedSets {
        let merged = |set: &Grouped| Merged::new(set.clone(), stream.clone());
        MergedSets {
            merged: self.sets.iter().map(merged).collect(),
            of: self.clone(),
            stream: stream.clone(),
        }
    }

    /// Puts a set's keys in their places among all keys, of which the others are null, and adds the number of
    /// the set.
    async fn spread(&self, set: &Grouped, made: DeviceBatch, stream: &Stream) -> Result<DeviceBatch> {
        let Some(keys) = &self.keys else { return Ok(made) };
        let own: &[usize] = if set.one { &[] } else { &set.keys };
        let id = (0..keys.len()).fold(0u64, |id, key| id << 1 | u64::from(!own.contains(&key)));
        let ids = computed_of(lit(Literal::of(DataType::UInt64, id.into())), &made, stream).await?;
        let (mut fields, mut columns) = (vec![], vec![]);
        for (key, field) in keys.iter().enumerate() {
            if let Some(place) = own.iter().position(|one| *one == key) {
                fields.push(made.schema().fields()[place].clone());
                columns.push(made.columns()[place].clone());
            } else {
                let options = TakeOptions { out_of_bounds: OutOfBounds::Null };
                fields.push(Arc::new(field.clone()));
                columns.push(take(&empty(field.data_type(), stream)?, &ids, &options, stream).await?);
            }
        }
        fields.push(Arc::new(id_field()));
        columns.push(ids);
        fields.extend_from_slice(&made.schema().fields()[own.len()..]);
        columns.extend_from_slice(&made.columns()[own.len()..]);
        DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, made.len())
    }
}

fn id_field() -> Field {
    Field::new("grouping_id", DataType::UInt64, false)
}

/// The groups, by each set, of all batches so far.
pub(in crate::compute) struct MergedSets {
    of: Sets,
    merged: Vec<Merged>,
    stream: Stream,
}

impl MergedSets {
    /// Adds the groups of a batch.
    pub fn add(&mut self, parts: Vec<Partial>) -> Result<()> {
        self.merged.iter_mut().zip(parts).try_for_each(|(merged, part)| merged.add(part))
    }

    /// Has spilled groups kept elsewhere than in host memory.
    pub fn spill_to(&mut self, spill: &Arc<dyn Spill>) {
        self.merged.iter_mut().for_each(|merged| merged.spill = Some(spill.clone()));
    }

    /// Returns the results for all batches, set by set: a batch for each, or several if groups were spilled.
    pub fn finish(self) -> Result<impl Iterator<Item = Result<DeviceBatch>> + Send + use<>> {
        let MergedSets { of, merged, stream } = self;
        let finished = merged.into_iter().map(Merged::finish).collect::<Result<Vec<_>>>()?;
        Ok(finished.into_iter().enumerate().flat_map(move |(i, finished)| {
            let (of, stream) = (of.clone(), stream.clone());
            finished.map(move |made| {
                let (of, made, on) = (of.clone(), made?, stream.clone());
                begin(&stream, async move { of.spread(&of.sets[i], made, &on).await })?.wait()
            })
        }))
    }
}
