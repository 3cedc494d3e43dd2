//! The emulator's streams and events: those of `bowstring-sim`, and the numbers that name events.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::driver::{Failure, Outcome};
use super::super::lock;
use super::super::sync::Mutex;
use super::super::sync::atomic::{AtomicUsize, Ordering};

/// The code for a handle that the emulator does not know; CUDA's invalid handle.
pub(super) const INVALID_HANDLE: i64 = 400;
/// The failure of a stream whose job panicked.
pub(super) const PANICKED: Failure = Failure { call: "a panic", code: 999, out_of_memory: false };

pub(super) type Queue = bowstring_sim::Queue<Failure>;
pub(super) type Recording = bowstring_sim::Recording<Failure>;
pub(super) type Point = bowstring_sim::Point<Failure>;

/// Every emulated event of the process, by number. A stale or foreign number is an error.
static POINTS: LazyLock<Mutex<HashMap<usize, Point>>> = LazyLock::new(Mutex::default);
static NEXT: AtomicUsize = AtomicUsize::new(1);

/// Returns a number that no other stream or event of this process has.
pub(super) fn fresh_number() -> usize {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Makes an event and returns its number.
pub(super) fn new_point() -> usize {
    let number = fresh_number();
    lock(&POINTS).insert(number, Point::default());
    number
}

/// Destroys an event; `false` if no event has the number. Waits that have begun go on.
pub(super) fn end_point(number: usize) -> bool {
    lock(&POINTS).remove(&number).is_some()
}

/// The event with this number; `call` names the failing call if none has it.
pub(super) fn point(number: usize, call: &'static str) -> Outcome<Point> {
    let found = lock(&POINTS).get(&number).cloned();
    found.ok_or(Failure { call, code: INVALID_HANDLE, out_of_memory: false })
}
