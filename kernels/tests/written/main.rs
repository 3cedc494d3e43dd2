//! What is read and written as text, value by value. Of floats Rust's own are the authority: `str::parse` rounds correctly, and `{:e}` is
//! shortest.

mod float_read;
mod float_write;
mod numbers;
mod powers;
mod support;
