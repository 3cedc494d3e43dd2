//! Reads words that kernels have written: at once, later, or when a result is waited for.

use std::sync::Arc;

use super::{Pass, Pending, Region};
use crate::array::{Array, Ready};
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

    /// Reads the words of a region. The host waits until the pass has reached this point. Errors of
    /// operations that produced the inputs are returned here too. An operation does this at most once.
    pub fn read(&mut self, region: &Region) -> Result<Vec<u64>> {
        self.read_all(&[region])
    }

    /// Reads several regions, one after the other; otherwise like [`Pass::read`].
    pub fn read_all(&mut self, regions: &[&Region]) -> Result<Vec<u64>> {
        let (staged, seen) = self.copied(regions)?;
        if let Err(error) = seen.wait() {
            return Err(self.abandon(staged, error));
        }
        self.parents.iter().try_for_each(Event::outcome)?;
        Ok(words(staged.pinned().bytes(), regions.iter().map(|region| region.bytes()).sum()))
    }

    /// Reads several regions without waiting. `then` continues the pass when the result is waited for and the
    /// words have arrived.
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
    pub fn keep_for_checks(&mut self, array: &Array) {
        self.looked_at.push(array.clone());
    }
}

fn words(bytes: &[u8], len: usize) -> Vec<u64> {
    let words = bytes[..len].chunks_exact(8);
    words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
}
