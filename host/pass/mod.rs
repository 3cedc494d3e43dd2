//! L4: runs operations on a GPU. A [`Pass`] is one operation's work on one stream, from waiting for its
//! inputs to recording the event that its outputs carry. It is the only place where kernels meet a driver.
//!
//! ```text
//! let mut pass = Pass::begin("double", stream)?;
//! pass.input(&values)?;                          // right device? waits on the stream, keeps it alive
//! let mut requests = Requests::default();        // what it needs, noted while it is planned, ...
//! let (out, total) = (requests.output(values.len() * 4), requests.sum());
//! let first_bad = requests.first_row();
//! let granted = requests.grant(&mut pass, 0)?;   // ... and there all at once
//! let entry = find(DOUBLE, &[4]).ok_or_else(|| pass.unsupported(values.data_type()))?;
//! pass.launch(entry, &Double {                   // as many waves as the kernel says for these arguments
//!     values: input(&values.buffers()[0]),       // an `In` with the buffer's extent
//!     out: granted[out].out(),                   // only a pass's own memory can be written
//!     total: granted.counter(total),
//!     first_bad: granted.counter(first_bad),
//!     len: values.len() as u64,
//! })?;
//! // Either: one look at the numbers, in the async block of a `Pending::begin(stream, ...)` ...
//! let total = total.of(&pass.read(&[granted.counters()]).await?);
//! // ... or only when somebody waits for the result: `pass.report(granted.counters(), |words| ...)`.
//! let mut parts = pass.parts(values.data_type().clone(), values.len());   // place and event filled in
//! parts.buffers = vec![granted[out].buffer()];
//! let result = DeviceArray::try_new(parts)?;
//! pass.finish()?;                                // records the event; scratch goes back to the pool
//! ```
//!
//! A pass that is dropped early, for example by an error, is ended in the same way, so the work that it has
//! launched stays safe to run.

#![allow(unsafe_code)]

mod arguments;
mod copies;
mod finish;
mod joined;
#[cfg(all(test, shuttle))]
mod model_tests;
#[cfg(test)]
mod ordering_tests;
mod parts;
mod pending;
mod probes;
mod reads;
mod region;
mod requests;
mod small_uploads;
mod tables;
#[cfg(test)]
mod tests;
mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_schema::DataType;
use bowstring_kernels::target::{Args, Entry, MAX_WAVES, Value};

pub(crate) use arguments::{BitPointer, Reach, bits, bytes, input, is_aligned, validity};
pub(crate) use copies::FEW_ROWS;
pub(crate) use joined::{all, both};
pub(crate) use parts::RING;
pub use pending::Pending;
pub(crate) use pending::block_on;
pub(crate) use probes::{ATOMICS, Direction};
pub(crate) use reads::{Looks, Seen, Words};
use region::Allocated;
pub(crate) use region::Region;
pub(crate) use requests::{Counter, Granted, Request, Requests};
use small_uploads::SmallUploads;
pub(crate) use tables::Table;
pub(crate) use waits::readable;

use crate::array::{Buffer, DeviceArray, Parts, Place, Ready, Slot};
use crate::device::driver::{Driver, Failure, Launch, RawStream};
use crate::device::{Check, Event, Gpu, GpuStream, Kept, Memory, Stream, witnessed};
use crate::{Error, Result, Unsupported};

/// The number of bytes that a stream keeps for counters that are not read.
const DISCARDED: usize = 64;

/// One operation's work on one stream.
pub(crate) struct Pass {
    operation: &'static str,
    /// Keeps the device from being shut down before the pass has ended.
    stream: Stream,
    gpu: Arc<Gpu>,
    queue: Arc<GpuStream>,
    done: Event,
    ready: Arc<dyn Ready>,
    waited: Vec<Arc<dyn Ready>>,
    parents: Vec<Event>,
    kept: Vec<Kept>,
    used: Vec<Arc<Memory>>,
    checks: Vec<Check>,
    looked_at: Vec<DeviceArray>,
    small_uploads: SmallUploads,
    /// The last event within the pass, and whether work came after it.
    seen: Option<Event>,
    is_ahead: AtomicBool,
    ended: bool,
}

impl Pass {
    /// Begins an operation on a GPU's stream.
    pub fn begin(operation: &'static str, stream: &Stream) -> Result<Pass> {
        let not_a_gpu = || Error::invalid(operation, "the CPU's stream runs no passes");
        let (gpu, queue) = stream.as_gpu().ok_or_else(not_a_gpu)?;
        gpu.retire();
        queue.enter(gpu, operation)?;
        let done = Event::new(gpu.core(), queue.number())?;
        Ok(Pass {
            operation,
            stream: stream.clone(),
            gpu: gpu.clone(),
            queue: queue.clone(),
            ready: Arc::new(done.clone()),
            done,
            waited: vec![],
            parents: vec![],
            kept: vec![],
            used: vec![],
            checks: vec![],
            looked_at: vec![],
            small_uploads: SmallUploads::default(),
            seen: None,
            is_ahead: AtomicBool::new(false),
            ended: false,
        })
    }

