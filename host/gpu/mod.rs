//! L6: the operations on a GPU, in the vocabulary of [`Pass`](crate::pass::Pass).
//!
//! Operations that only move data dispatch on the layout table: bits, fixed widths, offsets, children.
//! Columns of equal width share one launch, described by a table in device memory. Numbers that the host must
//! know (how many rows a filter keeps, null counts, byte totals) are computed first, for all columns and all
//! levels of nesting, and read together.
//!
//! An operation walks its columns once and makes a plan, which requests the memory it will need (see
//! [`Requests`](crate::pass::Requests)). The launches follow once the requests are granted.

mod bitmap;
pub(crate) mod cast;
mod concat;
mod draft;
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
