//! Reads words that kernels have written: in the middle of an operation, or when a result is waited for.

use std::future::Future;
use std::ops::{Index, Range};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll};

use super::{Pass, Region, waits};
use crate::array::DeviceArray;
use crate::device::{Event, Kept};
use crate::{Error, Result};

impl Pass {
    /// Queues copies of regions to the host, except for those that are there already. The pass keeps what the
    /// copies write until its work has finished, also if one fails.
    fn copies(&mut self, regions: &[&Region]) -> Result<Vec<Region>> {
        if regions.iter().all(|region| region.on_host().is_some()) {
            return Ok(regions.iter().map(|region| (*region).clone()).collect());
        }
        let on_device = |region: &&&Region| region.on_host().is_none();
        let bytes = regions.iter().filter(on_device).map(|region| region.bytes()).sum();
        let block = Arc::new(self.stage(bytes)?);
        self.kept.push(Kept::Shared(block.clone()));
        let (copied, mut at) = (Region::pinned(block.clone(), bytes), 0);
        let mut copy = |region: &&Region| {
            if region.on_host().is_some() {
                return Ok((*region).clone());
            }
            self.copy_out(region.address(), region.bytes(), &block, at)?;
            at += region.bytes();
            Ok(copied.piece(at - region.bytes(), region.bytes()))
        };
        regions.iter().map(&mut copy).collect()
    }

    /// Records an event after the work that has been queued so far.
    pub(super) fn see(&mut self, event: &Event) -> Result<()> {
        let recorded = event.record(self.queue.owned());
        (self.seen, self.is_ahead) = (Some(event.clone()), AtomicBool::new(false));
        recorded
    }

    /// Reads the words of several regions, one after the other, with one event, and a copy of each that is
    /// not on the host. The copies are queued at once; the words arrive when the device has reached this
    /// point. Errors of operations that produced the inputs are returned here too.
    pub fn read(&mut self, regions: &[&Region]) -> Read<'_> {
        let queued = self.copies(regions).and_then(|regions| {
            let seen = Event::new(self.gpu.core(), self.queue.number())?;
            self.see(&seen)?;
            Ok(Queued { regions, seen })
        });
        Read { pass: self, queued: Some(queued) }
    }

    /// Like [`Pass::read`], at the end of the pass, whose own event serves: nothing can be queued any more.
    pub fn read_last(&mut self, regions: &[&Region]) -> Read<'_> {
        let queued = self.copies(regions).and_then(|regions| {
            self.end()?;
            Ok(Queued { regions, seen: self.done.clone() })
        });
        Read { pass: self, queued: Some(queued) }
    }

    /// Runs `check` on the words of a region when the pass's outputs, or anything made from them, are first
    /// waited for. In this way, errors that depend on the data need no synchronisation of their own.
    pub fn report(
        &mut self,
        region: &Region,
        check: impl FnOnce(&[u64]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let copied = self.copies(&[region]);
        let queued = copied.as_ref().map(|_| ()).map_err(Error::clone);
        self.checks.push(Box::new(move || check(&words(&copied?))));
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

    /// Reads all regions at the end of a pass, as [`Pass::read_last`] does.
    pub async fn read_last(&self, pass: &mut Pass) -> Result<Words> {
        pass.read_last(&self.regions.iter().collect::<Vec<_>>()).await.map(Words)
    }
}

impl Index<&Seen> for Words {
    type Output = [u64];

    fn index(&self, seen: &Seen) -> &[u64] {
        &self.0[seen.0.clone()]
    }
}

/// Words that a pass reads. The pass keeps the blocks that they come to until its work has finished.
pub(crate) struct Read<'a> {
    pass: &'a mut Pass,
    /// `None` once the words have been returned.
    queued: Option<Result<Queued>>,
}

struct Queued {
    /// The regions that were read, in memory of the host.
    regions: Vec<Region>,
    seen: Event,
}

impl Read<'_> {
    /// The words, or the error; `None` if they have not arrived.
    fn words(&mut self) -> Option<Result<Vec<u64>>> {
        let queued = self.queued.take_if(|queued| {
            // The driver is not asked: a result that is waited for knows which events have passed.
            queued.as_ref().map_or(true, |queued| queued.seen.is_known_to_have_passed())
        })?;
        Some(queued.and_then(|queued| {
            match self.pass.ended {
                true => queued.seen.outcome()?,
                false => self.pass.parents.iter().try_for_each(Event::outcome)?,
            }
            Ok(words(&queued.regions))
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

fn twice() -> Error {
    Error::invalid("pending", "words that were read already")
}

/// The words of regions on the host, which nothing writes any more.
fn words(regions: &[Region]) -> Vec<u64> {
    let word = |word: &[u8]| u64::from_ne_bytes(word.try_into().expect("8 bytes"));
    let of = |region: &Region| {
        let (block, at) = region.on_host().expect("a region that was copied");
        block.pinned().bytes()[at..at + region.bytes()].chunks_exact(8).map(word).collect::<Vec<_>>()
    };
    regions.iter().flat_map(of).collect()
}
