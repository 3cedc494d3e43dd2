//! The threads of the CPU path: a pool of our own, started by the first operation that is large enough to use it.
//!
//! The one idea: [`among_threads`] is the one way into the pool, and it says whether there are threads to share work with:
//! where there are none, everything runs in the caller's.
//!
//! Rayon's global pool would not do. It panics where threads cannot be started, and a child that was forked after
//! somebody used it waits for threads that it does not have. Ours is started anew there. A caller on a thread of a rayon
//! pool stays in that one, so `ThreadPool::install` says how many threads we use.
//!
//! Rayon does not know which work it is that it is handed: what it is compiled to is some kilobytes for each kind.

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::device::Device;
use crate::device::fork::{Guarded, generation};
use crate::device::sync::Mutex;

/// The stack of a thread, and what else may be mapped for it.
const STACK: usize = 2 << 20;
const SPARE: usize = 256 << 10;

/// The pool, and the process that it belongs to. Never dropped: of a parent's pool a child may touch nothing.
static POOL: Guarded<Option<(u32, &'static ThreadPool)>> = Guarded::new(None);

/// Runs `work` on one of the pool's threads where it is `large` enough to use several, and says whether it may. Going there
/// costs some microseconds: an operation does so as a whole, and what it then does goes on from there for nothing.
pub(crate) fn among_threads<T: Send>(large: bool, work: impl FnOnce(bool) -> T + Send) -> T {
    if !large || rayon::current_thread_index().is_some() {
        return work(large);
    }
    match pool() {
        Some(pool) => {
            let (mut work, mut done) = (Some(work), None);
            install(pool, &mut || done = work.take().map(|work| work(true)));
            done.expect("what is installed is done")
        }
        None => work(false),
    }
}

fn install(pool: &ThreadPool, work: &mut (dyn FnMut() + Send)) {
    pool.install(work);
}

/// What `work` makes of each part, in their order; for those who are [`among_threads`].
pub(crate) fn each_part<P: Send, T: Send>(
    parts: impl IntoIterator<Item = P>,
    work: impl Fn(P) -> T + Sync,
) -> Vec<T> {
    // Nobody waits for these locks: a part is one thread's.
    let parts: Vec<Mutex<(Option<P>, Option<T>)>> =
        parts.into_iter().map(|part| Mutex::new((Some(part), None))).collect();
    each_number(parts.len(), &|i| {
        let mut part = parts[i].lock().expect("a part is one thread's");
        part.1 = part.0.take().map(&work);
    });
    let done = |part: Mutex<(_, Option<T>)>| part.into_inner().ok()?.1;
    parts.into_iter().map(|part| done(part).expect("every part is done")).collect()
}

fn each_number(count: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(work);
}

/// Both, at the same time where they are `large` and there are threads.
pub(crate) fn join<A: Send, B: Send>(
    large: bool,
    left: impl FnOnce() -> A + Send,
    right: impl FnOnce() -> B + Send,
) -> (A, B) {
    among_threads(large, |parallel| {
        if !parallel {
            return (left(), right());
        }
        let (mut left, mut right) = (Some(left), Some(right));
        let (mut a, mut b) = (None, None);
        both(&mut || a = left.take().map(|left| left()), &mut || b = right.take().map(|right| right()));
        a.zip(b).expect("what is joined is done")
    })
}

fn both(left: &mut (dyn FnMut() + Send), right: &mut (dyn FnMut() + Send)) {
    rayon::join(left, right);
}

/// This process's pool; `None` where its threads cannot be started now.
fn pool() -> Option<&'static ThreadPool> {
    let own = |pool: &Option<(u32, &'static ThreadPool)>| {
        pool.filter(|(process, _)| *process == generation()).map(|(_, pool)| pool)
    };
    if let Some(pool) = POOL.with(|pool| own(pool)) {
        return Some(pool);
    }
    let threads = threads();
    // Where stacks take the last of the memory, rayon and what starts its threads would end the process.
    drop(Device::cpu().host_pool().reserve(threads.checked_mul(STACK + SPARE)?).ok()?);
    let builder = ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK);
    // Not under the lock: of two threads that start a pool, the slower one's ends again.
    let started = builder.thread_name(|i| format!("bowstring-{i}")).build().ok()?;
    POOL.with(|pool| {
        if own(pool).is_none() {
            *pool = Some((generation(), Box::leak(Box::new(started))));
        }
        own(pool)
    })
}

/// How many threads a pool has: as rayon counts them.
fn threads() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|threads| threads.parse().ok());
    let there = || std::thread::available_parallelism().map_or(1, usize::from);
    asked.filter(|threads| *threads > 0).unwrap_or_else(there)
}
