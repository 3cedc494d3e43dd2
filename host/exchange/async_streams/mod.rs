//! Asynchronous streams of batches in both directions. A foreign producer's batches become a
//! `futures::Stream`; such a stream, or an iterator, is sent to a foreign consumer. Experimental, as the
//! interface is.
//!
//! No lock of ours is held during calls to the other side or to a waker, because both may call back at once.

mod consumer;
mod export;
mod import;
mod link;

pub use export::{AsyncExport, export_async_batches, export_async_iterator};
pub use import::{AsyncBatchReader, import_async_batches};

use std::ffi::c_int;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::Result;
use crate::device::interrupt;
use crate::device::sync::thread::{self, Thread};

/// The error code for a consumer that wants no more, or a producer that gives up.
const ECANCELED: c_int = 125;

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which sleeps while the future is pending, but for asking whether its caller
/// has interrupted it.
fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        match interrupt::every() {
            None => thread::park(),
            Some(every) => {
                interrupt::check()?;
                thread::park_timeout(every);
            }
        }
    }
}
