//! L1: expressions over the columns of a batch, unbound and bound to a schema.
//!
//! An [`Expr`] is built with functions and operators. It has no types of its own and can be bound to any
//! schema that has its columns. Binding reports all errors in it; a bound expression runs on every device.
//!
//! ```
//! use bowstring::expr::{Literal, col, lit};
//! let discounted = (col("price") * (lit(1) - col("discount"))).alias("discounted");
//! let cheap = col("quantity").lt(lit(24)) & col("discount").between(lit(5), lit(7));
//! assert_eq!(cheap.to_string(), "(quantity < 24) and (discount between 5 and 7)");
//! assert_eq!(discounted.to_string(), "price * (1 - discount) as discounted");
//! ```
//!
//! Expressions have the semantics of arrow-rs ([`arrow_ord`], [`arrow_arith`]): comparisons of floats follow
//! the total order, overflow of `+ - *` is an error, decimals have arrow's precisions and scales. [`Options`]
//! change that. Decimals of two scales are compared by value. A literal takes the type of the other operand,
//! if that type can represent it: `col("a").lt(lit(24))` works with every numeric column. One thing differs
//! from arrow-rs: arithmetic always produces the same NaN on every device, while processors differ.
//!
//! [`arrow_ord`]: https://docs.rs/arrow-ord
//! [`arrow_arith`]: https://docs.rs/arrow-arith

mod aggregate;
pub(crate) mod bind;
mod binder;
mod choices;
mod dates;
mod decimal;
mod extent;
mod lists;
mod literal;
mod literal_list;
mod nearest;
mod numbers;
pub(crate) mod plan;
pub(crate) mod print;
pub(crate) mod range;
mod scales;
mod text;

use std::sync::Arc;

use arrow_schema::DataType;

pub use aggregate::{
    Aggregation, array_agg, bit_and, bit_or, bit_xor, bool_and, bool_or, count, count_all, count_distinct,
    first, first_value, last, last_value, max, mean, median, min, quantile, stddev, sum, variance,
};
pub(crate) use aggregate::{Bits, Finish, Fold, Folding, Function, Reduction};
pub(crate) use dates::per_second;
use extent::Extent;
pub use literal::Literal;
pub(crate) use literal::extended;
pub use literal_list::LiteralList;

/// An expression over the rows of a batch. See the [module](self).
#[derive(Clone, Debug)]
pub struct Expr(pub(crate) Arc<Node>, Extent);

/// The root operation of an expression and its operands.
#[derive(Debug)]
pub(crate) enum Node {
    /// A column selected by name.
    Named(String),
    /// A column selected by its index.
    Indexed(usize),
    Literal(Literal),
    Compare(Comparison, Expr, Expr),
    Between(Expr, Expr, Expr),
    InList(Expr, Vec<Literal>),
    /// A text or bytes test against another operand.
    Matches(Matches, Expr, Expr),
    And(Expr, Expr),
    Or(Expr, Expr),
    Not(Expr),
    Test(Test, Expr),
    Arithmetic(Arithmetic, Expr, Expr),
    Negate(Expr),
    Cast(Expr, DataType, bool),
    IfElse(Expr, Expr, Expr),
    Coalesce(Expr, Expr),
    NullIf(Expr, Expr),
    DatePart(DatePart, Expr),
    /// Some characters of a text: the number of the first, and how many.
    Substring(Expr, i64, Option<u64>),
    Abs(Expr),
    IsNan(Expr),
    /// A quotient that is rounded down.
    FloorDiv(Expr, Expr),
    Power(Expr, u32),
    Alias(Expr, String),
}

