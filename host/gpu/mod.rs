//! L6: the operations on a GPU, in the vocabulary of [`Pass`](crate::pass::Pass).
//!
//! What only moves data is dispatched on the layout table: bits, fixed widths, offsets, children. Columns of equal width
//! travel in one launch, described by a table in device memory. Whatever the host must know (how many rows a filter
//! keeps, null counts, byte totals) is computed first, for all columns and all levels of nesting, and read in one go.
//!
//! An operation walks its columns once and makes a plan, which asks for what it will need (see
//! [`Requests`](crate::pass::Requests)); what was planned is launched when that is there.

mod bitmap;
pub(crate) mod cast;
mod concat;
mod filter;
mod filter_values;
mod indices;
pub(crate) mod map;
mod mask;
mod nulls;
mod parts;
pub(crate) mod program;
mod ranges;
mod ranges_copy;
mod rows;
mod scan;
mod selection;
pub(crate) mod structure;
mod take;
mod take_tables;
pub(crate) mod text;
pub(crate) mod written;

pub(crate) use concat::concat;
pub(crate) use filter::filter;
pub(crate) use indices::Outside;
pub(crate) use mask::Source;
pub(crate) use nulls::{filled, is_null, null_counts, numbers, with_null_counts_checked};
pub(crate) use selection::Selection;
pub(crate) use take::{take, take_one};
