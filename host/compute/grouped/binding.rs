//! Binds keys and aggregates to a schema: which columns are computed, and what is kept of them.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};

use super::finish::{Made, Results};
use super::kept::Kept;
use super::states::{Again, Folds, Row, Squares, State, Which};
use crate::compute::arrays::sql_key;
use crate::compute::evaluated::Evaluated;
use crate::expr::bind::bind;
use crate::expr::plan::{Bound as Node, Id, Op, Plan};
use crate::expr::print::name;
use crate::expr::{
    Aggregation, Expr, Finish, FloatOrder, Fold, Folding, Function, Literal, Options, Overflow, Reduction,
    lit,
};
use crate::rules::{folded_type, has_extremes, prepared, result_type};
use crate::{Error, Result};

/// Keys and aggregates that are bound.
pub(super) struct Bound {
    pub columns: Evaluated,
    pub states: Vec<State>,
    pub kept: Vec<Kept>,
    pub results: Vec<Results>,
}

const COUNT: Reduction = Reduction::Fold(Fold::Count);

struct Binder<'a> {
    plan: Plan,
    options: &'a Options,
    states: Vec<State>,
    kept: Vec<Kept>,
    results: Vec<Results>,
}

/// Binds keys and aggregates. Without keys, there is one that is the same in all rows.
pub(super) fn bound(
    keys: &[Expr],
    aggregations: &[Aggregation],
    schema: &Schema,
    options: &Options,
) -> Result<Bound> {
    let of: Vec<Expr> = aggregations.iter().map(|one| one.of.clone()).collect();
    let typed = bind(None, &of, schema, options)?;
    let type_of = |i: usize| &typed.nodes[typed.outputs[i]].data_type;
    let mut exprs = if keys.is_empty() { vec![lit(false)] } else { keys.to_vec() };
    let mut names: Vec<String> = exprs.iter().map(|key| name(key, schema)).collect();
    if options.floats == FloatOrder::Sql {
        let typed = bind(None, &exprs, schema, options)?;
        for (key, id) in exprs.iter_mut().zip(&typed.outputs) {
            *key = sql_key(key, &typed.nodes[*id].data_type).unwrap_or_else(|| key.clone());
        }
    }
    let mut read = vec![];
    for (i, one) in aggregations.iter().enumerate() {
        let mut needed = needed(one, type_of(i))?;
        if options.floats == FloatOrder::Sql && one.function == Function::CountDistinct {
            // Values are as different as those of keys.
            needed[0] = sql_key(&needed[0], type_of(i)).unwrap_or_else(|| needed[0].clone());
        }
        read.push(exprs.len()..exprs.len() + needed.len());
        exprs.extend(needed);
    }
    let mut plan = bind(None, &exprs, schema, options)?;
    let all = plan.outputs.clone();
    plan.outputs.truncate(names.len());
    let mut binder = Binder { plan, options, states: vec![], kept: vec![], results: vec![] };
    for (i, (one, read)) in aggregations.iter().zip(read).enumerate() {
        let (made, to) = binder.made(one, type_of(i), &all[read])?;
        let counts = matches!(one.function, Function::CountDistinct | Function::Fold(Fold::Count, _));
        binder.results.push(Results { field: Field::new(&one.name, to, !counts), made });
    }
    let Binder { plan, states, kept, results, .. } = binder;
    names.resize(plan.outputs.len(), String::new());
    Ok(Bound { columns: Evaluated::of(plan.pruned(), names, schema)?, states, kept, results })
}

/// Whether an aggregate is the value of one of the rows, and of which.
fn row_of(one: &Aggregation, of: &DataType) -> Option<Which> {
    let is_number = has_extremes(of);
    match one.function {
        Function::Row { last: false, .. } => Some(Which::First),
        Function::Row { last: true, .. } => Some(Which::Last),
        Function::Fold(Fold::Min, Finish::Value) if !is_number => Some(Which::Least),
        Function::Fold(Fold::Max, Finish::Value) if !is_number => Some(Which::Greatest),
        _ => None,
    }
}

/// The expressions that an aggregate of values of a type needs.
fn needed(one: &Aggregation, of: &DataType) -> Result<Vec<Expr>> {
    let unfit = || Error::invalid("expression", format!("{one}: no such aggregate of {of}"));
    let numbers = || match of.is_numeric() {
        true => Ok(vec![one.filtered(one.of.clone().cast(DataType::Float64))]),
        false => Err(unfit()),
    };
    if row_of(one, of).is_some() {
        let valid = !matches!(one.function, Function::Row { nulls: true, .. });
        let mut needed: Vec<Expr> = [Some(one.of.clone()), one.counts(valid)].into_iter().flatten().collect();
        if !valid && one.filter.is_some() {
            needed.push(one.filtered(lit(Literal::of(DataType::Int8, 1))));
        }
        return Ok(needed);
    }
    match one.function {
        Function::Bits(_) if of.is_integer() => Ok(vec![one.filtered(one.of.clone())]),
        Function::Bits(_) => Err(unfit()),
        Function::Variance { .. } => numbers(),
        Function::Quantile(part) if (0.0..=1.0).contains(&part) => numbers(),
        Function::Quantile(part) => {
            Err(Error::invalid("expression", format!("{one}: {part} is not between 0 and 1")))
        }
        Function::CountDistinct | Function::Array => {
            let counts = one.counts(one.function == Function::CountDistinct);
            Ok([Some(one.of.clone()), counts].into_iter().flatten().collect())
        }
        Function::Fold(..) | Function::Row { .. } => one.folding().map(|one| vec![one.of]).ok_or_else(unfit),
    }
}

