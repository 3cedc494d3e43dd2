//! Joins on a device: a table of rows, the rows that others find there, and pairs of both.
//!
//! The one idea: see [`bowstring_kernels::join`]. A table is made with one look. To find rows takes none; to
//! write pairs takes one, for their number.
//!
//! Memory of a table, for a row: 8 bytes for its word, 16 to 32 for slots, 4 each for its group, the first
//! row of its group, and its place in order, and 8 for the places of its group. The last 12 are left out if
//! no two rows have equal keys.

mod pairs;
mod table;

pub(super) use pairs::mark;
pub(super) use table::table;
