//! Rows that are found by their keys: a hash table of groups.
//!
//! The one idea: the keys of a row become a word. If the values and nulls of all columns fit 64 bits, the
//! word is the keys; otherwise it is a hash, and rows with equal words are compared. [`keys`] makes words and
//! compares, [`table`] finds the group of a word. Text of up to 15 bytes is compared by a copy of its own, so
//! that the first row of a group need not be read.

mod columns;
mod hash;
mod keys;
mod members;
mod parts;
mod places;
mod short;
mod spans;
mod table;

/// The rows whose words are made, and whose slots are fetched, together.
const BLOCK: usize = 64;

pub(super) use columns::{Columns, is_plain};
pub(super) use keys::Nulls;
pub(super) use parts::{hash_rows, partition_by_hash};
pub(super) use table::{Groups, NONE, RANGE, Table, grouped, grouped_to_find};
