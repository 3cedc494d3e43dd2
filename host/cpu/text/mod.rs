//! Tests of text in host memory; they yield a bit for each row, 64 rows to a word.
//!
//! The one idea: a constant operand is analysed once, to find a test that handles many rows at a time. If no
//! such test exists, or a row lies outside its buffer, rows are tested one by one. Comparisons of two columns
//! are rare and share one loop.

pub(super) mod layout;
mod needle;
mod search;
mod substring;
mod wild;

use std::borrow::Cow;

use bowstring_kernels::text::search::find::SPARE;
use bowstring_kernels::text::search::folds::FOLDS;
use bowstring_kernels::text::search::kernels::passes;
use bowstring_kernels::text::search::like::{Folds, like};
use bowstring_kernels::text::search::test::Test;
use memchr::memmem;

use super::bitmap::Bits;
use super::rows::CHUNK;
use super::selection::PARALLEL;
use super::{intrinsics, memory};
use crate::Result;
use crate::array::{Bitmap, DeviceArray, Parts, Side, outside};
use crate::device::{HostPool, interrupt};
use crate::threads::{among_threads, each_part};
use arrow_schema::DataType;

pub(crate) use layout::single;
use layout::{Column, layout_of};
use needle::{At, Held, Needle, held, turned};
use search::{Pattern, Pieces, SHORT, Searched, found};
pub(crate) use substring::substring;
use wild::Wild;

/// Any valid address, for an empty slice.
static SOMEWHERE: [u8; 1] = [0];

/// The longest list whose values are compared one by one.
const LISTED: usize = 8;

