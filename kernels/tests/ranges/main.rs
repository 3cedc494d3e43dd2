//! Compares the kernels for variable-length and nested types with plain definitions, at both widths.

mod concat;
mod copy;
mod device;
mod distinct;
mod kept_ranges;
mod offsets;
mod print;
mod ranges;
mod scan;
mod selection;
mod sort;
mod structure;
mod substring;
mod text;
mod utf8;
mod views;
mod zoned;
