//! Bitmaps: counting the nulls of many in one launch; copying, negating and combining, with the null count in the same
//! pass.
//!
//! To count, bitmaps are read sixteen bytes at a time where whole aligned chunks hold only wanted bits, and word by word at
//! the two edges. What writes a bitmap works word by word, so that input at any bit offset takes the same path: four words
//! a lane in flight, and a bitmap is a thirty-second of the values it belongs to.

use crate::memory::{Bits, In, Out, ones};
use crate::target::{Lane, Wave};

kernel! {
    family "bitmap";
    /// Nulls of many bitmaps: `nulls[map]`, zeroed before, receives the number of unset bits of each.
    /// Waves: `count * parts`; each bitmap is spread over `parts` waves (see [`null_count_parts`]).
    NullCount {
        /// A [`NullCountRow`] for each bitmap.
        maps: In<u64>,
        /// How many bitmaps.
        count: u64,
        /// Waves for each.
        parts: u64,
        /// One number for each.
        nulls: Out<u64>,
    }
    /// One entry.
    NULL_COUNT {
        null_count = null_count,
    }
}

kernel! {
    family "bitmap";
    /// A new bitmap from one or two, and its null count. Waves: [`bitmap_waves`].
    ///
    /// Copying is also how bytes move to where they are aligned: a bitmap of eight bits a byte.
    Combine {
        /// From `In::bitmap`.
        left: In<u32>,
        /// Its bit offset.
        left_offset: u64,
        /// From `In::bitmap`; absent where there is only one.
        right: In<u32>,
        /// Its bit offset.
        right_offset: u64,
        /// In bits.
        len: u64,
        /// Whole words; bits past the end become zero.
        target: Out<u32>,
        /// One number, zeroed before: how many of the result's bits are unset. Or absent.
        nulls: Out<u64>,
    }
    /// Copy: `left`. Not: `!left`. And: `left & right`.
    COMBINE {
        bitmap_copy = copy,
        bitmap_not = not,
        bitmap_and = and,
    }
}

/// Words that a wave writes.
const WORDS: u64 = 256;

/// Waves of [`Combine`] for `len` bits.
pub const fn bitmap_waves(len: u64) -> u64 {
    len.div_ceil(WORDS * 32)
}

/// A bitmap in the table of [`NullCount`].
pub struct NullCountRow {
    /// From `In::bitmap`.
    pub words: In<u32>,
    /// From `In::bitmap`.
    pub offset: u64,
    /// In bits.
    pub len: u64,
}

impl NullCountRow {
    /// The row's words.
    pub fn words(&self) -> [u64; ROW as usize] {
        let [address, extent] = self.words.described();
        [address, extent, self.offset, self.len]
    }
}

/// Words in a row of the table.
const ROW: u64 = 4;

/// Sixteen-byte loads a lane has in flight.
const LOADS: usize = 4;

/// How many waves to spread a bitmap of `longest` bits over: as many as have a full step each, within reason.
pub fn null_count_parts(longest: u64, width: u32) -> u64 {
    (longest / 128 / (LOADS as u64 * u64::from(width))).clamp(1, 4096)
}

fn null_count(args: &NullCount, wave: &mut Wave) {
    // In 32 bits, which the limit on waves allows: a 64-bit division is a hundred instructions longer.
    let (index, parts) = (wave.index() as u32, (args.parts as u32).max(1));
    let (map, part) = (u64::from(index / parts), u64::from(index % parts));
    if map >= args.count {
        return;
    }
    let words: In<u32> = args.maps.input(map * ROW);
    let (offset, len) = (args.maps.get(map * ROW + 2), args.maps.get(map * ROW + 3));
    let end = offset + len;
    // Chunks `first..last` hold only wanted bits.
    let (first, last) = (offset.div_ceil(128), end / 128);
    let chunks = words.cast::<u128>();
    let step = LOADS as u64 * u64::from(wave.width());
    let mut at = first + part * step;
    let mut count = wave.each(|_| 0u32);
    while at + step <= last {
        let from = at;
        let loaded = wave.each(|l| load(chunks, from, l, wave));
        count = wave.each(|l| loaded.at(l).iter().fold(count.at(l), |sum, chunk| sum + chunk.count_ones()));
        at += u64::from(parts) * step;
    }
    if at < last {
        let left = (last - at) as u32;
        count = wave.each(|l| {
            (0..LOADS as u32).fold(count.at(l), |sum, k| {
                let i = k * wave.width() + l.index();
                let chunk = chunks.stream(at + u64::from(i.min(left - 1)));
                sum + if i < left { chunk.count_ones() } else { 0 }
            })
        });
    }
    if part == 0 {
        count = wave.each(|l| count.at(l) + edge(words, offset, end, l));
    }
    let count = wave.each(|l| u64::from(count.at(l)));
    let set = wave.sum(count);
    wave.once(|l| args.nulls.add(l, map, (if part == 0 { len } else { 0 }).wrapping_sub(set)));
}

