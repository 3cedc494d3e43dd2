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
        let class = size_class(bytes).unwrap();
        assert!(class >= bytes && class.is_multiple_of(ALIGNMENT));
        assert!(bytes < 4096 || class <= bytes + bytes / 4, "{bytes} -> {class}");
        assert_eq!(super::class(number(class)), class);
    }
}
