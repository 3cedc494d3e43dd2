//! The common parts of all suites: the types, random arrays of them, the lengths and masks that find bugs,
//! the devices, and the comparison of results.
//!
//! The one idea: [`rows`] reads any array into plain [`Value`]s, one row at a time and without optimisation.
//! An operation that only moves data is then defined in one line over `Vec<Value>`, for every type at once.
//!
//! All random data derives from a seed that a failing test prints; the same seed gives the same array.

pub mod allocations;
pub mod amd;
mod arrays;
mod cases;
pub mod children;
pub mod counted;
mod definitions;
mod devices;
mod displaced;
mod exact;
pub mod generated;
#[cfg(target_os = "linux")]
mod guarded;
mod hidden;
pub mod meaning;
pub mod native;
pub mod operations;
pub mod ordered;
pub mod ptx;
mod random;
pub mod refusals;
mod rows;
mod scalars;
mod strategies;
pub mod trees;
mod types;
mod uncounted;
pub mod witness;
pub mod work;

pub use arrays::{Nulls, array, bitmap, sliced, some_of};
pub use cases::{LENGTHS, MASKS, Mask, OFFSETS, SELECTIVITIES, indices, mask};
pub use definitions::{filtered, is_nothing, numbers, taken};
pub use devices::{Form, Target, devices, interpreted};
pub use displaced::displaced;
pub use exact::Exact;
#[cfg(target_os = "linux")]
pub use guarded::guarded;
pub use hidden::{hiding_no_items, hiding_nothing};
pub use random::Random;
pub use rows::{Value, assert_same_rows, rows};
pub use strategies::{Sample, cases, config, data_type, sample, sample_of};
pub use types::{has_nulls, index_types, types, types_to_launch};
pub use uncounted::uncounted;
