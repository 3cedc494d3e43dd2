//! Builds expressions in C. An expression is not bound to a schema; a function that evaluates it checks it
//! against the columns of its batch.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use bowstring::compute::Scalar;
use bowstring::exchange;
use bowstring::expr::{DatePart, Expr, Literal, col, if_else, lit, nth};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Error, Result};

use crate::array::BowstringArray;
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put};

/// A value computed for each row of a batch. An expression shares the expressions that it was built from, so
/// their handles may be freed. One that is nested more than 200 deep, or has more than 20000 parts or 256 MiB
/// of values, is `BOWSTRING_STATUS_INVALID`.
pub struct BowstringExpr {
    pub(crate) expr: Expr,
    text: OnceLock<CString>,
}

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

impl BowstringExpr {
    fn new(expr: Expr) -> Result<BowstringExpr> {
        expr.check()?;
        Ok(BowstringExpr { expr, text: OnceLock::new() })
    }
}

type OfOne = fn(Expr) -> Expr;
type OfTwo = fn(Expr, Expr) -> Expr;

/// Applies the operation with this number; an unknown number is an error.
fn unary(op: i32, x: Expr) -> Result<Expr> {
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

fn binary(op: i32, a: Expr, b: Expr) -> Result<Expr> {
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

/// Reads a C string; NULL and text that is not UTF-8 are errors.
///
/// # Safety
///
/// `text` is NULL or ends with a 0.
pub(crate) unsafe fn text(text: *const c_char, argument: &str) -> Result<String> {
    if text.is_null() {
        return Err(missing(argument));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str().map_err(|_| invalid(format!("{argument} is not UTF-8")))?;
    Ok(text.to_owned())
}

/// The expression behind a handle; NULL is an error.
unsafe fn of(expr: *const BowstringExpr, argument: &str) -> Result<Expr> {
    // SAFETY: the caller's promise.
    unsafe { borrow(expr, argument) }.map(|expr| expr.expr.clone())
}

/// Checks an expression and hands it out.
unsafe fn made(expr: impl FnOnce() -> Result<Expr>, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { give(BowstringExpr::new(expr()?)?, out) })
}

/// Refers to a column by its name, a UTF-8 string that ends with a 0.
///
/// # Safety
///
/// `name` must be NULL or a C string, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_column(
    name: *const c_char,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(col(text(name, "name")?)), out) }
}

/// Refers to a column by its position, which counts from 0.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_nth(index: u64, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(nth(usize::try_from(index).map_err(|_| invalid("index: too large"))?)), out) }
}

/// Makes a literal from the only row of `value`, an array in memory that the host can read. It has the type
/// of the array: Boolean, or a number, date or time of at most 16 bytes. An array of type Null makes a null
/// that takes the type of the operand that it is combined with.
///
/// # Safety
///
/// `value` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_literal(
    value: *const BowstringArray,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(Literal::try_from(&Scalar::try_new(&borrow(value, "value")?.array)?)?)), out) }
}

/// Makes an integer literal, which takes the type of the operand that it is combined with.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_int(value: i64, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(value)), out) }
}

/// Makes a floating-point literal, which takes the type of the operand that it is combined with. Combined
/// with a decimal, it has the value of its shortest decimal representation.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_double(value: f64, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(value)), out) }
}

/// Makes a Boolean literal: 0 is false, any other value is true.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_bool(value: i32, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(value != 0)), out) }
}

/// Makes a text literal from a UTF-8 string that ends with a 0. It takes the type of the operand that it is
/// combined with, which may be any type of text or bytes.
///
/// # Safety
///
/// `value` must be NULL or a string that ends with 0, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_text(
    value: *const c_char,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(text(value, "value")?)), out) }
}

/// Applies `op`, a `BowstringUnary`, to an expression. An unknown number is `BOWSTRING_STATUS_INVALID`.
///
/// # Safety
///
/// `x` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_unary(
    op: i32,
    x: *const BowstringExpr,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| unary(op, of(x, "x")?), out) }
}

/// Applies `op`, a `BowstringBinary`, to two expressions. An unknown number is `BOWSTRING_STATUS_INVALID`.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_binary(
    op: i32,
    a: *const BowstringExpr,
    b: *const BowstringExpr,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| binary(op, of(a, "a")?, of(b, "b")?), out) }
}

/// Makes an expression that is `then` where `condition` is true, and `otherwise` where it is false or null.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_if_else(
    condition: *const BowstringExpr,
    then: *const BowstringExpr,
    otherwise: *const BowstringExpr,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe {
        let all = || Ok(if_else(of(condition, "condition")?, of(then, "then")?, of(otherwise, "otherwise")?));
        made(all, out)
    }
}

/// Makes an expression that says whether `x` equals one of the rows of `values`. `values` is an array as for
/// `bowstring_expr_literal`, but of any length. The result is null if `x` is null, or if no row is equal and
/// one of them is null.
///
/// # Safety
///
/// Handles must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_in_list(
    x: *const BowstringExpr,
    values: *const BowstringArray,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    let all = || {
        // SAFETY: the caller's promise.
        let (x, values) = unsafe { (of(x, "x")?, &borrow(values, "values")?.array) };
        let row = |i| Literal::try_from(&Scalar::try_new(&values.slice(i, 1)?)?);
        let rows = (0..values.len()).map(row);
        Ok::<_, Error>(x.in_list(rows.collect::<Result<Vec<Literal>>>()?))
    };
    // SAFETY: the caller's promise.
    unsafe { made(all, out) }
}

/// Casts an expression to the type that `to` describes. `to` is only read. A value that does not fit becomes
/// null; if `strict` is not 0, it fails with `BOWSTRING_STATUS_CAST`.
///
/// # Safety
///
/// Handle and schema must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_cast(
    x: *const BowstringExpr,
    to: *const FFI_ArrowSchema,
    strict: i32,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    let all = || {
        // SAFETY: the caller's promise.
        let (x, to) = unsafe { (of(x, "x")?, exchange::import_field(borrow(to, "to")?)?) };
        let to = to.data_type().clone();
        Ok(if strict != 0 { x.cast_strict(to) } else { x.cast(to) })
    };
    // SAFETY: the caller's promise.
    unsafe { made(all, out) }
}

/// Gives an expression a name, which becomes the name of its column in a result. `name` is UTF-8 and is
/// copied.
///
/// # Safety
///
/// `x` must be NULL or a live handle, `name` NULL or a C string, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_alias(
    x: *const BowstringExpr,
    name: *const c_char,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(of(x, "x")?.alias(text(name, "name")?)), out) }
}

/// Makes another handle of the same expression. The caller frees both.
///
/// # Safety
///
/// `x` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_clone(
    x: *const BowstringExpr,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| of(x, "x"), out) }
}

/// Returns the expression as readable text. The handle owns the text, which is valid until the handle is
/// freed.
///
/// # Safety
///
/// `x` must be NULL or a live handle, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_to_string(
    x: *const BowstringExpr,
    out: *mut *const c_char,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let x = borrow(x, "x")?;
        let text = || CString::new(x.expr.to_string().replace('\0', "?")).unwrap_or_default();
        put(x.text.get_or_init(text).as_ptr(), out)
    })
}

/// Frees an expression. NULL is ignored.
///
/// # Safety
///
/// `x` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_free(x: *mut BowstringExpr) {
    // SAFETY: the caller's promise.
    unsafe { free(x) }
}
