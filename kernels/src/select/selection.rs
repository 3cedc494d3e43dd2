//! The rows that a mask keeps: counted once, and used for every column.
//!
//! Rows are handled in tiles of [`TILE`], whatever the width of a wave: one wave a tile, or one wave for
//! several tiles if few rows are kept. [`Select`] counts each tile of the mask. If the mask has validity,
//! `Select` writes both as one bitmap; otherwise filters read the mask itself, at any bit offset, because
//! another bitmap would cost a write and a read. [`Offsets`] scans the counts into the first output row of
//! each tile. Two launches are enough: a tile's count is also added to the sum of its group, so each wave of
//! the second launch, one for each group, adds up the groups before its own to know where to start.

use crate::memory::{Bits, Blocks, In, Out};
use crate::target::{Lane, Lanes, Mask, Wave};

/// The number of rows in a tile.
pub const TILE: u64 = 2048;
/// The number of 32-bit words in a tile.
pub const WORDS: u64 = TILE / 32;
/// The number of blocks of 128 rows in a tile.
const PER_TILE: u64 = TILE / 128;
/// Tiles that one wave of `Select` counts: enough that the wave's fixed costs do not matter.
const RUN: u64 = 16;
/// Blocks that a lane of `Select` has in flight.
const LOADS: usize = 4;
/// The number of tiles in a group.
pub(crate) const GROUP: u64 = 1024;

/// The sizes of the arrays that a selection over `len` rows needs.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// The number of tiles.
    pub tiles: u64,
    /// The number of elements of `sums`, one for each group.
    pub groups: u64,
    /// The number of elements of `words`.
    pub words: u64,
    /// The number of elements of `counts`.
    pub counts: u64,
    /// The number of elements of `offsets`. The last one is the total.
    pub offsets: u64,
}

/// Returns the sizes for `len` rows; `len` is at least 1.
pub const fn sizes(len: u64) -> Sizes {
    let tiles = len.div_ceil(TILE);
    let counts = tiles.next_multiple_of(RUN);
    Sizes { tiles, groups: tiles.div_ceil(GROUP), words: counts * WORDS, counts, offsets: counts + 1 }
}

kernel! {
    family "selection";
    /// Counts the kept rows of each tile, and combines the mask with its validity.
    Select {
        /// The mask's values, from `In::bitmap`.
        mask: In<u32>,
        /// The bit offset of `mask`, from `In::bitmap`.
        mask_offset: u64,
        /// The mask's validity, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        len: u64,
        /// Receives the number of kept rows of each tile.
        counts: Out<u32>,
        /// Receives the mask and its validity as one bitmap, on a 16-byte boundary; bits past the end are
        /// zero. Absent if the mask has no validity, because the mask itself is then sufficient.
        words: Out<u32>,
        /// Receives the number of kept rows of each group; zeroed before.
        sums: Out<u64>,
    }
    waves |args, _| sizes(args.len).counts / RUN;
    /// The only entry of this kernel.
    SELECT {
        selection_select = select,
    }
}

kernel! {
    family "selection";
    /// Computes the first output row of each tile, and the total at the end.
    Offsets {
        /// The number of kept rows of each tile, from [`Select`].
        counts: In<u32>,
        /// The number of kept rows of each group, from [`Select`].
        sums: In<u64>,
        /// The number of counts: `Sizes::counts`.
        len: u64,
        /// Receives the offsets, `Sizes::offsets` of them, on a 16-byte boundary.
        offsets: Out<u64>,
        /// Receives the total again, for the host to read.
        total: Out<u64>,
    }
    waves |args, _| args.len.div_ceil(GROUP);
    /// The only entry of this kernel.
    OFFSETS {
        selection_offsets = offsets,
    }
}

