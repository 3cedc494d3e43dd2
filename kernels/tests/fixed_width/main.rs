//! Compares every kernel with a plain definition, at both widths. Memory is exactly as long as a kernel may
//! need, so that an access outside is a fault.

mod atomics;
mod bitmap;
mod divide;
mod filter;
mod map;
mod orders;
mod selftest;
mod support;
mod take;
