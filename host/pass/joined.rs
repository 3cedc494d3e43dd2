//! Operations side by side, which look at the device at the same time.

use std::future::{Future, poll_fn};
use std::ops::DerefMut;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use crate::Result;

/// An operation, until it has ended.
enum Joined<P, T> {
    Running(Pin<P>),
    Ended(Result<T>),
}

impl<P: DerefMut<Target: Future<Output = Result<T>>>, T> Joined<P, T> {
    /// Whether the operation has ended. Polls it if it has not.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        if let Joined::Running(operation) = self {
            let Poll::Ready(result) = operation.as_mut().poll(context) else { return false };
            *self = Joined::Ended(result);
        }
        true
    }

    fn result(self) -> Result<T> {
        match self {
            Joined::Ended(result) => result,
            Joined::Running(_) => unreachable!("it was polled until it had ended"),
        }
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
    all.into_iter().map(Joined::result).collect()
}

/// The results of two operations, or the error of the first that failed. They run like those of [`all`].
pub(crate) async fn both<A, B>(
    one: impl Future<Output = Result<A>>,
    other: impl Future<Output = Result<B>>,
) -> Result<(A, B)> {
    let (mut one, mut other) = (Joined::Running(pin!(one)), Joined::Running(pin!(other)));
    poll_fn(|context| {
        let ended = (one.has_ended(context), other.has_ended(context));
        if ended == (true, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    Ok((one.result()?, other.result()?))
}
