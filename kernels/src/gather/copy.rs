//! Copying of the elements that ranges cover: bytes, bits and offsets.
//!
//! The one idea: the work is divided by **output**, not by rows, so a thousand empty strings and one of a
//! gigabyte keep the same waves busy. A wave owns a run of output. It finds the ranges at both ends of the
//! run by a search in which all lanes probe at once (five rounds for a billion rows). Each lane then finds
//! the range of its own bytes between those two, and walks on from range to range until its bytes are
//! complete: see `bytes.rs`.
//!
//! A **piece** is the part of a lane's 16 bytes that one range contributes. It is loaded as the two aligned
//! 16-byte blocks that can hold it and shifted into position, so every access is 16 bytes wide whatever the
//! alignment. A block that holds no wanted byte is not read; its neighbour is read again instead.
//!
//! Bytes moved: the output once, its source once (with the rest of the sectors it touches), and 8 to 16 bytes
//! for each range. If ranges are short, a lane has one range and four 16-byte loads in flight: about 270
//! instructions for the 384 bytes of 32 strings of 12 bytes. If they are long, a lane has two slots and so
//! four 16-byte loads in flight: about 80 instructions for the 512 bytes that a wave of 32 stores at once.
//!
//! [`ranges`](crate::ranges::rows) has checked `starts` and `to`, so this module only clamps at the ends
//! of the buffers.

use super::bytes::{BYTES_PER_LANE, Plain, Views, gather};
use super::places::Places;
use crate::memory::{Bits, In, Out};
use crate::ranges::rows::Edges;
use crate::reduce::scan::Summand;
use crate::target::{Lanes, Wave};

/// Words of bits that one wave writes for each of its lanes.
const WORDS_PER_LANE: u64 = 8;

/// Offsets that one wave writes for each of its lanes.
const OFFSETS_PER_LANE: u64 = 16;

/// Offsets that a lane has in flight.
const ELEMENTS: usize = 4;

kernel! {
    family "copy";
    /// Copies the bytes that ranges cover, end to end.
    CopyBytes {
        /// The position of each range's elements in the output, in elements, and the end of the last.
        to: In<u8>,
        /// The first element of each range.
        starts: In<u8>,
        /// The number of ranges; not 0.
        rows: u64,
        /// The number of bytes in an element.
        scale: u64,
        /// The elements, from `In::bitmap`.
        bytes: In<u32>,
        /// The offset of `bytes` in bits, from `In::bitmap`.
        offset: u64,
        /// The output, on a 16-byte boundary and writable up to one.
        out: Out<u128>,
        /// The length of the output in bytes; not 0. The rest of the last 16 bytes is set to zero.
        len: u64,
    }
    waves |args, width| args.len.div_ceil(BYTES_PER_LANE * u64::from(width));
    /// By the width in bytes of a start and of a position in `to`.
    COPY_BYTES {
        copy_bytes_b4 [4] = copy_bytes::<u32>,
        copy_bytes_b8 [8] = copy_bytes::<u64>,
    }
}

kernel! {
    family "copy";
    /// Copies the bytes that views point to, end to end.
    CopyViews {
        /// The position of each row's bytes in the output, and the end of the last.
        to: In<u8>,
        /// The views: 16 bytes each. They MUST have been checked: see [`views`](crate::ranges::views).
        views: In<u128>,
        /// The number of views; not 0.
        rows: u64,
        /// The data buffers: a [`BufferRow`](crate::ranges::views::BufferRow) for each.
        buffers: In<u64>,
        /// The output, on a 16-byte boundary and writable up to one.
        out: Out<u128>,
        /// The length of the output in bytes; not 0. The rest of the last 16 bytes is set to zero.
        len: u64,
    }
    waves |args, width| args.len.div_ceil(BYTES_PER_LANE * u64::from(width));
    /// By the width in bytes of a position in `to`.
    COPY_VIEWS {
        copy_views_b4 [4] = copy_views::<u32>,
        copy_views_b8 [8] = copy_views::<u64>,
    }
}

kernel! {
    family "copy";
    /// Copies the bits that ranges cover, end to end.
    CopyBits {
        /// The positions of the ranges' elements in the output, as in [`CopyBytes`].
        to: In<u8>,
        /// The first element of each range, as in [`CopyBytes`].
        starts: In<u8>,
        /// The number of ranges; not 0.
        rows: u64,
        /// The number of bits in an element.
        scale: u64,
        /// The elements, from `In::bitmap`.
        words: In<u32>,
        /// The bit offset of `words`, from `In::bitmap`.
        offset: u64,
        /// The output, in whole words; bits past the end are zero.
        out: Out<u32>,
        /// The length of the output in bits; not 0.
        len: u64,
        /// Adds the number of unset bits in the output to this number. May be absent.
        unset: Out<u64>,
    }
    waves |args, width| args.len.div_ceil(32 * WORDS_PER_LANE * u64::from(width));
    /// By the width in bytes of a start and of a position in `to`.
    COPY_BITS {
        copy_bits_b4 [4] = copy_bits::<u32>,
        copy_bits_b8 [8] = copy_bits::<u64>,
    }
}

