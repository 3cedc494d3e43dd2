//! Casts between fixed-width types: one pass over the values for the new values, the new validity, the number of
//! nulls, and the first row that does not fit.
//!
//! The conversions are [`numeric`](crate::numeric)'s; here is how a wave feeds them. A **tile** is four accesses of each
//! lane, an access as many neighbouring rows as make 16 bytes of the wider type (8 rows at most). All four are loaded
//! before the first is converted. Whether values fit comes out as a few bits in each lane; these are put together to words,
//! of which lane `t` gets word `t` of the tile, and there they meet the validity: 32 rows with one `and`.
//!
//! Values may be at any address: a slice's are not on 16-byte boundaries, foreign ones need not be on any. Then an access
//! is put together from the two aligned ones it lies in. Loads past the last value repeat the last aligned access that has
//! part of one. Stores are always whole: outputs begin on a boundary and are writable up to one.
//!
//! Bytes moved: both types' widths a row, and a bit for each validity. Instructions a row: about four for each access and
//! the conversion's own; three or four exchanges between lanes an access where validity is wanted.
//!
//! Offsets of another width are direct conversions between `i32` and `i64` with one value more than there are rows:
//! the first that does not fit is an error whatever is asked for.

mod entries;

pub use entries::*;

use crate::memory::{Bits, In, Out, ones};
use crate::numeric::direct::Truth;
use crate::numeric::words::{Parameter, WORDS, Words};
use crate::numeric::{Conversion, Native, U256};
use crate::target::{Lanes, Wave};

/// Accesses of a lane in a tile, all in flight together.
const STEPS: u32 = 4;

/// What an entry is launched with, whatever its family: the fields are those of its arguments.
#[derive(Clone, Copy)]
#[allow(missing_docs, reason = "documented once, with the arguments")]
pub struct Task {
    pub values: In<u32>,
    pub offset: u64,
    pub valid: In<u32>,
    pub valid_offset: u64,
    pub len: u64,
    pub tiles: u64,
    pub out: Out<u8>,
    pub out_valid: Out<u32>,
    pub status: Out<u64>,
    pub words: [u64; WORDS],
}

/// Rows in one access of a lane, between types of these many bytes (a boolean counts as one).
const fn rows_per_access(from: usize, to: usize) -> u64 {
    let wider = if from > to { from } else { to };
    match 16 / wider as u64 {
        0 => 1,
        16 => 8,
        rows => rows,
    }
}

/// Rows in a tile of a wave of this width, between types of these many bytes. A launch takes `len / (tile * tiles)` waves,
/// rounded up.
pub const fn tile(from: usize, to: usize, width: u32) -> u64 {
    STEPS as u64 * rows_per_access(from, to) * width as u64
}

/// The rows a wave is working on.
#[derive(Clone, Copy)]
struct Tile {
    /// The first of the tile.
    at: u64,
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
    fn live(&self, t: u32) -> u32 {
        let in_tile = t < STEPS * self.words();
        if in_tile { ones(self.len.saturating_sub(self.at + u64::from(t) * 32)) } else { 0 }
    }

