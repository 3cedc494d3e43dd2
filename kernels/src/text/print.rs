//! Prints lists as text in the format of arrow's display: `[1, , [2, 3]]`.
//!
//! The one idea: the items are texts already, so a printed list is brackets, separators and ranges of
//! bytes. [`ItemLens`] computes how many bytes each item takes, and a [`scan`](crate::reduce::scan) turns
//! these lengths into ends. [`RowLens`] computes a row's length from two of those ends, however many items
//! the row has. [`Print`] divides the work by output bytes, as [`copy`](crate::gather::copy) does: a lane
//! has sixteen bytes, searches for their row and for the item in it, and walks on from there. One list of
//! a million items thus keeps as many lanes busy as a million lists of one item.
//!
//! A byte of an item is printed as it is, or as two hexadecimal digits. A value that has no text is printed
//! as the error that arrow's display prints for it. This error is the same for all values of a type except
//! for the number in it.
//!
//! Bytes moved per item: two offsets, a bit of validity, its length, and its end twice. Each byte of text is
//! read once, and the output is written in units of sixteen bytes.

use crate::gather::places::Places;
use crate::memory::{Bits, In, Out};
use crate::ranges::rows::{checked, extent};
use crate::reduce::scan::{Summand, TILE, plus, total};
use crate::target::Wave;

/// Bytes that one wave writes for each of its lanes.
const BYTES_PER_LANE: u64 = 64;

kernel! {
    family "print";
    /// Computes how many bytes each item takes in print.
    ItemLens {
        /// The offsets of the items' bytes: one more than the number of items.
        offsets: In<u8>,
        /// The width of an offset in bytes: 4 or 8.
        width: u64,
        /// The validity of the items, from `In::bitmap`. A null item takes no bytes, and its offsets are not
        /// checked. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of items.
        items: u64,
        /// How many bytes exist; if `end` is present, the width in bits of the number there: see [`extent`].
        limit: u64,
        /// The number of bytes, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// The bytes of output for each byte of an item: 1, or 2 if it is printed as digits.
        scale: u64,
        /// The length in bytes of the error printed for a valid item that has no bytes, without the number in
        /// it; 0 if nothing is printed for such an item.
        told: u64,
        /// The values of the items, for those that have no bytes.
        values: In<u8>,
        /// The width of a value in bytes: 4 or 8.
        value_width: u64,
        /// The least value without a text that cannot be printed.
        least: u64,
        /// The greatest such value.
        most: u64,
        /// Receives how many bytes each item takes.
        lens: Out<u64>,
        /// Receives the sum of each tile of lengths.
        sums: Out<u64>,
        /// Receives the first item whose bytes are out of bounds; `u64::MAX` before.
        outside: Out<u64>,
        /// Receives the first item that cannot be printed; `u64::MAX` before.
        unsaid: Out<u64>,
    }
    waves |args, _| args.items.div_ceil(TILE);
    /// The only entry of this kernel.
    ITEM_LENS {
        print_item_lens = item_lens,
    }
}

