//! Rows that have text somewhere inside, and patterns of nothing but text and `%`.
//!
//! The one idea: rows that lie behind each other are one text. It is searched as a whole, and what is found is then told apart by
//! rows.

use bowstring_kernels::text::Test;
use memchr::memmem::Finder;

use super::super::rows::offset;
use super::super::vectorise::{Loop, vectorised};
use super::layout::{INLINE, Layout, Offsets, Views, each_view};
use super::needle::{At, Held, Left, Needle, held, kept, leading};

/// What is at the start, what follows somewhere, in this order, and what is at the end.
pub(super) struct Pieces<'a> {
    start: &'a [u8],
    inside: Vec<Finder<'a>>,
    end: &'a [u8],
}

/// A pattern, by what is quickest to look for.
pub(super) enum Pattern<'a> {
    /// It is at one place.
    Held(Needle<'a>),
    Pieces(Pieces<'a>),
    /// Anything else.
    Other,
}

impl<'a> Pattern<'a> {
    pub fn of(test: Test, pattern: &'a [u8]) -> Pattern<'a> {
        if test == Test::Contains {
            return match pattern {
                [] => Pattern::Held(Needle::new(pattern, At::Start)),
                _ => Pattern::Pieces(Pieces { start: &[], inside: vec![Finder::new(pattern)], end: &[] }),
            };
        }
        if pattern.iter().any(|byte| matches!(byte, b'_' | b'\\')) {
            return Pattern::Other;
        }
        let mut pieces = pattern.split(|byte| *byte == b'%');
        let (start, mut rest) = (pieces.next().unwrap_or(&[]), pieces.collect::<Vec<_>>());
        let Some(end) = rest.pop() else { return Pattern::Held(Needle::new(pattern, At::Whole)) };
        let inside: Vec<Finder<'_>> =
            rest.into_iter().filter(|piece| !piece.is_empty()).map(Finder::new).collect();
        match (start, &inside[..], end) {
            (_, [], []) => Pattern::Held(Needle::new(start, At::Start)),
            ([], [], _) => Pattern::Held(Needle::new(end, At::End)),
            _ => Pattern::Pieces(Pieces { start, inside, end }),
        }
    }
}

impl Pieces<'_> {
    /// Whether there is one piece and no more to ask.
    fn is_one(&self) -> bool {
        self.start.is_empty() && self.end.is_empty() && self.inside.len() == 1
    }

    #[inline]
    pub fn matches(&self, row: &[u8]) -> bool {
        let (start, end) = (self.start.len(), self.end.len());
        let fits = row.len() >= start + end
            && (start == 0 || row.starts_with(self.start))
            && (end == 0 || row.ends_with(self.end));
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

/// The bits of rows from `first` on that are of the pattern; `false` where they have to be looked at one by one.
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
            let start = Needle::new(pieces.start, At::Start);
            held(layout, first, rows, &start, out)
                && kept(first, out, |row| layout.row(row).map(|row| pieces.matches(row)))
        }
    }
}

/// Layouts in which a piece of a pattern is searched for, in all rows at once.
pub(super) trait Searched: Layout {
    /// As [`found`] says, where `piece` is one of those inside.
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
        // What is left of it is of no use here; that every row is in its buffer is.
        if self.sieve(first, rows, &Needle::new(piece.needle(), At::Start), out) == Left::Nothing {
            return false;
        }
        let last = (first + out.len() * 64).min(rows);
        let place = |i: usize| offset(self.offsets[first + i]);
        out.fill(0);
        let (text, len) = (&self.bytes[..place(last - first)], piece.needle().len());
        let (mut row, mut at) = (0, place(0));
        while let Some(found) = piece.find(&text[at..]) {
            let found = at + found;
            while place(row + 1) <= found {
                row += 1;
            }
            let end = place(row + 1);
            if found + len > end {
                // Half of it is the next row's.
                at = found + 1;
                continue;
            }
            if pieces.is_one() || pieces.matches(&text[place(row)..end]) {
                out[row / 64] |= 1 << (row % 64);
            }
            at = end;
        }
        true
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

/// Sets the bits of views that hold a row in which the first eight bytes of a piece are, and those of all longer rows.
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
            let mut is = len > INLINE as u64;
            for place in 0..INLINE as u32 {
                // What of the row follows from there on, at most eight bytes.
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
