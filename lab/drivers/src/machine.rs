//! The common part of both runtimes: devices' memory, streams, events, loaded images, and putting work on a
//! stream. Each runtime has one machine; devices are numbers.

mod events;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use crate::capture::Captures;
use crate::faults::Faults;
use crate::image::{Image, Module};
use crate::memory::{Memory, MemoryKind, Owner, copy, fill};
use crate::ordered::Ordered;
use crate::pools::Pools;
use crate::streams::{Event, Order, Recording, Stream, called_back_by};
use crate::{Outcome, calls, code, handle, lock};

/// The number of devices of each runtime: enough for every test to have its own.
pub const DEVICES: i32 = 100_000;
/// Bytes of memory that a device has unless a test says otherwise; all of them are reported as free.
const BYTES: usize = 4 << 30;
/// Handles of a device's default streams: the one that all threads share (two names), and the one of each
/// thread.
const LEGACY: [usize; 2] = [0, 1];
const PER_THREAD: usize = 2;
/// The flag of a stream that does not synchronise with the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// The attributes that can be read of a function.
const LOCAL_BYTES: i32 = 3;
const REGISTERS: i32 = 4;

/// The state of one runtime.
#[derive(Default)]
pub struct Machine {
    pub memory: Mutex<Memory>,
    streams: Mutex<HashMap<usize, Stream>>,
    defaults: Mutex<HashMap<(i32, Option<ThreadId>), Stream>>,
    events: Mutex<HashMap<usize, Event>>,
    modules: Mutex<HashMap<usize, Module>>,
    functions: Mutex<HashMap<usize, (Module, String)>>,
    faults: Mutex<HashMap<i32, u64>>,
    lost: Mutex<HashSet<i32>>,
    capacities: Mutex<HashMap<i32, usize>>,
    ordered: Ordered,
    pub pools: Pools,
    captures: Captures,
}

impl Machine {
    /// Records an illegal action of the work on a device, and prints it.
    fn fault(&self, device: i32, call: &str, what: String) -> Outcome {
        eprintln!("stand-in device {device}: {call}: {what}");
        *lock(&self.faults).entry(device).or_default() += 1;
        Err(code::ILLEGAL_ADDRESS)
    }

    /// Records an access to memory that does not exist. It is the last action of the device in this process,
    /// or of the process itself: see [`Faults`].
    fn stray(&self, device: i32, call: &str, what: String) -> Outcome {
        if Faults::asked().how == "abort" {
            eprintln!("stand-in device {device}: memory access fault in {call}: {what}");
            std::process::abort();
        }
        lock(&self.lost).insert(device);
        self.fault(device, call, what)
    }

    /// Fails if work on a device has strayed; then no call on the device has any effect.
    pub fn lost(&self, device: i32) -> Outcome {
        if lock(&self.lost).contains(&device) { Err(code::ILLEGAL_ADDRESS) } else { Ok(()) }
    }

    /// Fails if a call may not be made now with this device current. A stream's callback may make no call,
    /// and some calls are forbidden during the capture of a graph.
    pub fn permits(&self, call: &str, current: Option<i32>) -> Outcome {
        if let Some(device) = called_back_by() {
            let _put_down = self.fault(device, call, "called from a callback".into());
            return Err(code::NOT_PERMITTED);
        }
        current.map_or(Ok(()), |device| self.captures.permits(call, device))
    }

    /// Exchanges the mode that decides which calls this thread may make during the capture of a graph.
    ///
    /// # Safety
    ///
    /// `mode` must be null or point to a mode.
    pub unsafe fn exchange_mode(&self, mode: *mut i32) -> Outcome {
        // SAFETY: the caller's promise.
        let new = unsafe { mode.as_mut() }.ok_or(code::INVALID_VALUE)?;
        *new = self.captures.exchange(*new)?;
        Ok(())
    }

