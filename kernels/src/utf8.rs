//! Whether rows are UTF-8, each by itself.
//!
//! The one idea: the work is dealt out by bytes, 16 to a lane, and most of them are ASCII, which is right wherever rows
//! begin and end: a lane whose 16 bytes are all ASCII is done. Any other lane finds the rows its bytes belong to and judges
//! the **characters that begin** in its bytes, reading on past them where one ends further on, and the bytes that continue
//! no character. Every byte is thus judged once, by one lane, within its row.
//!
//! Bytes: the strings once, and a bit for each bad row. For ASCII 10 instructions for 16 bytes in each lane; for the rest
//! some 20 a byte and a search for the row. Waves stride over the bytes, because the host may not know how many there are.

use core::ops::Range;

use crate::memory::{Bits, In, Out};
use crate::places::Places;
use crate::ranges::{Edges, extent};
use crate::scan::Summand;
use crate::target::{Lane, Lanes, Wave};

/// 16-byte loads a lane has in flight.
const LOADS: usize = 4;

kernel! {
    family "utf8";
    /// Finds the rows that are not UTF-8. Waves: any number, up to one for each 64 bytes and lane.
    Validate {
        /// One more than there are rows; checked before (see [`Convert`](crate::offsets::Convert)), or found bad after.
        offsets: In<u8>,
        /// From `In::bitmap`: which are valid. Others may be anything. May be absent.
        valid: In<u32>,
        /// From `In::bitmap`.
        valid_offset: u64,
        /// How many rows; not 0.
        rows: u64,
        /// The bytes, from `In::bitmap`.
        bytes: In<u32>,
        /// From `In::bitmap`.
        offset: u64,
        /// How many bytes there are; `u64::MAX` for as many as the last offset says.
        limit: u64,
        /// How many waves there are.
        waves: u64,
        /// A bit for each row, zero before: those of bad rows are set. May be absent.
        bad: Out<u32>,
        /// Receives the first bad row: `u64::MAX` before.
        fault: Out<u64>,
    }
    /// By the width of an offset in bytes.
    VALIDATE {
        utf8_validate_b4 [4] = validate::<u32>,
        utf8_validate_b8 [8] = validate::<u64>,
    }
}

/// The bytes of a row and around.
#[derive(Clone, Copy)]
struct Text {
    bytes: In<u8>,
    moved: u64,
}

impl Text {
    #[inline(always)]
    fn get(self, i: u64) -> u32 {
        u32::from(self.bytes.get(i + self.moved))
    }

    /// How many bytes the character has that begins at `i` in a row that ends at `end`; 0 where it is none.
    #[inline(always)]
    fn character(self, i: u64, end: u64) -> u64 {
        let lead = self.get(i);
        if lead < 0x80 {
            return 1;
        }
        let len = match lead {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return 0,
        };
        if end - i < len {
            return 0;
        }
        // What the second byte may be keeps out what a shorter character could say, surrogates, and what is too great.
        let (least, most) = match lead {
            0xE0 => (0xA0, 0xBF),
            0xED => (0x80, 0x9F),
            0xF0 => (0x90, 0xBF),
            0xF4 => (0x80, 0x8F),
            _ => (0x80, 0xBF),
        };
        let second = self.get(i + 1);
        let good = second >= least
            && second <= most
            && (len < 3 || continues(self.get(i + 2)))
            && (len < 4 || continues(self.get(i + 3)));
        if good { len } else { 0 }
    }

    /// Whether the byte at `i`, one that continues a character, belongs to one that begins before it in the row.
    #[inline(always)]
    fn belongs(self, i: u64, start: u64) -> bool {
        let mut back = 1;
        while back <= 3 && back <= i - start {
            let byte = self.get(i - back);
            if !continues(byte) {
                // Whether it is a good character is judged where it begins.
                return byte >= 0xC0 && back <= u64::from(byte >= 0xE0) + u64::from(byte >= 0xF0) + 1;
            }
            back += 1;
        }
        false
    }
}

