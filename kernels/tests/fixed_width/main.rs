//! Every kernel, at both widths, against a plain definition. Memory is exactly as long as a kernel may need, so that an
//! access outside is a fault.

mod bitmap;
mod divide;
mod filter;
mod map;
mod selftest;
mod support;
mod take;
