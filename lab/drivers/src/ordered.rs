//! HIP's allocator in stream order, with AMD's rule: a freed block goes at once to the stream that once
//! allocated it, and to the stream that freed it, whatever other streams still do with it. So a program that
//! uses a block on two streams may get it a third time while the second stream is at work.

use std::sync::Mutex;

use crate::lock;

#[derive(Clone, Copy)]
struct Block {
    address: usize,
    bytes: usize,
    device: i32,
    /// The streams that get the block without waiting.
    safe: [usize; 2],
    free: bool,
}

/// The blocks that were allocated this way, used and free.
#[derive(Default)]
pub struct Ordered(Mutex<Vec<Block>>);

impl Ordered {
    /// Takes a free block of exactly this size that the stream may have at once.
    pub fn take(&self, bytes: usize, device: i32, stream: usize) -> Option<usize> {
        let mut blocks = lock(&self.0);
        let fits = |block: &&mut Block| {
            block.free && block.bytes == bytes && block.device == device && block.safe.contains(&stream)
        };
        let block = blocks.iter_mut().find(fits)?;
        block.free = false;
        block.safe[0] = stream;
        Some(block.address)
    }

    /// Adds a new block, in use.
    pub fn add(&self, address: usize, bytes: usize, device: i32, stream: usize) {
        lock(&self.0).push(Block { address, bytes, device, safe: [stream; 2], free: false });
    }

    /// Takes a block back; `false` if it is none of these.
    pub fn free(&self, address: usize, stream: usize) -> bool {
        let mut blocks = lock(&self.0);
        let Some(block) = blocks.iter_mut().find(|block| block.address == address && !block.free) else {
            return false;
        };
        (block.free, block.safe[1]) = (true, stream);
        true
    }

    /// Forgets the free blocks of a device, which the caller frees.
    pub fn forget(&self, device: i32) -> Vec<usize> {
        let mut blocks = lock(&self.0);
        let gone = |block: &Block| block.free && block.device == device;
        let addresses = blocks.iter().filter(|block| gone(block)).map(|block| block.address).collect();
        blocks.retain(|block| !gone(block));
        addresses
    }

    /// How many free blocks of a device are kept.
    pub fn kept(&self, device: i32) -> usize {
        lock(&self.0).iter().filter(|block| block.free && block.device == device).count()
    }
}
