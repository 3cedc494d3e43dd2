//! What many rows become one of.

use std::fmt;

use arrow_schema::DataType;

use super::{Expr, Literal, if_else, lit};

/// How rows become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Min,
    Max,
    Count,
}

/// What is made of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Value,
    /// Divided by how many there are.
    Mean,
    /// As a truth: zero is false.
    Truth,
}

/// An aggregate of an expression, under a name.
#[derive(Clone, Debug)]
pub struct Aggregation {
    pub(crate) fold: Fold,
    pub(crate) finish: Finish,
    pub(crate) of: Expr,
    pub(crate) name: String,
}

impl Aggregation {
    /// The same under another name.
    pub fn alias(self, name: impl Into<String>) -> Aggregation {
        Aggregation { name: name.into(), ..self }
    }
}

impl fmt::Display for Aggregation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn aggregation(function: &str, fold: Fold, of: Expr, made: Expr) -> Aggregation {
    Aggregation { fold, finish: Finish::Value, name: format!("{function}({of})"), of: made }
}

/// The sum of what is not null; null of nothing. Integers become Int64 or UInt64, decimals the same scale with
/// 38 digits, both exact: what does not fit is an error, or what
/// [`Options::overflow`](super::Options::overflow) says. Float32 and Float64 keep their type; Float16 becomes
/// Float32, which holds the sums of more than a few rows of it. The order in which floats are added is the same
/// on every device, whatever the number of threads (DESIGN.md has it).
pub fn sum(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    aggregation("sum", Fold::Sum, of.clone(), of)
}

/// The least of what is not null; null of nothing. Floats by their total order.
pub fn min(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    aggregation("min", Fold::Min, of.clone(), of)
}

/// The greatest of what is not null; null of nothing. Floats by their total order: NaN is greatest.
pub fn max(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    aggregation("max", Fold::Max, of.clone(), of)
}

/// How many are not null, of any type: Int64.
pub fn count(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    let one =
        if_else(of.clone().is_not_null(), Literal::of(DataType::Int8, 1), Literal::null(DataType::Int8));
    aggregation("count", Fold::Count, of, one)
}

/// How many rows there are: Int64.
pub fn count_all() -> Aggregation {
    let one = lit(Literal::of(DataType::Int8, 1));
    Aggregation { name: "count(*)".to_owned(), ..aggregation("count", Fold::Count, one.clone(), one) }
}

/// The mean of what is not null; null of nothing. Float64, but of decimals a decimal with four more digits behind the point (as
/// far as there are), cut and not rounded, as DataFusion has it.
pub fn mean(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    Aggregation { finish: Finish::Mean, ..aggregation("mean", Fold::Sum, of.clone(), of) }
}

/// Whether all that are not null are true; null of nothing.
pub fn bool_and(of: impl Into<Expr>) -> Aggregation {
    truths("bool_and", Fold::Min, of.into())
}

/// Whether any is true; null of nothing.
pub fn bool_or(of: impl Into<Expr>) -> Aggregation {
    truths("bool_or", Fold::Max, of.into())
}

fn truths(function: &str, fold: Fold, of: Expr) -> Aggregation {
    let int = |value| Literal::of(DataType::Int8, value);
    let known = if_else(of.clone().is_true(), int(1), int(0));
    let value = if_else(of.clone().is_not_null(), known, Literal::null(DataType::Int8));
    Aggregation { finish: Finish::Truth, ..aggregation(function, fold, of, value) }
}