impl Node {
    /// The size of the expression, derived from the sizes of its operands.
    fn extent(&self) -> Extent {
        let around = |parts: &[&Expr]| Extent::around(&parts.iter().map(|part| part.1).collect::<Vec<_>>());
        match self {
            Node::Indexed(_) => around(&[]),
            Node::Named(name) => around(&[]).with_bytes(name.len()),
            Node::Literal(literal) => around(&[]).with_bytes(literal.bytes()),
            Node::InList(x, list) => {
                around(&[x]).with_bytes(list.iter().fold(0, |sum, one| one.bytes().saturating_add(sum)))
            }
            Node::Alias(x, name) => around(&[x]).with_bytes(name.len()),
            Node::Compare(_, a, b)
            | Node::Matches(_, a, b)
            | Node::And(a, b)
            | Node::Or(a, b)
            | Node::Arithmetic(_, a, b)
            | Node::FloorDiv(a, b)
            | Node::Coalesce(a, b)
            | Node::NullIf(a, b) => around(&[a, b]),
            // The value counts twice because it is compared twice.
            Node::Between(x, low, high) => around(&[x, x, low, high]),
            Node::IfElse(condition, then, otherwise) => around(&[condition, then, otherwise]),
            Node::Not(x)
            | Node::Test(_, x)
            | Node::Negate(x)
            | Node::Abs(x)
            | Node::IsNan(x)
            | Node::Power(x, _)
            | Node::Cast(x, ..)
            | Node::Substring(x, ..)
            | Node::DatePart(_, x) => around(&[x]),
        }
    }
}

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Comparison {
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    Distinct,
    NotDistinct,
}

/// The kind of a text test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Matches {
    StartsWith,
    EndsWith,
    Contains,
    Like,
    ILike,
}

/// A test of a boolean, or of the presence of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Null,
    NotNull,
    True,
    NotTrue,
    False,
    NotFalse,
}

/// The operator of an arithmetic expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// A component of a date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatePart {
    /// The year of the proleptic Gregorian calendar.
    Year,
    /// The month, starting from 1.
    Month,
    /// The day of the month, starting from 1.
    Day,
    /// The hour of the day, 0 to 23.
    Hour,
    /// The minute of the hour, 0 to 59.
    Minute,
    /// The second of the minute, 0 to 59.
    Second,
}

/// Options for cases in which arrow-rs and SQL differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Determines the result of integer overflow. Overflow of decimals, times and durations is an error, as
    /// in arrow-rs, unless this option makes it null.
    pub overflow: Overflow,
    /// Whether a division by zero, or one that overflows, results in null; otherwise it is an error. Floats
    /// always have a result.
    pub division_by_zero_is_null: bool,
    /// The order in which floats are compared.
    pub floats: FloatOrder,
}

impl Default for Options {
    fn default() -> Options {
        Options { overflow: Overflow::Error, division_by_zero_is_null: false, floats: FloatOrder::Total }
    }
}

impl Options {
    /// The default: the behaviour of arrow-rs' checked functions.
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the behaviour on overflow.
    pub fn overflow(self, overflow: Overflow) -> Options {
        Options { overflow, ..self }
    }

    /// Sets whether a division by zero, or one that overflows, results in null.
    pub fn division_by_zero_is_null(self, is_null: bool) -> Options {
        Options { division_by_zero_is_null: is_null, ..self }
    }

    /// Sets the order of floats.
    pub fn floats(self, floats: FloatOrder) -> Options {
        Options { floats, ..self }
    }
}

/// The result of an integer operation that overflows its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Returns an error that names the first such row.
    Error,
    /// Keeps the low bits of the result.
    Wrap,
    /// Makes the row null.
    Null,
}

/// The order in which floats are compared, and so which are equal: in expressions, as keys of groups and
/// joins, and in `count_distinct`. Floats inside of nested keys are always compared by [`FloatOrder::Total`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloatOrder {
    /// [`f64::total_cmp`], as in arrow-rs: `-0.0` is less than `0.0`, and NaNs are distinguished by their
    /// bits.
    #[default]
    Total,
    /// SQL's order: `-0.0` equals `0.0`, all NaNs are equal and greater than any number.
    Sql,
}

/// Selects a column by name.
pub fn col(name: impl Into<String>) -> Expr {
    Node::Named(name.into()).into()
}

/// Selects a column by its index, starting from 0.
pub fn nth(index: usize) -> Expr {
    Node::Indexed(index).into()
}

/// A constant. Rust's integers and floats take the type of the other operand; a typed [`Literal`] keeps its
/// own.
pub fn lit(value: impl Into<Literal>) -> Expr {
    Node::Literal(value.into()).into()
}

