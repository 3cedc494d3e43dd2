//! A driver that breaks a promise on purpose, for tests that must notice. It passes all other calls on to the
//! emulator.

#![allow(unsafe_code)]

use std::any::Any;
use std::sync::Arc;

use bowstring_kernels::target::AnyEntry;

use super::super::driver::{Arguments, Driver, Launch, LoadFailure, Outcome, RawEntry, RawEvent, RawStream};
use super::super::lock;
use super::super::sync::Mutex;
use crate::array::Place;

/// The promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Streams do not wait for events.
    Waits,
    /// An event is recorded before the last launch that was put on the stream ahead of it.
    Records,
}

/// A driver that breaks one promise and passes all other calls on.
pub(crate) struct Faulty {
    inner: Arc<dyn Driver>,
    breaks: Break,
    held_back: Mutex<Vec<HeldBack>>,
}

impl Faulty {
    /// Wraps a driver, and breaks one of its promises.
    pub fn new(inner: Arc<dyn Driver>, breaks: Break) -> Faulty {
        Faulty { inner, breaks, held_back: Mutex::default() }
    }

    /// Makes the launches that were held back for a stream.
    unsafe fn catch_up(&self, stream: RawStream) -> Outcome {
        let late: Vec<HeldBack> =
            lock(&self.held_back).extract_if(.., |late| late.stream == stream).collect();
        late.iter().try_for_each(|late| {
            let launch =
                Launch { entry: late.entry, kernel: late.kernel, waves: late.waves, args: &late.args };
            // SAFETY: the caller's promise at the launch; the memory that it uses is kept until a later event
            // of the stream.
            unsafe { self.inner.launch(&launch, stream) }
        })
    }
}

/// A launch that is yet to reach the emulator.
struct HeldBack {
    stream: RawStream,
    entry: RawEntry,
    kernel: &'static dyn AnyEntry,
    waves: u64,
    args: Saved,
}

/// A launch's arguments, to be passed on once.
struct Saved {
    words: Vec<u64>,
    boxed: Mutex<Option<Box<dyn Any + Send>>>,
    extents: Vec<(u64, u64, bool)>,
}

impl Arguments for Saved {
    fn words(&self) -> Vec<u64> {
        self.words.clone()
    }

    fn boxed(&self) -> Box<dyn Any + Send> {
        lock(&self.boxed).take().expect("a launch is passed on once")
    }

    fn extents(&self) -> Vec<(u64, u64, bool)> {
        self.extents.clone()
    }
}

/// Functions that are passed on; those that put work on a stream catch up first.
macro_rules! passed_on {
    (
        $(fn $plain:ident() -> $said:ty;)*
        $(unsafe fn $name:ident($($argument:ident: $kind:ty),*) -> $gives:ty;)*
        on a stream: $(unsafe fn $queued:ident($($with:ident: $of:ty),*) -> $what:ty;)*
    ) => {
        $(fn $plain(&self) -> $said { self.inner.$plain() })*
        $(unsafe fn $name(&self, $($argument: $kind),*) -> $gives {
            // SAFETY: the caller's promise.
            unsafe { self.inner.$name($($argument),*) }
        })*
        $(unsafe fn $queued(&self, $($with: $of,)* stream: RawStream) -> $what {
            // SAFETY: the caller's promise.
            unsafe {
                self.catch_up(stream)?;
                self.inner.$queued($($with,)* stream)
            }
        })*
    };
}

impl Driver for Faulty {
    passed_on! {
        fn place() -> Place;
        fn width() -> u32;
        fn kernels_write_pinned() -> bool;
        fn name() -> String;
        unsafe fn alloc_pinned(bytes: usize) -> Outcome<*mut u8>;
        unsafe fn free_pinned(pointer: *mut u8) -> Outcome;
        unsafe fn stream(priority: i32) -> Outcome<RawStream>;
        unsafe fn destroy_stream(stream: RawStream) -> Outcome;
        unsafe fn check_stream(stream: RawStream) -> Outcome;
        unsafe fn event() -> Outcome<RawEvent>;
        unsafe fn destroy_event(event: RawEvent) -> Outcome;
        unsafe fn query(event: RawEvent) -> Outcome<bool>;
        unsafe fn synchronise_event(event: RawEvent) -> Outcome;
        unsafe fn entry(family: &'static str, name: &'static str) -> Result<RawEntry, LoadFailure>;
        unsafe fn classify(address: usize) -> Outcome<Option<Place>>;
        on a stream:
        unsafe fn alloc(bytes: usize) -> Outcome<usize>;
        unsafe fn free(address: usize) -> Outcome;
        unsafe fn copy_in(to: usize, from: *const u8, bytes: usize) -> Outcome;
        unsafe fn copy_out(to: *mut u8, from: usize, bytes: usize) -> Outcome;
        unsafe fn copy(to: usize, from: usize, device_id: i64, bytes: usize) -> Outcome;
        unsafe fn fill(to: usize, byte: u8, bytes: usize) -> Outcome;
        unsafe fn discard(address: usize, bytes: usize) -> Outcome;
        unsafe fn synchronise() -> Outcome;
    }

    unsafe fn record(&self, event: RawEvent, stream: RawStream) -> Outcome {
        // SAFETY: the caller's promise.
        unsafe { self.inner.record(event, stream).and_then(|()| self.catch_up(stream)) }
    }

    unsafe fn wait(&self, stream: RawStream, event: RawEvent) -> Outcome {
        match self.breaks {
            Break::Waits => Ok(()),
            // SAFETY: the caller's promise.
            Break::Records => unsafe { self.catch_up(stream).and_then(|()| self.inner.wait(stream, event)) },
        }
    }

    unsafe fn call(&self, stream: RawStream, then: Box<dyn FnOnce() + Send>) -> Outcome {
        // SAFETY: the caller's promise.
        unsafe { self.catch_up(stream).and_then(|()| self.inner.call(stream, then)) }
    }

    unsafe fn launch(&self, launch: &Launch<'_>, stream: RawStream) -> Outcome {
        if self.breaks == Break::Waits {
            // SAFETY: the caller's promise.
            return unsafe { self.inner.launch(launch, stream) };
        }
        // SAFETY: the caller's promise.
        unsafe { self.catch_up(stream) }?;
        let &Launch { entry, kernel, waves, args } = launch;
        let (words, extents) = (args.words(), args.extents());
        let args = Saved { words, boxed: Mutex::new(Some(args.boxed())), extents };
        lock(&self.held_back).push(HeldBack { stream, entry, kernel, waves, args });
        Ok(())
    }
}
