//! Texts that are so short that words hold them, with their lengths.

use std::ops::Range;

use super::super::rows::{CHUNK, offset};
use super::super::text::layout::{Column as Text, Layout, Offsets};
use super::super::vectorise::{Loop, vectorised};
use super::hash::first_bytes;
use crate::threads::each_part;

/// The most bytes of a short text: with its length, it fits a word.
const SHORT: usize = 7;

/// The bits that hold each text of at most so many bytes, with its length.
pub(super) fn bits_of(longest: usize) -> u32 {
    8 * longest as u32 + SHORT.ilog2() + 1
}

/// The length of the longest text; `None` if it is not short, or if a text lies outside of its buffer.
pub(super) fn longest(text: &Text<'_>, rows: usize) -> Option<usize> {
    match text {
        Text::Short(text) => longest_of(rows, |rows| of_offsets(text, rows)),
        Text::Long(text) => longest_of(rows, |rows| of_offsets(text, rows)),
        // Views of short texts hold them.
        Text::Views(text) => longest_of(rows, |rows| vectorised(Viewed(&text.views[rows]))),
    }
}

fn longest_of(rows: usize, of: impl Fn(Range<usize>) -> usize + Sync) -> Option<usize> {
    let first = of(0..rows.min(CHUNK));
    if first > SHORT {
        return None;
    }
    let parts = (CHUNK..rows).step_by(CHUNK).map(|first| first..rows.min(first + CHUNK));
    let longest = each_part(parts, &of).ok()?.into_iter().fold(first, usize::max);
    (longest <= SHORT).then_some(longest)
}

fn of_offsets<const O: usize>(text: &Offsets<'_, O>, rows: Range<usize>) -> usize {
    let offsets = &text.offsets[rows.start..=rows.end];
    // Offsets that go back make a text that is longer than all buffers. If there is none, all lie between the
    // first and the last.
    let longest = vectorised(Distances(offsets));
    let inside = |at: [u8; O]| offset(at) <= text.bytes.len();
    if inside(offsets[0]) && inside(offsets[offsets.len() - 1]) { longest } else { usize::MAX }
}

/// Finds the longest of the texts between offsets.
struct Distances<'a, const O: usize>(&'a [[u8; O]]);

impl<const O: usize> Loop for Distances<'_, O> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let (starts, ends) = (&self.0[..self.0.len() - 1], &self.0[1..]);
        let mut longest = 0;
        for (start, end) in starts.iter().zip(ends) {
            longest = longest.max(offset(*end).wrapping_sub(offset(*start)));
        }
        longest
    }
}

/// Finds the longest of the texts of views.
struct Viewed<'a>(&'a [[u8; 16]]);

impl Loop for Viewed<'_> {
    type Output = usize;
    #[inline(always)]
    fn run(self) -> usize {
        let len = |view: &[u8; 16]| u32::from_le_bytes(std::array::from_fn(|i| view[i]));
        self.0.iter().fold(0, |longest, view| longest.max(len(view))) as usize
    }
}

/// A short text with its length. It is known to lie inside of its buffer.
#[inline(always)]
pub(super) fn word_of(text: &impl Layout, row: usize, longest: usize) -> u64 {
    let (bytes, len) = text.from(row).unwrap_or((&[], 0));
    let eight = match bytes.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight) & ((1 << (8 * len.min(SHORT))) - 1),
        None => first_bytes(bytes, len.min(bytes.len())) as u64,
    };
    eight | (len as u64) << (8 * longest)
}
