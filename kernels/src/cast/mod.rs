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
mod tile;

pub use entries::*;

use tile::{each_tile, load, moved_up, part, place, store};

use crate::memory::{Bits, In, Out};
use crate::numeric::direct::Truth;
use crate::numeric::words::{Parameter, WORDS, Words};
use crate::numeric::{Conversion, Native, U256};
use crate::target::Wave;

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
        let task = *task;
        let wanted = !always && !task.status.is_absent();
        let none = (wave.each(|_| 0u32), wave.each(|_| u64::MAX));
        let (nulls, first) = each_tile(&task, shape.rows, wave, none, move |(nulls, first), tile, wave| {
            let mut blocks = load(&task, tile, shape.from, wave);
            wave.loads_done();
            let mut fits = wave.each(|_| 0u32);
            for step in 0..STEPS {
                let block = blocks[0];
                let both = wave.each(|l| convert(&task.words, block.at(l)));
                let (converted, good) = (wave.each(|l| both.at(l).0), wave.each(|l| both.at(l).1));
                store(&task, tile, shape.to, step, converted, wave);
                if wanted {
                    fits = tile.gather(fits, good, step, wave);
                }
                blocks = moved_up(blocks);
            }
            if !wanted {
                return (nulls, first);
            }
            let valid = wave.each(|l| task.valid_word(tile, l.index()));
            if !task.out_valid.is_absent() {
                wave.each(|l| {
                    if tile.live(l.index()) != 0 {
                        let word = tile.at / 32 + u64::from(l.index());
                        task.out_valid.set(l, word, valid.at(l) & fits.at(l));
                    }
                });
            }
            let counted = wave.each(|l| {
                let null = tile.live(l.index()) & !(valid.at(l) & fits.at(l));
                nulls.at(l) + null.count_ones()
            });
            let found = wave.each(|l| {
                let bad = valid.at(l) & !fits.at(l);
                let row = tile.at + u64::from(l.index() * 32 + bad.trailing_zeros());
                if bad != 0 { first.at(l).min(row) } else { first.at(l) }
            });
            (counted, found)
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
        let task = *task;
        each_tile(&task, shape.rows, wave, (), move |(), tile, wave| {
            let bits = Bits::new(task.values, task.offset, task.len);
            let window = bits.window(tile.at);
            let words = wave.each(|l| window.word(l.index()));
            for step in 0..STEPS {
                let mine = tile.spread(words, step, wave);
                let converted = wave.each(|l| convert(mine.at(l)));
                store(&task, tile, shape.to, step, converted, wave);
            }
        });
    }
}

inlined_on_devices! {
    fn to_booleans(task: &Task, shape: Shape, convert: impl Fn(U256) -> u32 + Copy, wave: &mut Wave) {
        let task = *task;
        each_tile(&task, shape.rows, wave, (), move |(), tile, wave| {
            let mut blocks = load(&task, tile, shape.from, wave);
            let mut words = wave.each(|_| 0u32);
            for step in 0..STEPS {
                let block = blocks[0];
                let bits = wave.each(|l| convert(block.at(l)));
                words = tile.gather(words, bits, step, wave);
                blocks = moved_up(blocks);
            }
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
