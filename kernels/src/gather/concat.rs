//! Concatenation of several arrays: their bits end to end, and the numbers that refer to their elements,
//! adjusted to the elements' new positions.
//!
//! The one idea: the gathering kernel of [`copy`](super::copy) concatenates bytes, whatever their source.
//! This module concatenates bits, which may begin inside a byte ([`ConcatBits`]), and adjusts numbers of
//! elements that are concatenated as well ([`Rebase`]). It trusts no number: a number without an element
//! becomes 0, and the first row that has one is reported.
//!
//! Bits: a wave writes 4 KiB, and neighbouring lanes have neighbouring blocks of 16 bytes. Nearly every wave
//! finds all of them in one source; if sources meet inside, each lane walks those that its block has bits of.

use crate::memory::{Bits, In, Out, TableRow};
use crate::reduce::scan::TILE;
use crate::target::{Value, Wave};

kernel! {
    family "concat";
    /// Concatenates the bits of several bitmaps.
    ConcatBits {
        /// A [`SourceRow`] for each bitmap, each of which has at least one bit.
        sources: In<u64>,
        /// The number of bitmaps; not 0.
        count: u64,
        /// The result, on a 16-byte boundary and writable up to one; bits past the end become zero.
        out: Out<u128>,
        /// The number of bits in the result.
        len: u64,
    }
    waves |args, _| args.len.div_ceil(BLOCKS * 128);
    /// The only entry of this kernel.
    CONCAT_BITS {
        concat_bits = concat_bits,
    }
}

kernel! {
    family "concat";
    /// Reads from each array's offsets the range of elements that its rows cover.
    Spans {
        /// A [`SpanRow`] for each.
        arrays: In<u64>,
        /// The number of arrays.
        count: u64,
        /// Receives the first offset and the last one of each array.
        out: Out<u64>,
    }
    waves |args, width| args.count.div_ceil(u64::from(width));
    /// By the width of an offset in bytes.
    SPANS {
        concat_spans_b4 [4] = spans::<u32>,
        concat_spans_b8 [8] = spans::<u64>,
    }
}

kernel! {
    family "concat";
    /// Adjusts numbers of elements, before which other elements have been placed.
    Rebase {
        /// The numbers: keys, offsets of single rows, or ends of runs; or views, whose number of a data
        /// buffer is adjusted.
        numbers: In<u8>,
        /// How many elements each row has from its number on; as wide as the numbers. Absent if each row has
        /// one.
        sizes: In<u8>,
        /// The type of each row's elements: a row of `parts`. Absent if all rows have the same type.
        types: In<u8>,
        /// The validity of the numbers, from `In::bitmap`. Null numbers and their sizes become 0. May be
        /// absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// Two words for each type: the number of its elements, and how many elements are placed before them.
        parts: In<u64>,
        /// The number of types.
        count: u64,
        /// Receives the adjusted numbers, which MUST fit their width.
        out: Out<u8>,
        /// Receives the sizes, if `sizes` is present.
        out_sizes: Out<u8>,
        /// Receives the first row whose elements do not exist; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the width of a number in bytes; 16 for views.
    REBASE {
        concat_rebase_b1 [1] = rebase::<u8>,
        concat_rebase_b2 [2] = rebase::<u16>,
        concat_rebase_b4 [4] = rebase::<u32>,
        concat_rebase_b8 [8] = rebase::<u64>,
        concat_rebase_views [16] = rebase::<u128>,
    }
}

/// The number of blocks of 128 bits that a wave writes.
const BLOCKS: u64 = 256;

/// Blocks that a lane has in flight.
const STEP: usize = 2;

/// A bitmap in the table of [`ConcatBits`].
pub struct SourceRow {
    /// The bitmap, from `In::bitmap`; absent if all bits are set.
    pub words: In<u32>,
    /// The bit offset of `words`, from `In::bitmap`.
    pub offset: u64,
    /// The position of its first bit in the result.
    pub to: u64,
}

impl TableRow for SourceRow {
    type Words = [u64; 4];
    fn words(&self) -> [u64; 4] {
        let [address, extent] = self.words.described();
        [address, extent, self.offset, self.to]
    }
}

const SOURCE: u64 = SourceRow::ROW;

/// An array in the table of [`Spans`].
pub struct SpanRow {
    /// The offsets: one more than the number of rows.
    pub offsets: In<u8>,
    /// The number of rows.
    pub rows: u64,
}

impl TableRow for SpanRow {
    type Words = [u64; 3];
    fn words(&self) -> [u64; 3] {
        let [address, extent] = self.offsets.described();
        [address, extent, self.rows]
    }
}

impl ConcatBits {
    /// Returns the position of the first bit of source `r` in the result; `r == count` gives the end.
    #[inline(always)]
    fn to(&self, r: u64) -> u64 {
        if r < self.count { self.sources.get(r * SOURCE + 3) } else { self.len }
    }

    /// Returns the source of the bit at `place`, which MUST be one of `low..=high`.
    #[inline(always)]
    fn find(&self, mut low: u64, mut high: u64, place: u64) -> u64 {
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.to(middle) <= place { low = middle } else { high = middle - 1 }
        }
        low
    }
}

