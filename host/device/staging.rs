//! Pinned host memory, in blocks that are reused. Copies from and to it do not block.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::core::Core;
use super::handles::Pinned;
use super::host_pool::size_class;
use super::lock::lock;
use super::sync::{Mutex, thread_local};
use crate::{Error, Result};

/// The most unused bytes that are kept.
const KEPT: usize = 256 << 20;

/// A device's spare blocks, by size.
pub(crate) struct Staging {
    core: Arc<Core>,
    spare: Mutex<Spare>,
}

#[derive(Default)]
struct Spare {
    /// By size, those that were used last are last, with the number of their use.
    blocks: BTreeMap<usize, VecDeque<(u64, Pinned)>>,
    bytes: usize,
    uses: u64,
    /// Blocks that the next allocation frees, because consumers have released them.
    unused: Vec<Pinned>,
}

impl Spare {
    /// Adds a block, and returns those that make room for it: the ones that were used least recently.
    fn keep(&mut self, block: Pinned) -> Vec<Pinned> {
        if block.len() > KEPT {
            return vec![block];
        }
        self.uses += 1;
        self.bytes += block.len();
        self.blocks.entry(block.len()).or_default().push_back((self.uses, block));
        let mut freed = vec![];
        while self.bytes > KEPT {
            let first = |blocks: &VecDeque<(u64, Pinned)>| blocks.front().map(|(used, _)| *used);
            let oldest = self.blocks.values_mut().min_by_key(|blocks| first(blocks).unwrap_or(u64::MAX));
            let Some((_, block)) = oldest.and_then(VecDeque::pop_front) else { break };
            self.bytes -= block.len();
            freed.push(block);
        }
        freed
    }

    /// Takes all blocks out.
    fn all(&mut self) -> Vec<Pinned> {
        self.bytes = 0;
        let kept = std::mem::take(&mut self.blocks).into_values().flatten().map(|(_, block)| block);
        kept.chain(std::mem::take(&mut self.unused)).collect()
    }
}

impl Staging {
    pub(super) fn new(core: &Arc<Core>) -> Arc<Staging> {
        Arc::new(Staging { core: core.clone(), spare: Mutex::default() })
    }

    /// Allocates at least `bytes` of pinned memory, of unspecified contents.
    pub fn alloc(self: &Arc<Self>, bytes: usize) -> Result<Staged> {
        let out_of_memory = Error::OutOfMemory { bytes, device: self.core.place().device_type };
        let class = size_class(bytes).ok_or(out_of_memory)?;
        let (spare, unused) = {
            let mut spare = lock(&self.spare);
            let found = spare.blocks.get_mut(&class).and_then(VecDeque::pop_back).map(|(_, block)| block);
            spare.bytes -= found.as_ref().map_or(0, Pinned::len);
            (found, std::mem::take(&mut spare.unused))
        };
        // Memory is freed outside of the lock, because that may wait for the device.
        drop(unused);
        let create = || Pinned::create(self.core.driver(), class);
        let pinned = match spare.map_or_else(create, Ok) {
            Err(Error::OutOfMemory { .. }) => {
                let spare = lock(&self.spare).all();
                drop(spare);
                create()?
            }
            pinned => pinned?,
        };
        Ok(Staged { pinned: Some(pinned), staging: self.clone() })
    }
}

/// A block of pinned memory. It must not be dropped while a copy from or to it is under way: code that queues
/// a copy keeps the block until the copy has passed.
pub(crate) struct Staged {
    pinned: Option<Pinned>,
    staging: Arc<Staging>,
}

impl Staged {
    pub fn pinned(&self) -> &Pinned {
        self.pinned.as_ref().expect("there until dropped")
    }

    pub fn pinned_mut(&mut self) -> &mut Pinned {
        self.pinned.as_mut().expect("there until dropped")
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let Some(pinned) = self.pinned.take() else { return };
        if self.staging.core.is_parents() {
            // It is the parent's, and another thread may have held the lock when the process was forked.
            return std::mem::forget(pinned);
        }
        let mut spare = lock(&self.staging.spare);
        let freed = spare.keep(pinned);
        match RELEASING.try_with(Cell::get) {
            Ok(false) => {
                // Memory is freed outside of the lock, because that may wait for the device.
                drop(spare);
                drop(freed);
            }
            _ => spare.unused.extend(freed),
        }
    }
}

thread_local! {
    /// Whether the thread is in a consumer's call that releases memory.
    static RELEASING: Cell<bool> = const { Cell::new(false) };
}

/// Drops what a consumer has released. This makes no call into the runtime, because the consumer may release
/// it in one of the runtime's callbacks.
pub(super) fn drop_without_calls<T>(released: T) {
    let outer = RELEASING.try_with(|releasing| releasing.replace(true)).unwrap_or(false);
    drop(released);
    let _ = RELEASING.try_with(|releasing| releasing.set(outer));
}
