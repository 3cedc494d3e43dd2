//! The state of a pool: a part that all threads share, and a cache for each thread.
//!
//! The one idea: a thread that needs little memory finds it in a cache of its own, under a lock that no
//! other thread waits for. A projection of a few rows takes a microsecond, and five pieces of memory, which
//! it also returns; under one lock, two threads did no more of them than one. The contents of caches count
//! as in use for the shared part. Caches are [emptied](ThreadCache::empty) before a request fails, and when
//! a limit changes.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;

use super::blocks::{CLASSES, Free, number};
use crate::device::fork::{APART, Guarded};
use crate::device::sync::atomic::{AtomicUsize, Ordering};
use crate::device::sync::thread_local;

/// The largest block that caches keep.
const SMALL: usize = 256 << 10;
/// The bytes that stay charged when reservations end, for the next ones; up to twice as many for a while.
const AHEAD: usize = 256 << 10;
/// The most bytes of blocks that a cache keeps.
const CACHED: usize = 4 << 20;

/// How much memory a pool holds, and how often it served requests from kept blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolUsage {
    /// Bytes in blocks that are in use.
    pub in_use: usize,
    /// The most bytes that were ever in use at once.
    pub peak: usize,
    /// Bytes in blocks kept for the next request.
    pub kept: usize,
    /// Requests served from kept blocks.
    pub hits: u64,
    /// Requests that had to ask the system.
    pub misses: u64,
}

/// The part that all threads share.
pub(super) struct Shared {
    free: Free<CLASSES>,
    /// Includes what the caches have.
    in_use: usize,
    peak: usize,
    limit: usize,
    keep: usize,
    hits: u64,
    misses: u64,
}

impl Shared {
    /// No limit, and `keep` bytes of blocks.
    pub fn new(keep: usize) -> Shared {
        Shared { free: Free::new(), in_use: 0, peak: 0, limit: usize::MAX, keep, hits: 0, misses: 0 }
    }

    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = bytes;
    }

    /// Bounds the bytes of unused blocks.
    pub fn set_keep(&mut self, bytes: usize) {
        self.keep = bytes;
        self.free.trim(bytes);
    }

    /// Counts bytes as in use; `None` if that is over the limit.
    pub fn charge(&mut self, bytes: usize) -> Option<()> {
        self.in_use = self.in_use.checked_add(bytes).filter(|sum| *sum <= self.limit)?;
        self.peak = self.peak.max(self.in_use);
        Some(())
    }

    pub fn discharge(&mut self, bytes: usize) {
        self.in_use -= bytes;
    }

    /// Changes a charge, whatever the limit.
    fn recharge(&mut self, from: usize, to: usize) {
        self.in_use = self.in_use - from + to;
    }

    /// Charges a block, and returns it if there is an unused one; `None` if it is over the limit.
    pub fn take(&mut self, class: usize) -> Option<Option<NonNull<u8>>> {
        self.charge(class)?;
        let block = self.free.take(class);
        *if block.is_some() { &mut self.hits } else { &mut self.misses } += 1;
        Some(block)
    }

    /// Takes back a block that is no longer used.
    pub fn add(&mut self, start: NonNull<u8>, class: usize) {
        self.in_use -= class;
        self.free.add(start, class);
        self.free.trim(self.keep);
    }

    /// Takes back what a cache had.
    fn put_back(&mut self, mut blocks: Free<CLASSES_OF_CACHES>, ahead: usize) {
        self.in_use -= blocks.bytes() + ahead;
        self.free.append(&mut blocks);
        self.free.trim(self.keep);
    }

    /// Gives all unused blocks back to the system. Returns whether there were any.
    pub fn give_back(&mut self) -> bool {
        let any = self.free.bytes() > 0;
        self.free.trim(0);
        any
    }

    /// The use of memory, with these caches' share.
    pub fn usage(&self, caches: Cached) -> PoolUsage {
        PoolUsage {
            // The caches were asked before, and may have put something back since.
            in_use: self.in_use.saturating_sub(caches.blocks + caches.ahead),
            peak: self.peak,
            kept: self.free.bytes() + caches.blocks,
            hits: self.hits + caches.hits,
            misses: self.misses,
        }
    }
}

