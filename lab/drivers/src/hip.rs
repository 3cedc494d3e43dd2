//! `libamdhip64`'s functions. An image is a code object. Its metadata says how its kernels' arguments are
//! laid out and how wide their waves are; the interpreter of `lab/amd` runs its instructions.
//!
//! `BOWSTRING_AMD=1` in the environment changes nothing. With any other number, waves and lanes run in an
//! order drawn from it, and unordered accesses to the same memory are errors.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{Arc, LazyLock, Mutex};

use bowstring_amdi::{CodeObject, Launch, Program, Target};

use crate::calls::{LAST_ERROR, call, call_anyway, give, text};
use crate::cuda::exports;
use crate::image::Image;
use crate::machine::{DEVICES, Machine};
use crate::memory::{Memory, MemoryKind};
use crate::streams::{Callback, HostFunction};
use crate::{Code, Outcome, code, lock, profile};

static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::default);
/// Threads of a block.
const BLOCK: u32 = 256;
/// The names of the devices, repeated for higher numbers. The library has no kernels for the fourth.
const NAMES: [&str; 8] = [
    "gfx90a:sramecc+:xnack-",
    "gfx1100",
    "gfx942:sramecc+:xnack-",
    "gfx906",
    "gfx1030",
    "gfx1201",
    "gfx950:sramecc+:xnack-",
    "gfx1100",
];
/// The size of a device's properties, and the place of its architecture's name in them.
const PROPERTIES: usize = 1472;
const NAME_AT: usize = 1160;
/// The place of a code object's version in its ELF header.
const ABI_AT: usize = 8;

thread_local! {
    static CURRENT: Cell<i32> = const { Cell::new(0) };
}

pub fn machine() -> &'static Machine {
    &MACHINE
}

fn current() -> i32 {
    CURRENT.get()
}

/// Fails if this thread may not make the call now.
fn permitted(call: &str) -> Outcome {
    MACHINE.permits(call, Some(current()))
}

/// Fails if the current device can no longer be used.
fn lost() -> Outcome {
    MACHINE.lost(current())
}

fn known(device: i32) -> Outcome<i32> {
    if (0..DEVICES).contains(&device) { Ok(device) } else { Err(code::INVALID_DEVICE) }
}

/// The name of a device.
fn name(device: i32) -> &'static str {
    profile::gpu().unwrap_or(NAMES[device as usize % NAMES.len()])
}

/// The lanes of a device's waves, as the list of architectures has them; 64 if it lacks the device.
fn lanes(device: i32) -> u32 {
    let own = name(device).split(':').next().unwrap_or_default();
    let rows = include_str!("../../../ptx/architectures").lines().filter(|row| !row.starts_with('#'));
    let mut rows = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let row = rows.find(|row| row[3].split_whitespace().any(|gpu| gpu == own));
    row.map_or(64, |row| row[1].parse().expect("a number of lanes"))
}

/// The seed of the order of waves and lanes: see the head of this file.
static SEED: LazyLock<Option<u64>> = LazyLock::new(|| {
    let seed = std::env::var("BOWSTRING_AMD").ok()?.parse().expect("BOWSTRING_AMD is a number");
    (seed != 1).then_some(seed)
});

/// A code object, for a device with waves of the width that it needs. Kernels are decoded when they first
/// run.
struct Loaded {
    object: CodeObject,
    target: Target,
    programs: Mutex<HashMap<String, Arc<Program>>>,
}

impl Loaded {
    fn program(&self, entry: &str) -> Result<Arc<Program>, String> {
        let mut programs = lock(&self.programs);
        if let Some(known) = programs.get(entry) {
            return Ok(known.clone());
        }
        let decoded = Program::decode(&self.object.kernels[entry], self.target);
        let program = Arc::new(decoded.map_err(|error| error.to_string())?);
        programs.insert(entry.to_owned(), program.clone());
        Ok(program)
    }
}

impl Image for Loaded {
    fn words(&self, entry: &str) -> Option<usize> {
        self.object.kernels.get(entry).map(|kernel| kernel.arguments.len())
    }

