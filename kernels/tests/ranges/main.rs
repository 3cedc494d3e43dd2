//! Compares the kernels for variable-length and nested types with plain definitions, at both widths.

mod alike;
mod copy;
mod device;
mod join;
mod offsets;
mod print;
mod ranges;
mod ranges_keep;
mod scan;
mod selection;
mod structure;
mod text;
mod utf8;
mod views;
mod zoned;