impl Binder<'_> {
    /// Adds what an aggregate of values of a type keeps. `read` are the nodes that it [`needed`].
    fn made(&mut self, one: &Aggregation, of: &DataType, read: &[Id]) -> Result<(Made, DataType)> {
        if let Some(which) = row_of(one, of) {
            let nulls = matches!(one.function, Function::Row { nulls: true, .. });
            let (values, counts) = (self.column(read[0]), read.get(1).map(|counts| self.column(*counts)));
            let again = match (nulls, read.get(2)) {
                (false, _) => Again::Valid,
                (true, None) => Again::All,
                (true, Some(ones)) => Again::Some(self.fold(COUNT, Some(*ones), false)?),
            };
            let row = Row { which, of: values, counts, again };
            return Ok((Made::State(self.state(State::Row(row))), of.clone()));
        }
        match (one.function, one.folding()) {
            (Function::Bits(bits), _) => {
                let state = self.fold(Reduction::Bits(bits), Some(read[0]), false)?;
                Ok((Made::State(state), of.clone()))
            }
            (Function::Variance { ddof, root }, _) => {
                let sum = self.fold(Reduction::Fold(Fold::Sum), Some(read[0]), false)?;
                let count = self.fold(COUNT, Some(read[0]), false)?;
                let of = self.column(read[0]);
                let squares = self.state(State::Squares(Squares { of, sum, count }));
                Ok((Made::Variance { squares, count, ddof, root }, DataType::Float64))
            }
            (Function::Quantile(part), _) => {
                let of = self.column(read[0]);
                let kept = self.kept(Kept { of, counts: None, distinct: false });
                Ok((Made::Quantile(kept, part), DataType::Float64))
            }
            (Function::CountDistinct, _) => {
                let (of, counts) = (self.column(read[0]), Some(self.column(read[1])));
                let kept = self.kept(Kept { of, counts, distinct: true });
                Ok((Made::Distinct(kept), DataType::Int64))
            }
            (Function::Array, _) => {
                let counts = read.get(1).map(|counts| self.column(*counts));
                let of_values = self.column(read[0]);
                let kept = self.kept(Kept { of: of_values, counts, distinct: false });
                let item = Field::new_list_field(of.clone(), true);
                Ok((Made::List(kept), DataType::List(Arc::new(item))))
            }
            (_, Some(folding)) => self.folded(&folding, read[0]),
            (_, None) => Err(Error::invalid("expression", format!("{one}: no such aggregate of {of}"))),
        }
    }

    /// Adds the states of a fold of a node.
    fn folded(&mut self, one: &Folding, of: Id) -> Result<(Made, DataType)> {
        let of = prepared(one, &mut self.plan, of)?;
        let from = self.plan.nodes[of].data_type.clone();
        let none = || Error::invalid("expression", format!("{one}: no such aggregate of {from}"));
        let to = result_type(one, &from).ok_or_else(none)?;
        let is_integer = to.is_integer() || matches!(to, DataType::Duration(_));
        let wraps = one.fold == Fold::Sum && self.options.overflow == Overflow::Wrap && is_integer;
        let of = match one.fold {
            // Each row counts if the counted value is the same in every row.
            Fold::Count if matches!(self.plan.nodes[of].op, Op::Literal(Some(_))) => None,
            Fold::Sum => Some(self.widened(of)),
            _ => Some(of),
        };
        let state = self.fold(Reduction::Fold(one.fold), of, wraps)?;
        if one.finish != Finish::Mean {
            return Ok((Made::State(state), to));
        }
        let up = match (scale(&from), scale(&to)) {
            (Some(from), Some(to)) => (i32::from(to) - i32::from(from)).unsigned_abs(),
            _ => 0,
        };
        let count = self.fold(COUNT, of, false)?;
        Ok((Made::Mean { sum: state, count, up }, to))
    }

    /// Returns the number of a fold, which is added if there is none like it.
    fn fold(&mut self, fold: Reduction, of: Option<Id>, wraps: bool) -> Result<usize> {
        let from = of.map_or(DataType::Null, |of| self.plan.nodes[of].data_type.clone());
        let unfit = || Error::invalid("expression", format!("no {fold:?} of {from}"));
        folded_type(fold, &from, wraps).ok_or_else(unfit)?;
        let of = of.map(|of| self.column(of));
        Ok(self.state(State::Fold(Folds { fold, of, wraps })))
    }

    fn state(&mut self, new: State) -> usize {
        place_of(&mut self.states, new)
    }

    fn kept(&mut self, new: Kept) -> usize {
        place_of(&mut self.kept, new)
    }

    /// Returns the number of the column that a node is, which is added if it is none.
    fn column(&mut self, of: Id) -> usize {
        place_of(&mut self.plan.outputs, of)
    }

    /// Returns the node with its integers or decimals as wide as sums are.
    fn widened(&mut self, of: Id) -> Id {
        let from = &self.plan.nodes[of].data_type;
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
        let written = self.plan.nodes[of].written.clone();
        self.plan.add(Node { op: Op::Cast(false), data_type: to, inputs: vec![of], written })
    }
}

/// Returns the place of an item, which is added if it is missing.
fn place_of<T: PartialEq>(items: &mut Vec<T>, new: T) -> usize {
    items.iter().position(|old| *old == new).unwrap_or_else(|| {
        items.push(new);
        items.len() - 1
    })
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
