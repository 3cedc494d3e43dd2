//! Tests values that are read and written as text, one by one. For floats, Rust is the authority:
//! `str::parse` rounds correctly, and `{:e}` is shortest.

mod float_read;
mod float_write;
mod numbers;
mod powers;
mod support;
