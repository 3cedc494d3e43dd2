//! Device memory for results and scratch, in blocks that are reused.
//!
//! A block remembers the event after its last use. Work on the same stream may take the block at once,
//! because it runs later anyway; work on other streams may take it once that event has passed. So an
//! allocation waits for nothing, and dropping memory makes no call on a stream. If an engine supplies an
//! [`Allocator`](super::Allocator), the pool keeps nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::core::Core;
use super::event::Event;
use super::handles::{Allocation, OwnedStream, Source};
use super::host_pool::{PoolUsage, size_class};
use super::lock::lock;
use super::sync::Mutex;
use crate::{Error, Result};

/// The part of a device's memory that may be kept unused by default, and the bytes where the runtime does not
/// say how much memory it has.
const PART_KEPT: usize = 4;
const DEFAULT_KEPT: usize = 4 << 30;
/// The number of other streams' blocks that an allocation checks for one whose last use has passed.
const LOOKED_AT: usize = 4;

/// The value of the variable `BOWSTRING_KEEP`, in bytes. With 0, the runtime (and so a sanitizer) sees when
/// each block's life ends.
fn asked_to_keep() -> Option<usize> {
    std::env::var("BOWSTRING_KEEP").ok()?.parse().ok()
}

/// A device's memory. The limit bounds the bytes taken from the runtime, in use or kept.
pub(crate) struct DevicePool {
    core: Arc<Core>,
    source: Source,
    state: Mutex<State>,
}

struct State {
    free: BTreeMap<usize, VecDeque<Free>>,
    usage: PoolUsage,
    limit: usize,
    /// The most unused bytes that are kept; `None` before that is known.
    keep: Option<usize>,
    /// Whether memory has been asked of the runtime, and the runtime knows how much to keep.
    begun: bool,
}

impl State {
    fn keeps_too_much(&self) -> bool {
        self.keep.is_some_and(|keep| self.usage.kept > keep)
    }

    /// Takes out the oldest of the largest blocks, or, with `passed_first`, of the largest whose last use has
    /// passed, if there are any.
    fn unkept(&mut self, passed_first: bool) -> Option<Free> {
        let mut fronts = self.free.iter().rev().filter_map(|(class, blocks)| Some((*class, blocks.front()?)));
        let largest = fronts.clone().next()?;
        let has_passed = |(_, front): &(usize, &Free)| front.used.has_passed();
        let passed = if passed_first { fronts.find(has_passed) } else { None };
        let (class, _) = passed.unwrap_or(largest);
        let block = self.free.get_mut(&class)?.pop_front();
        self.usage.kept -= class;
        block
    }
}

struct Free {
    allocation: Allocation,
    stream: u64,
    used: Event,
}

impl Free {
    /// Returns the memory to its source once its last use has passed.
    fn release(self, service: &OwnedStream) {
        if self.used.hold_back(service).is_err() {
            // The service stream cannot wait, so the host does.
            let _ = crate::array::Ready::wait(&self.used);
        }
    }
}

impl DevicePool {
    pub(super) fn new(core: &Arc<Core>, source: Source, keep: Option<usize>) -> Arc<DevicePool> {
        let keep = match &source {
            Source::Driver => keep.or_else(asked_to_keep),
            Source::User(_) => Some(0),
        };
        let (free, usage) = (BTreeMap::new(), PoolUsage::default());
        let state = State { free, usage, limit: usize::MAX, keep, begun: false };
        Arc::new(DevicePool { core: core.clone(), source, state: Mutex::new(state) })
    }

    /// Finds out how much is kept, and bounds by it what the runtime keeps of freed memory. Not when the
    /// device is opened: a lock is held meanwhile, and a driver may be stuck.
    fn begin(&self) {
        let keep = {
            let mut state = lock(&self.state);
            if std::mem::replace(&mut state.begun, true) {
                return;
            }
            state.keep
        };
        let memory = || self.core.driver().memory().ok().flatten();
        let keep = keep.unwrap_or_else(|| memory().map_or(DEFAULT_KEPT, |(_, all)| all / PART_KEPT));
        let keep = *lock(&self.state).keep.get_or_insert(keep);
        self.bound_the_runtime(keep);
    }

    fn bound_the_runtime(&self, keep: usize) {
        if matches!(self.source, Source::Driver) {
            // Without this bound, memory is only slower to come back.
            let _ = self.core.driver().keep(keep);
        }
    }

    pub fn set_limit(&self, bytes: usize) {
        lock(&self.state).limit = bytes;
    }

    pub fn set_keep(&self, bytes: usize) {
        let begun = {
            let mut state = lock(&self.state);
            state.keep = Some(bytes);
            state.begun
        };
        self.trim(State::keeps_too_much);
        if begun {
            self.bound_the_runtime(bytes);
        }
    }

    /// Releases all unused memory, and waits until it is free. Returns whether there was any.
    pub fn release(&self) -> bool {
        self.core.retire();
        let kept = lock(&self.state).usage.kept;
        self.trim(|state| state.usage.kept > 0);
        self.core.await_frees();
        kept > 0
    }

    pub fn usage(&self) -> PoolUsage {
        lock(&self.state).usage
    }

