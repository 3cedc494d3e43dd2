//! What both runtimes are made of: devices' memory, streams, events, loaded images, and how work is put on a stream. One
//! machine for each runtime; devices are numbers.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::ThreadId;
use std::time::Duration;

use crate::capture::Captures;
use crate::memory::{Memory, MemoryKind, Owner, copy, fill};
use crate::ordered::Ordered;
use crate::streams::{Event, Order, Recording, Stream, called_back_by};
use crate::{Outcome, calls, code, lock};

/// How many devices each runtime has: one for every test that wants one.
pub const DEVICES: i32 = 100_000;
/// Bytes of memory that a device has, unless a test says otherwise; it says that all of them are free.
const BYTES: usize = 4 << 30;
/// Handles that mean a device's default streams: one for all threads (by two names), one for each.
const LEGACY: [usize; 2] = [0, 1];
const PER_THREAD: usize = 2;
/// A stream's flag: it has nothing to do with the legacy default stream.
const NON_BLOCKING: u32 = 1;
/// Attributes that a function can be asked for.
const LOCAL_BYTES: i32 = 3;
const REGISTERS: i32 = 4;
/// An event's flag: it keeps no time.
const UNTIMED: u32 = 2;

/// A loaded image, which can run its entries.
pub trait Image: Send + Sync {
    /// How many words an entry takes; `None` where it has no such entry.
    fn words(&self, entry: &str) -> Option<usize>;
    /// Runs blocks of an entry.
    fn run(&self, entry: &str, words: &[u64], blocks: u32, memory: &mut Memory) -> Result<(), String>;
}

#[derive(Clone)]
struct Module {
    device: i32,
    image: Arc<dyn Image>,
}

/// What one runtime has.
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
    captures: Captures,
}

/// The wishes in `BOWSTRING_STANDIN_FAULT`, in a process of a test's: `abort` has the first stray access
/// end the process, as ROCm does; `abort:NAME` also has launches of entries stray whose names begin so;
/// `wrong:NAME` has them write one bit that is not what they should write.
#[derive(Clone, Copy)]
struct Faults {
    how: &'static str,
    entry: Option<&'static str>,
}

impl Faults {
    fn asked() -> Faults {
        static ASKED: OnceLock<Faults> = OnceLock::new();
        *ASKED.get_or_init(|| {
            let asked: &str = std::env::var("BOWSTRING_STANDIN_FAULT").unwrap_or_default().leak();
            let (how, entry) = asked.split_once(':').map_or((asked, None), |(how, entry)| (how, Some(entry)));
            assert!(["", "abort", "wrong"].contains(&how), "BOWSTRING_STANDIN_FAULT={asked}");
            Faults { how, entry }
        })
    }

    /// What launches of an entry are to do: nothing but their work, if it is empty.
    fn of(self, entry: &str) -> &'static str {
        if self.entry.is_some_and(|start| entry.starts_with(start)) { self.how } else { "" }
    }
}

