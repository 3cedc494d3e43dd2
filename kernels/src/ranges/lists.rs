//! Lists of every layout: the place of each row's items, and the items one after the other.

use super::rows::{checked, extent};
use crate::encoded::rows::{NONE, store, tile};
use crate::encoded::runs::index;
use crate::gather::places::Places;
use crate::memory::{Bits, In, Out};
use crate::reduce::scan::{Summand, TILE, plus, total};
use crate::target::Wave;

kernel! {
    family "structure";
    /// Finds the place of each row's items, by its offsets, or by its offset and its size.
    Extents {
        /// The offsets; without `sizes`, one more than rows.
        offsets: In<u8>,
        /// The number of items of each row. May be absent.
        sizes: In<u8>,
        /// A bit for each valid row, from `In::bitmap`. Other rows have no items, whatever their offsets. May
        /// be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// The number of items; where there is an `end`, the number of bits in that number: see [`extent`].
        limit: u64,
        /// The number of items, from `In::bitmap`, where only the device has it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// The number to subtract from each row's first item; at most the least of those.
        base: u64,
        /// The first item of each row; 0 where it has none. Numbers that do not fit wrap, so check `limits`.
        /// May be absent.
        starts: Out<u8>,
        /// The number of items of each row; the buffer extends to a multiple of 16 bytes. May be absent.
        lens: Out<u8>,
        /// The sum of each tile's lengths, or `u64::MAX` where that overflows.
        sums: Out<u64>,
        /// Lowered to the first row whose items do not exist; `u64::MAX` before the launch.
        fault: Out<u64>,
        /// Two words, lowered to the first item of any row and to the complement of the greatest end;
        /// `u64::MAX` before the launch. May be absent.
        limits: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entries, by the widths in bytes of the numbers read and of the numbers written.
    EXTENTS {
        structure_extents_b4_b4 [4, 4] = extents::<u32, u32>,
        structure_extents_b4_b8 [4, 8] = extents::<u32, u64>,
        structure_extents_b8_b4 [8, 4] = extents::<u64, u32>,
        structure_extents_b8_b8 [8, 8] = extents::<u64, u64>,
    }
}

kernel! {
    family "structure";
    /// Finds the rows that are valid and have the length that all must have.
    Sized {
        /// The first item of each row. May be absent.
        starts: In<u64>,
        /// The number of items of each row.
        lens: In<u64>,
        /// The number of items that each row must have.
        want: u64,
        /// A bit for each valid row, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows.
        rows: u64,
        /// A bit, in whole words, for each row that is valid and has that length.
        out: Out<u32>,
        /// The `starts` of those rows, and 0 for the others. May be absent.
        kept: Out<u64>,
        /// Lowered to the first row that is valid and has another length; `u64::MAX` before the launch.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entry for all lists.
    SIZED {
        structure_sized = sized,
    }
}

kernel! {
    family "structure";
    /// Lists the indices of the items of rows that all have the same length. Rows of another length get
    /// [`NONE`] for each item.
    Items {
        /// The first item of each row.
        starts: In<u64>,
        /// The number of items of each row.
        lens: In<u64>,
        /// The number of items that each row must have.
        want: u64,
        /// The number of rows.
        rows: u64,
        /// The index of each item, `want` for each row.
        out: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entry for all lists.
    ITEMS {
        structure_items = items,
    }
}

kernel! {
    family "structure";
    /// Lists the indices of the items of the rows at some indices, where all rows have the same length. An
    /// index that is null or out of bounds gets [`NONE`] for each item.
    Spaced {
        /// The indices. Signed ones MUST come with a `limit` no more than their greatest value plus one.
        indices: In<u8>,
        /// Bytes of an index.
        width: u64,
        /// A bit for each valid index, from `In::bitmap`. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of indices.
        rows: u64,
        /// The number of rows that indices may refer to.
        limit: u64,
        /// The number of items of each row.
        size: u64,
        /// The index of each item, `size` for each row index.
        out: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// The entry for all indices.
    SPACED {
        structure_spaced = spaced,
    }
}

kernel! {
    family "structure";
    /// Lists the indices of the elements that ranges cover.
    Covered {
        /// The first output place of each range, and the end of the last.
        to: In<u8>,
        /// The first element of each range.
        starts: In<u8>,
        /// The number of ranges; not 0.
        rows: u64,
        /// The number of elements in one of the units that `to` and `starts` count in.
        scale: u64,
        /// The index of each element.
        out: Out<u64>,
        /// The number of elements in all ranges.
        len: u64,
    }
    waves |args, _| args.len.div_ceil(TILE);
    /// The entries, by the width in bytes of a start and of an output place.
    COVERED {
        structure_covered_b4 [4] = covered::<u32>,
        structure_covered_b8 [8] = covered::<u64>,
    }
}

fn extents<T: Summand, S: Summand>(args: &Extents, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let (offsets, sizes) = (args.offsets.cast::<T>(), args.sizes.cast::<T>());
    let (starts, lens) = (args.starts.cast::<S>(), args.lens.cast::<S>());
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let limit = extent(args.limit, args.end, args.end_offset);
    let mut sum = wave.each(|_| 0u64);
    let (mut least, mut most) = (wave.each(|_| u64::MAX), wave.each(|_| 0u64));
    while at < end {
        let found = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return [0; 2];
            }
            let wanted = valid.is_absent() || valid.get(row);
            let start = offsets.get(row).wide();
            let past = if args.sizes.is_absent() {
                offsets.get(row + 1).wide()
            } else {
                // Both are less than 2^63 where they are valid, and a greater sum is beyond any limit.
                start.saturating_add(sizes.get(row).wide())
            };
            let (start, len, good) = checked(start, past, limit, wanted);
            if !good {
                args.fault.min(l, 0, row);
            }
            if !args.starts.is_absent() {
                starts.set(l, row, S::from_wide(if len > 0 { start - args.base } else { 0 }));
            }
            if !args.lens.is_absent() {
                lens.set(l, row, S::from_wide(len));
            }
            [start, len]
        });
        sum = wave.each(|l| plus(sum.at(l), found.at(l)[1], T::LONG));
        least = wave.each(|l| {
            let [start, len] = found.at(l);
            if len > 0 && start < least.at(l) { start } else { least.at(l) }
        });
        most = wave.each(|l| {
            let [start, len] = found.at(l);
            if len > 0 && start + len > most.at(l) { start + len } else { most.at(l) }
        });
        at += u64::from(wave.width());
    }
    if !args.limits.is_absent() {
        wave.each(|l| {
            if most.at(l) > 0 {
                args.limits.min(l, 0, least.at(l));
                args.limits.min(l, 1, !most.at(l));
            }
        });
    }
    let sum = total(sum, T::LONG, wave);
    wave.once(|l| args.sums.set(l, wave.index(), sum));
}

fn sized(args: &Sized, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        let good = wave.each(|l| {
            let row = at + u64::from(l.index());
            if row >= end {
                return false;
            }
            let live = valid.is_absent() || valid.get(row);
            let good = live && args.lens.get(row) == args.want;
            if live && !good {
                args.fault.min(l, 0, row);
            }
            if !args.kept.is_absent() {
                args.kept.set(l, row, if good { args.starts.get(row) } else { 0 });
            }
            good
        });
        store(good, at, args.rows, args.out, wave);
        at += u64::from(wave.width());
    }
}

