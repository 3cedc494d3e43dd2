//! Lets the caller interrupt work that it no longer wants.
//!
//! The one idea: the calling thread asks whether to go on, between two parts of the work or while it waits
//! for the pool's threads. All threads that work for it see the answer before they begin another part. So
//! nothing else runs beside the work, and code that asks once in some thousand rows costs nothing if no
//! caller may interrupt it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Device;
use crate::{Error, Result};

/// How long the caller waits at least between two questions while other threads work.
const SHORTEST: Duration = Duration::from_millis(1);
/// The size of the stack of a thread that works apart, and of what else may be mapped for it.
const STACK: usize = 8 << 20;
const SPARE: usize = 256 << 10;

thread_local! {
    /// The interruption that applies to the work of this thread.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Current {
    interrupted: Interrupted,
    /// Set on the caller's thread only.
    caller: Option<Rc<Caller>>,
}

/// Whether the caller has interrupted its work, for the threads that work for it. `None` if it cannot.
#[derive(Clone)]
pub(crate) struct Interrupted(Option<Arc<AtomicBool>>);

struct Caller {
    ask: Box<dyn Fn() -> bool>,
    every: Duration,
    last: Cell<Instant>,
}

/// Runs `work`. Meanwhile this thread calls `interrupted`, at most once in each period of `every`. After it
/// returns `true`, CPU operations that `work` calls on this thread fail with [`Error::Interrupted`] before
/// they begin another part of some ten thousand rows, on every thread that they use. GPU operations do not
/// ask, except for copies of more than 2 MiB between the host and a GPU, if threads share them.
///
/// arrow-rs does not ask either. Its part of a long operation (casts of nested types,
/// [`concat`](crate::compute::concat()), validation) goes on in a thread of its own, and its result is
/// dropped. Only a cast with a formatter of the caller's own
/// ([`FormatOptions::with_formatter_factory`](crate::compute::FormatOptions)) is waited for.
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

/// The interruption that applies to this thread. Nothing does at the end of a thread, when its variables are
/// gone but other libraries' destructors may still call this one.
fn current() -> Option<Current> {
    CURRENT.try_with(|current| current.borrow().clone()).ok().flatten()
}

/// Runs `work` with another interruption.
fn with<T>(current: Option<Current>, work: impl FnOnce() -> T) -> T {
    struct Back(Option<Current>);
    impl Drop for Back {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.replace(self.0.take()));
        }
    }
    let _back = Back(CURRENT.try_with(|old| old.replace(current)).ok().flatten());
    work()
}

/// Fails if the caller has interrupted its work. Call it between parts of the work.
pub(crate) fn check() -> Result<()> {
    let Some(Current { interrupted, caller }) = current() else { return Ok(()) };
    if interrupted.is_set() {
        return Err(Error::Interrupted);
    }
    let due = caller.filter(|caller| caller.last.get().elapsed() >= caller.every);
    // The operations that `ask` itself calls are not interruptible.
    let Some(caller) = due else { return Ok(()) };
    let ends = with(None, || (caller.ask)());
    caller.last.set(Instant::now());
    if ends {
        interrupted.set();
        return Err(Error::Interrupted);
    }
    Ok(())
}

/// How often a thread that waits for others must ask; `None` if nothing can interrupt it.
pub(crate) fn every() -> Option<Duration> {
    let current = current()?;
    Some(current.caller.map_or(SHORTEST, |caller| caller.every).max(SHORTEST))
}

/// Calls `hand_over`, which begins work on other threads, and keeps asking until [`Over`] is dropped. If
/// nothing can interrupt this thread, returns `false` without calling it.
pub(crate) fn look_up(hand_over: impl FnOnce(Over)) -> bool {
    let Some(every) = every() else { return false };
    // The other threads see the answer themselves.
    let _ = check();
    let (sender, receiver) = channel();
    hand_over(Over(sender));
    while receiver.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let _ = check();
    }
    true
}

/// Drop this when the work is over.
pub(crate) struct Over(#[allow(dead_code, reason = "it is dropped")] Sender<()>);

/// Runs work that does not ask. If it is `long`, it runs in a thread of its own, and is abandoned once the
/// caller has interrupted it.
pub(crate) fn apart<T: Send + 'static>(
    long: bool,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    check()?;
    let Some(every) = every().filter(|_| long) else { return work() };
    // If a stack took the last of the memory, the code that starts a thread would end the process.
    let Ok(room) = Device::cpu().host_pool().reserve(STACK + SPARE) else { return work() };
    drop(room);
    let (sender, receiver) = channel();
    // If the thread does not start, the work can be taken back.
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
    /// The interruption of the work that this thread does.
    pub fn of_this_thread() -> Interrupted {
        current().map_or(Interrupted(None), |current| current.interrupted)
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
        let same = match (current(), &self.0) {
            (None, None) => true,
            (Some(Current { interrupted: Interrupted(Some(own)), .. }), Some(theirs)) => {
                Arc::ptr_eq(&own, theirs)
            }
            _ => false,
        };
        if same {
            return work();
        }
        let current = self.0.is_some().then(|| Current { interrupted: self.clone(), caller: None });
        with(current, work)
    }
}
