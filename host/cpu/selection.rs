//! The rows that a filter keeps: the mask is read once, for any number of columns.
//!
//! The one idea: the mask and its validity become plain words, and the number of kept rows before each chunk
//! is computed. So every chunk of every column knows its place in the output, and chunks are independent of
//! each other. A mask that consists of plain words already, as most do, is used in place.

use std::cmp::Ordering;
use std::ops::Range;

use crate::Result;
use crate::array::{Buffer, DeviceArray};
use crate::device::{HostMemory, HostPool, interrupt};

use super::bitmap::Bits;
use super::{intrinsics, memory, rows};
use crate::threads::{among_threads, each_part, join};

/// The rows of a chunk, the unit of work of a thread. They are 128 KiB of 4-byte values, which two levels of
/// cache hold.
pub(crate) const CHUNK: usize = 32 * 1024;
const CHUNK_WORDS: usize = CHUNK / 64;
/// The number of chunks whose bits one thread counts at a time.
const CHUNKS: usize = 8;

/// The number of rows from which threads pay off: one thread filters half as many numbers in the time that
/// waking another takes.
pub(crate) const PARALLEL: usize = 256 * 1024;

/// The rows of an array of `rows` rows that are kept.
pub(crate) struct Selection {
    rows: usize,
    words: Words,
    /// The number of kept rows before each chunk, followed by the total.
    starts: Vec<usize>,
}

/// A bit for each row; bits past the last row are zero.
enum Words {
    Own(HostMemory),
    Shared(Buffer),
}

impl Selection {
    /// Selects the rows at which a host array of booleans is true.
    pub(crate) fn of_mask(mask: &DeviceArray, pool: &HostPool) -> Result<Selection> {
        match (rows::validity(mask), words_of(mask)) {
            (None, Some(words)) => Selection::of_words(mask.len(), words),
            (valid, _) => Selection::new(rows::booleans(mask), valid, pool),
        }
    }

    /// Selects the rows whose bits are 1 in a buffer of whole words.
    fn of_words(rows: usize, buffer: Buffer) -> Result<Selection> {
        let mut starts = vec![0; rows.div_ceil(CHUNK) + 1];
        let words = plain_words(&buffer);
        among_threads(rows >= PARALLEL, |_| {
            let parts = words.chunks(CHUNKS * CHUNK_WORDS).zip(starts[1..].chunks_mut(CHUNKS));
            each_part(parts, |(words, counts)| {
                let chunks = words.chunks(CHUNK_WORDS).zip(counts);
                chunks.for_each(|(words, count)| *count = intrinsics::count_ones(words));
            })
        })?;
        Ok(Selection { rows, words: Words::Shared(buffer), starts: summed(starts) })
    }

    /// Selects the rows that are 1 in `mask` and, if given, in `valid`.
    pub(crate) fn new(mask: Bits, valid: Option<Bits>, pool: &HostPool) -> Result<Selection> {
        Selection::from_words(mask.len(), pool, |words, first| {
            intrinsics::read_words(mask, first, words, |_, word| word);
            if let Some(valid) = valid {
                intrinsics::read_words(valid, first, words, |mask, word| mask & word);
            }
        })
    }

    /// Selects the rows that `fill` sets. It must write all of the words it is given, which begin with word
    /// `first`, and no bit past row `rows`. Several threads may call it.
    pub(crate) fn from_words(
        rows: usize,
        pool: &HostPool,
        fill: impl Fn(&mut [u64], usize) + Sync,
    ) -> Result<Selection> {
        Selection::filled(rows, pool.alloc(rows.div_ceil(64) * 8)?, fill)
    }

    /// Selects the rows that are 1 in these words, which must have no bit past row `rows`.
    pub(crate) fn of_own(rows: usize, words: HostMemory) -> Result<Selection> {
        Selection::filled(rows, words, |_, _| {})
    }

    fn filled(
        rows: usize,
        mut words: HostMemory,
        fill: impl Fn(&mut [u64], usize) + Sync,
    ) -> Result<Selection> {
        let all = &mut memory::values_mut::<u64>(&mut words)[..rows.div_ceil(64)];
        let mut starts = vec![0; rows.div_ceil(CHUNK) + 1];
        count_chunks(all, 0, &mut starts[1..], &fill)?;
        Ok(Selection { rows, words: Words::Own(words), starts: summed(starts) })
    }

