//! The state of binding: a plan under construction.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use arrow_schema::{DataType, Schema};
use bowstring_kernels::map::function::Number;

use super::plan::{Bound, Bytes, Id, Op, Plan, number_of};
use super::print::short;
use super::{Expr, FloatOrder, Options};
use crate::{Error, Result};

/// A node's id with its type.
#[derive(Clone)]
pub(super) struct Typed {
    pub id: Id,
    pub data_type: DataType,
}

/// Binds expressions to one schema.
pub(super) struct Binder<'a> {
    pub schema: &'a Schema,
    pub options: &'a Options,
    pub plan: Plan,
    /// The plan's nodes by their hashes.
    pub alike: HashMap<u64, Vec<Id>>,
    /// The path from the root to the current subexpression.
    pub path: Vec<String>,
}

impl Binder<'_> {
    /// The error for an expression, with the path to it.
    pub fn wrong(&self, expr: &Expr, problem: impl std::fmt::Display) -> Error {
        let at = if self.path.is_empty() { String::new() } else { format!(" (at {})", self.path.join(".")) };
        Error::invalid("expression", format!("{}{at}: {problem}", short(expr)))
    }

    /// The error for a column that the schema does not have.
    pub fn no_column(&self, expr: &Expr, number: Option<usize>) -> Error {
        let columns = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        Error::NoColumn { column: short(expr), number, columns }
    }

    /// Adds a node, or returns an equal existing one.
    pub fn node(&mut self, op: Op, data_type: DataType, inputs: &[&Typed], expr: &Expr) -> Typed {
        let inputs = inputs.iter().map(|input| input.id).collect();
        let node = Bound { op, data_type: data_type.clone(), inputs, written: expr.clone() };
        let alike = self.alike.entry(hash(&node)).or_default();
        let nodes = &mut self.plan.nodes;
        let id = match alike.iter().find(|old| nodes[**old].is_like(&node)) {
            Some(old) => *old,
            None => {
                nodes.push(node);
                alike.push(nodes.len() - 1);
                nodes.len() - 1
            }
        };
        Typed { id, data_type }
    }

    pub fn literal(&mut self, value: Option<i128>, data_type: DataType, expr: &Expr) -> Typed {
        self.node(Op::Literal(value), data_type, &[], expr)
    }

    /// Returns an error if expressions do not support a type.
    pub fn computed(&self, expr: &Expr, data_type: &DataType) -> Result<()> {
        match number_of(data_type) {
            Some(_) => Ok(()),
            None => Err(self.wrong(expr, format!("expressions do not compute with {data_type}"))),
        }
    }

    /// The number type in which a value is computed.
    pub fn number(&self, expr: &Expr, value: &Typed) -> Result<Number> {
        self.computed(expr, &value.data_type)?;
        Ok(number_of(&value.data_type).expect("just looked"))
    }

    /// Converts a value to the form in which it is compared.
    pub fn ordered(&mut self, value: Typed, expr: &Expr) -> Typed {
        if self.options.floats == FloatOrder::Total {
            return value;
        }
        let value = match value.data_type {
            DataType::Float16 => self.node(Op::Cast(true), DataType::Float32, &[&value], expr),
            DataType::Float32 | DataType::Float64 => value,
            _ => return value,
        };
        let data_type = value.data_type.clone();
        self.node(Op::Plain, data_type, &[&value], expr)
    }

    /// Binds a null test. For a constant the result is known at once.
    pub fn valid(&mut self, is_null: bool, value: &Typed, expr: &Expr) -> Typed {
        let null = match &self.plan.nodes[value.id].op {
            Op::Literal(value) => value.is_none(),
            Op::Bytes(_) => false,
            _ => return self.node(Op::Valid(is_null), DataType::Boolean, &[value], expr),
        };
        self.literal(Some(i128::from(null == is_null)), DataType::Boolean, expr)
    }

    /// Binds whether two values are distinct, or whether they are not, where a comparison says if they are
    /// equal. It may be null only where they are not.
    pub fn distinct_unless(
        &mut self,
        equal: &Typed,
        [a, b]: [&Typed; 2],
        is_distinct: bool,
        expr: &Expr,
    ) -> Typed {
        let truth = DataType::Boolean;
        let (no_a, no_b) = (self.valid(true, a, expr), self.valid(true, b, expr));
        let equal = self.node(Op::Test(2), truth.clone(), &[equal], expr);
        let neither = self.node(Op::And, truth.clone(), &[&no_a, &no_b], expr);
        let same = self.node(Op::Or, truth.clone(), &[&equal, &neither], expr);
        if is_distinct { self.node(Op::Not, truth, &[&same], expr) } else { same }
    }
}

/// A hash that is the same for equal nodes.
fn hash(node: &Bound) -> u64 {
    let mut hasher = DefaultHasher::new();
    (std::mem::discriminant(&node.op), &node.data_type, &node.inputs).hash(&mut hasher);
    match &node.op {
        Op::Literal(value) => value.hash(&mut hasher),
        Op::Bytes(Bytes(bytes)) => bytes.hash(&mut hasher),
        Op::Column(index) => index.hash(&mut hasher),
        _ => {}
    }
    hasher.finish()
}
