//! L1: expressions: what is computed of the columns of a batch, as it is written, and as it is bound to a schema.
//!
//! An [`Expr`] is built with functions and operators, knows no types and can be bound to any schema that has its columns.
//! Binding finds all that is wrong with it; what is bound runs on every device.
//!
//! ```
//! use bowstring::expr::{Literal, col, lit};
//! let discounted = (col("price") * (lit(1) - col("discount"))).alias("discounted");
//! let cheap = col("quantity").lt(lit(24)) & col("discount").between(lit(5), lit(7));
//! assert_eq!(cheap.to_string(), "(quantity < 24) and (discount between 5 and 7)");
//! assert_eq!(discounted.to_string(), "price * (1 - discount) as discounted");
//! ```
//!
//! The meaning is arrow-rs' ([`arrow_ord`], [`arrow_arith`]): comparisons of floats follow the total order, `+ - *` overflow with
//! an error, decimals have arrow's precisions and scales. [`Options`] change that. Decimals of two scales are compared
//! by their values. A literal takes the type of what it meets, if
//! it has a value there: `col("a").lt(lit(24))` suits every column of numbers. One thing is ours: a NaN that arithmetic makes is
//! always the same one, on every device; processors differ.
//!
//! [`arrow_ord`]: https://docs.rs/arrow-ord
//! [`arrow_arith`]: https://docs.rs/arrow-arith

mod aggregate;
pub(crate) mod bind;
mod binder;
mod dates;
mod decimal;
mod extent;
mod lists;
mod literal;
mod numbers;
pub(crate) mod plan;
pub(crate) mod print;
pub(crate) mod range;
mod scales;
mod text;

use std::sync::Arc;

use arrow_schema::DataType;

pub use aggregate::{Aggregation, bool_and, bool_or, count, count_all, max, mean, min, sum};
pub(crate) use aggregate::{Finish, Fold};
use extent::Extent;
pub use literal::Literal;
pub(crate) use literal::extended;

/// What is computed of each row. See the [module](self).
#[derive(Clone, Debug)]
pub struct Expr(pub(crate) Arc<Node>, Extent);

/// What an expression is made of.
#[derive(Debug)]
pub(crate) enum Node {
    /// A column by its name.
    Named(String),
    /// A column by its number.
    Indexed(usize),
    Literal(Literal),
    Compare(Comparison, Expr, Expr),
    Between(Expr, Expr, Expr),
    InList(Expr, Vec<Literal>),
    /// A test of text.
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
    Abs(Expr),
    IsNan(Expr),
    /// A quotient, rounded down.
    FloorDiv(Expr, Expr),
    Power(Expr, u32),
    Alias(Expr, String),
}

impl Node {
    /// How large it is, by those that it is made of.
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
            // The value is compared twice.
            Node::Between(x, low, high) => around(&[x, x, low, high]),
            Node::IfElse(condition, then, otherwise) => around(&[condition, then, otherwise]),
            Node::Not(x)
            | Node::Test(_, x)
            | Node::Negate(x)
            | Node::Abs(x)
            | Node::IsNan(x)
            | Node::Power(x, _)
            | Node::Cast(x, ..)
            | Node::DatePart(_, x) => around(&[x]),
        }
    }
}

/// How two values are compared.
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

/// How text is tried against other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Matches {
    StartsWith,
    EndsWith,
    Contains,
    Like,
    ILike,
}

/// What is asked of a truth value, or of whether there is a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Null,
    NotNull,
    True,
    NotTrue,
    False,
    NotFalse,
}

/// An arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Arithmetic {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
}

/// A part of a date or of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DatePart {
    /// The year.
    Year,
    /// The month, from 1 on.
    Month,
    /// The day of the month, from 1 on.
    Day,
    /// The hour.
    Hour,
    /// The minute.
    Minute,
    /// The second.
    Second,
}

/// Where arrow-rs and SQL mean different things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// What becomes of integers that overflow. Decimals that do are errors, as in arrow-rs, unless they become null.
    pub overflow: Overflow,
    /// Whether a division by zero, or one that overflows, gives a null; else it is an error. Floats always have a result.
    pub division_by_zero_is_null: bool,
    /// How floats are compared.
    pub floats: FloatOrder,
}

impl Default for Options {
    fn default() -> Options {
        Options { overflow: Overflow::Error, division_by_zero_is_null: false, floats: FloatOrder::Total }
    }
}

impl Options {
    /// As arrow-rs' checked functions: the default.
    pub fn new() -> Options {
        Options::default()
    }

    /// With another way of overflowing.
    pub fn overflow(self, overflow: Overflow) -> Options {
        Options { overflow, ..self }
    }

    /// With nulls for divisions by zero, or without.
    pub fn division_by_zero_is_null(self, is_null: bool) -> Options {
        Options { division_by_zero_is_null: is_null, ..self }
    }

    /// With another order of floats.
    pub fn floats(self, floats: FloatOrder) -> Options {
        Options { floats, ..self }
    }
}

/// What becomes of an integer that does not fit its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// An error, which names the first row.
    Error,
    /// What remains of it in the type's bits.
    Wrap,
    /// A null.
    Null,
}

/// How floats are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatOrder {
    /// By [`f64::total_cmp`], as arrow-rs does: `-0.0` is less than `0.0`, NaNs are told apart by their bits.
    Total,
    /// As SQL does: `-0.0` equals `0.0`, and all NaNs are equal to each other and greater than any number.
    Sql,
}

/// The column of a name.
pub fn col(name: impl Into<String>) -> Expr {
    Node::Named(name.into()).into()
}

/// The column of a number, from 0 on.
pub fn nth(index: usize) -> Expr {
    Node::Indexed(index).into()
}

