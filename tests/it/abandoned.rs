//! Tests calls that are dropped before they end, as a time-out drops them: no row is lost, and none comes
//! twice. Rows are spilled, so each call waits for the device several times.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use arrow_array::{ArrayRef, Int64Array};
use bowstring::compute::{JoinBuild, JoinKind, JoinOptions, JoinProbe, SortOptions, Sorting, Spill};
use bowstring::exchange::{from_arrow, to_arrow};
use bowstring::{DeviceArray, DeviceBatch, Result};

use crate::beyond_memory::{ended, in_any_order};
use crate::groups::batch_on;
use crate::polled::woken;
use crate::support::*;

const BATCHES: usize = 5;

fn batches(target: &Target, seed: u64) -> Vec<DeviceBatch> {
    let mut random = Random::new(seed);
    let mut batch = |first: usize| {
        let keys = (0..60).map(|_| random.below(150) as i64);
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
        let rows: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..60).map(|row| (first * 60 + row) as i64)));
        batch_on(target, &[("k", keys), ("n", rows)])
    };
    (0..BATCHES).map(&mut batch).collect()
}

/// Awaits an operation as a task does, but drops it when it has been polled so often; `None` then.
fn polled<T>(polls: usize, operation: impl Future<Output = Result<T>>) -> Option<T> {
    let (mut operation, mut left) = (pin!(operation), polls);
    let (result, _) = woken(|context| {
        left -= 1;
        match operation.as_mut().poll(context) {
            Poll::Pending if left == 0 => Poll::Ready(None),
            polled => polled.map(Some),
        }
    });
    result.transpose().unwrap()
}

/// Begins an operation again and again, until it ends: the first is dropped after some polls, each later one
/// a poll later.
fn at_last<T>(polls: usize, mut operation: impl AsyncFnMut() -> Result<T>) -> T {
    (polls..=usize::MAX).find_map(|polls| polled(polls, operation())).unwrap()
}

/// The sorted rows. With a number of polls, every second batch's call is dropped after so many, and calls for
/// results are dropped again and again.
fn sorted(target: &Target, batches: &[DeviceBatch], abandoned: Option<usize>) -> Vec<DeviceBatch> {
    let mut sorting = Sorting::new(&[(0, SortOptions::default())], &target.stream).memory(1500);
    for (number, batch) in batches.iter().enumerate() {
        // The rows are added also if the call is dropped, and by the next one they are spilled.
        let polls = abandoned.filter(|_| number % 2 == 1);
        let _ = polled(polls.unwrap_or(usize::MAX), sorting.push(batch));
    }
    let mut sorted = ended(sorting.finish()).unwrap();
    let polls = abandoned.map_or(usize::MAX, |_| 1);
    std::iter::from_fn(|| at_last(polls, async || sorted.next().await)).collect()
}

#[test]
fn abandoned_sorts_go_on() {
    let target = Target::slow_emulator(32);
    let batches = batches(&target, 1);
    let right = columns_in_order(&sorted(&target, &batches, None), &target);
    assert_eq!(right.len(), 60 * BATCHES);
    assert!(right.is_sorted_by_key(|row| row.0));
    for polls in 1..12 {
        let found = columns_in_order(&sorted(&target, &batches, Some(polls)), &target);
        assert_eq!(found, right, "after {polls} polls");
    }
}

/// The rows of some batches, in their order.
fn columns_in_order(batches: &[DeviceBatch], target: &Target) -> Vec<(i64, i64)> {
    let numbers = |column: &DeviceArray| {
        let column = target.export(column);
        column.as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
    };
    let rows = batches.iter().flat_map(|batch| {
        numbers(&batch.columns()[0]).into_iter().zip(numbers(&batch.columns()[1])).collect::<Vec<_>>()
    });
    rows.collect()
}

fn joined(target: &Target, sides: &[Vec<DeviceBatch>; 2], abandoned: Option<usize>) -> Vec<String> {
    let options = JoinOptions { kind: JoinKind::Full, ..JoinOptions::default() };
    let mut build = JoinBuild::new(&options, &target.stream).memory(3000);
    for (number, left) in sides[0].iter().enumerate() {
        let polls = abandoned.filter(|_| number % 2 == 1);
        let _ = polled(polls.unwrap_or(usize::MAX), build.push(left, &left.columns()[..1]));
    }
    let built = Arc::new(ended(build.finish(1)).unwrap());
    let mut probe = JoinProbe::new(&built, sides[1][0].schema(), &target.stream);
    let polls = abandoned.map_or(usize::MAX, |_| 1);
    for right in &sides[1] {
        at_last(polls, async || probe.push(right, &right.columns()[..1]).await);
    }
    probe.end().unwrap();
    let made: Vec<_> = std::iter::from_fn(|| at_last(polls, async || probe.next().await)).collect();
    in_any_order(&made, target)
}

#[test]
fn abandoned_joins_go_on() {
    let target = Target::slow_emulator(64);
    let sides = [batches(&target, 2), batches(&target, 3)];
    let right = joined(&target, &sides, None);
    assert!(right.len() > 60 * BATCHES);
    for polls in 1..8 {
        assert_eq!(joined(&target, &sides, Some(polls)), right, "after {polls} polls");
    }
}

/// A place that reads what it gets, as one that writes files does.
#[derive(Debug, Default)]
struct Reads(AtomicUsize);

impl Spill for Reads {
    fn spill(&self, columns: Vec<DeviceArray>, _bytes: usize) -> Result<Vec<DeviceArray>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        columns.iter().map(|column| from_arrow(&to_arrow(column)?)).collect()
    }
}

/// Rows come down while a task waits, and its thread does not.
#[test]
fn spilled_rows_block_no_thread() {
    let target = Target::slow_emulator(32);
    let sides = [batches(&target, 4), batches(&target, 5)];
    let before = target.blocking_calls();
    for place in [None, Some(Arc::new(Reads::default()))] {
        let spill = place.clone().map(|place| place as Arc<dyn Spill>);
        let sorting = Sorting::new(&[(0, SortOptions::default())], &target.stream).memory(1500);
        let build = JoinBuild::new(&JoinOptions::default(), &target.stream).memory(3000);
        let (mut sorting, mut build) = match spill {
            Some(spill) => (sorting.spill_to(spill.clone()), build.spill_to(spill)),
            None => (sorting, build),
        };
        for batch in &sides[0] {
            ended(sorting.push(batch)).unwrap();
            ended(build.push(batch, &batch.columns()[..1])).unwrap();
        }
        let mut sorted = ended(sorting.finish()).unwrap();
        while ended(sorted.next()).unwrap().is_some() {}
        let built = Arc::new(ended(build.finish(1)).unwrap());
        assert!(built.is_spilled());
        let mut probe = JoinProbe::new(&built, sides[1][0].schema(), &target.stream);
        for right in &sides[1] {
            ended(probe.push(right, &right.columns()[..1])).unwrap();
        }
        probe.end().unwrap();
        while ended(probe.next()).unwrap().is_some() {}
        assert_eq!(target.blocking_calls(), before, "with a place: {}", place.is_some());
        assert!(place.is_none_or(|place| place.0.load(Ordering::Relaxed) > 5));
    }
}
