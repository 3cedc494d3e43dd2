//! Work that only calibration does, to learn what a design that relied on it would cost: copies of memory
//! that is not pinned, stores by a kernel to the host's memory, and atomics that all lanes do on one word.

use std::mem;
use std::time::{Duration, Instant};

use bowstring_kernels::memory::Out;
use bowstring_kernels::selftest::{BAIT, Bait, ROWS, VOCABULARY, Vocabulary};

use super::Pass;
use super::region::Region;
use crate::Result;
use crate::device::Kept;

/// How long the host looks for a store before it gives up.
const PATIENCE: Duration = Duration::from_secs(1);

/// The atomics that each lane does in [`Pass::contend`]; the first of a wave does one more.
pub(crate) const ATOMICS: usize = 3;

/// The direction of a copy, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Pass {
    /// Copies between pageable memory of the host and a region, waits, and returns the memory.
    pub fn copy_pageable(
        mut self,
        mut host: Vec<u8>,
        region: &Region,
        direction: Direction,
    ) -> Result<Vec<u8>> {
        assert!(host.len() <= region.bytes(), "the copy fits the region");
        self.reuse(region);
        self.send()?;
        let (address, memory, bytes) = (region.address(), host.as_mut_ptr(), host.len());
        // SAFETY: both have the bytes. `used` keeps the region, and the memory is kept until the copy has
        // passed, or forever if that cannot be learnt.
        let copied = self.queued(|driver, stream| unsafe {
            match direction {
                Direction::Up => driver.copy_in(address, memory, bytes, stream),
                Direction::Down => driver.copy_out(memory, address, bytes, stream),
            }
        });
        let stream = self.stream().clone();
        match copied.and_then(|()| self.finish()).and_then(|()| stream.synchronise()) {
            Ok(()) => Ok(host),
            Err(error) => {
                mem::forget(host);
                Err(error)
            }
        }
    }

    /// Launches a kernel that stores to pinned memory, and returns the time from the launch until the host
    /// sees the store. `None` if it does not see it within a second.
    pub fn store_to_host(mut self) -> Result<Option<Duration>> {
        let lanes = self.width() as usize;
        let numbers = self.zeroed(4 * lanes)?;
        self.send()?;
        let block = self.stage(4 * lanes)?;
        let word = block.pinned().start().cast::<u32>();
        // SAFETY: the block is long enough, aligned for any type, and only this function uses it.
        unsafe { word.write_volatile(u32::MAX) };
        let results = Out::new(word as u64, 4 * lanes as u64);
        let start = Instant::now();
        // The kernel stores 0 for zeros.
        let launched = self.launch(&BAIT[0], &Bait { numbers: numbers.input(), results, waves: 1, limit: 5 });
        let mut seen = None;
        while launched.is_ok() && seen.is_none() && start.elapsed() < PATIENCE {
            // SAFETY: as above; the kernel's store is one of a whole word.
            seen = (unsafe { word.read_volatile() } != u32::MAX).then(|| start.elapsed());
        }
        self.keep(Kept::Staged(block));
        launched.and_then(|()| self.finish()).map(|()| seen)
    }

    /// Launches a kernel whose lanes each do [`ATOMICS`] atomics on the same words. It takes 76 bytes a lane.
    pub fn contend(mut self, waves: usize) -> Result<()> {
        let lanes = self.times(waves, self.width() as usize)?;
        let (numbers, shared) = (self.zeroed(4 * lanes)?, self.zeroed(16)?);
        let results = self.rows(lanes, 4 * ROWS as usize)?;
        let row = numbers.input::<u32>();
        let described = row.described();
        let table = self.upload(&[described, described].concat())?;
        let args = Vocabulary {
            numbers: row,
            results: results.out(),
            waves: waves as u64,
            shared: shared.out(),
            table: table.input(),
        };
        self.launch(&VOCABULARY[0], &args)?;
        self.finish()
    }
}
