//! Substring tests, and patterns that consist of text and `%` only.
//!
//! The one idea: rows that lie next to each other form one text. It is searched as a whole, and each match is
//! then assigned to its row.

use std::borrow::Cow;

use bowstring_kernels::text::search::test::Test;
use memchr::memmem::Finder;

use super::super::rows::{self, offset};
use super::super::vectorise::{Loop, vectorised};
use super::layout::{INLINE, Layout, Offsets, Views, each_view};
use super::needle::{At, Held, Left, Needle, held, kept, leading};
use crate::rules::pieces_of;

/// A pattern's prefix, its inner pieces in order, and its suffix.
pub(super) struct Pieces<'a> {
    start: Cow<'a, [u8]>,
    inside: Vec<Finder<'a>>,
    end: Cow<'a, [u8]>,
}

/// A pattern, classified by its fastest test.
pub(super) enum Pattern<'a> {
    /// Equality, a prefix, or a suffix.
    Held(Needle<'a>),
    Pieces(Pieces<'a>),
    /// A pattern without a faster test.
    Other,
}

impl<'a> Pattern<'a> {
    pub fn of(test: Test, pattern: &'a [u8]) -> Pattern<'a> {
        if test == Test::Contains {
            return match pattern {
                [] => Pattern::Held(Needle::new(pattern, At::Start)),
                _ => {
                    let none = || Cow::Borrowed(&[][..]);
                    Pattern::Pieces(Pieces { start: none(), inside: vec![Finder::new(pattern)], end: none() })
                }
            };
        }
        if pattern.iter().any(|byte| matches!(byte, b'_' | b'\\')) {
            return Pieces::escaped(pattern).map_or(Pattern::Other, Pattern::Pieces);
        }
        let mut pieces = pattern.split(|byte| *byte == b'%');
        let (start, mut rest) = (pieces.next().unwrap_or(&[]), pieces.collect::<Vec<_>>());
        let Some(end) = rest.pop() else { return Pattern::Held(Needle::new(pattern, At::Whole)) };
        let inside: Vec<Finder<'_>> =
            rest.into_iter().filter(|piece| !piece.is_empty()).map(Finder::new).collect();
        match (start, &inside[..], end) {
            (_, [], []) => Pattern::Held(Needle::new(start, At::Start)),
            ([], [], _) => Pattern::Held(Needle::new(end, At::End)),
            _ => Pattern::Pieces(Pieces { start: start.into(), inside, end: end.into() }),
        }
    }
}

impl Pieces<'_> {
    /// Splits a pattern in which a backslash escapes the next character. `None` if it has `_` or no `%`.
    pub fn escaped(pattern: &[u8]) -> Option<Pieces<'static>> {
        let mut pieces = pieces_of(pattern)?;
        let end = pieces.pop().filter(|_| !pieces.is_empty())?;
        let mut pieces = pieces.into_iter();
        let start = pieces.next()?;
        let inside = pieces.map(|piece| Finder::new(&piece).into_owned());
        Some(Pieces { start: start.into(), inside: inside.collect(), end: end.into() })
    }

    /// Returns whether the pattern is a single inner piece.
    fn is_one(&self) -> bool {
        self.start.is_empty() && self.end.is_empty() && self.inside.len() == 1
    }

    #[inline]
    pub fn matches(&self, row: &[u8]) -> bool {
        let (start, end) = (self.start.len(), self.end.len());
        let fits = row.len() >= start + end
            && (start == 0 || row.starts_with(&self.start))
            && (end == 0 || row.ends_with(&self.end));
        if !fits {
            return false;
        }
        let mut rest = &row[start..row.len() - end];
        for piece in &self.inside {
            let Some(at) = piece.find(rest) else { return false };
            rest = &rest[at + piece.needle().len()..];
        }
        true
    }
}

/// Sets the bits of rows from `first` on that match the pattern; `false` if the rows must be tested one by
/// one.
pub(super) fn found<L: Held + Searched>(
    layout: &L,
    first: usize,
    rows: usize,
    pieces: &Pieces<'_>,
    out: &mut [u64],
) -> bool {
    match pieces.inside.iter().max_by_key(|piece| piece.needle().len()) {
        Some(piece) => layout.search(first, rows, piece, pieces, out),
        None => {
            let start = Needle::new(&pieces.start, At::Start);
            held(layout, first, rows, &start, out)
                && kept(first, out, |row| layout.row(row).map(|row| pieces.matches(row)))
        }
    }
}

/// Layouts that search all rows at once for a piece of a pattern.
pub(super) trait Searched: Layout {
    /// As [`found`]; `piece` is one of the inner pieces.
    fn search(
        &self,
        first: usize,
        rows: usize,
        piece: &Finder<'_>,
        pieces: &Pieces<'_>,
        out: &mut [u64],
    ) -> bool;
}