kernel! {
    family "copy";
    /// Copies the offsets of the elements that ranges cover, adjusted to the new positions of the elements
    /// one level down, and the final offset.
    CopyOffsets {
        /// The positions of the ranges' elements in the output, as in [`CopyBytes`].
        to: In<u8>,
        /// The first element of each range, as in [`CopyBytes`].
        starts: In<u8>,
        /// The number of ranges; not 0.
        rows: u64,
        /// The number of elements in an element of the level above.
        scale: u64,
        /// The offsets of the elements.
        offsets: In<u8>,
        /// The first element one level down of each range, from [`Compose`](crate::ranges::rows::Compose).
        next_starts: In<u64>,
        /// The position of each range's elements one level down in the output, and the end of the last.
        next_to: In<u64>,
        /// The output: one more offset than `len`. An offset that does not fit wraps, so check the total
        /// first.
        out: Out<u8>,
        /// The number of elements in all ranges; not 0.
        len: u64,
    }
    waves |args, width| (args.len + 1).div_ceil(OFFSETS_PER_LANE * u64::from(width));
    /// By the widths in bytes of a start, and of an offset.
    COPY_OFFSETS {
        copy_offsets_b4_b4 [4, 4] = copy_offsets::<u32, u32>,
        copy_offsets_b4_b8 [4, 8] = copy_offsets::<u32, u64>,
        copy_offsets_b8_b4 [8, 4] = copy_offsets::<u64, u32>,
        copy_offsets_b8_b8 [8, 8] = copy_offsets::<u64, u64>,
    }
}

fn copy_bytes<T: Summand>(args: &CopyBytes, wave: &mut Wave) {
    let places = Places { to: args.to.cast::<T>(), rows: args.rows, scale: args.scale };
    let sources = Plain {
        starts: args.starts.cast::<T>(),
        scale: args.scale,
        blocks: args.bytes.cast(),
        moved: args.offset / 8,
    };
    gather(places, sources, args.out, args.len, wave);
}

fn copy_views<T: Summand>(args: &CopyViews, wave: &mut Wave) {
    let places = Places { to: args.to.cast::<T>(), rows: args.rows, scale: 1 };
    gather(places, Views { views: args.views, buffers: args.buffers }, args.out, args.len, wave);
}

fn copy_bits<T: Summand>(args: &CopyBits, wave: &mut Wave) {
    let places = Places { to: args.to.cast::<T>(), rows: args.rows, scale: args.scale };
    let starts = args.starts.cast::<T>();
    let run = 32 * WORDS_PER_LANE * u64::from(wave.width());
    let first = wave.index() * run;
    if first >= args.len {
        return;
    }
    let end = args.len.min(first + run);
    let low = places.find_together(0, first, wave);
    let high = places.find_together(low, end - 1, wave);
    let mut rows = wave.each(|_| low);
    let mut unset = wave.each(|_| 0u32);
    let mut at = first;
    while at < end {
        let found =
            wave.each(|l| places.find(rows.at(l), high, (at + 32 * u64::from(l.index())).min(end - 1)));
        unset = wave.each(|l| {
            let place = at + 32 * u64::from(l.index());
            if place >= end {
                return unset.at(l);
            }
            let wanted = (end - place).min(32) as u32;
            let (mut r, mut full, mut word) = (found.at(l), 0, 0);
            loop {
                let (from, to) = (places.to(r), places.to(r + 1));
                let here = place + u64::from(full);
                let upto = (to - place).min(u64::from(wanted)) as u32;
                let source = starts.get(r).wide() * args.scale + (here - from);
                let bits = Bits::new(args.words, args.offset + source, u64::from(upto - full));
                word |= bits.word(0) << full;
                full = upto;
                if full >= wanted {
                    break;
                }
                r = places.next(r, high, place + u64::from(full));
            }
            args.out.set(l, place / 32, word);
            unset.at(l) + wanted - word.count_ones()
        });
        rows = found;
        at += 32 * u64::from(wave.width());
    }
    if !args.unset.is_absent() {
        let unset = wave.sum(unset);
        wave.once(|l| args.unset.add(l, 0, u64::from(unset)));
    }
}

fn copy_offsets<T: Summand, E: Summand + Edges>(args: &CopyOffsets, wave: &mut Wave) {
    let places = Places { to: args.to.cast::<T>(), rows: args.rows, scale: args.scale };
    let (starts, out) = (args.starts.cast::<T>(), args.out.cast::<E>());
    let run = OFFSETS_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    if at > args.len {
        return;
    }
    // The offset past the last element is the end of the last range's elements.
    if args.len - at < run {
        wave.once(|l| out.set(l, args.len, E::from_wide(args.next_to.get(args.rows))));
    }
    let end = args.len.min(at + run);
    if at >= end {
        return;
    }
    let low = places.find_together(0, at, wave);
    let high = places.find_together(low, end - 1, wave);
    let mut rows = wave.each(|_| low);
    while at < end {
        let place = |k: usize, lane: u32| at + u64::from(k as u32 * wave.width() + lane);
        let found: [Lanes<u64>; ELEMENTS] = core::array::from_fn(|k| {
            wave.each(|l| places.find(rows.at(l), high, place(k, l.index()).min(end - 1)))
        });
        let offsets: [Lanes<u64>; ELEMENTS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let r = found[k].at(l);
                let inside = place(k, l.index()).min(end - 1) - places.to(r);
                let element = starts.get(r).wide() * args.scale + inside;
                let (base, to, upto) =
                    (args.next_starts.get(r), args.next_to.get(r), args.next_to.get(r + 1));
                // The offsets between a range's ends are not checked: keep them inside the range.
                to + E::edge(args.offsets, element).saturating_sub(base).min(upto - to)
            })
        });
        for k in 0..ELEMENTS {
            wave.each(|l| {
                if place(k, l.index()) < end {
                    out.set(l, place(k, l.index()), E::from_wide(offsets[k].at(l)));
                }
            });
        }
        rows = found[ELEMENTS - 1];
        at += ELEMENTS as u64 * u64::from(wave.width());
    }
}