const CLASSES_OF_CACHES: usize = number(SMALL) + 1;

/// Small blocks and reserved bytes for some threads, usually for one.
pub(super) struct ThreadCache {
    shared: Arc<Guarded<Shared>>,
    own: Guarded<Own>,
}

struct Own {
    free: Free<CLASSES_OF_CACHES>,
    /// The most bytes of blocks that are kept.
    keep: usize,
    /// The bytes that are charged and not in use.
    ahead: usize,
    hits: u64,
}

/// The contents of caches: bytes of blocks, bytes charged and not in use, and requests served.
#[derive(Clone, Copy, Default)]
pub(super) struct Cached {
    pub blocks: usize,
    pub ahead: usize,
    pub hits: u64,
}

impl ThreadCache {
    /// The caches of a pool, each of which keeps `keep` bytes of blocks: a thread uses the one with
    /// [its number](of_this_thread).
    pub fn all(shared: &Arc<Guarded<Shared>>, keep: usize) -> [Arc<ThreadCache>; APART] {
        std::array::from_fn(|number| {
            let own = Own { free: Free::new(), keep, ahead: 0, hits: 0 };
            Arc::new(ThreadCache { shared: shared.clone(), own: Guarded::apart(number, own) })
        })
    }

    /// Takes a block if the cache has one.
    pub fn take(&self, class: usize) -> Option<NonNull<u8>> {
        if class > SMALL {
            return None;
        }
        self.own.with(|own| {
            let block = own.free.take(class)?;
            own.hits += 1;
            Some(block)
        })
    }

    /// Keeps a block that is no longer used, or passes it on.
    pub fn add(&self, start: NonNull<u8>, class: usize) {
        let kept = class <= SMALL
            && self.own.with(|own| {
                let room = own.free.bytes() + class <= own.keep;
                if room {
                    own.free.add(start, class);
                }
                room
            });
        if !kept {
            self.shared.with(|shared| shared.add(start, class));
        }
    }

    /// Uses bytes that are charged and not in use, if they are enough.
    pub fn spend(&self, bytes: usize) -> bool {
        self.own.with(|own| match own.ahead.checked_sub(bytes) {
            Some(left) => {
                own.ahead = left;
                true
            }
            None => false,
        })
    }

    /// Adds bytes that are charged and not in use.
    pub fn earn(&self, bytes: usize) {
        let over = self.own.with(|own| {
            own.ahead += bytes;
            let over = if own.ahead > 2 * AHEAD { own.ahead - AHEAD } else { 0 };
            own.ahead -= over;
            over
        });
        if over > 0 {
            self.shared.with(|shared| shared.discharge(over));
        }
    }

    /// Changes how many bytes in use a charge counts.
    pub fn recharge(&self, from: usize, to: usize) {
        self.shared.with(|shared| shared.recharge(from, to));
    }

    /// Moves the blocks, and the bytes that are charged and not in use, to the shared part.
    pub fn empty(&self) {
        let (blocks, ahead) = self
            .own
            .with(|own| (std::mem::replace(&mut own.free, Free::new()), std::mem::take(&mut own.ahead)));
        if blocks.bytes() + ahead > 0 {
            self.shared.with(|shared| shared.put_back(blocks, ahead));
        }
    }

    pub fn set_keep(&self, bytes: usize) {
        self.own.with(|own| own.keep = bytes);
    }

    pub fn contents(&self) -> Cached {
        self.own.with(|own| Cached { blocks: own.free.bytes(), ahead: own.ahead, hits: own.hits })
    }
}

/// The bytes that each cache of a pool keeps, if the pool keeps `all`: at most an eighth is theirs, and
/// nothing if that is little.
pub(super) fn share(all: usize) -> usize {
    let each = (all / 8 / APART).min(CACHED);
    if each < SMALL { 0 } else { each }
}

/// The number of this thread's cache.
pub(super) fn of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<Option<usize>> = const { Cell::new(None) };
    }
    let number = |place: &Cell<Option<usize>>| {
        let number = place.get().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed) % APART);
        place.set(Some(number));
        number
    };
    // A thread whose thread-locals are gone uses that of another thread.
    NUMBER.try_with(number).unwrap_or(0)
}
