//! Builds expressions in C. An expression is not bound to a schema; a function that evaluates it checks it
//! against the columns of its batch.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use bowstring::compute::Scalar;
use bowstring::exchange;
use bowstring::expr::{Expr, Literal, LiteralList, col, if_else, lit, nth};
use bowstring::ffi::FFI_ArrowSchema;
use bowstring::{DeviceArray, Error, Result};

use crate::array::BowstringArray;
use crate::expr_operations::{binary, unary};
use crate::status::{BowstringStatus, borrow, free, give, guard, invalid, put, text};

/// A value computed for each row of a batch. An expression shares the expressions that it was built from, so
/// their handles may be freed. One that is nested more than 200 deep, or has more than 20000 parts or 256 MiB
/// of values, is `BOWSTRING_STATUS_INVALID`.
pub struct BowstringExpr {
    pub(crate) expr: Expr,
    text: OnceLock<CString>,
}

impl BowstringExpr {
    fn new(expr: Expr) -> Result<BowstringExpr> {
        expr.check()?;
        Ok(BowstringExpr { expr, text: OnceLock::new() })
    }
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
        Ok::<_, Error>(x.in_list(literals(values)?))
    };
    // SAFETY: the caller's promise.
    unsafe { made(all, out) }
}

/// The rows of an array as literals. They are counted before they are made, because an array can have many
/// more rows than bytes: one of nulls has none.
fn literals(values: &DeviceArray) -> Result<LiteralList> {
    let mut literals = LiteralList::new();
    literals.check_room(values.len())?;
    for row in 0..values.len() {
        literals.push(Literal::try_from(&Scalar::try_new(&values.slice(row, 1)?)?)?)?;
    }
    Ok(literals)
}

/// Takes at most `length` characters of text from character `start` on, which counts from the end if it is
/// negative. `UINT64_MAX` takes all that follow.
///
/// # Safety
///
/// Handle must be NULL or live, `out` NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bowstring_expr_substring(
    x: *const BowstringExpr,
    start: i64,
    length: u64,
    out: *mut *mut BowstringExpr,
) -> BowstringStatus {
    // SAFETY: the caller's promise.
    unsafe { made(|| Ok(of(x, "x")?.substring(start, (length < u64::MAX).then_some(length))), out) }
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
