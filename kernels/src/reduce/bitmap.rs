//! Bitmaps: counting the nulls of many bitmaps in one launch; copying, negating and combining bitmaps, with
//! the null count in the same pass.
//!
//! All kernels work in units of sixteen bytes. A count reads aligned chunks that hold only wanted bits whole,
//! and the two edges word by word. A kernel that writes a bitmap writes aligned blocks. It makes each from
//! the two chunks that hold its bits, or from one chunk alone if the bits begin on a chunk's boundary. Only
//! the last block is written word by word.

use crate::memory::{Bits, Blocks, In, Out, TableRow, ones};
use crate::target::{Lane, Wave};

kernel! {
    family "bitmap";
    /// Counts the nulls of many bitmaps: `nulls[map]`, zeroed before, receives the number of unset bits of
    /// each. Each bitmap is spread over `parts` waves (see [`null_count_parts`]).
    NullCount {
        /// A [`NullCountRow`] for each bitmap.
        maps: In<u64>,
        /// The number of bitmaps.
        count: u64,
        /// The number of waves for each bitmap.
        parts: u64,
        /// Receives one number for each bitmap.
        nulls: Out<u64>,
    }
    waves |args, _| args.count * args.parts;
    /// The only entry of this kernel.
    NULL_COUNT {
        null_count = null_count,
    }
}

kernel! {
    family "bitmap";
    /// Makes a new bitmap from one or two, and counts its nulls.
    ///
    /// The copy also moves bytes to an aligned position: they are a bitmap of eight bits for each byte.
    Combine {
        /// The first bitmap, from `In::bitmap`.
        left: In<u32>,
        /// The bit offset of `left`, from `In::bitmap`.
        left_offset: u64,
        /// The second bitmap, from `In::bitmap`; absent if the entry takes only one.
        right: In<u32>,
        /// The bit offset of `right`, from `In::bitmap`.
        right_offset: u64,
        /// The length of each bitmap in bits.
        len: u64,
        /// The result in whole words, on a 16-byte boundary; bits past the end become zero.
        target: Out<u32>,
        /// One number, zeroed before, which receives how many of the result's bits are unset. May be absent.
        nulls: Out<u64>,
    }
    waves |args, _| args.len.div_ceil(BLOCKS * 128);
    /// Copy: `left`. Not: `!left`. And: `left & right`.
    COMBINE {
        bitmap_copy = copy,
        bitmap_not = not,
        bitmap_and = and,
    }
}

/// The number of blocks of 128 bits that a wave writes.
const BLOCKS: u64 = 256;

/// Blocks that a lane has in flight.
const STEP: usize = 4;

/// A bitmap in the table of [`NullCount`].
pub struct NullCountRow {
    /// The bitmap, from `In::bitmap`.
    pub words: In<u32>,
    /// The bit offset of `words`, from `In::bitmap`.
    pub offset: u64,
    /// The length of the bitmap in bits.
    pub len: u64,
}

impl TableRow for NullCountRow {
    type Words = [u64; 4];
    fn words(&self) -> [u64; 4] {
        let [address, extent] = self.words.described();
        [address, extent, self.offset, self.len]
    }
}

const ROW: u64 = NullCountRow::ROW;

/// 16-byte loads that a lane has in flight. With half of them, memory latency would take as long as the
/// transfer.
const LOADS: usize = 8;

/// Returns how many waves to spread a bitmap of `longest` bits over: one for each full step, between 1 and
/// 4096.
pub fn null_count_parts(longest: u64, width: u32) -> u64 {
    (longest / 128 / (LOADS as u64 * u64::from(width))).clamp(1, 4096)
}

fn null_count(args: &NullCount, wave: &mut Wave) {
    // Divides in 32 bits, which the limit on waves allows: a 64-bit division takes a hundred instructions
    // more.
    let (index, parts) = (wave.index() as u32, (args.parts as u32).max(1));
    let (map, part) = (u64::from(index / parts), u64::from(index % parts));
    if map >= args.count {
        return;
    }
    let words: In<u32> = args.maps.input(wave, map * ROW);
    let (offset, len) = (args.maps.get(map * ROW + 2), args.maps.get(map * ROW + 3));
    let end = offset + len;
    // The chunks `first..last` hold only wanted bits.
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

/// Loads a lane's chunks of a full step.
#[inline(always)]
fn load(chunks: In<u128>, at: u64, l: Lane<'_>, wave: &Wave) -> [u128; LOADS] {
    core::array::from_fn(|k| chunks.stream(at + u64::from(k as u32 * wave.width() + l.index())))
}

/// Returns how many wanted bits are set in this lane's word at the edges, in which chunks also hold unwanted
/// bits. Lanes 0..4 have the first chunk's words, lanes 4..8 the last one's.
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
    one(args, wave, |bits| bits)
}

