//! What a rule can say, and how one that needs functions is put together.

use bowstring_kernels::function::words::Parameter;
use bowstring_kernels::function::{Native, Number, ValueFunction};
use bowstring_kernels::functions::{Function, FunctionCall};
use bowstring_kernels::written::readers::Reading;
use bowstring_kernels::written::writers::Writing;

/// How to cast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::compute) enum CastRule {
    /// The bits do not change.
    Same,
    /// Apply a function to every value.
    Map(FunctionCall),
    /// Read the text of every row.
    Read(Reading),
    /// Write every value as text.
    Write(Writing),
    /// Every value becomes zero: the scale falls by more digits than there are.
    Zero,
    /// An error whatever the values and whatever is asked for values that do not fit: the power of ten
    /// between the scales does not fit the type.
    Overflow,
    /// The target type itself is wrong: precision and scale do not go together.
    InvalidTarget,
    /// The time zone database decides.
    NeedsZone,
    /// There is no such cast, or not between plain values of fixed width.
    Never,
}

/// A function applied to every value.
pub(super) fn apply<F>(function: Function, values: F, fallible: bool) -> CastRule
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    CastRule::Map(FunctionCall::new(function, values, fallible))
}

/// A function without parameters applied to every value.
pub(super) fn apply_plain(function: Function, from: Number, to: Number) -> CastRule {
    FunctionCall::plain(function, from, to).map_or(CastRule::Never, CastRule::Map)
}

/// Runs the body with the Rust type of a number, if it is one of those listed.
macro_rules! with {
    ($number:expr, $t:ident = [$($variant:ident $native:ty),*], $body:expr) => {
        match $number {
            $(Number::$variant => {
                type $t = $native;
                $body
            })*
            _ => None,
        }
    };
}

macro_rules! integer {
    ($number:expr, $t:ident, $body:expr) => {
        with!($number, $t = [I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64], $body)
    };
}

macro_rules! signed {
    ($number:expr, $t:ident, $body:expr) => {
        with!($number, $t = [I8 i8, I16 i16, I32 i32, I64 i64], $body)
    };
}

/// Counts of days and of units of time.
macro_rules! count {
    ($number:expr, $t:ident, $body:expr) => { with!($number, $t = [I32 i32, I64 i64], $body) };
}

macro_rules! decimal {
    ($number:expr, $t:ident, $body:expr) => {
        with!($number, $t = [I32 i32, I64 i64, I128 i128, I256 I256], $body)
    };
}

macro_rules! float {
    ($number:expr, $t:ident, $body:expr) => { with!($number, $t = [F16 F16, F32 f32, F64 f64], $body) };
}

pub(super) use {count, decimal, float, integer, signed, with};