/// `then` where `condition` is true, and `otherwise` where it is false or null.
pub fn if_else(condition: impl Into<Expr>, then: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
    Node::IfElse(condition.into(), then.into(), otherwise.into()).into()
}

impl From<Node> for Expr {
    fn from(node: Node) -> Expr {
        let extent = node.extent();
        Expr(Arc::new(node), extent)
    }
}

impl From<&Expr> for Expr {
    fn from(expr: &Expr) -> Expr {
        expr.clone()
    }
}

impl<L: Into<Literal>> From<L> for Expr {
    fn from(value: L) -> Expr {
        lit(value)
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = |$self:ident| $node:expr;)+) => {
        impl Expr {
            $($(#[$doc])* pub fn $name(self $(, $arg: impl Into<Expr>)*) -> Expr {
                let $self = self;
                $(let $arg = $arg.into();)*
                $node.into()
            })+
        }
    };
}

methods! {
    /// Whether both values are equal; null if either is null.
    eq(other) = |x| Node::Compare(Comparison::Eq, x, other);
    /// Whether the values differ; null if either is null.
    neq(other) = |x| Node::Compare(Comparison::NotEq, x, other);
    /// Whether this is less than `other`.
    lt(other) = |x| Node::Compare(Comparison::Lt, x, other);
    /// Whether this is less than or equal to `other`.
    lt_eq(other) = |x| Node::Compare(Comparison::LtEq, x, other);
    /// Whether this is greater than `other`.
    gt(other) = |x| Node::Compare(Comparison::Gt, x, other);
    /// Whether this is greater than or equal to `other`.
    gt_eq(other) = |x| Node::Compare(Comparison::GtEq, x, other);
    /// Whether the values differ. Two nulls are equal, and null differs from every value. Never null.
    distinct(other) = |x| Node::Compare(Comparison::Distinct, x, other);
    /// The negation of [`distinct`](Self::distinct).
    not_distinct(other) = |x| Node::Compare(Comparison::NotDistinct, x, other);
    /// Whether this is at least `low` and at most `high`.
    between(low, high) = |x| Node::Between(x, low, high);
    /// Whether this text (or binary value) starts with `prefix`.
    starts_with(prefix) = |x| Node::Matches(Matches::StartsWith, x, prefix);
    /// Whether this text (or binary value) ends with `suffix`.
    ends_with(suffix) = |x| Node::Matches(Matches::EndsWith, x, suffix);
    /// Whether this text (or binary value) contains `part`.
    contains(part) = |x| Node::Matches(Matches::Contains, x, part);
    /// Whether the text matches a pattern: `%` matches any text, `_` any character, and a backslash escapes
    /// the next character.
    like(pattern) = |x| Node::Matches(Matches::Like, x, pattern);
    /// Like [`like`](Self::like), but ignores case: characters are compared by Unicode's simple case folding,
    /// as in arrow-rs.
    ilike(pattern) = |x| Node::Matches(Matches::ILike, x, pattern);
    /// Whether this is null. Never null itself.
    is_null() = |x| Node::Test(Test::Null, x);
    /// Whether this is not null. Never null itself.
    is_not_null() = |x| Node::Test(Test::NotNull, x);
    /// Whether this is true. Never null: null gives false.
    is_true() = |x| Node::Test(Test::True, x);
    /// Whether this is false or null. Never null.
    is_not_true() = |x| Node::Test(Test::NotTrue, x);
    /// Whether this is false. Never null: null gives false.
    is_false() = |x| Node::Test(Test::False, x);
    /// Whether this is true or null. Never null.
    is_not_false() = |x| Node::Test(Test::NotFalse, x);
    /// Kleene's and: false if either operand is false, even if the other is null. Also `&`.
    and(other) = |x| Node::And(x, other);
    /// Kleene's or: true if either operand is true, even if the other is null. Also `|`.
    or(other) = |x| Node::Or(x, other);
    /// The absolute value. The minimum of a signed integer type overflows.
    abs() = |x| Node::Abs(x);
    /// Whether a float is NaN, regardless of its sign.
    is_nan() = |x| Node::IsNan(x);
    /// The quotient of integers or floats, rounded towards negative infinity; `/` rounds that of integers
    /// towards zero. Floats have the quotient that numpy gives them. It differs from Python's only for a
    /// divisor of zero.
    floor_div(other) = |x| Node::FloorDiv(x, other);
    /// This value, or `other` if this is null.
    coalesce(other) = |x| Node::Coalesce(x, other);
    /// This value, or null if it equals `other`.
    nullif(other) = |x| Node::NullIf(x, other);
}

