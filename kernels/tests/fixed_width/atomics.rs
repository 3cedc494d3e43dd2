//! Atomics that return what was there. The answer depends on the order of waves and lanes, so the tests run
//! in many orders.

use bowstring_kernels::selftest::*;
use bowstring_kernels::target::{Access, Args, Cause, Entry, Fault};

use crate::orders::{self, Machine};
use crate::support::*;

struct Emulated {
    width: u32,
    seed: u64,
}

impl Machine for Emulated {
    fn width(&self) -> u32 {
        self.width
    }

    fn run<A: Args>(&self, entry: &'static Entry<A>, args: A) {
        assert_eq!(run_in_order(entry, args, self.width, self.seed), None);
    }
}

#[test]
fn atomics_agree_in_any_order() {
    for width in WIDTHS {
        orders::in_orders(0..20, |seed| Emulated { width, seed });
    }
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let of = |seed| orders::answers(&Emulated { width: 32, seed });
    assert_eq!(of(4), of(4));
}

#[test]
fn a_full_table_ends_the_search() {
    let keys: Vec<u32> = (0..40).collect();
    let (mut slots, mut places) = (vec![FREE; 32], vec![0u64; keys.len()]);
    let args = Insert {
        keys: input(&keys),
        len: 40,
        slots: output(&mut slots),
        last: 31,
        places: output(&mut places),
    };
    assert_eq!(run(&INSERT[0], args, 32), None);
    assert!(!slots.contains(&FREE));
    assert_eq!(places.iter().filter(|place| **place == FREE).count(), 8);
}

#[test]
fn an_atomic_outside_an_extent_is_a_fault() {
    let keys = [1u32; 32];
    let (mut slots, mut places) = ([FREE; 4], [0u64; 32]);
    let args = |bytes: usize, slots: &mut [u64; 4], places: &mut [u64; 32]| Insert {
        keys: input(&keys),
        len: 32,
        slots: output(&mut slots[..bytes]),
        last: 3,
        places: output(places),
    };
    // Key 1's slot is the third: the atomic load of it is the first access outside.
    let read = Fault { argument: 2, index: 2, access: Access::Read, cause: Cause::Outside };
    assert_eq!(run(&INSERT[0], args(2, &mut slots, &mut places), 32), Some(read));
    assert_eq!(run(&INSERT[0], args(3, &mut slots, &mut places), 32), None);

    let numbers = [1u32; 32];
    let (mut answers, mut shared) = ([0u64; 128], [0u64, 9, 0, 0, 0, 0, 0]);
    let mut short = |shared: &mut [u64]| Atomics {
        numbers: input(&numbers),
        answers: output(&mut answers),
        waves: 1,
        shared: output(shared),
    };
    let write = Fault { argument: 3, index: 6, access: Access::Write, cause: Cause::Outside };
    assert_eq!(run(&ATOMICS[1], short(&mut shared[..6]), 32), Some(write));
    assert_eq!((shared[0], shared[6]), (32 << 32 | 32, 0), "the others ran, this one did not");
}