    /// Allocates at least `bytes` of memory of unspecified contents, for work on `stream` from now on.
    pub fn alloc(self: &Arc<Self>, bytes: usize, number: u64, stream: &OwnedStream) -> Result<Arc<Memory>> {
        let out_of_memory = Error::OutOfMemory { bytes, device: self.core.place().device_type };
        let class = size_class(bytes).ok_or(out_of_memory.clone())?;
        let memory = |allocation| {
            let (allocation, used) = (Some(allocation), Mutex::new(None));
            Arc::new(Memory { allocation, pool: self.clone(), stream: number, used })
        };
        if let Some(block) = self.take(class, number) {
            if let Err(failure) = block.allocation.discard(stream) {
                self.give_back(block.allocation, Some(block.used), block.stream);
                return Err(failure);
            }
            return Ok(memory(block.allocation));
        }
        // Each step releases more than the one before: kept blocks, inputs of passed work, inputs of running
        // work. The memory is free once the service stream has reached its release; the last step waits for
        // that.
        self.begin();
        let mut room = self.reserve(class);
        for step in 0..3 {
            if room {
                match Allocation::create(&self.source, self.core.service(), class, stream) {
                    Err(Error::OutOfMemory { .. }) => lock(&self.state).usage.in_use -= class,
                    Err(other) => {
                        lock(&self.state).usage.in_use -= class;
                        return Err(other);
                    }
                    Ok(allocation) => {
                        lock(&self.state).usage.misses += 1;
                        return Ok(memory(allocation));
                    }
                }
            }
            match step {
                0 => self.core.retire(),
                1 => drop(self.core.drain()),
                _ => return Err(out_of_memory),
            }
            self.trim(|state| state.usage.kept > 0);
            if step == 1 {
                self.core.await_frees();
            }
            room = self.reserve(class);
        }
        Err(out_of_memory)
    }

    /// Takes a kept block that work on the stream may use.
    fn take(&self, class: usize, stream: u64) -> Option<Free> {
        let mut state = lock(&self.state);
        let blocks = state.free.get_mut(&class)?;
        let own = blocks.iter().rposition(|block| block.stream == stream);
        let passed = || blocks.iter().take(LOOKED_AT).position(|block| block.used.has_passed());
        let found = own.or_else(passed).and_then(|i| blocks.remove(i))?;
        state.usage.kept -= class;
        state.usage.in_use += class;
        state.usage.peak = state.usage.peak.max(state.usage.in_use);
        state.usage.hits += 1;
        Some(found)
    }

    /// Counts a block as in use, if that is within the limit.
    fn reserve(&self, class: usize) -> bool {
        let mut state = lock(&self.state);
        let (in_use, kept) = (state.usage.in_use, state.usage.kept);
        let fits = in_use.checked_add(class).is_some_and(|sum| sum.saturating_add(kept) <= state.limit);
        if fits {
            state.usage.in_use += class;
            state.usage.peak = state.usage.peak.max(state.usage.in_use);
        }
        fits
    }

    fn give_back(&self, allocation: Allocation, used: Option<Event>, stream: u64) {
        let class = allocation.bytes();
        let unused = {
            let mut state = lock(&self.state);
            state.usage.in_use -= class;
            match used {
                Some(used) => {
                    state.usage.kept += class;
                    let block = Free { allocation, stream, used };
                    state.free.entry(class).or_default().push_back(block);
                    None
                }
                None => Some(allocation),
            }
        };
        drop(unused);
        self.trim(State::keeps_too_much);
    }

    /// Releases kept blocks, largest first, while `more` returns true. If the runtime frees memory only while
    /// the host waits, blocks that need no wait come first.
    fn trim(&self, more: impl Fn(&State) -> bool) {
        let waits = matches!(self.source, Source::Driver) && self.core.driver().free_waits();
        loop {
            let block = {
                let mut state = lock(&self.state);
                if !more(&state) {
                    return;
                }
                state.unkept(waits)
            };
            let Some(block) = block else { return };
            if waits && !block.used.has_passed() {
                self.core.count_synchronisation();
            }
            block.release(self.core.service());
        }
    }
}

/// A block of device memory. It returns to the pool when the last buffer over it is gone.
pub(crate) struct Memory {
    allocation: Option<Allocation>,
    pool: Arc<DevicePool>,
    stream: u64,
    /// The event after its last use; `None` if it was never used.
    used: Mutex<Option<Event>>,
}

impl Memory {
    fn allocation(&self) -> &Allocation {
        self.allocation.as_ref().expect("there until dropped")
    }

    pub fn address(&self) -> usize {
        self.allocation().address()
    }

    /// The number of the stream in whose order it was allocated and is used.
    pub fn stream(&self) -> u64 {
        self.stream
    }

    /// The GPU whose memory it is.
    pub fn core(&self) -> &Core {
        &self.pool.core
    }

    /// Says that a use on its stream ends before this event. The latest one counts.
    pub fn used_until(&self, event: &Event) {
        let mut used = lock(&self.used);
        if used.as_ref().is_none_or(|used| used.recording() <= event.recording()) {
            *used = Some(event.clone());
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let Some(allocation) = self.allocation.take() else { return };
        if self.pool.core.is_parents() {
            // Memory of the parent's, which may have held the pool's lock while it forked.
            return std::mem::forget(allocation);
        }
        let used = lock(&self.used).take();
        self.pool.give_back(allocation, used, self.stream);
    }
}
