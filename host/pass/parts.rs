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
        let region = self.output(bytes)?;
        let (mut ring, mut filled) = (VecDeque::new(), Ok(()));
        for start in (0..bytes).step_by(PART) {
            filled = self.upload_part(&region, start..bytes.min(start + PART), &fill, &mut ring);
            if filled.is_err() {
                break;
            }
        }
        self.kept.extend(ring.into_iter().map(|(staged, _)| Kept::Staged(staged)));
        filled.map(|()| region)
    }

    fn upload_part(
        &self,
        region: &Region,
        part: Range<usize>,
        fill: &impl Fn(Range<usize>, &mut [u8]) -> Result<()>,
        ring: &mut VecDeque<(Staged, Option<Event>)>,
    ) -> Result<()> {
        let bytes = part.len();
        // A single copy needs no event of its own.
        let several = bytes < region.bytes();
        let copied = several.then(|| Event::new(self.gpu.core(), self.queue.number())).transpose()?;
        let new = (ring.len() < BLOCKS).then(|| self.stage(bytes));
        let mut staged = match (new, ring.front()) {
            (Some(Ok(staged)), _) => staged,
            (Some(Err(error)), None) => return Err(error),
            (_, first) => {
                first.and_then(|(_, copied)| copied.as_ref()).map_or(Ok(()), Event::wait)?;
                ring.pop_front().expect("a ring that is full has a first block").0
            }
        };
        fill(part.clone(), staged.pinned_mut().part_mut(0..bytes))?;
        let queued = self.copy_in(region, part.start, &staged, 0..bytes);
        let recorded = copied.as_ref().map_or(Ok(()), |copied| copied.record(self.queue.owned()));
        // The copy may be under way, whatever has failed.
        ring.push_back((staged, copied));
        queued.and(recorded)
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
                let staged = match ring.parts.len() < BLOCKS {
                    true => ring.pass.stage(PART),
                    false => ring.first(&mut into).await,
                };
                let staged = match staged {
                    Err(_) if !ring.parts.is_empty() => ring.first(&mut into).await?,
                    staged => staged?,
                };
                ring.queue(staged, from + start, PART.min(bytes - start), at + start)?;
            }
        }
        while !ring.parts.is_empty() {
            ring.first(&mut into).await?;
        }
        ring.pass.parents.iter().try_for_each(Event::outcome)
    }
}

/// Bytes on their way to the host.
struct Arriving {
    staged: Staged,
    copied: Event,
    bytes: usize,
    /// The place of the first of them.
    at: usize,
}

/// Parts that are on their way. If it is dropped before they have arrived, the pass keeps the blocks that
/// copies still write.
struct Ring<'a> {
    pass: &'a mut Pass,
    parts: VecDeque<Arriving>,
}

impl Ring<'_> {
    fn queue(&mut self, staged: Staged, from: usize, bytes: usize, at: usize) -> Result<()> {
        let copied = Event::new(self.pass.gpu.core(), self.pass.queue.number())?;
        let queued = self.pass.copy_out(from, bytes, &staged, 0);
        let recorded = copied.record(self.pass.queue.owned());
        // The copy may be under way, whatever has failed.
        self.parts.push_back(Arriving { staged, copied, bytes, at });
        queued.and(recorded)
    }

    /// Waits for the first part, and returns its block.
    async fn first(&mut self, into: &mut impl FnMut(usize, &[u8]) -> Result<()>) -> Result<Staged> {
        let first = &self.parts.front().expect("a ring with parts").copied;
        poll_fn(|_| match first.is_known_to_have_passed() {
            true => Poll::Ready(()),
            false => {
                waits::note(first);
                Poll::Pending
            }
        })
        .await;
        let Arriving { staged, bytes, at, .. } = self.parts.pop_front().expect("just awaited");
        into(at, &staged.pinned().bytes()[..bytes])?;
        Ok(staged)
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        let blocks = self.parts.drain(..).map(|part| Kept::Staged(part.staged));
        self.pass.kept.extend(blocks);
    }
}