impl<const O: usize> Searched for Offsets<'_, O> {
    fn search(
        &self,
        first: usize,
        rows: usize,
        piece: &Finder<'_>,
        pieces: &Pieces<'_>,
        out: &mut [u64],
    ) -> bool {
        // This finds the rows that are long enough, and checks that every row lies inside its buffer.
        if self.sieve(first, rows, &Needle::new(piece.needle(), At::Start), out) == Left::Nothing {
            return false;
        }
        let count = (out.len() * 64).min(rows - first);
        let (place, len) = (|i: usize| offset(self.offsets[first + i]), piece.needle().len());
        let ends = |row: usize, found: usize| {
            let end = place(row + 1);
            let is = found + len <= end && (pieces.is_one() || pieces.matches(&self.bytes[place(row)..end]));
            (is, end)
        };
        if len <= SHORT {
            out.fill(0);
            search_rows(piece, self.bytes, 0..count, &place, &ends, out);
            return true;
        }
        // Rows that are too short are skipped: a search that starts in each of them would cost a needle's
        // length each time. Rows that are hardly longer are searched one by one, because no match starts in
        // their last bytes, which are most of them.
        let apart = place(count) - place(0) < ALONE * len * count;
        for (i, word) in out.iter_mut().enumerate() {
            let place = |row: usize| place(64 * i + row);
            let ends = |row: usize, found: usize| ends(64 * i + row, found);
            let long = std::mem::take(word);
            rows::runs(long, |start, len| {
                let rows = start..start + len;
                if !apart {
                    return search_rows(piece, self.bytes, rows, &place, &ends, std::slice::from_mut(word));
                }
                for row in rows {
                    *word |= u64::from(pieces.matches(&self.bytes[place(row)..place(row + 1)])) << row;
                }
            });
        }
        true
    }
}

/// Needles up to this length are searched in all rows, because a restarted search costs at most this many
/// bytes.
pub(super) const SHORT: usize = 64;

/// Rows whose average length is below so many lengths of the needle are searched one by one.
const ALONE: usize = 8;

/// Sets the bits of consecutive rows that hold a needle. `ends` returns whether a match counts for its row,
/// and the end of that row. The cost is the length of the rows, plus a needle's length for each row: a match
/// that crosses the end of its row is the last one that starts in it, so the search continues at the next
/// row.
#[inline(always)]
fn search_rows(
    piece: &Finder<'_>,
    bytes: &[u8],
    rows: std::ops::Range<usize>,
    place: &impl Fn(usize) -> usize,
    ends: &impl Fn(usize, usize) -> (bool, usize),
    out: &mut [u64],
) {
    let text = &bytes[..place(rows.end)];
    let (mut row, mut at) = (rows.start, place(rows.start));
    while let Some(found) = piece.find(&text[at..]) {
        let found = at + found;
        while place(row + 1) <= found {
            row += 1;
        }
        let (is, end) = ends(row, found);
        out[row / 64] |= u64::from(is) << (row % 64);
        at = end;
    }
}

impl Searched for Views<'_> {
    fn search(
        &self,
        first: usize,
        rows: usize,
        piece: &Finder<'_>,
        pieces: &Pieces<'_>,
        out: &mut [u64],
    ) -> bool {
        let views = &self.views[first..(first + out.len() * 64).min(rows)];
        let (piece, len) = (piece.needle(), piece.needle().len());
        let (bytes, mask) = leading(piece, 8);
        vectorised(Inside { views, bytes: bytes as u64, mask: mask as u64, len, out });
        let told = pieces.is_one() && len <= 8;
        kept(first, out, |row| match self.len(row) {
            ..=INLINE if told => Some(true),
            _ => self.row(row).map(|row| pieces.matches(row)),
        })
    }
}

/// Sets the bits of inline views that contain the first eight bytes of a piece, and of all views of longer
/// rows.
struct Inside<'a> {
    views: &'a [[u8; 16]],
    bytes: u64,
    mask: u64,
    len: usize,
    out: &'a mut [u64],
}

impl Loop for Inside<'_> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let (bytes, mask, wanted) = (self.bytes, self.mask, self.len as u64);
        each_view(self.views, self.out, |[low, high]| {
            let len = low & u64::from(u32::MAX);
            let mut is = len > INLINE as u64 && len >= wanted;
            for place in 0..INLINE as u32 {
                // Up to eight bytes of the row, from this place on.
                let here = match place {
                    0..4 => low >> 32 >> (8 * place) | high << (32 - 8 * place),
                    _ => high >> (8 * (place - 4)),
                };
                is |= len >= wanted + u64::from(place) && here & mask == bytes;
            }
            is
        });
    }
}