kernel! {
    family "print";
    /// Computes how many bytes each list takes in print.
    RowLens {
        /// The first item of each row; 0 for a row without items.
        starts: In<u64>,
        /// The number of items in each row.
        counts: In<u64>,
        /// The number of the first item that `ends` describes.
        base: u64,
        /// The position at which each item's print begins if all of them stand end to end, and the end of the
        /// last. It is not read if no row has items.
        ends: In<u64>,
        /// The validity of the rows, from `In::bitmap`. A null row takes no bytes. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// Receives how many bytes each row takes. A length that does not fit wraps, so check the sums first.
        lens: Out<u8>,
        /// The width of a length in bytes: 4 or 8.
        width: u64,
        /// Receives the sum of each tile of lengths; `u64::MAX` if the sum does not fit.
        sums: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The only entry of this kernel.
    ROW_LENS {
        print_row_lens = row_lens,
    }
}

kernel! {
    family "print";
    /// Prints lists end to end.
    Print {
        /// The position of each row's print, and the end of the last.
        to: In<u8>,
        /// The number of rows; not 0.
        rows: u64,
        /// The first item of each row, as in [`RowLens`].
        starts: In<u64>,
        /// The number of items in each row, as in [`RowLens`].
        counts: In<u64>,
        /// The number of the first item that `ends` describes, as in [`RowLens`].
        base: u64,
        /// The positions of the items' prints, as in [`RowLens`].
        ends: In<u64>,
        /// The offsets of the items' bytes, which [`ItemLens`] has checked.
        offsets: In<u8>,
        /// The width of an offset in bytes: 4 or 8.
        width: u64,
        /// The items' bytes, from `In::bitmap`.
        bytes: In<u32>,
        /// The offset of `bytes` in bits, from `In::bitmap`.
        bytes_offset: u64,
        /// The bytes of output for each byte of an item, as in [`ItemLens`].
        scale: u64,
        /// How many bytes of `told` precede the number in the error of an item that has no text; the others
        /// follow it.
        before: u64,
        /// The bytes of the error without the number.
        told: In<u8>,
        /// The values of the items, as in [`ItemLens`].
        values: In<u8>,
        /// The width of a value in bytes, as in [`ItemLens`].
        value_width: u64,
        /// The output, on a 16-byte boundary and writable up to one.
        out: Out<u128>,
        /// The length of the output in bytes; not 0. The rest of the last 16 bytes is set to zero.
        len: u64,
    }
    waves |args, width| args.len.div_ceil(BYTES_PER_LANE * u64::from(width));
    /// By the width in bytes of a position in `to`.
    PRINT {
        print_b4 [4] = print::<u32>,
        print_b8 [8] = print::<u64>,
    }
}

/// Loads offset `i`; `width` is in bytes, 4 or 8.
#[inline(always)]
fn edge(offsets: In<u8>, width: u64, i: u64) -> u64 {
    if width == 4 { u64::from(offsets.cast::<u32>().get(i)) } else { offsets.cast::<u64>().get(i) }
}

/// Loads value `i` with its sign; `width` is in bytes, 4 or 8.
#[inline(always)]
fn value(values: In<u8>, width: u64, i: u64) -> i64 {
    if width == 4 { i64::from(values.cast::<i32>().get(i)) } else { values.cast::<i64>().get(i) }
}

/// Counts the characters of a number: its digits, and a sign if it is negative.
#[inline(always)]
fn figures(value: i64) -> u64 {
    let (mut left, mut count) = (value.unsigned_abs(), 1 + u64::from(value < 0));
    while left > 9 {
        left /= 10;
        count += 1;
    }
    count
}

/// Returns character `at` of the `count` that a number takes.
#[inline(always)]
fn figure(value: i64, count: u64, at: u64) -> u8 {
    if value < 0 && at == 0 {
        return b'-';
    }
    let (mut left, mut behind) = (value.unsigned_abs(), count - 1 - at);
    while behind > 0 {
        left /= 10;
        behind -= 1;
    }
    b'0' + (left % 10) as u8
}

fn item_lens(args: &ItemLens, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.items {
        return;
    }
    let end = args.items.min(at + TILE);
    let valid = Bits::new(args.valid, args.valid_offset, args.items);
    let limit = extent(args.limit, args.end, args.end_offset);
    let mut sum = wave.each(|_| 0u64);
    while at < end {
        sum = wave.each(|l| {
            let item = at + u64::from(l.index());
            if item >= end {
                return sum.at(l);
            }
            let wanted = valid.is_absent() || valid.get(item);
            let (from, to) = (edge(args.offsets, args.width, item), edge(args.offsets, args.width, item + 1));
            let (_, bytes, good) = checked(from, to, limit, wanted);
            if !good {
                args.outside.min(l, 0, item);
            }
            let mut len = bytes.wrapping_mul(args.scale);
            if args.told > 0 && wanted && good && len == 0 {
                let value = value(args.values, args.value_width, item);
                if value >= args.least as i64 && value <= args.most as i64 {
                    args.unsaid.min(l, 0, item);
                }
                len = args.told + figures(value);
            }
            args.lens.set(l, item, len);
            plus(sum.at(l), len, true)
        });
        at += u64::from(wave.width());
    }
    let sum = total(sum, true, wave);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn row_lens(args: &RowLens, wave: &mut Wave) {
    let mut at = wave.index() * TILE;
    if at >= args.rows {
        return;
    }
    let end = args.rows.min(at + TILE);
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let mut sum = wave.each(|_| 0u64);
    while at < end {
        sum = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return sum.at(l);
            }
            let mut len = 0;
            if valid.is_absent() || valid.get(row) {
                len = 2;
                let count = args.counts.get(row);
                if count > 0 {
                    let first = args.starts.get(row).wrapping_sub(args.base);
                    let items = args.ends.get(first + count).wrapping_sub(args.ends.get(first));
                    len = plus(items, 2 * count, true);
                }
            }
            if args.width == 4 {
                args.lens.cast::<u32>().set(l, row, len as u32);
            } else {
                args.lens.cast::<u64>().set(l, row, len);
            }
            plus(sum.at(l), len, true)
        });
        at += u64::from(wave.width());
    }
    let sum = total(sum, true, wave);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn print<T: Summand>(args: &Print, wave: &mut Wave) {
    let run = BYTES_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    if at >= args.len {
        return;
    }
    let end = args.len.min(at + run);
    let places = Places { to: args.to.cast::<T>(), rows: args.rows, scale: 1 };
    let low = places.find_together(0, at, wave);
    let high = places.find_together(low, end - 1, wave);
    while at < end {
        wave.each(|l| {
            let first = at + 16 * u64::from(l.index());
            if first >= end {
                return;
            }
            let mut row = places.find(low, high, first);
            let (mut bytes, mut place) = (0u128, first);
            let mut cursor = Cursor::before(first);
            while place < first + 16 {
                let mut byte = 0;
                if place < end {
                    if place == cursor.end {
                        if place > first {
                            row = places.next(row, high, place);
                        }
                        cursor = Cursor::new(args, row, places.to(row), places.to(row + 1), place);
                    }
                    byte = cursor.byte(args, place);
                }
                bytes = bytes >> 8 | u128::from(byte) << 120;
                place += 1;
            }
            args.out.set(l, first / 16, bytes);
        });
        at += 16 * u64::from(wave.width());
    }
}

