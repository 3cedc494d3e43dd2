//! Plans: expressions bound to a schema. Each node has a type and refers to its inputs; equal subexpressions
//! share a node.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, IntervalUnit};
use bowstring_kernels::map::function::Number;
pub(crate) use bowstring_kernels::text::search::test::Test as TextTest;

use super::{Arithmetic, Expr};
use crate::Failure;

/// The index of a node in its plan.
pub(crate) type Id = usize;

/// Several expressions over the same columns. The inputs of a node precede it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub nodes: Vec<Bound>,
    /// The rows at which this node is not true are left out, and cannot fail.
    pub condition: Option<Id>,
    /// The nodes that are the results of the expressions.
    pub outputs: Vec<Id>,
}

/// A node: an operation and its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub op: Op,
    pub data_type: DataType,
    pub inputs: Vec<Id>,
    /// The source expression, which is printed in errors that depend on the data.
    pub written: Expr,
}

/// The operation of a node. The result is null if an input is null, unless stated otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// A column of the batch.
    Column(usize),
    /// A column of the batch whose rows fail where an input fails. Those rows are null in the column.
    Checked(usize),
    /// A constant as sign-extended bits; `None` is null.
    Literal(Option<i128>),
    /// A comparison. The bits select when it is true: 1 less, 2 equal, 4 greater.
    Compare(u8),
    /// Like `Compare`, but two nulls are equal, and null differs from every value.
    Distinct(u8),
    And,
    Or,
    Not,
    /// A test of a boolean. The bits select when it is true: 1 false, 2 true, 4 null. Never null.
    Test(u8),
    /// Whether the input is valid (`false`) or null (`true`). Never null.
    Valid(bool),
    /// Arithmetic on integers, decimals (as integers) and floats. A quotient may have a third input, a power
    /// of ten by which the dividend is multiplied first; the product cannot overflow.
    Arithmetic(super::Arithmetic, Bad),
    Negate(Bad),
    /// A decimal times the second input, a power of ten. Null if the third input is null, whatever the
    /// product.
    Scaled(Bad),
    /// A float with a single zero and a single NaN.
    Plain,
    /// Any cast; with `true`, a value that does not fit becomes null.
    Cast(bool),
    /// Selects by a condition: the second input if it is true, otherwise the third.
    Select,
    Coalesce,
    /// The first input, or null if the second is true.
    NullIf,
    /// Whether the input is one of these values, which ascend in the order of their type.
    In(Arc<[i128]>),
    /// A component of a date, from a number of days.
    Date(super::DatePart),
    /// The input, an integer, or null if it is outside of this range. The limits are inside.
    Within(i64, i64),
    /// Division by this constant, rounded down. `FloorRem` is its remainder.
    FloorDiv(i64),
    FloorRem(i64),
    /// An integer converted to a type that has all of its values.
    Widen,
    /// The same text in every row.
    Bytes(Bytes),
    /// A test of a text column, or of a dictionary's values, against another column or a constant text.
    Text(TextTest),
    /// Whether the input is one of these texts, which ascend.
    TextIn(Arc<[Bytes]>),
    /// Some characters of a text, or of a dictionary's texts: the first, counted from the end if negative,
    /// and how many.
    Substring(i64, Option<u64>),
}

/// A text or binary value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub Arc<[u8]>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// The result of a row that overflows or divides by zero.
pub(crate) use bowstring_kernels::program::code::Bad;

impl Bound {
    /// Whether both nodes compute the same.
    pub fn is_like(&self, other: &Bound) -> bool {
        self.op == other.op && self.data_type == other.data_type && self.inputs == other.inputs
    }

    /// Whether a row can fail at this node.
    pub fn can_fail(&self) -> bool {
        matches!(self.op, Op::Arithmetic(_, Bad::Fails) | Op::Negate(Bad::Fails) | Op::Scaled(Bad::Fails))
    }

    /// The column that the node reads; `None` for other operations.
    pub fn column(&self) -> Option<usize> {
        match self.op {
            Op::Column(index) | Op::Checked(index) => Some(index),
            _ => None,
        }
    }
}

