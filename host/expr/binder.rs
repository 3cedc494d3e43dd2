//! A plan in the making.

use arrow_schema::{DataType, Schema};

use super::plan::{Bound, Id, Op, Plan};
use super::{Expr, Options};
use crate::Error;

/// A node with its type.
#[derive(Clone)]
pub(super) struct Typed {
    pub id: Id,
    pub data_type: DataType,
}

/// Binds to one schema.
pub(super) struct Binder<'a> {
    pub schema: &'a Schema,
    pub options: &'a Options,
    pub plan: Plan,
    /// From the root on: where in the expression we are.
    pub path: Vec<String>,
}

impl Binder<'_> {
    /// What is wrong with an expression, and where it is.
    pub fn wrong(&self, expr: &Expr, problem: impl std::fmt::Display) -> Error {
        let at = if self.path.is_empty() { String::new() } else { format!(" (at {})", self.path.join(".")) };
        Error::invalid("expression", format!("{expr}{at}: {problem}"))
    }

    pub fn node(&mut self, op: Op, data_type: DataType, inputs: &[&Typed], text: &str) -> Typed {
        let inputs = inputs.iter().map(|input| input.id).collect();
        let id = self.plan.add(Bound { op, data_type: data_type.clone(), inputs, text: text.to_owned() });
        Typed { id, data_type }
    }

    pub fn literal(&mut self, value: Option<i128>, data_type: DataType, text: &str) -> Typed {
        self.node(Op::Literal(value), data_type, &[], text)
    }
}