fn concat_bits(args: &ConcatBits, wave: &mut Wave) {
    let first = wave.index() * BLOCKS;
    if first * 128 >= args.len {
        return;
    }
    let end = args.len.min((first + BLOCKS) * 128);
    let low = args.find(0, args.count - 1, first * 128);
    let high = args.find(low, args.count - 1, end - 1);
    let out = args.out.skip(first);
    let blocks = (end - first * 128).div_ceil(128) as u32;
    let words: In<u32> = args.sources.input(wave, low * SOURCE);
    if low == high && !words.is_absent() {
        let from = args.to(low);
        let bits = Bits::new(words, args.sources.get(low * SOURCE + 2), args.to(low + 1) - from);
        let source = bits.blocks(first * 128 - from);
        let mut at = 0;
        while at < blocks {
            let place = |k: usize, lane: u32| at + k as u32 * wave.width() + lane;
            let loaded = wave.each(|l| {
                core::array::from_fn::<u128, STEP, _>(|k| {
                    let i = place(k, l.index());
                    source.block(i) & source.inside(i)
                })
            });
            wave.each(|l| {
                for (k, block) in loaded.at(l).into_iter().enumerate() {
                    if place(k, l.index()) < blocks {
                        out.set(l, u64::from(place(k, l.index())), block);
                    }
                }
            });
            at += STEP as u32 * wave.width();
        }
        return;
    }
    let mut at = 0;
    while at < blocks {
        wave.each(|l| {
            let i = at + l.index();
            if i >= blocks {
                return;
            }
            let place = (first + u64::from(i)) * 128;
            let wanted = (end - place).min(128) as u32;
            let (mut r, mut full, mut block) = (args.find(low, high, place), 0, 0);
            loop {
                let (from, to) = (args.to(r), args.to(r + 1));
                let upto = (to - place).min(u64::from(wanted)) as u32;
                let words: In<u32> = args.sources.input_of(l, r * SOURCE);
                let bits = if words.is_absent() {
                    !0 >> (128 - (upto - full))
                } else {
                    let here = place + u64::from(full) - from;
                    let left = u64::from(upto - full);
                    let bits = Bits::new(words, args.sources.get(r * SOURCE + 2) + here, left).blocks(0);
                    bits.block(0) & bits.inside(0)
                };
                block |= bits << full;
                full = upto;
                if full >= wanted {
                    break;
                }
                r += 1;
            }
            out.set(l, u64::from(i), block);
        });
        at += wave.width();
    }
}

fn spans<T: Point>(args: &Spans, wave: &mut Wave) {
    let at = wave.index() * u64::from(wave.width());
    wave.each(|l| {
        let i = at + u64::from(l.index());
        if i < args.count {
            let row = i * SpanRow::ROW;
            let offsets: In<T> = args.arrays.input_of(l, row);
            args.out.set(l, 2 * i, offsets.get(0).element());
            args.out.set(l, 2 * i + 1, offsets.get(args.arrays.get(row + 2)).element());
        }
    });
}

/// The number of an element, as an array stores it. A negative one counts as a large one.
trait Point: Value {
    /// The number that replaces an invalid one.
    const NONE: Self;
    /// Returns whether it refers to an element at all; an inline view does not.
    fn points(self) -> bool;
    /// Returns the number of the element that it refers to.
    fn element(self) -> u64;
    /// Returns the number of the element `by` elements further on.
    fn moved(self, by: u64) -> Self;
}

macro_rules! point {
    ($($t:ty)*) => { $(impl Point for $t {
        const NONE: $t = 0;
        #[inline(always)]
        fn points(self) -> bool {
            true
        }
        #[inline(always)]
        fn element(self) -> u64 {
            self as u64
        }
        #[inline(always)]
        fn moved(self, by: u64) -> $t {
            self.wrapping_add(by as $t)
        }
    })* };
}
point! { u8 u16 u32 u64 }

/// A view, which refers to a data buffer unless it is inline.
impl Point for u128 {
    const NONE: u128 = 0;
    #[inline(always)]
    fn points(self) -> bool {
        self as u32 > 12
    }
    #[inline(always)]
    fn element(self) -> u64 {
        u64::from((self >> 64) as u32)
    }
    #[inline(always)]
    fn moved(self, by: u64) -> u128 {
        self.wrapping_add(u128::from(by as u32) << 64)
    }
}

fn rebase<N: Point>(args: &Rebase, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.rows {
        return;
    }
    let end = args.rows.min(at + TILE);
    let (numbers, sizes) = (args.numbers.cast::<N>(), args.sizes.cast::<N>());
    let (out, out_sizes) = (args.out.cast::<N>(), args.out_sizes.cast::<N>());
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return;
            }
            let (number, live) = (numbers.get(row), valid.is_absent() || valid.get(row));
            let part = if args.types.is_absent() { 0 } else { u64::from(args.types.get(row)) };
            let (there, before) = if part < args.count {
                (args.parts.get(2 * part), args.parts.get(2 * part + 1))
            } else {
                (0, 0)
            };
            let size = if args.sizes.is_absent() { N::NONE } else { sizes.get(row) };
            let wanted = if args.sizes.is_absent() { 1 } else { size.element() };
            let element = number.element();
            let good = !number.points() || element <= there && wanted <= there - element;
            if live && !good {
                args.fault.min(l, 0, row);
            }
            let kept = live && good;
            let by = if number.points() { before } else { 0 };
            out.set(l, row, if kept { number.moved(by) } else { N::NONE });
            if !args.sizes.is_absent() {
                out_sizes.set(l, row, if kept { size } else { N::NONE });
            }
        });
        at += u64::from(wave.width());
    }
}
