//! Text tests for equality, prefix and suffix.
//!
//! The one idea: two passes. The first tests what lies close together, in vectors: the lengths, and the
//! prefixes that views hold. It leaves few rows. The second tests the bytes of those rows, eight at a time.

use super::super::rows::{offset, ones};
use super::super::vectorise::{Loop, vectorised};
use super::layout::{INLINE, Layout, Offsets, Views, each_view};

/// The rows of one word of the result.
const BLOCK: usize = 64;

/// The number of candidates in a word from which on all its rows are looked at: without a branch that depends
/// on one, which would be mispredicted.
const MANY: u32 = 40;

/// The place in a row where the needle must lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// The needle is the whole row.
    Whole,
    Start,
    End,
}

/// The bytes that rows are tested for.
#[derive(Clone, Copy)]
pub(super) struct Needle<'a> {
    pub bytes: &'a [u8],
    pub at: At,
    /// The needle's first eight bytes (or fewer), and the mask of those that it has.
    first: u64,
    mask: u64,
}

/// The state of the result after the first pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The bits are final: they mark the rows that hold the needle.
    Those,
    /// The bits mark candidates for the second pass.
    Some,
    /// The bits are unusable: some row lies outside its column's bytes.
    Nothing,
}

/// Returns the first `count` bytes (or fewer) as a number, and the mask of their bits.
pub(super) fn leading(bytes: &[u8], count: usize) -> (u128, u128) {
    let bytes = &bytes[..bytes.len().min(count)];
    let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte));
    (number, (1 << (8 * bytes.len())) - 1)
}

impl<'a> Needle<'a> {
    pub fn new(bytes: &'a [u8], at: At) -> Needle<'a> {
        let (first, mask) = leading(bytes, 8);
        Needle { bytes, at, first: first as u64, mask: mask as u64 }
    }

    /// Returns whether a row holds the needle.
    pub fn is_of(&self, row: &[u8]) -> bool {
        match self.at {
            At::Whole => row == self.bytes,
            At::Start => row.starts_with(self.bytes),
            At::End => row.ends_with(self.bytes),
        }
    }

    /// Returns whether the needle is at `place` of a buffer; it must end within the buffer.
    #[inline(always)]
    fn is_at(&self, buffer: &[u8], place: usize) -> bool {
        let len = self.bytes.len();
        match buffer.get(place..place + 8) {
            Some(eight) => {
                let eight = u64::from_le_bytes(std::array::from_fn(|i| eight[i]));
                eight & self.mask == self.first
                    && (len <= 8 || buffer[place + 8..place + len] == self.bytes[8..])
            }
            None => buffer.get(place..place + len) == Some(self.bytes),
        }
    }
}

/// Layouts in which a needle can be looked for.
pub(super) trait Held: Layout {
    /// Runs the first pass over the rows from `first` on.
    fn sieve(&self, first: usize, rows: usize, needle: &Needle<'_>, out: &mut [u64]) -> Left;
    /// Runs the second pass over the candidates: clears the bits of those that do not hold the needle.
    /// `false` if a row lies outside its buffer.
    fn settle(&self, first: usize, _rows: usize, needle: &Needle<'_>, out: &mut [u64]) -> bool {
        kept(first, out, |row| self.holds(row, needle))
    }
    /// Returns whether the rows from `first` on lie inside their buffers, as far as the first pass does not
    /// check that.
    fn placed(&self, first: usize, rows: usize, words: usize) -> bool;
    /// Returns whether a candidate row holds the needle; `None` if the row lies outside its buffer.
    fn holds(&self, row: usize, needle: &Needle<'_>) -> Option<bool>;
}

impl<const O: usize> Held for Offsets<'_, O> {
    fn sieve(&self, first: usize, rows: usize, needle: &Needle<'_>, out: &mut [u64]) -> Left {
        let last = (first + out.len() * BLOCK).min(rows);
        let offsets = &self.offsets[first..=last];
        let (len, whole) = (needle.bytes.len(), needle.at == At::Whole);
        let forward = vectorised(Lengths { offsets, len, whole, out });
        match forward && offset(offsets[last - first]) <= self.bytes.len() {
            false => Left::Nothing,
            true if len == 0 => Left::Those,
            true => Left::Some,
        }
    }

    fn settle(&self, first: usize, rows: usize, needle: &Needle<'_>, out: &mut [u64]) -> bool {
        out.iter_mut().zip((first..).step_by(BLOCK)).all(|(word, first)| {
            if word.count_ones() > MANY {
                let offsets = &self.offsets[first..=(first + BLOCK).min(rows)];
                *word &= vectorised(Leading { offsets, bytes: self.bytes, needle });
                if needle.bytes.len() <= 8 {
                    return true;
                }
            }
            kept(first, std::slice::from_mut(word), |row| self.holds(row, needle))
        })
    }

    fn placed(&self, _first: usize, _rows: usize, _words: usize) -> bool {
        true
    }

    #[inline(always)]
    fn holds(&self, row: usize, needle: &Needle<'_>) -> Option<bool> {
        Some(needle.is_at(
            self.bytes,
            match needle.at {
                At::End => offset(self.offsets[row + 1]) - needle.bytes.len(),
                _ => offset(self.offsets[row]),
            },
        ))
    }
}

/// Sets the bits of rows that have `len` bytes or, unless `whole`, more. Returns whether the offsets never
/// decrease.
struct Lengths<'a, const O: usize> {
    offsets: &'a [[u8; O]],
    len: usize,
    whole: bool,
    out: &'a mut [u64],
}

impl<const O: usize> Loop for Lengths<'_, O> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let (mut back, wanted) = (false, self.len);
        let rows = self.offsets.len() - 1;
        for (i, word) in self.out.iter_mut().enumerate() {
            let block: &[[u8; O]] = &self.offsets[i * BLOCK..=rows.min((i + 1) * BLOCK)];
            let mut each = |block: &[[u8; O]], k: usize| {
                let (start, end) = (offset(block[k]), offset(block[k + 1]));
                back |= end < start;
                let len = end.wrapping_sub(start);
                u64::from(if self.whole { len == wanted } else { len >= wanted }) << k
            };
            *word = match <&[[u8; O]; BLOCK + 1]>::try_from(block) {
                Ok(block) => (0..BLOCK).fold(0, |word, k| word | each(block, k)),
                Err(_) => (0..block.len() - 1).fold(0, |word, k| word | each(block, k)),
            };
        }
        !back
    }
}

