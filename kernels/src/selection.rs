//! The rows a mask keeps: counted once, used for every column.
//!
//! Rows are handled in tiles of [`TILE`], one wave a tile, the same at either width. [`Select`] turns the mask (values and
//! validity, at any bit offset) into dense words and counts each tile; [`Offsets`] scans the counts into the first output
//! row of each tile. Two launches: a tile's count also goes into the sum of its group, so the second launch, one wave a
//! group, knows where to start by adding up the groups before it.

use crate::memory::{Bits, In, Out};
use crate::target::{Lanes, Wave};

/// Rows of a tile.
pub const TILE: u64 = 2048;
/// Words of a tile.
pub const WORDS: u64 = TILE / 32;
/// Tiles that one wave of `Select` counts: enough work for a wave, and a vector of counts for a lane of `Offsets`.
const RUN: u64 = 4;
/// Tiles of a group.
const GROUP: u64 = 1024;

/// What a selection over `len` rows needs.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Tiles of rows: waves for each column of a filter.
    pub tiles: u64,
    /// Waves of [`Select`].
    pub select: u64,
    /// Waves of [`Offsets`]; also the elements of its sums.
    pub groups: u64,
    /// Elements of the words.
    pub words: u64,
    /// Elements of the counts.
    pub counts: u64,
    /// Elements of the offsets. The last is the total.
    pub offsets: u64,
}

/// The sizes for `len` rows, at least one.
pub const fn sizes(len: u64) -> Sizes {
    let tiles = len.div_ceil(TILE);
    let counts = tiles.next_multiple_of(RUN);
    Sizes {
        tiles,
        select: counts / RUN,
        groups: tiles.div_ceil(GROUP),
        words: counts * WORDS,
        counts,
        offsets: counts + 1,
    }
}

kernel! {
    family "selection";
    /// Dense words of the mask, and how many bits each tile has. Waves: `Sizes::select`.
    Select {
        /// The mask's values (`In::bitmap`).
        mask: In<u32>,
        /// Their bit offset.
        mask_offset: u64,
        /// The mask's validity, or absent.
        valid: In<u32>,
        /// Its bit offset.
        valid_offset: u64,
        /// Rows.
        len: u64,
        /// One for each tile.
        counts: Out<u32>,
        /// Bits past the end are zero.
        words: Out<u32>,
        /// One for each group, zeroed before.
        sums: Out<u64>,
    }
    /// One entry.
    SELECT {
        selection_select = select,
    }
}

kernel! {
    family "selection";
    /// The first output row of each tile, and the total at the end. Waves: `Sizes::groups`.
    Offsets {
        /// From [`Select`].
        counts: In<u32>,
        /// From [`Select`].
        sums: In<u64>,
        /// `Sizes::counts`.
        len: u64,
        /// `Sizes::offsets` of them; aligned to 16 bytes.
        offsets: Out<u64>,
        /// The total again, for the host to read.
        total: Out<u64>,
    }
    /// One entry.
    OFFSETS {
        selection_offsets = offsets,
    }
}

fn select(args: &Select, wave: &mut Wave) {
    let first = wave.index() * RUN;
    if first * TILE >= args.len {
        return;
    }
    let mask = Bits::new(args.mask, args.mask_offset, args.len);
    let valid = Bits::new(args.valid, args.valid_offset, args.len);
    let mut selected = 0u64;
    let mut tile = first;
    while tile < first + RUN {
        let row = tile * TILE;
        let words = if row >= args.len {
            wave.each(|_| [0; 2])
        } else if valid.is_absent() {
            let mask = mask.window(row);
            tile_words(wave, |w| mask.word(w))
        } else {
            let (mask, valid) = (mask.window(row), valid.window(row));
            tile_words(wave, |w| mask.word(w) & valid.word(w))
        };
        let out = args.words.skip(tile * WORDS);
        let ones = wave.each(|l| {
            for (k, &bits) in words.at(l).iter().enumerate() {
                if word(wave, k) < WORDS as u32 {
                    out.set(l, u64::from(word(wave, k) + l.index()), bits);
                }
            }
            words.at(l)[0].count_ones() + words.at(l)[1].count_ones()
        });
        let count = wave.sum(ones);
        wave.once(|l| args.counts.set(l, tile, count));
        selected += u64::from(count);
        tile += 1;
    }
    wave.once(|l| args.sums.add(l, first / GROUP, selected));
}

/// A lane's words of a tile: two of them in a wave of 32, one (and a zero) in a wave of 64.
#[inline(always)]
fn tile_words(wave: &Wave, f: impl Fn(u32) -> u32) -> Lanes<[u32; 2]> {
    wave.each(|l| {
        core::array::from_fn(|k| if word(wave, k) < WORDS as u32 { f(word(wave, k) + l.index()) } else { 0 })
    })
}

/// The first of the words that the lanes hold together as their `k`th.
#[inline(always)]
fn word(wave: &Wave, k: usize) -> u32 {
    k as u32 * wave.width()
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

    // Neighbouring counts in each lane, four a load, all of them at once: then one scan does for the whole group.
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

/// One of four counts.
#[inline(always)]
fn count(four: u128, i: u32) -> u32 {
    (four >> (32 * i)) as u32
}
