//! A plan in the making.

use arrow_schema::{DataType, Schema};

use super::Options;
use super::plan::{Bound, Id, Op, Plan};

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
    pub fn node(&mut self, op: Op, data_type: DataType, inputs: &[&Typed], text: &str) -> Typed {
        let inputs = inputs.iter().map(|input| input.id).collect();
        let id = self.plan.add(Bound { op, data_type: data_type.clone(), inputs, text: text.to_owned() });
        Typed { id, data_type }
    }

    pub fn literal(&mut self, value: Option<i128>, data_type: DataType, text: &str) -> Typed {
        self.node(Op::Literal(value), data_type, &[], text)
    }
}
