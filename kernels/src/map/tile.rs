//! The rows that a wave works on at once, and the loads and stores of their values.

use super::function::{Native, U256};
use super::task::{HALF, MapTask, Shape};
use crate::memory::{Bits, In};
use crate::target::{Lanes, Wave, funnel};

/// The rows that a wave works on. Offsets within a tile are 32-bit arithmetic.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// The index of the tile's first row.
    pub(super) at: u64,
    shape: Shape,
    /// The number of rows from the first on, at most 2^30.
    left: u32,
    width: u32,
}

impl Tile {
    /// The accesses that have rows: all of them, or half. (No compiler knows this number, so the accesses
    /// stay one loop and do not become two copies, which would cost registers and image size.)
    #[inline(always)]
    pub(super) fn steps(&self) -> u32 {
        let half = HALF * self.shape.rows * self.width;
        if self.shape.steps > HALF && self.left > half { self.shape.steps } else { HALF }
    }

    /// The number of lanes whose rows of an access fill a word of bits.
    #[inline(always)]
    fn group(&self) -> u32 {
        32 / self.shape.rows
    }

    /// The index of a lane's word among the tile's words of bits: lane `s` of a group has the word of access
    /// `s`. Lanes beyond the accesses have none.
    #[inline(always)]
    pub(super) fn word(&self, lane: u32) -> u32 {
        lane % self.group() * (self.width / self.group()) + lane / self.group()
    }

    /// A bit for each row of a lane's word; zero if it has no word.
    #[inline(always)]
    pub(super) fn live(&self, lane: u32) -> u32 {
        let left = self.left.saturating_sub(self.word(lane) * 32);
        let ones = if left < 32 { !(!0 << left) } else { !0 };
        if lane % self.group() < self.shape.steps { ones } else { 0 }
    }

    /// Adds a lane's bits of access `step`, one for each row, to the input of `gathered`.
    #[inline(always)]
    pub(super) fn gather(
        &self,
        before: Lanes<u32>,
        bits: Lanes<u32>,
        step: u32,
        wave: &mut Wave,
    ) -> Lanes<u32> {
        if self.shape.rows == 1 {
            let set = wave.each(|l| bits.at(l) & 1 != 0);
            let mask = wave.ballot(set);
            wave.each(|l| if l.index() % 32 == step { mask.half(l.index() / 32) } else { before.at(l) })
        } else {
            wave.each(|l| before.at(l) | bits.at(l) << (step * self.shape.rows))
        }
    }

    /// Returns each lane's word of the bits of all accesses.
    ///
    /// Before, a lane holds its bits of each access, one access after the other. After, it holds a word of
    /// one access: the bits of each lane of its group, one lane after the other. So each group transposes its
    /// lanes against its accesses. An exchange swaps one bit of a lane's index with one of an access's.
    #[inline(always)]
    pub(super) fn gathered(&self, mut bits: Lanes<u32>, wave: &mut Wave) -> Lanes<u32> {
        if self.shape.rows == 1 {
            return bits;
        }
        let (mut apart, mut by) = (self.group() / 2, 16);
        while apart > 0 {
            // The bits whose index lacks the exchanged bit.
            let low = !0 / ((1 << by) + 1);
            let from = wave.each(|l| l.index() ^ apart);
            let other = wave.shuffle(bits, from);
            bits = wave.each(|l| {
                // The bits that a rotation brings in at the other end are not among those kept.
                let (kept, by) = if l.index() & apart == 0 { (low, by) } else { (!low, 32 - by) };
                let other = other.at(l).rotate_left(by);
                other ^ (other ^ bits.at(l)) & kept
            });
            (apart, by) = (apart / 2, by / 2);
        }
        bits
    }

    /// Inverts `gathered` for one access: returns the bits of a lane's rows, from the lanes' words.
    #[inline(always)]
    pub(super) fn spread(&self, word: Lanes<u32>, step: u32, wave: &mut Wave) -> Lanes<u32> {
        let from = wave.each(|l| l.index() / self.group() * self.group() + step);
        let word = wave.shuffle(word, from);
        wave.each(|l| word.at(l) >> (l.index() % self.group() * self.shape.rows))
    }

