//! The methods and attributes of Python's classes.
//!
//! They may use all other modules of this crate, so they are separate from the definitions of the classes.

mod array;
mod batch;
mod chosen;
mod expr;
mod reader;