    /// Adds the words of access `step` to those of the accesses before: each lane's low bits, one for each row, put
    /// together, of which lane `t` keeps word `t` of the tile.
    #[inline(always)]
    fn gather(&self, before: Lanes<u32>, bits: Lanes<u32>, step: u32, wave: &mut Wave) -> Lanes<u32> {
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
    fn spread(&self, word: Lanes<u32>, step: u32, wave: &mut Wave) -> Lanes<u32> {
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
fn load(task: &Task, tile: &Tile, width: u64, wave: &Wave) -> [Lanes<U256>; STEPS as usize] {
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
fn part<A: Native>(block: U256, j: u64) -> A {
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
fn place<A: Native>(block: U256, value: A, j: u64) -> U256 {
    let (bits, width) = (value.to_bits(), 8 * size_of::<A>() as u64);
    if width >= 128 {
        return bits;
    }
    let bits = bits.low & ((1 << width) - 1);
    U256::from_low(block.low | bits << (width * j))
}

/// Stores a lane's values of an access, unless it has none.
#[inline(always)]
fn store(task: &Task, tile: &Tile, width: u64, step: u32, values: Lanes<U256>, wave: &Wave) {
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

/// Runs the body for each access of a tile with its block. A loop, not four copies: the blocks move up instead, and the
/// compiler makes copies where the body is small.
#[inline(always)]
fn each_access(
    mut blocks: [Lanes<U256>; STEPS as usize],
    wave: &mut Wave,
    mut body: impl FnMut(u32, Lanes<U256>, &mut Wave),
) {
    for step in 0..STEPS {
        body(step, blocks[0], wave);
        blocks = [blocks[1], blocks[2], blocks[3], blocks[3]];
    }
}

/// Bytes of the types, and rows in an access.
#[derive(Clone, Copy)]
struct Shape {
    from: u64,
    to: u64,
    rows: u64,
}

impl Shape {
    /// A boolean counts as a byte.
    #[inline(always)]
    const fn new(from: usize, to: usize) -> Shape {
        Shape { from: from as u64, to: to as u64, rows: rows_per_access(from, to) }
    }
}

/// Numbers to numbers.
#[inline(always)]
fn convert<C>(task: &Task, wave: &mut Wave)
where
    C: Conversion<From: Native, To: Native> + Parameter,
{
    let shape = const { Shape::new(size_of::<C::From>(), size_of::<C::To>()) };
    let block = |words: &[u64; WORDS], block: U256| {
        let conversion = C::read(&mut Words::new(*words));
        let rows = const { Shape::new(size_of::<C::From>(), size_of::<C::To>()).rows };
        (0..rows).fold((U256::ZERO, 0), |(to, fits), j| {
            let (value, good) = conversion.convert(part::<C::From>(block, j));
            (place(to, value, j), fits | u32::from(good) << j)
        })
    };
    numbers(task, shape, C::ALWAYS, one_type_on_host!(ConvertBlock, block), wave)
}

/// Booleans to numbers.
#[inline(always)]
fn bits_to<B: Native + Truth>(task: &Task, wave: &mut Wave) {
    let shape = const { Shape::new(1, size_of::<B>()) };
    let block = |bits: u32| {
        let rows = const { Shape::new(1, size_of::<B>()).rows };
        (0..rows).fold(U256::ZERO, |to, j| place(to, B::from_bool(bits >> j & 1 != 0), j))
    };
    from_booleans(task, shape, one_type_on_host!(fn(u32) -> U256, block), wave)
}

/// Numbers to booleans.
#[inline(always)]
fn bits_from<A: Native + Truth>(task: &Task, wave: &mut Wave) {
    let shape = const { Shape::new(size_of::<A>(), 1) };
    let block = |block: U256| {
        let rows = const { Shape::new(size_of::<A>(), 1).rows };
        (0..rows).fold(0, |bits, j| bits | u32::from(part::<A>(block, j).to_bool()) << j)
    };
    to_booleans(task, shape, one_type_on_host!(fn(U256) -> u32, block), wave)
}

/// Converts a lane's values of an access, with the parameters, and says with a bit for each which fit.
type ConvertBlock = fn(&[u64; WORDS], U256) -> (U256, u32);

inlined_on_devices! {
    fn numbers(
        task: &Task,
        shape: Shape,
        always: bool,
        convert: impl Fn(&[u64; WORDS], U256) -> (U256, u32) + Copy,
        wave: &mut Wave,
    ) {
        let (mut nulls, mut first) = (wave.each(|_| 0u32), wave.each(|_| u64::MAX));
        let wanted = !always && !task.status.is_absent();
        each_tile(task, shape.rows, wave, |tile, wave| {
            let blocks = load(task, tile, shape.from, wave);
            wave.loads_done();
            let mut fits = wave.each(|_| 0u32);
            each_access(blocks, wave, |step, block, wave| {
                let both = wave.each(|l| convert(&task.words, block.at(l)));
                let (converted, good) = (wave.each(|l| both.at(l).0), wave.each(|l| both.at(l).1));
                store(task, tile, shape.to, step, converted, wave);
                if wanted {
                    fits = tile.gather(fits, good, step, wave);
                }
            });
            if wanted {
                let valid = wave.each(|l| task.valid_word(tile, l.index()));
                let (counted, found) = (nulls, first);
                nulls = wave.each(|l| {
                    let null = tile.live(l.index()) & !(valid.at(l) & fits.at(l));
                    counted.at(l) + null.count_ones()
                });
                first = wave.each(|l| {
                    let bad = valid.at(l) & !fits.at(l);
                    let row = tile.at + u64::from(l.index() * 32 + bad.trailing_zeros());
                    if bad != 0 { found.at(l).min(row) } else { found.at(l) }
                });
                if !task.out_valid.is_absent() {
                    wave.each(|l| {
                        if tile.live(l.index()) != 0 {
                            let word = tile.at / 32 + u64::from(l.index());
                            task.out_valid.set(l, word, valid.at(l) & fits.at(l));
                        }
                    });
                }
            }
        });
        if wanted {
            let (nulls, first) = (wave.sum(nulls), wave.min(first));
            wave.once(|l| {
                task.status.add(l, 0, u64::from(nulls));
                if first != u64::MAX {
                    task.status.min(l, 1, first);
                }
            });
        }
    }
}

inlined_on_devices! {
    fn from_booleans(task: &Task, shape: Shape, convert: impl Fn(u32) -> U256 + Copy, wave: &mut Wave) {
        let bits = Bits::new(task.values, task.offset, task.len);
        each_tile(task, shape.rows, wave, |tile, wave| {
            let window = bits.window(tile.at);
            let words = wave.each(|l| window.word(l.index()));
            for step in 0..STEPS {
                let mine = tile.spread(words, step, wave);
                let converted = wave.each(|l| convert(mine.at(l)));
                store(task, tile, shape.to, step, converted, wave);
            }
        });
    }
}

inlined_on_devices! {
    fn to_booleans(task: &Task, shape: Shape, convert: impl Fn(U256) -> u32 + Copy, wave: &mut Wave) {
        each_tile(task, shape.rows, wave, |tile, wave| {
            let blocks = load(task, tile, shape.from, wave);
            let mut words = wave.each(|_| 0u32);
            each_access(blocks, wave, |step, block, wave| {
                let bits = wave.each(|l| convert(block.at(l)));
                words = tile.gather(words, bits, step, wave);
            });
            wave.each(|l| {
                let live = tile.live(l.index());
                if live != 0 {
                    let word = tile.at / 32 + u64::from(l.index());
                    task.out.cast().set(l, word, words.at(l) & live);
                }
            });
        });
    }
}

/// Runs the body for each tile of this wave.
#[inline(always)]
fn each_tile(task: &Task, rows: u64, wave: &mut Wave, mut body: impl FnMut(&Tile, &mut Wave)) {
    let width = u64::from(wave.width());
    let size = u64::from(STEPS) * rows * width;
    let mut at = wave.index() * task.tiles * size;
    let end = task.len.min(at + task.tiles * size);
    while at < end {
        body(&Tile { at, rows, len: task.len, width }, wave);
        at += size;
    }
}

impl Task {
    /// Which rows of lane `t`'s word are valid: none past the tile.
    #[inline(always)]
    fn valid_word(&self, tile: &Tile, t: u32) -> u32 {
        let live = tile.live(t);
        if self.valid.is_absent() {
            return live;
        }
        // The tile's first row exists; lanes past the last one get zeros.
        Bits::new(self.valid, self.valid_offset, self.len).window(tile.at).word(t) & live
    }
}
