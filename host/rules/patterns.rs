//! Patterns of `LIKE` without `_`, which are searched for as bytes.

/// Splits a pattern at its `%`, without those that a backslash escapes. The first and the last piece, which
/// may be empty, are where a text begins and ends; those in between are not empty. One piece is the whole
/// text. `None` if the pattern has a `_`.
pub(crate) fn pieces_of(pattern: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut pieces, mut bytes) = (vec![vec![]], pattern.iter().copied());
    while let Some(byte) = bytes.next() {
        match byte {
            b'_' => return None,
            // Nothing is between two `%` that follow each other.
            b'%' if pieces.len() > 1 && pieces.last()?.is_empty() => {}
            b'%' => pieces.push(vec![]),
            // A backslash at the end of the pattern stands for itself.
            b'\\' => pieces.last_mut()?.push(bytes.next().unwrap_or(byte)),
            byte => pieces.last_mut()?.push(byte),
        }
    }
    Some(pieces)
}
