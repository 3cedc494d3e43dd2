//! Patterns: a row begins with one piece, ends with another, and has the others in between. Bytes of a piece
//! may be wild (`_`) if the row is ASCII.
//!
//! The one idea: a row's bytes are read in blocks of sixteen, and four bytes at each of a block's places are
//! compared with the first four of a piece. The least difference tells whether any place is worth a closer
//! look, which takes three instructions a byte and no branch; so lanes stay together. Pieces have at most
//! sixteen bytes, which are compared at once: longer ones may match in vain at every place, and take another
//! search.

use crate::memory::In;
use crate::text::rows::Row;

/// The most bytes of a piece.
const LONGEST: usize = 16;

/// The words of a piece in a table, which begins with the number of pieces.
const WORDS: u64 = 3;
/// The same where bytes may be wild.
const WILD_WORDS: u64 = 5;

/// A piece of a pattern.
#[derive(Clone, Copy)]
struct Piece<const WILD: bool> {
    len: u64,
    /// The bytes, with zeros after the last, and for those that are wild.
    bytes: [u64; 2],
    /// The bits of the bytes that are not wild.
    mask: [u64; 2],
}

host_only! {
    /// The words of a piece of at most sixteen bytes; `None` if it is longer. A table begins with the
    /// number of pieces, of which there are at least two: the first and the last may be empty.
    pub fn words(piece: &[u8]) -> Option<[u64; WORDS as usize]> {
        let mut bytes = [0; LONGEST];
        bytes.get_mut(..piece.len())?.copy_from_slice(piece);
        let bytes = u128::from_le_bytes(bytes);
        Some([piece.len() as u64, bytes as u64, (bytes >> 64) as u64])
    }

    /// As [`words`], for a piece whose wild bytes are `None`. A table may have a single one: the whole row.
    pub fn wild_words(piece: &[Option<u8>]) -> Option<[u64; WILD_WORDS as usize]> {
        let (mut bytes, mut mask) = ([0; LONGEST], [0; LONGEST]);
        for (i, byte) in piece.iter().enumerate() {
            *bytes.get_mut(i)? = byte.unwrap_or(0);
            mask[i] = if byte.is_some() { 0xff } else { 0 };
        }
        let [bytes, mask] = [bytes, mask].map(u128::from_le_bytes);
        Some([piece.len() as u64, bytes as u64, (bytes >> 64) as u64, mask as u64, (mask >> 64) as u64])
    }
}

impl<const WILD: bool> Piece<WILD> {
    #[inline(always)]
    fn of(table: In<u64>, i: u64) -> Piece<WILD> {
        let at = 1 + i * if WILD { WILD_WORDS } else { WORDS };
        let bytes = [table.get(at + 1), table.get(at + 2)];
        let mask = if WILD { [table.get(at + 3), table.get(at + 4)] } else { [!0; 2] };
        Piece { len: table.get(at), bytes, mask }
    }

    /// Whether a row has the piece at a place, from which on it is long enough.
    #[inline(always)]
    fn is_at(self, row: Row, place: u64) -> bool {
        if self.len == 0 {
            return true;
        }
        let [low, high] = row.part(place, self.len).bytes(0);
        [low & self.mask[0], high & self.mask[1]] == self.bytes
    }
}

/// Returns whether all bytes of a row are ASCII.
#[inline(always)]
pub(super) fn is_ascii(row: Row) -> bool {
    let (mut all, mut at) = (0, 0);
    while at < row.len {
        let [low, high] = row.bytes(at);
        all |= low | high;
        at += 16;
    }
    all & 0x8080_8080_8080_8080 == 0
}

/// Returns whether a row consists of the pieces of a table, with anything in between.
#[inline(always)]
pub(super) fn consists_of<const WILD: bool>(row: Row, pieces: In<u64>) -> bool {
    // Registers are few, so the last piece is read again rather than kept.
    let (first, last) = (Piece::<WILD>::of(pieces, 0), || pieces.get(0) - 1);
    if WILD && last() == 0 {
        return row.len == first.len && first.is_at(row, 0);
    }
    let both = first.len + Piece::<WILD>::of(pieces, last()).len;
    if row.len < both || !first.is_at(row, 0) {
        return false;
    }
    let (mut at, mut i) = (first.len, 1);
    let rest = row.part(0, row.len - (both - at));
    while i < last() {
        let piece = Piece::<WILD>::of(pieces, i);
        let Some(place) = place_of(rest, at, piece) else { return false };
        at = place + piece.len;
        i += 1;
    }
    Piece::<WILD>::of(pieces, last()).is_at(row, rest.len)
}

/// Returns the first place, from `at` on, where a row has a piece, which is not empty.
#[inline(always)]
fn place_of<const WILD: bool>(row: Row, at: u64, piece: Piece<WILD>) -> Option<u64> {
    if row.len - at < piece.len {
        return None;
    }
    let want = piece.bytes[0] as u32;
    let mask = match piece.len {
        _ if WILD => piece.mask[0] as u32,
        len @ 0..4 => (1 << (8 * len as u32)) - 1,
        _ => !0,
    };
    let (blocks, from) = (row.source.blocks, row.source.from);
    let (first, last, end) = (from + at, from + row.len - piece.len, (from + row.len - 1) / 16);
    let mut block = first / 16;
    let mut low = blocks.get(block);
    loop {
        let high = blocks.get(if block < end { block + 1 } else { end });
        if least(low, high as u32, want, mask) == 0 {
            let (start, most) = (block * 16, last - block * 16);
            let early = if first > start { (first - start) as u32 } else { 0 };
            let late = if most < 15 { 15 - most as u32 } else { 0 };
            let mut hits = hits(low, high as u32, want, mask) & (!0 << early) & (0xffff >> late);
            while hits != 0 {
                let place = start + u64::from(hits.trailing_zeros()) - from;
                if piece.is_at(row, place) {
                    return Some(place);
                }
                hits &= hits - 1;
            }
        }
        block += 1;
        if block * 16 > last {
            return None;
        }
        low = high;
    }
}

/// Returns the four bytes from byte `i` of a block on, which the next block goes on.
#[inline(always)]
const fn four(low: u128, next: u32, i: u32) -> u32 {
    match i {
        0..=12 => (low >> (8 * i)) as u32,
        _ => (low >> (8 * i)) as u32 | next << (8 * (16 - i)),
    }
}

/// Returns 0 if any four bytes of a block are those that are wanted.
#[inline(always)]
fn least(low: u128, next: u32, want: u32, mask: u32) -> u32 {
    let (mut least, mut i) = (!0, 0);
    while i < 16 {
        let differs = (four(low, next, i) ^ want) & mask;
        least = if differs < least { differs } else { least };
        i += 1;
    }
    least
}

/// Returns a bit for each place of a block at which the four bytes are those that are wanted.
#[inline(always)]
fn hits(low: u128, next: u32, want: u32, mask: u32) -> u32 {
    let (mut hits, mut i) = (0, 0);
    while i < 16 {
        hits |= u32::from((four(low, next, i) ^ want) & mask == 0) << i;
        i += 1;
    }
    hits
}