    /// Selects all of `rows` rows.
    pub(crate) fn all(rows: usize, pool: &HostPool) -> Result<Selection> {
        Selection::from_words(rows, pool, |words, first| {
            let there = |word: usize| rows::ones((rows - (first + word) * 64).min(64));
            words.iter_mut().enumerate().for_each(|(i, word)| *word = there(i));
        })
    }

    /// Splits the selection: the first `kept` of its rows, and the others.
    pub(crate) fn split(&self, kept: usize, pool: &HostPool) -> Result<(Selection, Selection)> {
        let (all, mut left, mut middle) = (self.words(), kept, 0);
        while let Some(ones) = all.get(middle).map(|word| word.count_ones() as usize)
            && ones <= left
        {
            (left, middle) = (left - ones, middle + 1);
        }
        let mut divided = all.get(middle).copied().unwrap_or(0);
        (0..left).for_each(|_| divided &= divided - 1);
        let behind = |word: usize| match word.cmp(&middle) {
            Ordering::Less => 0,
            Ordering::Equal => divided,
            Ordering::Greater => all[word],
        };
        let part = |of: &(dyn Fn(usize) -> u64 + Sync)| {
            Selection::from_words(self.rows, pool, |words, first| {
                words.iter_mut().enumerate().for_each(|(i, word)| *word = of(first + i));
            })
        };
        Ok((part(&|word| all[word] & !behind(word))?, part(&behind)?))
    }

    /// Returns the number of rows that the selection was made for.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of kept rows.
    pub(crate) fn len(&self) -> usize {
        *self.starts.last().expect("starts ends with the total")
    }

    /// Returns the first and the last of the kept rows, of which there are some.
    pub(crate) fn ends(&self) -> (usize, usize) {
        let words = self.words();
        let is_kept = |word: &u64| *word != 0;
        let first = words.iter().position(is_kept).expect("rows are kept");
        let last = words.iter().rposition(is_kept).expect("rows are kept");
        (first * 64 + words[first].trailing_zeros() as usize, last * 64 + words[last].ilog2() as usize)
    }

    /// Returns a bit for each row, as words.
    pub(crate) fn words(&self) -> &[u64] {
        match &self.words {
            Words::Own(memory) => {
                let words = memory::plain::<u64>(memory.bytes()).expect("blocks are aligned to 256 bytes");
                &words[..self.rows.div_ceil(64)]
            }
            Words::Shared(buffer) => plain_words(buffer),
        }
    }

