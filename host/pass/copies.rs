//! A pass's copies between the host, its device and another device. Small data is packed, see
//! `small_uploads.rs`, and sent before any other work of the pass.

use std::ops::Range;
use std::sync::Arc;

use super::Pass;
use super::region::Region;
use super::small_uploads::{is_small, write_words};
use crate::Result;
use crate::array::Place;
use crate::device::{Kept, Staged};

/// The most rows of a small batch.
pub(crate) const FEW_ROWS: usize = 1 << 16;

/// The most waves that read a table on the host.
const TABLE_WAVES: u64 = 256;

impl Pass {
    /// Announces the lengths of the next small uploads, so that one copy sends all of them.
    pub(super) fn reserve(&mut self, lengths: impl IntoIterator<Item = usize>) {
        self.small_uploads.reserve(lengths);
    }

    /// Packs `bytes` of memory that begin with `words`, followed by zeros, if that is small. Otherwise
    /// returns `None`.
    pub(super) fn pack(&mut self, bytes: usize, words: &[u64]) -> Result<Option<Region>> {
        if !is_small(bytes) {
            return Ok(None);
        }
        if let Some(len) = self.small_uploads.needs_block(bytes) {
            self.send()?;
            let (staged, region) = (self.stage(len)?, self.output(len)?);
            self.small_uploads.open(staged, region);
        }
        Ok(self.small_uploads.pack(bytes, words))
    }

    /// Queues the copy of everything packed since the last one. Work that reads it must be queued later.
    pub fn send(&mut self) -> Result<()> {
        let Some((region, staged, part)) = self.small_uploads.unsent() else { return Ok(()) };
        let copied = self.copy_in(region, part.start, staged, part);
        self.small_uploads.sent();
        copied
    }

    /// Uploads words through pinned memory. Small uploads travel together.
    pub fn upload(&mut self, words: &[u64]) -> Result<Region> {
        if let Some(region) = self.pack(size_of_val(words), words)? {
            return Ok(region);
        }
        let mut staged = self.stage(size_of_val(words))?;
        write_words(staged.pinned_mut().bytes_mut(), words);
        self.upload_staged(staged, size_of_val(words))
    }

    /// Memory for the first of `rows` rows at which something fails, for each of `count` things. It starts
    /// beyond all rows, and kernels lower it.
    pub fn first_rows(&mut self, count: usize, rows: usize) -> Result<Region> {
        self.seldom_used(&vec![u64::MAX; count], rows)
    }

    /// Words that kernels over `rows` rows write once, or if something fails. If the rows are few, kernels
    /// write them where the host reads them: such an access waits for the bus, but no copy is needed.
    pub fn seldom_used(&mut self, words: &[u64], rows: usize) -> Result<Region> {
        if rows <= FEW_ROWS { self.shared(words) } else { self.upload(words) }
    }

    /// A table of which each of `waves` waves reads one row. If the waves are few, it stays on the host,
    /// where all of them wait for their rows at the same time.
    pub fn table(&mut self, words: &[u64], waves: u64) -> Result<Region> {
        if waves <= TABLE_WAVES { self.shared(words) } else { self.upload(words) }
    }

    /// Words that the host and the kernels share, in pinned memory if kernels reach that.
    fn shared(&mut self, words: &[u64]) -> Result<Region> {
        if !self.gpu.driver().kernels_write_pinned() {
            return self.upload(words);
        }
        let mut block = self.stage(size_of_val(words))?;
        write_words(block.pinned_mut().bytes_mut(), words);
        let block = Arc::new(block);
        self.kept.push(Kept::Shared(block.clone()));
        Ok(Region::pinned(block, size_of_val(words)))
    }

    /// Pinned memory to fill for [`Pass::upload_staged`].
    pub fn stage(&self, bytes: usize) -> Result<Staged> {
        self.gpu.staging().alloc(bytes)
    }

    /// Uploads the first bytes of a staged block in one copy.
    pub fn upload_staged(&mut self, staged: Staged, bytes: usize) -> Result<Region> {
        let region = self.output(bytes)?;
        let copied = self.copy_in(&region, 0, &staged, 0..bytes);
        self.kept.push(Kept::Staged(staged));
        copied.map(|()| region)
    }

    /// Queues a copy of part of a block to a region, from byte `at` on, which `used` keeps. Even if this
    /// fails, the block must be kept, and the part not written, until the copy has finished.
    pub(super) fn copy_in(
        &self,
        region: &Region,
        at: usize,
        from: &Staged,
        part: Range<usize>,
    ) -> Result<()> {
        assert!(
            at <= region.bytes() && part.len() <= region.bytes() - at,
            "the part is inside of the region"
        );
        assert!(part.end <= from.pinned().len(), "the part is inside of the block");
        if part.is_empty() {
            return Ok(());
        }
        // SAFETY: both are at least that long, and kept until the pass has passed.
        self.queued(|driver, stream| unsafe {
            let start = from.pinned().start().cast_const().add(part.start);
            driver.copy_in(region.address() + at, start, part.len(), stream)
        })
    }

    /// Queues a copy of device memory that is an input or a region of this pass. The block must be kept until
    /// the copy has finished, even if the pass fails later.
    pub fn copy_out(&mut self, from: usize, bytes: usize, to: &Staged, at: usize) -> Result<()> {
        assert!(at <= to.pinned().len() && bytes <= to.pinned().len() - at, "the copy fits the block");
        if bytes == 0 {
            return Ok(());
        }
        self.send()?;
        // SAFETY: the pass keeps the source, the caller the block, until this has passed.
        self.queued(|driver, stream| unsafe {
            driver.copy_out(to.pinned().start().add(at), from, bytes, stream)
        })
    }

    /// Queues a copy of the first bytes of a region on another device of the same runtime. This pass keeps
    /// that region.
    pub fn copy_from(&mut self, from: &Region, place: Place, to: &Region) -> Result<()> {
        assert_eq!(
            (from.bytes(), place.device_type),
            (to.bytes(), self.place().device_type),
            "as long, and reachable"
        );
        self.kept.push(Kept::Buffer(from.buffer()));
        if to.bytes() == 0 {
            return Ok(());
        }
        self.send()?;
        let (to, from, bytes) = (to.address(), from.address(), to.bytes());
        // SAFETY: both have the bytes, and are kept until this has passed.
        self.queued(|driver, stream| unsafe { driver.copy(to, from, place.device_id, bytes, stream) })
    }
}