    pub fn begin_capture(&self, stream: usize, current: i32, mode: i32) -> Outcome {
        let known = self.any_stream(stream, current)?;
        match known.order {
            Order::Legacy => Err(code::CAPTURE_IMPLICIT),
            order => self.captures.begin(stream, known.device, order == Order::Blocking, mode),
        }
    }

    pub fn end_capture(&self, stream: usize) -> Outcome {
        self.captures.end(stream)
    }

    /// 0 if a stream is not captured.
    pub fn captured(&self, stream: usize, current: i32) -> Outcome<i32> {
        let known = self.any_stream(stream, current)?;
        self.captures.status(stream, known.device, known.order == Order::Legacy)
    }

    /// How many illegal actions the work on a device has taken so far.
    pub fn faults(&self, device: i32) -> u64 {
        lock(&self.faults).get(&device).copied().unwrap_or(0)
    }

    /// How many allocations, streams and events of a device are alive.
    pub fn alive(&self, device: i32) -> [usize; 3] {
        let of = |other: i32| usize::from(other == device);
        [
            lock(&self.memory).of_device(device).0.saturating_sub(self.ordered.kept(device)),
            lock(&self.streams).values().map(|stream| of(stream.device)).sum(),
            lock(&self.events).values().map(|event| of(event.device)).sum(),
        ]
    }

    pub fn alloc(&self, bytes: usize, kind: MemoryKind, device: i32) -> Outcome<usize> {
        self.alloc_lacking(bytes, bytes, kind, device)
    }

    /// Allocates memory, so many bytes of which no pool has kept for it.
    fn alloc_lacking(&self, bytes: usize, lacking: usize, kind: MemoryKind, device: i32) -> Outcome<usize> {
        if bytes == 0 {
            return Err(code::INVALID_VALUE);
        }
        let mut memory = lock(&self.memory);
        let taken = memory.of_device(device).1.saturating_add(self.pools.kept(device));
        let is_full = taken.saturating_add(lacking) > self.capacity(device);
        if is_full && kind != MemoryKind::Pinned {
            return Err(code::OUT_OF_MEMORY);
        }
        memory.alloc(bytes, Owner { kind, device }).ok_or(code::OUT_OF_MEMORY)
    }

    /// Allocates memory from a pool.
    pub fn alloc_from(&self, pool: usize, bytes: usize) -> Outcome<usize> {
        let (device, lacking) = (self.pools.device(pool)?, self.pools.lacking(pool, bytes)?);
        let address = self.alloc_lacking(bytes, lacking, MemoryKind::Device, device)?;
        self.pools.allocated(pool, address, bytes)?;
        Ok(address)
    }

    /// The bytes of a device's memory.
    pub fn capacity(&self, device: i32) -> usize {
        lock(&self.capacities).get(&device).copied().unwrap_or(BYTES)
    }

    pub fn set_capacity(&self, device: i32, bytes: usize) {
        lock(&self.capacities).insert(device, bytes);
    }

    /// Allocates memory in stream order as HIP does: see [`Ordered`]. New memory exists, zeroed, after
    /// `late`; bytes that are written before then are lost.
    pub fn alloc_ordered(
        &'static self,
        bytes: usize,
        device: i32,
        stream: usize,
        late: Duration,
    ) -> Outcome<usize> {
        if std::env::var_os("BOWSTRING_HIP_ASYNC_ALLOC").is_none_or(|value| value != "1") {
            let _ = self.fault(device, "hipMallocAsync", "memory in stream order was not asked for".into());
        }
        if let Some(address) = self.ordered.take(bytes, device, stream) {
            return Ok(address);
        }
        let address = self.alloc(bytes, MemoryKind::Device, device).or_else(|code| {
            for address in self.ordered.forget(device) {
                self.free(address, &[MemoryKind::Device])?;
            }
            self.alloc(bytes, MemoryKind::Device, device).or(Err(code))
        })?;
        self.ordered.add(address, bytes, device, stream);
        if !late.is_zero() {
            std::thread::spawn(move || {
                std::thread::sleep(late);
                let memory = lock(&self.memory);
                if memory.check(address, bytes).is_ok() {
                    // SAFETY: inside a live allocation, and the lock keeps other work away.
                    unsafe { fill(address, 0, bytes) };
                }
            });
        }
        Ok(address)
    }