fn items(args: &Items, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    while at < end {
        // A lane takes rows, since finding an item's row would take a division of 64 bits.
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end {
                let (start, good) = (args.starts.get(row), args.lens.get(row) == args.want);
                let mut i = 0;
                while i < args.want {
                    args.out.set(l, row * args.want + i, if good { start + i } else { NONE });
                    i += 1;
                }
            }
        });
        at += u64::from(wave.width());
    }
}

fn spaced(args: &Spaced, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.rows, wave) else { return };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    while at < end {
        wave.each(|l| {
            let row = at + u64::from(l.index());
            if row < end {
                let wanted = index(args.indices, args.width, row);
                let good = (valid.is_absent() || valid.get(row)) && wanted < args.limit;
                let mut i = 0;
                while i < args.size {
                    args.out.set(l, row * args.size + i, if good { wanted * args.size + i } else { NONE });
                    i += 1;
                }
            }
        });
        at += u64::from(wave.width());
    }
}

fn covered<T: Summand>(args: &Covered, wave: &mut Wave) {
    let Some((mut at, end)) = tile(args.len, wave) else { return };
    let places = Places { to: args.to.cast::<T>(), rows: args.rows, scale: args.scale };
    let starts = args.starts.cast::<T>();
    let low = places.find_together(0, at, wave);
    let high = places.find_together(low, end - 1, wave);
    while at < end {
        wave.each(|l| {
            let place = at + u64::from(l.index());
            if place < end {
                let range = places.find(low, high, place);
                let element = starts.get(range).wide() * args.scale + (place - places.to(range));
                args.out.set(l, place, element);
            }
        });
        at += u64::from(wave.width());
    }
}
