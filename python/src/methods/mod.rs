//! The methods and attributes of arrays and batches in Python.
//!
//! They may use all other modules of this crate, so they are separate from the definitions of the classes.

mod array;
mod batch;
