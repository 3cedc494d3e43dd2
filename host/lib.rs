//! Compute kernels for Apache Arrow device arrays.
