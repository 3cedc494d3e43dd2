//! The definitions in plain Rust: for machines without the instructions, for the remainders of vector loops,
//! and for tests.

use crate::cpu::bitmap::Bits;
use crate::cpu::indices::index;
use crate::cpu::rows::{offset, offset_bytes, range, runs};

/// Capacity for the positions of 64 words, and for 64 more that a vector store may write in excess.
pub(crate) const POSITIONS: usize = 64 * 64 + 64;

/// Defines [`super::compress`]; `at` values have been written before.
#[inline(always)]
pub(super) fn compress<const W: usize>(
    values: &[[u8; W]],
    words: &[u64],
    mut at: usize,
    out: &mut [[u8; W]],
) -> usize {
    for (values, word) in values.chunks(64).zip(words) {
        if word.count_ones() > 48 {
            runs(*word, |start, len| {
                let len = len.min(out.len() - at);
                out[at..at + len].copy_from_slice(&values[start..start + len]);
                at += len;
            });
        } else {
            let mut word = *word;
            while word != 0 {
                let Some(slot) = out.get_mut(at) else { return at };
                *slot = values[word.trailing_zeros() as usize];
                at += 1;
                word &= word - 1;
            }
        }
    }
    at
}

/// Bits that are packed into words, one word after another.
struct Packer {
    /// The bits of the word that is not full yet, and their number, below 64.
    word: u64,
    fill: usize,
    /// The number of ones so far.
    ones: usize,
    /// The number of full words that were written.
    at: usize,
}

impl Packer {
    /// Adds `count` bits. Returns the word that they begin in, and whether it is full. No branch depends on
    /// the bits: how often a word is full follows no pattern.
    #[inline(always)]
    fn push(&mut self, bits: u64, count: u32) -> (u64, bool) {
        let word = self.word | bits << self.fill;
        // Shifts in two steps, because a shift by 64 is not allowed.
        let over = bits >> 1 >> (63 - self.fill);
        let filled = self.fill + count as usize;
        let full = filled >= 64;
        self.word = if full { over } else { word };
        self.fill = filled % 64;
        self.ones += bits.count_ones() as usize;
        (word, full)
    }

    /// Adds bits, and writes the word that they begin in after the words that are full.
    #[inline(always)]
    fn write(&mut self, bits: u64, count: u32, out: &mut [u64]) {
        let (word, full) = self.push(bits, count);
        if let Some(slot) = out.get_mut(self.at) {
            *slot = word;
        }
        self.at += usize::from(full);
    }
}

/// Defines [`super::compact`]; `extract` packs the bits under a mask.
///
/// Its loops are its own: within a function of an iterator, the compiler would not have the instructions that
/// `extract` needs, and would call it.
#[inline(always)]
pub(super) fn compact(
    words: &[u64],
    bits: Bits,
    fill: usize,
    out: &mut [u64],
    extract: impl Fn(u64, u64) -> u64,
) -> (u64, usize) {
    let (mut packer, mut i) = (Packer { word: 0, fill, ones: 0, at: 0 }, 0);
    let (mut head, mut in_head) = (0, fill > 0);
    while in_head && i < words.len() {
        let full;
        (head, full) = packer.push(extract(bits.word(i), words[i]), words[i].count_ones());
        in_head = !full;
        i += 1;
    }
    // Most bitmaps are whole words, which take one load each.
    let whole = bits.whole_words();
    let (whole, masks) = (&whole[i.min(whole.len())..], &words[i..]);
    let both = whole.len().min(masks.len());
    for (value, mask) in whole[..both].iter().zip(&masks[..both]) {
        packer.write(extract(u64::from_le_bytes(*value), *mask), mask.count_ones(), out);
    }
    i += both;
    while i < words.len() {
        packer.write(extract(bits.word(i), words[i]), words[i].count_ones(), out);
        i += 1;
    }
    // If no mask follows the head, bits that its last word had no room for are not written yet.
    if !in_head
        && packer.fill > 0
        && let Some(slot) = out.get_mut(packer.at)
    {
        *slot = packer.word;
    }
    (head, packer.ones)
}

