//! Filter of bitmaps (booleans and validity), with the null count in the same pass.
//!
//! A lane has 256 neighbouring rows, and a scan over the lanes' counts tells it the position of its first
//! kept bit. It compacts word after word (the kept bits move to the bottom), and appends the result to the
//! word that it is filling. Words that only its own bits fill are stored. The two words at its ends may also
//! have bits of neighbours, so it adds its bits to zeroed words by an atomic addition. No branch depends on a
//! word: if half of the rows are kept, nearly every word is a mixed one. If all lanes keep all of their rows
//! or none, the wave takes a shorter path.
//!
//! Bytes moved: mask and bitmap once, in 16-byte loads, and the result; two atomic additions for 256 rows.

use super::selection::TILE;
use crate::column::{ColumnRow, MovedRow};
use crate::memory::{Bits, Blocks, In, Out, TableRow};
use crate::target::{Lane, Lanes, Wave};

kernel! {
    family "filter";
    /// Filters many bitmaps in one launch.
    FilterBits {
        /// A [`MovedRow`] for each bitmap: zeroed words for as many bits as the selection's total.
        table: In<u64>,
        /// The number of bitmaps.
        columns: u64,
        /// The number of waves for each bitmap, from [`filter_bits_spans`].
        spans: u64,
        /// The number of rows.
        len: u64,
        /// The mask (from `In::bitmap`), or the words that `Select` wrote.
        words: In<u32>,
        /// The bit offset of `words`.
        words_offset: u64,
        /// The first output row of each tile, from the kernel `Offsets`.
        offsets: In<u64>,
        /// One number for each bitmap, zeroed before: receives how many of the selected bits are unset.
        nulls: Out<u64>,
    }
    waves |args, _| args.columns * args.spans;
    /// The only entry of this kernel.
    FILTER_BITS {
        filter_bits = filter_bits,
    }
}

/// The number of blocks of 128 rows that a lane has.
const BLOCKS: u32 = 2;

/// Returns how many waves [`FilterBits`] uses for each bitmap of `len` bits, at a wave's width.
pub const fn filter_bits_spans(len: u64, width: u32) -> u64 {
    len.div_ceil(span(width))
}

/// Returns the number of rows of a wave, which is a whole number of tiles.
pub(crate) const fn span(width: u32) -> u64 {
    width as u64 * BLOCKS as u64 * 128
}

fn filter_bits(args: &FilterBits, wave: &mut Wave) {
    let (index, spans) = (wave.index() as u32, (args.spans as u32).max(1));
    let (column, first) = (u64::from(index / spans), u64::from(index % spans) * span(wave.width()));
    if column >= args.columns || first >= args.len {
        return;
    }
    // The offsets cover a whole number of runs of tiles; those past the last tile are the total.
    let (tile, tiles) = (first / TILE, span(wave.width()) / TILE);
    let to = args.offsets.get(tile);
    if to == args.offsets.get(tile + tiles) {
        return;
    }
    let part = Part { column, first, to };
    compact(args.table, (args.words, args.words_offset, args.len), part, args.nulls, wave);
}

/// The part of a bitmap that a wave filters.
pub(crate) struct Part {
    /// The bitmap's number in the table.
    pub column: u64,
    /// The first row, and the first row of the output.
    pub first: u64,
    pub to: u64,
}

