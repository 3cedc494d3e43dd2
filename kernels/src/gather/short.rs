//! Writing the bytes of many short ranges end to end: each lane has a range, and the wave assembles slots of
//! 16 bytes.
//!
//! The one idea: the part of a range in an output slot depends only on the position at which the range begins
//! there. So each lane moves its range into position without looking at others. As long as a range ends in
//! the third of its slots, this takes the four aligned blocks of 16 bytes that can hold it, and one choice
//! and one shift for each word. The lane stores the slots that its range fills. The part in the slot where
//! the range ends stays **open**: it is handed to the lanes above, in as few rounds as there are ranges that
//! end in the slot they begin in, and the lane that fills the slot stores it. Stores are of whole slots, and
//! lanes do not wait for each other, whatever the lengths.
//!
//! Positions are counted from the beginning of the wave's own run of output. A range's **base** is the
//! distance of its bytes from there in the source: byte `x` of the run is byte `base + x`.
//!
//! A wave's worth of ranges takes about 270 instructions, and 35 more for each slot beyond the third of the
//! longest one.

use crate::memory::{In, Out};
use crate::target::{Lane, Lanes, Mask, Wave, funnel};

/// Ranges of a lane that are looked up at once.
const AHEAD: usize = 4;

/// Slots of a range that are assembled at once.
const SLOTS: usize = 3;

/// The words of a slot, the first in the lowest bytes.
type Slot = [u32; 4];

/// A range of the run: bytes `begin..end`.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub blocks: In<u128>,
    pub base: u64,
    pub begin: u32,
    pub end: u32,
}

/// Access to the bytes of a range, by slots of the output.
impl Range {
    /// Returns the number of the slot that holds the range's first byte.
    #[inline(always)]
    fn first(self) -> u32 {
        self.begin / 16
    }

    /// Returns how many slots the range fills up to their last byte.
    #[inline(always)]
    fn fills(self) -> u32 {
        self.end / 16 - self.first()
    }

    /// Returns the range's part of its first [`SLOTS`] slots; bytes that are not the range's have any value.
    #[inline(always)]
    fn slots(self) -> [Slot; SLOTS] {
        let window = self.window(0, self.begin % 16);
        let [a, b, c, d] = [window.block(0), window.block(1), window.block(2), window.block(3)];
        [window.slot(a, b), window.slot(b, c), window.slot(c, d)]
    }

    /// Returns the range's part of slot `first() + k`; `k` is not 0.
    #[inline(always)]
    fn slot(self, k: u32) -> Slot {
        let window = self.window(k, 0);
        window.slot(window.block(0), window.block(1))
    }

    /// Returns the source of slot `first() + k` and those after it; the range's bytes begin there at byte
    /// `begin`.
    #[inline(always)]
    fn window(self, k: u32, begin: u32) -> Window {
        let skipped = (self.first() + k) * 16;
        let from = self.base.wrapping_add(u64::from(skipped));
        let by = from as u32 % 16;
        Window {
            blocks: self.blocks.skip(((from as i64) >> 4) as u64),
            by,
            begin: begin + by,
            end: if self.begin < self.end { self.end - skipped + by } else { 0 },
        }
    }
}

/// A range's source as blocks, from the block that holds a slot's first byte.
#[derive(Clone, Copy)]
struct Window {
    blocks: In<u128>,
    /// The position of the slot's first byte in the block.
    by: u32,
    /// The bounds of the range's bytes.
    begin: u32,
    end: u32,
}

impl Window {
    /// Returns one of the blocks; a block without a byte of the range is not read.
    #[inline(always)]
    fn block(self, i: u32) -> u128 {
        let wanted = self.end > 16 * i && (i > 0 || self.begin < 16);
        if wanted { self.blocks.get(u64::from(i)) } else { 0 }
    }

