//! L8: what `bowstring-doctor` needs of the library, and no program does. **Not part of the public API**:
//! hidden from the documentation, and anything here may change in any release.
//!
//! The doctor asks why a device cannot be used, loads kernels without running them, and times single calls of
//! a runtime. No operation offers that, and an interface that promised it would bind the drivers.

use std::mem;
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use crate::device::shown::*;
pub use crate::rules::seeds::{Hashes, set as set_hashes};

use crate::cpu::VectorLevel;
use crate::device::Event;
use crate::pass::{ATOMICS, Direction, Pass};
use crate::{Device, Result, Stream};

/// The widest vectors of this machine's processor that the library uses.
pub fn vectors() -> String {
    format!("{:?}", VectorLevel::widest())
}

/// The architecture whose images a device runs; `None` on the CPU and on an emulated GPU.
pub fn architecture(device: &Device) -> Option<&'static str> {
    device.as_gpu()?.driver().architecture()
}

/// Bytes of a GPU's memory: free, and total. `None` if it does not say so.
pub fn memory(device: &Device) -> Option<(usize, usize)> {
    device.as_gpu()?.driver().memory().ok().flatten()
}

/// Loads a kernel. Returns what it takes, if the runtime reports that; one that does not can still run it.
pub fn load(device: &Device, family: &'static str, entry: &'static str) -> Result<Option<Takes>> {
    let gpu = device.gpu_or("load")?;
    gpu.entry(family, entry)?;
    Ok(gpu.takes(family, entry).ok().flatten())
}

/// Begins an operation that does nothing, and waits until it has passed.
pub fn nothing(stream: &Stream) -> Result<()> {
    Pass::begin("nothing", stream)?.finish()?;
    stream.synchronise()
}

/// How long the host takes to see what a kernel stores to its memory. `None` if it does not see it.
pub fn store_to_host(stream: &Stream) -> Result<Option<Duration>> {
    Pass::begin("store", stream)?.store_to_host()
}

/// Puts atomics of so many waves on the stream, all on the same words, and returns their number.
pub fn contend(stream: &Stream, waves: usize) -> Result<usize> {
    let width = stream.device().gpu_or("contend")?.driver().width() as usize;
    Pass::begin("atomics", stream)?.contend(waves)?;
    Ok(waves * width * ATOMICS)
}

/// How long the host takes to hear from a runtime's thread that an event has passed, with no work before it.
/// `None` if the stream is the CPU's.
pub fn call_back(stream: &Stream) -> Result<Option<Duration>> {
    let Some((gpu, queue)) = stream.as_gpu() else { return Ok(None) };
    let (tell, told) = mpsc::channel();
    let (start, event) = (Instant::now(), Event::new(gpu.core(), queue.number())?);
    event.record(queue.owned())?;
    queue.call_behind(&event, Box::new(move || _ = tell.send(start.elapsed())))?;
    Ok(told.recv().ok())
}

/// Work that can be repeated.
pub type Work = Box<dyn FnMut() -> Result<()>>;

/// Copies between the host and a device.
pub struct Copies {
    /// How long the host's pinned memory took to allocate.
    pub pinning: Duration,
    /// Each waits for its copy: from pinned memory, to it, from pageable memory, to it.
    pub all: [Work; 4],
}

/// Copies of so many bytes between the host and a stream's device.
pub fn copies(stream: &Stream, bytes: usize) -> Result<Copies> {
    let mut pass = Pass::begin("copy", stream)?;
    let start = Instant::now();
    let block = pass.stage(bytes)?;
    let pinning = start.elapsed();
    let there = pass.zeroed(bytes)?;
    pass.finish()?;
    let up = {
        let stream = stream.clone();
        move || {
            let mut pass = Pass::begin("copy", &stream)?;
            let block = pass.stage(bytes)?;
            let _there = pass.upload_staged(block, bytes)?;
            pass.finish()?;
            stream.synchronise()
        }
    };
    let down = {
        let (stream, there) = (stream.clone(), there.clone());
        move || {
            let mut pass = Pass::begin("copy", &stream)?;
            pass.reuse(&there);
            let copied = pass.copy_out(there.address(), bytes, &block, 0).and_then(|()| pass.finish());
            // Without this wait, the block would be reused while a copy to it may still be running.
            stream.synchronise().and(copied)
        }
    };
    let pageable = |direction| -> Work {
        let (stream, there, mut host) = (stream.clone(), there.clone(), vec![0; bytes]);
        Box::new(move || {
            let pass = Pass::begin("copy", &stream)?;
            host = pass.copy_pageable(mem::take(&mut host), &there, direction)?;
            Ok(())
        })
    };
    let all: [Work; 4] = [Box::new(up), Box::new(down), pageable(Direction::Up), pageable(Direction::Down)];
    Ok(Copies { pinning, all })
}

/// A plain copy by the runtime between two buffers of the device, put on the stream.
pub fn copy_within(stream: &Stream, bytes: usize) -> Result<Work> {
    let mut pass = Pass::begin("copy", stream)?;
    let (from, to) = (pass.zeroed(bytes)?, pass.output(bytes)?);
    pass.finish()?;
    let stream = stream.clone();
    Ok(Box::new(move || {
        let mut pass = Pass::begin("copy", &stream)?;
        pass.reuse(&from);
        pass.reuse(&to);
        pass.copy_from(&from, pass.place(), &to)?;
        pass.finish()
    }))
}
