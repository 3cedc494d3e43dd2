//! What expressions are bound to: nodes of which each has its type and names what it is made of. Equal parts are one node.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, IntervalUnit};
use bowstring_kernels::function::Number;
use bowstring_kernels::text::Test as TextTest;

use super::{Arithmetic, Expr};
use crate::Failure;

/// The number of a node.
pub(crate) type Id = usize;

/// What several expressions of the same columns come to. What a node is made of comes before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub nodes: Vec<Bound>,
    /// The expressions.
    pub roots: Vec<Id>,
}

/// A node: what it does, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub op: Op,
    pub data_type: DataType,
    pub inputs: Vec<Id>,
    /// As it was written, for errors of the data: printed when there is one.
    pub written: Expr,
}

/// What a node does. What is made of a null is null unless it says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// A column of the batch.
    Column(usize),
    /// The same; and rows that one of the inputs fails, which are null in it, fail.
    Checked(usize),
    /// The same value in every row, by its bits, sign-extended; `None` is null.
    Literal(Option<i128>),
    /// Whether the two are as the bits say: 1 less, 2 equal, 4 greater.
    Compare(u8),
    /// The same, where nulls are equal to each other and to nothing else.
    Distinct(u8),
    And,
    Or,
    Not,
    /// What the bits say: of false 1, of true 2, of null 4. Never null.
    Test(u8),
    /// Whether it is valid, or whether it is null. Never null.
    Valid(bool),
    /// Integers, decimals as integers, floats.
    Arithmetic(super::Arithmetic, Bad),
    Negate(Bad),
    /// A decimal times the second, a power of ten; but null where the third is, whatever the product.
    Scaled(Bad),
    /// A float with one zero and one NaN.
    Plain,
    /// Any cast; `true` makes nulls of what does not fit.
    Cast(bool),
    /// By a condition: where it is true, else.
    Select,
    Coalesce,
    /// The first, but null where the second is true.
    NullIf,
    /// Whether it is one of these, which ascend in the order of their type.
    In(Arc<[i128]>),
    /// Of days.
    Date(super::DatePart),
    /// The integer, but null where it is not one of these or between them.
    Within(i64, i64),
    /// Divided by this, rounded down; and what that leaves.
    FloorDiv(i64),
    FloorRem(i64),
    /// An integer as one of another type that has all of its values.
    Widen,
    /// The same text in every row.
    Bytes(Bytes),
    /// A test of a column of text, or of a dictionary's, against another column or the same text for all rows.
    Text(TextTest),
    /// Whether it is one of these texts, which ascend.
    TextIn(Arc<[Bytes]>),
}

/// Text, or any bytes, that is a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Bytes(pub Arc<[u8]>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

/// What becomes of results that do not fit.
pub(crate) use bowstring_kernels::program::code::Bad;

impl Bound {
    /// Whether it comes to the same.
    pub fn is_like(&self, other: &Bound) -> bool {
        self.op == other.op && self.data_type == other.data_type && self.inputs == other.inputs
    }

    /// Whether a row can fail here.
    pub fn can_fail(&self) -> bool {
        matches!(self.op, Op::Arithmetic(_, Bad::Fails) | Op::Negate(Bad::Fails) | Op::Scaled(Bad::Fails))
    }

    /// The column that it reads, if it does.
    pub fn column(&self) -> Option<usize> {
        match self.op {
            Op::Column(index) | Op::Checked(index) => Some(index),
            _ => None,
        }
    }
}

impl Plan {
    /// A node that is like this one, new or not.
    pub fn add(&mut self, node: Bound) -> Id {
        if let Some(old) = self.nodes.iter().position(|old| old.is_like(&node)) {
            return old;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The plan of nothing but what these are made of.
    pub fn only(&self, roots: &[Id]) -> Plan {
        let mut plan = Plan::default();
        let mut place = vec![None; self.nodes.len()];
        let mut needed = vec![false; self.nodes.len()];
        roots.iter().for_each(|root| needed[*root] = true);
        for (id, node) in self.nodes.iter().enumerate().rev() {
            if needed[id] {
                node.inputs.iter().for_each(|input| needed[*input] = true);
            }
        }
        for id in (0..self.nodes.len()).filter(|id| needed[*id]) {
            let mut node = self.nodes[id].clone();
            node.inputs = node.inputs.iter().map(|input| place[*input].expect("inputs come first")).collect();
            plan.nodes.push(node);
            place[id] = Some(plan.nodes.len() - 1);
        }
        plan.roots = roots.iter().map(|root| place[*root].expect("roots are needed")).collect();
        plan
    }

    /// Has a node read from a column what it would compute. What it was made of stays.
    pub fn becomes_column(&mut self, id: Id, column: usize) {
        self.nodes[id].op = Op::Column(column);
        self.nodes[id].inputs.clear();
    }

    /// Whether all rows are alike, as many as there are: no column is read.
    pub fn is_constant(&self) -> bool {
        !self.nodes.iter().any(|node| matches!(node.op, Op::Column(_) | Op::Checked(_)))
    }

    /// The same, where rows that these fail are null in the column, and fail only where somebody asks for it.
    pub fn becomes_checked(&mut self, id: Id, column: usize, failing: Vec<Id>) {
        self.becomes_column(id, column);
        if !failing.is_empty() {
            self.nodes[id].op = Op::Checked(column);
            self.nodes[id].inputs = failing;
        }
    }

    /// The same with nulls for rows that would fail.
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
        self.only(&self.roots)
    }

    /// Whether a row can fail.
    pub fn can_fail(&self) -> bool {
        self.nodes.iter().any(Bound::can_fail)
    }

    /// Why a row fails at a node, unless its divisor has to be looked at for that.
    pub fn failure(&self, id: Id) -> Failure {
        let node = &self.nodes[id];
        let divisor = match node.op {
            Op::Arithmetic(Arithmetic::Rem, _) => return Failure::DivisionByZero,
            Op::Arithmetic(Arithmetic::Div, _) => node.inputs[1],
            _ => return Failure::Overflow,
        };
        match self.nodes[divisor].op {
            Op::Literal(Some(0)) => Failure::DivisionByZero,
            Op::Literal(Some(_)) => Failure::Overflow,
            // Only the least of the signed integers has a quotient that overflows, and no decimal is that.
            _ if node.data_type.is_signed_integer() => Failure::Either,
            _ => Failure::DivisionByZero,
        }
    }

    /// How a node's values are computed.
    pub fn number(&self, id: Id) -> Number {
        number_of(&self.nodes[id].data_type).expect("bound nodes have types that are computed")
    }

    /// Which nodes may be null, if these columns may.
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

    /// How much memory it takes.
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

/// How values of a type are computed: `None` where they are not.
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

/// Types of text and of bytes of any length.
pub(crate) fn is_text(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, Utf8 | LargeUtf8 | Utf8View | Binary | LargeBinary | BinaryView)
}

/// What a value is compared as: one of a dictionary as those that it has.
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
        let roots: Vec<String> = self.roots.iter().map(|root| format!("%{root}")).collect();
        write!(f, "return {}", roots.join(", "))
    }
}
