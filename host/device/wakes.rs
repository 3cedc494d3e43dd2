//! How tasks are told that they can go on: on a thread of ours. A waker is a stranger's and may do anything,
//! which nothing may that a runtime calls back.

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
    /// The waker that is used from now on; `false` where the task was woken already. A waker is cloned and
    /// dropped outside of the lock, because either may call anything.
    pub fn renew(&self, waker: &Waker) -> bool {
        let waker = waker.clone();
        let mut state = lock(&self.0);
        let woken = state.woken;
        let unused = if woken { Some(waker) } else { state.waker.replace(waker) };
        drop(state);
        drop(unused);
        !woken
    }

    /// The task no longer waits, and is not woken.
    pub fn forget(&self) {
        let waker = lock(&self.0).waker.take();
        drop(waker);
    }

    fn wake(&self) {
        let waker = {
            let mut state = lock(&self.0);
            state.woken = true;
            state.waker.take()
        };
        let woken = catch_unwind(AssertUnwindSafe(|| waker.map(Waker::wake)));
        // A panic ends here, and its payload may panic when it is dropped.
        woken.map(drop).unwrap_or_else(std::mem::forget);
    }
}

/// Has a task woken when it is dropped: so it is where a callback never comes, too.
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

/// The thread that wakes a device's tasks. It is started for the first of them and ends with the device.
#[derive(Default)]
pub(crate) struct Wakes(Mutex<Thread>);

#[derive(Default)]
enum Thread {
    #[default]
    NotStarted,
    Started(Sender<Arc<Sleeper>>),
    /// As where the system has no thread for us.
    #[cfg(test)]
    Refused,
}

impl Wakes {
    /// An alarm that wakes a task once it is dropped; `None` where no thread can be started.
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
        // The name is as long as Linux takes.
        let started = thread::Builder::new().name("bowstring wakes".into()).spawn(move || wake_all(told));
        started.ok()?;
        *thread = Thread::Started(queue.clone());
        Some(queue)
    }

    /// As where the system has no thread for us.
    #[cfg(test)]
    pub fn refuse(&self) {
        *lock(&self.0) = Thread::Refused;
    }
}

fn wake_all(told: Receiver<Arc<Sleeper>>) {
    told.into_iter().for_each(|sleeper| sleeper.wake());
}
