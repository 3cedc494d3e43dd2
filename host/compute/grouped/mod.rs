//! Queries that group rows by keys.
//!
//! The one idea: each batch becomes groups with folds of its values, which take no decision that a later
//! batch could change: sums are exact, means are a sum and a count. Such folds are folded again when batches
//! meet, and become results at the end.

use std::sync::Arc;

use arrow_array::new_empty_array;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::evaluated::{Evaluated, begin};
use super::nullability::never_null;
use super::{CastOptions, TakeOptions, cast, concat, engine, group, take};
use crate::engine::GroupFold;
use crate::exchange::from_arrow;
use crate::expr::bind::bind;
use crate::expr::plan::{Bound, Id, Op, Plan};
use crate::expr::print::name;
use crate::expr::{Aggregation, Expr, Finish, Fold, Options, Overflow, nth};
use crate::rules::{folded_type, prepared, result_type};
use crate::{DeviceArray, DeviceBatch, Error, Result, Stream};

/// A query's groups, bound to a schema.
#[derive(Clone, Debug)]
pub(super) struct Grouped {
    /// The keys, and then the values that are folded.
    columns: Evaluated,
    keys: usize,
    folds: Vec<Folds>,
    results: Vec<Results>,
    overflow: Overflow,
}

/// A fold of one of the columns.
#[derive(Clone, Debug, PartialEq)]
struct Folds {
    fold: Fold,
    /// Which of the columns is folded; `None` counts rows.
    of: Option<usize>,
    wraps: bool,
    to: DataType,
}

/// An aggregate's result, made of folds.
#[derive(Clone, Debug)]
struct Results {
    field: Field,
    finish: Finish,
    fold: usize,
    /// The count that a mean is divided by.
    count: usize,
    /// The digits by which the point of a decimal's mean moves.
    up: u32,
}

/// The groups of some rows: a batch of their keys, and the folds of their values.
#[derive(Clone, Debug)]
pub(super) struct Partial {
    keys: DeviceBatch,
    folds: Vec<DeviceArray>,
}

impl Grouped {
    /// Binds keys and aggregates to a schema.
    pub fn bind(
        keys: &[Expr],
        aggregations: &[Aggregation],
        schema: &Schema,
        options: &Options,
    ) -> Result<Grouped> {
        let exprs: Vec<Expr> = keys.iter().chain(aggregations.iter().map(|one| &one.of)).cloned().collect();
        let mut plan = bind(None, &exprs, schema, options)?;
        let of = plan.outputs.split_off(keys.len());
        let mut grouped = Grouped {
            columns: Evaluated::of(Plan::default(), vec![], schema)?,
            keys: keys.len(),
            folds: vec![],
            results: vec![],
            overflow: options.overflow,
        };
        for (one, of) in aggregations.iter().zip(of) {
            grouped.add(one, &mut plan, of)?;
        }
        let mut names: Vec<String> = keys.iter().map(|key| name(key, schema)).collect();
        names.resize(plan.outputs.len(), String::new());
        grouped.columns = Evaluated::of(plan.pruned(), names, schema)?;
        Ok(grouped)
    }

    /// Adds an aggregate of a node.
    fn add(&mut self, one: &Aggregation, plan: &mut Plan, of: Id) -> Result<()> {
        let of = prepared(one, plan, of)?;
        let from = plan.nodes[of].data_type.clone();
        let none = || Error::invalid("expression", format!("{one}: no such aggregate of {from}"));
        let to = result_type(one, &from).ok_or_else(none)?;
        let wraps = one.fold == Fold::Sum && self.overflow == Overflow::Wrap && to.is_integer();
        let (of, up) = match (one.fold, &from, &to) {
            // Each row counts if the counted value is the same in every row.
            (Fold::Count, ..) if matches!(plan.nodes[of].op, Op::Literal(Some(_))) => (None, 0),
            (Fold::Sum, from, to) => {
                let up = match (one.finish, scale(from), scale(to)) {
                    (Finish::Mean, Some(from), Some(to)) => (i32::from(to) - i32::from(from)).unsigned_abs(),
                    _ => 0,
                };
                let wide = widened(plan, of);
                (Some(column(plan, wide)), up)
            }
            _ => (Some(column(plan, of)), 0),
        };
        let fold = self.fold(one.fold, of, wraps, plan).ok_or_else(none)?;
        let count = match one.finish {
            Finish::Mean => self.fold(Fold::Count, of, false, plan).ok_or_else(none)?,
            _ => fold,
        };
        let field = Field::new(&one.name, to, one.fold != Fold::Count);
        self.results.push(Results { field, finish: one.finish, fold, count, up });
        Ok(())
    }