impl Expr {
    /// Whether this equals one of the values. Null if this is null, or if no value is equal and the list
    /// contains a null.
    pub fn in_list<L: Into<Literal>>(self, list: impl IntoIterator<Item = L>) -> Expr {
        Node::InList(self, list.into_iter().map(Into::into).collect()).into()
    }

    /// Casts to another type by arrow-rs' rules. A value that does not fit becomes null.
    pub fn cast(self, to: DataType) -> Expr {
        Node::Cast(self, to, true).into()
    }

    /// Casts to another type. A value that does not fit is an error. In an aggregate this includes rows that
    /// its condition excludes.
    pub fn cast_strict(self, to: DataType) -> Expr {
        Node::Cast(self, to, false).into()
    }

    /// This raised to a power: a product of `exponent` factors. Keeps the type, except that the scales of
    /// decimals add up. Squares are computed first, so floats may differ from `powi` in their last bits.
    pub fn pow(self, exponent: u32) -> Expr {
        Node::Power(self, exponent).into()
    }

    /// A component of a date, a time, or a timestamp without a time zone, as Int32. As in arrow-rs, the
    /// result is null for dates outside of the years -262143 to 262142 and for times beyond a day.
    pub fn date_part(self, part: DatePart) -> Expr {
        Node::DatePart(part, self).into()
    }

    /// At most `length` characters of this text, or all that follow, from character `start` on, which counts
    /// from the end if it is negative: like arrow-rs' `substring_by_char`. A text without such a character
    /// gives an empty one. A dictionary stays a dictionary.
    pub fn substring(self, start: i64, length: Option<u64>) -> Expr {
        Node::Substring(self, start, length).into()
    }

    /// Returns [`crate::Error::Invalid`] if the expression is nested more than 200 deep, has more than 20 000
    /// nodes, or more than 256 MiB of values; shared parts count each time. Binding refuses such an
    /// expression. Printing or dropping a much deeper one may overflow the stack, so code that builds an
    /// expression in a loop should check while it builds.
    pub fn check(&self) -> crate::Result<()> {
        self.1.check()
    }

    /// Names the expression; the result's field gets this name.
    pub fn alias(self, name: impl Into<String>) -> Expr {
        Node::Alias(self, name.into()).into()
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident = |$a:ident, $b:ident| $node:expr;)+) => {
        $(impl<E: Into<Expr>> std::ops::$operator<E> for Expr {
            type Output = Expr;
            fn $method(self, other: E) -> Expr {
                let ($a, $b) = (self, other.into());
                $node.into()
            }
        })+
    };
}

operators! {
    Add add = |a, b| Node::Arithmetic(Arithmetic::Add, a, b);
    Sub sub = |a, b| Node::Arithmetic(Arithmetic::Sub, a, b);
    Mul mul = |a, b| Node::Arithmetic(Arithmetic::Mul, a, b);
    Div div = |a, b| Node::Arithmetic(Arithmetic::Div, a, b);
    Rem rem = |a, b| Node::Arithmetic(Arithmetic::Rem, a, b);
    BitAnd bitand = |a, b| Node::And(a, b);
    BitOr bitor = |a, b| Node::Or(a, b);
}

impl std::ops::Not for Expr {
    type Output = Expr;
    fn not(self) -> Expr {
        Node::Not(self).into()
    }
}

impl std::ops::Neg for Expr {
    type Output = Expr;
    fn neg(self) -> Expr {
        Node::Negate(self).into()
    }
}
