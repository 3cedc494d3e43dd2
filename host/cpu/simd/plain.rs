//! The definitions, in plain Rust: for machines without the instructions, for what is left at the ends, for tests.

use crate::cpu::bitmap::Bits;
use crate::cpu::indices::index;
use crate::cpu::rows::runs;

/// As [`super::compress`], with `at` values written before.
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

/// As [`super::compact`], `extract` moving the bits under a mask together.
#[inline(always)]
pub(super) fn compact(
    words: &[u64],
    value: impl Fn(usize) -> u64,
    mut fill: usize,
    out: &mut [u64],
    extract: impl Fn(u64, u64) -> u64,
) -> (u64, usize) {
    let (mut head, mut in_head) = (0, fill > 0);
    let mut out = out.iter_mut();
    let mut flush = |word: u64| {
        if in_head {
            (head, in_head) = (word, false);
        } else if let Some(slot) = out.next() {
            *slot = word;
        }
    };
    let (mut pending, mut ones) = (0, 0);
    for (i, mask) in words.iter().enumerate() {
        if *mask == 0 {
            continue;
        }
        let bits = extract(value(i), *mask);
        ones += bits.count_ones() as usize;
        pending |= bits << fill;
        let filled = fill + mask.count_ones() as usize;
        if filled >= 64 {
            flush(pending);
            pending = if fill == 0 { 0 } else { bits >> (64 - fill) };
        }
        fill = filled % 64;
    }
    if fill > 0 {
        flush(pending);
    }
    (head, ones)
}

/// The bits of `value` where `mask` has ones, moved together at the low end.
pub(super) fn extract(value: u64, mask: u64) -> u64 {
    let (mut rest, mut bits, mut at) = (mask, 0, 0);
    while rest != 0 {
        bits |= (value >> rest.trailing_zeros() & 1) << at;
        at += 1;
        rest &= rest - 1;
    }
    bits
}

/// As [`super::gather`].
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
        let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
        for (i, (at, out)) in indices.iter().zip(out).enumerate() {
            let at = index(*at);
            let inside = at < limit;
            good &= inside | (valid >> i & 1 == 0);
            // `limit` is at most the length, which the compiler does not know.
            *out = values.get(if inside { at as usize } else { usize::MAX }).copied().unwrap_or([0; W]);
        }
    }
    good
}

/// As [`super::gather_bits`].
#[inline(always)]
pub(super) fn gather_bits<const I: usize>(
    bits: Bits,
    indices: &[[u8; I]],
    limit: u64,
    valid: Option<Bits>,
    out: &mut [u64],
) -> bool {
    let mut good = true;
    for (word, (indices, out)) in indices.chunks(64).zip(out).enumerate() {
        let valid = valid.map_or(u64::MAX, |valid| valid.word(word));
        let mut taken = 0;
        for (i, at) in indices.iter().enumerate() {
            let at = index(*at);
            let inside = at < limit;
            good &= inside | (valid >> i & 1 == 0);
            taken |= u64::from(inside && bits.get(at as usize)) << i;
        }
        *out = taken & valid;
    }
    good
}