    /// Returns the number of chunks of all rows.
    pub(crate) fn chunks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the rows of a chunk, and their place in the output.
    pub(crate) fn chunk(&self, chunk: usize) -> Chunk<'_> {
        let rows = chunk * CHUNK..self.rows.min((chunk + 1) * CHUNK);
        let words = &self.words()[rows.start / 64..rows.end.div_ceil(64)];
        Chunk { rows, words, out: self.starts[chunk]..self.starts[chunk + 1] }
    }

    /// Calls `write` with every chunk and its own part of `out`, which has `width` elements for every kept
    /// row.
    pub(crate) fn write<T: Send>(
        &self,
        width: usize,
        out: &mut [T],
        write: &(impl Fn(Chunk, &mut [T]) + Sync),
    ) -> Result<()> {
        assert_eq!(out.len(), self.len() * width);
        self.write_chunks(0..self.chunks(), width, out, write)
    }

    fn write_chunks<T: Send>(
        &self,
        chunks: Range<usize>,
        width: usize,
        out: &mut [T],
        write: &(impl Fn(Chunk, &mut [T]) + Sync),
    ) -> Result<()> {
        if chunks.len() <= 1 {
            interrupt::check()?;
            if !out.is_empty() {
                write(self.chunk(chunks.start), out);
            }
            return Ok(());
        }
        let middle = chunks.start + chunks.len() / 2;
        let (left, right) = out.split_at_mut((self.starts[middle] - self.starts[chunks.start]) * width);
        let (left, right) = join(
            self.rows >= PARALLEL,
            || self.write_chunks(chunks.start..middle, width, left, write),
            || self.write_chunks(middle..chunks.end, width, right, write),
        );
        left.and(right)
    }

    /// Writes the kept bits of `bits` to the words of `out`, and returns the number of set ones.
    pub(crate) fn write_bits(&self, bits: Bits, out: &mut [u64]) -> Result<usize> {
        assert_eq!((bits.len(), out.len()), (self.rows, self.len().div_ceil(64)));
        if out.is_empty() {
            return Ok(0);
        }
        let (seam, ones) = self.write_bit_chunks(0..self.chunks(), bits, out)?;
        debug_assert_eq!(seam, 0, "the first chunk owns the first word");
        Ok(ones)
    }

    /// Writes the bits of some chunks. A chunk's output seldom begins at a word boundary: it owns the words
    /// that begin inside of it, and returns the bits that belong to the word before.
    fn write_bit_chunks(&self, chunks: Range<usize>, bits: Bits, out: &mut [u64]) -> Result<(u64, usize)> {
        if chunks.len() == 1 {
            interrupt::check()?;
            let chunk = self.chunk(chunks.start);
            let bits = bits.slice(chunk.rows.start, chunk.rows.len());
            return Ok(intrinsics::compact(chunk.words, bits, chunk.out.start % 64, out));
        }
        let middle = chunks.start + chunks.len() / 2;
        let first = self.starts[chunks.start].div_ceil(64);
        let seam = self.starts[middle];
        let (left, right) = out.split_at_mut(seam.div_ceil(64) - first);
        let (of_left, of_right) = join(
            self.rows >= PARALLEL,
            || self.write_bit_chunks(chunks.start..middle, bits, left),
            || self.write_bit_chunks(middle..chunks.end, bits, right),
        );
        let ((mut head, left_ones), (bits_over, right_ones)) = (of_left?, of_right?);
        if !seam.is_multiple_of(64) {
            match (seam / 64).checked_sub(first) {
                Some(word) => left[word] |= bits_over,
                None => head |= bits_over,
            }
        }
        Ok((head, left_ones + right_ones))
    }
}

/// A chunk of rows, with its part of the selection and its place in the output.
pub(crate) struct Chunk<'a> {
    /// The chunk's rows within the array.
    pub(crate) rows: Range<usize>,
    /// The selection's words for these rows.
    pub(crate) words: &'a [u64],
    /// The places of the kept rows in the output.
    pub(crate) out: Range<usize>,
}

/// Returns the words of a mask's booleans; `None` unless they are plain words: aligned, whole, and zero past
/// the last row.
fn words_of(mask: &DeviceArray) -> Option<Buffer> {
    let bytes = mask.len().div_ceil(64) * 8;
    let (buffer, first) = (&mask.buffers()[0], mask.offset() / 8);
    let aligned = mask.offset().is_multiple_of(8) && (buffer.address() + first).is_multiple_of(8);
    if !aligned || bytes == 0 || buffer.bytes()? < first + bytes {
        return None;
    }
    let words = buffer.slice(first, Some(bytes));
    let past = plain_words(&words).last()? & !rows::ones((mask.len() - 1) % 64 + 1);
    (past == 0).then_some(words)
}

fn plain_words(buffer: &Buffer) -> &[u64] {
    memory::plain(memory::bytes(buffer)).expect("shared where aligned")
}

/// Returns the number of kept rows before each chunk and the total. The input is each chunk's own number,
/// with a zero in front.
fn summed(mut starts: Vec<usize>) -> Vec<usize> {
    let mut before = 0;
    for start in &mut starts {
        before += *start;
        *start = before;
    }
    starts
}

fn count_chunks(
    words: &mut [u64],
    first: usize,
    counts: &mut [usize],
    fill: &(impl Fn(&mut [u64], usize) + Sync),
) -> Result<()> {
    if counts.len() <= 1 {
        interrupt::check()?;
        fill(words, first);
        if let [count] = counts {
            *count = intrinsics::count_ones(words);
        }
        return Ok(());
    }
    let middle = counts.len() / 2;
    let (left, right) = words.split_at_mut(middle * CHUNK_WORDS);
    let (left_counts, right_counts) = counts.split_at_mut(middle);
    let (left, right) = join(
        (left.len() + right.len()) * 64 >= PARALLEL,
        || count_chunks(left, first, left_counts, fill),
        || count_chunks(right, first + middle * CHUNK_WORDS, right_counts, fill),
    );
    left.and(right)
}
