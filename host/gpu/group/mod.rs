//! Groups of equal rows: their numbers, and folds of their values.
//!
//! The one idea: see [`bowstring_kernels::group`]. To number groups takes one look, for how many there are;
//! to fold their values takes none.
//!
//! Memory for a row, all of which is released at the end: 16 bytes for words, 16 to 32 for slots, and 8 for
//! places and groups. A fold puts rows in order, which takes up to 20 bytes, and has as many results as
//! groups and one more for each 1,024 rows.

mod divide;
mod folds;
mod frames;
pub(crate) mod ids;
pub(crate) mod keys;
mod kinds;
mod parts;
mod root;
pub(crate) mod segments;
mod tally;

pub(super) use divide::divide_sums;
pub(super) use folds::fold_groups;
pub(super) use frames::{fold_frames, frame_ends};
pub(super) use ids::group;
pub(super) use parts::{hash_rows, partition_by_hash};
pub(super) use root::roots;