    /// Extracts 16 bytes from 32.
    #[inline(always)]
    fn slot(self, low: u128, high: u128) -> Slot {
        // Uses words and masks, because a choice between two elements becomes one element at a variable
        // index, in memory.
        let (eight, four) = ((self.by >> 3 & 1).wrapping_neg(), (self.by >> 2 & 1).wrapping_neg());
        let (two, one) = (|a: u32, b: u32| a & !eight | b & eight, |a: u32, b: u32| a & !four | b & four);
        let word = |block: u128, i: u32| (block >> (32 * i)) as u32;
        let (a, b) = (two(word(low, 0), word(low, 2)), two(word(low, 1), word(low, 3)));
        let (c, d) = (two(word(low, 2), word(high, 0)), two(word(low, 3), word(high, 1)));
        let (e, f) = (two(word(high, 0), word(high, 2)), two(word(high, 1), word(high, 3)));
        let (a, b, c, d, e) = (one(a, b), one(b, c), one(c, d), one(d, e), one(e, f));
        let bits = self.by % 4 * 8;
        [funnel(b, a, bits), funnel(c, b, bits), funnel(d, c, bits), funnel(e, d, bits)]
    }
}

/// Returns a slot whose bytes are ones from byte `n` on; `n` is less than 16.
#[inline(always)]
fn from(n: u32) -> Slot {
    let ones = !0u64 << (n % 8 * 8);
    let (low, high) = if n & 8 != 0 { (0, ones) } else { (ones, !0) };
    [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32]
}

/// Returns all ones if `so` is true, and zero otherwise.
#[inline(always)]
fn mask(so: bool) -> u32 {
    u32::from(so).wrapping_neg()
}