/// Returns the bits of up to 64 rows in which the needle's first eight bytes are where it must lie.
struct Leading<'a, const O: usize> {
    offsets: &'a [[u8; O]],
    bytes: &'a [u8],
    needle: &'a Needle<'a>,
}

impl<const O: usize> Loop for Leading<'_, O> {
    type Output = u64;
    #[inline(always)]
    fn run(self) -> u64 {
        let Leading { offsets, bytes, needle } = self;
        let (len, at_end) = (needle.bytes.len(), usize::from(needle.at == At::End));
        let first = &needle.bytes[..len.min(8)];
        let (mask, wanted) = (needle.mask, needle.first);
        let each = |offsets: &[[u8; O]], k: usize| {
            let place = offset(offsets[k + at_end]).wrapping_sub(at_end * len);
            let same = match bytes.get(place..place.wrapping_add(8)) {
                Some(eight) => u64::from_le_bytes(std::array::from_fn(|i| eight[i])) & mask == wanted,
                None => bytes.get(place..place.wrapping_add(first.len())) == Some(first),
            };
            u64::from(same) << k
        };
        match <&[[u8; O]; BLOCK + 1]>::try_from(offsets) {
            Ok(offsets) => (0..BLOCK).fold(0, |word, k| word | each(offsets, k)),
            Err(_) => (0..offsets.len() - 1).fold(0, |word, k| word | each(offsets, k)),
        }
    }
}

