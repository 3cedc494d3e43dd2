//! L7: the operations on a GPU, in the vocabulary of [`Pass`](crate::pass::Pass). [`engine`] offers them to
//! [`compute`](crate::compute).
//!
//! Operations that only move data dispatch on the layout table: bits, fixed widths, offsets, children.
//! Columns of equal width share one launch, described by a table in device memory. Numbers that the host must
//! know (how many rows a filter keeps, null counts, byte totals) are computed first, for all columns and all
//! levels of nesting, and read together.
//!
//! An operation walks its columns once and makes a plan, which requests the memory it will need (see
//! [`Requests`](crate::pass::Requests)). The launches follow once the requests are granted.

mod bitmap;
mod cast;
mod concat;
mod draft;
mod engine;
mod filter;
mod filter_values;
mod group;
mod indices;
mod join;
mod map;
mod mask;
mod nulls;
mod parts;
mod plain;
mod prepare;
mod program;
mod ranges;
mod ranges_copy;
mod rows;
mod scan;
mod selection;
mod sort;
mod structure;
mod substring;
mod take;
mod take_tables;
mod text;
mod written;

pub(crate) use engine::Gpu;
use filter::filter;
use indices::Outside;
use mask::Source;
pub use prepare::Kernels;
use take::take_one;
