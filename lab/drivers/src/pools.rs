//! CUDA's pools of memory. A pool keeps what was freed, so that the rest of the device lacks it, until a
//! wait of the host, which leaves the pool as much as its threshold, or until it is trimmed. No allocation
//! takes what another pool keeps.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::{Outcome, code, handle, lock};

/// All pools of a machine.
#[derive(Default)]
pub struct Pools(Mutex<State>);

#[derive(Default)]
struct State {
    pools: HashMap<usize, Pool>,
    /// The pool and the bytes of each of their allocations.
    blocks: HashMap<usize, (usize, usize)>,
}

struct Pool {
    device: i32,
    /// The bytes that stay when the host waits.
    threshold: u64,
    in_use: usize,
    /// The bytes that the device lacks: those in use, and those that are kept.
    reserved: usize,
}

impl Pool {
    fn kept(&self) -> usize {
        self.reserved - self.in_use
    }

    /// Releases what it keeps beyond these bytes in all.
    fn shrink(&mut self, bytes: usize) {
        self.reserved = self.reserved.min(bytes).max(self.in_use);
    }
}

impl Pools {
    pub fn create(&self, device: i32) -> usize {
        let number = handle();
        let pool = Pool { device, threshold: 0, in_use: 0, reserved: 0 };
        lock(&self.0).pools.insert(number, pool);
        number
    }

    fn with<T>(&self, pool: usize, run: impl FnOnce(&mut Pool) -> T) -> Outcome<T> {
        lock(&self.0).pools.get_mut(&pool).map(run).ok_or(code::INVALID_VALUE)
    }

    pub fn device(&self, pool: usize) -> Outcome<i32> {
        self.with(pool, |pool| pool.device)
    }

    pub fn set_threshold(&self, pool: usize, bytes: u64) -> Outcome {
        self.with(pool, |pool| pool.threshold = bytes)
    }

    pub fn trim(&self, pool: usize, bytes: usize) -> Outcome {
        self.with(pool, |pool| pool.shrink(bytes))
    }

    /// The bytes of a device that its pools keep.
    pub fn kept(&self, device: i32) -> usize {
        lock(&self.0).pools.values().filter(|pool| pool.device == device).map(Pool::kept).sum()
    }

    /// The bytes of an allocation that a pool has to add to what it keeps.
    pub fn lacking(&self, pool: usize, bytes: usize) -> Outcome<usize> {
        self.with(pool, |pool| bytes.saturating_sub(pool.kept()))
    }

    pub fn allocated(&self, pool: usize, address: usize, bytes: usize) -> Outcome {
        lock(&self.0).blocks.insert(address, (pool, bytes));
        self.with(pool, |pool| {
            pool.in_use += bytes;
            pool.reserved = pool.reserved.max(pool.in_use);
        })
    }

    /// Memory was freed, which may be a pool's.
    pub fn freed(&self, address: usize) {
        let mut state = lock(&self.0);
        let Some((pool, bytes)) = state.blocks.remove(&address) else { return };
        if let Some(pool) = state.pools.get_mut(&pool) {
            pool.in_use -= bytes;
        }
    }

    /// The host has waited for a device.
    pub fn waited(&self, device: i32) {
        for pool in lock(&self.0).pools.values_mut().filter(|pool| pool.device == device) {
            pool.shrink(usize::try_from(pool.threshold).unwrap_or(usize::MAX));
        }
    }
}
