//! Lists of every layout: where each row's items are, and the items one after the other.

use super::runs::index;
use super::{NONE, store, tile};
use crate::memory::{Bits, In, Out};
use crate::places::Places;
use crate::ranges::{checked, extent};
use crate::scan::{Summand, TILE, plus, total};
use crate::target::Wave;

kernel! {
    family "structure";
    /// Where each row's items are, by its offsets, or by its offset and its size.
    Extents {
        /// The offsets; one more than there are rows where there are no `sizes`.
        offsets: In<u8>,
        /// How many items each row has. May be absent.
        sizes: In<u8>,
        /// From `In::bitmap`: which rows are valid. Others have no items, and nobody looks where. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many rows there are.
        rows: u64,
        /// How many items there are; where there is an `end`, how many bits that has: see [`extent`].
        limit: u64,
        /// From `In::bitmap`: the number that says how many, where only the device has it. May be absent.
        end: In<u32>,
        /// From `In::bitmap`.
        end_offset: u64,
        /// What is subtracted from where a row's items begin: at most the least of those.
        base: u64,
        /// Where each row's items begin; 0 for none. Numbers that do not fit wrap: see `limits`. May be absent.
        starts: Out<u8>,
        /// How many it has, up to a multiple of 16 bytes. May be absent.
        lens: Out<u8>,
        /// The sum of each tile of lengths, `u64::MAX` where it is more.
        sums: Out<u64>,
        /// Receives the first row whose items are not there: `u64::MAX` before.
        fault: Out<u64>,
        /// Receives where the items of any row begin first, and the complement of where they last end: `u64::MAX` before. May be
        /// absent.
        limits: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// By the widths in bytes of what is read and of what is written.
    EXTENTS {
        structure_extents_b4_b4 [4, 4] = extents::<u32, u32>,
        structure_extents_b4_b8 [4, 8] = extents::<u32, u64>,
        structure_extents_b8_b4 [8, 4] = extents::<u64, u32>,
        structure_extents_b8_b8 [8, 8] = extents::<u64, u64>,
    }
}

kernel! {
    family "structure";
    /// Which rows are valid and as long as all must be.
    Sized {
        /// Where each row's items begin. May be absent.
        starts: In<u64>,
        /// How many items each row has.
        lens: In<u64>,
        /// How many it must have.
        want: u64,
        /// From `In::bitmap`: which rows are valid. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many rows there are.
        rows: u64,
        /// Whole words: a bit for each row that is.
        out: Out<u32>,
        /// The starts of these rows, and 0 for the others. May be absent.
        kept: Out<u64>,
        /// Receives the first row that is valid and not as long: `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    SIZED {
        structure_sized = sized,
    }
}

kernel! {
    family "structure";
    /// The items of rows that all have as many, by their numbers: [`NONE`] for those of rows of another length.
    Items {
        /// Where each row's items begin.
        starts: In<u64>,
        /// How many it has.
        lens: In<u64>,
        /// How many it must have.
        want: u64,
        /// How many rows there are.
        rows: u64,
        /// The items, `want` for each row.
        out: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    ITEMS {
        structure_items = items,
    }
}

kernel! {
    family "structure";
    /// The items of rows at some indices, all of as many, by their numbers: [`NONE`] for those of an index that is null or no row.
    Spaced {
        /// The indices; signed ones MUST come with `limit` no more than their greatest value plus one.
        indices: In<u8>,
        /// Bytes of an index.
        width: u64,
        /// From `In::bitmap`: which are valid. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many there are.
        rows: u64,
        /// How many rows there are.
        limit: u64,
        /// How many items each has.
        size: u64,
        /// The items, `size` for each index.
        out: Out<u64>,
    }
    waves |args, _| args.rows.div_ceil(TILE);
    /// One entry.
    SPACED {
        structure_spaced = spaced,
    }
}

kernel! {
    family "structure";
    /// The elements that ranges cover, by their numbers.
    Covered {
        /// Where each range's elements go, and one more: where they end.
        to: In<u8>,
        /// The first element of each.
        starts: In<u8>,
        /// How many ranges; not 0.
        rows: u64,
        /// How many elements one of the ranges' is.
        scale: u64,
        /// The elements.
        out: Out<u64>,
        /// How many in all.
        len: u64,
    }
    waves |args, _| args.len.div_ceil(TILE);
    /// By the width in bytes of a start and of a place to go.
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
                // Both are less than 2^63 where they are good, and more is beyond any limit.
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
        // By rows: to find an item's row would be a division of 64 bits.
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