impl Plan {
    /// Adds a node, or returns an equal existing one.
    pub fn add(&mut self, node: Bound) -> Id {
        if let Some(old) = self.nodes.iter().position(|old| old.is_like(&node)) {
            return old;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The plan for only these outputs and the nodes that they depend on, without a condition.
    pub fn only(&self, outputs: &[Id]) -> Plan {
        self.part(None, outputs)
    }

    /// The plan without the nodes that its condition and its outputs do not depend on.
    pub fn pruned(&self) -> Plan {
        self.part(self.condition, &self.outputs)
    }

    /// The plan for only this condition and these outputs.
    pub fn part(&self, condition: Option<Id>, outputs: &[Id]) -> Plan {
        let mut plan = Plan { nodes: Vec::with_capacity(self.nodes.len()), ..Plan::default() };
        let mut place = vec![None; self.nodes.len()];
        let mut needed = vec![false; self.nodes.len()];
        condition.iter().chain(outputs).for_each(|id| needed[*id] = true);
        for (id, node) in self.nodes.iter().enumerate().rev() {
            if needed[id] {
                node.inputs.iter().for_each(|input| needed[*input] = true);
            }
        }
        for id in (0..self.nodes.len()).filter(|id| needed[*id]) {
            let Bound { op, data_type, inputs, written } = &self.nodes[id];
            let inputs = inputs.iter().map(|input| place[*input].expect("inputs come first")).collect();
            let (op, data_type, written) = (op.clone(), data_type.clone(), written.clone());
            plan.nodes.push(Bound { op, data_type, inputs, written });
            place[id] = Some(plan.nodes.len() - 1);
        }
        plan.condition = condition.and_then(|id| place[id]);
        plan.outputs = outputs.iter().map(|id| place[*id].expect("outputs are needed")).collect();
        plan
    }

    /// Numbers the columns that the plan reads from 0 on. Returns their old numbers, in the new order.
    pub fn renumber_columns(&mut self) -> Vec<usize> {
        let mut read: Vec<usize> = self.nodes.iter().filter_map(Bound::column).collect();
        read.sort_unstable();
        read.dedup();
        for node in &mut self.nodes {
            if let Op::Column(index) | Op::Checked(index) = &mut node.op {
                *index = read.partition_point(|old| old < index);
            }
        }
        read
    }

    /// Replaces a node by a column that has its values. The nodes that computed it remain.
    pub fn becomes_column(&mut self, id: Id, column: usize) {
        self.nodes[id].op = Op::Column(column);
        self.nodes[id].inputs.clear();
    }

    /// Whether all rows are equal because no column is read.
    pub fn is_constant(&self) -> bool {
        !self.nodes.iter().any(|node| matches!(node.op, Op::Column(_) | Op::Checked(_)))
    }

    /// Replaces a node by a column in which the rows that `failing` nodes fail are null. A row fails only if
    /// its value is used.
    pub fn becomes_checked(&mut self, id: Id, column: usize, failing: Vec<Id>) {
        self.becomes_column(id, column);
        if !failing.is_empty() {
            self.nodes[id].op = Op::Checked(column);
            self.nodes[id].inputs = failing;
        }
    }

    /// The plan with nulls in place of failures.
    pub fn quiet(mut self) -> Plan {
        for node in &mut self.nodes {
            match &mut node.op {
                Op::Arithmetic(_, bad) | Op::Negate(bad) | Op::Scaled(bad) if *bad == Bad::Fails => {
                    *bad = Bad::Null;
                }
                Op::Checked(index) => {
                    node.op = Op::Column(*index);
                    node.inputs.clear();
                }
                _ => {}
            }
        }
        self.pruned()
    }

    /// Whether a row can fail at any node.
    pub fn can_fail(&self) -> bool {
        self.nodes.iter().any(Bound::can_fail)
    }

    /// The reason why a row fails at a node. [`Failure::Either`] if only the value of the divisor tells.
    pub fn failure(&self, id: Id) -> Failure {
        let node = &self.nodes[id];
        let divisor = match node.op {
            Op::Arithmetic(Arithmetic::Rem, _) => return Failure::DivisionByZero,
            Op::Arithmetic(Arithmetic::Div, _) => node.inputs[1],
            _ => return Failure::Overflow,
        };
        let mut of_divisor = divisor;
        while self.nodes[of_divisor].op == Op::Widen {
            of_divisor = self.nodes[of_divisor].inputs[0];
        }
        match self.nodes[of_divisor].op {
            Op::Literal(Some(0)) => Failure::DivisionByZero,
            Op::Literal(Some(_)) => Failure::Overflow,
            _ if node.inputs.len() > 2 => Failure::Either,
            // Only the minimum of a signed integer type has a quotient that overflows, and no decimal has
            // that value.
            _ if node.data_type.is_signed_integer() => Failure::Either,
            _ => Failure::DivisionByZero,
        }
    }

    /// The number type in which a node is computed.
    pub fn number(&self, id: Id) -> Number {
        number_of(&self.nodes[id].data_type).expect("bound nodes have types that are computed")
    }

    /// Whether each node may be null, given which columns may be.
    pub fn nullable(&self, column: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut nullable: Vec<bool> = vec![];
        for node in &self.nodes {
            let any = |inputs: &[Id]| inputs.iter().any(|input| nullable[*input]);
            let is = match &node.op {
                Op::Column(index) | Op::Checked(index) => column(*index),
                Op::Literal(value) => value.is_none(),
                Op::Distinct(_) | Op::Test(_) | Op::Valid(_) | Op::Bytes(_) => false,
                Op::Arithmetic(_, Bad::Null) | Op::Negate(Bad::Null) | Op::Scaled(Bad::Null) => true,
                Op::Cast(true) | Op::NullIf | Op::Within(..) => true,
                Op::Select => any(&node.inputs[1..]),
                Op::Coalesce => node.inputs.iter().all(|input| nullable[*input]),
                _ => any(&node.inputs),
            };
            nullable.push(is);
        }
        nullable
    }

    /// The memory that the plan takes, in bytes.
    pub fn bytes(&self) -> usize {
        let more = |node: &Bound| match &node.op {
            Op::In(values) => size_of_val(&**values),
            Op::Bytes(Bytes(bytes)) => bytes.len(),
            Op::TextIn(list) => list.iter().map(|Bytes(bytes)| size_of::<Bytes>() + bytes.len()).sum(),
            _ => 0,
        };
        self.nodes.iter().fold(0, |sum, node| sum + size_of::<Bound>() + more(node))
    }
}

/// The number type in which values of a type are computed; `None` if expressions do not support the type.
pub(crate) fn number_of(data_type: &DataType) -> Option<Number> {
    use DataType::*;
    Some(match data_type {
        Boolean => Number::Bit,
        Int8 => Number::I8,
        Int16 => Number::I16,
        Int32 | Date32 | Time32(_) | Decimal32(..) | Interval(IntervalUnit::YearMonth) => Number::I32,
        Int64 | Date64 | Time64(_) | Timestamp(..) | Duration(_) | Decimal64(..) => Number::I64,
        UInt8 => Number::U8,
        UInt16 => Number::U16,
        UInt32 => Number::U32,
        UInt64 => Number::U64,
        Float16 => Number::F16,
        Float32 => Number::F32,
        Float64 => Number::F64,
        Decimal128(..) => Number::I128,
        _ => return None,
    })
}

/// Whether a type is text or binary of variable length.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// The type as which a value is compared: for a dictionary, the type of its values.
pub(crate) fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, node) in self.nodes.iter().enumerate() {
            let inputs: Vec<String> = node.inputs.iter().map(|input| format!("%{input}")).collect();
            writeln!(f, "%{id} = {:?}({}): {}", node.op, inputs.join(", "), node.data_type)?;
        }
        let outputs: Vec<String> = self.outputs.iter().map(|id| format!("%{id}")).collect();
        let condition = self.condition.map(|id| format!("where %{id}"));
        let outputs = (!outputs.is_empty()).then(|| format!("return {}", outputs.join(", ")));
        f.write_str(&condition.into_iter().chain(outputs).collect::<Vec<_>>().join("\n"))
    }
}