    fn run(&self, entry: &str, words: &[u64], blocks: u32, memory: &mut Memory) -> Result<(), String> {
        let arguments = self.object.kernels[entry].laid_out(words)?;
        let (program, any_order) = (self.program(entry)?, SEED.is_some());
        let launch = Launch {
            program: &program,
            arguments: &arguments,
            blocks,
            block_size: BLOCK,
            seed: SEED.unwrap_or(1),
            any_order,
            races: any_order,
        };
        let mut memory = memory;
        launch.run(&mut memory).map(drop).map_err(|error| error.to_string())
    }
}

/// Reads a code object as an image, once in a process.
fn read(image: &[u8]) -> Outcome<Arc<Loaded>> {
    static READ: LazyLock<Mutex<HashMap<Vec<u8>, Arc<Loaded>>>> = LazyLock::new(Mutex::default);
    let mut known = lock(&READ);
    if let Some(known) = known.get(image) {
        return Ok(known.clone());
    }
    let object = CodeObject::read(image).ok_or(code::INVALID_IMAGE)?;
    let target = Target::named(&object.target).ok_or(code::NO_BINARY)?;
    let loaded = Arc::new(Loaded { object, target, programs: Mutex::default() });
    known.insert(image.to_vec(), loaded.clone());
    Ok(loaded)
}

/// Copies the code object that starts here, up to the end of its table of sections, which comes last.
///
/// # Safety
///
/// `image` must point to an ELF header, followed by the file that it describes.
unsafe fn whole(image: *const u8) -> Vec<u8> {
    // SAFETY: the caller's promise.
    unsafe {
        let header = std::slice::from_raw_parts(image, 64);
        if !header.starts_with(b"\x7fELF") {
            return header.to_vec();
        }
        let number = |at: usize, bytes: usize| {
            header[at..at + bytes].iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte))
        };
        let end = number(40, 8) + number(58, 2) * number(60, 2);
        std::slice::from_raw_parts(image, end).to_vec()
    }
}

/// The code of this thread's last call that failed. Asking forgets it; successful calls do not, since ROCm 7.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
extern "C" fn hipGetLastError() -> Code {
    LAST_ERROR.take()
}