/// Filters a part of a bitmap.
#[inline(always)]
pub(crate) fn compact(
    table: In<u64>,
    (mask, mask_offset, len): (In<u32>, u64, u64),
    Part { column, first, to }: Part,
    nulls: Out<u64>,
    wave: &mut Wave,
) {
    let row = column * MovedRow::ROW;
    let selection = Bits::new(mask, mask_offset, len).blocks(first);
    let source = Bits::new(table.input(wave, row), table.get(row + ColumnRow::OFFSET), len).blocks(first);
    let target: Out<u32> = table.output(wave, row + MovedRow::TARGET);
    let bits = load(wave, source);
    let mut kept = load(wave, selection);
    if !selection.has(span(wave.width()) as u32) {
        kept = wave.each(|l| {
            let [a, b] = kept.at(l);
            [a & selection.inside(l.index() * BLOCKS), b & selection.inside(l.index() * BLOCKS + 1)]
        });
    }
    let count = wave.each(|l| {
        let [a, b, c, d, e, f, g, h] = words(kept.at(l));
        let ones = u32::count_ones;
        ones(a) + ones(b) + ones(c) + ones(d) + ones(e) + ones(f) + ones(g) + ones(h)
    });
    let (before, _) = wave.scan(count);
    // If each lane keeps all of its rows or none, as in long runs, no bit has to move within a word.
    let mixed = wave.each(|l| count.at(l) % (BLOCKS * 128) != 0);
    let mixed = wave.any(mixed);
    let unset = wave.each(|l| {
        let (kept, bits) = (words(kept.at(l)), words(bits.at(l)));
        let to = to + u64::from(before.at(l));
        let mut filling =
            Filling { target: target.skip(to / 32), first: 0, word: 0, bits: to as u32 % 32, set: 0 };
        // Written out, because values that a loop indexes would lie in memory.
        if mixed {
            filling.append(l, extract(bits[0], kept[0]), kept[0]);
            filling.append(l, extract(bits[1], kept[1]), kept[1]);
            filling.append(l, extract(bits[2], kept[2]), kept[2]);
            filling.append(l, extract(bits[3], kept[3]), kept[3]);
            filling.append(l, extract(bits[4], kept[4]), kept[4]);
            filling.append(l, extract(bits[5], kept[5]), kept[5]);
            filling.append(l, extract(bits[6], kept[6]), kept[6]);
            filling.append(l, extract(bits[7], kept[7]), kept[7]);
        } else if count.at(l) != 0 {
            filling.append(l, bits[0], !0);
            filling.append(l, bits[1], !0);
            filling.append(l, bits[2], !0);
            filling.append(l, bits[3], !0);
            filling.append(l, bits[4], !0);
            filling.append(l, bits[5], !0);
            filling.append(l, bits[6], !0);
            filling.append(l, bits[7], !0);
        }
        if filling.first != 0 {
            filling.target.add(l, 0, filling.first);
        }
        if filling.word != 0 {
            filling.target.add(l, u64::from(filling.bits / 32), filling.word);
        }
        count.at(l) - filling.set
    });
    let unset = wave.sum(unset);
    wave.once(|l| {
        if unset != 0 {
            nulls.add(l, column, u64::from(unset))
        }
    });
}

/// The state of a lane's output.
struct Filling {
    /// The output, from the lane's first word on.
    target: Out<u32>,
    /// The first word, once it is full: other lanes may have bits in it.
    first: u32,
    /// The word that is not full yet.
    word: u32,
    /// The number of bits so far, including those before the lane's own in the first word.
    bits: u32,
    /// The number of set bits so far.
    set: u32,
}

impl Filling {
    /// Appends the bits that `mask` selects.
    #[inline(always)]
    fn append(&mut self, l: Lane<'_>, compact: u32, mask: u32) {
        self.set += compact.count_ones();
        let both = u64::from(compact) << (self.bits % 32) | u64::from(self.word);
        let at = self.bits / 32;
        self.bits += mask.count_ones();
        // Chooses values instead of branching, because lanes would diverge.
        let full = self.bits / 32 != at;
        if full & (at != 0) {
            self.target.set(l, u64::from(at), both as u32);
        }
        self.first = if full & (at == 0) { both as u32 } else { self.first };
        self.word = if full { (both >> 32) as u32 } else { both as u32 };
    }
}

/// Loads the blocks that a lane has.
#[inline(always)]
fn load(wave: &Wave, from: Blocks) -> Lanes<[u128; 2]> {
    if from.are_chunks() {
        wave.each(|l| [from.chunk(l.index() * BLOCKS), from.chunk(l.index() * BLOCKS + 1)])
    } else {
        wave.each(|l| [from.block(l.index() * BLOCKS), from.block(l.index() * BLOCKS + 1)])
    }
}

/// Returns the words of a lane's blocks.
#[inline(always)]
fn words([a, b]: [u128; 2]) -> [u32; 8] {
    core::array::from_fn(|i| if i < 4 { (a >> (32 * i)) as u32 } else { (b >> (32 * (i - 4))) as u32 })
}

/// Moves the bits of `x` that `mask` selects to the bottom: within bytes by the parallel suffix of Hacker's
/// Delight 7-4, which takes three rounds there, and then byte by byte to the position that the counts of
/// selected bits give.
#[inline(always)]
pub fn extract(x: u32, mask: u32) -> u32 {
    let [two, three] = [mask & 0xffff, mask & 0xff_ffff].map(u32::count_ones);
    let one = (mask & 0xff).count_ones();
    let (mut x, mut mask) = (x & mask, mask);
    let mut gaps = !mask << 1 & 0xfefe_fefe;
    for i in 0..3 {
        // For each bit, the parity of the unselected bits below it in its byte: whether it moves by 2^i.
        let mut parity = gaps ^ gaps << 1 & 0xfefe_fefe;
        parity ^= parity << 2 & 0xfcfc_fcfc;
        parity ^= parity << 4 & 0xf0f0_f0f0;
        let moving = parity & mask;
        mask = (mask ^ moving) | moving >> (1 << i);
        let bits = x & moving;
        x = (x ^ bits) | bits >> (1 << i);
        gaps &= !parity;
    }
    x & 0xff | (x >> 8 & 0xff) << one | (x >> 16 & 0xff) << two | (x >> 24) << three
}
