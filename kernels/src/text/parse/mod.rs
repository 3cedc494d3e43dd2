//! Values from text.

pub mod boolean;
pub mod date;
pub mod decimal;
pub mod float;
pub mod float_exact;
mod held;
pub mod integer;
pub mod interval;
pub mod kernels;
mod moment;
pub mod parsers;
mod pieces;
mod plain;
pub mod said;
pub mod time;
pub mod timestamp;
