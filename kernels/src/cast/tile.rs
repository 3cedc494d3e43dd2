//! The rows that a wave works on at a time, and how they get in and out of registers.

use super::{STEPS, Task};
use crate::memory::{Bits, In, ones};
use crate::numeric::{Native, U256};
use crate::target::{Lanes, Wave};

/// The rows a wave is working on.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// The first of the tile.
    pub(super) at: u64,
    /// Rows in an access.
    rows: u64,
    /// One past the last row there is.
    len: u64,
    width: u64,
}

impl Tile {
    /// A lane's first row of an access.
    #[inline(always)]
    fn row(&self, step: u32, lane: u32) -> u64 {
        self.at + (u64::from(step) * self.width + u64::from(lane)) * self.rows
    }

    /// Words of bits in an access of the whole wave.
    #[inline(always)]
    fn words(&self) -> u32 {
        (self.rows * self.width / 32) as u32
    }

    /// Bits of lane `t`'s word that are rows: none past the tile.
    #[inline(always)]
    pub(super) fn live(&self, t: u32) -> u32 {
        let in_tile = t < STEPS * self.words();
        if in_tile { ones(self.len.saturating_sub(self.at + u64::from(t) * 32)) } else { 0 }
    }

    /// Adds the words of access `step` to those of the accesses before: each lane's low bits, one for each row, put
    /// together, of which lane `t` keeps word `t` of the tile.
    #[inline(always)]
    pub(super) fn gather(
        &self,
        before: Lanes<u32>,
        bits: Lanes<u32>,
        step: u32,
        wave: &mut Wave,
    ) -> Lanes<u32> {
        let (rows, words) = (self.rows as u32, self.words());
        let mine = if rows == 1 {
            let set = wave.each(|l| bits.at(l) & 1 != 0);
            let mask = wave.ballot(set);
            wave.each(|l| mask.half(l.index() % words))
        } else {
            // Each lane's bits in their place, then the lanes of a word put theirs together: all of them have it.
            let mut whole = wave.each(|l| bits.at(l) << (l.index() * rows % 32));
            let mut apart = 1;
            while apart < 32 / rows {
                let from = wave.each(|l| l.index() ^ apart);
                let other = wave.shuffle(whole, from);
                whole = wave.each(|l| whole.at(l) | other.at(l));
                apart *= 2;
            }
            let from = wave.each(|l| l.index() % words * (32 / rows));
            wave.shuffle(whole, from)
        };
        wave.each(|l| if l.index() / words == step { mine.at(l) } else { before.at(l) })
    }

    /// The inverse: the bits of a lane's rows in access `step`, from lane `t`'s word `t` of the tile.
    #[inline(always)]
    pub(super) fn spread(&self, word: Lanes<u32>, step: u32, wave: &mut Wave) -> Lanes<u32> {
        let rows = self.rows as u32;
        let from = wave.each(|l| step * self.words() + l.index() * rows / 32);
        let word = wave.shuffle(word, from);
        wave.each(|l| word.at(l) >> (l.index() * rows % 32))
    }
}

/// Aligned memory of `unit` bytes, 1 to 16.
#[inline(always)]
fn load_unit(memory: In<u32>, unit: u64, i: u64) -> u128 {
    match unit {
        1 => u128::from(memory.cast::<u8>().stream(i)),
        2 => u128::from(memory.cast::<u16>().stream(i)),
        4 => u128::from(memory.stream(i)),
        8 => u128::from(memory.cast::<u64>().stream(i)),
        _ => memory.cast::<u128>().stream(i),
    }
}

