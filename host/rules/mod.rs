//! L6: the rules of casts, the same on every device: which casts exist, the function for a pair of types, and
//! the errors in the words of arrow-rs.
//!
//! The one idea: arrow-cast decides by `match` on pairs of types, and often casts twice (Int64 to Date32
//! is Int64 to Int32 to Date32). Here each pair becomes one
//! [`FunctionCall`](bowstring_kernels::map::functions::FunctionCall), and all bounds are computed once,
//! exactly. Every device calls that function.

mod decimal;
mod fill;
mod folds;
mod groups;
mod misfits;
mod order;
mod patterns;
mod refusals;
mod rule;
pub(crate) mod seeds;
mod support;
mod temporal;
#[cfg(test)]
mod tests;
mod text;
mod values;
mod zones;

pub(crate) use fill::{fill_null, fill_nulls};
pub(crate) use folds::{Folded, has_extremes, prepared, result_type};
pub(crate) use groups::{NODE, PIECE, folded_type, levels, mean_of_decimals, too_large_a_mean};
pub(crate) use groups::{of_any_length, value_type, widened_type, with_long_ends, with_parts};
pub(crate) use misfits::{Misfits, misfits};
pub(crate) use order::{Order, Word, check_rows, too_many_rows, words};
pub(crate) use patterns::{pieces_of, wild_pieces_of};
pub(crate) use refusals::{
    cast_by_arrow, does_not_fit, no_value, refusal, unread, unsupported, with_arrow_fields,
};
pub(crate) use rule::CastRule;
pub use support::can_cast;
pub(crate) use text::{reading_words, writing_words, zoned_words};
pub(crate) use values::cast_rule;
