//! Packs the small data that a pass uploads (tables, counters with initial values, zeros) into one block. One
//! copy sends the block before any work that could read it, because a call of the driver costs more than the
//! bytes.

use std::ops::Range;

use super::region::Region;
use crate::device::{Kept, Staged};

/// The size limit of small data. Larger data has memory of its own, and larger zeros a fill call, which
/// transfers no bytes.
const SMALL: usize = 16 << 10;
/// The size of a block, unless the operation has announced how much it needs.
const BLOCK: usize = 2 << 10;
/// The size limit of a block for announced data; the remainder goes into another block.
const LONGEST: usize = 1 << 20;
/// The alignment of pieces in a block: consumers read whole words up to this boundary.
const ALIGNMENT: usize = 64;

/// A pass's blocks. The last one is open.
#[derive(Default)]
pub(super) struct SmallUploads {
    open: Option<Block>,
    /// The minimum size of the next block.
    reserved: usize,
    full: Vec<Kept>,
}

struct Block {
    staged: Staged,
    region: Region,
    used: usize,
    sent: usize,
}

/// Whether data of this size is packed.
pub(super) fn is_small(bytes: usize) -> bool {
    (1..=SMALL).contains(&bytes)
}

impl SmallUploads {
    /// Makes the next block long enough for pieces of these lengths.
    pub fn reserve(&mut self, lengths: impl IntoIterator<Item = usize>) {
        let sum = lengths.into_iter().fold(0usize, |sum, bytes| sum.saturating_add(padded(bytes)));
        self.reserved = sum.min(LONGEST);
    }

    /// The required size of a new block for `bytes` more bytes; `None` if the open block has room.
    pub fn needs_block(&self, bytes: usize) -> Option<usize> {
        let needed = padded(bytes);
        let has_room = self.open.as_ref().is_some_and(|block| block.region.bytes() - block.used >= needed);
        (!has_room).then(|| self.reserved.max(BLOCK).max(needed))
    }

    /// Continues with a new block, pinned and on the device. All of the last one must have been sent.
    pub fn open(&mut self, staged: Staged, region: Region) {
        self.reserved = 0;
        let full = self.open.replace(Block { staged, region, used: 0, sent: 0 });
        self.full.extend(full.map(|full| Kept::Staged(full.staged)));
    }

    /// Packs `bytes` that begin with `words`, followed by zeros, into the open block; `None` if no block is
    /// open.
    pub fn pack(&mut self, bytes: usize, words: &[u64]) -> Option<Region> {
        let block = self.open.as_mut()?;
        let part = block.used..block.used + padded(bytes);
        // This part of the block has not been sent yet.
        let (values, zeros) =
            block.staged.pinned_mut().part_mut(part.clone()).split_at_mut(size_of_val(words));
        write_words(values, words);
        zeros.fill(0);
        block.used = part.end;
        Some(block.region.piece(part.start, bytes))
    }

    /// The part that has been packed but not sent.
    pub fn unsent(&self) -> Option<(&Region, &Staged, Range<usize>)> {
        let block = self.open.as_ref().filter(|block| block.sent < block.used)?;
        Some((&block.region, &block.staged, block.sent..block.used))
    }

    /// Records that everything packed has been sent.
    pub fn sent(&mut self) {
        if let Some(block) = &mut self.open {
            block.sent = block.used;
        }
    }

    /// The blocks, which must be kept until the copies from them have finished.
    pub fn end(&mut self) -> Vec<Kept> {
        let open = self.open.take().map(|block| Kept::Staged(block.staged));
        self.full.drain(..).chain(open).collect()
    }
}

/// Writes words to the first of these bytes.
pub(super) fn write_words(to: &mut [u8], words: &[u64]) {
    for (to, word) in to.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
}

/// The size of a piece in a block. Saturates, so that an overflow is not small.
fn padded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}
