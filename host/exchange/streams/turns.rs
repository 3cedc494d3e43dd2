//! Shares a value, such as the reader behind a stream handle, between threads that use it in turn.
//!
//! The one idea: the value is taken out of the lock while it is used. So other threads wait without holding
//! it. A producer that uses the handle which is currently calling it would wait for itself; it gets an error
//! instead.

use std::sync::PoisonError;
use std::time::Duration;

use crate::device::interrupt;
use crate::device::sync::thread::{self, ThreadId};
use crate::device::sync::{Condvar, Mutex, MutexGuard};
use crate::{Error, Result};

/// The interval at which a waiting thread checks for interrupts.
const PATIENCE: Duration = Duration::from_millis(50);

/// A value that one thread at a time uses.
#[derive(Debug)]
pub struct Turns<T> {
    state: Mutex<State<T>>,
    returned: Condvar,
}

#[derive(Debug)]
struct State<T> {
    /// `None` while a thread uses it.
    value: Option<T>,
    in_hand_of: Option<ThreadId>,
}

impl<T> Turns<T> {
    /// Wraps a value that no thread is using.
    pub fn new(value: T) -> Turns<T> {
        Turns { state: Mutex::new(State { value: Some(value), in_hand_of: None }), returned: Condvar::new() }
    }

    /// Uses the value, after waiting for another thread that uses it, unless the wait is
    /// [interrupted](crate::interruptible). Returns [`Error::Invalid`] on a recursive call from the same
    /// thread.
    pub fn with<R>(&self, body: impl FnOnce(&mut T) -> Result<R>) -> Result<R> {
        self.with_interrupts(|| interrupt::check().is_err(), body)
    }

    /// Like [`with`](Self::with), but returns [`Error::Interrupted`] if `interrupted` returns true. It is
    /// called repeatedly while another thread uses the value, so that a user can stop waiting.
    pub fn with_interrupts<R>(
        &self,
        mut interrupted: impl FnMut() -> bool,
        body: impl FnOnce(&mut T) -> Result<R>,
    ) -> Result<R> {
        let mut state = self.state();
        let value = loop {
            if let Some(value) = state.value.take() {
                break value;
            }
            if state.in_hand_of == Some(thread::current().id()) {
                return Err(Error::invalid("stream", "it is being read: its producer may not ask for it"));
            }
            let waited = self.returned.wait_timeout(state, PATIENCE);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if timeout.timed_out() && state.value.is_none() {
                // Called without the lock: the answer may take another lock.
                drop(state);
                if interrupted() {
                    return Err(Error::Interrupted);
                }
                state = self.state();
            }
        };
        state.in_hand_of = Some(thread::current().id());
        drop(state);
        let mut turn = Turn { turns: self, value: Some(value) };
        match &mut turn.value {
            Some(value) => body(value),
            None => unreachable!("it is given back at drop"),
        }
    }

    /// Uses the value if no thread is using it; never waits. `body` must not call this value's methods.
    pub fn try_with<R>(&self, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.state.try_lock().ok()?.value.as_mut().map(body)
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the value back, also if its use panics.
struct Turn<'a, T> {
    turns: &'a Turns<T>,
    value: Option<T>,
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        (state.value, state.in_hand_of) = (self.value.take(), None);
        drop(state);
        self.turns.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_second_thread_waits() {
        let turns = Turns::new(vec![1]);
        let (inside, seen) = channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                turns.with(|values| {
                    inside.send(()).unwrap();
                    thread::sleep(Duration::from_millis(20));
                    values.push(2);
                    Ok(())
                })
            });
            seen.recv().unwrap();
            let added = turns.with(|values| {
                values.push(3);
                Ok(())
            });
            added.unwrap();
        });
        assert_eq!(turns.with(|values| Ok(values.clone())), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn a_thread_that_has_it_in_hand_is_refused() {
        let turns = Turns::new(1);
        let inner = turns.with(|_| Ok(turns.with(|value| Ok(*value)))).unwrap();
        assert!(matches!(inner, Err(Error::Invalid { operation: "stream", .. })));
        assert_eq!(turns.with(|value| Ok(*value)), Ok(1));
    }

    #[test]
    fn a_thread_that_is_interrupted_waits_no_longer() {
        let turns = Turns::new(1);
        let (done, end) = channel::<()>();
        let (inside, seen) = channel();
        thread::scope(|scope| {
            let turns = &turns;
            scope.spawn(move || {
                turns.with(|_| {
                    inside.send(()).unwrap();
                    end.recv().unwrap();
                    Ok(())
                })
            });
            seen.recv().unwrap();
            let mut asked = 0;
            let refused = turns.with_interrupts(
                || {
                    asked += 1;
                    asked == 3
                },
                |value| Ok(*value),
            );
            assert_eq!(refused, Err(Error::Interrupted));
            assert_eq!(asked, 3);
            done.send(()).unwrap();
        });
        assert_eq!(turns.with_interrupts(|| true, |value| Ok(*value)), Ok(1), "nobody has it");
        assert_eq!(turns.try_with(|value| *value), Some(1));
        assert_eq!(turns.with(|_| Ok(turns.try_with(|value| *value))), Ok(None));
    }

    #[test]
    fn a_panic_gives_it_back() {
        let turns = Turns::new(1);
        let used = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            turns.with(|_| -> Result<()> { panic!("on purpose") })
        }));
        assert!(used.is_err());
        assert_eq!(turns.with(|value| Ok(*value)), Ok(1));
    }
}
