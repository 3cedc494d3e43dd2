//! Reads words that kernels have written: in the middle of an operation, or when a result is waited for.

use std::future::Future;
use std::ops::{Index, Range};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::{Pass, Region, waits};
use crate::array::DeviceArray;
use crate::device::{Event, Kept, Staged};
use crate::{Error, Result};

impl Pass {
    /// Queues copies of regions to consecutive places in host memory, and an event after them.
    fn copied(&mut self, regions: &[&Region]) -> Result<(Staged, Event)> {
        let staged = self.stage(regions.iter().map(|region| region.bytes()).sum())?;
        match self.copy_all(regions, &staged) {
            Ok(seen) => Ok((staged, seen)),
            Err(error) => Err(self.abandon(staged, error)),
        }
    }

    fn copy_all(&mut self, regions: &[&Region], staged: &Staged) -> Result<Event> {
        let seen = Event::new(self.gpu.core(), self.queue.number())?;
        let mut at = 0;
        for region in regions {
            self.copy_out(region.address(), region.bytes(), staged, at)?;
            at += region.bytes();
        }
        seen.record(self.queue.owned())?;
        Ok(seen)
    }

    /// Keeps a block that a copy may still write until the pass's work has finished.
    fn abandon(&mut self, staged: Staged, error: Error) -> Error {
        self.kept.push(Kept::Staged(staged));
        error
    }

    /// Reads the words of several regions, one after the other, with one copy of each and one event. The
    /// copies are queued at once; the words arrive when the device has reached this point. Errors of
    /// operations that produced the inputs are returned here too.
    pub fn read(&mut self, regions: &[&Region]) -> Read<'_> {
        let bytes = regions.iter().map(|region| region.bytes()).sum();
        let queued = self.copied(regions).map(|(staged, seen)| Queued { staged, seen, bytes });
        Read { pass: self, queued: Some(queued) }
    }

    /// Runs `check` on the words of a region when the pass's outputs, or anything made from them, are first
    /// waited for. In this way, errors that depend on the data need no synchronisation of their own.
    pub fn report(
        &mut self,
        region: &Region,
        check: impl FnOnce(&[u64]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let staged = Arc::new(self.stage(region.bytes())?);
        let queued = self.copy_out(region.address(), region.bytes(), &staged, 0);
        let (failed, bytes) = (queued.clone().err(), region.bytes());
        // Even if the copy failed, the block is kept until the pass's work has finished.
        self.checks.push(Box::new(move || match failed {
            None => check(&words(staged.pinned().bytes(), bytes)),
            Some(failure) => Err(failure),
        }));
        queued
    }

    /// Keeps an array for as long as checks of this pass may read it.
    pub fn keep_for_checks(&mut self, array: &DeviceArray) {
        self.looked_at.push(array.clone());
    }
}

/// Regions that a pass reads at once. Each part of an operation keeps the place of its words, so parts need
/// not agree on an order.
#[derive(Default)]
pub(crate) struct Looks {
    regions: Vec<Region>,
    words: usize,
}

/// The place of some regions' words among all that are read.
#[derive(Clone, Default)]
pub(crate) struct Seen(Range<usize>);

/// The words that were read.
pub(crate) struct Words(Vec<u64>);

impl Looks {
    /// Adds regions. Their words come one region after the other.
    pub fn at<'a>(&mut self, regions: impl IntoIterator<Item = &'a Region>) -> Seen {
        let first = self.words;
        for region in regions {
            self.words += region.bytes() / size_of::<u64>();
            self.regions.push(region.clone());
        }
        Seen(first..self.words)
    }

    /// Reads all regions, as [`Pass::read`] does. Without any, it does not look at the device.
    pub async fn read(&self, pass: &mut Pass) -> Result<Words> {
        if self.regions.is_empty() {
            return Ok(Words(vec![]));
        }
        pass.read(&self.regions.iter().collect::<Vec<_>>()).await.map(Words)
    }
}

impl Index<&Seen> for Words {
    type Output = [u64];

    fn index(&self, seen: &Seen) -> &[u64] {
        &self.0[seen.0.clone()]
    }
}

/// Words that a pass reads. If it is dropped before they have arrived, the pass keeps the block that the copy
/// still writes.
pub(crate) struct Read<'a> {
    pass: &'a mut Pass,
    /// `None` once the words have been returned.
    queued: Option<Result<Queued>>,
}

struct Queued {
    staged: Staged,
    seen: Event,
    bytes: usize,
}

impl Read<'_> {
    /// The words, or the error; `None` if they have not arrived.
    fn words(&mut self) -> Option<Result<Vec<u64>>> {
        let queued = self.queued.take_if(|queued| {
            // The driver is not asked: a result that is waited for knows which events have passed.
            queued.as_ref().map_or(true, |queued| queued.seen.is_known_to_have_passed())
        })?;
        Some(queued.and_then(|queued| {
            self.pass.parents.iter().try_for_each(Event::outcome)?;
            Ok(words(queued.staged.pinned().bytes(), queued.bytes))
        }))
    }
}

impl Future for Read<'_> {
    type Output = Result<Vec<u64>>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<Vec<u64>>> {
        match (self.words(), &self.queued) {
            (Some(words), _) => Poll::Ready(words),
            (None, Some(Ok(queued))) => {
                waits::note(&queued.seen);
                Poll::Pending
            }
            (None, _) => Poll::Ready(Err(twice())),
        }
    }
}

impl Drop for Read<'_> {
    fn drop(&mut self) {
        if let Some(Ok(queued)) = self.queued.take() {
            self.pass.kept.push(Kept::Staged(queued.staged));
        }
    }
}

fn twice() -> Error {
    Error::invalid("pending", "words that were read already")
}

fn words(bytes: &[u8], len: usize) -> Vec<u64> {
    let words = bytes[..len].chunks_exact(8);
    words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}