fn select(args: &Select, wave: &mut Wave) {
    let first = wave.index() * RUN;
    if first * TILE >= args.len {
        return;
    }
    let mask = Bits::new(args.mask, args.mask_offset, args.len).blocks(first * TILE);
    if !args.valid.is_absent() {
        let valid = Bits::new(args.valid, args.valid_offset, args.len).blocks(first * TILE);
        count_run(args, wave, mask, |i| mask.block(i) & valid.block(i))
    } else if mask.are_chunks() {
        count_run(args, wave, mask, |i| mask.chunk(i))
    } else {
        count_run(args, wave, mask, |i| mask.block(i))
    }
}

/// Counts the tiles of a run, whose blocks `f` returns. `like` knows the number of rows.
#[inline(always)]
fn count_run(args: &Select, wave: &mut Wave, like: Blocks, f: impl Fn(u32) -> u128) {
    let first = wave.index() * RUN;
    let words = args.words.cast::<u128>().skip(first * PER_TILE);
    let counts = args.counts.skip(first);
    let mut selected = wave.each(|_| 0u32);
    let mut at = 0;
    while at < (RUN * PER_TILE) as u32 {
        let begin = at;
        let place = |k: usize, l: Lane<'_>| begin + k as u32 * wave.width() + l.index();
        let mut blocks = wave.each(|l| core::array::from_fn::<u128, LOADS, _>(|k| f(place(k, l))));
        if !like.has((at + LOADS as u32 * wave.width()) * 128) {
            blocks = wave.each(|l| {
                core::array::from_fn::<u128, LOADS, _>(|k| blocks.at(l)[k] & like.inside(place(k, l)))
            });
        }
        if !args.words.is_absent() {
            wave.each(|l| {
                for (k, block) in blocks.at(l).into_iter().enumerate() {
                    words.set(l, u64::from(place(0, l)) + u64::from(k as u32 * wave.width()), block);
                }
            });
        }
        // Sixteen lanes hold a tile's blocks. Two counts of at most 2048 share a register.
        let mut low = wave.each(|l| blocks.at(l)[0].count_ones() | blocks.at(l)[1].count_ones() << 16);
        let mut high = wave.each(|l| blocks.at(l)[2].count_ones() | blocks.at(l)[3].count_ones() << 16);
        let mut by = PER_TILE as u32 / 2;
        while by > 0 {
            let partner = wave.each(|l| l.index() ^ by);
            let (other_low, other_high) = (wave.shuffle(low, partner), wave.shuffle(high, partner));
            low = wave.each(|l| low.at(l) + other_low.at(l));
            high = wave.each(|l| high.at(l) + other_high.at(l));
            by /= 2;
        }
        // The first `LOADS` lanes of each sixteen report a count.
        selected = wave.each(|l| {
            let k = l.index() % PER_TILE as u32;
            let two = if k & 2 != 0 { high.at(l) } else { low.at(l) };
            let count = two >> (16 * (k & 1)) & 0xffff;
            if k >= LOADS as u32 {
                return selected.at(l);
            }
            counts.set(l, u64::from((at + k * wave.width() + l.index()) / PER_TILE as u32), count);
            selected.at(l) + count
        });
        at += LOADS as u32 * wave.width();
    }
    let selected = wave.sum(selected);
    wave.once(|l| args.sums.add(l, first / GROUP, u64::from(selected)));
}

/// The selection bits of a tile: lane `l` holds those of rows `l * R ..`, with `R = TILE / width`.
#[derive(Clone, Copy)]
pub(crate) struct TileBits {
    low: Lanes<u32>,
    high: Lanes<u32>,
}

impl TileBits {
    /// Loads the bits of a tile from a selection's words. Bits past the end are zero.
    #[inline(always)]
    pub fn of(words: In<u32>, offset: u64, len: u64, tile: u64, wave: &Wave) -> TileBits {
        let bit = offset + tile * TILE;
        if bit % 64 == 0 && (tile + 1) * TILE <= len {
            let (words, two) = (words.skip(bit / 32), words.cast::<u64>().skip(bit / 64));
            let own = wave.each(|l| {
                let i = u64::from(l.index());
                if wave.width() == 32 { two.get(i) } else { u64::from(words.get(i)) }
            });
            return TileBits {
                low: wave.each(|l| own.at(l) as u32),
                high: wave.each(|l| (own.at(l) >> 32) as u32),
            };
        }
        let window = Bits::new(words, offset, len).window(tile * TILE);
        let each = WORDS as u32 / wave.width();
        TileBits {
            low: wave.each(|l| window.word(l.index() * each)),
            high: wave.each(|l| if each == 2 { window.word(l.index() * 2 + 1) } else { 0 }),
        }
    }

