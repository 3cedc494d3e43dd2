//! The events that an operation has come to. While a pending result is polled, each read in it that has not
//! arrived notes its event here, however deep it is: so the result that is polled outermost knows all that it
//! has to wait for.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::ptr;
use std::task::{Context, Poll, Waker};

use crate::array::DeviceArray;
use crate::device::Event;
use crate::device::sync::thread_local;

/// The poll that a thread is in.
struct Polled {
    events: Vec<Event>,
    /// The address of its context. It tells results inside the operation, which get this context, from
    /// results that other code awaits meanwhile.
    context: usize,
}

thread_local! {
    static POLLED: RefCell<Option<Polled>> = const { RefCell::new(None) };
}

/// Restores the poll that the thread was in before, also after a panic.
struct Outer(Option<Polled>);

impl Drop for Outer {
    fn drop(&mut self) {
        let outer = self.0.take();
        POLLED.with(|polled| polled.replace(outer));
    }
}

fn address(context: &Context<'_>) -> usize {
    ptr::from_ref(context).addr()
}

/// Polls an operation, and returns the events that it noted, in the order in which they were recorded: so
/// the others have probably passed when the last one has.
pub(super) fn poll<T>(operation: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> (Poll<T>, Vec<Event>) {
    let mut context = Context::from_waker(Waker::noop());
    let inner = Polled { events: vec![], context: address(&context) };
    let _outer = Outer(POLLED.with(|polled| polled.replace(Some(inner))));
    let result = operation(&mut context);
    let mut events = POLLED.with(|polled| polled.take()).map_or(vec![], |polled| polled.events);
    events.sort_by_key(Event::recording);
    (result, events)
}

/// Whether [`poll`] made the context.
pub(super) fn is_inside(context: &Context<'_>) -> bool {
    POLLED.with(|polled| polled.borrow().as_ref().is_some_and(|polled| polled.context == address(context)))
}

/// Notes that the operation waits for an event.
pub(super) fn note(event: &Event) {
    POLLED.with(|polled| polled.borrow_mut().iter_mut().for_each(|polled| polled.events.push(event.clone())));
}

/// Waits until arrays may be read that our own work makes.
pub(crate) async fn readable(arrays: &[DeviceArray]) {
    let events = arrays.iter().filter_map(DeviceArray::ready).filter_map(|ready| {
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
