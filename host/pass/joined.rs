//! Operations side by side, which look at the device at the same time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::Result;

/// An operation, until it has ended.
enum Joined<F, T> {
    Running(Pin<Box<F>>),
    Ended(Result<T>),
}

impl<F: Future<Output = Result<T>>, T> Joined<F, T> {
    /// Whether the operation has ended. Polls it if it has not.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        if let Joined::Running(operation) = self {
            let Poll::Ready(result) = operation.as_mut().poll(context) else { return false };
            *self = Joined::Ended(result);
        }
        true
    }
}

/// The results of operations, in their order, or the error of the first that failed. Each poll polls all that
/// have not ended, so they note their events together, and the host waits once for all of them.
pub(crate) async fn all<T>(operations: Vec<impl Future<Output = Result<T>>>) -> Result<Vec<T>> {
    let mut all: Vec<_> = operations.into_iter().map(|one| Joined::Running(Box::pin(one))).collect();
    poll_fn(|context| {
        let mut ended = true;
        for one in &mut all {
            ended &= one.has_ended(context);
        }
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let ended = all.into_iter().filter_map(|one| match one {
        Joined::Ended(result) => Some(result),
        Joined::Running(_) => None,
    });
    ended.collect()
}
