//! Tests of text in host memory: a bit for each row, 64 rows to a word.
//!
//! The one idea: what all rows are tested against is looked at once, and becomes a way to look at many rows; where there is none,
//! or a row is not where it should be, rows are looked at one by one. Two columns are rare, and are one loop for all.

pub(super) mod layout;
mod needle;
mod search;
mod wild;

use std::borrow::Cow;

use bowstring_kernels::text::{FOLDS, Folds, Test, like, passes};
use memchr::memmem;

use super::bitmap::Bits;
use super::rows::CHUNK;
use super::selection::PARALLEL;
use super::threads::{among_threads, each_part};
use super::{intrinsics, memory};
use crate::Result;
use crate::array::{Array, Bitmap, Parts, Side, outside};
use crate::device::{HostPool, interrupt};
use arrow_schema::DataType;

pub(crate) use layout::single;
use layout::{Column, layout_of};
use needle::{At, Held, Needle, held, turned};
use search::{Pattern, Pieces, SHORT, Searched, found};
use wild::Wild;

/// Any address.
static SOMEWHERE: [u8; 1] = [0];

/// Values of a list that are looked for one by one.
const LISTED: usize = 8;

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
    Array::made(parts, true)
}

/// Whether a row counts.
type Counts<'a> = &'a (dyn Fn(usize) -> bool + Sync);

/// Runs `part` on parts of the words, with the row that each begins with; of errors that of the first part.
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
        // Patterns may take long for each row.
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

/// A test of a row.
type Passes<'a> = Box<dyn Fn(&[u8]) -> bool + Sync + 'a>;

/// Text as it is compared; nothing where it is none.
fn written(text: &[u8], fold: bool) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(text).ok()?;
    let folded = |c: char| char::from_u32(FOLDS.fold(u32::from(c))).unwrap_or(c);
    Some(if fold { text.chars().map(folded).collect::<String>().into() } else { text.into() })
}

/// A test of all rows against the same, by what answers it soonest.
enum Asked<'a> {
    /// Whether they hold a needle; or, if so said, whether they do not.
    Held(Needle<'a>, bool),
    /// Whether they are one of a few.
    Any(Vec<Needle<'a>>),
    Pieces(Pieces<'a>),
    Other(Passes<'a>),
}

impl<'a> Asked<'a> {
    fn of(test: Test, needle: &'a [u8]) -> Asked<'a> {
        // Comparing with nothing at no address costs hundreds of cycles where a processor loads none of its bytes.
        let needle = if needle.is_empty() { &SOMEWHERE[..0] } else { needle };
        match test {
            Test::Compare(bits @ (2 | 5)) => Asked::Held(Needle::new(needle, At::Whole), bits == 5),
            Test::StartsWith => Asked::Held(Needle::new(needle, At::Start), false),
            Test::EndsWith => Asked::Held(Needle::new(needle, At::End), false),
            Test::Like | Test::Contains => match Pattern::of(test, needle) {
                Pattern::Held(needle) => Asked::Held(needle, false),
                Pattern::Pieces(pieces) => Asked::Pieces(pieces),
                Pattern::Other if needle.len() > SHORT => Asked::long(test, needle),
                Pattern::Other => Asked::Other(Box::new(move |row| like(row, needle, FOLDS, false))),
            },
            Test::ILike if needle.len() > SHORT => Asked::long(test, needle),
            _ => Asked::Other(Box::new(move |row| passes(test, row, needle))),
        }
    }

    /// A long pattern, whose pieces are searched. Texts are written in characters that stand for all that fold alike
    /// where case does not count.
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

fn of_column(asked: &Asked<'_>, column: &Array, counts: Counts<'_>, out: &mut [u64]) -> Result<()> {
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