/// The position in a print: a row, and an item of it.
#[derive(Clone, Copy)]
struct Cursor {
    /// The bounds of the row's print.
    begin: u64,
    end: u64,
    /// The item, and the bounds of its print. In a row without items, these bounds are at the row's end.
    item: u64,
    item_begin: u64,
    item_end: u64,
}

impl Cursor {
    /// Creates a cursor that is in no row yet.
    #[inline(always)]
    fn before(place: u64) -> Cursor {
        Cursor { begin: place, end: place, item: 0, item_begin: place, item_end: place }
    }

    /// Creates the cursor for a position in a row's print: it holds the item at that position, the item
    /// before the separator there, or the first one at the opening bracket.
    #[inline(always)]
    fn new(args: &Print, row: u64, begin: u64, end: u64, place: u64) -> Cursor {
        let count = args.counts.get(row);
        if count == 0 {
            return Cursor { begin, end, item: 0, item_begin: end, item_end: end };
        }
        let first = args.starts.get(row).wrapping_sub(args.base);
        let base = args.ends.get(first);
        let begins = |i: u64| begin + 1 + args.ends.get(first + i).wrapping_sub(base) + 2 * i;
        // Each item takes at least two bytes.
        let (mut low, mut high) = (0, (count - 1).min((place - begin) / 2));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if begins(middle) <= place { low = middle } else { high = middle - 1 }
        }
        let item_begin = begins(low);
        let item = first + low;
        let len = args.ends.get(item + 1).wrapping_sub(args.ends.get(item));
        Cursor { begin, end, item, item_begin, item_end: item_begin + len }
    }

    /// Returns the byte at a position. The positions of a row must be requested in ascending order, without
    /// gaps.
    #[inline(always)]
    fn byte(&mut self, args: &Print, place: u64) -> u8 {
        if place == self.begin {
            return b'[';
        }
        if place + 1 == self.end {
            return b']';
        }
        if place < self.item_end {
            return content(args, self.item, place - self.item_begin);
        }
        if place == self.item_end {
            return b',';
        }
        self.item += 1;
        self.item_begin = place + 1;
        let len = args.ends.get(self.item + 1).wrapping_sub(args.ends.get(self.item));
        self.item_end = self.item_begin + len;
        b' '
    }
}

/// Returns byte `at` of an item's print.
#[inline(always)]
fn content(args: &Print, item: u64, at: u64) -> u8 {
    let from = edge(args.offsets, args.width, item);
    if !args.told.is_absent() && edge(args.offsets, args.width, item + 1) == from {
        let value = value(args.values, args.value_width, item);
        let count = figures(value);
        return match at < args.before {
            true => args.told.get(at),
            false if at - args.before < count => figure(value, count, at - args.before),
            false => args.told.get(at - count),
        };
    }
    let (bytes, first) = (args.bytes.cast::<u8>(), args.bytes_offset / 8 + from);
    if args.scale == 1 {
        return bytes.get(first + at);
    }
    let both = bytes.get(first + at / 2);
    let digit = if at % 2 == 0 { both >> 4 } else { both & 15 };
    if digit < 10 { b'0' + digit } else { b'a' - 10 + digit }
}
