//! L4: threads that share the work of the CPU path and of copies: a pool of our own, started by the first
//! operation that is large enough to use it.
//!
//! The one idea: [`among_threads`] is the only way into the pool. Work is shared out only on a thread of a
//! pool; if no threads can be started, all parts run in the caller's thread.
//!
//! Rayon's global pool would not do. It panics if threads cannot be started, and a child forked after its
//! first use would wait for threads that do not exist there. Our pool is started anew in a child. A caller on
//! a thread of a rayon pool stays in that pool, so `ThreadPool::install` limits the threads that we use. No
//! other file uses rayon: on a thread outside of a pool, each of its functions starts the global one.
//!
//! Rayon is passed type-erased work, because each instance of its functions compiles to some kilobytes.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::device::Device;
use crate::device::fork::{Guarded, generation};
use crate::device::interrupt::{self, Interrupted};
use crate::device::sync::Mutex;
use crate::{Error, Result};

/// The stack of a thread, and the memory that may be mapped for it besides.
const STACK: usize = 2 << 20;
const SPARE: usize = 256 << 10;

/// The pool, and the process that it belongs to. It is never dropped: a child must not touch its parent's
/// pool.
static POOL: Guarded<Option<(u32, &'static ThreadPool)>> = Guarded::new(None);

/// Runs `work` on one of the pool's threads if it is `large` enough to use several, and tells it so. The
/// switch costs some microseconds; so an operation makes it once as a whole, and nested calls cost nothing.
pub(crate) fn among_threads<T: Send>(large: bool, work: impl FnOnce(bool) -> T + Send) -> T {
    if !large || rayon::current_thread_index().is_some() {
        return work(large);
    }
    match pool() {
        Some(pool) => {
            let interrupted = Interrupted::of_this_thread();
            let (mut work, mut done) = (Some(work), None);
            install(pool, &mut || done = work.take().map(|work| interrupted.within(|| work(true))));
            done.expect("what is installed is done")
        }
        None => work(large),
    }
}

fn install(pool: &ThreadPool, work: &mut (dyn FnMut() + Send)) {
    let mut work = Some(work);
    pool.in_place_scope(|scope| {
        interrupt::look_up(|over| {
            let work = work.take();
            scope.spawn(move |_| {
                let _over = over;
                if let Some(work) = work {
                    work();
                }
            });
        })
    });
    if let Some(work) = work {
        pool.install(work);
    }
}

/// Returns the results of `work` for each part, in order, or [`Error::Interrupted`]. The parts are shared out
/// on a pool's thread (see [`among_threads`]); otherwise all run on this thread.
pub(crate) fn each_part<P: Send, T: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> T + Sync,
) -> Result<Vec<T>> {
    // The locks are never contended: each part belongs to one thread.
    let parts: Vec<Mutex<(Option<P>, Option<T>)>> =
        parts.into_iter().map(|part| Mutex::new((Some(part), None))).collect();
    each_number(parts.len(), &|i| {
        let mut part = parts[i].lock().expect("a part is one thread's");
        part.1 = part.0.take().map(&work);
    });
    let done = |part: Mutex<(Option<P>, Option<T>)>| part.into_inner().expect("no part has panicked").1;
    parts.into_iter().map(|part| done(part).ok_or(Error::Interrupted)).collect()
}

/// Calls `work` with each number, or only with some if the caller interrupts it.
fn each_number(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if rayon::current_thread_index().is_none() {
        return (0..count).take_while(|_| interrupt::check().is_ok()).for_each(work);
    }
    let interrupted = Interrupted::of_this_thread();
    (0..count).into_par_iter().for_each(|i| {
        interrupted.within(|| {
            if interrupt::check().is_ok() {
                work(i);
            }
        })
    });
}

/// As [`each_part`], with scratch memory that `made` makes for a thread. Returns the error of the first part
/// that fails.
pub(crate) fn each_part_in<P: Send, R>(
    parts: Vec<P>,
    made: impl Fn() -> R + Sync + Send,
    work: impl Fn(&mut R, usize, P) -> Result<()> + Sync + Send,
) -> Result<()> {
    let work = |room: &mut R, (i, part): (usize, P)| interrupt::check().and_then(|()| work(room, i, part));
    if rayon::current_thread_index().is_none() {
        let mut room = made();
        return parts.into_iter().enumerate().try_for_each(|part| work(&mut room, part));
    }
    let interrupted = Interrupted::of_this_thread();
    let parts = parts.into_par_iter().enumerate();
    let results = parts.map_init(made, |room, part| interrupted.within(|| work(room, part)));
    results.collect::<Vec<_>>().into_iter().collect()
}