    /// Loads each lane's word of a bitmap with a bit for each row. Bits past the tile are zero.
    #[inline(always)]
    pub(super) fn bits(&self, bits: Bits, wave: &Wave) -> Lanes<u32> {
        // The tile's first row exists; lanes past the last row get zeros.
        let window = bits.window(self.at);
        wave.each(|l| window.word(self.word(l.index())) & self.live(l.index()))
    }
}

/// Loads element `i` of aligned memory, in elements of `unit` bytes (1 to 16).
#[inline(always)]
fn load_unit(memory: In<u8>, unit: u32, i: u64) -> u128 {
    match unit {
        1 => u128::from(memory.stream(i)),
        2 => u128::from(memory.cast::<u16>().stream(i)),
        4 => u128::from(memory.cast::<u32>().stream(i)),
        8 => u128::from(memory.cast::<u64>().stream(i)),
        _ => memory.cast::<u128>().stream(i),
    }
}

/// The 128 bits of `high:low` from bit `by` (below 128) on: shifts by words, then within them.
#[inline(always)]
fn join(low: u128, high: u128, by: u32) -> u128 {
    // One by one: AMD's compiler would keep closures or arrays in memory.
    let word = |of: u128, k: u32| (of >> (32 * k)) as u32;
    let (a, b, c, d) = (word(low, 0), word(low, 1), word(low, 2), word(low, 3));
    let (e, f, g, h) = (word(high, 0), word(high, 1), word(high, 2), word(high, 3));
    let (a, b, c, d, e, f) = if by & 64 == 0 { (a, b, c, d, e, f) } else { (c, d, e, f, g, h) };
    let (a, b, c, d, e) = if by & 32 == 0 { (a, b, c, d, e) } else { (b, c, d, e, f) };
    let (a, b, c, d) = (funnel(b, a, by), funnel(c, b, by), funnel(d, c, by), funnel(e, d, by));
    u128::from(a) | u128::from(b) << 32 | u128::from(c) << 64 | u128::from(d) << 96
}

/// Four of a lane's accesses.
pub(super) type Blocks = [Lanes<U256>; HALF as usize];

/// The position of a tile's values in memory.
#[derive(Clone, Copy)]
pub(super) struct Source {
    /// Memory from the aligned unit on that contains the start of the first lane's first access.
    memory: In<u8>,
    /// The number of bits of that unit before the access.
    by: u32,
    /// The index of the last unit that holds a byte of a value, at most 2^30: no later unit is read.
    last: u32,
    /// Whether the tile has all its rows and each access starts at an aligned unit.
    pub(super) whole: bool,
}

impl Source {
    #[inline(always)]
    pub(super) fn new(task: &MapTask, tile: &Tile) -> Source {
        let from = u64::from(tile.shape.from);
        let unit = u64::from(tile.shape.unit());
        let moved = task.offset / 8;
        let (by, begin) = (moved % unit, moved / unit * unit + tile.at * from);
        let last = (moved + task.len * from - 1 - begin) / unit;
        Source {
            memory: task.values.cast::<u8>().skip(begin),
            by: by as u32 * 8,
            last: last.min(1 << 30) as u32,
            whole: by == 0 && tile.left >= tile.shape.tile(tile.width),
        }
    }

    /// Loads four accesses from `step` on, of a whole tile. Each lane has the access's values side by side,
    /// the first in the lowest bits. Each access is at a fixed distance from the first.
    #[inline(always)]
    pub(super) fn load(&self, tile: &Tile, step: u32, wave: &Wave) -> Blocks {
        let (unit, units) = (tile.shape.unit(), tile.shape.units());
        let access = |k: u32| {
            wave.each(|l| {
                let i = u64::from((step + k) * tile.width * units) + u64::from(l.index() * units);
                let high = if units > 1 { load_unit(self.memory, unit, i + 1) } else { 0 };
                U256 { low: load_unit(self.memory, unit, i), high }
            })
        };
        [access(0), access(1), access(2), access(3)]
    }