    /// Returns the number of a fold, which is added if there is none like it.
    fn fold(&mut self, fold: Fold, of: Option<usize>, wraps: bool, plan: &Plan) -> Option<usize> {
        let from = of.map_or(DataType::Null, |of| plan.nodes[plan.outputs[of]].data_type.clone());
        let new = Folds { fold, of, wraps, to: folded_type(fold, &from, wraps)? };
        let at = self.folds.iter().position(|old| *old == new);
        Some(at.unwrap_or_else(|| {
            self.folds.push(new);
            self.folds.len() - 1
        }))
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
        let keys = self.columns.fields[..self.keys].iter().cloned();
        Arc::new(Schema::new(
            keys.chain(self.results.iter().map(|one| one.field.clone())).collect::<Vec<_>>(),
        ))
    }

    /// Whether the stream's device groups by these keys.
    pub fn check(&self, stream: &Stream) -> Result<()> {
        let keys = self.columns.fields[..self.keys].iter();
        let keys = keys.map(|key| empty(key.data_type(), stream)).collect::<Result<Vec<_>>>()?;
        group(&keys, stream).wait().map(|_| ())
    }

    /// Groups rows, and folds their values.
    pub async fn partial(self, rows: DeviceBatch, stream: Stream) -> Result<Partial> {
        let columns = self.columns.clone().evaluate(rows, stream.clone()).await?;
        let folds: Vec<GroupFold> = self.folds.iter().map(|one| one.of(columns.columns())).collect();
        self.fold_groups(&only(&columns, self.keys)?, &folds, &stream).await
    }

    /// Folds the folds of several parts.
    async fn together(&self, parts: &[Partial], stream: &Stream) -> Result<Partial> {
        let keys = concat(&parts.iter().map(|part| &part.keys).collect::<Vec<_>>(), stream).await?;
        let mut folds = vec![];
        for (i, one) in self.folds.iter().enumerate() {
            let values = concat(&parts.iter().map(|part| &part.folds[i]).collect::<Vec<_>>(), stream).await?;
            folds.push(one.again(values));
        }
        self.fold_groups(&keys, &folds, stream).await
    }

    async fn fold_groups(&self, keys: &DeviceBatch, folds: &[GroupFold], stream: &Stream) -> Result<Partial> {
        let groups = group(keys.columns(), stream).await?;
        let first = take(keys, groups.firsts(), &TakeOptions::default(), stream);
        let folded = match (folds, groups.len()) {
            ([], _) => vec![],
            (_, 0) => self.folds.iter().map(|one| empty(&one.to, stream)).collect::<Result<_>>()?,
            _ => engine(stream).fold_groups(folds, &groups, stream)?.await?,
        };
        Ok(Partial { keys: first.await?, folds: folded })
    }

    /// Makes results of folds.
    pub async fn finish(self, made: Partial, stream: Stream) -> Result<DeviceBatch> {
        let rows = made.keys.len();
        let mut columns = made.keys.columns().to_vec();
        let mut fields: Vec<Field> = made.keys.schema().fields().iter().map(|key| (**key).clone()).collect();
        for one in &self.results {
            columns.push(self.result(one, &made, &stream).await?);
            fields.push(one.field.clone());
        }
        DeviceBatch::try_new(Arc::new(Schema::new(fields)), columns, rows)
    }

    async fn result(&self, one: &Results, made: &Partial, stream: &Stream) -> Result<DeviceArray> {
        let (folded, to) = (&made.folds[one.fold], one.field.data_type());
        let options = CastOptions { safe: self.overflow == Overflow::Null, ..CastOptions::default() };
        match (one.finish, to) {
            (Finish::Mean, DataType::Decimal128(_, scale)) => {
                let counts = &made.folds[one.count];
                engine(stream).divide_sums(folded, counts, one.up, *scale, options.safe, stream)
            }
            (Finish::Mean, _) => {
                let columns = [("sum", folded), ("count", &made.folds[one.count])];
                let field = |(name, of): (&str, &DeviceArray)| Field::new(name, of.data_type().clone(), true);
                let schema = Schema::new(columns.map(field).to_vec());
                let columns = columns.map(|(_, of)| of.clone()).to_vec();
                let both = DeviceBatch::try_new(Arc::new(schema), columns, folded.len())?;
                let mean = [nth(0) / nth(1).cast(DataType::Float64)];
                let mean = Evaluated::bind(&mean, both.schema(), &Options::default())?;
                Ok(mean.evaluate(both, stream.clone()).await?.columns()[0].clone())
            }
            // Integers become durations as they are.
            (_, DataType::Duration(_)) if *folded.data_type() != *to => {
                let whole = cast(folded, &DataType::Int64, &options, stream).await?;
                cast(&whole, to, &options, stream).await
            }
            _ if folded.data_type() == to => Ok(folded.clone()),
            _ => cast(folded, to, &options, stream).await,
        }
    }
}

