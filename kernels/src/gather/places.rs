//! Search for the range that a position in the output belongs to, and alignment of bytes.

use crate::memory::In;
use crate::reduce::scan::Summand;
use crate::target::Wave;

/// The positions of ranges in the output.
#[derive(Clone, Copy)]
pub(crate) struct Places<T> {
    /// The first element of each range, and the end of the last, in units of `scale`.
    pub to: In<T>,
    /// The number of ranges; not 0.
    pub rows: u64,
    /// The number of output elements in one element.
    pub scale: u64,
}

impl<T: Summand> Places<T> {
    /// Returns the position of range `r` in the output. `r == rows` gives the end.
    #[inline(always)]
    pub fn to(self, r: u64) -> u64 {
        self.to.get(r).wide() * self.scale
    }

    /// Returns the range, among `low..`, that `place` belongs to; `place` is before the end. All lanes probe
    /// at once.
    #[inline(always)]
    pub fn find_together(self, mut low: u64, place: u64, wave: &mut Wave) -> u64 {
        let mut high = self.rows - 1;
        while low < high {
            let step = (high - low) / u64::from(wave.width()) + 1;
            let probe = |lane: u32| low + (u64::from(lane) + 1) * step;
            let before = wave.each(|l| {
                let probe = probe(l.index());
                (probe <= high) & (self.to(probe.min(high)) <= place)
            });
            let passed = u64::from(wave.ballot(before).count());
            (low, high) = (low + passed * step, high.min(low + (passed + 1) * step - 1));
        }
        low
    }

    /// Returns the range that `place` belongs to, which MUST be one of `low..=high`. Each lane searches
    /// alone.
    #[inline(always)]
    pub fn find(self, mut low: u64, mut high: u64, place: u64) -> u64 {
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.to(middle) <= place { low = middle } else { high = middle - 1 }
        }
        low
    }

    /// Returns the range that `place` belongs to, if everything before it belongs to range `r` or earlier
    /// ones.
    #[inline(always)]
    pub fn next(self, r: u64, high: u64, place: u64) -> u64 {
        // Few empty ranges follow each other: a look at the next ones is cheaper than a search, in which
        // lanes diverge.
        let (mut next, last) = (r + 1, r + 4);
        while next < high && self.to(next + 1) <= place {
            if next == last {
                return self.find(next + 1, high, place);
            }
            next += 1;
        }
        next
    }
}

/// The source of 16 bytes of output: the aligned blocks of a buffer, and the index of the first byte in it.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub blocks: In<u128>,
    pub from: u64,
}

/// Returns the bytes of `source` from byte `from - skip` on. Only bytes `skip..skip + count` are wanted; the
/// others have any value.
#[inline(always)]
pub(crate) fn piece(source: Source, skip: u32, count: u32) -> [u64; 2] {
    let start = source.from.wrapping_sub(u64::from(skip));
    let (first, last) = (source.from / 16, (source.from + u64::from(count) - 1) / 16);
    // Uses an arithmetic shift: if `start` is before the buffer, so is its block.
    let block = (start as i64) >> 4;
    let low = source.blocks.get((block.max(first as i64)) as u64);
    let high = source.blocks.get(((block + 1).min(last as i64)) as u64);
    align(low, high, start as u32 % 16)
}

/// Extracts 16 bytes from 32, from byte `by` on; `by` is less than 16.
#[inline(always)]
fn align(low: u128, high: u128, by: u32) -> [u64; 2] {
    // Uses single words, not arrays: a choice between two elements becomes one element at a variable index.
    let (first, second, third) = ((low >> 64) as u64, high as u64, (high >> 64) as u64);
    let (a, b, c) = if by & 8 != 0 { (first, second, third) } else { (low as u64, first, second) };
    let bits = by % 8 * 8;
    [a >> bits | b << 1 << (63 - bits), b >> bits | c << 1 << (63 - bits)]
}

/// Returns `kept` up to byte `by`, and `new` from there on.
#[inline(always)]
pub(crate) fn overlay(kept: [u64; 2], new: [u64; 2], by: u32) -> [u64; 2] {
    let ones = |n: u32| if n < 64 { !(!0u64 << n) } else { !0 };
    let below = [ones(by * 8), ones((by * 8).saturating_sub(64))];
    [kept[0] & below[0] | new[0] & !below[0], kept[1] & below[1] | new[1] & !below[1]]
}