    /// Frees memory of `alloc_ordered`.
    pub fn free_ordered(&'static self, stream: usize, device: i32, address: usize) -> Outcome {
        let queue = self.stream(stream, device)?;
        if self.ordered.free(address, stream) { Ok(()) } else { self.free_on(&queue, address) }
    }

    /// Frees memory of one of these kinds at once.
    pub fn free(&'static self, address: usize, kinds: &[MemoryKind]) -> Outcome {
        let mut memory = lock(&self.memory);
        let block = memory.block(address).copied().filter(|block| kinds.contains(&block.owner.kind));
        let block = block.ok_or(code::INVALID_VALUE)?;
        let freed = memory.free(address);
        self.pools.freed(address);
        drop(memory);
        freed.or_else(|what| self.fault(block.owner.device, "free", format!("{address:#x}: {what}")))
    }

    /// Frees memory when the stream comes to it.
    pub fn free_on(&'static self, stream: &Stream, address: usize) -> Outcome {
        let block = lock(&self.memory).block(address).copied();
        let device = stream.device;
        if !block.is_some_and(|block| block.owner.kind == MemoryKind::Device && block.address == address) {
            return Err(code::INVALID_VALUE);
        }
        stream.push(move || {
            let mut memory = lock(&self.memory);
            let freed = memory.free(address);
            self.pools.freed(address);
            drop(memory);
            freed.or_else(|what| self.fault(device, "free", format!("{address:#x}: {what}")))
        });
        Ok(())
    }

    /// Queues a copy. Addresses that the stand-in knows must be inside an allocation; the others are trusted.
    pub fn copy_on(&'static self, stream: &Stream, call: &'static str, to: usize, from: usize, bytes: usize) {
        let device = stream.device;
        stream.push(move || {
            let memory = lock(&self.memory);
            let checked = memory.check_host(to, bytes).and_then(|()| memory.check_host(from, bytes));
            match checked {
                // SAFETY: the stand-in's own part was checked, and the lock keeps other work away; for the
                // rest the caller promised what it promises to the real library.
                Ok(()) => unsafe { copy(to, from, bytes) },
                Err(what) => {
                    drop(memory);
                    return self.stray(device, call, what);
                }
            }
            Ok(())
        });
    }

    pub fn fill_on(&'static self, stream: &Stream, to: usize, byte: u8, bytes: usize) {
        let device = stream.device;
        stream.push(move || {
            let memory = lock(&self.memory);
            if let Err(what) = memory.check(to, bytes) {
                drop(memory);
                return self.stray(device, "memset", what);
            }
            // SAFETY: inside a live allocation, and the lock keeps other work away.
            unsafe { fill(to, byte, bytes) };
            Ok(())
        });
    }

    /// Makes a stream. `flags` may say that it and the legacy default stream do not wait for each other.
    pub fn new_stream(&self, device: i32, flags: u32, priority: i32) -> Outcome<usize> {
        let number = handle();
        let order = if flags & NON_BLOCKING == 0 { Order::Blocking } else { Order::Free };
        let stream = Stream::start(device, order, priority, calls::delay(), number as u64)?;
        lock(&self.streams).insert(number, stream);
        Ok(number)
    }

    pub fn destroy_stream(&self, stream: usize) -> Outcome {
        lock(&self.streams).remove(&stream).map(drop).ok_or(code::INVALID_HANDLE)
    }