/// The values of a tile's four accesses, in each lane `rows` side by side, the first in the lowest bits.
#[inline(always)]
pub(super) fn load(task: &Task, tile: &Tile, width: u64, wave: &Wave) -> [Lanes<U256>; STEPS as usize] {
    let bytes = tile.rows * width;
    let unit = bytes.min(16);
    let moved = task.offset / 8;
    // The last unit that holds a byte of a value: none after it is read.
    let last = (moved + tile.len * width - 1) / unit;
    let by = moved % unit * 8;
    let unit_at = |i: u64| load_unit(task.values, unit, i.min(last));
    let first = |k, lane| moved / unit + tile.row(k, lane) / tile.rows * (bytes / unit);
    if by == 0 {
        let access = |k| {
            wave.each(|l| {
                let i = first(k, l.index());
                U256 { low: unit_at(i), high: if bytes > 16 { unit_at(i + 1) } else { 0 } }
            })
        };
        [access(0), access(1), access(2), access(3)]
    } else {
        // Each access lies in two units (three where it is two itself), of which the other lanes have the rest.
        let join = |low: u128, high: u128| {
            if unit == 16 { low >> by | high << (128 - by) } else { (low | high << (8 * unit)) >> by }
        };
        let access = |k| {
            wave.each(|l| {
                let i = first(k, l.index());
                let (low, middle) = (unit_at(i), unit_at(i + 1));
                let high = if bytes > 16 { join(middle, unit_at(i + 2)) } else { 0 };
                U256 { low: join(low, middle), high }
            })
        };
        [access(0), access(1), access(2), access(3)]
    }
}

/// Value `j` of those side by side in a block.
#[inline(always)]
pub(super) fn part<A: Native>(block: U256, j: u64) -> A {
    // A value of 32 bytes is alone in its block, one of 16 has nothing above it.
    let bits = if size_of::<A>() < 16 {
        U256::from_low(block.low >> (8 * size_of::<A>() as u64 * j))
    } else {
        block
    };
    A::from_bits(bits)
}

/// The block with value `j` in its place, which was zero.
#[inline(always)]
pub(super) fn place<A: Native>(block: U256, value: A, j: u64) -> U256 {
    let (bits, width) = (value.to_bits(), 8 * size_of::<A>() as u64);
    if width >= 128 {
        return bits;
    }
    let bits = bits.low & ((1 << width) - 1);
    U256::from_low(block.low | bits << (width * j))
}

/// Stores a lane's values of an access, unless it has none.
#[inline(always)]
pub(super) fn store(task: &Task, tile: &Tile, width: u64, step: u32, values: Lanes<U256>, wave: &Wave) {
    wave.each(|l| {
        let row = tile.row(step, l.index());
        if row >= tile.len {
            return;
        }
        let (U256 { low, high }, i) = (values.at(l), row / tile.rows);
        match tile.rows * width {
            1 => task.out.set(l, i, low as u8),
            2 => task.out.cast().set(l, i, low as u16),
            4 => task.out.cast().set(l, i, low as u32),
            8 => task.out.cast().set(l, i, low as u64),
            16 => task.out.cast().set(l, i, low),
            _ => task.out.cast().set(l, i, [low, high]),
        }
    });
}

/// The blocks without the first. Accesses are converted in a loop with one body, not four copies: the blocks move up
/// instead, and the compiler makes copies where the body is small. The loops are written out, here and over tiles: what a
/// closure around a collective captures AMD's compiler would keep in memory.
#[inline(always)]
pub(super) fn moved_up(blocks: [Lanes<U256>; STEPS as usize]) -> [Lanes<U256>; STEPS as usize] {
    [blocks[1], blocks[2], blocks[3], blocks[3]]
}

/// Runs the body for each tile of this wave, from state to state. It MUST own what it captures: references, the task's
/// above all, AMD's compiler would keep in memory, and what they point to with them.
#[inline(always)]
pub(super) fn each_tile<S>(
    task: &Task,
    rows: u64,
    wave: &mut Wave,
    mut state: S,
    body: impl Fn(S, &Tile, &mut Wave) -> S,
) -> S {
    let width = u64::from(wave.width());
    let size = u64::from(STEPS) * rows * width;
    let mut at = wave.index() * task.tiles * size;
    let end = task.len.min(at + task.tiles * size);
    while at < end {
        state = body(state, &Tile { at, rows, len: task.len, width }, wave);
        at += size;
    }
    state
}

impl Task {
    /// Which rows of lane `t`'s word are valid: none past the tile.
    #[inline(always)]
    pub(super) fn valid_word(&self, tile: &Tile, t: u32) -> u32 {
        let live = tile.live(t);
        if self.valid.is_absent() {
            return live;
        }
        // The tile's first row exists; lanes past the last one get zeros.
        Bits::new(self.valid, self.valid_offset, self.len).window(tile.at).word(t) & live
    }
}