    /// Loads like `load`, from any tile. An access overlaps two units (three where it is two itself), and
    /// accesses of other lanes use the rest of these. (Shuffles could fetch those: half of the loads, but
    /// ptxas guards each shuffle against absent lanes.)
    #[inline(always)]
    pub(super) fn load_apart(&self, tile: &Tile, step: u32, wave: &Wave) -> Blocks {
        let (unit, units) = (tile.shape.unit(), tile.shape.units());
        let join = |low: u128, high: u128| {
            if unit == 16 { join(low, high, self.by) } else { (low | high << (8 * unit)) >> self.by }
        };
        let access = |k: u32| {
            wave.each(|l| {
                let unit_at = |n: u32| {
                    let i = ((step + k) * tile.width + l.index()) * units + n;
                    load_unit(self.memory, unit, u64::from(i.min(self.last)))
                };
                let (low, middle) = (unit_at(0), unit_at(1));
                let high = if units > 1 { join(middle, unit_at(2)) } else { 0 };
                U256 { low: join(low, middle), high }
            })
        };
        [access(0), access(1), access(2), access(3)]
    }
}

/// Returns value `j` of those side by side in a block.
#[inline(always)]
pub(super) fn part<A: Native>(block: U256, j: u32) -> A {
    // A value of 32 bytes is alone in its block, and one of 16 has nothing above it.
    let bits = if size_of::<A>() < 16 {
        U256::from_low(block.low >> (8 * size_of::<A>() as u32 * j))
    } else {
        block
    };
    A::from_bits(bits)
}

/// Puts value `j` in its place in the block, where the bits were zero.
#[inline(always)]
pub(super) fn place<A: Native>(block: U256, value: A, j: u32) -> U256 {
    let (bits, width) = (value.to_bits(), 8 * size_of::<A>() as u32);
    if width >= 128 {
        return bits;
    }
    let bits = bits.low & ((1 << width) - 1);
    U256::from_low(block.low | bits << (width * j))
}

/// Stores a lane's values of an access, unless the lane has none.
#[inline(always)]
pub(super) fn store(task: &MapTask, tile: &Tile, step: u32, values: Lanes<U256>, wave: &Wave) {
    let Shape { rows, to, .. } = tile.shape;
    let out = task.out.skip(tile.at * u64::from(to));
    wave.each(|l| {
        // Counts the rows from the lane's first on, so that the comparison is with a constant.
        let left = tile.left as i32 - (l.index() * rows) as i32;
        if left <= (step * tile.width * rows) as i32 {
            return;
        }
        let U256 { low, high } = values.at(l);
        let i = u64::from(step * tile.width) + u64::from(l.index());
        match rows * to {
            1 => out.set(l, i, low as u8),
            2 => out.cast().set(l, i, low as u16),
            4 => out.cast().set(l, i, low as u32),
            8 => out.cast().set(l, i, low as u64),
            16 => out.cast().set(l, i, low),
            _ => out.cast().set(l, i, [low, high]),
        }
    });
}

/// Removes the first block and moves the others up. Accesses are converted in a loop with one body, not in
/// four copies: the blocks move up instead, and the compiler makes copies where the body is small. The loops
/// are written out, here and over tiles: AMD's compiler would keep in memory whatever a closure around a
/// collective captures.
#[inline(always)]
pub(super) fn moved_up(blocks: Blocks) -> Blocks {
    [blocks[1], blocks[2], blocks[3], blocks[3]]
}

/// Runs the body for each tile of this wave, passing the state along. The body MUST own what it captures:
/// AMD's compiler keeps captured references, the task's above all, in memory, together with the values they
/// point to.
#[inline(always)]
pub(super) fn each_tile<S>(
    task: &MapTask,
    shape: Shape,
    wave: &mut Wave,
    mut state: S,
    body: impl Fn(S, &Tile, &mut Wave) -> S,
) -> S {
    let width = wave.width();
    let size = u64::from(shape.tile(width));
    let mut at = wave.index() * task.tiles * size;
    let end = task.len.min(at + task.tiles * size);
    while at < end {
        let left = (task.len - at).min(1 << 30) as u32;
        state = body(state, &Tile { at, shape, left, width }, wave);
        at += size;
    }
    state
}
