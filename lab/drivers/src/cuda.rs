//! `libcuda`'s functions. An image is PTX text, and what runs is that text.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, LazyLock, Mutex};

use bowstring_ptxi::Launch;

use crate::calls::{call, call_anyway, give, text};
use crate::image::Image;
use crate::machine::{DEVICES, Machine};
use crate::memory::{Memory, MemoryKind};
use crate::streams::{Callback, HostFunction};
use crate::{Code, Outcome, code, lock, profile};

static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::default);
/// The handle of a device's primary context is this plus the device's number.
const CONTEXT: usize = 0xC0_0000;
/// A pool's attribute: the bytes that it keeps when the host waits.
const RELEASE_THRESHOLD: i32 = 4;
/// The text is wrong in ways that only the log says.
const LOG: i32 = 5;
const LOG_BYTES: i32 = 6;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
}

pub fn machine() -> &'static Machine {
    &MACHINE
}

/// The device whose context is current.
fn current() -> Outcome<i32> {
    device_of(CURRENT.get())
}

/// Fails if this thread may not make the call now.
fn permitted(call: &str) -> Outcome {
    MACHINE.permits(call, current().ok())
}

/// Fails if the current device can no longer be used.
fn lost() -> Outcome {
    current().map_or(Ok(()), |device| MACHINE.lost(device))
}

fn device_of(context: usize) -> Outcome<i32> {
    let number = context.checked_sub(CONTEXT).and_then(|number| i32::try_from(number).ok());
    number.filter(|number| *number < DEVICES).ok_or(code::INVALID_CONTEXT)
}

fn known(device: i32) -> Outcome<i32> {
    if (0..DEVICES).contains(&device) { Ok(device) } else { Err(code::INVALID_DEVICE) }
}

/// Whether a device allocates memory in stream order. Some devices do not, whatever the profile.
fn pools(device: i32) -> bool {
    device % 8 != 7 && profile::pools()
}

/// The part of a pool's description that says something; the rest is zero.
#[repr(C)]
struct PoolProperties {
    allocation: i32,
    handles: i32,
    location: i32,
    device: i32,
    rest: [u64; 9],
}

/// A parsed PTX text.
struct Ptx(bowstring_ptxi::Module);

impl Image for Ptx {
    fn words(&self, entry: &str) -> Option<usize> {
        self.0.params(entry).map(|bytes| bytes / 8)
    }

    fn run(&self, entry: &str, words: &[u64], blocks: u32, memory: &mut Memory) -> Result<(), String> {
        let params: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (seed, races) = (None, false);
        let launch = Launch { module: &self.0, entry, params: &params, blocks, block_size: 256, seed, races };
        let mut memory = memory;
        launch.run(&mut memory).map(drop).map_err(|error| error.to_string())
    }
}

/// Parses a text as an image, once in a process.
fn parsed(text: &str) -> Result<Arc<Ptx>, String> {
    static PARSED: LazyLock<Mutex<HashMap<String, Arc<Ptx>>>> = LazyLock::new(Mutex::default);
    let mut parsed = lock(&PARSED);
    if let Some(known) = parsed.get(text) {
        return Ok(known.clone());
    }
    let module = bowstring_ptxi::Module::parse(text).map_err(|error| error.to_string())?;
    // The interpreter accepts a text that ends early; a real compiler needs the last brace too.
    if text.matches('{').count() != text.matches('}').count() {
        return Err("the text ends in the middle".into());
    }
    let module = Arc::new(Ptx(module));
    parsed.insert(text.to_owned(), module.clone());
    Ok(module)
}

// SAFETY of every block: the caller promises what it promises to the real library.
macro_rules! exports {
    ($($name:ident($($argument:ident: $type:ty),*) $how:ident $body:block)*) => { $(
        #[unsafe(no_mangle)]
        #[allow(clippy::missing_safety_doc, non_snake_case, clippy::undocumented_unsafe_blocks)]
        unsafe extern "C" fn $name($($argument: $type),*) -> Code {
            $how(stringify!($name), || permitted(stringify!($name)), lost, || $body)
        }
    )* };
}
pub(crate) use exports;

