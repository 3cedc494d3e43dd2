//! The events that an operation has come to. While a pending result is polled, each read in it that has not
//! arrived notes its event here, however deep it is: so the result that is polled outermost knows all that it
//! has to wait for.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};

use crate::array::Array;
use crate::device::Event;
use crate::device::sync::thread_local;

thread_local! {
    /// The events noted so far, while this thread polls a result.
    static NOTED: RefCell<Option<Vec<Event>>> = const { RefCell::new(None) };
}

/// The waker of [`poll`]. It tells results inside an operation from results that other code awaits.
static INSIDE: LazyLock<Waker> = LazyLock::new(|| Waker::from(Arc::new(Inside)));

struct Inside;

impl Wake for Inside {
    fn wake(self: Arc<Self>) {}
}

/// Restores what the thread noted before, also after a panic.
struct Outer(Option<Vec<Event>>);

impl Drop for Outer {
    fn drop(&mut self) {
        let outer = self.0.take();
        NOTED.with(|noted| noted.replace(outer));
    }
}

/// Polls an operation, and returns the events that it noted.
pub(super) fn poll<T>(operation: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> (Poll<T>, Vec<Event>) {
    let _outer = Outer(NOTED.with(|noted| noted.replace(Some(vec![]))));
    let polled = operation(&mut Context::from_waker(&INSIDE));
    (polled, NOTED.with(|noted| noted.take()).unwrap_or_default())
}

/// Whether [`poll`] made the context.
pub(super) fn is_inside(context: &Context<'_>) -> bool {
    context.waker().will_wake(&INSIDE)
}

/// Notes that the operation waits for an event.
pub(super) fn note(event: &Event) {
    NOTED.with(|noted| noted.borrow_mut().iter_mut().for_each(|noted| noted.push(event.clone())));
}

/// Waits until arrays may be read that our own work makes.
pub(crate) async fn readable(arrays: &[Array]) {
    let events = arrays.iter().filter_map(Array::ready).filter_map(|ready| {
        let any: &dyn Any = &**ready;
        any.downcast_ref::<Event>().cloned()
    });
    let events: Vec<Event> = events.collect();
    poll_fn(|_| {
        let left = events.iter().filter(|event| !event.is_known_to_have_passed());
        match left.map(note).count() {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await
}
