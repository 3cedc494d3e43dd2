//! What a process that forks leaves to its child: memory as it was, and of all threads only the one that forked.
//!
//! The one idea: one lock guards everything that a child goes on using, and a thread that forks holds it meanwhile. So the
//! child finds the lock free and what it guards whole. What cannot go on in a child (threads, devices) is told by its
//! [`generation`], which a fork raises.

#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};

use super::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use super::sync::{Mutex, MutexGuard, thread_local};

static LOCK: Mutex<()> = Mutex::new(());
static GENERATION: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// What a thread that forks holds meanwhile.
    static HELD: Cell<Option<MutexGuard<'static, ()>>> = const { Cell::new(None) };
}

/// How many forks lie between the process that first asked this and this one.
pub(crate) fn generation() -> u32 {
    watch();
    GENERATION.load(Ordering::Relaxed)
}

/// A value behind the lock that all of its kind share: for what is held for less than a microsecond.
pub(crate) struct Guarded<T>(UnsafeCell<T>);

// SAFETY: the value is used under the lock only, by one thread at a time.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Guarded<T> {
        Guarded(UnsafeCell::new(value))
    }

    /// Works on the value under the lock; `work` must not come here again.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        watch();
        let _held = lock();
        // SAFETY: the lock is held until `work` returns, which cannot have it twice, so this is the only reference.
        work(unsafe { &mut *self.0.get() })
    }
}

fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// When the library is loaded: a thread may take the lock for the first time while another one forks already.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: what is in this section are functions that are called once, with arguments that ours does not look at.
#[unsafe(link_section = ".init_array")]
static EARLY: extern "C" fn() = register;

/// Asks to be called when this process forks, where that has not been done yet. No thread waits here for another that does so, which a child might not
/// have: two may ask at the same time, and the handlers then do nothing the second time.
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
    // SAFETY: the handlers are functions of this library, which stays loaded, take nothing and do not unwind. Where there
    // is no memory to note them, a fork is as it would be without.
    unsafe { pthread_atfork(before, after, in_child) };
}

#[cfg(not(unix))]
extern "C" fn register() {}

/// A thread whose locals are gone already holds nothing: it forks at its very end, and that is left to chance.
pub(super) extern "C" fn before() {
    let _ = HELD.try_with(|place| place.set(Some(place.take().unwrap_or_else(lock))));
}

pub(super) extern "C" fn after() {
    let _ = HELD.try_with(Cell::take);
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    after();
}
