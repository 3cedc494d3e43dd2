//! Wakes tasks, on a thread of ours. A waker is foreign code and may do anything, whereas a callback of a GPU
//! runtime may not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;

use super::lock::lock;
use super::sync::mpsc::{Receiver, Sender, channel};
use super::sync::{Mutex, thread};

/// A task that waits for work to pass.
pub(crate) struct Sleeper(Mutex<State>);

#[derive(Default)]
struct State {
    woken: bool,
    waker: Option<Waker>,
}

impl Sleeper {
    /// Replaces the waker; `false` if the task was woken already. Wakers are cloned and dropped outside the
    /// lock, because either may call anything.
    pub fn renew(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut state = lock(&self.0);
        let woken = state.woken;
        let unused = if woken { Some(waker) } else { state.waker.replace(waker) };
        drop(state);
        drop(unused);
        !woken
    }

    /// Ends the wait, so that the task is not woken.
    pub fn forget(&self) {
        let waker = lock(&self.0).waker.take();
        drop(waker);
    }

    /// Wakes the task, unless it was woken already.
    pub fn wake(&self) {
        let waker = {
            let mut state = lock(&self.0);
            state.woken = true;
            state.waker.take()
        };
        let woken = catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake)));
        // A panic ends here. Its payload is leaked, because its drop may panic.
        woken.map(drop).unwrap_or_else(std::mem::forget);
    }
}

/// Wakes a task when it is dropped, so the task wakes even if the runtime drops a callback without calling
/// it.
pub(crate) struct Alarm {
    sleeper: Arc<Sleeper>,
    queue: Sender<Arc<Sleeper>>,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // The thread lives until the last sender, this one, is gone.
        let _ = self.queue.send(self.sleeper.clone());
    }
}

/// The thread that wakes a device's tasks. It starts with the first task and ends with the device.
#[derive(Default)]
pub(crate) struct Wakes(Mutex<Thread>);

#[derive(Default)]
enum Thread {
    #[default]
    NotStarted,
    Started(Sender<Arc<Sleeper>>),
    /// Simulates a system that cannot start a thread.
    #[cfg(test)]
    Refused,
}

impl Wakes {
    /// Makes an alarm that wakes a task once it is dropped; `None` if no thread can be started.
    pub fn alarm(&self, waker: &Waker) -> Option<(Arc<Sleeper>, Alarm)> {
        let waker = waker.clone();
        let queue = self.queue()?;
        let sleeper = Arc::new(Sleeper(Mutex::new(State { woken: false, waker: Some(waker) })));
        Some((sleeper.clone(), Alarm { sleeper, queue }))
    }

    fn queue(&self) -> Option<Sender<Arc<Sleeper>>> {
        let mut thread = lock(&self.0);
        match &*thread {
            Thread::Started(queue) => return Some(queue.clone()),
            Thread::NotStarted => {}
            #[cfg(test)]
            Thread::Refused => return None,
        }
        let (queue, told) = channel();
        // The name has the most characters that Linux allows.
        let started = thread::Builder::new().name("bowstring wakes".into()).spawn(move || wake_all(told));
        started.ok()?;
        *thread = Thread::Started(queue.clone());
        Some(queue)
    }

    /// Simulates a system that cannot start a thread.
    #[cfg(test)]
    pub fn refuse(&self) {
        *lock(&self.0) = Thread::Refused;
    }
}

fn wake_all(told: Receiver<Arc<Sleeper>>) {
    told.into_iter().for_each(|sleeper| sleeper.wake());
}
