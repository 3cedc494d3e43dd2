//! Tests of text in host memory: a bit for each row, 64 rows to a word.
//!
//! The one idea: what all rows are tested against is looked at once, and becomes a function of a row; what lays a column's rows out
//! is a [`Layout`]. The loop is compiled for each pair of them. Two columns are rare, and are one loop for all.

use bowstring_kernels::text::{FOLDS, Head, Test, like, passes};
use memchr::memmem::Finder;

use super::bitmap::Bits;
use super::rows::{self, CHUNK};
use super::selection::PARALLEL;
use super::threads::{among_threads, each_part};
use super::{intrinsics, memory};
use crate::Result;
use crate::array::{Array, Bitmap, Parts, Side, Slot, outside};
use crate::device::HostPool;
use arrow_schema::DataType;

/// What a view holds itself, in bytes.
const INLINE: usize = 12;

/// How a column lays its rows out.
trait Layout: Sync {
    /// A row's bytes; `None` where they are not in its buffer.
    fn row(&self, row: usize) -> Option<&[u8]>;

    /// The length and the first four bytes, zeros behind the last, where they lie together.
    #[inline(always)]
    fn head(&self, _row: usize) -> Option<u64> {
        None
    }
}

struct Offsets<'a, const O: usize> {
    offsets: &'a [[u8; O]],
    bytes: &'a [u8],
}

impl<const O: usize> Layout for Offsets<'_, O> {
    #[inline(always)]
    fn row(&self, row: usize) -> Option<&[u8]> {
        self.bytes.get(rows::offset(self.offsets[row])..rows::offset(self.offsets[row + 1]))
    }
}

struct Views<'a> {
    views: &'a [[u8; 16]],
    buffers: Vec<&'a [u8]>,
}

impl Layout for Views<'_> {
    #[inline(always)]
    fn row(&self, row: usize) -> Option<&[u8]> {
        let view = &self.views[row];
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|k| view[4 * i + k])) as usize;
        let len = word(0);
        if len <= INLINE {
            return Some(&view[4..4 + len]);
        }
        self.buffers.get(word(2))?.get(word(3)..)?.get(..len).filter(|_| len <= i32::MAX as usize)
    }

    #[inline(always)]
    fn head(&self, row: usize) -> Option<u64> {
        Some(u64::from_le_bytes(std::array::from_fn(|k| self.views[row][k])))
    }
}

/// The same bytes in every row.
struct Same<'a>(&'a [u8]);

impl Layout for Same<'_> {
    fn row(&self, _row: usize) -> Option<&[u8]> {
        Some(self.0)
    }
}

/// The test of each row, as an array of booleans; null where either side is.
pub(crate) fn test(
    test: Test,
    left: Side<'_>,
    right: Side<'_>,
    rows: usize,
    pool: &HostPool,
) -> Result<Array> {
    let valid: Vec<&Bitmap> = [left, right].into_iter().filter_map(Side::nulls).collect();
    let mut words = pool.alloc(rows.div_ceil(64) * 8)?;
    let out = &mut memory::values_mut::<u64>(&mut words)[..rows.div_ceil(64)];
    // What is null may be anything.
    let counts = |row: usize| valid.iter().all(|valid| Bits::of(valid, rows).get(row));
    match (left, right) {
        (Side::Column(left), Side::Same(needle)) => against_one(test, left, needle, &counts, out)?,
        (Side::Column(left), Side::List(list)) => {
            let is_in = |row: &[u8]| list.binary_search_by(|one| one.cmp(&row)).is_ok();
            of_column(left, Head::NONE, is_in, &counts, out)?;
        }
        _ => {
            let (left, right) = (layout_of(left), layout_of(right));
            let pair = |row: usize| Some(passes(test, left.row(row)?, right.row(row)?));
            in_parts(rows, out, &|first, out| fill(first, rows, out, pair, &counts))?;
        }
    }
    let mut parts = Parts::new(DataType::Boolean, rows);
    parts.buffers = vec![words.freeze(rows.div_ceil(8))];
    match valid[..] {
        [] => parts.null_count = Some(0),
        [one] => {
            parts.validity = Some(one.clone());
            parts.null_count = None;
        }
        _ => {
            let mut both = pool.alloc(rows.div_ceil(64) * 8)?;
            let of_both = &mut memory::values_mut::<u64>(&mut both)[..rows.div_ceil(64)];
            for (i, word) in of_both.iter_mut().enumerate() {
                *word = valid.iter().fold(!0, |word, valid| word & Bits::of(valid, rows).word(i));
            }
            parts.null_count = Some(rows - intrinsics::count_ones(of_both));
            parts.validity = Some(Bitmap { buffer: both.freeze(rows.div_ceil(8)), offset: 0 });
        }
    }
    Array::made(parts, true)
}

/// The bytes of the only row of a column.
pub(crate) fn single(column: &Array) -> Result<Vec<u8>> {
    layout_of(Side::Column(column)).row(0).map(<[u8]>::to_vec).ok_or_else(|| outside(0))
}

/// Whether a row counts.
type Counts<'a> = &'a (dyn Fn(usize) -> bool + Sync);

/// Runs `part` on parts of the words, with the row that each begins with; of errors that of the first part.
fn in_parts(
    rows: usize,
    out: &mut [u64],
    part: &(dyn Fn(usize, &mut [u64]) -> Result<()> + Sync),
) -> Result<()> {
    among_threads(rows >= PARALLEL, |parallel| {
        if !parallel {
            return part(0, out);
        }
        let parts = out.chunks_mut(CHUNK / 64).enumerate();
        each_part(parts, |(i, out)| part(i * CHUNK, out)).into_iter().collect()
    })
}

