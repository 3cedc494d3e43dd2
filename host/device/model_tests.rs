//! Models of the state that all threads of a process share: the pool of host memory, and the lock that forks
//! take. [`explore`] runs a model.
//!
//! A model is a small program of several threads. `tests/models` builds this library with shuttle's locks,
//! atomics and threads (`bowstring_sim::sync`), which run one thread at a time and switch wherever threads
//! synchronise. So each run of a model is another order, and a thread that is never woken is detected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, Runner};

use super::HostPool;
use super::fork::{Guarded, after, before};
use super::sync::thread;
use crate::Error;

/// The stack of a thread that runs kernels.
const STACK: usize = 2 << 20;

/// The number of orders of a model that each of the two schedulers tries, unless `BOWSTRING_ORDERS` says
/// otherwise.
const ORDERS: usize = 4000;

/// Runs a model in many orders.
pub(crate) fn explore(model: impl Fn() + Send + Sync + 'static) {
    let asked = std::env::var("BOWSTRING_ORDERS").ok().map(|orders| orders.parse().expect("a number"));
    try_orders(asked.unwrap_or(ORDERS), model);
}

/// Half of the orders are drawn at random at each step. The other half change a fixed order of threads three
/// times, which finds errors that need one thread to be delayed for long.
fn try_orders(orders: usize, model: impl Fn() + Send + Sync + 'static) {
    let config = || {
        let mut config = Config::new();
        (config.stack_size, config.failure_persistence) = (STACK, FailurePersistence::None);
        config
    };
    let (drawn, few) = (Arc::new(model), 3);
    let model = drawn.clone();
    Runner::new(RandomScheduler::new_from_seed(1, orders), config()).run(move || drawn());
    Runner::new(PctScheduler::new_from_seed(1, few, orders), config()).run(move || model());
}

/// Whether a model that lacks a protection goes wrong in some order. `BOWSTRING_ORDERS` does not count here:
/// the first wrong order ends the search, and it may come late.
pub(crate) fn goes_wrong(model: impl Fn() + Send + Sync + 'static) -> bool {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| try_orders(ORDERS, model))).is_err()
}

#[test]
fn what_no_lock_guards_is_found() {
    assert!(goes_wrong(|| {
        let count = Arc::new(super::sync::atomic::AtomicUsize::new(0));
        let counts = count.clone();
        let other = thread::spawn(move || counts.store(counts.load(Ordering::SeqCst) + 1, Ordering::SeqCst));
        count.store(count.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        other.join().unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }));
}

#[test]
fn a_block_of_host_memory_is_one_owners_and_the_limit_holds() {
    explore(|| {
        let pool = HostPool::new();
        pool.set_limit(512);
        pool.set_keep(256);
        let work = |mark: u8| {
            let pool = pool.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut block = match pool.alloc(100) {
                        Ok(block) => block,
                        Err(error) => {
                            assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
                            continue;
                        }
                    };
                    block.bytes_mut().fill(mark);
                    thread::yield_now();
                    assert!(block.bytes().iter().all(|byte| *byte == mark));
                    let frozen = block.freeze(100);
                    assert!(pool.usage().in_use <= 512);
                    drop(frozen);
                }
            })
        };
        let threads = [1, 2, 3].map(work);
        for thread in threads {
            thread.join().unwrap();
        }
        let usage = pool.usage();
        assert_eq!(usage.in_use, 0);
        assert!(usage.kept <= 256 && usage.peak <= 512, "{usage:?}");
    });
}

#[test]
fn a_block_in_a_threads_cache_is_one_owners_and_is_called_back() {
    explore(|| {
        let pool = HostPool::new();
        let work = |mark: u8| {
            let pool = pool.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    let mut block = pool.alloc(100).unwrap();
                    let reserved = pool.reserve(1000).unwrap();
                    block.bytes_mut().fill(mark);
                    thread::yield_now();
                    assert!(block.bytes().iter().all(|byte| *byte == mark));
                    drop((reserved, block));
                }
            })
        };
        let threads = [work(1), work(2)];
        // Calls back what the caches have, at any time.
        pool.set_limit(4096);
        pool.set_limit(usize::MAX);
        for thread in threads {
            thread.join().unwrap();
        }
        let usage = pool.usage();
        assert_eq!((usage.in_use, usage.hits + usage.misses), (0, 4));
        pool.set_keep(0);
        assert_eq!(pool.usage().kept, 0);
    });
}

#[test]
fn a_limit_refuses_nothing_that_fits() {
    explore(|| {
        let pool = HostPool::new();
        pool.set_limit(512);
        let work = || {
            let pool = pool.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    drop(pool.reserve(256).expect("the other thread has as much"));
                    drop(pool.alloc(100).expect("a block has as much"));
                }
            })
        };
        for thread in [work(), work()] {
            thread.join().unwrap();
        }
        assert_eq!(pool.usage().in_use, 0);
    });
}

#[test]
fn a_thread_that_forks_finds_nobody_inside() {
    explore(|| {
        // Two values, each under its own lock.
        let values = Arc::new([Guarded::new(0), Guarded::apart(0, 0)]);
        // The standard library's type, so that reading it is no step of the model.
        let inside = Arc::new(AtomicUsize::new(0));
        let works = |number: usize| {
            let (values, inside) = (values.clone(), inside.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    values[number].with(|value| {
                        inside.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        *value += 1;
                        inside.fetch_sub(1, Ordering::SeqCst);
                    });
                }
            })
        };
        let forks = || {
            let inside = inside.clone();
            thread::spawn(move || {
                before();
                for _ in 0..3 {
                    assert_eq!(inside.load(Ordering::SeqCst), 0);
                    thread::yield_now();
                }
                after();
            })
        };
        for thread in [works(0), forks(), works(1), forks()] {
            thread.join().unwrap();
        }
        assert_eq!(values.each_ref().map(|value| value.with(|value| *value)), [2, 2]);
    });
}
