//! Expressions as handles: how a test makes one, and what it says.

use std::ffi::{CStr, CString};
use std::ptr::{null, null_mut};

use BowstringStatus::Ok;
use bowstring_c::*;

pub type Handle = *mut BowstringExpr;

pub fn last_error() -> String {
    // SAFETY: never null, and valid until the next failure of this thread.
    unsafe { CStr::from_ptr(bowstring_last_error()) }.to_str().unwrap().to_owned()
}

/// The handle that a function hands out; the call must succeed.
pub fn got<T>(function: impl FnOnce(*mut *mut T) -> BowstringStatus) -> *mut T {
    let mut handle = null_mut();
    assert_eq!(function(&mut handle), Ok, "{}", last_error());
    handle
}

pub fn col(name: &str) -> Handle {
    let name = CString::new(name).unwrap();
    // SAFETY: live handles, and places for results.
    got(|out| unsafe { bowstring_expr_column(name.as_ptr(), out) })
}

pub fn int(value: i64) -> Handle {
    // SAFETY: live handles, and places for results.
    got(|out| unsafe { bowstring_expr_int(value, out) })
}

/// Applies a unary operation, and frees its argument, which the result shares.
pub fn unary(op: BowstringUnary, x: Handle) -> Handle {
    // SAFETY: live handles, and places for results.
    let made = got(|out| unsafe { bowstring_expr_unary(op as i32, x, out) });
    // SAFETY: live handles, and places for results.
    unsafe { bowstring_expr_free(x) };
    made
}

pub fn binary(op: BowstringBinary, a: Handle, b: Handle) -> Handle {
    // SAFETY: live handles, and places for results.
    let made = got(|out| unsafe { bowstring_expr_binary(op as i32, a, b, out) });
    // SAFETY: live handles, and places for results.
    unsafe {
        bowstring_expr_free(a);
        bowstring_expr_free(b);
    }
    made
}

pub fn text(x: Handle) -> String {
    let mut text = null();
    // SAFETY: live handles, and places for results.
    assert_eq!(unsafe { bowstring_expr_to_string(x, &mut text) }, Ok);
    // SAFETY: live handles, and places for results.
    let text = unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned();
    // SAFETY: live handles, and places for results.
    unsafe { bowstring_expr_free(x) };
    text
}