/// Tests each row. Returns booleans, null if either side is.
pub(crate) fn test(
    test: Test,
    left: Side<'_>,
    right: Side<'_>,
    rows: usize,
    pool: &HostPool,
) -> Result<DeviceArray> {
    let valid: Vec<&Bitmap> = [left, right].into_iter().filter_map(Side::nulls).collect();
    let mut words = pool.alloc(rows.div_ceil(64) * 8)?;
    let out = &mut memory::values_mut::<u64>(&mut words)[..rows.div_ceil(64)];
    // The bytes of a null row are unspecified.
    let counts = |row: usize| valid.iter().all(|valid| Bits::of(valid, rows).get(row));
    match (left, right) {
        (Side::Column(left), Side::Same(needle)) => {
            of_column(&Asked::of(test, needle), left, &counts, out)?;
        }
        (Side::Column(left), Side::List(list)) => of_column(&Asked::in_list(list), left, &counts, out)?,
        _ => {
            let (left, right) = (layout_of(left), layout_of(right));
            let pair = |row: usize| {
                let (left, right) = (left.row(row)?, right.row(row)?);
                Some(match test {
                    Test::Contains => memmem::find(left, right).is_some(),
                    _ => passes(test, left, right),
                })
            };
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
    DeviceArray::made(parts, true)
}

/// Returns whether a row is valid, so that bad bytes are an error.
type Counts<'a> = &'a (dyn Fn(usize) -> bool + Sync);

/// Runs `part` on parts of the words, with the first row of each. Returns the error of the first part that
/// fails.
fn in_parts(
    rows: usize,
    out: &mut [u64],
    part: &(dyn Fn(usize, &mut [u64]) -> Result<()> + Sync),
) -> Result<()> {
    among_threads(rows >= PARALLEL, |large| {
        if !large {
            return part(0, out);
        }
        let parts = out.chunks_mut(CHUNK / 64).enumerate();
        each_part(parts, |(i, out)| part(i * CHUNK, out))?.into_iter().collect()
    })
}

/// Tests the rows from `first` on, one by one. The first valid row outside its buffer is an error.
#[inline(always)]
fn fill(
    first: usize,
    rows: usize,
    out: &mut [u64],
    answer: impl Fn(usize) -> Option<bool>,
    counts: Counts<'_>,
) -> Result<()> {
    for (i, out) in out.iter_mut().enumerate() {
        // A pattern may take long for each row, so an interrupt is checked for each word.
        interrupt::check()?;
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

/// A test of one row's bytes.
type Passes<'a> = Box<dyn Fn(&[u8]) -> bool + Sync + 'a>;

/// Returns text in the form in which it is compared, case-folded if asked; `None` if the bytes are not UTF-8.
fn written(text: &[u8], fold: bool) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(text).ok()?;
    let folded = |c: char| char::from_u32(FOLDS.fold(u32::from(c))).unwrap_or(c);
    Some(if fold { text.chars().map(folded).collect::<String>().into() } else { text.into() })
}

/// A test against a constant, by its fastest implementation.
enum Asked<'a> {
    /// Tests for a needle; the flag inverts the result.
    Held(Needle<'a>, bool),
    /// Tests for any of a few values.
    Any(Vec<Needle<'a>>),
    Pieces(Pieces<'a>),
    Other(Passes<'a>),
}

impl<'a> Asked<'a> {
    fn of(test: Test, needle: &'a [u8]) -> Asked<'a> {
        // On Zen, a masked load of zero bytes at an invalid address costs hundreds of cycles, so an empty
        // needle gets a valid one.
        let needle = if needle.is_empty() { &SOMEWHERE[..0] } else { needle };
        match test {
            Test::Compare(bits @ (2 | 5)) => Asked::Held(Needle::new(needle, At::Whole), bits == 5),
            Test::StartsWith => Asked::Held(Needle::new(needle, At::Start), false),
            Test::EndsWith => Asked::Held(Needle::new(needle, At::End), false),
            Test::Like | Test::Contains => match Pattern::of(test, needle) {
                Pattern::Held(needle) => Asked::Held(needle, false),
                Pattern::Pieces(pieces) => Asked::Pieces(pieces),
                Pattern::Other if needle.len() > SHORT => Asked::long(test, needle),
                Pattern::Other => Asked::Other(Box::new(move |row| like(row, needle, FOLDS, false, SPARE))),
            },
            Test::ILike if needle.len() > SHORT => Asked::long(test, needle),
            _ => Asked::Other(Box::new(move |row| passes(test, row, needle))),
        }
    }

    /// Prepares a long pattern, whose pieces are searched for. Without regard to case, texts are rewritten in
    /// one representative of each set of characters that fold alike.
    fn long(test: Test, pattern: &'a [u8]) -> Asked<'a> {
        let fold = test == Test::ILike;
        let own = written(pattern, fold);
        let pieces = own.as_ref().and_then(|pattern| Pieces::escaped(pattern.as_bytes()));
        let wild = own.as_ref().filter(|_| pieces.is_none()).and_then(|pattern| Wild::of(pattern));
        if pieces.is_none() && wild.is_none() {
            return Asked::Other(Box::new(move |row| passes(test, row, pattern)));
        }
        Asked::Other(Box::new(move |row| match (&pieces, &wild, written(row, fold)) {
            (Some(pieces), _, Some(row)) => pieces.matches(row.as_bytes()),
            (_, Some(wild), Some(row)) => wild.matches(&row),
            _ => passes(test, row, pattern),
        }))
    }

    fn in_list(list: &'a [&[u8]]) -> Asked<'a> {
        if list.len() <= LISTED {
            return Asked::Any(list.iter().map(|one| Needle::new(one, At::Whole)).collect());
        }
        Asked::Other(Box::new(|row| list.binary_search_by(|one| (*one).cmp(row)).is_ok()))
    }

    fn answer(&self, row: &[u8]) -> bool {
        match self {
            Asked::Held(needle, not) => needle.is_of(row) != *not,
            Asked::Any(needles) => needles.iter().any(|needle| needle.is_of(row)),
            Asked::Pieces(pieces) => pieces.matches(row),
            Asked::Other(passes) => passes(row),
        }
    }
}

fn of_column(asked: &Asked<'_>, column: &DeviceArray, counts: Counts<'_>, out: &mut [u64]) -> Result<()> {
    match Column::of(column) {
        Column::Short(layout) => of_rows(asked, &layout, column.len(), counts, out),
        Column::Long(layout) => of_rows(asked, &layout, column.len(), counts, out),
        Column::Views(layout) => of_rows(asked, &layout, column.len(), counts, out),
    }
}

fn of_rows<L: Held + Searched>(
    asked: &Asked<'_>,
    layout: &L,
    rows: usize,
    counts: Counts<'_>,
    out: &mut [u64],
) -> Result<()> {
    in_parts(rows, out, &|first, out| {
        let done = match asked {
            Asked::Held(needle, not) => {
                let done = held(layout, first, rows, needle, out);
                if *not {
                    turned(first, rows, out);
                }
                done
            }
            Asked::Any(needles) => {
                let (mut any, mut all) = (vec![0; out.len()], layout.placed(first, rows, out.len()));
                for needle in needles {
                    all &= held(layout, first, rows, needle, out);
                    any.iter_mut().zip(&*out).for_each(|(any, word)| *any |= word);
                }
                out.copy_from_slice(&any);
                all
            }
            Asked::Pieces(pieces) => found(layout, first, rows, pieces, out),
            Asked::Other(_) => false,
        };
        if done {
            return Ok(());
        }
        fill(first, rows, out, |row| layout.row(row).map(|row| asked.answer(row)), counts)
    })
}
