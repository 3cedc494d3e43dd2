//! Writing the bytes of many ranges end to end, for [`CopyBytes`](super::copy::CopyBytes) and
//! [`CopyViews`](super::copy::CopyViews).
//!
//! The one idea: if ranges are long, a wave's lanes fill neighbouring slots of 16 bytes, so that all 512
//! bytes or more are stored together. If they are short, lanes that each search for their ranges and copy
//! one to five pieces would wait for each other, so a lane has a range instead of a slot: see
//! [`short`](super::short).

use super::places::{Places, Source, overlay, piece};
use super::short::{Range, concat};
use crate::memory::{In, Out};
use crate::ranges::views::BUFFER;
use crate::reduce::scan::Summand;
use crate::target::{Lane, Lanes, Wave};

/// Bytes of output that one wave writes for each of its lanes.
pub(crate) const BYTES_PER_LANE: u64 = 128;

/// 16-byte slots that a lane fills at once.
const SLOTS: usize = 2;

/// The number of ranges in [`BYTES_PER_LANE`] from which on they count as short.
const FEW: u64 = 3;

/// The number from which on most ranges are empty or nearly so, and a search for those that are not is
/// cheaper.
const MANY: u64 = 64;

/// The sources of ranges.
pub(crate) trait Sources: Copy {
    /// Returns the buffer that holds all sources, if there is only one.
    fn one_buffer(self) -> Option<In<u128>>;
    /// Returns the source of range `r` for a lane; another lane's may be in another buffer.
    fn source(self, l: Lane<'_>, r: u64) -> Source;
}

/// Ranges of elements in one buffer.
#[derive(Clone, Copy)]
pub(crate) struct Plain<T> {
    pub starts: In<T>,
    pub scale: u64,
    pub blocks: In<u128>,
    pub moved: u64,
}

impl<T: Summand> Sources for Plain<T> {
    #[inline(always)]
    fn one_buffer(self) -> Option<In<u128>> {
        Some(self.blocks)
    }
    #[inline(always)]
    fn source(self, _: Lane<'_>, r: u64) -> Source {
        Source { blocks: self.blocks, from: self.starts.get(r).wide() * self.scale + self.moved }
    }
}

/// Views, which point into themselves or into one of several buffers.
#[derive(Clone, Copy)]
pub(crate) struct Views {
    pub views: In<u128>,
    pub buffers: In<u64>,
}

impl Sources for Views {
    #[inline(always)]
    fn one_buffer(self) -> Option<In<u128>> {
        None
    }
    #[inline(always)]
    fn source(self, l: Lane<'_>, r: u64) -> Source {
        let view = self.views.get(r);
        if view as u32 <= 12 {
            return Source { blocks: self.views, from: r * 16 + 4 };
        }
        let buffer = u64::from((view >> 64) as u32) * BUFFER;
        let moved = self.buffers.get(buffer + 2) / 8;
        Source { blocks: self.buffers.input_of(l, buffer), from: u64::from((view >> 96) as u32) + moved }
    }
}

#[inline(always)]
pub(crate) fn gather<T: Summand, S: Sources>(
    places: Places<T>,
    sources: S,
    out: Out<u128>,
    len: u64,
    wave: &mut Wave,
) {
    let run = BYTES_PER_LANE * u64::from(wave.width());
    let mut at = wave.index() * run;
    if at >= len {
        return;
    }
    let end = len.min(at + run);
    let low = places.find_together(0, at, wave);
    let high = places.find_together(low, end - 1, wave);
    let lanes = u64::from(wave.width());
    if let Some(blocks) = sources.one_buffer()
        && (FEW * lanes..MANY * lanes).contains(&(high - low))
    {
        let (base, len, last) = (at, (end - at) as u32, (high - low) as u32);
        let range = |l: Lane<'_>, i: u32| {
            let r = low + u64::from(i);
            let (from, source) = (places.to(r), sources.source(l, r));
            Range {
                blocks: source.blocks,
                base: source.from.wrapping_add(base).wrapping_sub(from),
                begin: if i == 0 { 0 } else { from.wrapping_sub(base) as u32 },
                end: if i == last { len } else { places.to(r + 1).wrapping_sub(base) as u32 },
            }
        };
        concat(last + 1, len, range, blocks, out.skip(at / 16), wave);
        return;
    }
    let mut rows = wave.each(|_| low);
    while at < end {
        let slot = |k: usize, lane: u32| at + 16 * u64::from(k as u32 * wave.width() + lane);
        // Both slots' searches and first pieces come first: a slot past the end works on the last byte, and
        // is not stored.
        let found: [Lanes<u64>; SLOTS] = core::array::from_fn(|k| {
            wave.each(|l| places.find(rows.at(l), high, slot(k, l.index()).min(end - 1)))
        });
        let firsts: [Lanes<[u64; 2]>; SLOTS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let (r, place) = (found[k].at(l), slot(k, l.index()).min(end - 1));
                let (from, to) = (places.to(r), places.to(r + 1));
                let source = sources.source(l, r);
                let source = Source { from: source.from + (place - from), ..source };
                piece(source, 0, (to - place).min(end - place).min(16) as u32)
            })
        });
        // Written out, because a loop around loops is not unrolled, and a value it indexes would lie in
        // memory.
        let (first, second) = (wave.each(|l| slot(0, l.index())), wave.each(|l| slot(1, l.index())));
        fill(places, sources, out, first, end, high, found[0], firsts[0], wave);
        fill(places, sources, out, second, end, high, found[1], firsts[1], wave);
        rows = found[SLOTS - 1];
        at += 16 * SLOTS as u64 * u64::from(wave.width());
    }
}

/// Adds the pieces that follow the first one to each lane's slot, and stores it.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn fill<T: Summand>(
    places: Places<T>,
    sources: impl Sources,
    out: Out<u128>,
    slot: Lanes<u64>,
    end: u64,
    high: u64,
    found: Lanes<u64>,
    first: Lanes<[u64; 2]>,
    wave: &Wave,
) {
    wave.each(|l| {
        let place = slot.at(l);
        if place >= end {
            return;
        }
        let wanted = (end - place).min(16) as u32;
        let (mut r, mut bytes) = (found.at(l), first.at(l));
        let mut full = (places.to(r + 1) - place).min(16) as u32;
        while full < wanted {
            r = places.next(r, high, place + u64::from(full));
            let upto = (places.to(r + 1) - place).min(u64::from(wanted)) as u32;
            bytes = overlay(bytes, piece(sources.source(l, r), full, upto - full), full);
            full = upto;
        }
        if wanted < 16 {
            bytes = overlay(bytes, [0; 2], wanted);
        }
        out.set(l, place / 16, u128::from(bytes[1]) << 64 | u128::from(bytes[0]));
    });
}
