//! Host memory for results, kept and reused: touching a fresh page costs more than most operations on it.
//!
//! [`blocks`] has the blocks, [`thread_cache`] the state: what threads share and what each has for itself.

#![allow(unsafe_code)]

mod blocks;
mod thread_cache;

use std::ptr::NonNull;
use std::sync::Arc;

use super::fork::{APART, Guarded};
use crate::array::Buffer;
use crate::{Error, Result};
pub(super) use blocks::size_class;
use blocks::{fresh, unreadable};
pub use thread_cache::PoolUsage;
use thread_cache::{Cached, Shared, ThreadCache, of_this_thread, share};

/// From this many bytes on, [`HostPool::reserve`] probes the system for memory that other libraries allocate.
/// A process that cannot get less than this cannot go on anyway.
const PROBED: usize = 256 << 10;
/// How often a request empties the caches before it fails. Meanwhile other threads may move bytes from one
/// cache to another, so a single try could miss them.
const RETRIES: usize = 8;
/// Held while caches are emptied: what one thread has taken out of them and not put back yet, another one
/// would miss.
static EMPTYING: Guarded<()> = Guarded::first(());
/// The most bytes of unused blocks that are kept by default.
const DEFAULT_KEPT: usize = 4 << 30;

/// A bounded pool of host memory. A cheap handle.
#[derive(Clone)]
pub struct HostPool(Arc<Pool>);

struct Pool {
    shared: Arc<Guarded<Shared>>,
    caches: [Arc<ThreadCache>; APART],
}

/// Whether the system can allocate as many bytes now. They are not touched.
fn available(bytes: usize) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let available = probe.try_reserve_exact(bytes).is_ok();
    // Otherwise the compiler may remove the allocation, which is not used.
    std::hint::black_box(probe.as_mut_ptr());
    available
}

impl HostPool {
    /// Makes a pool without a limit on the bytes in use.
    pub fn new() -> HostPool {
        // Takes no lock: the CPU's pool is made under one.
        let each = share(DEFAULT_KEPT);
        let shared = Arc::new(Guarded::new(Shared::new(DEFAULT_KEPT - each * APART)));
        HostPool(Arc::new(Pool { caches: ThreadCache::all(&shared, each), shared }))
    }

    /// Bounds the bytes in use; a request beyond it is [`Error::OutOfMemory`].
    pub fn set_limit(&self, bytes: usize) {
        self.after_emptying(|shared| shared.set_limit(bytes));
    }

    /// Bounds the bytes kept for later; kept bytes beyond it go back to the system now.
    pub fn set_keep(&self, bytes: usize) {
        let each = share(bytes);
        self.0.caches.iter().for_each(|cache| cache.set_keep(each));
        self.after_emptying(|shared| shared.set_keep(bytes - each * APART));
    }

    /// The pool's current use, and its counts of requests so far. If other threads use the pool meanwhile, it
    /// may be a little more or less.
    pub fn usage(&self) -> PoolUsage {
        let caches = self.0.caches.iter().map(|cache| cache.contents());
        let all = caches.fold(Cached::default(), |a, b| Cached {
            blocks: a.blocks + b.blocks,
            ahead: a.ahead + b.ahead,
            hits: a.hits + b.hits,
        });
        self.0.shared.with(|shared| shared.usage(all))
    }

    /// Allocates at least `bytes` of memory, of unspecified contents.
    pub fn alloc(&self, bytes: usize) -> Result<HostMemory> {
        let out_of_memory = || Error::out_of_host_memory(bytes);
        let class = size_class(bytes).ok_or_else(out_of_memory)?;
        let cache = self.cache();
        let kept = match cache.take(class) {
            Some(start) => Some(start),
            None => self.ask(|shared| shared.take(class)).ok_or_else(out_of_memory)?,
        };
        match kept.or_else(|| fresh(class)).or_else(|| self.give_back_kept().then(|| fresh(class))?) {
            Some(start) => Ok(HostMemory { start, class, home: cache.clone() }),
            None => {
                self.0.shared.with(|shared| shared.discharge(class));
                Err(out_of_memory())
            }
        }
    }

