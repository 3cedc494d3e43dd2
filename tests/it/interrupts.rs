//! Operations on the CPU that the caller interrupts.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bowstring::{Error, interruptible};

use crate::support::work;

/// Operations that look at bitmaps at most, or know without a look that there are no nulls.
fn takes_no_time(name: &str) -> bool {
    let nulls = ["null_count", "logical_null_count", "is_null", "is_not_null", "drop_nulls"];
    let of_bits = ["fill_null of Boolean", "cast to Int32 of Boolean"];
    nulls.iter().chain(&of_bits).any(|of| name.starts_with(of))
}

#[test]
fn every_long_operation_is_interrupted() {
    let mut whole = vec![];
    for work in work::all(300_000) {
        let asked = Rc::new(Cell::new(0));
        let count = asked.clone();
        let interrupted = interruptible(
            Duration::ZERO,
            move || {
                count.set(count.get() + 1);
                true
            },
            &work.run,
        );
        match interrupted {
            Err(Error::Interrupted) => assert_eq!(asked.get(), 1, "{} asks again", work.name),
            other => whole.push(format!("{}: {other:?}", work.name)),
        }
    }
    whole.retain(|name| !takes_no_time(name));
    assert!(whole.is_empty(), "not interrupted: {whole:#?}");
}

#[test]
fn what_is_not_interrupted_is_done() {
    let asked = Rc::new(Cell::new(0));
    for work in work::all(300_000) {
        let count = asked.clone();
        let done = interruptible(
            Duration::ZERO,
            move || {
                count.set(count.get() + 1);
                false
            },
            &work.run,
        );
        done.unwrap_or_else(|error| panic!("{}: {error}", work.name));
    }
    assert!(asked.get() > 100, "asked {} times", asked.get());
    // And what was interrupted before is of no interest afterwards.
    let nested = interruptible(Duration::ZERO, || true, || interruptible(Duration::ZERO, || false, || 7));
    assert_eq!(nested, 7);
    work::to_arrow_and_back(1000).unwrap();
}
