//! Asynchronous streams of batches, both ways: what a foreign producer sends is a `futures::Stream`, and such a stream, or
//! an iterator, is sent to a foreign consumer. Experimental, as the interface is.
//!
//! Nobody holds a lock of ours while the other side is called, or a waker is: either may call back at once.

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

use crate::device::sync::thread::{self, Thread};

/// The consumer wants no more, or the producer gives up.
const ECANCELED: c_int = 125;

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on this thread, which sleeps where there is nothing to do.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}