#[inline(always)]
fn continues(byte: u32) -> bool {
    byte & 0xC0 == 0x80
}

fn validate<E: Summand + Edges>(args: &Validate, wave: &mut Wave) {
    if wave.index() >= args.waves {
        return;
    }
    let limit = extent::<E>(args.offsets, args.rows, args.limit);
    let moved = args.offset / 8;
    let (from, to) = (E::edge(args.offsets, 0).min(limit), E::edge(args.offsets, args.rows).min(limit));
    if from >= to {
        return;
    }
    // Blocks of 16 bytes of memory, not of the text: they are aligned.
    let (first, last) = ((from + moved) / 16, (to + moved - 1) / 16);
    let blocks = args.bytes.cast::<u128>();
    let rows = Places { to: args.offsets.cast::<E>(), rows: args.rows, scale: 1 };
    let step = LOADS as u64 * u64::from(wave.width());
    let mut at = first + wave.index() * step;
    while at <= last {
        let (at_first, width) = (at, wave.width());
        let block = |k: usize, lane: u32| at_first + u64::from(k as u32 * width + lane);
        let loads: [Lanes<u128>; LOADS] =
            core::array::from_fn(|k| wave.each(|l| blocks.stream(block(k, l.index()).min(last))));
        let wide = wave.each(|l| {
            (0..LOADS).fold(0u32, |bits, k| {
                let all = loads[k].at(l);
                let high = (all as u64 | (all >> 64) as u64) & 0x8080_8080_8080_8080;
                bits | u32::from(high != 0 && block(k, l.index()) <= last) << k
            })
        });
        let some = wave.each(|l| wide.at(l) != 0);
        if wave.any(some) {
            // The rows of all these bytes, found together; a lane only has to look between them.
            let end = (at + step).min(last + 1) * 16 - moved;
            let low = rows.find_together(0, (at * 16).saturating_sub(moved).max(from), wave);
            let high = rows.find_together(low, end.min(to) - 1, wave);
            wave.each(|l| {
                let mut left = wide.at(l);
                let mut k = 0;
                while left != 0 {
                    if left & 1 != 0 {
                        let place = block(k, l.index()) * 16;
                        let (begin, end) =
                            (place.saturating_sub(moved).max(from), (place + 16 - moved).min(to));
                        judge::<E>(args, l, begin..end, low..high, limit);
                    }
                    left >>= 1;
                    k += 1;
                }
            });
        }
        at += step * args.waves;
    }
}

/// Judges bytes, of which there is one at least. The first belongs to one of the rows `among`, its end included.
#[inline(always)]
fn judge<E: Summand + Edges>(args: &Validate, l: Lane<'_>, bytes: Range<u64>, among: Range<u64>, limit: u64) {
    let rows = Places { to: args.offsets.cast::<E>(), rows: args.rows, scale: 1 };
    let text = Text { bytes: args.bytes.cast(), moved: args.offset / 8 };
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    let mut row = rows.find(among.start, among.end, bytes.start);
    let mut at = bytes.start;
    while at < bytes.end {
        if at >= rows.to(row + 1) {
            row = rows.next(row, args.rows - 1, at).min(args.rows - 1);
        }
        // Where offsets were bad they are kept inside, and time goes on.
        let (start, stop) = (rows.to(row).min(at), rows.to(row + 1).min(limit).max(at + 1));
        if !valid.is_absent() && !valid.get(row) {
            at = stop;
            continue;
        }
        let len = if continues(text.get(at)) {
            u64::from(text.belongs(at, start))
        } else {
            text.character(at, stop)
        };
        if len == 0 {
            if !args.bad.is_absent() {
                args.bad.or(l, row / 32, 1 << (row % 32));
            }
            args.fault.min(l, 0, row);
            at = stop;
        } else {
            at += len;
        }
    }
}
