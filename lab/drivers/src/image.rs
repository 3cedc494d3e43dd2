//! An image as the machine runs it: PTX or a code object, each in its interpreter.

use std::sync::Arc;

use crate::memory::Memory;

/// A loaded image, which can run its entries.
pub trait Image: Send + Sync {
    /// The number of argument words of an entry; `None` if the image has no such entry.
    fn words(&self, entry: &str) -> Option<usize>;
    /// Runs blocks of an entry.
    fn run(&self, entry: &str, words: &[u64], blocks: u32, memory: &mut Memory) -> Result<(), String>;
}

/// An image that a device has loaded.
#[derive(Clone)]
pub struct Module {
    pub device: i32,
    pub image: Arc<dyn Image>,
}
