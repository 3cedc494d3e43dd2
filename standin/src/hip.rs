//! `libamdhip64`'s functions. An image is a code object: its metadata says how the arguments of its kernels are laid out
//! and how wide their waves are; what runs is the host build of the kernel with that name.

use std::cell::Cell;
use std::ffi::c_char;
use std::sync::{Arc, LazyLock};

use bowstring_kernels::every_entry;
use bowstring_kernels::target::{AnyEntry, BLOCK, Faults, Kind as Argument};

use crate::code_object::{CodeObject, Kernel};
use crate::control::{call, call_anyway, give, text};
use crate::cuda::exports;
use crate::machine::{DEVICES, Image, Machine};
use crate::memory::{Kind, Memory};
use crate::streams::{Callback, HostFunction};
use crate::{Code, Outcome, code, lock};

static MACHINE: LazyLock<Machine> = LazyLock::new(Machine::default);
/// What devices call themselves, and their waves' lanes: one after another, again and again.
const ARCHITECTURES: [(&str, u32); 4] =
    [("gfx90a:sramecc+:xnack-", 64), ("gfx1100", 32), ("gfx942:sramecc+:xnack-", 64), ("gfx906", 64)];
/// The size of a device's properties, and where its architecture's name is in them.
const PROPERTIES: usize = 1472;
const NAME_AT: usize = 1160;

thread_local! {
    static CURRENT: Cell<i32> = const { Cell::new(0) };
}

pub fn machine() -> &'static Machine {
    &MACHINE
}

fn current() -> i32 {
    CURRENT.get()
}

/// Whether what is current can no longer be used.
fn lost() -> Outcome {
    MACHINE.lost(current())
}

fn known(device: i32) -> Outcome<i32> {
    if (0..DEVICES).contains(&device) { Ok(device) } else { Err(code::INVALID_DEVICE) }
}

fn architecture(device: i32) -> (&'static str, u32) {
    ARCHITECTURES[device as usize % ARCHITECTURES.len()]
}

/// A code object, for a device whose waves are as wide as it says.
struct Loaded(CodeObject);

/// The architecture that stands for a family in a code object.
fn generic(name: &str) -> &str {
    match name {
        "gfx942" => "gfx9-4-generic",
        "gfx1100" => "gfx11-generic",
        other => other,
    }
}

fn host_build(name: &str) -> Option<&'static dyn AnyEntry> {
    every_entry().find(|entry| entry.name() == name)
}

/// The words at the places that the metadata gives them, or what is wrong with those.
pub fn unpacked(kernel: &Kernel, entry: &dyn AnyEntry, words: &[u64]) -> Result<Vec<u64>, String> {
    let (ours, theirs) = (entry.arguments(), &kernel.arguments);
    let mut block = vec![0u8; kernel.bytes];
    if ours.len() != theirs.len() || words.len() != theirs.len() {
        return Err(format!("{} arguments for {}", words.len(), theirs.len()));
    }
    for ((argument, ours), word) in theirs.iter().zip(ours).zip(words) {
        if argument.is_pointer == (ours.kind == Argument::Word) {
            return Err(format!("{} is a pointer on one side only", ours.name));
        }
        let place = block.get_mut(argument.at..argument.at + argument.bytes).ok_or("outside of the block")?;
        place.copy_from_slice(&word.to_le_bytes()[..argument.bytes]);
    }
    let word = |i: usize| block.get(i * 8..i * 8 + 8).map(|bytes| bytes.try_into().expect("8 bytes"));
    let words = (0..theirs.len()).map(|i| word(i).map(u64::from_le_bytes));
    words.collect::<Option<_>>().ok_or_else(|| "arguments that are not a word each".into())
}

impl Image for Loaded {
    fn words(&self, entry: &str) -> Option<usize> {
        self.0.kernels.get(entry).map(|kernel| kernel.arguments.len())
    }