    /// The GPU that runs the pass.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// The stream that runs the pass.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The name of the operation, for errors.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The event that its results carry.
    pub fn ready(&self) -> Arc<dyn Ready> {
        self.ready.clone()
    }

    /// Keeps a value until the pass's work has finished.
    pub fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    /// The device memory that holds its results.
    pub fn place(&self) -> Place {
        self.gpu.place()
    }

    /// The number of lanes in a wave: 32 or 64.
    pub fn width(&self) -> u32 {
        self.gpu.driver().width()
    }

    /// The error for what the operation does not support.
    pub fn unsupported(&self, what: impl Into<Unsupported>) -> Error {
        let device = self.place().device_type;
        Error::Unsupported { operation: self.operation, what: what.into(), device }
    }

    /// Makes an array readable by the pass. The stream waits for each of its events, once, and the array
    /// stays alive until the pass's work has finished. An array that the device cannot reach is
    /// [`Error::Invalid`].
    pub fn input(&mut self, array: &DeviceArray) -> Result<()> {
        if self.enter(array)? {
            self.kept.push(Kept::Array(array.clone()));
        }
        Ok(())
    }

    /// Prepares an array and returns whether it must be kept. Memory that is only used in this stream's order
    /// need not be kept, see `pool.rs`.
    fn enter(&mut self, array: &DeviceArray) -> Result<bool> {
        if !self.place().reaches(array.place()) {
            let problem = format!("an array on {} and a stream on {}", array.place(), self.place());
            return Err(Error::invalid(self.operation, problem));
        }
        if let Some(ready) = array.ready() {
            self.wait(ready)?;
        }
        let mut keep = false;
        let bitmap = array.validity().map(|bits| &bits.buffer);
        let numbers = array.buffers().iter().filter_map(Buffer::extent_at);
        for buffer in array.buffers().iter().chain(bitmap).chain(numbers) {
            match buffer.owner().clone().downcast::<Memory>() {
                Ok(memory) if memory.stream() == self.queue.number() => self.use_memory(memory),
                _ => keep |= buffer.bytes() != Some(0),
            }
        }
        for child in array.children().iter().chain(array.dictionary()) {
            keep |= self.enter(child)?;
        }
        Ok(keep)
    }

    fn use_memory(&mut self, memory: Arc<Memory>) {
        if !self.used.last().is_some_and(|last| Arc::ptr_eq(last, &memory)) {
            self.used.push(memory);
        }
    }

    pub fn wait(&mut self, ready: &Arc<dyn Ready>) -> Result<()> {
        if self.waited.iter().any(|waited| Arc::ptr_eq(waited, ready)) {
            return Ok(());
        }
        self.waited.push(ready.clone());
        let any: &dyn std::any::Any = &**ready;
        let own = any.downcast_ref::<Event>();
        // Work on the same stream runs in order anyway.
        let earlier = own.is_some_and(|event| event.stream() == self.queue.number());
        if !earlier {
            self.queue.wait(&self.gpu, &**ready)?;
        }
        // Added only after the wait is queued: when this pass has finished, errors of its parents are
        // examined, and they must have finished by then.
        self.parents.extend(own.cloned());
        Ok(())
    }

    /// Makes a region of an earlier pass on the same stream readable here.
    pub fn reuse(&mut self, region: &Region) {
        match region.memory() {
            Allocated::Device(memory) => self.use_memory(memory.clone()),
            Allocated::Pinned(block) => self.kept.push(Kept::Shared(block.clone())),
        }
    }

    /// Allocates device memory with unspecified contents.
    pub fn output(&mut self, bytes: usize) -> Result<Region> {
        let memory = self.gpu.pool().alloc(bytes, self.queue.number(), self.queue.owned())?;
        self.used.push(memory.clone());
        Ok(Region::of(memory, bytes))
    }

    /// Multiplies sizes. Returns `OutOfMemory` on overflow: lengths come from imported, untrusted data, and
    /// rows of no bytes may outnumber the bytes of any memory.
    pub fn times(&self, rows: usize, each: usize) -> Result<usize> {
        let too_much = Error::OutOfMemory { bytes: usize::MAX, device: self.place().device_type };
        rows.checked_mul(each).filter(|product| *product <= isize::MAX as usize).ok_or(too_much)
    }

    /// Allocates device memory for `rows` rows of `width` bytes each, with unspecified contents.
    pub fn rows(&mut self, rows: usize, width: usize) -> Result<Region> {
        self.output(self.times(rows, width)?)
    }

    /// Allocates zeroed device memory for `rows` rows of a slot; for bytes that offsets point into, none.
    pub fn zeroed_rows(&mut self, slot: Slot, rows: usize) -> Result<Region> {
        self.zeroed(match slot {
            Slot::Bits => rows.div_ceil(8),
            Slot::Fixed(width) => self.times(rows, width)?,
            Slot::Views => self.times(rows, 16)?,
            Slot::Offsets(width) => self.times(rows.saturating_add(1), width)?,
            Slot::Bytes => 0,
        })
    }

