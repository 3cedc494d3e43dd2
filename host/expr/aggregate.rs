//! Aggregate functions.

use std::fmt;

use arrow_schema::DataType;

use super::{Expr, Literal, if_else, lit};

/// The function that reduces rows to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Min,
    Max,
    Count,
}

/// The conversion of the reduced value into the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Value,
    /// Divided by the number of values.
    Mean,
    /// Converted to a boolean: zero is false.
    Truth,
}

/// An aggregate of an expression, with the name of its result.
#[derive(Clone, Debug)]
pub struct Aggregation {
    pub(crate) fold: Fold,
    pub(crate) finish: Finish,
    pub(crate) of: Expr,
    pub(crate) name: String,
}

impl Aggregation {
    /// Renames the result column.
    pub fn alias(self, name: impl Into<String>) -> Aggregation {
        Aggregation { name: name.into(), ..self }
    }
}

impl From<&Aggregation> for Aggregation {
    fn from(aggregation: &Aggregation) -> Aggregation {
        aggregation.clone()
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

/// The sum of the values that are not null; null if all are. The result is Int64 or UInt64 for integers, and
/// a decimal of the same scale with 38 digits for decimals. Both are exact; a result that does not fit is an
/// error, or as [`Options::overflow`](super::Options::overflow) specifies. Float32 and Float64 keep their
/// type. Float16 becomes Float32, because Float16 cannot represent the sums of more than a few rows. The
/// order in which floats are added is the same on every device, whatever the number of threads (see
/// DESIGN.md).
pub fn sum(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    aggregation("sum", Fold::Sum, of.clone(), of)
}

/// The minimum of the values that are not null; null if all are. Floats are compared by their total order.
pub fn min(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    aggregation("min", Fold::Min, of.clone(), of)
}

/// The maximum of the values that are not null; null if all are. Floats are compared by their total order, in
/// which NaN is greatest.
pub fn max(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    aggregation("max", Fold::Max, of.clone(), of)
}

/// The number of values that are not null, as Int64. Accepts any type.
pub fn count(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    let one =
        if_else(of.clone().is_not_null(), Literal::of(DataType::Int8, 1), Literal::null(DataType::Int8));
    aggregation("count", Fold::Count, of, one)
}

/// The number of rows, as Int64.
pub fn count_all() -> Aggregation {
    let one = lit(Literal::of(DataType::Int8, 1));
    Aggregation { name: "count(*)".to_owned(), ..aggregation("count", Fold::Count, one.clone(), one) }
}

/// The mean of the values that are not null; null if all are. The result is Float64, except for decimals:
/// their mean is a decimal with four more digits after the point (up to the maximum scale), truncated as in
/// DataFusion.
pub fn mean(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    Aggregation { finish: Finish::Mean, ..aggregation("mean", Fold::Sum, of.clone(), of) }
}

/// Whether all values that are not null are true; null if all are null.
pub fn bool_and(of: impl Into<Expr>) -> Aggregation {
    truths("bool_and", Fold::Min, of.into())
}

/// Whether any value is true; null if all are null.
pub fn bool_or(of: impl Into<Expr>) -> Aggregation {
    truths("bool_or", Fold::Max, of.into())
}

fn truths(function: &str, fold: Fold, of: Expr) -> Aggregation {
    let int = |value| Literal::of(DataType::Int8, value);
    let known = if_else(of.clone().is_true(), int(1), int(0));
    let value = if_else(of.clone().is_not_null(), known, Literal::null(DataType::Int8));
    Aggregation { finish: Finish::Truth, ..aggregation(function, fold, of, value) }
}
