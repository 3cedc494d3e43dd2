//! The seeds of hashes. They differ from process to process, so that a stranger cannot choose keys whose
//! hashes are equal. No result depends on them.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

/// Decides how this thread's operations hash, for tests.
#[derive(Clone, Copy, Default)]
pub struct Hashes {
    /// Makes the seeds the same in every process.
    pub seed: Option<u64>,
    /// In so many rounds, all hashes are one of two numbers.
    pub weak_rounds: u64,
}

thread_local! {
    static HASHES: Cell<Hashes> = const { Cell::new(Hashes { seed: None, weak_rounds: 0 }) };
}

/// Sets what the hashes of this thread's operations are.
pub fn set(hashes: Hashes) {
    HASHES.set(hashes);
}

/// The number of rounds in which hashes are weak.
pub(crate) fn weak_rounds() -> u64 {
    HASHES.get().weak_rounds
}

/// Returns the seed of a round.
pub(crate) fn seed(round: u64) -> u64 {
    static SEEDS: OnceLock<RandomState> = OnceLock::new();
    match HASHES.get().seed {
        Some(seed) => seed.wrapping_add(round),
        None => SEEDS.get_or_init(RandomState::new).hash_one(round),
    }
}