impl Held for Views<'_> {
    fn sieve(&self, first: usize, rows: usize, needle: &Needle<'_>, out: &mut [u64]) -> Left {
        let views = &self.views[first..(first + out.len() * BLOCK).min(rows)];
        let (len, whole) = (needle.bytes.len(), needle.at == At::Whole);
        if needle.at == At::End {
            vectorised(Ends { views, bytes: needle.first, mask: needle.mask, len, out });
            return Left::Some;
        }
        let (want, mask) = leading(needle.bytes, INLINE);
        let (want, mask) = match whole {
            true => (want << 32 | u128::from(len as u32), mask << 32 | u128::from(u32::MAX)),
            false => (want << 32, mask << 32),
        };
        let halves = |of: u128| [of as u64, (of >> 64) as u64];
        vectorised(Shown { views, want: halves(want), mask: halves(mask), least: len as u64, out });
        // A view of a longer row shows four bytes of it. An empty needle is in every row, so it does not
        // prove that the row lies inside its buffer.
        match if whole { len <= INLINE } else { (1..=4).contains(&len) } {
            true => Left::Those,
            false => Left::Some,
        }
    }

    fn placed(&self, first: usize, rows: usize, words: usize) -> bool {
        let mut row = first..(first + words * BLOCK).min(rows);
        row.all(|row| self.len(row) <= INLINE || self.place(row).is_some())
    }

    #[inline(always)]
    fn holds(&self, row: usize, needle: &Needle<'_>) -> Option<bool> {
        let (len, wanted) = (self.len(row), needle.bytes.len());
        if len > INLINE {
            let (buffer, start) = self.place(row)?;
            return Some(
                needle.is_at(buffer, if needle.at == At::End { start + len - wanted } else { start }),
            );
        }
        // The first pass has compared an inline row completely, except for a suffix's bytes after the eighth.
        Some(needle.at != At::End || wanted <= 8 || self.row(row)?.ends_with(needle.bytes))
    }
}

/// Sets the bits of views with at least `least` bytes whose visible part matches; an inline row is visible
/// completely.
struct Shown<'a> {
    views: &'a [[u8; 16]],
    want: [u64; 2],
    mask: [u64; 2],
    least: u64,
    out: &'a mut [u64],
}

impl Loop for Shown<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let ([want, want_rest], [mask, mask_rest], least) = (self.want, self.mask, self.least);
        each_view(self.views, self.out, |[low, high]| {
            let len = low & u64::from(u32::MAX);
            // In a view of a longer row the second half holds a position, not bytes.
            let rest = if len > INLINE as u64 { 0 } else { (high ^ want_rest) & mask_rest };
            (low ^ want) & mask | rest == 0 && len >= least
        });
    }
}

/// Sets the bits of inline views in which the needle's first eight bytes lie where the suffix would start,
/// and of all views of longer rows.
struct Ends<'a> {
    views: &'a [[u8; 16]],
    bytes: u64,
    mask: u64,
    len: usize,
    out: &'a mut [u64],
}

impl Loop for Ends<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (bytes, mask, wanted) = (self.bytes, self.mask, self.len as u64);
        each_view(self.views, self.out, |[low, high]| {
            let len = low & u64::from(u32::MAX);
            // Shifts the row so that up to eight bytes from the suffix's start remain; of the two shifts of
            // `high`, one yields zero.
            let bits = (len.wrapping_sub(wanted) as u32).wrapping_mul(8);
            let here = (low >> 32).unbounded_shr(bits)
                | high.unbounded_shl(32u32.wrapping_sub(bits))
                | high.unbounded_shr(bits.wrapping_sub(32));
            len >= wanted && (len > INLINE as u64 || here & mask == bytes)
        });
    }
}

/// Sets the bits of rows from `first` on that hold the needle. `false` if the rows must be tested one by one.
pub(super) fn held<L: Held>(
    layout: &L,
    first: usize,
    rows: usize,
    needle: &Needle<'_>,
    out: &mut [u64],
) -> bool {
    match layout.sieve(first, rows, needle, out) {
        Left::Those => true,
        Left::Nothing => false,
        Left::Some => layout.settle(first, rows, needle, out),
    }
}

/// Clears the bits of rows for which the answer is no or unknown. Returns whether all answers are known.
#[inline(always)]
pub(super) fn kept(first: usize, out: &mut [u64], answer: impl Fn(usize) -> Option<bool>) -> bool {
    let mut all = true;
    for (i, word) in out.iter_mut().enumerate() {
        let (mut waiting, mut kept) = (*word, 0);
        while waiting != 0 {
            let k = waiting.trailing_zeros();
            waiting &= waiting - 1;
            let answer = answer(first + i * BLOCK + k as usize);
            all &= answer.is_some();
            kept |= u64::from(answer == Some(true)) << k;
        }
        *word = kept;
    }
    all
}

/// Inverts the bits of all rows.
pub(super) fn turned(first: usize, rows: usize, out: &mut [u64]) {
    for (i, word) in out.iter_mut().enumerate() {
        *word ^= ones((rows - first - i * BLOCK).min(BLOCK));
    }
}