exports! {
    hipInit(flags: u32) call {
        if flags == 0 { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
    hipDriverGetVersion(version: *mut i32) call {
        unsafe { give(version, profile::hip().version) }
    }
    hipRuntimeGetVersion(version: *mut i32) call {
        unsafe { give(version, profile::hip().version) }
    }
    hipGetDeviceCount(count: *mut i32) call {
        unsafe { give(count, DEVICES) }
    }
    hipDeviceGet(device: *mut i32, ordinal: i32) call {
        unsafe { give(device, known(ordinal)?) }
    }
    hipDeviceGetName(name: *mut c_char, len: i32, device: i32) call {
        known(device)?;
        for (i, byte) in b"stand-in\0".iter().take(len.max(0) as usize).enumerate() {
            unsafe { give(name.add(i), *byte as c_char)? };
        }
        Ok(())
    }
    hipDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) call {
        let known = known(device)?;
        unsafe { give(value, match attribute {
            87 => lanes(known) as i32,
            88 => i32::from(profile::pools()),
            _ => return Err(code::INVALID_VALUE),
        }) }
    }
    hipGetDevicePropertiesR0600(properties: *mut u8, device: i32) call {
        let name = name(known(device)?);
        unsafe {
            properties.write_bytes(0, PROPERTIES);
            properties.add(NAME_AT).copy_from_nonoverlapping(name.as_ptr(), name.len());
        }
        Ok(())
    }
    hipGetDevice(device: *mut i32) call {
        unsafe { give(device, current()) }
    }
    hipSetDevice(device: i32) call {
        CURRENT.set(known(device)?);
        Ok(())
    }
    hipMemGetInfo(free: *mut usize, all: *mut usize) call {
        let bytes = MACHINE.capacity(current());
        unsafe { give(free, bytes).and(give(all, bytes)) }
    }
    hipDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) call {
        unsafe { give(least, 1).and(give(greatest, -1)) }
    }
    hipMallocAsync(address: *mut usize, bytes: usize, stream: usize) call {
        MACHINE.stream(stream, current())?;
        if !profile::pools() {
            return Err(code::NOT_SUPPORTED);
        }
        let late = profile::hip().late;
        unsafe { give(address, MACHINE.alloc_ordered(bytes, current(), stream, late)?) }
    }
    hipFreeAsync(address: usize, stream: usize) call_anyway {
        MACHINE.free_ordered(stream, current(), address)
    }
    hipMalloc(address: *mut usize, bytes: usize) call {
        unsafe { give(address, MACHINE.alloc(bytes, MemoryKind::Device, current())?) }
    }
    hipMallocManaged(address: *mut usize, bytes: usize, _flags: u32) call {
        unsafe { give(address, MACHINE.alloc(bytes, MemoryKind::Managed, current())?) }
    }
    hipFree(address: usize) call_anyway {
        MACHINE.free(address, &[MemoryKind::Device, MemoryKind::Managed])
    }
    hipHostMalloc(pointer: *mut usize, bytes: usize, _flags: u32) call {
        unsafe { give(pointer, MACHINE.alloc(bytes, MemoryKind::Pinned, current())?) }
    }
    hipHostFree(pointer: usize) call_anyway {
        MACHINE.free(pointer, &[MemoryKind::Pinned])
    }
    hipMemcpyHtoDAsync(to: usize, from: usize, bytes: usize, stream: usize) call {
        MACHINE.copy_on(&MACHINE.stream(stream, current())?, "hipMemcpyHtoDAsync", to, from, bytes);
        Ok(())
    }
    hipMemcpyDtoHAsync(to: usize, from: usize, bytes: usize, stream: usize) call {
        MACHINE.copy_on(&MACHINE.stream(stream, current())?, "hipMemcpyDtoHAsync", to, from, bytes);
        Ok(())
    }
    hipMemcpyDtoDAsync(to: usize, from: usize, bytes: usize, stream: usize) call {
        MACHINE.copy_on(&MACHINE.stream(stream, current())?, "hipMemcpyDtoDAsync", to, from, bytes);
        Ok(())
    }
    hipMemcpyPeerAsync(to: usize, own: i32, from: usize, other: i32, bytes: usize, stream: usize) call {
        let memory = lock(&MACHINE.memory);
        let wrong = |(address, device)| memory.owner(address).is_none_or(|owner| owner.device != device);
        if [(to, own), (from, other)].into_iter().any(wrong) {
            return Err(code::INVALID_VALUE);
        }
        drop(memory);
        MACHINE.copy_on(&MACHINE.stream(stream, current())?, "hipMemcpyPeerAsync", to, from, bytes);
        Ok(())
    }
    hipMemsetD8Async(to: usize, byte: u8, bytes: usize, stream: usize) call {
        MACHINE.fill_on(&MACHINE.stream(stream, current())?, to, byte, bytes);
        Ok(())
    }
    hipStreamCreateWithPriority(stream: *mut usize, flags: u32, priority: i32) call {
        unsafe { give(stream, MACHINE.new_stream(current(), flags, priority)?) }
    }
    hipStreamGetPriority(stream: usize, priority: *mut i32) call {
        unsafe { give(priority, MACHINE.any_stream(stream, current())?.priority) }
    }
    hipStreamDestroy(stream: usize) call_anyway {
        // The real one waits for the stream's work.
        let _ = MACHINE.any_stream(stream, current())?.synchronise();
        MACHINE.destroy_stream(stream)
    }
    hipStreamGetDevice(stream: usize, device: *mut i32) call {
        unsafe { give(device, MACHINE.any_stream(stream, current())?.device) }
    }
    hipStreamBeginCapture(stream: usize, mode: i32) call {
        MACHINE.begin_capture(stream, current(), mode)
    }
    hipStreamEndCapture(stream: usize, graph: *mut usize) call {
        MACHINE.end_capture(stream)?;
        unsafe { give(graph, 0) }
    }
    hipStreamIsCapturing(stream: usize, status: *mut i32) call {
        unsafe { give(status, MACHINE.captured(stream, current())?) }
    }
    hipThreadExchangeStreamCaptureMode(mode: *mut i32) call {
        unsafe { MACHINE.exchange_mode(mode) }
    }
    hipStreamSynchronize(stream: usize) call_anyway {
        MACHINE.any_stream(stream, current())?.synchronise()
    }
    hipStreamWaitEvent(stream: usize, event: usize, _flags: u32) call {
        MACHINE.wait(stream, current(), event)
    }
    hipEventCreateWithFlags(event: *mut usize, flags: u32) call {
        unsafe { give(event, MACHINE.new_event(current(), flags)) }
    }
    hipEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) call {
        unsafe { give(milliseconds, MACHINE.event(end)?.since(&MACHINE.event(start)?)?) }
    }
    hipEventDestroy(event: usize) call_anyway {
        MACHINE.destroy_event(event)
    }
    hipEventRecord(event: usize, stream: usize) call {
        MACHINE.record(event, stream, current())
    }
    hipEventQuery(event: usize) call {
        MACHINE.look_at_its_stream(event)?;
        MACHINE.recorded(event)?.query()
    }
    hipEventSynchronize(event: usize) call_anyway {
        MACHINE.look_at_its_stream(event)?;
        MACHINE.recorded(event)?.latest().wait()
    }
    hipLaunchHostFunc(stream: usize, function: HostFunction, data: usize) call {
        unsafe { MACHINE.stream(stream, current())?.host_function(function, data) };
        Ok(())
    }
    hipStreamAddCallback(stream: usize, function: Callback, data: usize, flags: u32) call {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        unsafe { MACHINE.stream(stream, current())?.callback(function, stream, data) };
        Ok(())
    }
    hipModuleLoadDataEx(
        module: *mut usize, image: *const u8, _count: u32, _options: usize, _values: usize
    ) call {
        let image = unsafe { whole(image) };
        let loaded = read(&image)?;
        let fits = profile::hip().takes(image[ABI_AT], loaded.target.name, name(current()));
        if !fits || loaded.object.kernels.values().any(|kernel| kernel.width != lanes(current())) {
            return Err(code::NO_BINARY);
        }
        unsafe { give(module, MACHINE.load(current(), loaded)) }
    }
    hipModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) call {
        let name = unsafe { text(name) }.ok_or(code::INVALID_VALUE)?;
        unsafe { give(function, MACHINE.function(module, &name)?) }
    }
    hipFuncGetAttribute(value: *mut i32, attribute: i32, function: usize) call {
        unsafe { give(value, MACHINE.attribute(function, attribute)?) }
    }
    hipModuleLaunchKernel(
        function: usize, grid: u32, grid_y: u32, grid_z: u32, block: u32, block_y: u32, block_z: u32,
        shared: u32, stream: usize, words: *const *const u64, extra: usize
    ) call {
        if [grid_y, grid_z, block, block_y, block_z, shared] != [1, 1, BLOCK, 1, 1, 0] || grid == 0 || extra != 0 {
            return Err(code::INVALID_VALUE);
        }
        let read = |count| (0..count).map(|i| unsafe { **words.add(i) }).collect();
        MACHINE.launch(function, grid, &MACHINE.stream(stream, current())?, read)
    }
    hipPointerGetAttribute(value: *mut i32, attribute: i32, address: usize) call {
        let memory = lock(&MACHINE.memory);
        let block = memory.block(address).ok_or(code::INVALID_VALUE)?;
        unsafe { match attribute {
            2 => give(value, match block.owner.kind {
                MemoryKind::Pinned => 1,
                MemoryKind::Device => 2,
                MemoryKind::Managed => 3,
            }),
            8 => give(value, i32::from(block.owner.kind == MemoryKind::Managed)),
            9 => give(value, block.owner.device),
            _ => Err(code::INVALID_VALUE),
        } }
    }
}
