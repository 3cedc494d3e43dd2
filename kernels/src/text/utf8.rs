//! Checks which rows are UTF-8, each by itself.
//!
//! The one idea: the work is divided by bytes, 64 to a lane. Most bytes are ASCII, which is valid wherever
//! rows begin and end, so a lane whose bytes are all ASCII is done. Any other lane turns 16 bytes and the
//! four on either side into bit masks: which bytes continue a character, and which must be followed by one,
//! two or three that do. The continuing bytes must be exactly those that were required, and no row may begin
//! among them. A few shifts of the masks check this for all bytes at once. If a wave's bytes pass as one
//! single row, and no row begins with a continuing byte, each row is valid. Only otherwise does a lane look
//! for the rows of its bytes. A lane judges the characters that **begin** in its bytes, and a continuing byte
//! that belongs to no character.
//!
//! Bytes moved: the strings once, and a bit for each bad row. ASCII takes 10 instructions for 16 bytes in
//! each lane; other text takes about 170, and 20 for each row in it. Waves stride over the bytes, because the
//! host may not know how many there are.

use core::ops::Range;

use crate::gather::places::Places;
use crate::memory::{Bits, In, Out, ones};
use crate::ranges::rows::{Edges, extent};
use crate::reduce::scan::Summand;
use crate::target::{Lane, Wave};

/// 16-byte loads that a lane has in flight.
const LOADS: usize = 4;

/// The most waves that [`Validate`] uses; with more bytes, each wave checks several stretches.
const WAVES: u64 = 1 << 14;

/// Returns how many waves [`Validate`] shares `bytes` bytes among; `None` stands for a number that is not
/// known.
pub fn validate_waves(bytes: Option<u64>, width: u32) -> u64 {
    bytes.map_or(WAVES, |bytes| bytes.div_ceil(64 * u64::from(width)).clamp(1, WAVES))
}

kernel! {
    family "utf8";
    /// Finds the rows that are not UTF-8. [`validate_waves`] computes how many waves to use.
    Validate {
        /// The offsets: one more than the number of rows. They are checked before (see
        /// [`Convert`](crate::ranges::offsets::Convert)), or found bad afterwards.
        offsets: In<u8>,
        /// The validity of the rows, from `In::bitmap`. A null row may hold anything. May be absent.
        valid: In<u32>,
        /// The bit offset of `valid`, from `In::bitmap`.
        valid_offset: u64,
        /// The number of rows; not 0.
        rows: u64,
        /// The bytes, from `In::bitmap`.
        bytes: In<u32>,
        /// The offset of `bytes` in bits, from `In::bitmap`.
        offset: u64,
        /// How many bytes exist; if `end` is present, the width in bits of the number there: see [`extent`].
        limit: u64,
        /// The number of bytes, from `In::bitmap`, if only the device knows it. May be absent.
        end: In<u32>,
        /// The bit offset of `end`, from `In::bitmap`.
        end_offset: u64,
        /// The number of waves that share the bytes.
        waves: u64,
        /// A bit for each row, zeroed before; those of bad rows are set. May be absent.
        bad: Out<u32>,
        /// Receives the first bad row; `u64::MAX` before.
        fault: Out<u64>,
    }
    waves |args, _| args.waves;
    /// By the width of an offset in bytes.
    VALIDATE {
        utf8_validate_b4 [4] = validate::<u32>,
        utf8_validate_b8 [8] = validate::<u64>,
    }
}

/// Masks of the 24 bytes around a block: the 4 before it, its 16, and the 4 after it, which is further than a
/// character reaches. Bit `i` stands for byte `i`.
struct Masks {
    /// Bytes that continue a character.
    continues: u32,
    /// Bytes that one, two or three continuing bytes must follow.
    leads: [u32; 3],
    /// Bytes that are invalid in any row, provided that their row continues after them.
    wrong: u32,
}

/// The bits of the block's own 16 bytes in [`Masks`].
const OWN: u32 = 0x000f_fff0;

