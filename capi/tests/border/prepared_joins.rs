//! Joins whose right rows arrive batch by batch.

use super::relational::{length, rows};
use super::*;

/// The only column of a batch, as keys.
fn key_of(batch: *const BowstringBatch) -> *mut BowstringArray {
    let mut key = null_mut();
    // SAFETY: a live handle and a place for another.
    assert_eq!(unsafe { bowstring_batch_column(batch, 0, &mut key) }, Ok);
    key
}

#[test]
fn right_rows_are_joined_batch_by_batch() {
    for kind in [1, EMULATED] {
        let device = device(kind);
        let stream = stream(device);
        let batch = |keys: Vec<Option<i32>>| {
            let keys: ArrayRef = Arc::new(Int32Array::from(keys));
            rows(device, stream, RecordBatch::try_from_iter_with_nullable([("k", keys, true)]).unwrap())
        };
        let left = batch(vec![Some(2), None, Some(3), Some(2), Some(4)]);
        let (one, two) = (batch(vec![Some(2), Some(9)]), batch(vec![None, Some(3), Some(2)]));
        let both = batch(vec![Some(2), Some(9), None, Some(3), Some(2)]);
        let keys = [left, one, two, both].map(|batch| key_of(batch).cast_const());
        // SAFETY: live handles, and places for others.
        unsafe {
            for join_kind in 0..10 {
                let options = BowstringJoinOptions {
                    size: size_of::<BowstringJoinOptions>(),
                    kind: join_kind,
                    nulls_equal: 0,
                    null_aware: 0,
                    floats_as_sql: 0,
                    filter: null(),
                };
                let mut whole = null_mut();
                assert_eq!(
                    bowstring_join(left, both, &keys[0], &keys[3], 1, &options, stream, &mut whole),
                    Ok
                );
                let mut join = null_mut();
                assert_eq!(bowstring_prepared_join_new(left, &keys[0], 1, &options, stream, &mut join), Ok);
                let mut parts = vec![];
                for (right, key) in [(one, &keys[1]), (two, &keys[2])] {
                    let mut out = null_mut();
                    assert_eq!(bowstring_prepared_join_probe(join, right, key, 1, stream, &mut out), Ok);
                    parts.push(out);
                }
                let mut rest = null_mut();
                // Asked twice, it says the same.
                assert_eq!(bowstring_prepared_join_rest(join, one, stream, &mut rest), Ok);
                bowstring_batch_free(rest);
                assert_eq!(bowstring_prepared_join_rest(join, one, stream, &mut rest), Ok);
                bowstring_prepared_join_free(join);
                parts.push(rest);
                let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_null()).collect();
                assert!(!parts.is_empty());
                let found = parts.iter().map(|part| length(*part)).sum::<u64>();
                assert_eq!(found, length(whole), "kind {join_kind}");
            }
            let (mut join, mut none) = (null_mut(), null_mut());
            assert_eq!(bowstring_prepared_join_new(left, &keys[1], 1, null(), stream, &mut join), Invalid);
            assert_eq!(bowstring_prepared_join_new(left, null(), 0, null(), stream, &mut join), Invalid);
            assert!(join.is_null());
            assert_eq!(bowstring_prepared_join_new(left, &keys[0], 1, null(), stream, &mut join), Ok);
            assert_eq!(bowstring_prepared_join_probe(join, one, &keys[0], 1, stream, &mut none), Invalid);
            assert_eq!(bowstring_prepared_join_probe(join, one, &keys[1], 1, stream, null_mut()), Invalid);
            // The pairs have no rest.
            none = left;
            assert_eq!(bowstring_prepared_join_rest(join, one, stream, &mut none), Ok);
            assert!(none.is_null());
            bowstring_prepared_join_free(join);
            keys.into_iter().for_each(|key| bowstring_array_free(key.cast_mut()));
            [left, one, two, both].into_iter().for_each(|batch| bowstring_batch_free(batch));
            bowstring_stream_free(stream);
            bowstring_device_free(device);
        }
    }
}