/// Packs the bits of `value` where `mask` has ones at the low end.
pub(super) fn extract(value: u64, mask: u64) -> u64 {
    let (mut rest, mut bits, mut at) = (mask, 0, 0);
    while rest != 0 {
        bits |= (value >> rest.trailing_zeros() & 1) << at;
        at += 1;
        rest &= rest - 1;
    }
    bits
}

/// Defines [`super::gather`] for any width.
#[inline(always)]
pub(super) fn gather<const W: usize, const I: usize>(
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [[u8; W]],
) -> bool {
    let mut good = true;
    for (word, (indices, out)) in indices.chunks(64).zip(out.chunks_mut(64)).enumerate() {
        let largest = indices.iter().fold(0, |largest, at| index(*at).max(largest));
        if largest < limit && limit <= values.len() as u64 {
            for (at, out) in indices.iter().zip(out) {
                // SAFETY: no index is more than the largest, which is inside.
                *out = unsafe { *values.get_unchecked(index(*at) as usize) };
            }
        } else {
            let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
            good &= gather_checked(values, indices, limit, valid, out);
        }
    }
    good
}

/// Loads the values at indices one by one. It is a function of its own so that it is compiled without the
/// gather instruction.
///
/// # Safety
///
/// Each index must be less than the number of values.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(super) unsafe fn load<const W: usize, const I: usize>(
    values: &[[u8; W]],
    indices: &[[u8; I]],
    out: &mut [[u8; W]],
) {
    // SAFETY: the caller has promised that the index is in bounds.
    let value = |at: u64| unsafe { *values.get_unchecked(at as usize) };
    let (blocks, rest) = indices.as_chunks::<8>();
    let (outs, out_rest) = out.as_chunks_mut::<8>();
    for (block, out) in blocks.iter().zip(outs) {
        if I == 4 {
            // Reads two indices at once, because reading takes most of the time.
            for (k, pair) in block.as_chunks::<2>().0.iter().enumerate() {
                let both = u64::from_le_bytes(std::array::from_fn(|i| pair[i / 4][i % 4]));
                (out[2 * k], out[2 * k + 1]) = (value(both & 0xFFFF_FFFF), value(both >> 32));
            }
        } else {
            block.iter().zip(out).for_each(|(at, out)| *out = value(index(*at)));
        }
    }
    for (at, out) in rest.iter().zip(out_rest) {
        *out = value(index(*at));
    }
}

/// Loads the values at positions, in the way of [`load`].
///
/// # Safety
///
/// Each position must be less than the number of values.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub(super) unsafe fn pick<const W: usize>(values: &[[u8; W]], positions: &[u16], out: &mut [[u8; W]]) {
    for (out, position) in out.iter_mut().zip(positions) {
        // SAFETY: the caller has promised that the position is in bounds.
        *out = unsafe { *values.get_unchecked(*position as usize) };
    }
}

/// As [`gather`], for at most 64 indices, some of which may be out of bounds.
#[inline(never)]
pub(super) fn gather_checked<const W: usize, const I: usize>(
    values: &[[u8; W]],
    indices: &[[u8; I]],
    limit: u64,
    valid: u64,
    out: &mut [[u8; W]],
) -> bool {
    let mut good = true;
    for (i, (at, out)) in indices.iter().zip(out).enumerate() {
        let at = index(*at);
        good &= at < limit || valid >> i & 1 == 0;
        *out = values.get(at.min(usize::MAX as u64) as usize).copied().unwrap_or([0; W]);
    }
    good
}

/// Defines [`super::locate`]; `total` bytes precede the first row.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "one more than its twin")]
pub(super) fn locate<const O: usize, const I: usize>(
    offsets: &[[u8; O]],
    extent: usize,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    mut total: usize,
    starts: &mut [[u8; O]],
    ends: &mut [[u8; O]],
) -> Option<usize> {
    let chunks = starts.chunks_mut(64).zip(ends.chunks_mut(64)).zip(indices.chunks(64));
    for (word, ((starts, ends), indices)) in chunks.enumerate() {
        let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
        for (i, ((at, start), end)) in indices.iter().zip(starts).zip(ends).enumerate() {
            *start = offset_bytes(0);
            if valid >> i & 1 == 1 {
                let index = index(*at);
                if index >= limit {
                    return None;
                }
                let range = range(offsets, index as usize, extent).ok()?;
                *start = offset_bytes(range.start);
                total += range.len();
            }
            *end = offset_bytes(total);
        }
    }
    Some(total)
}