    /// Counts `bytes` that other libraries allocate against the limit, for as long as the result lives. It is
    /// also an error if the system does not have as many now.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Reserved> {
        let out_of_memory = || Error::out_of_host_memory(bytes);
        let cache = self.cache();
        if !cache.spend(bytes) {
            self.ask(|shared| shared.charge(bytes)).ok_or_else(out_of_memory)?;
        }
        let reserved = Reserved { bytes, home: cache.clone() };
        let available = bytes < PROBED || available(bytes) || self.give_back_kept() && available(bytes);
        if available { Ok(reserved) } else { Err(out_of_memory()) }
    }

    /// Makes a request of the shared part, and again each time after emptying the caches.
    fn ask<T>(&self, request: impl Fn(&mut Shared) -> Option<T>) -> Option<T> {
        let again = || (0..RETRIES).find_map(|_| self.after_emptying(&request));
        self.0.shared.with(&request).or_else(again)
    }

    /// Gives all kept blocks back to the system. Returns whether it had any.
    fn give_back_kept(&self) -> bool {
        self.after_emptying(Shared::give_back)
    }

    /// Moves the contents of all caches to the shared part, then makes a request of it.
    fn after_emptying<R>(&self, request: impl FnOnce(&mut Shared) -> R) -> R {
        EMPTYING.with(|()| {
            self.0.caches.iter().for_each(|cache| cache.empty());
            self.0.shared.with(request)
        })
    }

    /// Allocates memory whose first `bytes` are zero.
    pub fn alloc_zeroed(&self, bytes: usize) -> Result<HostMemory> {
        let mut memory = self.alloc(bytes)?;
        memory.bytes_mut()[..bytes].fill(0);
        Ok(memory)
    }

    /// The cache of this thread.
    fn cache(&self) -> &Arc<ThreadCache> {
        &self.0.caches[of_this_thread()]
    }
}

impl Default for HostPool {
    fn default() -> Self {
        HostPool::new()
    }
}

/// A block of host memory, written by its one owner and then frozen into a [`Buffer`]. It returns to its pool
/// when dropped.
pub struct HostMemory {
    start: NonNull<u8>,
    class: usize,
    /// The cache of the thread that asked for it.
    home: Arc<ThreadCache>,
}

// SAFETY: the block belongs to this value alone, as a `Box<[u8]>` would.
unsafe impl Send for HostMemory {}
// SAFETY: `&HostMemory` gives read access only.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// All bytes of the block: at least as many as were requested.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the block is `class` initialised bytes, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.class) }
    }

    /// All bytes of the block, writable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the block is `class` initialised bytes, and borrowed mutably with `self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.class) }
    }

    /// Turns the first `bytes` into a shared buffer. The rest of the last 64 bytes is zeroed for code that
    /// reads whole blocks.
    pub fn freeze(mut self, bytes: usize) -> Buffer {
        let padded = bytes.next_multiple_of(64).min(self.class);
        if bytes < padded {
            self.bytes_mut()[bytes..padded].fill(0);
        }
        // SAFETY: `padded` is at most `class`.
        unreadable(unsafe { self.start.add(padded) }, self.class - padded);
        let address = self.start.as_ptr().expose_provenance();
        // SAFETY: the block is readable for `bytes`, and `self`, the owner, no longer writes it.
        unsafe { Buffer::new(address, Some(bytes), Arc::new(self)) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        self.home.add(self.start, self.class);
    }
}

/// Bytes that other libraries allocate and that count as in use.
pub(crate) struct Reserved {
    bytes: usize,
    home: Arc<ThreadCache>,
}

impl Reserved {
    /// Changes the number of bytes counted. They are allocated already, so no limit applies.
    pub(crate) fn resize(&mut self, bytes: usize) {
        self.home.recharge(self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.home.earn(self.bytes);
    }
}

#[cfg(test)]
mod tests;
