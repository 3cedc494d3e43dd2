//! Forks: the child process has its parent's memory as it was, and only the thread that forked.
//!
//! The one idea: a few locks guard everything that a child goes on using, and a thread holds all of them
//! while it forks. So the child finds the locks free and the guarded values whole. Threads and devices do not
//! work in a child; they compare the [`generation`], which a fork raises.

#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};

use super::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use super::sync::{Mutex, MutexGuard, thread_local};

/// The number of values of a kind that have locks of their own, for threads that would wait for each other.
pub(super) const APART: usize = if cfg!(shuttle) { 2 } else { 32 };

/// A lock in a cache line of its own, so that threads with different locks do not share one.
#[repr(align(128))]
struct Lock(Mutex<()>);

/// The number of locks before those of values apart.
const COMMON: usize = 2;

static LOCKS: [Lock; COMMON + APART] = [const { Lock(Mutex::new(())) }; COMMON + APART];

type Held = MutexGuard<'static, ()>;

static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The locks, while this thread forks.
    static HELD: Cell<Option<[Held; COMMON + APART]>> = const { Cell::new(None) };
}

/// The number of forks between the process that first called this and the current one.
pub(crate) fn generation() -> u32 {
    watch();
    GENERATION.load(Ordering::Relaxed)
}

/// A value under one of the locks. Each but the first may be held for less than a microsecond.
pub(crate) struct Guarded<T> {
    lock: &'static Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is used under the lock only, by one thread at a time.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// A value under the lock of all that have none of their own.
    pub(crate) const fn new(value: T) -> Guarded<T> {
        Guarded { lock: &LOCKS[1], value: UnsafeCell::new(value) }
    }

    /// A value under the first lock, which may be held while other values are used.
    pub(super) const fn first(value: T) -> Guarded<T> {
        Guarded { lock: &LOCKS[0], value: UnsafeCell::new(value) }
    }

    /// A value under lock `number` of those apart, below [`APART`].
    pub(super) const fn apart(number: usize, value: T) -> Guarded<T> {
        Guarded { lock: &LOCKS[COMMON + number], value: UnsafeCell::new(value) }
    }

    /// Runs `work` on the value under its lock; `work` must not use another such value, unless this one is
    /// under the first lock and the other is not.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        watch();
        let _held = self.lock.hold();
        // SAFETY: the lock is held until `work` returns, and no thread holds it twice, so this is the only
        // reference.
        work(unsafe { &mut *self.value.get() })
    }
}

impl Lock {
    fn hold(&'static self) -> Held {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Runs when the library is loaded, because a thread may take a lock for the first time while another one is
/// forking.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the loader calls each function in this section once, with arguments that ours ignores.
#[unsafe(link_section = ".init_array")]
static EARLY: extern "C" fn() = register;

/// Registers the fork handlers, once. No thread waits for another that is registering them, because a child
/// would not have that thread. Two threads may register at the same time; the second set of handlers then
/// does nothing.
fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Acquire) {
        register();
        WATCHED.store(true, Ordering::Release);
    }
}

#[cfg(unix)]
extern "C" fn register() {
    type Handler = extern "C" fn();
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, parent: Handler, child: Handler) -> std::ffi::c_int;
    }
    // SAFETY: the handlers are functions of this library, which stays loaded, take nothing and do not unwind.
    // Without memory to note them, a fork works as it would without handlers.
    unsafe { pthread_atfork(before, after, in_child) };
}

#[cfg(not(unix))]
extern "C" fn register() {}

/// Takes all locks, in order: other threads hold one at a time, or the first and another. A thread that forks
/// while its thread-locals are being destroyed takes none: that case is not protected.
pub(super) extern "C" fn before() {
    let all = || std::array::from_fn(|number| LOCKS[number].hold());
    let _ = HELD.try_with(|place| place.set(Some(place.take().unwrap_or_else(all))));
}

pub(super) extern "C" fn after() {
    let _ = HELD.try_with(Cell::take);
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    after();
}