impl Masks {
    /// Builds the masks of 24 bytes, given as three words.
    #[inline(always)]
    fn of(words: [u64; 3]) -> Masks {
        let [a, b, c] = words.map(transposed);
        let plane = |i: u32| {
            let byte = |x: u64| (x >> (8 * i)) as u32 & 0xff;
            byte(a) | byte(b) << 8 | byte(c) << 16
        };
        let [b0, b1, b2, b3, b4, b5, b6, b7] =
            [plane(0), plane(1), plane(2), plane(3), plane(4), plane(5), plane(6), plane(7)];
        let one = b7 & b6;
        let (two, three) = (one & b5, one & b5 & b4);
        let low = b3 | b2 | b1 | b0;
        // Bytes that never occur: an overlong form (C0 and C1), or no character at all (F5 to FF).
        let never = one & !(b5 | b4 | b3 | b2 | b1) | three & (b3 | b2 & (b1 | b0));
        // E0 requires a second byte from A0 on and ED one below it; F0 requires one from 90 on and F4 one
        // below it.
        let (from_a0, from_90) = (b5 >> 1, (b5 | b4) >> 1);
        let short = two & !b4 & !low & !from_a0 | three & !low & !from_90;
        let far = two & !b4 & b3 & b2 & !b1 & b0 & from_a0 | three & b2 & !(b3 | b1 | b0) & from_90;
        // A character is judged in the block in which it begins; those in the last four bytes belong to the
        // next block.
        let leads = [one, two, three].map(|leads| leads & !(0xf0_0000 | 0xff00_0000));
        Masks { continues: b7 & !b6, leads, wrong: (never | short | far) & OWN }
    }

    /// Returns the bytes at which a row is invalid, if rows begin at `starts`.
    #[inline(always)]
    fn errors(&self, starts: u32) -> u32 {
        let [one, two, three] = self.leads;
        // Bytes that continue a character that began one, two or three bytes before, with no row beginning in
        // between.
        let first = self.continues & !starts;
        let second = first & !(starts << 1);
        let third = second & !(starts << 2);
        let wanted = one << 1 & first | two << 2 & second | three << 3 & third;
        let missed = (one << 1 & !first) >> 1 | (two << 2 & !second) >> 2 | (three << 3 & !third) >> 3;
        self.continues & !wanted | missed | self.wrong
    }
}

/// Transposes eight bytes: byte `i` of the result has bit `i` of each of them (Hacker's Delight 7-3).
#[inline(always)]
fn transposed(mut x: u64) -> u64 {
    for (by, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0xf0f0_f0f0)] {
        let swapped = (x ^ x >> by) & mask;
        x ^= swapped ^ swapped << by;
    }
    x
}

fn validate<E: Summand + Edges>(args: &Validate, wave: &mut Wave) {
    if wave.index() >= args.waves {
        return;
    }
    let limit = extent(args.limit, args.end, args.end_offset);
    let moved = args.offset / 8;
    let (from, to) = (E::edge(args.offsets, 0).min(limit), E::edge(args.offsets, args.rows).min(limit));
    if from >= to {
        return;
    }
    // Blocks of 16 bytes of memory, not of the text, so that loads are aligned.
    let (first, last) = ((from + moved) / 16, (to + moved - 1) / 16);
    let text = Text { bytes: args.bytes, moved, from, to };
    let blocks = args.bytes.cast::<u128>();
    let rows = Places { to: args.offsets.cast::<E>(), rows: args.rows, scale: 1 };
    let step = LOADS as u64 * u64::from(wave.width());
    let mut at = first + wave.index() * step;
    while at <= last {
        // A lane's blocks are neighbours, so it only has to find the row of the first one.
        let own = |l: Lane<'_>| at + u64::from(l.index()) * LOADS as u64;
        let some = wave.each(|l| {
            let loads: [u128; LOADS] = core::array::from_fn(|k| blocks.stream((own(l) + k as u64).min(last)));
            let all = loads[0] | loads[1] | loads[2] | loads[3];
            !ascii(all) && own(l) <= last
        });
        if wave.any(some) {
            // The wave finds the first and the last row of its bytes together; a lane then only has to search
            // between them.
            let end = (at + step).min(last + 1) * 16 - moved;
            let low = rows.find_together(0, (at * 16).saturating_sub(moved).max(from), wave);
            let high = rows.find_together(low, end.min(to) - 1, wave);
            // If all bytes are valid as one row, and no row begins within a character, each row is valid.
            let wrong = wave.each(|l| {
                let blocks = own(l)..(own(l) + LOADS as u64).min(last + 1);
                some.at(l)
                    && blocks.into_iter().any(|block| text.masks(block).errors(0) & text.own(block) != 0)
            });
            let mut torn = wave.any(wrong);
            let mut first = low;
            while first <= high && !torn {
                let within = wave.each(|l| {
                    let row = first + u64::from(l.index());
                    row <= high && text.continues(rows.to(row.min(high)))
                });
                torn = wave.any(within);
                first += u64::from(wave.width());
            }
            if torn {
                wave.each(|l| {
                    if some.at(l) {
                        judge::<E>(args, l, text, own(l)..(own(l) + LOADS as u64).min(last + 1), low..high);
                    }
                });
            }
        }
        at += step * args.waves;
    }
}

#[inline(always)]
fn ascii(bytes: u128) -> bool {
    (bytes as u64 | (bytes >> 64) as u64) & 0x8080_8080_8080_8080 == 0
}