/// A number that no other handle has, and no default stream.
fn handle() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0x1000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Machine {
    /// Puts down what work on a device did and may not, loudly.
    fn fault(&self, device: i32, call: &str, what: String) -> Outcome {
        eprintln!("stand-in device {device}: {call}: {what}");
        *lock(&self.faults).entry(device).or_default() += 1;
        Err(code::ILLEGAL_ADDRESS)
    }

    /// The same of an access where nothing is. It is the last thing that the device does in this process,
    /// or that the process does: see [`Faults`].
    fn stray(&self, device: i32, call: &str, what: String) -> Outcome {
        if Faults::asked().how == "abort" {
            eprintln!("stand-in device {device}: memory access fault in {call}: {what}");
            std::process::abort();
        }
        lock(&self.lost).insert(device);
        self.fault(device, call, what)
    }

    /// Whether work on a device has strayed: then no call on it does anything more.
    pub fn lost(&self, device: i32) -> Outcome {
        if lock(&self.lost).contains(&device) { Err(code::ILLEGAL_ADDRESS) } else { Ok(()) }
    }

    /// Whether a call may be made here, with this device current: none may from what a stream calls back, and
    /// some may not while a graph is captured.
    pub fn permits(&self, call: &str, current: Option<i32>) -> Outcome {
        if let Some(device) = called_back_by() {
            let _put_down = self.fault(device, call, "called from a callback".into());
            return Err(code::NOT_PERMITTED);
        }
        current.map_or(Ok(()), |device| self.captures.permits(call, device))
    }

    /// Exchanges the mode that says which calls this thread may make while a graph is captured.
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

    /// 0 where a stream is not captured.
    pub fn captured(&self, stream: usize, current: i32) -> Outcome<i32> {
        let known = self.any_stream(stream, current)?;
        self.captures.status(stream, known.device, known.order == Order::Legacy)
    }

    /// How many were put down so far.
    pub fn faults(&self, device: i32) -> u64 {
        lock(&self.faults).get(&device).copied().unwrap_or(0)
    }

    /// How much of a device is alive: allocations, streams, events.
    pub fn alive(&self, device: i32) -> [usize; 3] {
        let of = |other: i32| usize::from(other == device);
        [
            lock(&self.memory).of_device(device).0.saturating_sub(self.ordered.kept(device)),
            lock(&self.streams).values().map(|stream| of(stream.device)).sum(),
            lock(&self.events).values().map(|event| of(event.device)).sum(),
        ]
    }

    pub fn alloc(&self, bytes: usize, kind: MemoryKind, device: i32) -> Outcome<usize> {
        if bytes == 0 {
            return Err(code::INVALID_VALUE);
        }
        let mut memory = lock(&self.memory);
        let is_full = memory.of_device(device).1.saturating_add(bytes) > self.capacity(device);
        if is_full && kind != MemoryKind::Pinned {
            return Err(code::OUT_OF_MEMORY);
        }
        memory.alloc(bytes, Owner { kind, device }).ok_or(code::OUT_OF_MEMORY)
    }

    /// How many bytes a device has.
    pub fn capacity(&self, device: i32) -> usize {
        lock(&self.capacities).get(&device).copied().unwrap_or(BYTES)
    }

    pub fn set_capacity(&self, device: i32, bytes: usize) {
        lock(&self.capacities).insert(device, bytes);
    }

    /// Memory as HIP hands it out in stream order: see [`Ordered`]. New memory is there, and zero, after
    /// `late`; what is written before is lost.
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

    /// Takes such memory back.
    pub fn free_ordered(&'static self, stream: usize, device: i32, address: usize) -> Outcome {
        let queue = self.stream(stream, device)?;
        if self.ordered.free(address, stream) { Ok(()) } else { self.free_on(&queue, address) }
    }

    /// Frees now what is of this kind.
    pub fn free(&'static self, address: usize, kinds: &[MemoryKind]) -> Outcome {
        let mut memory = lock(&self.memory);
        let block = memory.block(address).copied().filter(|block| kinds.contains(&block.owner.kind));
        let block = block.ok_or(code::INVALID_VALUE)?;
        let freed = memory.free(address);
        drop(memory);
        freed.or_else(|what| self.fault(block.owner.device, "free", format!("{address:#x}: {what}")))
    }

    /// Frees when the stream comes to it.
    pub fn free_on(&'static self, stream: &Stream, address: usize) -> Outcome {
        let block = lock(&self.memory).block(address).copied();
        let device = stream.device;
        if !block.is_some_and(|block| block.owner.kind == MemoryKind::Device && block.address == address) {
            return Err(code::INVALID_VALUE);
        }
        stream.push(move || {
            let freed = lock(&self.memory).free(address);
            freed.or_else(|what| self.fault(device, "free", format!("{address:#x}: {what}")))
        });
        Ok(())
    }

    /// Queues a copy. What is ours must be inside of an allocation; what is not ours is trusted.
    pub fn copy_on(&'static self, stream: &Stream, call: &'static str, to: usize, from: usize, bytes: usize) {
        let device = stream.device;
        stream.push(move || {
            let memory = lock(&self.memory);
            let checked = memory.check_host(to, bytes).and_then(|()| memory.check_host(from, bytes));
            match checked {
                // SAFETY: the part that is ours was checked, and the lock keeps other work away; for the rest the caller
                // promised as to the real library.
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

    /// `flags` may say that it does not wait for the legacy default stream, nor that for it.
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

    /// A stream by its handle; a default one is the current device's.
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

    /// A stream that work of the current device can go on.
    pub fn stream(&self, handle: usize, current: i32) -> Outcome<Stream> {
        let stream = self.any_stream(handle, current)?;
        if stream.device != current {
            return Err(code::INVALID_HANDLE);
        }
        self.captures.work_on(handle, current, stream.order == Order::Legacy)?;
        self.put_in_order(&stream);
        Ok(stream)
    }

    /// What is put on the legacy default stream comes behind what all blocking streams of its device have by then, and
    /// before what they are given later.
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

    /// `flags` may say that it keeps no time.
    pub fn new_event(&self, device: i32, flags: u32) -> usize {
        let number = handle();
        lock(&self.events).insert(number, Event::new(device, flags & UNTIMED == 0));
        number
    }

    pub fn destroy_event(&self, event: usize) -> Outcome {
        lock(&self.events).remove(&event).map(drop).ok_or(code::INVALID_HANDLE)
    }

    pub fn event(&self, event: usize) -> Outcome<Event> {
        lock(&self.events).get(&event).cloned().ok_or(code::INVALID_HANDLE)
    }

    pub fn record(&self, event: usize, stream: &Stream) -> Outcome {
        let event = self.event(event)?;
        if event.device != stream.device {
            return Err(code::INVALID_HANDLE);
        }
        stream.record(event.record());
        Ok(())
    }

    /// Holds a stream back until an event, of whatever device, has passed.
    pub fn wait(&self, stream: &Stream, event: usize) -> Outcome {
        let recording = self.event(event)?.latest();
        stream.push(move || recording.wait());
        Ok(())
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

    /// Registers of a function, and bytes of local memory: interpreters have as many of the one as it
    /// takes, and no need of the other.
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
