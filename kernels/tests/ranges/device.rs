//! A device for the tests: memory with guard zones around it, and kernels that run on it. An access outside
//! is a failure.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::target::{AnyEntry, Args, BLOCK, Entry, Faults, Value, find};

/// Bytes on either side of the memory that a kernel may touch.
const GUARD: usize = 64;

/// The value of each guard byte.
const SENTINEL: u8 = 0xA5;

/// Memory, `shift` bytes off a 16-byte boundary.
pub struct Memory {
    block: Vec<u128>,
    start: usize,
    bytes: usize,
}

impl Memory {
    fn new(bytes: usize, shift: usize, fill: u8) -> Memory {
        let mut block = vec![u128::from_ne_bytes([SENTINEL; 16]); (bytes + shift + 2 * GUARD).div_ceil(16)];
        let start = GUARD + shift;
        // SAFETY: inside the block, which is made of bytes like everything else.
        unsafe { block.as_mut_ptr().cast::<u8>().add(start).write_bytes(fill, bytes) };
        Memory { block, start, bytes }
    }

    /// Memory that holds these values, on a 16-byte boundary.
    pub fn of<T: Value>(values: &[T]) -> Memory {
        Memory::shifted(values, 0)
    }

    /// Memory that holds these values, that many bytes off a 16-byte boundary.
    pub fn shifted<T: Value>(values: &[T], shift: usize) -> Memory {
        let mut memory = Memory::new(size_of_val(values), shift, 0);
        let start = memory.start;
        // SAFETY: the block has room for them there, and does not overlap them.
        unsafe {
            let to = memory.block.as_mut_ptr().cast::<u8>().add(start);
            core::ptr::copy_nonoverlapping(values.as_ptr().cast::<u8>(), to, size_of_val(values));
        }
        memory
    }

    /// Memory that holds these values, and then padding to the next multiple of 16 bytes.
    pub fn padded<T: Value>(values: &[T]) -> Memory {
        let mut memory = Memory::of(values);
        memory.bytes = memory.bytes.next_multiple_of(16);
        memory
    }

    /// Room for that many values, and to the next multiple of 16 bytes, filled with rubbish.
    pub fn room<T>(values: usize) -> Memory {
        Memory::new((values * size_of::<T>()).next_multiple_of(16), 0, 0x5A)
    }

    fn address(&mut self) -> u64 {
        (self.block.as_mut_ptr().expose_provenance() + self.start) as u64
    }

    pub fn input<T: Value>(&mut self) -> In<T> {
        In::new(self.address(), self.bytes as u64)
    }

    pub fn bitmap(&mut self, offset: u64) -> (In<u32>, u64) {
        In::bitmap(self.address(), self.bytes as u64, offset)
    }

    pub fn output<T: Value>(&mut self) -> Out<T> {
        Out::new(self.address(), self.bytes as u64)
    }

    /// Reads values from the start.
    pub fn read<T: Value>(&self, values: usize) -> Vec<T> {
        assert!(values * size_of::<T>() <= self.bytes);
        // SAFETY: inside the block, which is initialised.
        (0..values).map(|i| unsafe { self.bytes().as_ptr().cast::<T>().add(i).read_unaligned() }).collect()
    }

    fn all(&self) -> &[u8] {
        // SAFETY: the block's own bytes.
        unsafe { core::slice::from_raw_parts(self.block.as_ptr().cast(), self.block.len() * 16) }
    }

    fn bytes(&self) -> &[u8] {
        &self.all()[self.start..][..self.bytes]
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let all = self.all();
        // The bytes after the memory may be the padding of `padded`.
        let guards = all[..self.start].iter().chain(&all[self.start + self.bytes..]);
        if !std::thread::panicking() {
            assert!(guards.copied().all(|byte| byte == SENTINEL), "a guard zone was written");
        }
    }
}

/// The number that offsets must not exceed, as kernels take it.
pub enum Extent {
    Known(u64),
    /// The number is in memory, at an odd address, in this many bits.
    Said(Memory, u64),
}

impl Extent {
    pub fn said(number: u64, bits: u64) -> Extent {
        Extent::Said(Memory::shifted(&number.to_le_bytes()[..bits as usize / 8], 13), bits)
    }

    /// The same number as a known one, and in memory in 32 and in 64 bits.
    pub fn all(number: u64) -> [Extent; 3] {
        [Extent::Known(number), Extent::said(number, 32), Extent::said(number, 64)]
    }

    /// The arguments `limit`, `end` and `end_offset`.
    pub fn args(&mut self) -> (u64, In<u32>, u64) {
        match self {
            Extent::Known(limit) => (*limit, In::absent(), 0),
            Extent::Said(memory, bits) => {
                let (end, end_offset) = memory.bitmap(0);
                (*bits, end, end_offset)
            }
        }
    }
}

/// Runs the entry with this key in as many waves as it asks for, and checks that it touches no memory
/// outside. `BOWSTRING_SEED` sets the seed of the order of waves and lanes.
pub fn run<A: Args>(table: &'static [Entry<A>], key: &[u32], args: A, width: u32) {
    let entry = find(table, key).expect("an entry with this key");
    let (faults, waves) = (Faults::new(), (entry.waves)(&args, width));
    let seed = std::env::var("BOWSTRING_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    // SAFETY: the tests' memories are alive, exposed and initialised, and no other code accesses them.
    unsafe { entry.emulate_in_order(&args, width, 0..waves, seed, &faults) };
    assert_eq!(faults.first(), None, "{} at width {width}", entry.name);
    assert!(waves.next_multiple_of(u64::from(BLOCK / width)) >= waves);
}

/// Numbers that look random, the same every time.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end.max(1)
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    /// Ascending offsets of rows of at most `most` elements, every fifth of them empty.
    pub fn offsets(&mut self, rows: usize, most: u64) -> Vec<u64> {
        let mut offsets = vec![self.below(5)];
        for i in 0..rows {
            let len = if self.below(5) == 0 { 0 } else { self.below(most + 1) };
            offsets.push(offsets[i] + len);
        }
        offsets
    }
}

/// Numbers of rows at and around every boundary.
pub const LENGTHS: [usize; 16] = [1, 2, 31, 32, 33, 63, 64, 65, 127, 255, 1023, 1024, 1025, 2048, 3000, 4099];

/// Both widths of a wave.
pub const WIDTHS: [u32; 2] = [32, 64];
