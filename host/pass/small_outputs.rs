//! What is small of an operation's results lies together in few blocks, as copies' results do: to take a block from the pool
//! and give it back costs the host more than a small column's bytes are worth. And what nobody asks for is written to one
//! place of the stream's, over and over.

use super::{Pass, Region};
use crate::Result;

/// What is larger has a block of its own.
const SMALL: usize = 128 << 10;
/// No block is larger: it stays as long as any of the columns in it.
const MOST: usize = 1 << 20;
/// Where outputs start in it, as blocks of the pool do.
const ALIGNMENT: usize = 256;

/// Bytes that a stream keeps for what nobody asks for.
const SINK: usize = 64;

/// How much is still to come, and the block that has room.
#[derive(Default)]
pub(super) struct SmallOutputs {
    expected: usize,
    open: Option<(Region, usize)>,
}

impl Pass {
    /// Says how long the outputs to come are, so that the small ones share memory.
    pub fn expect_outputs(&mut self, bytes: impl Iterator<Item = usize>) {
        let small = bytes.filter(|bytes| (1..=SMALL).contains(bytes)).map(padded);
        let (count, sum) =
            small.fold((0, 0usize), |(count, sum), bytes| (count + 1, sum.saturating_add(bytes)));
        self.small_outputs.expected = if count > 1 { sum } else { 0 };
    }

    /// Part of a block that other outputs share, where it was said that there will be some.
    pub(super) fn share_output(&mut self, bytes: usize) -> Result<Option<Region>> {
        let (needed, expected) = (padded(bytes), self.small_outputs.expected);
        if bytes == 0 || bytes > SMALL || needed > expected {
            return Ok(None);
        }
        let has_room = |(block, used): &(Region, usize)| needed <= block.bytes - used;
        if !self.small_outputs.open.as_ref().is_some_and(has_room) {
            let block = self.own_output(expected.min(MOST))?;
            self.small_outputs.open = Some((block, 0));
        }
        self.small_outputs.expected -= needed;
        Ok(self.small_outputs.open.as_mut().map(|(block, used)| {
            *used += needed;
            Region { memory: block.memory.clone(), at: block.at + *used - needed, bytes }
        }))
    }

    /// Words for kernels that count what this operation does not ask for. They belong to the stream and are written once:
    /// cheaper than words of its own for each pass.
    pub fn sink(&mut self) -> Result<Region> {
        let queue = self.queue.clone();
        let mut sink = queue.sink();
        if let Some(memory) = &*sink {
            self.use_memory(memory.clone());
            return Ok(Region { memory: memory.clone(), at: 0, bytes: SINK });
        }
        // Not of a block that results share: it is written for as long as there is the stream.
        let region = self.own_output(SINK)?;
        self.set(&region, 0)?;
        *sink = Some(region.memory.clone());
        Ok(region)
    }
}

/// How much of a block an output takes; what is near the end of all numbers has no part of one.
fn padded(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}
