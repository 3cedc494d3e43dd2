//! Casts between fixed-width types: one pass over the values for the new values, the new validity, the number of
//! nulls, and the first row that does not fit.
//!
//! The conversions are [`numeric`](crate::numeric)'s; here is how a wave feeds them. A **tile** is four or eight accesses
//! of each lane, an access as many neighbouring rows as make 16 bytes of the wider type (8 rows at most). Four are loaded
//! before the first is converted. Whether values fit comes out as a few bits in each lane, 32 at most; groups of lanes
//! transpose these to words, one a lane, and there they meet the validity: 32 rows with one `and`.
//!
//! Values may be at any address: a slice's are not on 16-byte boundaries, foreign ones need not be on any. Then an access
//! is put together from the two aligned ones it lies in. Loads past the last value repeat the last aligned access that has
//! part of one. Stores are always whole: outputs begin on a boundary and are writable up to one.
//!
//! Bytes moved: both types' widths a row, and a bit for each validity. Instructions a row: about eight for each access and
//! the conversion's own; where validity is wanted two more, and for a tile two to four exchanges between lanes and some
//! hundred instructions: hence eight accesses.
//!
//! Offsets of another width are direct conversions between `i32` and `i64` with one value more than there are rows:
//! the first that does not fit is an error whatever is asked for.

mod entries;
mod tile;

pub use entries::*;

use tile::{Source, each_tile, moved_up, part, place, store};

use crate::memory::{Bits, In, Out};
use crate::numeric::direct::Truth;
use crate::numeric::words::{Parameter, WORDS, Words};
use crate::numeric::{Conversion, Native, Recipe, U256, Visitor};
use crate::target::Wave;

/// Accesses of a lane that are loaded together.
const HALF: u32 = 4;

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

/// Rows in a tile of a wave of this width, if there is such a cast. A launch takes `len / (tile * tiles)` waves, rounded up.
pub fn tile(recipe: &Recipe, width: u32) -> Option<u64> {
    Some(u64::from(recipe.visit(Shaped)?.tile(width)))
}

struct Shaped;

impl Visitor for Shaped {
    type Output = Shape;
    fn convert<C: Conversion<From: Native, To: Native> + Parameter>(self, _: C) -> Shape {
        Shape::of::<C>()
    }
    fn bits_to<B: Native + Truth>(self) -> Shape {
        Shape::new(1, size_of::<B>(), false)
    }
    fn bits_from<A: Native + Truth>(self) -> Shape {
        Shape::new(size_of::<A>(), 1, false)
    }
}

/// How rows are dealt to lanes.
#[derive(Clone, Copy)]
struct Shape {
    /// Bytes of a value.
    from: u32,
    /// Bytes of a new one.
    to: u32,
    /// Rows in an access of a lane.
    rows: u32,
    /// Accesses of a lane in a tile: `HALF`, or twice that where there is more to do for a tile than for its rows and
    /// registers are left. With the rows they make 32 bits at most.
    steps: u32,
}

impl Shape {
    /// Of a conversion between numbers.
    #[inline(always)]
    const fn of<C: Conversion>() -> Shape {
        Shape::new(size_of::<C::From>(), size_of::<C::To>(), !C::ALWAYS)
    }

    /// Between types of these many bytes (a boolean counts as one), and whether it is looked whether values fit.
    #[inline(always)]
    const fn new(from: usize, to: usize, checked: bool) -> Shape {
        let wider = if from > to { from } else { to } as u32;
        let rows = match wider {
            1 => 8,
            2..=16 => 16 / wider,
            _ => 1,
        };
        Shape {
            from: from as u32,
            to: to as u32,
            rows,
            steps: if checked && rows < 8 && wider < 32 && !(from == 8 && to == 8) { 2 * HALF } else { HALF },
        }
    }

    /// Rows in a tile.
    #[inline(always)]
    const fn tile(&self, width: u32) -> u32 {
        self.steps * self.rows * width
    }

    /// Bytes that are loaded at once.
    #[inline(always)]
    const fn unit(&self) -> u32 {
        let bytes = self.rows * self.from;
        if bytes < 16 { bytes } else { 16 }
    }

    /// Those in an access.
    #[inline(always)]
    const fn units(&self) -> u32 {
        self.rows * self.from / self.unit()
    }
}

