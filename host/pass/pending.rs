//! Results that depend on a number which the device is still computing.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::waits;
use crate::array::Ready;
use crate::device::{Event, Sleeper};
use crate::{Error, Result, Stream};

/// The result of an operation that needs a number from the device before it can continue, such as the number
/// of rows that a filter keeps. [`wait`](Pending::wait) blocks until the result is available,
/// [`is_ready`](Pending::is_ready) checks without blocking, and a task can await it. Awaiting never blocks a
/// thread, however many numbers the operation needs. Each of the three continues the operation when a number
/// has arrived. Dropping a result abandons the operation.
///
/// Tasks are woken one after another on a thread of this library. Each device has one such thread, which
/// starts with the first task. If it cannot be started, a task is woken at once, and so polls until the
/// number has arrived.
#[must_use = "an operation's errors are in its result, and dropping it abandons the operation"]
pub struct Pending<T>(State<T>);

enum State<T> {
    Known(Result<T>),
    Waiting(Box<Waiting<T>>),
    Taken,
}

type Operation<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

struct Waiting<T> {
    operation: Operation<T>,
    /// The events that it waits for.
    at: Vec<Event>,
    stream: Stream,
    /// The task that is woken after the last event of `at`.
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

    /// Begins an operation on a stream: runs it until it waits for a number from the device. It may await
    /// [`Pass::read`](super::Pass::read) and other results, and nothing else.
    pub(crate) fn begin(
        stream: &Stream,
        operation: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<T> {
        let (operation, stream) = (Box::pin(operation), stream.clone());
        let mut waiting = Waiting { operation, at: vec![], stream, sleeper: None };
        match waiting.poll() {
            Poll::Ready(result) => Pending::known(result),
            Poll::Pending => Pending(State::Waiting(Box::new(waiting))),
        }
    }

    /// Blocks until the result is available, and returns it.
    pub fn wait(mut self) -> Result<T> {
        match std::mem::replace(&mut self.0, State::Taken) {
            State::Known(result) => result,
            State::Waiting(mut waiting) => {
                waiting.forget();
                // Entered once for all that follows, because each entry to a device costs calls of its
                // driver.
                let stream = waiting.stream.clone();
                let _current = stream.enter()?;
                loop {
                    wait_for(&waiting.at)?;
                    if let Poll::Ready(result) = waiting.go_on() {
                        return result;
                    }
                }
            }
            State::Taken => Err(taken()),
        }
    }

    /// Like [`wait`](Pending::wait), for a result that cannot be moved.
    pub(crate) fn wait_in_place(&mut self) -> Result<T> {
        std::mem::replace(self, Pending(State::Taken)).wait()
    }

    /// Whether [`wait`](Pending::wait) would return without blocking. Continues the operation as far as the
    /// numbers that have arrived allow.
    pub fn is_ready(&mut self) -> Result<bool> {
        let State::Waiting(waiting) = &mut self.0 else { return Ok(true) };
        let stream = waiting.stream.clone();
        let _current = stream.enter()?;
        // A task that has polled is woken by the event for which it waited then. If the operation goes on
        // without the task, it has to poll again, to wait for another.
        let (sleeper, event) = (waiting.sleeper.take(), waiting.next_recording());
        let polled = waiting.go_on_while_ready();
        match polled.is_pending() && waiting.next_recording() == event {
            true => waiting.sleeper = sleeper,
            false => sleeper.iter().for_each(|sleeper| sleeper.wake()),
        }
        Ok(match polled {
            Poll::Pending => false,
            Poll::Ready(result) => {
                self.0 = State::Known(result);
                true
            }
        })
    }

    /// Applies `then` to the result, on the host.
    pub fn map<U>(self, then: impl FnOnce(T) -> Result<U> + Send + 'static) -> Pending<U>
    where
        T: 'static,
    {
        let mut this = self;
        match std::mem::replace(&mut this.0, State::Taken) {
            State::Known(result) => Pending::known(result.and_then(then)),
            State::Taken => Pending::known(Err(taken())),
            State::Waiting(waiting) => {
                let Waiting { operation, at, stream, sleeper } = *waiting;
                let operation = Box::pin(async move { operation.await.and_then(then) });
                Pending(State::Waiting(Box::new(Waiting { operation, at, stream, sleeper })))
            }
        }
    }
}

impl<T> Waiting<T> {
    /// Continues the operation until it ends or waits for more events. All of `at` must have passed. An error
    /// if the stream is being captured by now: others may have begun that since the operation began.
    fn go_on(&mut self) -> Poll<Result<T>> {
        match self.stream.as_gpu().map_or(Ok(()), |(_, queue)| queue.refuse_capture("wait")) {
            Ok(()) => self.poll(),
            Err(refused) => Poll::Ready(Err(refused)),
        }
    }

    /// Like `go_on`, on a stream that was just entered.
    fn poll(&mut self) -> Poll<Result<T>> {
        let (polled, at) = waits::poll(|context| self.operation.as_mut().poll(context));
        self.at = at;
        match polled {
            Poll::Pending if self.at.is_empty() => Poll::Ready(Err(idle())),
            polled => polled,
        }
    }

    /// Continues the operation until it ends or an event has not passed, which is then the last of `at`.
    fn go_on_while_ready(&mut self) -> Poll<Result<T>> {
        loop {
            while let Some(event) = self.at.last() {
                match event.is_ready() {
                    Ok(true) => drop(self.at.pop()),
                    Ok(false) => return Poll::Pending,
                    Err(error) => return Poll::Ready(Err(error)),
                }
                self.forget();
            }
            if let Poll::Ready(result) = self.go_on() {
                return Poll::Ready(result);
            }
        }
    }

    /// The event that it waits for first, by when it was recorded.
    fn next_recording(&self) -> Option<u64> {
        self.at.last().map(Event::recording)
    }

    /// Like `go_on_while_ready`; wakes the task when the event has passed.
    fn go_on_or_wake(&mut self, context: &Context<'_>) -> Result<Poll<Result<T>>> {
        let stream = self.stream.clone();
        let _current = stream.enter()?;
        let polled = self.go_on_while_ready();
        if polled.is_pending() {
            self.wake(context)?;
        }
        Ok(polled)
    }

    /// Lets one of our threads wake the task when the last event of `at` has passed.
    fn wake(&mut self, context: &Context<'_>) -> Result<()> {
        if self.sleeper.as_ref().is_some_and(|sleeper| sleeper.renew(context.waker())) {
            return Ok(());
        }
        let ((gpu, queue), event) = self.stream.as_gpu().zip(self.at.last()).ok_or_else(taken)?;
        let Some((sleeper, alarm)) = gpu.wakes().alarm(context.waker()) else {
            context.waker().wake_by_ref();
            return Ok(());
        };
        self.sleeper = Some(sleeper);
        queue.call_behind(event, Box::new(move || drop(alarm)))
    }

    fn forget(&mut self) {
        if let Some(sleeper) = self.sleeper.take() {
            sleeper.forget();
        }
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if let State::Waiting(waiting) = &mut self.0 {
            waiting.forget();
        }
    }
}

// The operation is pinned in a box of its own; the result is moved out whole.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let State::Waiting(waiting) = &mut self.0 {
            let polled = match waits::is_inside(context) {
                // The operation around this one waits for the events that are noted.
                true => waiting.operation.as_mut().poll(context),
                false => waiting.go_on_or_wake(context).unwrap_or_else(|error| Poll::Ready(Err(error))),
            };
            let Poll::Ready(result) = polled else { return Poll::Pending };
            waiting.forget();
            self.0 = State::Known(result);
        }
        Poll::Ready(match std::mem::replace(&mut self.0, State::Taken) {
            State::Known(result) => result,
            State::Waiting(_) | State::Taken => Err(taken()),
        })
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

/// Runs what a result's operation would be, and blocks until it ends. The stream's device must be entered.
pub(crate) fn block_on<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    let mut operation = std::pin::pin!(operation);
    loop {
        match waits::poll(|context| operation.as_mut().poll(context)) {
            (Poll::Ready(result), _) => return result,
            (Poll::Pending, at) => wait_for(&at)?,
        }
    }
}

/// Blocks until events have passed. Those that passed while the last was waited for cost no synchronisation.
fn wait_for(at: &[Event]) -> Result<()> {
    let (last, others) = at.split_last().ok_or_else(idle)?;
    last.wait()?;
    others.iter().try_for_each(|event| if event.is_ready()? { Ok(()) } else { event.wait() })
}

fn idle() -> Error {
    Error::invalid("pending", "the operation waits for no number")
}

fn taken() -> Error {
    Error::invalid("pending", "the result was taken already")
}
