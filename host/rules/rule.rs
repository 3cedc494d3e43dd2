//! The kinds of cast rules, and constructors for rules that apply functions.

use bowstring_kernels::map::function::words::Parameter;
use bowstring_kernels::map::function::{Native, Number, ValueFunction};
use bowstring_kernels::map::functions::{Function, FunctionCall};
use bowstring_kernels::text::format::formatters::Writing;
use bowstring_kernels::text::parse::parsers::Reading;

/// The method of a cast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CastRule {
    /// The bits do not change.
    Same,
    /// Applies a function to every value.
    Map(FunctionCall),
    /// Parses the text of every row.
    Read(Reading),
    /// Formats every value as text.
    Write(Writing),
    /// Every value becomes zero, because the scale decreases by more digits than the type has.
    Zero,
    /// Always an error, whatever the values and options: the power of ten between the scales does not fit the
    /// type.
    Overflow,
    /// The target type itself is invalid: precision and scale are inconsistent, or the time zone is unknown.
    InvalidTarget,
    /// The cast depends on the time zone database.
    NeedsZone,
    /// Unsupported, or not between plain values of fixed width.
    Never,
}

/// Applies a function with parameters to every value.
pub(super) fn apply<F>(function: Function, values: F, fallible: bool) -> CastRule
where
    F: ValueFunction<From: Native, To: Native> + Parameter,
{
    CastRule::Map(FunctionCall::new(function, values, fallible))
}

/// Applies a function without parameters to every value.
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

/// Runs the body with the Rust type of a count of days or time units.
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
