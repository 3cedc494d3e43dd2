//! The operations. Each takes any array or batch that speaks a protocol, works where the data is, on the default stream
//! unless told another, and lets other Python threads run meanwhile.

mod casts;
mod join;
mod nulls;
mod select;

pub use casts::{cast, cast_array};
pub use join::concat;
pub use nulls::{drop_null, fill_null, is_null, is_valid, logical_null_count, null_count};
pub use select::{filter, strided, take};
