//! Work that the caller no longer wants.
//!
//! The one idea: the thread that calls asks whether to go on, between two parts of the work or while it waits for the pool's
//! threads. All threads that work for it see its answer before they begin another part. So nothing else runs beside the work, and
//! code that asks once in some thousand rows costs nothing where no one may interrupt it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Device;
use crate::{Error, Result};

/// How long the caller waits at least between two looks while other threads work.
const SHORTEST: Duration = Duration::from_millis(1);
/// The stack of a thread that works apart, and what else may be mapped for it.
const STACK: usize = 8 << 20;
const SPARE: usize = 256 << 10;

thread_local! {
    /// What may interrupt the work of this thread.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Current {
    interrupted: Interrupted,
    /// On the caller's thread only.
    caller: Option<Rc<Caller>>,
}

/// Whether the caller has interrupted its work; `None` where it cannot. For the threads that work for it.
#[derive(Clone)]
pub(crate) struct Interrupted(Option<Arc<AtomicBool>>);

struct Caller {
    ask: Box<dyn Fn() -> bool>,
    every: Duration,
    last: Cell<Instant>,
}

/// Runs `work`, and asks `interrupted` meanwhile, on this thread, not more often than `every` so long. Once it says so, operations
/// on the CPU that `work` calls on this thread fail with [`Error::Interrupted`] before they begin another part of some ten thousand
/// rows, on every thread that they use. Those of GPUs do not ask.
///
/// arrow-rs does not ask either: its part of a long operation (casts of nested types,
/// [`concat`](crate::compute::concat()), validation) goes on in a thread of its own, and its result is
/// dropped. Only where a cast has a formatter of the caller's own
/// ([`FormatOptions::with_formatter_factory`](crate::compute::FormatOptions)) is it waited for.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::time::Duration;
///
/// let enough = Arc::new(AtomicBool::new(false)); // another thread sets it
/// let asked = enough.clone();
/// let ask = move || asked.load(Ordering::Relaxed);
/// let answer = bowstring::interruptible(Duration::from_millis(50), ask, || {
///     // operations
///     42
/// });
/// assert_eq!(answer, 42);
/// ```
pub fn interruptible<T>(
    every: Duration,
    interrupted: impl Fn() -> bool + 'static,
    work: impl FnOnce() -> T,
) -> T {
    let caller = Caller { ask: Box::new(interrupted), every, last: Cell::new(Instant::now()) };
    let interrupted = Interrupted(Some(Arc::default()));
    with(Some(Current { interrupted, caller: Some(Rc::new(caller)) }), work)
}

/// Runs `work` with another answer to what may interrupt it.
fn with<T>(current: Option<Current>, work: impl FnOnce() -> T) -> T {
    struct Back(Option<Current>);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.set(self.0.take());
        }
    }
    let _back = Back(CURRENT.replace(current));
    work()
}

/// An error once the caller has interrupted its work: to be asked between parts of it.
pub(crate) fn check() -> Result<()> {
    let due = CURRENT.with_borrow(|current| match current {
        None => Ok(None),
        Some(current) if current.interrupted.is_set() => Err(Error::Interrupted),
        Some(Current { interrupted, caller: Some(caller) }) => {
            let due = caller.last.get().elapsed() >= caller.every;
            Ok(due.then(|| (interrupted.clone(), caller.clone())))
        }
        Some(_) => Ok(None),
    })?;
    // Operations that it calls ask nothing.
    let Some((interrupted, caller)) = due else { return Ok(()) };
    let ends = with(None, || (caller.ask)());
    caller.last.set(Instant::now());
    if ends {
        interrupted.set();
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// How long a thread that waits for others may wait until it looks up; `None` where nothing interrupts it.
fn every() -> Option<Duration> {
    CURRENT.with_borrow(|current| {
        let caller = current.as_ref()?.caller.as_ref();
        Some(caller.map_or(SHORTEST, |caller| caller.every).max(SHORTEST))
    })
}

/// Has `hand_over` begin work on other threads, and looks up until [`Over`] is dropped; `false`, and nothing is done, where nothing
/// interrupts this thread.
pub(crate) fn look_up(hand_over: impl FnOnce(Over)) -> bool {
    let Some(every) = every() else { return false };
    // What it says the other threads see by themselves.
    let _ = check();
    let (sender, receiver) = channel();
    hand_over(Over(sender));
    while receiver.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let _ = check();
    }
    true
}

/// Dropped when the work is over.
pub(crate) struct Over(#[allow(dead_code, reason = "it is dropped")] Sender<()>);

/// Runs what asks no one in a thread of its own where it is `long`, and leaves it to itself once the caller has interrupted it.
pub(crate) fn apart<T: Send + 'static>(
    long: bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    check()?;
    let Some(every) = every().filter(|_| long) else { return work() };
    // Where a stack takes the last of the memory, what starts a thread would end the process.
    let Ok(room) = Device::cpu().host_pool().reserve(STACK + SPARE) else { return work() };
    drop(room);
    let (sender, receiver) = channel();
    // A thread that does not start keeps what it was given.
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = work.clone();
    let taken = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let thread = std::thread::Builder::new().name("bowstring-apart".into()).stack_size(STACK);
    let started = thread.spawn(move || {
        if let Some(work) = taken(&theirs) {
            let _ = sender.send(work());
        }
    });
    let Ok(thread) = started else { return taken(&work).expect("no thread took it")() };
    loop {
        match receiver.recv_timeout(every) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Timeout) => check()?,
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("it sends before it ends"),
            },
        }
    }
}

impl Interrupted {
    /// Of the work that this thread does.
    pub fn of_this_thread() -> Interrupted {
        CURRENT.with_borrow(|current| match current {
            Some(current) => current.interrupted.clone(),
            None => Interrupted(None),
        })
    }

    fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|set| set.load(Ordering::Relaxed))
    }

    fn set(&self) {
        if let Some(set) = &self.0 {
            set.store(true, Ordering::Relaxed);
        }
    }

    /// Runs a part of that work, on any thread.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let same = CURRENT.with_borrow(|current| match (current, &self.0) {
            (None, None) => true,
            (Some(Current { interrupted: Interrupted(Some(own)), .. }), Some(theirs)) => {
                Arc::ptr_eq(own, theirs)
            }
            _ => false,
        });
        if same {
            return work();
        }
        let current = self.0.is_some().then(|| Current { interrupted: self.clone(), caller: None });
        with(current, work)
    }
}
