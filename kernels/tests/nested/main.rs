//! Kernels that variable-length and nested types need, at both widths, against plain definitions.

mod copy;
mod device;
mod ranges;
mod scan;
