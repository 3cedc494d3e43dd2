//! Joins of common keys, whose pairs are many times as many as the rows.

use std::sync::Arc;

use arrow_array::Int32Array;
use bowstring::compute::{JoinBuild, JoinKind, JoinOptions, JoinProbe, JoinTable};
use bowstring::expr::nth;
use bowstring::{DeviceBatch, Error};

use crate::beyond_memory::ended;
use crate::groups::batch_on;
use crate::support::*;

/// Rows of one key.
fn of_one_key(rows: usize, target: &Target) -> DeviceBatch {
    batch_on(target, &[("k", Arc::new(Int32Array::from(vec![7; rows])))])
}

/// The rows of a right batch come in halves as long as they have too many pairs; one row comes whole.
#[test]
fn pairs_of_a_common_key_come_a_part_at_a_time() {
    // Interpreters would take minutes for so many.
    for target in devices().iter().filter(|target| !target.name.contains("images") && !interpreted()) {
        let (left, right) = (of_one_key(20_000, target), of_one_key(100, target));
        let condition = JoinOptions { filter: Some(nth(0).lt(0)), ..JoinOptions::default() };
        for (options, expected) in [
            (JoinOptions::default(), vec![1_000_000; 2]),
            (JoinOptions { kind: JoinKind::Full, ..JoinOptions::default() }, vec![1_000_000; 2]),
            (JoinOptions { kind: JoinKind::LeftSemi, ..JoinOptions::default() }, vec![20_000]),
            (condition, vec![]),
        ] {
            let mut build = JoinBuild::new(&options, &target.stream);
            ended(build.push(&left, left.columns())).unwrap();
            let built = Arc::new(ended(build.finish(1)).unwrap());
            let mut probe = JoinProbe::new(&built, right.schema(), &target.stream);
            ended(probe.push(&right, right.columns())).unwrap();
            probe.end().unwrap();
            let made = std::iter::from_fn(|| ended(probe.next()).unwrap());
            let rows: Vec<usize> = made.map(|batch| batch.len()).collect();
            assert_eq!(rows, expected, "{options:?} on {target:?}");
        }
    }
}

/// Without memory for the pairs, the error says how many there are.
#[test]
fn too_many_pairs_are_counted() {
    for target in devices().iter().filter(|target| target.name.starts_with("emulator")) {
        let (left, right) = (of_one_key(20_000, target), of_one_key(100, target));
        let table = JoinTable::new(left.columns(), false, &target.stream).wait().unwrap();
        let found = table.find(right.columns(), &target.stream).wait().unwrap();
        target.stream.device().set_memory_limit(4 << 20);
        let device = target.stream.device().place().device_type;
        let refused = found.pairs(&target.stream).wait().unwrap_err();
        assert_eq!(refused, Error::TooManyPairs { pairs: 2_000_000, device });
        assert!(refused.to_string().starts_with("out of memory: 2000000 pairs of rows on "));
        let few = found.pairs_of(0..5, false, &target.stream).wait().unwrap();
        assert_eq!((few.left.len(), few.right.len()), (100_000, 100_000));
    }
}