    /// Returns the bits of this lane's rows.
    #[inline(always)]
    pub fn own(self, l: Lane<'_>) -> u64 {
        u64::from(self.high.at(l)) << 32 | u64::from(self.low.at(l))
    }

    /// Returns, in each lane, the bits of the rows of lane `from`.
    #[inline(always)]
    pub fn shuffle(self, from: Lanes<u32>, wave: &mut Wave) -> Lanes<u64> {
        let low = wave.shuffle(self.low, from);
        let high = if wave.width() == 32 { wave.shuffle(self.high, from) } else { self.high };
        wave.each(|l| u64::from(high.at(l)) << 32 | u64::from(low.at(l)))
    }

    /// Returns the bits of rows `(first + k) * width ..`, one lane for each row; `first` is even.
    #[inline(always)]
    pub fn mask(self, first: u32, k: usize, wave: &mut Wave) -> Mask {
        if wave.width() == 32 {
            let half = if k % 2 == 0 { self.low } else { self.high };
            Mask::from_halves(wave.broadcast(half, first / 2 + k as u32 / 2), 0)
        } else {
            wave.mask(self.low, (first + k as u32) * 2)
        }
    }
}

fn offsets(args: &Offsets, wave: &mut Wave) {
    let (group, width) = (wave.index(), u64::from(wave.width()));
    if group * GROUP >= args.len {
        return;
    }
    let mut before = wave.each(|_| 0u64);
    let mut at = 0;
    while at < group {
        before = wave.each(|l| {
            let i = at + u64::from(l.index());
            before.at(l) + if i < group { args.sums.get(i) } else { 0 }
        });
        at += width;
    }
    let mut before = wave.sum(before);

    // Each lane loads neighbouring counts, four with each load, all at once; one scan then serves the whole
    // group.
    let vectors = (args.len - group * GROUP).min(GROUP) as u32 / 4;
    let each = GROUP as u32 / 4 / wave.width();
    let counts = args.counts.skip(group * GROUP).cast::<u128>();
    let loaded = wave.each(|l| {
        core::array::from_fn::<u128, 8, _>(|k| {
            let i = l.index() * each + k as u32;
            let four = counts.get(u64::from(i.min(vectors - 1)));
            if (k as u32) < each && i < vectors { four } else { 0 }
        })
    });
    let sum = wave.each(|l| {
        loaded.at(l).iter().fold(0, |sum, four| sum + (0..4).map(|i| count(*four, i)).sum::<u32>())
    });
    let (below, total) = wave.scan(sum);
    let out = args.offsets.skip(group * GROUP).cast::<u128>();
    wave.each(|l| {
        let mut a = before + u64::from(below.at(l));
        for (k, four) in loaded.at(l).into_iter().enumerate() {
            let i = l.index() * each + k as u32;
            let b = a + u64::from(count(four, 0));
            let c = b + u64::from(count(four, 1));
            let d = c + u64::from(count(four, 2));
            if (k as u32) < each && i < vectors {
                out.set(l, u64::from(2 * i), u128::from(b) << 64 | u128::from(a));
                out.set(l, u64::from(2 * i + 1), u128::from(d) << 64 | u128::from(c));
            }
            a = d + u64::from(count(four, 3));
        }
    });
    before += u64::from(total);
    if (group + 1) * GROUP >= args.len {
        wave.once(|l| {
            args.offsets.set(l, args.len, before);
            args.total.set(l, 0, before);
        });
    }
}

/// Returns one of four counts.
#[inline(always)]
fn count(four: u128, i: u32) -> u32 {
    (four >> (32 * i)) as u32
}
