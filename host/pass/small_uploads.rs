//! What a pass needs of small things that come from the host (tables, numbers that start at something, zeros), gathered in
//! one block and sent with one copy, before the first work that could look: a call of the driver costs more than the bytes.

use super::{Pass, Region};
use crate::Result;
use crate::device::{Kept, Staged};

/// What is not small: it has memory of its own, and for zeros a call that needs no bytes.
const SMALL: usize = 16 << 10;
/// How long a block is, unless the operation has said how much it will need.
const BLOCK: usize = 2 << 10;
/// So many zeros are not sent: a call makes them there, in a block of at most so many.
const ZEROS: usize = 16 << 10;
const MOST_ZEROS: usize = 1 << 20;
/// No block is longer for what is said to come: what does not fit has another.
const MOST_EXPECTED: usize = 1 << 20;
/// What is shorter is sent in any case.
const WORDS: usize = 256;
/// Where things start in it: as far apart as consumers' reads of whole words reach.
const ALIGNMENT: usize = 64;

/// A pass's blocks, the last of which has room.
#[derive(Default)]
pub(super) struct SmallUploads {
    open: Option<Block>,
    /// How long the next one should be.
    expected: usize,
    /// Zeros that are there, with room from a place on, and how many more will be asked for.
    zeros: Option<(Region, usize)>,
    expected_zeros: usize,
    sent: Vec<Kept>,
}

struct Block {
    staged: Staged,
    region: Region,
    used: usize,
    sent: usize,
}

impl SmallUploads {
    /// The blocks, to be kept until the copies from them have passed.
    pub fn end(&mut self) -> Vec<Kept> {
        let open = self.open.take().map(|block| Kept::Staged(block.staged));
        self.sent.drain(..).chain(open).collect()
    }
}

impl Pass {
    /// Says what will be asked for, so that it goes together: how long the small things are, and how many bitmaps of zeros
    /// of how many bytes.
    pub fn expect(&mut self, small: &[usize], (bitmaps, bytes): (usize, usize)) {
        let small = small.iter().fold(0usize, |sum, bytes| sum.saturating_add(padded(*bytes)));
        self.small_uploads.expected = small.min(MOST_EXPECTED);
        match bitmaps.saturating_mul(padded(bytes)) {
            zeros if zeros <= ZEROS => self.small_uploads.expected += zeros,
            zeros => self.small_uploads.expected_zeros = zeros,
        }
    }

    /// Memory of zeros that is made with that of others, where the operation expects several.
    pub(super) fn gather_zeros(&mut self, bytes: usize) -> Result<Option<Region>> {
        let (needed, expected) = (padded(bytes), self.small_uploads.expected_zeros);
        if bytes < WORDS || needed > expected || needed > MOST_ZEROS / 2 {
            return self.gather(bytes, &[]);
        }
        let is_full = |(block, used): &(Region, usize)| block.bytes - used < needed;
        if self.small_uploads.zeros.as_ref().is_none_or(is_full) {
            let block = self.output(expected.min(MOST_ZEROS / needed * needed))?;
            self.set(&block, 0)?;
            self.small_uploads.zeros = Some((block, 0));
        }
        self.small_uploads.expected_zeros -= needed;
        let (block, used) = self.small_uploads.zeros.as_mut().expect("made above");
        *used += needed;
        Ok(Some(Region { memory: block.memory.clone(), at: block.at + *used - needed, bytes }))
    }

    /// Memory of `bytes` that begins with these words and goes on with zeros, where that is small.
    pub(super) fn gather(&mut self, bytes: usize, words: &[u64]) -> Result<Option<Region>> {
        if bytes > SMALL || bytes == 0 {
            return Ok(None);
        }
        let needed = padded(bytes);
        let is_full = |block: &Block| block.region.bytes - block.used < needed;
        if self.small_uploads.open.as_ref().is_none_or(is_full) {
            self.send()?;
            let len = std::mem::take(&mut self.small_uploads.expected).max(BLOCK).max(needed);
            let block = Block { staged: self.stage(len)?, region: self.output(len)?, used: 0, sent: 0 };
            let full = self.small_uploads.open.replace(block);
            self.small_uploads.sent.extend(full.map(|full| Kept::Staged(full.staged)));
        }
        let block = self.small_uploads.open.as_mut().expect("opened above");
        let at = block.used;
        block.used += needed;
        // Nothing of this part has been sent yet.
        let bytes_there = block.staged.pinned_mut().part_mut(at..block.used);
        let (values, zeros) = bytes_there.split_at_mut(size_of_val(words));
        for (to, word) in values.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        zeros.fill(0);
        Ok(Some(Region { memory: block.region.memory.clone(), at: block.region.at + at, bytes }))
    }

    /// Queues the copy of what was gathered since the last one. All work that could read it comes behind.
    pub(super) fn send(&mut self) -> Result<()> {
        let Some(block) = &mut self.small_uploads.open else { return Ok(()) };
        let part = block.sent..block.used;
        block.sent = block.used;
        let block = self.small_uploads.open.as_ref().expect("as above");
        self.copy_in(&block.region, &block.staged, part)
    }
}

/// How much of a block a small thing takes; what is near the end of all numbers is not small.
fn padded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}
