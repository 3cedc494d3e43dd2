//! The common parts of the interpreters of PTX and of AMD's code objects: memory that the caller provides, a
//! record of each thread's accesses in a launch, and random orders from a seed.
//!
//! Only the end of a launch orders the lanes of these kernels. So a byte that one lane wrote and another
//! touches in the same launch is an error, unless both accesses were atomic. For simplicity an atomic load
//! beside a plain one is an error too: what is looked at atomically is about to be updated.

use std::collections::HashMap;

/// Device memory, provided by the caller. Addresses are the kernel's.
pub trait Memory {
    /// Reads `into.len()` bytes at `address`; an error explains why the access is invalid.
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), String>;
    /// Writes `from` to `address`.
    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), String>;
    /// Starts a new instruction: the accesses until the next call belong to it, made by lanes that run
    /// together.
    fn next(&mut self) {}
}

/// The accesses to a byte so far, with the thread: its block in the high 32 bits, its number in the block in
/// the low ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// One thread has read the byte.
    Read(u64),
    /// Several threads have read the byte.
    ReadByMany,
    /// One thread has written, and perhaps read, the byte.
    Written(u64),
    /// Any threads have updated or loaded the byte atomically.
    Atomic,
}

const PAGE: u64 = 256;

/// The accesses to every byte in a launch.
#[derive(Default)]
pub struct Touched {
    pages: HashMap<u64, Box<[Option<Touch>; PAGE as usize]>>,
}

impl Touched {
    /// Records an access, and refuses one that races with another thread's.
    pub fn touch(&mut self, address: u64, bytes: usize, now: Touch) -> Result<(), String> {
        let end = address.saturating_add(bytes as u64);
        let mut at = address;
        while at < end {
            let page = self.pages.entry(at / PAGE).or_insert_with(|| Box::new([None; PAGE as usize]));
            let stop = end.min((at | (PAGE - 1)).saturating_add(1));
            for byte in at..stop {
                let known = &mut page[(byte % PAGE) as usize];
                let both = match known {
                    None => Some(now),
                    Some(then) => both(*then, now),
                };
                let Some(both) = both else {
                    let then = known.map_or_else(String::new, say);
                    return Err(format!("a race at {byte:#x}: {then}, then {}", say(now)));
                };
                *known = Some(both);
            }
            at = stop;
        }
        Ok(())
    }
}

/// Combines two accesses; `None` if they race.
fn both(then: Touch, now: Touch) -> Option<Touch> {
    use Touch::*;
    match (then, now) {
        (Read(a), Read(b)) => Some(if a == b { now } else { ReadByMany }),
        (ReadByMany, Read(_) | ReadByMany) | (Read(_), ReadByMany) => Some(ReadByMany),
        (Read(a) | Written(a), Written(b)) if a == b => Some(now),
        (Written(a), Read(b)) if a == b => Some(then),
        (Atomic, Atomic) => Some(now),
        _ => None,
    }
}

fn say(touch: Touch) -> String {
    match touch {
        Touch::Read(thread) => format!("read by thread {} of block {}", thread as u32, thread >> 32),
        Touch::ReadByMany => "read by several threads".into(),
        Touch::Written(thread) => format!("written by thread {} of block {}", thread as u32, thread >> 32),
        Touch::Atomic => "accessed atomically".into(),
    }
}

/// A random sequence of numbers from a seed.
#[derive(Clone, Debug)]
pub struct Drawn(u64);

impl Drawn {
    /// Creates a sequence; each pair of numbers gives a different one, also pairs that are close together.
    pub fn new(seed: u64, of: u64) -> Drawn {
        let mixed = (seed ^ of.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Drawn((mixed ^ mixed >> 27) | 1)
    }

    /// Draws the next number of the sequence.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Draws a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.draw() as usize % bound
    }

    /// Puts items in a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        (1..items.len()).rev().for_each(|i| items.swap(i, self.below(i + 1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_accesses_that_nothing_orders_are_races() {
        let mut touched = Touched::default();
        for byte in [250, 254] {
            touched.touch(byte, 8, Touch::Read(1)).unwrap();
        }
        assert!(touched.touch(255, 1, Touch::Written(2)).is_err());
        touched.touch(255, 4, Touch::Written(1)).unwrap();
        let race = touched.touch(256, 1, Touch::Read(2)).unwrap_err();
        assert_eq!(race, "a race at 0x100: written by thread 1 of block 0, then read by thread 2 of block 0");
        touched.touch(512, 8, Touch::Atomic).unwrap();
        touched.touch(512, 8, Touch::Atomic).unwrap();
        assert!(touched.touch(519, 1, Touch::Read(1)).is_err());
        touched.touch(520, 1, Touch::Read(1)).unwrap();
        touched.touch(520, 1, Touch::Read(2)).unwrap();
        touched.touch(520, 1, Touch::ReadByMany).unwrap();
        assert!(touched.touch(520, 1, Touch::Written(1)).is_err());
    }
    #[test]
    fn numbers_close_together_give_different_sequences() {
        let pairs = (0..64).flat_map(|seed| (0..64).map(move |of| (seed, of)));
        let firsts: std::collections::HashSet<u64> =
            pairs.map(|(seed, of)| Drawn::new(seed, of).draw()).collect();
        assert_eq!(firsts.len(), 64 * 64);
        let choices = |seed| (0..8).map(|of| Drawn::new(seed, of).below(8)).collect::<Vec<_>>();
        let different: std::collections::HashSet<_> = (0..64).map(choices).collect();
        assert_eq!(different.len(), 64);
    }
}