impl Folds {
    /// The fold of some of these columns.
    fn of(&self, columns: &[DeviceArray]) -> GroupFold {
        let values = self.of.map(|of| columns[of].clone());
        GroupFold { fold: self.fold, values, wraps: self.wraps }
    }

    /// The fold of folded values.
    fn again(&self, values: DeviceArray) -> GroupFold {
        // Counts are summed; they are in no danger of wrapping around.
        let (fold, wraps) = match self.fold {
            Fold::Count => (Fold::Sum, true),
            fold => (fold, self.wraps),
        };
        GroupFold { fold, values: Some(values), wraps }
    }
}

/// The groups of all batches so far.
pub(super) struct Merged {
    grouped: Grouped,
    stream: Stream,
    /// The first are the merged ones; the others wait until they have as many rows.
    parts: Vec<Partial>,
    waiting: usize,
}

/// Groups of fewer rows are not worth merging.
const WORTH: usize = 1 << 16;

impl Merged {
    pub fn new(grouped: Grouped, stream: Stream) -> Merged {
        Merged { grouped, stream, parts: vec![], waiting: 0 }
    }

    /// Adds the groups of a batch.
    pub fn add(&mut self, part: Partial) -> Result<()> {
        self.waiting += part.keys.len();
        self.parts.push(part);
        if self.waiting > self.parts[0].keys.len().max(WORTH) { self.merge() } else { Ok(()) }
    }

    fn merge(&mut self) -> Result<()> {
        self.waiting = 0;
        if self.parts.len() > 1 {
            let (grouped, parts, on) =
                (self.grouped.clone(), std::mem::take(&mut self.parts), self.stream.clone());
            let merged = begin(&self.stream, async move {
                let mut merged = grouped.together(&parts, &on).await?;
                for (fold, values) in grouped.folds.iter().zip(&mut merged.folds) {
                    if fold.fold == Fold::Count {
                        *values = never_null(values)?;
                    }
                }
                Ok(merged)
            });
            self.parts.push(merged?.wait()?);
        }
        Ok(())
    }

    /// Returns the results for all batches.
    pub fn finish(mut self) -> Result<DeviceBatch> {
        if self.parts.is_empty() {
            let schema = &self.grouped.columns.schema;
            let columns = schema.fields().iter().map(|field| empty(field.data_type(), &self.stream));
            let none = DeviceBatch::try_new(schema.clone(), columns.collect::<Result<_>>()?, 0)?;
            let none = self.grouped.clone().partial(none, self.stream.clone());
            self.parts.push(begin(&self.stream, none)?.wait()?);
        }
        self.merge()?;
        let Some(merged) = self.parts.pop() else { return Err(Error::invalid("query", "no groups")) };
        let finished = self.grouped.clone().finish(merged, self.stream.clone());
        begin(&self.stream, finished)?.wait()
    }
}

/// Returns the number of the output that a node is; makes it one if it is none.
fn column(plan: &mut Plan, of: Id) -> usize {
    let at = plan.outputs.iter().position(|output| *output == of);
    at.unwrap_or_else(|| {
        plan.outputs.push(of);
        plan.outputs.len() - 1
    })
}

/// Returns the node with its integers or decimals as wide as sums are.
fn widened(plan: &mut Plan, of: Id) -> Id {
    let from = &plan.nodes[of].data_type;
    let to = match from {
        from if from.is_signed_integer() => DataType::Int64,
        from if from.is_unsigned_integer() => DataType::UInt64,
        DataType::Duration(_) => DataType::Int64,
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => DataType::Decimal128(38, *scale),
        _ => return of,
    };
    if to == *from {
        return of;
    }
    let written = plan.nodes[of].written.clone();
    plan.add(Bound { op: Op::Cast(false), data_type: to, inputs: vec![of], written })
}

/// The scale of a decimal.
fn scale(of: &DataType) -> Option<i8> {
    match of {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            Some(*scale)
        }
        _ => None,
    }
}

/// The first columns of a batch.
fn only(batch: &DeviceBatch, columns: usize) -> Result<DeviceBatch> {
    let fields: Vec<_> = batch.schema().fields()[..columns].to_vec();
    DeviceBatch::try_new(Arc::new(Schema::new(fields)), batch.columns()[..columns].to_vec(), batch.len())
}

/// An array without rows.
fn empty(of: &DataType, stream: &Stream) -> Result<DeviceArray> {
    stream.upload(&from_arrow(&new_empty_array(of))?)
}
