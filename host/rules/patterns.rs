//! The pieces of patterns of `LIKE`.

/// Splits a pattern at its `%`, without those that a backslash escapes. The first and the last piece, which
/// may be empty, are where a text begins and ends; those in between are not empty. One piece is the whole
/// text. `None` if the pattern has a `_`.
pub(crate) fn pieces_of(pattern: &[u8]) -> Option<Vec<Vec<u8>>> {
    wild_pieces_of(pattern).into_iter().map(|piece| piece.into_iter().collect()).collect()
}

/// The same of any pattern: `None` in place of a `_`.
pub(crate) fn wild_pieces_of(pattern: &[u8]) -> Vec<Vec<Option<u8>>> {
    let (mut pieces, mut piece, mut bytes) = (vec![], vec![], pattern.iter().copied());
    while let Some(byte) = bytes.next() {
        match byte {
            b'_' => piece.push(None),
            // Nothing is between two `%` that follow each other.
            b'%' if !pieces.is_empty() && piece.is_empty() => {}
            b'%' => pieces.push(std::mem::take(&mut piece)),
            // A backslash at the end of the pattern stands for itself.
            b'\\' => piece.push(Some(bytes.next().unwrap_or(byte))),
            byte => piece.push(Some(byte)),
        }
    }
    pieces.push(piece);
    pieces
}