/// The bits of rows from `first` on; of those whose bytes are nowhere, the first that counts is the error.
#[inline(always)]
fn fill(
    first: usize,
    rows: usize,
    out: &mut [u64],
    answer: impl Fn(usize) -> Option<bool>,
    counts: Counts<'_>,
) -> Result<()> {
    for (i, out) in out.iter_mut().enumerate() {
        let (start, mut word, mut bad) = (first + i * 64, 0, false);
        for k in 0..64.min(rows - start) {
            let passes = answer(start + k);
            bad |= passes.is_none();
            word |= u64::from(passes.unwrap_or(false)) << k;
        }
        *out = word;
        if bad {
            nowhere(start..rows.min(start + 64), &answer, counts)?;
        }
    }
    Ok(())
}

#[cold]
fn nowhere(
    rows: std::ops::Range<usize>,
    answer: &dyn Fn(usize) -> Option<bool>,
    counts: Counts<'_>,
) -> Result<()> {
    match rows.into_iter().find(|row| answer(*row).is_none() && counts(*row)) {
        Some(row) => Err(outside(row)),
        None => Ok(()),
    }
}

/// A test of a column's rows.
fn of_column(
    column: &Array,
    head: Head,
    passes: impl Fn(&[u8]) -> bool + Sync,
    counts: Counts<'_>,
    out: &mut [u64],
) -> Result<()> {
    let rows = column.len();
    match column.layout().slots().next() {
        Some(Slot::Offsets(4)) => of_rows(&offsets::<4>(column), rows, head, passes, counts, out),
        Some(Slot::Offsets(_)) => of_rows(&offsets::<8>(column), rows, head, passes, counts, out),
        _ => of_rows(&views(column), rows, head, passes, counts, out),
    }
}

fn of_rows<L: Layout>(
    layout: &L,
    rows: usize,
    head: Head,
    passes: impl Fn(&[u8]) -> bool + Sync,
    counts: Counts<'_>,
    out: &mut [u64],
) -> Result<()> {
    let whole = |row: usize| layout.row(row).map(&passes);
    if !head.compares() || rows == 0 || layout.head(0).is_none() {
        return in_parts(rows, out, &|first, out| fill(first, rows, out, whole, counts));
    }
    let by_head = |row: usize| layout.head(row).and_then(|own| head.answer(own)).or_else(|| whole(row));
    in_parts(rows, out, &|first, out| fill(first, rows, out, by_head, counts))
}

fn offsets<const O: usize>(column: &Array) -> Offsets<'_, O> {
    Offsets { offsets: rows::offsets(column), bytes: memory::bytes(&column.buffers()[1]) }
}

fn views(column: &Array) -> Views<'_> {
    let views = rows::values::<16>(&column.buffers()[0], column.offset(), column.len());
    Views { views, buffers: column.buffers()[1..].iter().map(memory::bytes).collect() }
}

fn layout_of(side: Side<'_>) -> Box<dyn Layout + '_> {
    let column = match side {
        Side::Column(column) => column,
        Side::Same(bytes) => return Box::new(Same(bytes)),
        // Only columns are tried against lists.
        Side::List(_) => return Box::new(Same(&[])),
    };
    match column.layout().slots().next() {
        Some(Slot::Offsets(4)) => Box::new(offsets::<4>(column)),
        Some(Slot::Offsets(_)) => Box::new(offsets::<8>(column)),
        _ => Box::new(views(column)),
    }
}

/// A test of all rows against the same bytes.
fn against_one(test: Test, column: &Array, needle: &[u8], counts: Counts<'_>, out: &mut [u64]) -> Result<()> {
    let head = Head::of(test, needle);
    match test {
        Test::Compare(bits @ (2 | 5)) => {
            of_column(column, head, |row| (row == needle) == (bits == 2), counts, out)
        }
        Test::StartsWith => of_column(column, head, |row| row.starts_with(needle), counts, out),
        Test::EndsWith => of_column(column, head, |row| row.ends_with(needle), counts, out),
        Test::Like | Test::Contains => match Pieces::of(test, needle) {
            Some(pieces) => of_column(column, head, |row| pieces.matches(row), counts, out),
            None => of_column(column, head, |row| like(row, needle, FOLDS, false), counts, out),
        },
        _ => of_column(column, head, |row| passes(test, row, needle), counts, out),
    }
}

/// A pattern of nothing but text and `%`: what is at the start, what follows somewhere, in this order, and what is at the end.
struct Pieces<'a> {
    start: &'a [u8],
    inside: Vec<Finder<'a>>,
    end: &'a [u8],
    /// Whether there is no `%`.
    whole: bool,
}

impl<'a> Pieces<'a> {
    fn of(test: Test, pattern: &'a [u8]) -> Option<Pieces<'a>> {
        if test == Test::Contains {
            return Some(Pieces { start: &[], inside: vec![Finder::new(pattern)], end: &[], whole: false });
        }
        if pattern.iter().any(|byte| matches!(byte, b'_' | b'\\')) {
            return None;
        }
        let mut pieces = pattern.split(|byte| *byte == b'%');
        let (start, mut rest) = (pieces.next().unwrap_or(&[]), pieces.collect::<Vec<_>>());
        let end = rest.pop();
        let inside = rest.into_iter().filter(|piece| !piece.is_empty()).map(Finder::new).collect();
        Some(Pieces { start, inside, end: end.unwrap_or(&[]), whole: end.is_none() })
    }

    #[inline]
    fn matches(&self, row: &[u8]) -> bool {
        if self.whole {
            return row == self.start;
        }
        let Some(mut rest) = row.strip_prefix(self.start).and_then(|rest| rest.strip_suffix(self.end)) else {
            return false;
        };
        for piece in &self.inside {
            let Some(at) = piece.find(rest) else { return false };
            rest = &rest[at + piece.needle().len()..];
        }
        true
    }
}
