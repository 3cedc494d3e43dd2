//! Kernels that variable-length and nested types need, at both widths, against plain definitions.

mod copy;
mod device;
mod offsets;
mod ranges;
mod ranges_keep;
mod scan;
mod utf8;
mod views;
