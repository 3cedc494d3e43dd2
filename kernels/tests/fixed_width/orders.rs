//! Checks what atomics leave in memory, which must be right in every order of waves and lanes. Any machine
//! that runs their kernels can use it.

use std::collections::{BTreeMap, BTreeSet};

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::selftest::*;
use bowstring_kernels::target::{Args, Entry, Value};

/// Runs kernels on the host's memory.
pub trait Machine {
    /// The lanes of a wave.
    fn width(&self) -> u32;
    /// Runs an entry in as many waves as it asks for, without a fault.
    fn run<A: Args>(&self, entry: &'static Entry<A>, args: A);
}

pub fn input<T: Value>(values: &[T]) -> In<T> {
    In::new(values.as_ptr().expose_provenance() as u64, size_of_val(values) as u64)
}

pub fn output<T: Value>(values: &mut [T]) -> Out<T> {
    Out::new(values.as_mut_ptr().expose_provenance() as u64, size_of_val(values) as u64)
}

/// The answers of one kind: each lane's number, and what it was told.
type Answers = Vec<(u64, u64)>;

/// Checks the answers of `Atomics`: those of each kind, the first sum and minimum, and what was left.
fn check(kinds: &[Answers; 4], start: [u64; 2], left: &[u64]) {
    // Each sum is what another lane left, from the first to the last.
    let sums: BTreeMap<u64, u64> = kinds[0].iter().map(|(x, old)| (*old, old + x)).collect();
    assert_eq!((0..sums.len()).fold(start[0], |sum, _| sums[&sum]), left[0]);
    assert_eq!(sums.len(), kinds[0].len());
    // The lanes that lowered the minimum found what the lane before them had left, the others one of these.
    let lowered: BTreeMap<u64, u64> =
        kinds[1].iter().filter(|(x, old)| x < old).map(|(x, old)| (*old, *x)).collect();
    let mut seen = vec![start[1]];
    (0..lowered.len()).for_each(|i| seen.push(lowered[&seen[i]]));
    assert_eq!(seen.last(), kinds[1].iter().map(|(x, _)| x).min());
    assert_eq!(seen.last(), Some(&left[1]));
    assert!(kinds[1].iter().all(|(_, old)| seen.contains(old)));
    // One lane claims each number, and all see its own.
    for claim in 0..CLAIMS as usize {
        let held = left[2 + claim];
        let of_claim = |kind: usize| kinds[kind].iter().skip(claim).step_by(CLAIMS as usize);
        let winners: Vec<u64> = of_claim(2).filter(|(_, old)| *old == 0).map(|(x, _)| *x).collect();
        assert_eq!(winners, [held]);
        assert!(of_claim(2).all(|(_, old)| *old == 0 || *old == held));
        assert!(of_claim(3).all(|(_, now)| *now == held));
    }
}

/// Runs the atomics that answer, at both widths. Returns the lanes' claims, which depend on the order.
pub fn answers(machine: &impl Machine) -> Vec<u64> {
    let (w, waves) = (machine.width() as usize, 5);
    // No two numbers are equal, so that each lane is known by its own; the least are not in the first lanes.
    let numbers: Vec<u32> = (0..w * waves).map(|i| ((i * 89 % 257) as u32 + 1) << 12 | i as u32).collect();
    let kinds = |answer: &dyn Fn(usize) -> u64, number: &dyn Fn(u32) -> u64| {
        [0, 1, 2, 3].map(|kind| {
            let of = |(i, x): (usize, &u32)| (number(*x), answer(i / w * w * 4 + kind * w + i % w));
            numbers.iter().enumerate().map(of).collect::<Answers>()
        })
    };

    let mut told = vec![0u64; numbers.len() * ANSWERS as usize];
    let mut left = [7, u64::MAX, 0, 0, 0, 0, 0];
    let args = Atomics {
        numbers: input(&numbers),
        answers: output(&mut told),
        waves: waves as u64,
        shared: output(&mut left),
    };
    machine.run(&ATOMICS[1], args);
    check(&kinds(&|i| told[i], &|x| u64::from(x) << 32 | u64::from(x)), [7, u64::MAX], &left);

    let mut told = vec![0u32; numbers.len() * ANSWERS as usize];
    let mut narrow = [7, u32::MAX, 0, 0, 0, 0, 0];
    let args = Atomics { answers: output(&mut told).cast(), shared: output(&mut narrow).cast(), ..args };
    machine.run(&ATOMICS[0], args);
    check(&kinds(&|i| told[i].into(), &u64::from), [7, u32::MAX.into()], &narrow.map(u64::from));
    left[2..].to_vec()
}

/// Finds the first row of each key in a hash table. Returns the table, in which only the places of keys
/// depend on the order.
pub fn insert(machine: &impl Machine) -> Vec<u64> {
    let keys: Vec<u32> = (0..999u32).map(|i| (i * i % 401).wrapping_mul(0x0101_0101)).collect();
    let mut firsts = BTreeMap::new();
    for (row, key) in keys.iter().enumerate() {
        firsts.entry(*key).or_insert(row as u64);
    }
    let (mut slots, mut places) = (vec![FREE; 256], vec![0u64; keys.len()]);
    let args = Insert {
        keys: input(&keys),
        len: keys.len() as u64,
        slots: output(&mut slots),
        last: 255,
        places: output(&mut places),
    };
    machine.run(&INSERT[0], args);
    let held: Vec<u64> = slots.iter().copied().filter(|slot| *slot != FREE).collect();
    let found: BTreeMap<u32, u64> =
        held.iter().map(|slot| ((slot >> 32) as u32, slot & 0xffff_ffff)).collect();
    assert_eq!(found, firsts, "each key with its first row");
    assert_eq!(held.len(), firsts.len(), "one slot a key");
    for (key, place) in keys.iter().zip(&places) {
        assert_eq!((slots[*place as usize] >> 32) as u32, *key);
    }
    slots
}

/// Runs both on machines of many seeds, which must show that they run in different orders.
pub fn in_orders<M: Machine>(seeds: std::ops::Range<u64>, machine: impl Fn(u64) -> M) {
    let enough = (seeds.end - seeds.start) as usize / 2;
    let claims: BTreeSet<Vec<u64>> = seeds.clone().map(|seed| answers(&machine(seed))).collect();
    assert!(claims.len() > enough, "{} different claims", claims.len());
    let tables: BTreeSet<Vec<u64>> = seeds.map(|seed| insert(&machine(seed))).collect();
    assert!(tables.len() > enough, "{} different tables", tables.len());
}
