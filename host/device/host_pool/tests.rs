use std::thread;

use super::blocks::{ALIGNMENT, class, number};
use super::*;

#[test]
fn blocks_come_back_and_limits_hold() {
    let pool = HostPool::new();
    let first = pool.alloc(1000).unwrap().freeze(1000);
    let address = first.address();
    assert_eq!(address % ALIGNMENT, 0);
    drop(first);
    assert_eq!(pool.usage().in_use, 0);
    let again = pool.alloc(1000).unwrap();
    assert_eq!(again.bytes().as_ptr() as usize, address);
    assert_eq!((pool.usage().hits, pool.usage().misses), (1, 1));

    pool.set_limit(4096);
    assert!(matches!(pool.alloc(4096), Err(Error::OutOfMemory { bytes: 4096, .. })));
    assert!(matches!(pool.alloc(usize::MAX), Err(Error::OutOfMemory { .. })));
    drop(again);
    assert!(pool.alloc(4096).is_ok());
    pool.set_keep(0);
    assert_eq!(pool.usage().kept, 0);
    drop(pool.alloc(4096).unwrap());
    assert_eq!(pool.usage().kept, 0);
}

#[test]
fn classes_waste_at_most_a_quarter() {
    for bytes in
        [1, 255, 256, 257, 2048, 2049, 2561, 3072, 4095, 4096, 4097, 65_537, 1 << 30, isize::MAX as usize / 2]
    {
        let size = size_class(bytes).unwrap();
        assert!(size >= bytes && size.is_multiple_of(ALIGNMENT));
        assert!(bytes < 4096 || size <= bytes + bytes / 4, "{bytes} -> {size}");
        assert_eq!(class(number(size)), size);
    }
}

#[test]
fn what_a_threads_cache_has_does_not_count_and_is_called_back() {
    let pool = HostPool::new();
    let other = pool.clone();
    // The block returns to the cache of the thread that asked for it, not to that of the thread that drops
    // it.
    let block = thread::spawn(move || other.alloc(100_000).unwrap()).join().unwrap();
    let class = block.bytes().len();
    drop(block);
    drop(pool.reserve(1000).unwrap());
    let usage = pool.usage();
    assert_eq!((usage.in_use, usage.kept, usage.misses), (0, class, 1));

    let reserved = pool.reserve(1000).unwrap();
    pool.set_limit(class + 1000);
    assert_eq!(pool.usage().in_use, 1000);
    let block = pool.alloc(100_000).unwrap();
    assert_eq!((pool.usage().in_use, pool.usage().hits), (class + 1000, 1));
    assert!(pool.reserve(1).is_err());
    drop(block);
    assert!(pool.reserve(class + 1).is_err());
    drop(reserved);
    assert!(pool.reserve(class + 1000).is_ok());
    assert_eq!(pool.usage().in_use, 0);
}

#[test]
fn threads_reuse_their_own_blocks() {
    let pool = HostPool::new();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let blocks: Vec<HostMemory> =
                        [100, 65_536, 300_000].map(|bytes| pool.alloc(bytes).unwrap()).into();
                    let reserved = pool.reserve(10_000).unwrap();
                    drop((blocks, reserved));
                }
            });
        }
    });
    let usage = pool.usage();
    assert_eq!((usage.in_use, usage.hits + usage.misses), (0, 1200));
    assert!(usage.misses <= 12, "{usage:?}");
    pool.set_keep(0);
    assert_eq!(pool.usage().kept, 0);
}
