//! How words that kernels have written come to the host: now, later, or only when somebody asks.

use std::sync::Arc;

use super::{Pass, Pending, Region};
use crate::array::{Array, Ready};
use crate::device::{Event, Kept, Staged};
use crate::{Error, Result};

impl Pass {
    /// Copies of regions on their way to the host, one behind the other, and the event behind them.
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

    /// Keeps a block that a copy may be on its way to until the pass has passed.
    fn abandon(&mut self, staged: Staged, error: Error) -> Error {
        self.kept.push(Kept::Staged(staged));
        error
    }

    /// The words of a region: the host waits until the pass has come here. Errors in what the inputs were made from
    /// surface here too. An operation does this once at most.
    pub fn read(&mut self, region: &Region) -> Result<Vec<u64>> {
        self.read_all(&[region])
    }

    /// As [`Pass::read`], of several regions, one after the other.
    pub fn read_all(&mut self, regions: &[&Region]) -> Result<Vec<u64>> {
        let (staged, seen) = self.copied(regions)?;
        if let Err(error) = seen.wait() {
            return Err(self.abandon(staged, error));
        }
        self.parents.iter().try_for_each(Event::outcome)?;
        Ok(words(staged.pinned().bytes(), regions.iter().map(|region| region.bytes()).sum()))
    }

    /// As [`Pass::read`], of several regions and without waiting: `then` goes on with the pass when somebody asks for the result and the words
    /// have arrived.
    pub fn read_later<T>(
        mut self,
        regions: &[&Region],
        then: impl FnOnce(Pass, &[u64]) -> Result<T> + Send + 'static,
    ) -> Result<Pending<T>> {
        let (staged, seen) = self.copied(regions)?;
        let bytes = regions.iter().map(|region| region.bytes()).sum();
        Ok(Pending::waiting(
            self,
            staged,
            seen,
            Box::new(move |pass, staged| {
                let words = words(staged.pinned().bytes(), bytes);
                then(pass, &words)
            }),
        ))
    }

    /// Has `check` look at the words of a region when somebody first waits for the pass's outputs, or for anything made
    /// from them: how an error that only the data shows surfaces without a synchronisation of its own.
    pub fn report(
        &mut self,
        region: &Region,
        check: impl FnOnce(&[u64]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let staged = Arc::new(self.stage(region.bytes())?);
        let queued = self.copy_out(region.address(), region.bytes(), &staged, 0);
        let (failed, bytes) = (queued.clone().err(), region.bytes());
        // Also where nothing came, the block is kept until the pass has passed.
        self.checks.push(Box::new(move || match failed {
            None => check(&words(staged.pinned().bytes(), bytes)),
            Some(failure) => Err(failure),
        }));
        queued
    }

    /// Keeps an array for as long as checks of this pass may want to fetch something of it.
    pub fn keep_for_checks(&mut self, array: &Array) {
        self.looked_at.push(array.clone());
    }
}

fn words(bytes: &[u8], len: usize) -> Vec<u64> {
    let words = bytes[..len].chunks_exact(8);
    words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}
