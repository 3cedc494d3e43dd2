//! Aggregate functions.

use std::fmt;

use arrow_schema::DataType;

use super::{Expr, Literal, Node, if_else, lit};

/// The function that reduces rows to one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fold {
    Sum,
    Min,
    Max,
    Count,
}

/// How the values of a group become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Fold(Fold),
    Bits(Bits),
    /// The number of the first row whose value is not null.
    First,
    /// The number of the last row whose value is not null.
    Last,
}

/// An operation on the bits of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    And,
    Or,
    Xor,
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

/// How the values of rows become the result of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Function {
    Fold(Fold, Finish),
    Bits(Bits),
    /// The value of the first or the last row; with `nulls`, also if it is null.
    Row {
        last: bool,
        nulls: bool,
    },
    /// The variance, or its square root.
    Variance {
        ddof: u32,
        root: bool,
    },
    CountDistinct,
    Quantile(f64),
    /// The list of values.
    Array,
}

/// An aggregate of an expression, with the name of its result.
#[derive(Clone, Debug)]
pub struct Aggregation {
    pub(crate) function: Function,
    pub(crate) of: Expr,
    pub(crate) filter: Option<Expr>,
    pub(crate) name: String,
}

/// An aggregate that is a fold of the values of an expression, whichever rows they are in.
#[derive(Clone, Debug)]
pub(crate) struct Folding {
    pub fold: Fold,
    pub finish: Finish,
    pub of: Expr,
    pub name: String,
}

impl Aggregation {
    /// Renames the result column.
    pub fn alias(self, name: impl Into<String>) -> Aggregation {
        Aggregation { name: name.into(), ..self }
    }

    /// Aggregates only the rows for which `predicate` is true, as SQL's `FILTER` does. Other aggregates, and
    /// the groups themselves, are not affected. Several filters keep the rows for which all predicates are
    /// true. The values of other rows are computed as well, so they can fail, as in DataFusion.
    pub fn filter(self, predicate: impl Into<Expr>) -> Aggregation {
        let predicate = predicate.into();
        let name = format!("{} filter ({predicate})", self.name);
        let filter = match self.filter {
            None => predicate,
            Some(first) => first & predicate,
        };
        Aggregation { filter: Some(filter), name, ..self }
    }

    /// Returns [`Error::Invalid`](crate::Error::Invalid) if the values or the filters are too large to be
    /// bound, as [`Expr::check`] does.
    pub fn check(&self) -> crate::Result<()> {
        self.filter.iter().chain([&self.of]).try_for_each(Expr::check)
    }

    /// The aggregate as a fold in which the values of rows that do not count are null, if it is one.
    pub(crate) fn folding(&self) -> Option<Folding> {
        let Function::Fold(fold, finish) = self.function else { return None };
        Some(Folding { fold, finish, of: self.filtered(self.of.clone()), name: self.name.clone() })
    }

    /// An expression that is null in rows that do not count.
    pub(crate) fn filtered(&self, of: Expr) -> Expr {
        let Some(filter) = &self.filter else { return of };
        // Null takes the type of any value but a literal.
        let null_type = if let Node::Literal(literal) = &*of.0 { literal.own_type() } else { DataType::Null };
        if_else(filter.clone(), of, Literal::null(null_type))
    }