/// A lane's chunks of a full step.
#[inline(always)]
fn load(chunks: In<u128>, at: u64, l: Lane<'_>, wave: &Wave) -> [u128; LOADS] {
    core::array::from_fn(|k| chunks.stream(at + u64::from(k as u32 * wave.width() + l.index())))
}

/// The set bits of this lane's word at the edges, where chunks hold unwanted bits too: lanes 0..4 have the first chunk's
/// words, lanes 4..8 the last one's.
#[inline(always)]
fn edge(words: In<u32>, offset: u64, end: u64, l: Lane<'_>) -> u32 {
    let (first, last) = (offset.div_ceil(128), end / 128);
    let (chunk, from, to) = match l.index() / 4 {
        0 if first <= last => (offset / 128, offset, first * 128),
        0 => (offset / 128, offset, end),
        1 if first <= last => (last, last * 128, end),
        _ => (0, 0, 0),
    };
    let word = chunk * 4 + u64::from(l.index() % 4);
    let (from, to) = (from.max(word * 32), to.min(word * 32 + 32));
    if from >= to {
        return 0;
    }
    let wanted = ones(to - word * 32) & !ones(from - word * 32);
    (words.get(word) & wanted).count_ones()
}

fn copy(args: &Combine, wave: &mut Wave) {
    let left = Bits::new(args.left, args.left_offset, args.len);
    combine(args, wave, |first| {
        let left = left.window(first);
        move |w| left.word(w)
    })
}

fn not(args: &Combine, wave: &mut Wave) {
    let left = Bits::new(args.left, args.left_offset, args.len);
    combine(args, wave, |first| {
        let (left, rest) = (left.window(first), args.len - first);
        move |w| !left.word(w) & ones(rest.saturating_sub(u64::from(w) * 32))
    })
}

fn and(args: &Combine, wave: &mut Wave) {
    let left = Bits::new(args.left, args.left_offset, args.len);
    let right = Bits::new(args.right, args.right_offset, args.len);
    combine(args, wave, |first| {
        let (left, right) = (left.window(first), right.window(first));
        move |w| left.word(w) & right.word(w)
    })
}

/// Writes a wave's words. `from` gives, for the bit a wave starts at, the function from a word's place to the word.
#[inline(always)]
fn combine<F: Fn(u32) -> u32>(args: &Combine, wave: &mut Wave, from: impl FnOnce(u64) -> F) {
    const STEP: usize = 4;
    let first = wave.index() * WORDS;
    if first * 32 >= args.len {
        return;
    }
    let f = from(first * 32);
    let words = (args.len.div_ceil(32) - first).min(WORDS) as u32;
    let target = args.target.skip(first);
    let mut set = wave.each(|_| 0);
    let mut at = 0;
    while at < words {
        let place = |k: usize, l: Lane<'_>| at + k as u32 * wave.width() + l.index();
        let loaded = wave.each(|l| core::array::from_fn::<u32, STEP, _>(|k| f(place(k, l))));
        set = wave.each(|l| {
            for (k, word) in loaded.at(l).into_iter().enumerate() {
                if place(k, l) < words {
                    target.set(l, u64::from(place(k, l)), word);
                }
            }
            loaded.at(l).iter().fold(set.at(l), |sum, word| sum + word.count_ones())
        });
        at += STEP as u32 * wave.width();
    }
    let bits = (args.len - first * 32).min(WORDS * 32);
    let set = wave.sum(set);
    wave.once(|l| {
        if !args.nulls.is_absent() && bits != u64::from(set) {
            args.nulls.add(l, 0, bits - u64::from(set))
        }
    });
}
