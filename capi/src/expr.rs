//! Expressions, as they are written in C. They know nothing of columns; what is wrong with them is found when they meet some.

use std::ffi::{CStr, CString, c_char};
use std::sync::OnceLock;

use bowstring::compute::Scalar;
use bowstring::exchange;
use bowstring::expr::{DatePart, Expr, Literal, col, if_else, lit, nth};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{Error, Result};

use crate::array::BowstringArray;
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, missing, put};

/// What is computed of each row of a batch. Made of others, which it shares: they may be freed. One that is nested more than 200 deep, or
/// has more than 20000 parts or 256 MiB of values, is `BOWSTRING_STATUS_INVALID`.
pub struct BowstringExpr {
    pub(crate) expr: Expr,
    text: OnceLock<CString>,
}

/// What is made of one expression.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringUnary {
    /// The opposite of a truth.
    Not = 0,
    /// The value with the other sign.
    Negate = 1,
    /// Whether there is no value.
    IsNull = 2,
    /// Whether there is a value.
    IsNotNull = 3,
    /// Whether it is true; null is not.
    IsTrue = 4,
    /// Whether it is false or null.
    IsNotTrue = 5,
    /// Whether it is false; null is not.
    IsFalse = 6,
    /// Whether it is true or null.
    IsNotFalse = 7,
    /// The year of a date or a timestamp without a zone: an Int32, as the parts below.
    Year = 8,
    /// The month, from 1 on.
    Month = 9,
    /// The day of the month, from 1 on.
    Day = 10,
    /// The hour of a date, a timestamp without a zone or a time.
    Hour = 11,
    /// The minute.
    Minute = 12,
    /// The second.
    Second = 13,
}

/// What is made of two expressions.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BowstringBinary {
    /// Whether both are equal; null where either is, as in all comparisons but the last two.
    Eq = 0,
    /// Whether they differ.
    NotEq = 1,
    /// Whether the first is less.
    Lt = 2,
    /// Whether the first is less or equal.
    LtEq = 3,
    /// Whether the first is greater.
    Gt = 4,
    /// Whether the first is greater or equal.
    GtEq = 5,
    /// Whether they differ, where nulls are equal to each other and to nothing else.
    Distinct = 6,
    /// The opposite.
    NotDistinct = 7,
    /// Kleene's and: false where either is false.
    And = 8,
    /// Kleene's or: true where either is true.
    Or = 9,
    /// The sum.
    Add = 10,
    /// The difference.
    Subtract = 11,
    /// The product.
    Multiply = 12,
    /// The quotient, of integers cut towards zero.
    Divide = 13,
    /// The remainder, with the sign of the first.
    Remainder = 14,
    /// The first, or the second where the first is null.
    Coalesce = 15,
    /// The first, but null where both are equal.
    NullIf = 16,
    /// Whether the first, text or bytes, starts with the second.
    StartsWith = 17,
    /// Whether it ends with it.
    EndsWith = 18,
    /// Whether the second is somewhere in the first.
    Contains = 19,
    /// Whether text is of a pattern: `%` is any text, `_` any character, a backslash takes the next one as it is.
    Like = 20,
    /// The same, where case does not count.
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

/// An operation by its number: whatever number it is.
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

/// A C string.
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

/// What one expression is computed of.
unsafe fn of(expr: *const BowstringExpr, argument: &str) -> Result<Expr> {
    // SAFETY: the caller's promise.
    unsafe { borrow(expr, argument) }.map(|expr| expr.expr.clone())
}

/// Hands one out.
unsafe fn made(expr: impl FnOnce() -> Result<Expr>, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { give(BowstringExpr::new(expr()?)?, out) })
}

/// The column of a name, which is UTF-8 and ends with a 0.
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

/// The column of a number, from 0 on.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_nth(index: u64, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(nth(usize::try_from(index).map_err(|_| invalid("index: too large"))?)), out) }
}

/// The only row of `value`, an array in memory that the host reads, of its type: Boolean, or a number, date or time of 16 bytes at most.
/// An array of type Null is a null that takes the type of what it meets.
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

/// An integer, which takes the type of what it meets.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_int(value: i64, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(value)), out) }
}

/// A floating-point number, which takes the type of what it meets: beside a decimal it is what its shortest digits say.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_double(value: f64, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(value)), out) }
}

/// A truth: 0 is false.
///
/// # Safety
///
/// `out` must be NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_bool(value: i32, out: *mut *mut BowstringExpr) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(lit(value != 0)), out) }
}

/// Text, which takes the type of what it meets: any of text or of bytes.
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

/// What an operation, a `BowstringUnary`, makes of an expression.
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

/// What an operation, a `BowstringBinary`, makes of two expressions.
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

/// `then` where `condition` is true, `otherwise` where it is false or null.
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

/// Whether it is one of the rows of `values`, an array as `bowstring_expr_literal` takes it, but of any length; null where `x` is null,
/// or where it is none of them and one of them is null.
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

/// As the type that `to` describes, which is only read. What does not fit is null, or with `strict` other than 0
/// `BOWSTRING_STATUS_CAST`.
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

/// The same under a name, which the result's column has.
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

/// Another handle of the same expression.
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

/// The expression as people write it. The text is the handle's and lives as long.
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

/// Frees an expression.
///
/// # Safety
///
/// `x` must be NULL or a handle from this library that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_free(x: *mut BowstringExpr) {
    // SAFETY: the caller's promise.
    unsafe { free(x) }
}
