//! Buffers, bitmaps, random numbers, and a way to run an entry.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::{AnyEntry, Args, Entry, Fault, Faults, Value};

pub const WIDTHS: [u32; 2] = [32, 64];
pub const STARTS: [u64; 8] = [0, 1, 7, 8, 31, 33, 64, 127];

/// A generator of random numbers: xorshift64*.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// `len` bits, each of which is set with a probability of `percent`.
    pub fn bits(&mut self, len: u64, percent: u64) -> Vec<bool> {
        (0..len).map(|_| self.below(100) < percent).collect()
    }
}

/// A bitmap in as few bytes as hold it, at an unaligned address.
pub struct Bitmap {
    bytes: Vec<u8>,
    offset: u64,
    len: usize,
}

const SHIFT: usize = 3;

impl Bitmap {
    pub fn new(bits: &[bool], offset: u64) -> Bitmap {
        let len = (offset as usize + bits.len()).div_ceil(8);
        let mut bytes = vec![0xff; SHIFT + len];
        for (i, bit) in bits.iter().enumerate() {
            let at = offset as usize + i;
            if !bit {
                bytes[SHIFT + at / 8] &= !(1 << (at % 8));
            }
        }
        Bitmap { bytes, offset, len }
    }

    pub fn input(&self) -> (In<u32>, u64) {
        In::bitmap(self.bytes[SHIFT..].as_ptr().expose_provenance() as u64, self.len as u64, self.offset)
    }
}

pub fn input<T: Value>(values: &[T]) -> In<T> {
    In::new(values.as_ptr().expose_provenance() as u64, size_of_val(values) as u64)
}

pub fn output<T: Value>(values: &mut [T]) -> Out<T> {
    Out::new(values.as_mut_ptr().expose_provenance() as u64, size_of_val(values) as u64)
}

/// Runs `entry` in as many waves as it asks for. The arguments are packed as for a GPU on the way.
/// `BOWSTRING_SEED` sets the seed of the order of waves and lanes.
pub fn run<A: Args>(entry: &'static Entry<A>, args: A, width: u32) -> Option<Fault> {
    let seed = std::env::var("BOWSTRING_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    run_in_order(entry, args, width, seed)
}

/// Runs `entry` like `run`, with waves and lanes in the order of this seed.
pub fn run_in_order<A: Args>(entry: &'static Entry<A>, args: A, width: u32, seed: u64) -> Option<Fault> {
    let mut words = vec![0; A::ARGUMENTS.len()];
    args.pack(&mut words);
    let faults = Faults::new();
    // SAFETY: callers pass memory that lives in their own stack frame, initialised, exposed by `input` and
    // `output`.
    unsafe { entry.emulate_in_order(&args, width, 0..(entry.waves)(&args, width), seed, &faults) };
    faults.first()
}
