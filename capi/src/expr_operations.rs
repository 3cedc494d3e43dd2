//! The operations that expressions in C name by numbers.

use bowstring::Result;
use bowstring::expr::{DatePart, Expr};

use crate::status::invalid;

/// An operation on one expression.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringUnary {
    /// The negation of a Boolean.
    Not = 0,
    /// The value with the opposite sign.
    Negate = 1,
    /// Whether the value is null.
    IsNull = 2,
    /// Whether the value is not null.
    IsNotNull = 3,
    /// Whether the value is true; false for null.
    IsTrue = 4,
    /// Whether the value is false or null.
    IsNotTrue = 5,
    /// Whether the value is false; false for null.
    IsFalse = 6,
    /// Whether the value is true or null.
    IsNotFalse = 7,
    /// The year of a date or of a timestamp without a time zone. This and the parts below are Int32.
    Year = 8,
    /// The month, from 1 to 12.
    Month = 9,
    /// The day of the month, from 1 to 31.
    Day = 10,
    /// The hour, from 0 to 23, of a date, a timestamp without a time zone, or a time.
    Hour = 11,
    /// The minute of the hour, from 0 to 59.
    Minute = 12,
    /// The second of the minute, from 0 to 59.
    Second = 13,
}

/// An operation on two expressions.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringBinary {
    /// Whether both are equal. Like the comparisons below it is null if either side is null; the last two
    /// (DISTINCT, NOT_DISTINCT) never are.
    Eq = 0,
    /// Whether both differ; null if either is null.
    NotEq = 1,
    /// Whether the first is less than the second.
    Lt = 2,
    /// Whether the first is less than or equal to the second.
    LtEq = 3,
    /// Whether the first is greater than the second.
    Gt = 4,
    /// Whether the first is greater than or equal to the second.
    GtEq = 5,
    /// Whether both differ, where a null equals a null and no other value.
    Distinct = 6,
    /// The negation of `BOWSTRING_BINARY_DISTINCT`.
    NotDistinct = 7,
    /// Kleene's and: false if either side is false, even if the other is null.
    And = 8,
    /// Kleene's or: true if either side is true, even if the other is null.
    Or = 9,
    /// The sum of both values.
    Add = 10,
    /// The first value minus the second.
    Subtract = 11,
    /// The product of both values.
    Multiply = 12,
    /// The quotient; that of integers is rounded towards zero.
    Divide = 13,
    /// The remainder of the division; it has the sign of the first value.
    Remainder = 14,
    /// The first value, or the second if the first is null.
    Coalesce = 15,
    /// The first value, or null if both are equal.
    NullIf = 16,
    /// Whether the first value, text or bytes, starts with the second.
    StartsWith = 17,
    /// Whether the first value, text or bytes, ends with the second.
    EndsWith = 18,
    /// Whether the first value, text or bytes, contains the second.
    Contains = 19,
    /// Whether the first value, text, matches the pattern in the second: `%` matches any text, `_` matches
    /// any one character, and a backslash takes the next character literally.
    Like = 20,
    /// Like `BOWSTRING_BINARY_LIKE`, ignoring case.
    ILike = 21,
}

type OfOne = fn(Expr) -> Expr;
type OfTwo = fn(Expr, Expr) -> Expr;

/// Applies the operation with this number; an unknown number is an error.
pub(crate) fn unary(op: i32, x: Expr) -> Result<Expr> {
    use BowstringUnary::*;
    let made: &[(BowstringUnary, OfOne)] = &[
        (Not, |x| !x),
        (Negate, |x| -x),
        (IsNull, Expr::is_null),
        (IsNotNull, Expr::is_not_null),
        (IsTrue, Expr::is_true),
        (IsNotTrue, Expr::is_not_true),
        (IsFalse, Expr::is_false),
        (IsNotFalse, Expr::is_not_false),
        (Year, |x| x.date_part(DatePart::Year)),
        (Month, |x| x.date_part(DatePart::Month)),
        (Day, |x| x.date_part(DatePart::Day)),
        (Hour, |x| x.date_part(DatePart::Hour)),
        (Minute, |x| x.date_part(DatePart::Minute)),
        (Second, |x| x.date_part(DatePart::Second)),
    ];
    let found = made.iter().find(|(known, _)| *known as i32 == op);
    found.map(|(_, make)| make(x)).ok_or_else(|| invalid(format!("no unary operation {op}")))
}

/// The same for two expressions.
pub(crate) fn binary(op: i32, a: Expr, b: Expr) -> Result<Expr> {
    use BowstringBinary::*;
    let made: &[(BowstringBinary, OfTwo)] = &[
        (Eq, Expr::eq),
        (NotEq, Expr::neq),
        (Lt, Expr::lt),
        (LtEq, Expr::lt_eq),
        (Gt, Expr::gt),
        (GtEq, Expr::gt_eq),
        (Distinct, Expr::distinct),
        (NotDistinct, Expr::not_distinct),
        (And, |a, b| a & b),
        (Or, |a, b| a | b),
        (Add, |a, b| a + b),
        (Subtract, |a, b| a - b),
        (Multiply, |a, b| a * b),
        (Divide, |a, b| a / b),
        (Remainder, |a, b| a % b),
        (Coalesce, Expr::coalesce),
        (NullIf, Expr::nullif),
        (StartsWith, Expr::starts_with),
        (EndsWith, Expr::ends_with),
        (Contains, Expr::contains),
        (Like, Expr::like),
        (ILike, Expr::ilike),
    ];
    let found = made.iter().find(|(known, _)| *known as i32 == op);
    found.map(|(_, make)| make(a, b)).ok_or_else(|| invalid(format!("no binary operation {op}")))
}
