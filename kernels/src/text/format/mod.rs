//! Text from values.

pub mod boolean;
pub mod date;
pub mod decimal;
pub mod duration;
mod figures;
pub mod float;
pub mod formatters;
pub mod integer;
pub mod interval;
pub mod kernels;
mod moment;
pub mod shortest;
pub mod sink;
pub mod time;
pub mod timestamp;
