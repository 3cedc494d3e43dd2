//! Tests of text: comparison, search for bytes, and patterns.

pub mod find;
pub mod folds;
pub mod head;
pub mod kernels;
pub mod like;
mod piece;
pub mod pieces;
pub mod test;
