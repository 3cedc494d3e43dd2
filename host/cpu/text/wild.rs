//! Long patterns with `_`, which stands for any character.
//!
//! The one idea: the positions that a match may have reached in a piece of the pattern are a set of bits,
//! which each character of the text advances by one, 64 of them at a time. So the cost is the text's length
//! times a 64th of the pattern's, whatever they contain.

use std::collections::{HashMap, HashSet};

/// The most bytes of bit sets that a pattern may take.
const MOST: usize = 64 << 20;

/// The pieces of a pattern between its `%`; a pattern has at least two.
pub(super) struct Wild {
    start: Piece,
    inside: Vec<Piece>,
    end: Piece,
}

#[derive(Default)]
struct Piece {
    /// The piece's characters; `None` stands for `_`.
    chars: Vec<Option<char>>,
    /// For each character, the positions where the piece has it or `_`.
    places: HashMap<char, Vec<u64>>,
    /// The positions where the piece has `_`.
    any: Vec<u64>,
}

impl Wild {
    /// Compiles a pattern. `None` if it has no `%`, and so needs no search, or if its bit sets take too much
    /// memory.
    pub fn of(pattern: &str) -> Option<Wild> {
        let (mut pieces, mut chars) = (vec![vec![]], pattern.chars());
        while let Some(c) = chars.next() {
            match c {
                '%' => pieces.push(vec![]),
                '_' => pieces.last_mut()?.push(None),
                // A backslash at the end of the pattern stands for itself.
                '\\' => pieces.last_mut()?.push(Some(chars.next().unwrap_or(c))),
                c => pieces.last_mut()?.push(Some(c)),
            }
        }
        let end = pieces.pop().filter(|_| !pieces.is_empty())?;
        let mut pieces = pieces.into_iter();
        let anchored = |chars| Piece { chars, ..Piece::default() };
        let (start, mut left, mut inside) = (anchored(pieces.next()?), MOST, vec![]);
        for chars in pieces.filter(|chars| !chars.is_empty()) {
            let distinct = chars.iter().flatten().collect::<HashSet<_>>().len();
            left = left.checked_sub((1 + distinct) * chars.len().div_ceil(64) * 8)?;
            inside.push(Piece::searched(chars));
        }
        Some(Wild { start, inside, end: anchored(end) })
    }

    /// Returns whether a text matches the pattern.
    pub fn matches(&self, text: &str) -> bool {
        let rest = self.start.without(text.chars()).map(|rest| rest.as_str());
        let rest = rest.and_then(|rest| self.end.without_end(rest.chars()));
        let Some(mut rest) = rest.map(|rest| rest.as_str()) else { return false };
        for piece in &self.inside {
            let Some(after) = piece.find(rest) else { return false };
            rest = after;
        }
        true
    }
}

impl Piece {
    fn searched(chars: Vec<Option<char>>) -> Piece {
        let mut any = vec![0; chars.len().div_ceil(64)];
        let is_any = |(_, c): &(usize, &Option<char>)| c.is_none();
        chars.iter().enumerate().filter(is_any).for_each(|(i, _)| any[i / 64] |= 1 << (i % 64));
        let mut places: HashMap<char, Vec<u64>> = HashMap::new();
        for (i, c) in chars.iter().enumerate() {
            if let Some(c) = c {
                places.entry(*c).or_insert_with(|| any.clone())[i / 64] |= 1 << (i % 64);
            }
        }
        Piece { chars, places, any }
    }

    /// Strips the piece from the start of a text; `None` if it is not there.
    fn without<'a>(&self, mut text: std::str::Chars<'a>) -> Option<std::str::Chars<'a>> {
        let all =
            self.chars.iter().all(|want| text.next().is_some_and(|c| want.is_none_or(|want| want == c)));
        all.then_some(text)
    }

    /// Strips the piece from the end of a text; `None` if it is not there.
    fn without_end<'a>(&self, mut text: std::str::Chars<'a>) -> Option<std::str::Chars<'a>> {
        let mut wanted = self.chars.iter().rev();
        let all = wanted.all(|want| text.next_back().is_some_and(|c| want.is_none_or(|want| want == c)));
        all.then_some(text)
    }

    /// Returns the text after the first match of the piece.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (mut state, last) = (vec![0u64; self.any.len()], self.chars.len() - 1);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            // A match may begin at each character.
            let mut carried = 1;
            for (word, places) in state.iter_mut().zip(self.places.get(&c).unwrap_or(&self.any)) {
                let moved = *word << 1 | carried;
                carried = *word >> 63;
                *word = moved & places;
            }
            if state[last / 64] >> (last % 64) & 1 != 0 {
                return Some(chars.as_str());
            }
        }
        None
    }
}
