//! Long patterns in which `_` stands for any character.
//!
//! The one idea: the places of a piece of the pattern that the text so far may lead to are a set of bits, which the
//! next character moves on by one, 64 of them at a time. So a text takes its length times a 64th of the pattern's,
//! whatever they are.

use std::collections::HashMap;

/// Bytes of bits that a pattern may take.
const MOST: usize = 64 << 20;

/// The pieces of a pattern between its `%`, two at least.
pub(super) struct Wild {
    start: Piece,
    inside: Vec<Piece>,
    end: Piece,
}

#[derive(Default)]
struct Piece {
    /// Its characters; `None` is any.
    chars: Vec<Option<char>>,
    /// For each character the places where the piece has it or any.
    places: HashMap<char, Vec<u64>>,
    /// Those where it has any.
    any: Vec<u64>,
}

impl Wild {
    /// Of a pattern; nothing where it has no `%`, and so nothing to search for, or where its bits take too much.
    pub fn of(pattern: &str) -> Option<Wild> {
        let (mut pieces, mut chars) = (vec![vec![]], pattern.chars());
        while let Some(c) = chars.next() {
            match c {
                '%' => pieces.push(vec![]),
                '_' => pieces.last_mut()?.push(None),
                // At the end it stands for itself.
                '\\' => pieces.last_mut()?.push(Some(chars.next().unwrap_or(c))),
                c => pieces.last_mut()?.push(Some(c)),
            }
        }
        let end = pieces.pop().filter(|_| !pieces.is_empty())?;
        let mut pieces = pieces.into_iter();
        let anchored = |chars| Piece { chars, ..Piece::default() };
        let (start, mut left, mut inside) = (anchored(pieces.next()?), MOST, vec![]);
        for chars in pieces.filter(|chars| !chars.is_empty()) {
            let piece = Piece::searched(chars);
            left = left.checked_sub((1 + piece.places.len()) * piece.any.len() * 8)?;
            inside.push(piece);
        }
        Some(Wild { start, inside, end: anchored(end) })
    }

    /// Whether a text is of the pattern.
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

    /// A text without the piece that it starts with.
    fn without<'a>(&self, mut text: std::str::Chars<'a>) -> Option<std::str::Chars<'a>> {
        let all =
            self.chars.iter().all(|want| text.next().is_some_and(|c| want.is_none_or(|want| want == c)));
        all.then_some(text)
    }

    /// A text without the piece that it ends with.
    fn without_end<'a>(&self, mut text: std::str::Chars<'a>) -> Option<std::str::Chars<'a>> {
        let mut wanted = self.chars.iter().rev();
        let all = wanted.all(|want| text.next_back().is_some_and(|c| want.is_none_or(|want| want == c)));
        all.then_some(text)
    }

    /// What follows the first place where a text has the piece.
    fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (mut state, last) = (vec![0u64; self.any.len()], self.chars.len() - 1);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            // A piece may begin at each character.
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