    /// Finds a stream by its handle; a default stream is the current device's.
    pub fn any_stream(&self, stream: usize, current: i32) -> Outcome<Stream> {
        let thread = match stream {
            PER_THREAD => Some(std::thread::current().id()),
            _ if LEGACY.contains(&stream) => None,
            _ => return lock(&self.streams).get(&stream).cloned().ok_or(code::INVALID_HANDLE),
        };
        let mut defaults = lock(&self.defaults);
        if let Some(stream) = defaults.get(&(current, thread)) {
            return Ok(stream.clone());
        }
        let order = if thread.is_some() { Order::Blocking } else { Order::Legacy };
        let stream = Stream::start(current, order, 0, calls::delay(), handle() as u64)?;
        defaults.insert((current, thread), stream.clone());
        Ok(stream)
    }

    /// Finds a stream that work of the current device can use.
    pub fn stream(&self, handle: usize, current: i32) -> Outcome<Stream> {
        let stream = self.any_stream(handle, current)?;
        if stream.device != current {
            return Err(code::INVALID_HANDLE);
        }
        self.captures.work_on(handle, current, stream.order == Order::Legacy)?;
        self.put_in_order(&stream);
        Ok(stream)
    }

    /// Orders the legacy default stream and the blocking streams of its device: a job of either comes after
    /// all jobs that the other has by now.
    fn put_in_order(&self, stream: &Stream) {
        let behind = |other: &Stream| {
            let recording = Arc::<Recording>::default();
            other.record(recording.clone());
            stream.push(move || recording.wait());
        };
        let is = |other: &&Stream, order| other.device == stream.device && other.order == order;
        let defaults: Vec<Stream> = lock(&self.defaults).values().cloned().collect();
        match stream.order {
            Order::Free => {}
            Order::Blocking => defaults.iter().filter(|other| is(other, Order::Legacy)).for_each(behind),
            Order::Legacy => {
                let all: Vec<Stream> = lock(&self.streams).values().cloned().chain(defaults).collect();
                all.iter().filter(|other| is(other, Order::Blocking)).for_each(behind);
            }
        }
    }

    pub fn load(&self, device: i32, image: Arc<dyn Image>) -> usize {
        let number = handle();
        lock(&self.modules).insert(number, Module { device, image });
        number
    }

    pub fn function(&self, module: usize, name: &str) -> Outcome<usize> {
        let module = lock(&self.modules).get(&module).cloned().ok_or(code::INVALID_HANDLE)?;
        module.image.words(name).ok_or(code::NOT_FOUND)?;
        let number = handle();
        lock(&self.functions).insert(number, (module, name.to_owned()));
        Ok(number)
    }

    /// The registers of a function, or the bytes of its local memory. An interpreter has all the registers
    /// that a function takes, and needs no local memory.
    pub fn attribute(&self, function: usize, attribute: i32) -> Outcome<i32> {
        if !lock(&self.functions).contains_key(&function) {
            return Err(code::INVALID_HANDLE);
        }
        match attribute {
            LOCAL_BYTES => Ok(0),
            REGISTERS => Ok(32),
            _ => Err(code::INVALID_VALUE),
        }
    }

    /// Queues a launch. `words` reads so many arguments.
    pub fn launch(
        &'static self,
        function: usize,
        blocks: u32,
        stream: &Stream,
        words: impl FnOnce(usize) -> Vec<u64>,
    ) -> Outcome {
        let (module, name) = lock(&self.functions).get(&function).cloned().ok_or(code::INVALID_HANDLE)?;
        if module.device != stream.device {
            return Err(code::INVALID_HANDLE);
        }
        let words = words(module.image.words(&name).ok_or(code::NOT_FOUND)?);
        stream.push(move || {
            let mut memory = lock(&self.memory);
            let wish = Faults::asked().of(&name);
            memory.written = None;
            let run = match wish {
                "abort" => Err("BOWSTRING_STANDIN_FAULT names it".to_owned()),
                _ => module.image.run(&name, &words, blocks, &mut memory),
            };
            if wish == "wrong" {
                memory.spoil();
            }
            drop(memory);
            run.or_else(|what| self.stray(module.device, &name, what))
        });
        Ok(())
    }
}