/// Returns the number of threads that may share work begun here.
pub(crate) fn here() -> usize {
    rayon::current_thread_index().map_or(1, |_| rayon::current_num_threads())
}

/// Runs both closures, at the same time if they are `large` and the pool has threads.
pub(crate) fn join<A: Send, B: Send>(
    large: bool,
    left: impl FnOnce() -> A + Send,
    right: impl FnOnce() -> B + Send,
) -> (A, B) {
    among_threads(large, |large| {
        if !large || rayon::current_thread_index().is_none() {
            return (left(), right());
        }
        let interrupted = Interrupted::of_this_thread();
        let (mut left, mut right) = (Some(left), Some(right));
        let (mut a, mut b) = (None, None);
        both(&mut || a = left.take().map(|left| interrupted.within(left)), &mut || {
            b = right.take().map(|right| interrupted.within(right));
        });
        a.zip(b).expect("what is joined is done")
    })
}

fn both(left: &mut (dyn FnMut() + Send), right: &mut (dyn FnMut() + Send)) {
    rayon::join(left, right);
}

/// Returns this process's pool; `None` if its threads cannot be started now.
fn pool() -> Option<&'static ThreadPool> {
    let own = |pool: &Option<(u32, &'static ThreadPool)>| {
        pool.filter(|(process, _)| *process == generation()).map(|(_, pool)| pool)
    };
    if let Some(pool) = POOL.with(|pool| own(pool)) {
        return Some(pool);
    }
    let threads = threads();
    // If stacks took the last of the memory, rayon and the thread start would end the process; so the room is
    // checked first.
    drop(Device::cpu().host_pool().reserve(threads.checked_mul(STACK + SPARE)?).ok()?);
    let builder = ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK);
    // This happens outside of the lock: if two threads start a pool, the slower one's is dropped.
    let started = builder.thread_name(|i| format!("bowstring-{i}")).build().ok()?;
    POOL.with(|pool| {
        if own(pool).is_none() {
            *pool = Some((generation(), Box::leak(Box::new(started))));
        }
        own(pool)
    })
}

/// Returns the number of threads of a pool, as rayon computes it.
fn threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let there = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.filter(|threads| *threads > 0).unwrap_or_else(there)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::device::interruptible;

    /// The caller interrupts while other threads work, or does so itself: of many parts, few are begun after
    /// that.
    #[test]
    fn parts_that_are_left_when_the_caller_interrupts_are_not_begun() {
        for among in [true, false] {
            let begun = Arc::new(AtomicUsize::new(0));
            let (seen, counted) = (begun.clone(), begun.clone());
            let done = interruptible(
                Duration::ZERO,
                move || seen.load(Ordering::Relaxed) >= 10,
                || {
                    let part = |_| {
                        counted.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_micros(100));
                    };
                    match among {
                        true => among_threads(true, |_| each_part(0..20_000, part)),
                        false => each_part(0..20_000, part),
                    }
                },
            );
            assert!(matches!(done, Err(Error::Interrupted)));
            let begun = begun.load(Ordering::Relaxed);
            assert!((10..2000).contains(&begun), "{begun} parts, among threads: {among}");
        }
    }

    /// A thread that waits for its own parts may run another caller's; an interrupt of one must not affect
    /// the other.
    #[test]
    fn only_the_callers_own_work_is_interrupted() {
        let parts = || each_part(0..1000, |i| i);
        std::thread::scope(|scope| {
            for ends in [true, false, true, false] {
                scope.spawn(move || {
                    for _ in 0..100 {
                        let done = match ends {
                            true => {
                                let work = || among_threads(true, |_| parts());
                                interruptible(Duration::ZERO, || true, work)
                            }
                            false => among_threads(true, |_| parts()),
                        };
                        assert_eq!(done.is_err(), ends);
                    }
                });
            }
        });
    }
}