/// A value. Rust's integers and floats take the type of what they meet; a [`Literal`] of a type keeps its own.
pub fn lit(value: impl Into<Literal>) -> Expr {
    Node::Literal(value.into()).into()
}

/// `then` where `condition` is true, else `otherwise`, also where the condition is null.
pub fn if_else(condition: impl Into<Expr>, then: impl Into<Expr>, otherwise: impl Into<Expr>) -> Expr {
    Node::IfElse(condition.into(), then.into(), otherwise.into()).into()
}

impl From<Node> for Expr {
    fn from(node: Node) -> Expr {
        let extent = node.extent();
        Expr(Arc::new(node), extent)
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
    /// Whether both are equal; null where either is.
    eq(other) = |x| Node::Compare(Comparison::Eq, x, other);
    /// Whether they differ.
    neq(other) = |x| Node::Compare(Comparison::NotEq, x, other);
    /// Whether this is less.
    lt(other) = |x| Node::Compare(Comparison::Lt, x, other);
    /// Whether this is less or equal.
    lt_eq(other) = |x| Node::Compare(Comparison::LtEq, x, other);
    /// Whether this is greater.
    gt(other) = |x| Node::Compare(Comparison::Gt, x, other);
    /// Whether this is greater or equal.
    gt_eq(other) = |x| Node::Compare(Comparison::GtEq, x, other);
    /// Whether they differ, where nulls are equal to each other and to nothing else. Never null.
    distinct(other) = |x| Node::Compare(Comparison::Distinct, x, other);
    /// The opposite of `distinct`.
    not_distinct(other) = |x| Node::Compare(Comparison::NotDistinct, x, other);
    /// Whether it is `low` at least and `high` at most.
    between(low, high) = |x| Node::Between(x, low, high);
    /// Whether this text, or these bytes, start with the other.
    starts_with(prefix) = |x| Node::Matches(Matches::StartsWith, x, prefix);
    /// Whether this text, or these bytes, end with the other.
    ends_with(suffix) = |x| Node::Matches(Matches::EndsWith, x, suffix);
    /// Whether the other is somewhere in this text, or in these bytes.
    contains(part) = |x| Node::Matches(Matches::Contains, x, part);
    /// Whether the text is of a pattern: `%` stands for any text, `_` for any character, and a backslash takes the next one as it
    /// is.
    like(pattern) = |x| Node::Matches(Matches::Like, x, pattern);
    /// The same, where case does not count: characters are compared by Unicode's simple case folding, as arrow-rs does.
    ilike(pattern) = |x| Node::Matches(Matches::ILike, x, pattern);
    /// Whether there is no value.
    is_null() = |x| Node::Test(Test::Null, x);
    /// Whether there is a value.
    is_not_null() = |x| Node::Test(Test::NotNull, x);
    /// Whether it is true; null is not.
    is_true() = |x| Node::Test(Test::True, x);
    /// Whether it is false or null.
    is_not_true() = |x| Node::Test(Test::NotTrue, x);
    /// Whether it is false; null is not.
    is_false() = |x| Node::Test(Test::False, x);
    /// Whether it is true or null.
    is_not_false() = |x| Node::Test(Test::NotFalse, x);
    /// Kleene's and: false where either is false, even beside a null. Also `&`.
    and(other) = |x| Node::And(x, other);
    /// Kleene's or: true where either is true, even beside a null. Also `|`.
    or(other) = |x| Node::Or(x, other);
    /// The number without its sign. The least of the signed integers has none, and overflows.
    abs() = |x| Node::Abs(x);
    /// Whether a float is NaN, whatever its sign.
    is_nan() = |x| Node::IsNan(x);
    /// The quotient of integers or floats, rounded down; `/` cuts that of integers towards zero. Floats have
    /// the quotient that numpy gives them, which is Python's but for a divisor of zero.
    floor_div(other) = |x| Node::FloorDiv(x, other);
    /// This, or `other` where this is null.
    coalesce(other) = |x| Node::Coalesce(x, other);
    /// This, but null where both are equal.
    nullif(other) = |x| Node::NullIf(x, other);
}

impl Expr {
    /// Whether it is one of these; null where it is null, or where it is none of them and one of them is null.
    pub fn in_list<L: Into<Literal>>(self, list: impl IntoIterator<Item = L>) -> Expr {
        Node::InList(self, list.into_iter().map(Into::into).collect()).into()
    }

    /// As another type, by arrow-rs' rules; what does not fit is null.
    pub fn cast(self, to: DataType) -> Expr {
        Node::Cast(self, to, true).into()
    }

    /// As another type; what does not fit is an error, in an aggregate also in rows that its condition
    /// leaves out.
    pub fn cast_strict(self, to: DataType) -> Expr {
        Node::Cast(self, to, false).into()
    }

    /// So many of this, multiplied: a number of the same type, but for decimals, whose scales add up. Squares are computed
    /// first, so floats may differ from `powi` in their last bits.
    pub fn pow(self, exponent: u32) -> Expr {
        Node::Power(self, exponent).into()
    }

    /// A part of a date, a timestamp without a zone or a time: Int32. Null, as in arrow-rs, of dates outside of
    /// the years -262143 to 262142 and of times beyond a day.
    pub fn date_part(self, part: DatePart) -> Expr {
        Node::DatePart(part, self).into()
    }

    /// [`crate::Error::Invalid`] where it is nested more than 200 deep, has more than 20 000 parts or more than
    /// 256 MiB of values, those that are shared counted each time: it would be refused when bound.
    /// Printing or dropping what is nested much deeper may take more stack than there is; who builds an expression in
    /// a loop looks while building.
    pub fn check(&self) -> crate::Result<()> {
        self.1.check()
    }

    /// The same under a name, which a result's field has.
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
