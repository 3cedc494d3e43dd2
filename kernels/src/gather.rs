//! Writing the bytes of many ranges end to end: what [`CopyBytes`](crate::copy::CopyBytes) and
//! [`CopyViews`](crate::copy::CopyViews) do.
//!
//! The one idea: where ranges are long, a wave's lanes fill neighbouring slots of 16 bytes, so that all 512 bytes or more
//! are stored together. Where they are short, lanes that each look for their ranges, and copy one or five pieces, wait for
//! each other: there a lane fills 128 bytes of its own, for which it looks once, and all lanes have about as many pieces.

use crate::copy::BYTES_PER_LANE;
use crate::memory::{In, Out};
use crate::places::{Places, Source, overlay, piece};
use crate::scan::Summand;
use crate::target::{Lane, Lanes, Wave};
use crate::views::BUFFER;

/// 16-byte slots that a lane fills at once.
const SLOTS: usize = 2;

/// From so many ranges in [`BYTES_PER_LANE`] on, they are short.
const MANY: u64 = 3;

/// What tells the source of each range.
pub(crate) trait Sources: Copy {
    /// Whether it tells without a branch, so that lanes can ask on their own.
    const STREAM: bool;
    fn source(self, r: u64) -> Source;
}

/// Ranges of one buffer.
#[derive(Clone, Copy)]
pub(crate) struct Plain<T> {
    pub starts: In<T>,
    pub scale: u64,
    pub blocks: In<u128>,
    pub moved: u64,
}

impl<T: Summand> Sources for Plain<T> {
    const STREAM: bool = true;
    #[inline(always)]
    fn source(self, r: u64) -> Source {
        Source { blocks: self.blocks, from: self.starts.get(r).wide() * self.scale + self.moved }
    }
}

/// Views: into themselves or into one of several buffers.
#[derive(Clone, Copy)]
pub(crate) struct Views {
    pub views: In<u128>,
    pub buffers: In<u64>,
}

impl Sources for Views {
    const STREAM: bool = false;
    #[inline(always)]
    fn source(self, r: u64) -> Source {
        let view = self.views.get(r);
        if view as u32 <= 12 {
            return Source { blocks: self.views, from: r * 16 + 4 };
        }
        let buffer = u64::from((view >> 64) as u32) * BUFFER;
        let moved = self.buffers.get(buffer + 2) / 8;
        Source { blocks: self.buffers.input(buffer), from: u64::from((view >> 96) as u32) + moved }
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
    if S::STREAM && high - low >= MANY * u64::from(wave.width()) {
        wave.each(|l| {
            let from = at + BYTES_PER_LANE * u64::from(l.index());
            if from < end {
                let upto = end.min(from + BYTES_PER_LANE);
                stream(places, sources, out, from, (upto - from) as u32, (low, high), l);
            }
        });
        return;
    }
    let mut rows = wave.each(|_| low);
    while at < end {
        let slot = |k: usize, lane: u32| at + 16 * u64::from(k as u32 * wave.width() + lane);
        // Both slots' searches and first pieces first: a slot past the end works on the last byte, and is not stored.
        let found: [Lanes<u64>; SLOTS] = core::array::from_fn(|k| {
            wave.each(|l| places.find(rows.at(l), high, slot(k, l.index()).min(end - 1)))
        });
        let firsts: [Lanes<[u64; 2]>; SLOTS] = core::array::from_fn(|k| {
            wave.each(|l| {
                let (r, place) = (found[k].at(l), slot(k, l.index()).min(end - 1));
                let (from, to) = (places.to(r), places.to(r + 1));
                let source = sources.source(r);
                let source = Source { from: source.from + (place - from), ..source };
                piece(source, 0, (to - place).min(end - place).min(16) as u32)
            })
        });
        // Written out: a loop around loops stays one, and what it indexes would lie in memory.
        let (first, second) = (wave.each(|l| slot(0, l.index())), wave.each(|l| slot(1, l.index())));
        fill(places, sources, out, first, end, high, found[0], firsts[0], wave);
        fill(places, sources, out, second, end, high, found[1], firsts[1], wave);
        rows = found[SLOTS - 1];
        at += 16 * SLOTS as u64 * u64::from(wave.width());
    }
}

/// Fills a lane's own `len` bytes of output from byte `first` on, which is on a slot's boundary: up to 16 bytes of a range
/// after the other, shifted behind what is there. Where the next range is and begins is asked for while this one is copied.
#[inline(always)]
fn stream<T: Summand>(
    places: Places<T>,
    sources: impl Sources,
    out: Out<u128>,
    first: u64,
    len: u32,
    (low, high): (u64, u64),
    l: Lane<'_>,
) {
    // Only ranges of something tell a source: what those of null rows say was never checked.
    let next = |r: u64, begin: u64, source: Source| {
        let r = (r + 1).min(high);
        let end = places.to(r + 1);
        (if end > begin { sources.source(r) } else { source }, end)
    };
    let mut r = places.find(low, high, first);
    let mut source = sources.source(r);
    source.from += first - places.to(r);
    // How far the range goes, as far as this lane is concerned.
    let begin = places.to(r + 1);
    let mut end = (begin - first).min(u64::from(len)) as u32;
    let (mut coming, mut coming_end) = next(r, begin, source);
    // What is not stored yet: `filled` bytes of the slot, and zeroes behind them.
    let (mut done, mut filled, mut slot) = (0, 0, first / 16);
    let (mut a, mut b) = (0u64, 0u64);
    while done < len {
        let count = (end - done).min(16);
        let [low, upper] = overlay(piece(source, 0, count), [0; 2], count);
        let by = filled % 8 * 8;
        let (low, middle, last) = (low << by, upper << by | low >> 1 >> (63 - by), upper >> 1 >> (63 - by));
        let (c, d);
        (a, b, c, d) = if filled < 8 { (a | low, b | middle, last, 0) } else { (a, b | low, middle, last) };
        source.from += u64::from(count);
        done += count;
        filled += count;
        if filled >= 16 {
            out.set(l, slot, u128::from(b) << 64 | u128::from(a));
            (a, b, slot, filled) = (c, d, slot + 1, filled - 16);
        }
        if done == end && done < len {
            r += 1;
            let place = first + u64::from(done);
            if coming_end <= place {
                // A range of nothing: past it and those like it.
                r = places.next(r, high, place);
                (coming, coming_end) = (sources.source(r), places.to(r + 1));
            }
            source = coming;
            end = (coming_end - first).min(u64::from(len)) as u32;
            (coming, coming_end) = next(r, coming_end, source);
        }
    }
    if filled > 0 {
        out.set(l, slot, u128::from(b) << 64 | u128::from(a));
    }
}

/// Adds to the first piece of each lane's slot what follows, and stores it.
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
            bytes = overlay(bytes, piece(sources.source(r), full, upto - full), full);
            full = upto;
        }
        if wanted < 16 {
            bytes = overlay(bytes, [0; 2], wanted);
        }
        out.set(l, place / 16, u128::from(bytes[1]) << 64 | u128::from(bytes[0]));
    });
}