/// Numbers to numbers.
#[inline(always)]
fn convert<C>(task: &Task, wave: &mut Wave)
where
    C: Conversion<From: Native, To: Native> + Parameter,
{
    let shape = const { Shape::of::<C>() };
    let block = |words: &[u64; WORDS], block: U256| {
        let conversion = C::read(&mut Words::new(*words));
        let rows = const { Shape::of::<C>().rows };
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
    let shape = const { Shape::new(1, size_of::<B>(), false) };
    let block = |bits: u32| {
        let rows = const { Shape::new(1, size_of::<B>(), false).rows };
        (0..rows).fold(U256::ZERO, |to, j| place(to, B::from_bool(bits >> j & 1 != 0), j))
    };
    from_booleans(task, shape, one_type_on_host!(fn(u32) -> U256, block), wave)
}

/// Numbers to booleans.
#[inline(always)]
fn bits_from<A: Native + Truth>(task: &Task, wave: &mut Wave) {
    let shape = const { Shape::new(size_of::<A>(), 1, false) };
    let block = |block: U256| {
        let rows = const { Shape::new(size_of::<A>(), 1, false).rows };
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
        let none = (wave.each(|_| 0u32), u64::MAX);
        let (nulls, first) = each_tile(&task, shape, wave, none, move |(nulls, first), tile, wave| {
            let live = wave.each(|l| tile.live(l.index()));
            let mut valid = live;
            if wanted && !task.valid.is_absent() {
                valid = tile.bits(Bits::new(task.valid, task.valid_offset, task.len), wave);
            }
            let source = Source::new(&task, tile);
            let mut fits = wave.each(|_| 0u32);
            let mut half = 0;
            while half < tile.steps() {
                let mut blocks =
                    if source.whole { source.load(tile, half, wave) } else { source.load_apart(tile, half, wave) };
                wave.loads_done();
                let mut step = half;
                while step < half + HALF {
                    let block = blocks[0];
                    let both = wave.each(|l| convert(&task.words, block.at(l)));
                    let (converted, good) = (wave.each(|l| both.at(l).0), wave.each(|l| both.at(l).1));
                    store(&task, tile, step, converted, wave);
                    if !always {
                        fits = tile.gather(fits, good, step, wave);
                    }
                    blocks = moved_up(blocks);
                    step += 1;
                }
                half += HALF;
            }
            if !wanted {
                return (nulls, first);
            }
            let fits = tile.gathered(fits, wave);
            let good = wave.each(|l| valid.at(l) & fits.at(l));
            if !task.out_valid.is_absent() {
                let out = task.out_valid.skip(tile.at / 32);
                wave.each(|l| {
                    if live.at(l) != 0 {
                        out.set(l, u64::from(tile.word(l.index())), good.at(l));
                    }
                });
            }
            let nulls = wave.each(|l| nulls.at(l) + (live.at(l) & !good.at(l)).count_ones());
            let bad = wave.each(|l| valid.at(l) & !fits.at(l));
            let found = wave.each(|l| bad.at(l) != 0);
            // Tiles come in order: what the first of them finds is this wave's first.
            if first == u64::MAX && wave.any(found) {
                let row = wave.each(|l| {
                    let row = tile.word(l.index()) * 32 + bad.at(l).trailing_zeros();
                    if bad.at(l) != 0 { row } else { u32::MAX }
                });
                return (nulls, tile.at + u64::from(wave.min(row)));
            }
            (nulls, first)
        });
        if wanted {
            let nulls = wave.sum(nulls);
            wave.once(|l| {
                if nulls != 0 {
                    task.status.add(l, 0, u64::from(nulls));
                }
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
        each_tile(&task, shape, wave, (), move |(), tile, wave| {
            let words = tile.bits(Bits::new(task.values, task.offset, task.len), wave);
            for step in 0..HALF {
                let mine = tile.spread(words, step, wave);
                let converted = wave.each(|l| convert(mine.at(l)));
                store(&task, tile, step, converted, wave);
            }
        });
    }
}

inlined_on_devices! {
    fn to_booleans(task: &Task, shape: Shape, convert: impl Fn(U256) -> u32 + Copy, wave: &mut Wave) {
        let task = *task;
        each_tile(&task, shape, wave, (), move |(), tile, wave| {
            let source = Source::new(&task, tile);
            let mut blocks = if source.whole { source.load(tile, 0, wave) } else { source.load_apart(tile, 0, wave) };
            let mut words = wave.each(|_| 0u32);
            for step in 0..HALF {
                let block = blocks[0];
                let bits = wave.each(|l| convert(block.at(l)));
                words = tile.gather(words, bits, step, wave);
                blocks = moved_up(blocks);
            }
            let words = tile.gathered(words, wave);
            let out = task.out.cast().skip(tile.at / 32);
            wave.each(|l| {
                let live = tile.live(l.index());
                if live != 0 {
                    out.set(l, u64::from(tile.word(l.index())), words.at(l) & live);
                }
            });
        });
    }
}