exports! {
    cuInit(flags: u32) call {
        if flags == 0 { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
    cuDriverGetVersion(version: *mut i32) call {
        unsafe { give(version, profile::cuda().version) }
    }
    cuDeviceGetCount(count: *mut i32) call {
        unsafe { give(count, DEVICES) }
    }
    cuDeviceGet(device: *mut i32, ordinal: i32) call {
        unsafe { give(device, known(ordinal)?) }
    }
    cuDeviceGetName(name: *mut c_char, len: i32, device: i32) call {
        known(device)?;
        for (i, byte) in b"stand-in\0".iter().take(len.max(0) as usize).enumerate() {
            unsafe { give(name.add(i), *byte as c_char)? };
        }
        Ok(())
    }
    cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) call {
        let known = known(device)?;
        unsafe { give(value, match attribute {
            // The last device is older than any that has images.
            75 => if known == 99_999 { 6 } else { 7 },
            76 => if known == 99_999 { 1 } else { 5 },
            10 => 32,
            // Kernels reach pinned memory, at its address on the host.
            19 | 41 => 1,
            115 => i32::from(pools(known)),
            _ => return Err(code::INVALID_VALUE),
        }) }
    }
    cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) call {
        unsafe { give(context, CONTEXT + known(device)? as usize) }
    }
    cuCtxGetCurrent(context: *mut usize) call {
        unsafe { give(context, CURRENT.get()) }
    }
    cuCtxSetCurrent(context: usize) call {
        if context != 0 {
            device_of(context)?;
        }
        CURRENT.set(context);
        Ok(())
    }
    cuMemGetInfo_v2(free: *mut usize, all: *mut usize) call {
        let bytes = MACHINE.capacity(current()?);
        unsafe { give(free, bytes).and(give(all, bytes)) }
    }
    cuCtxGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) call {
        current()?;
        unsafe { give(least, 0).and(give(greatest, -2)) }
    }
    cuMemPoolCreate(pool: *mut usize, properties: *const PoolProperties) call {
        let said = unsafe { properties.as_ref() }.ok_or(code::INVALID_VALUE)?;
        let device = known(said.device)?;
        if [said.allocation, said.handles, said.location] != [1, 0, 1] || said.rest != [0; 9] {
            return Err(code::INVALID_VALUE);
        }
        if !pools(device) {
            return Err(code::NOT_SUPPORTED);
        }
        unsafe { give(pool, MACHINE.pools.create(device)) }
    }
    cuMemPoolSetAttribute(pool: usize, attribute: i32, value: *const u64) call {
        let value = unsafe { value.as_ref() }.filter(|_| attribute == RELEASE_THRESHOLD);
        MACHINE.pools.set_threshold(pool, *value.ok_or(code::INVALID_VALUE)?)
    }
    cuMemPoolTrimTo(pool: usize, bytes: usize) call {
        MACHINE.pools.trim(pool, bytes)
    }
    cuMemAllocFromPoolAsync(address: *mut usize, bytes: usize, pool: usize, stream: usize) call {
        if MACHINE.stream(stream, current()?)?.device != MACHINE.pools.device(pool)? {
            return Err(code::INVALID_VALUE);
        }
        unsafe { give(address, MACHINE.alloc_from(pool, bytes)?) }
    }
    cuMemFreeAsync(address: usize, stream: usize) call_anyway {
        MACHINE.free_on(&MACHINE.stream(stream, current()?)?, address)
    }
    cuMemAlloc_v2(address: *mut usize, bytes: usize) call {
        unsafe { give(address, MACHINE.alloc(bytes, MemoryKind::Device, current()?)?) }
    }
    cuMemAllocManaged(address: *mut usize, bytes: usize, _flags: u32) call {
        unsafe { give(address, MACHINE.alloc(bytes, MemoryKind::Managed, current()?)?) }
    }
    cuMemFree_v2(address: usize) call_anyway {
        current()?;
        MACHINE.free(address, &[MemoryKind::Device, MemoryKind::Managed])
    }
    cuMemHostAlloc(pointer: *mut usize, bytes: usize, _flags: u32) call {
        unsafe { give(pointer, MACHINE.alloc(bytes, MemoryKind::Pinned, current()?)?) }
    }
    cuMemFreeHost(pointer: usize) call_anyway {
        current()?;
        MACHINE.free(pointer, &[MemoryKind::Pinned])
    }
    cuMemcpyHtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: usize) call {
        MACHINE.copy_on(&MACHINE.stream(stream, current()?)?, "cuMemcpyHtoDAsync", to, from, bytes);
        Ok(())
    }
    cuMemcpyDtoHAsync_v2(to: usize, from: usize, bytes: usize, stream: usize) call {
        MACHINE.copy_on(&MACHINE.stream(stream, current()?)?, "cuMemcpyDtoHAsync", to, from, bytes);
        Ok(())
    }
    cuMemcpyDtoDAsync_v2(to: usize, from: usize, bytes: usize, stream: usize) call {
        MACHINE.copy_on(&MACHINE.stream(stream, current()?)?, "cuMemcpyDtoDAsync", to, from, bytes);
        Ok(())
    }
    cuMemcpyPeerAsync(to: usize, own: usize, from: usize, other: usize, bytes: usize, stream: usize) call {
        let devices = [(to, device_of(own)?), (from, device_of(other)?)];
        let memory = lock(&MACHINE.memory);
        let wrong = |(address, device)| memory.owner(address).is_none_or(|owner| owner.device != device);
        if devices.into_iter().any(wrong) {
            return Err(code::INVALID_VALUE);
        }
        drop(memory);
        MACHINE.copy_on(&MACHINE.stream(stream, current()?)?, "cuMemcpyPeerAsync", to, from, bytes);
        Ok(())
    }
    cuMemsetD8Async(to: usize, byte: u8, bytes: usize, stream: usize) call {
        MACHINE.fill_on(&MACHINE.stream(stream, current()?)?, to, byte, bytes);
        Ok(())
    }
    cuStreamCreateWithPriority(stream: *mut usize, flags: u32, priority: i32) call {
        unsafe { give(stream, MACHINE.new_stream(current()?, flags, priority)?) }
    }
    cuStreamGetPriority(stream: usize, priority: *mut i32) call {
        unsafe { give(priority, MACHINE.any_stream(stream, current()?)?.priority) }
    }
    cuStreamDestroy_v2(stream: usize) call_anyway {
        MACHINE.destroy_stream(stream)
    }
    cuStreamGetCtx(stream: usize, context: *mut usize) call {
        unsafe { give(context, CONTEXT + MACHINE.any_stream(stream, current()?)?.device as usize) }
    }
    cuStreamBeginCapture_v2(stream: usize, mode: i32) call {
        MACHINE.begin_capture(stream, current()?, mode)
    }
    cuStreamEndCapture(stream: usize, graph: *mut usize) call {
        MACHINE.end_capture(stream)?;
        unsafe { give(graph, 0) }
    }
    cuStreamIsCapturing(stream: usize, status: *mut i32) call {
        unsafe { give(status, MACHINE.captured(stream, current()?)?) }
    }
    cuThreadExchangeStreamCaptureMode(mode: *mut i32) call {
        unsafe { MACHINE.exchange_mode(mode) }
    }
    cuStreamSynchronize(stream: usize) call_anyway {
        let stream = MACHINE.stream(stream, current()?)?;
        let passed = stream.synchronise();
        MACHINE.pools.waited(stream.device);
        passed
    }
    cuStreamWaitEvent(stream: usize, event: usize, _flags: u32) call {
        MACHINE.wait(stream, current()?, event)
    }
    cuEventCreate(event: *mut usize, flags: u32) call {
        unsafe { give(event, MACHINE.new_event(current()?, flags)) }
    }
    cuEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) call {
        unsafe { give(milliseconds, MACHINE.event(end)?.since(&MACHINE.event(start)?)?) }
    }
    cuEventDestroy_v2(event: usize) call_anyway {
        MACHINE.destroy_event(event)
    }
    cuEventRecord(event: usize, stream: usize) call {
        MACHINE.record(event, stream, current()?)
    }
    cuEventQuery(event: usize) call {
        MACHINE.recorded(event)?.query()
    }
    cuEventSynchronize(event: usize) call_anyway {
        let passed = MACHINE.recorded(event)?.latest().wait();
        MACHINE.pools.waited(current()?);
        passed
    }
    cuLaunchHostFunc(stream: usize, function: HostFunction, data: usize) call {
        unsafe { MACHINE.stream(stream, current()?)?.host_function(function, data) };
        Ok(())
    }
    cuStreamAddCallback(stream: usize, function: Callback, data: usize, flags: u32) call {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        unsafe { MACHINE.stream(stream, current()?)?.callback(function, stream, data) };
        Ok(())
    }
    cuModuleLoadDataEx(
        module: *mut usize, image: *const c_char, count: u32, options: *const i32, values: *const usize
    ) call {
        let device = current()?;
        let ptx = unsafe { CStr::from_ptr(image) }.to_str().map_err(|_| code::INVALID_IMAGE)?;
        let (said, code) = match parsed(ptx) {
            _ if !profile::cuda().takes(ptx) => ("this .version is not supported".to_owned(), code::PTX_TOO_NEW),
            Ok(image) => return unsafe { give(module, MACHINE.load(device, image)) },
            Err(said) => (said, code::INVALID_PTX),
        };
        let option = |which| {
            (0..count as usize).find_map(|i| unsafe {
                (*options.add(i) == which).then(|| *values.add(i))
            })
        };
        if let (Some(log), Some(bytes)) = (option(LOG), option(LOG_BYTES)) {
            let log: *mut u8 = std::ptr::with_exposed_provenance_mut(log);
            let end = said.len().min(bytes.saturating_sub(1));
            for (i, byte) in said.as_bytes()[..end].iter().chain(&[0]).enumerate().take(bytes) {
                unsafe { log.add(i).write(*byte) };
            }
        }
        Err(code)
    }
    cuModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) call {
        current()?;
        let name = unsafe { text(name) }.ok_or(code::INVALID_VALUE)?;
        unsafe { give(function, MACHINE.function(module, &name)?) }
    }
    cuFuncGetAttribute(value: *mut i32, attribute: i32, function: usize) call {
        current()?;
        unsafe { give(value, MACHINE.attribute(function, attribute)?) }
    }
    cuLaunchKernel(
        function: usize, grid: u32, grid_y: u32, grid_z: u32, block: u32, block_y: u32, block_z: u32,
        shared: u32, stream: usize, words: *const *const u64, extra: usize
    ) call {
        if [grid_y, grid_z, block, block_y, block_z, shared] != [1, 1, 256, 1, 1, 0] || grid == 0 || extra != 0 {
            return Err(code::INVALID_VALUE);
        }
        let read = |count| (0..count).map(|i| unsafe { **words.add(i) }).collect();
        MACHINE.launch(function, grid, &MACHINE.stream(stream, current()?)?, read)
    }
    cuPointerGetAttribute(value: *mut i32, attribute: i32, address: usize) call {
        current()?;
        let memory = lock(&MACHINE.memory);
        let block = memory.block(address).ok_or(code::INVALID_VALUE)?;
        unsafe { match attribute {
            2 => give(value, if block.owner.kind == MemoryKind::Pinned { 1 } else { 2 }),
            // CUDA writes one byte here.
            8 => give(value.cast::<bool>(), block.owner.kind == MemoryKind::Managed),
            9 => give(value, block.owner.device),
            _ => Err(code::INVALID_VALUE),
        } }
    }
}