    /// Allocates device memory for `len` values that are only used inside the pass.
    pub fn scratch<T: Value>(&mut self, len: usize) -> Result<Region> {
        self.rows(len, size_of::<T>())
    }

    /// Allocates zeroed device memory. The rest of its last 64 bytes is also zero, for consumers that read
    /// bitmaps by whole words.
    pub fn zeroed(&mut self, bytes: usize) -> Result<Region> {
        match self.pack(bytes, &[])? {
            Some(region) => Ok(region),
            None => self.cleared(bytes),
        }
    }

    /// Allocates zeroed device memory of any size with a fill call.
    fn cleared(&mut self, bytes: usize) -> Result<Region> {
        let region = self.output(bytes)?;
        self.set(&region, 0)?;
        Ok(region)
    }

    /// Memory for counters that a kernel writes but this operation does not read. It belongs to the stream
    /// and is initialised once, which is cheaper than separate memory for each pass.
    pub fn discard_counters(&mut self) -> Result<Region> {
        let discarded = self.queue.sink().clone();
        if let Some(memory) = discarded {
            self.use_memory(memory.clone());
            return Ok(Region::of(memory, DISCARDED));
        }
        // Outside the lock: an allocation may call a producer's release, which may call anything.
        let memory = self.gpu.pool().alloc(DISCARDED, self.queue.number(), self.queue.owned())?;
        self.use_memory(memory.clone());
        let region = Region::of(memory.clone(), DISCARDED);
        self.set(&region, 0)?;
        *self.queue.sink() = Some(memory);
        Ok(region)
    }

    /// Sets every byte of a region, and of the rest of its last 64 bytes.
    pub fn fill(&mut self, region: &Region, byte: u8) -> Result<()> {
        self.send()?;
        self.set(region, byte)
    }

    /// Like `fill`, without sending packed uploads first: none of them may go to this region.
    fn set(&mut self, region: &Region, byte: u8) -> Result<()> {
        let bytes = region.bytes().next_multiple_of(64);
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: blocks are multiples of 256 bytes, and `used` keeps this one until the pass has passed.
        self.queued(|driver, stream| unsafe { driver.fill(region.address(), byte, bytes, stream) })
    }

    /// Launches an entry with as many waves as it requests for these arguments. The arguments' pointers must
    /// come from this pass's inputs and regions.
    pub fn launch<A: Args>(&mut self, entry: &'static Entry<A>, args: &A) -> Result<()> {
        let waves = (entry.waves)(args, self.width());
        if waves == 0 {
            return Ok(());
        }
        if waves > MAX_WAVES {
            let problem = format!("{waves} waves of {}, at most {MAX_WAVES} can be launched", entry.name);
            return Err(Error::invalid(self.operation, problem));
        }
        let architecture = self.gpu.driver().architecture();
        if !architecture.is_none_or(|architecture| entry.makers.include(architecture)) {
            return Err(self.unsupported(entry.name));
        }
        self.send()?;
        let loaded = self.gpu.entry(entry.family, entry.name)?;
        let launch = Launch { entry: loaded, kernel: entry, waves, args };
        // SAFETY: `args` is what the entry was declared with; its pointers were made from buffers that are
        // inputs, regions or pinned blocks of this pass, which keeps them alive, and outputs are regions or
        // pinned blocks, which no other code writes.
        let run = || self.queued(|driver, stream| unsafe { driver.launch(&launch, stream) });
        match self.gpu.witness() {
            None => run(),
            Some(witness) => witnessed(witness, &launch, self.queue.owned(), &run),
        }?;
        self.queue.count_launch();
        Ok(())
    }

    /// Creates parts for an array that this pass makes: on its device, readable once the pass has finished.
    pub fn parts(&self, data_type: DataType, len: usize) -> Parts {
        let (place, ready) = (self.place(), Some(self.ready.clone()));
        Parts { place, ready, ..Parts::new(data_type, len) }
    }

    /// Makes an array of values of fixed width, without nulls, that this pass writes.
    pub fn array(&self, data_type: DataType, len: usize, values: &Region) -> Result<DeviceArray> {
        let parts = self.parts(data_type, len);
        DeviceArray::try_new(Parts { buffers: vec![values.buffer()], ..parts })
    }

    /// Makes a call on the pass's stream.
    fn queued(
        &self,
        call: impl FnOnce(&dyn Driver, RawStream) -> std::result::Result<(), Failure>,
    ) -> Result<()> {
        self.is_ahead.store(true, Ordering::Relaxed);
        let outcome = call(&**self.gpu.driver(), self.queue.owned().raw());
        outcome.map_err(|failure| failure.error(0, self.place()))
    }
}
