//! Copies of many bytes, part by part, through a ring of pinned blocks: a block is used again once its copy
//! has finished. So however much is copied, little is pinned, and the host works while the device copies.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::task::Poll;

use super::{Pass, Region, waits};
use crate::Result;
use crate::array::Ready as _;
use crate::device::{Event, Kept, Staged};

/// The bytes of a copy.
const PART: usize = 16 << 20;

/// The most pinned memory that a ring has.
pub(crate) const RING: usize = 256 << 20;

/// The most blocks of a ring.
const BLOCKS: usize = RING / PART;

impl Pass {
    /// Uploads bytes that `fill` writes, part by part. Each part is copied while the next is filled. Beyond
    /// [`RING`] bytes, or if there is no more pinned memory, the first parts must have been copied before the
    /// next ones are filled.
    pub fn upload_filled(
        &mut self,
        bytes: usize,
        fill: impl Fn(Range<usize>, &mut [u8]) -> Result<()>,
    ) -> Result<Region> {
        if bytes <= PART {
            let mut staged = self.stage(bytes)?;
            fill(0..bytes, staged.pinned_mut().part_mut(0..bytes))?;
            return self.upload_staged(staged, bytes);
        }
        let region = self.output(bytes)?;
        let mut ring = Ring { pass: self, parts: VecDeque::new() };
        for start in (0..bytes).step_by(PART) {
            let len = PART.min(bytes - start);
            let mut staged = match ring.spare(len)? {
                Some(staged) => staged,
                None => ring.copied()?,
            };
            fill(start..start + len, staged.pinned_mut().part_mut(0..len))?;
            ring.queue(staged, len, start, |pass, staged| pass.copy_in(&region, start, staged, 0..len))?;
        }
        Ok(region)
    }

    /// Downloads ranges of device memory, which are inputs or regions of this pass, and passes the bytes to
    /// `into`: each range by its address, its length, and the place of its first byte.
    pub async fn download_parts(
        &mut self,
        ranges: &[(usize, usize, usize)],
        mut into: impl FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut ring = Ring { pass: self, parts: VecDeque::new() };
        for (from, bytes, at) in ranges {
            for start in (0..*bytes).step_by(PART) {
                let len = PART.min(bytes - start);
                let staged = match ring.spare(PART)? {
                    Some(staged) => staged,
                    None => ring.arrived(&mut into).await?,
                };
                let copy = |pass: &mut Pass, staged: &Staged| pass.copy_out(from + start, len, staged, 0);
                ring.queue(staged, len, at + start, copy)?;
            }
        }
        while !ring.parts.is_empty() {
            ring.arrived(&mut into).await?;
        }
        ring.pass.parents.iter().try_for_each(Event::outcome)
    }
}

/// A part whose copy is under way.
struct Part {
    staged: Staged,
    copied: Event,
    bytes: usize,
    /// The place of its first byte.
    at: usize,
}

/// The parts whose copies are under way. If it is dropped before they have finished, the pass keeps their
/// blocks.
struct Ring<'a> {
    pass: &'a mut Pass,
    parts: VecDeque<Part>,
}

impl Ring<'_> {
    /// A new block; `None` if that of the first part has to be used again.
    fn spare(&self, bytes: usize) -> Result<Option<Staged>> {
        if self.parts.len() == BLOCKS {
            return Ok(None);
        }
        match self.pass.stage(bytes) {
            Err(_) if !self.parts.is_empty() => Ok(None),
            staged => staged.map(Some),
        }
    }

    /// Queues the copy of a part, and an event after it.
    fn queue(
        &mut self,
        staged: Staged,
        bytes: usize,
        at: usize,
        copy: impl FnOnce(&mut Pass, &Staged) -> Result<()>,
    ) -> Result<()> {
        let copied = Event::new(self.pass.gpu.core(), self.pass.queue.number())?;
        let queued = copy(self.pass, &staged);
        let recorded = self.pass.see(&copied);
        // The copy may be under way, whatever has failed.
        self.parts.push_back(Part { staged, copied, bytes, at });
        queued.and(recorded)
    }

    /// Blocks until the first part has been copied, and returns its block.
    fn copied(&mut self) -> Result<Staged> {
        self.first().wait()?;
        Ok(self.pop().staged)
    }

    /// Waits for the first part, passes its bytes on, and returns its block.
    async fn arrived(&mut self, into: &mut impl FnMut(usize, &[u8]) -> Result<()>) -> Result<Staged> {
        let first = self.first();
        poll_fn(|_| match first.is_known_to_have_passed() {
            true => Poll::Ready(()),
            false => {
                waits::note(first);
                Poll::Pending
            }
        })
        .await;
        let Part { staged, bytes, at, .. } = self.pop();
        into(at, &staged.pinned().bytes()[..bytes])?;
        Ok(staged)
    }

    fn first(&self) -> &Event {
        &self.parts.front().expect("a ring with parts").copied
    }

    fn pop(&mut self) -> Part {
        self.parts.pop_front().expect("a ring with parts")
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        let blocks = self.parts.drain(..).map(|part| Kept::Staged(part.staged));
        self.pass.kept.extend(blocks);
    }
}