/// The bytes of all rows.
#[derive(Clone, Copy)]
struct Text {
    bytes: In<u32>,
    /// The number of bytes in `bytes` before the byte at offset 0.
    moved: u64,
    /// The offset at which the first row begins.
    from: u64,
    /// The offset at which the last row ends.
    to: u64,
}

impl Text {
    /// Returns the masks of a block and of the bytes around it.
    #[inline(always)]
    fn masks(self, block: u64) -> Masks {
        let own = self.bytes.cast::<u128>().get(block);
        // The words before and after are only read if they hold a byte of the text.
        let (before, after) = (block * 16 > self.from + self.moved, block * 16 + 16 < self.to + self.moved);
        let before = if before { self.bytes.get(block * 4 - 1) } else { 0 };
        let after = if after { self.bytes.get(block * 4 + 4) } else { 0 };
        Masks::of([
            u64::from(before) | (own as u64) << 32,
            (own >> 32) as u64,
            (own >> 96) as u64 | u64::from(after) << 32,
        ])
    }

    /// Returns the offset of a block's first byte that belongs to the text.
    #[inline(always)]
    fn begin(self, block: u64) -> u64 {
        (block * 16).saturating_sub(self.moved).max(self.from)
    }

    /// Returns the end of a block's bytes that belong to the text.
    #[inline(always)]
    fn end(self, block: u64) -> u64 {
        (block * 16 + 16 - self.moved).min(self.to)
    }

    /// Returns the bit of a byte in the masks of a block; 24 for bytes after it. The offset may be any
    /// number.
    #[inline(always)]
    fn place(self, block: u64, byte: u64) -> u32 {
        byte.saturating_add(self.moved + 4).saturating_sub(block * 16).min(24) as u32
    }

    /// Returns the bits of a block's bytes that belong to the text.
    #[inline(always)]
    fn own(self, block: u64) -> u32 {
        let place = |byte: u64| u64::from(self.place(block, byte));
        ones(place(self.end(block))) & !ones(place(self.begin(block)))
    }

    /// Returns whether a byte belongs to the text and continues a character.
    #[inline(always)]
    fn continues(self, byte: u64) -> bool {
        let byte = if byte >= self.from && byte < self.to { byte } else { return false };
        self.bytes.cast::<u8>().get(byte + self.moved) >> 6 == 2
    }
}

/// Judges the bytes of some blocks. The first byte belongs to one of the rows in `among`, whose end is
/// included.
#[inline(always)]
fn judge<E: Summand + Edges>(
    args: &Validate,
    l: Lane<'_>,
    text: Text,
    blocks: Range<u64>,
    among: Range<u64>,
) {
    let rows = Places { to: args.offsets.cast::<E>(), rows: args.rows, scale: 1 };
    let mut row = rows.find(among.start, among.end, text.begin(blocks.start));
    let mut block = blocks.start;
    while block < blocks.end {
        let at = text.begin(block);
        if !ascii(text.bytes.cast::<u128>().get(block)) {
            let masks = text.masks(block);
            if at >= rows.to(row + 1) {
                row = rows.next(row, among.end, at).min(args.rows - 1);
            }
            // If this returned a lower bit than that of an earlier byte, the loop below would never end.
            let place = |byte: u64| text.place(block, byte);
            // Rows before this one do not matter here. The loop ends if offsets descend.
            let (mut starts, mut last, mut r) = (1u32 << place(rows.to(row)), at, row);
            loop {
                let next = rows.to(r + 1);
                if next <= last {
                    break;
                }
                starts |= 1 << place(next);
                if place(next) == 24 || next >= text.to || r + 1 >= args.rows {
                    break;
                }
                (r, last) = (rows.next(r, args.rows - 1, next).min(args.rows - 1), next);
            }
            let mut errors = masks.errors(starts) & text.own(block);
            while errors != 0 {
                let byte = block * 16 + u64::from(errors.trailing_zeros()) - 4 - text.moved;
                if byte >= rows.to(row + 1) {
                    row = rows.next(row, among.end, byte).min(args.rows - 1);
                }
                refuse(args, l, row);
                // Clears at least one byte, even if offsets are bad.
                errors &= !ones(u64::from(place(rows.to(row + 1).max(byte + 1))));
            }
        }
        block += 1;
    }
}

/// Reports a row that is not UTF-8, unless it is null.
#[inline(always)]
fn refuse(args: &Validate, l: Lane<'_>, row: u64) {
    let valid = Bits::new(args.valid, args.valid_offset, args.rows);
    if !valid.is_absent() && !valid.get(row) {
        return;
    }
    if !args.bad.is_absent() {
        args.bad.or(l, row / 32, 1 << (row % 32));
    }
    args.fault.min(l, 0, row);
}
