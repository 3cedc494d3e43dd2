//! Keys that are numbers of a short span: their extent, and their places in it.

use std::ops::Range;

use super::super::bitmap::Bits;
use super::super::intrinsics::{AHEAD, prefetch};
use super::super::memory;
use super::super::vectorise::{Loop, vectorised};
use super::BLOCK;

/// A range of numbers that holds all keys of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cpu) struct Span {
    /// The least number of the column.
    pub base: u64,
    /// How many numbers there are; the next one stands for null, and the one after it for all others.
    pub len: usize,
}

/// A value as a number: signed ones follow each other, and most unsigned ones do.
#[inline(always)]
fn ordered<const W: usize>(value: &[u8; W]) -> u64 {
    let value = u64::from_le_bytes(std::array::from_fn(|i| if i < W { value[i] } else { 0 }));
    value ^ 1 << (8 * W - 1)
}

/// Makes numbers of a span of values.
pub(super) fn of_span<const W: usize>(bytes: &[u8], span: Span, from: Range<usize>, words: &mut [u64]) {
    let values = &memory::plain::<[u8; W]>(bytes).expect("bytes are always aligned")[from];
    vectorised(Numbers { values, span, words });
}

struct Numbers<'a, const W: usize> {
    values: &'a [[u8; W]],
    span: Span,
    words: &'a mut [u64],
}

impl<const W: usize> Loop for Numbers<'_, W> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (base, len) = (self.span.base, self.span.len as u64);
        if let Some(block) = self.values.first_chunk::<BLOCK>() {
            prefetch(block, AHEAD);
        }
        for (word, value) in self.words.iter_mut().zip(self.values) {
            let number = ordered(value).wrapping_sub(base);
            *word = if number < len { number } else { len + 1 };
        }
    }
}

struct Extent<'a, const W: usize>(&'a [[u8; W]]);

impl<const W: usize> Loop for Extent<'_, W> {
    type Output = (u64, u64);
    #[inline(always)]
    fn run(self) -> (u64, u64) {
        let (mut least, mut greatest) = (u64::MAX, 0);
        for block in self.0.chunks(BLOCK) {
            if let Some(block) = block.first_chunk::<BLOCK>() {
                prefetch(block, AHEAD);
            }
            for value in block {
                let value = ordered(value);
                (least, greatest) = (least.min(value), greatest.max(value));
            }
        }
        (least, greatest)
    }
}

/// The least and the greatest number of valid values; the least is greater if there is none.
pub(super) fn extent_of<const W: usize>(
    bytes: &[u8],
    valid: Option<Bits<'_>>,
    rows: Range<usize>,
) -> (u64, u64) {
    let values = &memory::plain::<[u8; W]>(bytes).expect("bytes are always aligned")[rows.clone()];
    let wider = |(least, greatest): (u64, u64), value: u64| (least.min(value), greatest.max(value));
    match valid {
        None => vectorised(Extent(values)),
        Some(valid) => {
            let valid = rows.zip(values).filter(|(row, _)| valid.get(*row));
            valid.map(|(_, value)| ordered(value)).fold((u64::MAX, 0), wider)
        }
    }
}