    /// Whether a row counts; `None` if all do. With `valid`, those whose value is null do not.
    pub(crate) fn counts(&self, valid: bool) -> Option<Expr> {
        let valid = valid.then(|| self.of.clone().is_not_null());
        let filter = self.filter.clone().map(Expr::is_true);
        match (valid, filter) {
            (Some(valid), Some(filter)) => Some(filter & valid),
            (valid, filter) => valid.or(filter),
        }
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

impl fmt::Display for Folding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn aggregation(name: &str, function: Function, of: Expr) -> Aggregation {
    Aggregation { function, name: format!("{name}({of})"), of, filter: None }
}

fn fold(name: &str, fold: Fold, of: impl Into<Expr>) -> Aggregation {
    aggregation(name, Function::Fold(fold, Finish::Value), of.into())
}

/// The sum of the values that are not null; null if all are. The result is Int64 or UInt64 for integers, and
/// a decimal of the same scale with 38 digits for decimals. Both are exact; a result that does not fit is an
/// error, or as [`Options::overflow`](super::Options::overflow) specifies. Float32 and Float64 keep their
/// type. Float16 becomes Float32, because Float16 cannot represent the sums of more than a few rows. The
/// order in which floats are added is the same on every device, whatever the number of threads (see
/// DESIGN.md).
pub fn sum(of: impl Into<Expr>) -> Aggregation {
    fold("sum", Fold::Sum, of)
}

/// The minimum of the values that are not null; null if all are. Accepts any type that can be sorted. Floats
/// are compared by their total order, in which a NaN whose sign bit is set is least.
pub fn min(of: impl Into<Expr>) -> Aggregation {
    fold("min", Fold::Min, of)
}

/// The maximum of the values that are not null; null if all are. Accepts any type that can be sorted. Floats
/// are compared by their total order, in which NaN is greatest.
pub fn max(of: impl Into<Expr>) -> Aggregation {
    fold("max", Fold::Max, of)
}

/// The number of values that are not null, as Int64. Accepts any type.
pub fn count(of: impl Into<Expr>) -> Aggregation {
    let of = of.into();
    let one =
        if_else(of.clone().is_not_null(), Literal::of(DataType::Int8, 1), Literal::null(DataType::Int8));
    Aggregation { of: one, ..fold("count", Fold::Count, of) }
}

/// The number of rows, as Int64.
pub fn count_all() -> Aggregation {
    let one = lit(Literal::of(DataType::Int8, 1));
    Aggregation { name: "count(*)".to_owned(), ..fold("count", Fold::Count, one) }
}

/// The mean of the values that are not null; null if all are. The result is Float64, except for decimals:
/// their mean is a decimal with four more digits after the point (up to the maximum scale), truncated as in
/// DataFusion.
pub fn mean(of: impl Into<Expr>) -> Aggregation {
    aggregation("mean", Function::Fold(Fold::Sum, Finish::Mean), of.into())
}

/// Whether all values that are not null are true; null if all are null.
pub fn bool_and(of: impl Into<Expr>) -> Aggregation {
    truths("bool_and", Fold::Min, of.into())
}

/// Whether any value is true; null if all are null.
pub fn bool_or(of: impl Into<Expr>) -> Aggregation {
    truths("bool_or", Fold::Max, of.into())
}

fn truths(name: &str, fold: Fold, of: Expr) -> Aggregation {
    let int = |value| Literal::of(DataType::Int8, value);
    let known = if_else(of.clone().is_true(), int(1), int(0));
    let value = if_else(of.clone().is_not_null(), known, Literal::null(DataType::Int8));
    Aggregation { of: value, ..aggregation(name, Function::Fold(fold, Finish::Truth), of) }
}

/// The bits that are set in all integers that are not null; null if all are.
pub fn bit_and(of: impl Into<Expr>) -> Aggregation {
    aggregation("bit_and", Function::Bits(Bits::And), of.into())
}

/// The bits that are set in any integer; null if all are null.
pub fn bit_or(of: impl Into<Expr>) -> Aggregation {
    aggregation("bit_or", Function::Bits(Bits::Or), of.into())
}

/// The bits that are set in an odd number of the integers that are not null; null if all are.
pub fn bit_xor(of: impl Into<Expr>) -> Aggregation {
    aggregation("bit_xor", Function::Bits(Bits::Xor), of.into())
}

/// The first of the values that are not null; null if all are. Accepts any type.
pub fn first(of: impl Into<Expr>) -> Aggregation {
    aggregation("first", Function::Row { last: false, nulls: false }, of.into())
}

/// The last of the values that are not null; null if all are. Accepts any type.
pub fn last(of: impl Into<Expr>) -> Aggregation {
    aggregation("last", Function::Row { last: true, nulls: false }, of.into())
}

/// The value of the first row, which may be null. Accepts any type.
pub fn first_value(of: impl Into<Expr>) -> Aggregation {
    aggregation("first_value", Function::Row { last: false, nulls: true }, of.into())
}

/// The value of the last row, which may be null. Accepts any type.
pub fn last_value(of: impl Into<Expr>) -> Aggregation {
    aggregation("last_value", Function::Row { last: true, nulls: true }, of.into())
}

/// The variance of the numbers that are not null, as Float64: the sum of their squared distances to their
/// mean, divided by their number less `ddof`. 0 is the variance of a population, 1 that of a sample. Null if
/// there are not more than `ddof` values. Infinite or NaN if the sum of the values or of the squares is not
/// finite.
pub fn variance(of: impl Into<Expr>, ddof: u32) -> Aggregation {
    aggregation("variance", Function::Variance { ddof, root: false }, of.into())
}

/// The standard deviation: the square root of the [`variance`].
pub fn stddev(of: impl Into<Expr>, ddof: u32) -> Aggregation {
    aggregation("stddev", Function::Variance { ddof, root: true }, of.into())
}

/// The number of different values that are not null, as Int64. See [`group`](crate::compute::group) for when
/// values are equal. It takes memory for all different values of each group.
pub fn count_distinct(of: impl Into<Expr>) -> Aggregation {
    aggregation("count_distinct", Function::CountDistinct, of.into())
}

/// The median of the numbers that are not null, as Float64; null if all are. See [`quantile`].
pub fn median(of: impl Into<Expr>) -> Aggregation {
    aggregation("median", Function::Quantile(0.5), of.into())
}

/// The value below which a part of the numbers that are not null lies, from 0 (the least) to 1 (the
/// greatest), as Float64; null if all are null. Between two numbers it is interpolated. NaN is greatest. It
/// takes memory for all numbers.
pub fn quantile(of: impl Into<Expr>, part: f64) -> Aggregation {
    let of = of.into();
    let name = format!("quantile({of}, {part})");
    Aggregation { name, ..aggregation("quantile", Function::Quantile(part), of) }
}

/// The list of the values, nulls included, in the order of their rows; null if there are no rows. Accepts any
/// type that can be taken. It takes memory for all values.
pub fn array_agg(of: impl Into<Expr>) -> Aggregation {
    aggregation("array_agg", Function::Array, of.into())
}
