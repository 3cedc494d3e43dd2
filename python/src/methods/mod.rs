//! What Python sees of arrays and batches: their methods and attributes. They may use everything else here, which is why they
//! stand apart from what arrays and batches are.

mod array;
mod batch;