    fn run(&self, entry: &str, words: &[u64], blocks: u32, memory: &mut Memory) -> Result<(), String> {
        let (kernel, host) = (&self.0.kernels[entry], host_build(entry).ok_or("there is no host build")?);
        let words = unpacked(kernel, host, words)?;
        let waves = u64::from(blocks) * u64::from(BLOCK / kernel.width);
        let (faults, extent) = (Faults::new(), |address| memory.extent(address as usize) as u64);
        // SAFETY: `extent` tells of live allocations, which are initialised and exposed; the lock that `memory` came from
        // keeps all other work away.
        unsafe { host.emulate_words(&words, &extent, kernel.width, 0..waves, &faults) };
        faults.first().map_or(Ok(()), |fault| Err(format!("{fault:?}")))
    }
}

/// How long a code object is that starts here: as far as its table of sections, which comes last.
///
/// # Safety
///
/// There must be an ELF file's header, and behind it what that says.
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

exports! {
    hipInit(flags: u32) call {
        if flags == 0 { Ok(()) } else { Err(code::INVALID_VALUE) }
    }
    hipDriverGetVersion(version: *mut i32) call {
        unsafe { give(version, 60_443_484) }
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
            87 => architecture(known).1 as i32,
            88 => 1,
            _ => return Err(code::INVALID_VALUE),
        }) }
    }
    hipGetDevicePropertiesR0600(properties: *mut u8, device: i32) call {
        let (name, _) = architecture(known(device)?);
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
    hipDeviceGetStreamPriorityRange(least: *mut i32, greatest: *mut i32) call {
        unsafe { give(least, 1).and(give(greatest, -1)) }
    }
    hipMallocAsync(address: *mut usize, bytes: usize, stream: usize) call {
        MACHINE.stream(stream, current())?;
        unsafe { give(address, MACHINE.alloc(bytes, Kind::Device, current())?) }
    }
    hipFreeAsync(address: usize, stream: usize) call_anyway {
        MACHINE.free_on(&MACHINE.stream(stream, current())?, address)
    }
    hipMalloc(address: *mut usize, bytes: usize) call {
        unsafe { give(address, MACHINE.alloc(bytes, Kind::Device, current())?) }
    }
    hipMallocManaged(address: *mut usize, bytes: usize, _flags: u32) call {
        unsafe { give(address, MACHINE.alloc(bytes, Kind::Managed, current())?) }
    }
    hipFree(address: usize) call_anyway {
        MACHINE.free(address, &[Kind::Device, Kind::Managed])
    }
    hipHostMalloc(pointer: *mut usize, bytes: usize, _flags: u32) call {
        unsafe { give(pointer, MACHINE.alloc(bytes, Kind::Pinned, current())?) }
    }
    hipHostFree(pointer: usize) call_anyway {
        MACHINE.free(pointer, &[Kind::Pinned])
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
        MACHINE.destroy_stream(stream)
    }
    hipStreamGetDevice(stream: usize, device: *mut i32) call {
        unsafe { give(device, MACHINE.any_stream(stream, current())?.device) }
    }
    hipStreamSynchronize(stream: usize) call_anyway {
        MACHINE.any_stream(stream, current())?.synchronise()
    }
    hipStreamWaitEvent(stream: usize, event: usize, _flags: u32) call {
        MACHINE.wait(&MACHINE.stream(stream, current())?, event)
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
        MACHINE.record(event, &MACHINE.stream(stream, current())?)
    }
    hipEventQuery(event: usize) call {
        MACHINE.event(event)?.query()
    }
    hipEventSynchronize(event: usize) call_anyway {
        MACHINE.event(event)?.latest().wait()
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
        let object = CodeObject::read(&unsafe { whole(image) }).ok_or(code::INVALID_IMAGE)?;
        let (name, width) = architecture(current());
        let name = name.split(':').next().unwrap_or_default();
        let fits = object.target == name || object.target == generic(name);
        if !fits || object.kernels.values().any(|kernel| kernel.width != width) {
            return Err(code::NO_BINARY);
        }
        unsafe { give(module, MACHINE.load(current(), Arc::new(Loaded(object)))) }
    }
    hipModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) call {
        let name = unsafe { text(name) }.ok_or(code::INVALID_VALUE)?;
        unsafe { give(function, MACHINE.function(module, &name)?) }
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
                Kind::Pinned => 1,
                Kind::Device => 2,
                Kind::Managed => 3,
            }),
            8 => give(value, i32::from(block.owner.kind == Kind::Managed)),
            9 => give(value, block.owner.device),
            _ => Err(code::INVALID_VALUE),
        } }
    }
}