#[inline(always)]
fn zip(a: Slot, b: Slot, f: impl Fn(u32, u32) -> u32) -> Slot {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

#[inline(always)]
fn set(out: Out<u128>, l: Lane<'_>, slot: u32, words: Slot) {
    let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
    out.set(
        l,
        u64::from(slot),
        u128::from(wide(words[2], words[3])) << 64 | u128::from(wide(words[0], words[1])),
    );
}

/// Counts the lanes between this one and the last lane of the mask below it; without such a lane, all lanes
/// below.
#[inline(always)]
fn reach(mask: Mask, l: Lane<'_>, width: u32) -> u32 {
    if width == 32 {
        l.index().min((mask.half(0) << 1 << (31 - l.index())).leading_zeros())
    } else {
        let all = u64::from(mask.half(1)) << 32 | u64::from(mask.half(0));
        l.index().min((all << 1 << (63 - l.index())).leading_zeros())
    }
}

/// Returns, in each lane, the slot of the lane `by` below; without such a lane, that of one of the last
/// lanes.
#[inline(always)]
fn lower(wave: &mut Wave, slots: Lanes<Slot>, by: u32) -> Lanes<Slot> {
    let from = wave.each(|l| l.index().wrapping_sub(by));
    let words: [Lanes<u32>; 4] = core::array::from_fn(|i| {
        let word = wave.each(|l| slots.at(l)[i]);
        wave.shuffle(word, from)
    });
    wave.each(|l| [words[0].at(l), words[1].at(l), words[2].at(l), words[3].at(l)])
}

/// Writes a run of `len` bytes of output, which is less than 32,768. `range(i)` is range `i` of `count`. The
/// ranges follow each other and cover all of the run's bytes. Bytes up to the end of the last slot become
/// zero.
#[inline(always)]
pub(crate) fn concat(
    count: u32,
    len: u32,
    range: impl Fn(Lane<'_>, u32) -> Range,
    blocks: In<u128>,
    out: Out<u128>,
    wave: &mut Wave,
) {
    let width = wave.width();
    let nothing = [0; AHEAD];
    let (mut bases, mut ends) = (wave.each(|_| nothing.map(u64::from)), wave.each(|_| nothing));
    // The last lane holds the contents so far of the slot in which the last range ends.
    let mut carried: Lanes<Slot> = wave.each(|_| [0; 4]);
    let mut done = 0;
    while done < count {
        if done % (AHEAD as u32 * width) == 0 {
            let ahead: Lanes<[Range; AHEAD]> = wave.each(|l| {
                core::array::from_fn(|k| {
                    let i = done + k as u32 * width + l.index();
                    let range = range(l, i.min(count - 1));
                    if i < count { range } else { Range { begin: len, end: len, ..range } }
                })
            });
            bases = wave.each(|l| ahead.at(l).map(|range| range.base));
            ends = wave.each(|l| ahead.at(l).map(|range| range.begin | range.end << 16));
        }
        let now = wave.each(|l| {
            let [ends, ..] = ends.at(l);
            Range { blocks, base: bases.at(l)[0], begin: ends & 0xffff, end: ends >> 16 }
        });
        let slots = wave.each(|l| now.at(l).slots());
        let long = wave.each(|l| now.at(l).fills() >= SLOTS as u32);
        let some_long = wave.any(long);
        let mut last = wave.each(|l| {
            let (slots, fills) = (slots.at(l), now.at(l).fills());
            let later = zip(slots[1], slots[2], |a, b| if fills == 1 { a } else { b });
            zip(slots[0], later, |a, b| if fills == 0 { a } else { b })
        });
        if some_long {
            last = wave.each(|l| match long.at(l) {
                true => now.at(l).slot(now.at(l).fills()),
                false => last.at(l),
            });
        }
        // The part of each range in the slot where it ends.
        let fresh = wave.each(|l| from(now.at(l).begin % 16));
        let inside = wave.each(|l| mask(now.at(l).fills() == 0));
        let open = wave.each(|l| {
            let (inside, behind) = (inside.at(l), from(now.at(l).end % 16));
            let own = zip(last.at(l), behind, |word, behind| word & !behind);
            zip(own, fresh.at(l), |word, fresh| word & (fresh | !inside))
        });
        // The part of earlier ranges in the slot where this one begins: of those back to one that began in an
        // earlier slot.
        let fills = wave.each(|l| now.at(l).fills() > 0);
        let fills = wave.ballot(fills);
        let reach = wave.each(|l| reach(fills, l, width));
        let left = wave.each(|l| if l.index() == width - 1 { carried.at(l) } else { open.at(l) });
        let mut before = lower(wave, left, 1);
        let mut by = 1;
        loop {
            let more = wave.each(|l| reach.at(l) >= by);
            if !wave.any(more) {
                break;
            }
            let other = lower(wave, before, by);
            before = wave.each(|l| {
                let more = mask(more.at(l));
                zip(before.at(l), other.at(l), |own, other| own | other & more)
            });
            by *= 2;
        }
        carried = wave.each(|l| zip(open.at(l), before.at(l), |open, before| open | before & inside.at(l)));
        wave.each(|l| {
            let (range, slots) = (now.at(l), slots.at(l));
            let (fills, out) = (range.fills(), out.skip(u64::from(range.first())));
            let own = zip(slots[0], fresh.at(l), |word, fresh| word & fresh);
            if fills > 0 {
                set(out, l, 0, zip(own, before.at(l), |own, before| own | before));
            }
            if fills > 1 {
                set(out, l, 1, slots[1]);
            }
            if fills > 2 {
                set(out, l, 2, slots[2]);
            }
        });
        if some_long {
            wave.each(|l| {
                let range = now.at(l);
                let mut k = SLOTS as u32;
                while k < range.fills() {
                    set(out, l, range.first() + k, range.slot(k));
                    k += 1;
                }
            });
        }
        bases = wave.each(|l| {
            let [_, b, c, d] = bases.at(l);
            [b, c, d, d]
        });
        ends = wave.each(|l| {
            let [_, b, c, d] = ends.at(l);
            [b, c, d, d]
        });
        done += width;
    }
    if len % 16 != 0 {
        wave.each(|l| {
            if l.index() == width - 1 {
                set(out, l, len / 16, carried.at(l));
            }
        });
    }
}
