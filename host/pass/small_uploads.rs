//! What a pass needs of small things that come from the host (tables, numbers that start at something, zeros), packed into
//! one block and sent with one copy, before the first work that could look: a call of the driver costs more than the bytes.

use std::ops::Range;

use super::region::Region;
use crate::device::{Kept, Staged};

/// What is not small: it has memory of its own, and for zeros a call that needs no bytes.
const SMALL: usize = 16 << 10;
/// How long a block is, unless the operation has said how much it will need.
const BLOCK: usize = 2 << 10;
/// No block is longer for what is said to come: what does not fit has another.
const LONGEST: usize = 1 << 20;
/// Where things start in it: as far apart as consumers' reads of whole words reach.
const ALIGNMENT: usize = 64;

/// A pass's blocks, the last of which has room.
#[derive(Default)]
pub(super) struct SmallUploads {
    open: Option<Block>,
    /// How long the next one must be at least.
    reserved: usize,
    full: Vec<Kept>,
}

struct Block {
    staged: Staged,
    region: Region,
    used: usize,
    sent: usize,
}

/// Whether so many bytes are packed.
pub(super) fn is_small(bytes: usize) -> bool {
    (1..=SMALL).contains(&bytes)
}

impl SmallUploads {
    /// Makes the next block long enough for things of these lengths.
    pub fn reserve(&mut self, lengths: impl IntoIterator<Item = usize>) {
        let sum = lengths.into_iter().fold(0usize, |sum, bytes| sum.saturating_add(padded(bytes)));
        self.reserved = sum.min(LONGEST);
    }

    /// How long a block must be that so many more bytes are packed into; `None` where the open one has room.
    pub fn needs_block(&self, bytes: usize) -> Option<usize> {
        let needed = padded(bytes);
        let has_room = self.open.as_ref().is_some_and(|block| block.region.bytes() - block.used >= needed);
        (!has_room).then(|| self.reserved.max(BLOCK).max(needed))
    }

    /// Goes on with another block, pinned and on the device, once all of the last one is sent.
    pub fn open(&mut self, staged: Staged, region: Region) {
        self.reserved = 0;
        let full = self.open.replace(Block { staged, region, used: 0, sent: 0 });
        self.full.extend(full.map(|full| Kept::Staged(full.staged)));
    }

    /// Part of the open block, of `bytes` that begin with these words and go on with zeros; `None` where there is no block.
    pub fn pack(&mut self, bytes: usize, words: &[u64]) -> Option<Region> {
        let block = self.open.as_mut()?;
        let part = block.used..block.used + padded(bytes);
        // Nothing of this part has been sent yet.
        let (values, zeros) =
            block.staged.pinned_mut().part_mut(part.clone()).split_at_mut(size_of_val(words));
        for (to, word) in values.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        zeros.fill(0);
        block.used = part.end;
        Some(block.region.piece(part.start, bytes))
    }

    /// What has been packed and not been sent.
    pub fn unsent(&self) -> Option<(&Region, &Staged, Range<usize>)> {
        let block = self.open.as_ref().filter(|block| block.sent < block.used)?;
        Some((&block.region, &block.staged, block.sent..block.used))
    }

    /// Notes that all that has been packed is sent.
    pub fn sent(&mut self) {
        if let Some(block) = &mut self.open {
            block.sent = block.used;
        }
    }

    /// The blocks, to be kept until the copies from them have passed.
    pub fn end(&mut self) -> Vec<Kept> {
        let open = self.open.take().map(|block| Kept::Staged(block.staged));
        self.full.drain(..).chain(open).collect()
    }
}

/// How much of a block a small thing takes; what is near the end of all numbers is not small.
fn padded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}
