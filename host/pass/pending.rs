//! Results that depend on a number which the device is still computing.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Pass;
use crate::array::Ready;
use crate::device::{Event, Kept, Sleeper, Staged};
use crate::{Error, Result, Stream};

/// The result of an operation that needs a number from the device before it can continue, such as the number
/// of rows that a filter keeps. [`wait`](Pending::wait) blocks until the result is available,
/// [`is_ready`](Pending::is_ready) checks without blocking, and a task can await it. Awaiting does not block
/// a thread for the first number. If a nested type needs a second number, the poll that finishes the
/// operation blocks for it. Dropping a result abandons the operation.
///
/// Tasks are woken one after another on a thread of this library. Each device has one such thread, which
/// starts with the first task. If it cannot be started, polling blocks until the result is available.
#[must_use = "an operation's errors are in its result, and dropping it abandons the operation"]
pub struct Pending<T>(State<T>);

enum State<T> {
    Known(Result<T>),
    Waiting(Box<Waiting<T>>),
    Taken,
}

type Then<T> = Box<dyn FnOnce(Pass, &Staged) -> Result<T> + Send>;

struct Waiting<T> {
    /// The rest of the operation. It is taken when the words have arrived or the result is dropped.
    rest: Option<(Pass, Staged, Then<T>)>,
    seen: Event,
    parents: Vec<Event>,
    sleeper: Option<Arc<Sleeper>>,
}

impl<T> Pending<T> {
    /// A result that is already available.
    pub fn known(result: Result<T>) -> Pending<T> {
        Pending(State::Known(result))
    }

    /// The result of beginning an operation. If it could not begin, the error becomes the result.
    pub(crate) fn begun(begin: impl FnOnce() -> Result<Pending<T>>) -> Pending<T> {
        begin().unwrap_or_else(|error| Pending::known(Err(error)))
    }

    pub(super) fn waiting(pass: Pass, staged: Staged, seen: Event, then: Then<T>) -> Pending<T> {
        let parents = pass.parents.clone();
        let rest = Some((pass, staged, then));
        Pending(State::Waiting(Box::new(Waiting { rest, seen, parents, sleeper: None })))
    }

    /// Blocks until the result is available, and returns it.
    pub fn wait(mut self) -> Result<T> {
        match std::mem::replace(&mut self.0, State::Taken) {
            State::Known(result) => result,
            State::Waiting(waiting) => {
                // Entered once for all that follows, because each entry to a device costs calls of its
                // driver.
                let stream = waiting.stream()?;
                let _current = stream.enter()?;
                waiting.seen.wait()?;
                waiting.go_on()
            }
            State::Taken => Err(taken()),
        }
    }

    /// Whether [`wait`](Pending::wait) would return without blocking.
    pub fn is_ready(&self) -> Result<bool> {
        match &self.0 {
            State::Waiting(waiting) => waiting.seen.is_ready(),
            State::Known(_) | State::Taken => Ok(true),
        }
    }

    /// Applies `then` to the result, on the host.
    pub fn map<U: 'static>(self, then: impl FnOnce(T) -> Result<U> + Send + 'static) -> Pending<U>
    where
        T: 'static,
    {
        let mut this = self;
        match std::mem::replace(&mut this.0, State::Taken) {
            State::Known(result) => Pending::known(result.and_then(then)),
            State::Taken => Pending::known(Err(taken())),
            State::Waiting(mut waiting) => match waiting.rest.take() {
                None => Pending::known(Err(taken())),
                Some((pass, staged, first)) => {
                    let both: Then<U> = Box::new(move |pass, staged| first(pass, staged).and_then(then));
                    Pending::waiting(pass, staged, waiting.seen.clone(), both)
                }
            },
        }
    }
}

impl<T> Waiting<T> {
    /// The stream that runs the operation.
    fn stream(&self) -> Result<Stream> {
        self.rest.as_ref().map(|(pass, ..)| pass.stream.clone()).ok_or_else(taken)
    }

    /// Continues the operation after the words have arrived.
    fn go_on(mut self) -> Result<T> {
        self.parents.iter().try_for_each(Event::outcome)?;
        let stream = self.stream()?;
        let _current = stream.enter()?;
        let (pass, staged, then) = self.rest.take().ok_or_else(taken)?;
        then(pass, &staged)
    }
}

impl<T> Drop for Waiting<T> {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            sleeper.forget();
        }
        if let Some((mut pass, staged, _)) = self.rest.take() {
            // The copy to it may still be in progress.
            pass.kept.push(Kept::Staged(staged));
        }
    }
}

// Nothing in it is pinned: the result is moved out whole.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let State::Waiting(waiting) = &mut self.0 {
            match waiting.ready_or_wake(context) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(error) => {
                    self.0 = State::Taken;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(match std::mem::replace(&mut self.0, State::Taken) {
            State::Known(result) => result,
            State::Waiting(waiting) => waiting.go_on(),
            State::Taken => Err(taken()),
        })
    }
}

impl<T> Waiting<T> {
    /// Whether the words have arrived. If not, one of our threads wakes the task when they have.
    fn ready_or_wake(&mut self, context: &Context<'_>) -> Result<bool> {
        let stream = self.stream()?;
        let _current = stream.enter()?;
        if self.seen.is_ready()? {
            return Ok(true);
        }
        if self.sleeper.as_ref().is_some_and(|sleeper| sleeper.renew(context.waker())) {
            return Ok(false);
        }
        let (gpu, queue) = stream.as_gpu().ok_or_else(taken)?;
        let Some((sleeper, alarm)) = gpu.wakes().alarm(context.waker()) else {
            self.seen.wait()?;
            return Ok(true);
        };
        self.sleeper = Some(sleeper);
        queue.call_behind(&self.seen, Box::new(move || drop(alarm)))?;
        Ok(false)
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            State::Known(_) => "Pending(known)",
            State::Waiting(_) => "Pending(waiting)",
            State::Taken => "Pending(taken)",
        })
    }
}

fn taken() -> Error {
    Error::invalid("pending", "the result was taken already")
}
