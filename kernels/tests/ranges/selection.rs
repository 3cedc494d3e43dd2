//! Bitmaps, and selections as the kernels of their family make them.

use bowstring_kernels::memory::{In, Out};
use bowstring_kernels::select::selection::{OFFSETS, Offsets, SELECT, Select, sizes};

use crate::device::{Memory, Random, run};

pub fn packed(bits: &[bool]) -> Vec<u8> {
    let byte = |eight: &[bool]| eight.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
    bits.chunks(8).map(byte).collect()
}

pub fn unpacked(memory: &Memory, len: usize) -> Vec<bool> {
    let words: Vec<u32> = memory.read(len.div_ceil(32));
    (0..len).map(|i| words[i / 32] >> (i % 32) & 1 != 0).collect()
}

pub fn bits(rng: &mut Random, len: usize, of: u64) -> Vec<bool> {
    (0..len).map(|_| rng.below(of) == 0).collect()
}

/// A selection of some rows with its bits at an odd place, made by the kernels of the family `selection`.
pub struct Selection {
    words: Memory,
    pub offsets: Memory,
    pub rows: usize,
}

impl Selection {
    pub fn of(kept: &[bool], width: u32) -> Selection {
        let shifted: Vec<bool> = [true; 5].iter().chain(kept).copied().collect();
        let (rows, sizes) = (kept.len(), sizes(kept.len() as u64));
        let mut words = Memory::shifted(&packed(&shifted), 3);
        let (mask, mask_offset) = words.bitmap(5);
        let mut counts = Memory::room::<u32>(sizes.counts as usize);
        let mut sums = Memory::padded(&vec![0u64; sizes.groups as usize]);
        let (mut offsets, mut total) = (Memory::room::<u64>(sizes.offsets as usize), Memory::room::<u64>(1));
        let select = Select {
            mask,
            mask_offset,
            valid: In::absent(),
            valid_offset: 0,
            len: rows as u64,
            counts: counts.output(),
            words: Out::absent(),
            sums: sums.output(),
        };
        run(SELECT, &[], select, width);
        let scan = Offsets {
            counts: counts.input(),
            sums: sums.input(),
            len: sizes.counts,
            offsets: offsets.output(),
            total: total.output(),
        };
        run(OFFSETS, &[], scan, width);
        assert_eq!(total.read::<u64>(1)[0], kept.iter().filter(|kept| **kept).count() as u64);
        Selection { words, offsets, rows }
    }

    pub fn words(&mut self) -> (In<u32>, u64) {
        self.words.bitmap(5)
    }
}

pub fn rank(kept: &[bool], row: usize) -> u64 {
    kept[..row].iter().filter(|kept| **kept).count() as u64
}