/// Defines [`super::gather_bits`] for any level.
#[inline(always)]
pub(super) fn gather_bits<const I: usize>(
    bits: Bits,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [u64],
) -> bool {
    let mut good = true;
    for (word, (indices, out)) in indices.chunks(64).zip(out.chunks_mut(1)).enumerate() {
        let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
        good &= gather_bits_checked(bits, indices, limit, valid, out);
    }
    good
}

/// As [`gather_bits`], for at most 64 indices.
#[inline(always)]
pub(super) fn gather_bits_checked<const I: usize>(
    bits: Bits,
    indices: &[[u8; I]],
    limit: u64,
    valid: u64,
    out: &mut [u64],
) -> bool {
    let (mut good, mut taken) = (true, 0);
    for (i, at) in indices.iter().enumerate() {
        let at = index(*at);
        let inside = at < limit;
        good &= inside | (valid >> i & 1 == 0);
        taken |= u64::from(inside && bits.get(at as usize)) << i;
    }
    out[0] = taken & valid;
    good
}

/// Defines [`super::positions`] for any level.
#[inline(always)]
pub(super) fn positions(words: &[u64], out: &mut [u16; POSITIONS]) -> usize {
    let mut at = 0;
    for (i, word) in words.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            out[at] = (i * 64) as u16 + word.trailing_zeros() as u16;
            at += 1;
            word &= word - 1;
        }
    }
    at
}

/// Defines [`super::copy_ranges`] for any level.
pub(super) fn copy_ranges(data: &[u8], starts: &[usize], lens: &[usize], out: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    for (start, len) in starts.iter().zip(lens) {
        let from = data.get(*start..start.checked_add(*len)?)?;
        out.get_mut(at..at + len)?.copy_from_slice(from);
        at += len;
    }
    Some(at)
}

/// Defines [`super::copy_kept`] for any level.
pub(super) fn copy_kept<const O: usize>(
    offsets: &[[u8; O]],
    data: &[u8],
    words: &[u64],
    out: &mut [u8],
) -> Option<usize> {
    let (mut at, mut good) = (0, true);
    for (i, word) in words.iter().enumerate() {
        runs(*word, |start, len| {
            let row = i * 64 + start;
            let from = data.get(offset(offsets[row])..offset(offsets[row + len]));
            match (from, from.and_then(|from| out.get_mut(at..at + from.len()))) {
                (Some(from), Some(out)) => {
                    out.copy_from_slice(from);
                    at += from.len();
                }
                _ => good = false,
            }
        });
    }
    good.then_some(at)
}

/// Defines [`super::kept_rows`]; `total` bytes precede the first row.
#[inline(always)]
pub(super) fn kept_rows<const O: usize>(
    offsets: &[[u8; O]],
    extent: usize,
    words: &[u64],
    mut total: usize,
    starts: &mut [[u8; O]],
    ends: &mut [[u8; O]],
) -> Option<usize> {
    let mut out = starts.iter_mut().zip(ends);
    for (i, word) in words.iter().enumerate() {
        let mut word = *word;
        while word != 0 {
            let range = range(offsets, i * 64 + word.trailing_zeros() as usize, extent).ok()?;
            total = total.checked_add(range.len())?;
            if let Some((start, end)) = out.next() {
                (*start, *end) = (offset_bytes(range.start), offset_bytes(total));
            }
            word &= word - 1;
        }
    }
    Some(total)
}

/// Defines [`super::copy_rows`] for any level.
#[inline(always)]
pub(super) fn copy_rows<const O: usize>(
    data: &[u8],
    starts: &[[u8; O]],
    ends: &[[u8; O]],
    out: &mut [u8],
) -> bool {
    let mut at = 0;
    for (from, end) in starts.iter().zip(ends) {
        let (from, end) = (offset(*from), offset(*end));
        let bytes = from.checked_add(end.wrapping_sub(at)).and_then(|to| data.get(from..to));
        match (bytes, out.get_mut(at..end)) {
            (Some(bytes), Some(out)) if bytes.len() == out.len() => out.copy_from_slice(bytes),
            _ => return false,
        }
        at = end;
    }
    true
}