fn not(args: &Combine, wave: &mut Wave) {
    one(args, wave, |bits| !bits)
}

/// Makes a bitmap from one. If its bits begin on a chunk's boundary, each chunk is loaded once and nothing is
/// shifted.
#[inline(always)]
fn one(args: &Combine, wave: &mut Wave, f: impl Fn(u128) -> u128) {
    let Some(first) = first(args, wave) else { return };
    let left = Bits::new(args.left, args.left_offset, args.len).blocks(first * 128);
    if left.are_chunks() {
        combine(args, wave, left, |i| f(left.chunk(i)))
    } else {
        combine(args, wave, left, |i| f(left.block(i)))
    }
}

fn and(args: &Combine, wave: &mut Wave) {
    let Some(first) = first(args, wave) else { return };
    let left = Bits::new(args.left, args.left_offset, args.len).blocks(first * 128);
    let right = Bits::new(args.right, args.right_offset, args.len).blocks(first * 128);
    if left.are_chunks() && right.are_chunks() {
        combine(args, wave, left, |i| left.chunk(i) & right.chunk(i))
    } else {
        combine(args, wave, left, |i| left.block(i) & right.block(i))
    }
}

/// Returns the first of a wave's blocks; `None` for a wave without blocks.
#[inline(always)]
fn first(args: &Combine, wave: &Wave) -> Option<u64> {
    let first = wave.index() * BLOCKS;
    if first * 128 < args.len { Some(first) } else { None }
}

/// Writes a wave's blocks. `from` returns a block by its index in the wave; `like` knows the number of bits.
#[inline(always)]
fn combine(args: &Combine, wave: &mut Wave, like: Blocks, from: impl Fn(u32) -> u128) {
    let first = wave.index() * BLOCKS;
    let bits = (args.len - first * 128).min(BLOCKS * 128) as u32;
    let target = args.target.cast::<u128>().skip(first);
    let mut set = wave.each(|_| 0);
    let mut at = 0;
    while at * 128 < bits {
        let begin = at;
        let place = |k: usize, l: Lane<'_>| begin + k as u32 * wave.width() + l.index();
        let mut blocks = wave.each(|l| core::array::from_fn::<u128, STEP, _>(|k| from(place(k, l))));
        if like.has((at + STEP as u32 * wave.width()) * 128) {
            wave.each(|l| {
                for (k, block) in blocks.at(l).into_iter().enumerate() {
                    target.set(l, u64::from(place(0, l)) + u64::from(k as u32 * wave.width()), block);
                }
            });
        } else {
            blocks = wave.each(|l| {
                core::array::from_fn::<u128, STEP, _>(|k| blocks.at(l)[k] & like.inside(place(k, l)))
            });
            wave.each(|l| {
                for (k, block) in blocks.at(l).into_iter().enumerate() {
                    store_words(args.target.skip(first * 4), l, place(k, l), block, bits.div_ceil(32));
                }
            });
        }
        if !args.nulls.is_absent() {
            set = wave.each(|l| blocks.at(l).iter().fold(set.at(l), |sum, block| sum + block.count_ones()));
        }
        at += STEP as u32 * wave.width();
    }
    if !args.nulls.is_absent() {
        let set = wave.sum(set);
        wave.once(|l| {
            if bits != set {
                args.nulls.add(l, 0, u64::from(bits - set))
            }
        });
    }
}

/// Writes the words of block `i` whose index is below `words`.
#[inline(always)]
fn store_words(target: Out<u32>, l: Lane<'_>, i: u32, block: u128, words: u32) {
    for w in 0..4 {
        if 4 * i + w < words {
            target.set(l, u64::from(4 * i + w), (block >> (32 * w)) as u32);
        }
    }
}
